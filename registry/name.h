/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar of names that come from modules.
 */
#ifndef REGISTRY_NAME_H
#define REGISTRY_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Each tests the first n characters; false for n = 0. */
bool name_is_namespace(const char *text, size_t n); /* [a-z][a-z0-9_.-]* */
bool name_is_layer(const char *text, size_t n);     /* [A-Z][A-Za-z0-9]* */
bool name_is_key(const char *text, size_t n);       /* [a-z][a-z0-9_]* */
bool name_is_tag(const char *text, size_t n);       /* [A-Za-z0-9][A-Za-z0-9_.+~-]* */
/* "core::Convolution" */
bool name_is_qualified(const char *text, size_t n);

/* The items of a list: start with *rest = list; NULL when none is left. */
const char *name_next(const char **rest, char separator, size_t *length);
/* Whether a list separated by ',' holds the item. */
bool name_listed(const char *list, const char *item);

#endif /* REGISTRY_NAME_H */
