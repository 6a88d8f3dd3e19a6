/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights files as a list of named tensors, whatever their format.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/stand_in.h"

#define SUGGEST_AMONG 16384 /* names; comparing with more would take seconds */

static int parse(struct weights *w, const void *bytes, size_t size,
                 const struct weight_limits *limits, strata_error *err)
{
    if (size > limits->file_bytes)
        return error_set(err, STRATA_EPARSE,
                         "file has %zu bytes, at most %" PRIu64 " are allowed", size,
                         limits->file_bytes);
    if (size >= NPY_MAGIC_SIZE && memcmp(bytes, NPY_MAGIC, NPY_MAGIC_SIZE) == 0)
        return npy_load(w, bytes, size, limits, err);
    return safetensors_parse(w, bytes, size, limits, err);
}

/* The size of `file` is 0 where the bytes stay the caller's; takes it over. */
static int open_bytes(struct weights **out, struct file_bytes file, const void *bytes,
                      size_t size, const char *path, const struct weight_limits *limits,
                      strata_error *err)
{
    *out = NULL;
    struct weights *w = zalloc(1, sizeof *w, path, err);
    if (!w) {
        file_free(&file);
        return STRATA_ENOMEM;
    }
    w->file = file;
    int status = parse(w, bytes, size, limits ? limits : &weight_default_limits, err);
    if (status != STRATA_OK) {
        error_prefix(err, "%s", path);
        stand_in_tell(bytes, size, err);
        weights_close(w);
        return status;
    }
    *out = w;
    return STRATA_OK;
}

int weights_open(struct weights **out, const char *path,
                 const struct weight_limits *limits, strata_error *err)
{
    struct file_bytes file;
    *out = NULL;
    uint64_t most = (limits ? limits : &weight_default_limits)->file_bytes;
    int status = file_read(&file, path, most, err);
    if (status != STRATA_OK)
        return status;
    return open_bytes(out, file, file.data, file.size, path, limits, err);
}

int weights_open_beneath(struct weights **out, const char *base, const char *name,
                         int anywhere, const struct weight_limits *limits,
                         strata_error *err)
{
    struct file_bytes file;
    char *path = NULL;
    *out = NULL;
    uint64_t most = (limits ? limits : &weight_default_limits)->file_bytes;
    int status = file_read_beneath(&file, &path, base, name, anywhere, most, err);
    if (status == STRATA_OK)
        status = open_bytes(out, file, file.data, file.size, path, limits, err);
    free(path);
    return status;
}

int weights_parse(struct weights **out, const void *bytes, size_t size, const char *path,
                  const struct weight_limits *limits, strata_error *err)
{
    return open_bytes(out, (struct file_bytes){0}, bytes, size, path, limits, err);
}

void weights_close(struct weights *w)
{
    if (!w)
        return;
    free(w->records);
    free(w->order);
    free(w->extra);
    file_free(&w->file);
    free(w);
}

size_t weights_count(const struct weights *w)
{
    return w->count;
}

static int not_found(const struct weights *w, const char *name, strata_error *err)
{
    if (!err) /* the hint takes time */
        return STRATA_ENOTFOUND;
    const char *near = NULL;
    size_t n = w->count < SUGGEST_AMONG ? w->count : SUGGEST_AMONG;
    const char **names = zalloc(n, sizeof *names, "names", NULL);
    for (size_t i = 0; names && i < n; i++)
        names[i] = w->names + w->records[i].name;
    if (names)
        near = suggest(name, names, n);
    error_set(err, STRATA_ENOTFOUND, "no tensor '%s' among the %zu of the file", name,
              w->count);
    if (near)
        error_append(err, "; did you mean '%s'?", near);
    free(names);
    return STRATA_ENOTFOUND;
}

int weights_find(const struct weights *w, const char *name, struct weight_view *out,
                 strata_error *err)
{
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, w->names + w->records[w->order[middle]].name);
        if (order == 0) {
            *out = weights_at(w, w->order[middle]);
            return STRATA_OK;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return not_found(w, name, err);
}
