/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights files as a list of named tensors, whatever their format.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "io/npy.h"

#define SUGGEST_AMONG 16384 /* names; comparing with more would take seconds */

const struct weight_limits weight_default_limits = {
    .file_bytes = UINT64_C(64) << 30,
    .header_bytes = 100000000,
    .tensors = 1048576,
    .dim = INT32_MAX,
    .elements = INT64_C(1) << 40,
    .name_bytes = 255,
};

static const struct {
    const char *name;
    size_t size;
} dtypes[WEIGHT_DTYPE_COUNT] = {
    [WEIGHT_F64] = {"F64", 8},   [WEIGHT_F32] = {"F32", 4}, [WEIGHT_F16] = {"F16", 2},
    [WEIGHT_BF16] = {"BF16", 2}, [WEIGHT_I64] = {"I64", 8}, [WEIGHT_I32] = {"I32", 4},
    [WEIGHT_I16] = {"I16", 2},   [WEIGHT_I8] = {"I8", 1},   [WEIGHT_U64] = {"U64", 8},
    [WEIGHT_U32] = {"U32", 4},   [WEIGHT_U16] = {"U16", 2}, [WEIGHT_U8] = {"U8", 1},
    [WEIGHT_BOOL] = {"BOOL", 1},
};

const char *weight_dtype_name(enum weight_dtype d)
{
    return (size_t)d < WEIGHT_DTYPE_COUNT ? dtypes[d].name : NULL;
}

size_t weight_dtype_size(enum weight_dtype d)
{
    return (size_t)d < WEIGHT_DTYPE_COUNT ? dtypes[d].size : 0;
}

int weight_count(int64_t *out, const int64_t *dims, int rank,
                 const struct weight_limits *limits, const char *what, strata_error *err)
{
    int64_t most = limits->dim < INT32_MAX ? limits->dim : INT32_MAX;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || dims[i] > most)
            return error_set(err, STRATA_EPARSE,
                             "%s: dim %d is %" PRId64 ", allowed are 0 to %" PRId64, what,
                             i, dims[i], most);
    int64_t count;
    if (!checked_product(dims, rank, &count) || count > limits->elements)
        return error_set(err, STRATA_EPARSE,
                         "%s: the product of its %d dims is more than the %" PRId64
                         " elements allowed",
                         what, rank, limits->elements);
    *out = count;
    return STRATA_OK;
}

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

struct weight_view weights_at(const struct weights *w, size_t i)
{
    const struct weight_record *r = &w->records[i];
    struct weight_view view = {
        .name = w->names + r->name,
        .dtype = (enum weight_dtype)r->dtype,
        .rank = r->rank,
        .data = w->data + r->offset,
        .bytes = weight_dtype_size((enum weight_dtype)r->dtype),
    };
    for (int d = 0; d < view.rank; d++) {
        view.dims[d] = r->dims[d];
        view.bytes *= r->dims[d]; /* checked against the file when it was read */
    }
    return view;
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
