/* SPDX-License-Identifier: Apache-2.0
 *
 * Building JSON so that running out of memory shows: a list or object that lost an item
 * becomes NULL, stays so, and makes NULL of what it is put into.
 */
#ifndef IO_JSON_H
#define IO_JSON_H

#include <jansson.h>
#include <stdlib.h>

/* Takes both references; list = json_add(list, item). */
static inline json_t *json_add(json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* The same of an object. */
static inline json_t *json_put(json_t *object, const char *key, json_t *item)
{
    if (json_object_set_new(object, key, item) == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* Text with sorted keys, to be freed, not terminated; NULL: no memory. Not json_dumps:
 * without memory its text may lack pieces. */
static inline char *json_text(const json_t *j, size_t *size)
{
    const size_t flags = JSON_INDENT(1) | JSON_SORT_KEYS;
    *size = j ? json_dumpb(j, NULL, 0, flags) : 0;
    char *text = *size ? malloc(*size) : NULL;
    if (text && json_dumpb(j, text, *size, flags) == *size)
        return text;
    free(text);
    return NULL;
}

#endif /* IO_JSON_H */
