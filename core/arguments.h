/* SPDX-License-Identifier: Apache-2.0
 *
 * What every public function asks of its arguments: pointers that are there, and structs
 * that say how large they are.
 */
#ifndef CORE_ARGUMENTS_H
#define CORE_ARGUMENTS_H

#include <stddef.h>
#include <string.h>

#include "core/status.h"

/* A pointer, by its name in the public header. */
struct argument {
    const char *name;
    const void *value;
};

/* Empties err; EINVAL names the function and the first of its arguments that is NULL:
 *     int status = ARGUMENTS(err, {"event", e}, {"stream", s});
 */
#define ARGUMENTS(err, ...)                                                              \
    arguments_check((err), __func__, (const struct argument[]){__VA_ARGS__, {NULL, NULL}})

static inline int arguments_check(strata_error *err, const char *function,
                                  const struct argument *list)
{
    error_clear(err);
    for (; list->name; list++)
        if (!list->value)
            return error_set(err, STRATA_EINVAL, "%s: %s is NULL", function, list->name);
    return STRATA_OK;
}

/* Public structs begin with struct_size, as large as the caller's header has them. What
 * an older caller does not have is 0 where we read, and left out where we write; what a
 * newer one has beyond ours is not read, and written as 0. */

/* Bytes of a struct up to a member, the last of its first version. */
#define SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define STRUCT_MOST 4096 /* bytes; above it struct_size was never set */

/* EINVAL for a size that cannot be a struct of the name, for what it may well hold that
 * nobody set. */
static inline int struct_check(size_t found, size_t least, const char *name,
                               strata_error *err)
{
    if (found >= least && found <= STRUCT_MOST)
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL,
                     "%s.struct_size is %zu, need %zu or more; set it to sizeof(%s)", name,
                     found, least, name);
}

/* A caller's struct of `size` bytes into ours of `known`. */
static inline void struct_take(void *to, size_t known, const void *from, size_t size)
{
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
}

/* Ours into the caller's, whose struct_size stays as it is. */
static inline void struct_give(void *to, const void *from, size_t known)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size,
           (size < known ? size : known) - sizeof size);
    if (size > known)
        memset((char *)to + known, 0, size - known);
}

#endif /* CORE_ARGUMENTS_H */
