/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of any size, for the limits of the INI reader, and the time that judging one may
 * take.
 */
#ifndef TESTS_SUPPORT_LARGE_TEXT_H
#define TESTS_SUPPORT_LARGE_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS 20.0
#else
#define SECONDS 2.0
#endif

/* `n` copies of a pattern in which %d is the index, after a head; exactly `size` bytes
 * when size > 0, the rest blank lines. */
static inline char *repeated(const char *head, const char *pattern, int n, size_t size)
{
    size_t room = size ? size + 1 : strlen(head) + (size_t)n * (strlen(pattern) + 8) + 1;
    char *text = malloc(room);
    size_t used = strlen(head);
    memcpy(text, head, used + 1);
    for (int i = 0; i < n; i++) {
        char line[5000];
        size_t length = (size_t)snprintf(line, sizeof line, pattern, i, i, i);
        if (used + length >= room)
            break;
        memcpy(text + used, line, length + 1);
        used += length;
    }
    for (; size && used < size; used++)
        text[used] = '\n';
    text[used] = '\0';
    return text;
}

#endif /* TESTS_SUPPORT_LARGE_TEXT_H */
