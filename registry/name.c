/* SPDX-License-Identifier: Apache-2.0
 *
 * Names as sets of characters: one for the first, one for the rest.
 */
#include "registry/name.h"

#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool matches(const char *text, size_t n, const char *first, const char *rest)
{
    if (n == 0 || !memchr(first, text[0], strlen(first)))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!memchr(rest, text[i], strlen(rest)))
            return false;
    return true;
}

bool name_is_namespace(const char *text, size_t n)
{
    return matches(text, n, LOWER, LOWER DIGIT "_.-");
}

bool name_is_layer(const char *text, size_t n)
{
    return matches(text, n, UPPER, UPPER LOWER DIGIT);
}

bool name_is_key(const char *text, size_t n)
{
    return matches(text, n, LOWER, LOWER DIGIT "_");
}

bool name_is_tag(const char *text, size_t n)
{
    return matches(text, n, UPPER LOWER DIGIT, UPPER LOWER DIGIT "_.+~-");
}

bool name_is_qualified(const char *text, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (text[i] == ':' && text[i + 1] == ':')
            return name_is_namespace(text, i) && name_is_layer(text + i + 2, n - i - 2);
    return false;
}

const char *name_next(const char **rest, char separator, size_t *length)
{
    const char *item = *rest;
    if (!item)
        return NULL;
    const char *end = strchr(item, separator);
    *length = end ? (size_t)(end - item) : strlen(item);
    *rest = end ? end + 1 : NULL;
    return item;
}

bool name_listed(const char *list, const char *item)
{
    size_t length;
    for (const char *at; (at = name_next(&list, ',', &length));)
        if (length == strlen(item) && !memcmp(at, item, length))
            return true;
    return false;
}
