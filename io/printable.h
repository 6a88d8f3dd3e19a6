/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from a file as a message may show it: bytes outside printable ASCII become '?',
 * long text is cut with "...", so that no file can write escapes to a terminal.
 */
#ifndef IO_PRINTABLE_H
#define IO_PRINTABLE_H

#include <stddef.h>

#define PRINTABLE_SIZE 96

/* Returns out. */
static inline const char *printable(char out[PRINTABLE_SIZE], const void *text,
                                    size_t length)
{
    const unsigned char *from = text;
    const size_t room = PRINTABLE_SIZE - 4;
    size_t n = length < room ? length : room;
    for (size_t i = 0; i < n; i++)
        out[i] = from[i] >= ' ' && from[i] <= '~' ? (char)from[i] : '?';
    for (size_t dots = 0; length > room && dots < 3; dots++)
        out[n++] = '.';
    out[n] = '\0';
    return out;
}

#endif /* IO_PRINTABLE_H */
