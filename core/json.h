/* SPDX-License-Identifier: Apache-2.0
 *
 * Building JSON so that running out of memory shows: a list or object that lost an item
 * becomes NULL, stays so, and makes NULL of what it is put into.
 */
#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <jansson.h>

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

#endif /* CORE_JSON_H */
