/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a model or a tensor, and closing it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/linked.h"
#include "io/stand_in.h"

const struct onnx_limits onnx_default_limits = {
    .file_bytes = UINT64_C(2) << 30,
    .external_bytes = UINT64_C(1) << 40,
    .depth = 32,
    .nodes = 65536,
    .ports = 1024,
    .name_bytes = 4096,
};

static int read_model(struct onnx_reader *r, struct onnx_model *m, const void *bytes,
                      size_t size)
{
    struct raw_model raw = {0};
    struct onnx_model read = {0};
    int status = onnx_decode(r, &onnx_model_message, bytes, size, &raw, &read);
    read.path = m->path;
    read.memory = m->memory;
    *m = read;
    return status;
}

static int read_tensor(struct onnx_reader *r, struct onnx_model *m, const void *bytes,
                       size_t size)
{
    struct raw_tensor raw = {0};
    struct onnx_tensor *t = onnx_allocate(r->memory, 1, sizeof *t, r->err);
    if (!t)
        return STRATA_ENOMEM;
    m->producer = m->producer_version = m->graph.name = "";
    m->graph.initializers = t;
    m->graph.n_initializers = 1;
    return onnx_decode(r, &onnx_tensor_message, bytes, size, &raw, t);
}

typedef int read_fn(struct onnx_reader *r, struct onnx_model *m, const void *bytes,
                    size_t size);

/* The memory is the model's, or freed. folder, linked: see struct onnx_reader. */
static int make(struct onnx_model **out, struct onnx_memory *memory, read_fn *read,
                const struct file_bytes *f, const char *path, const char *folder,
                const char *linked, const struct onnx_limits *limits, strata_error *err)
{
    struct onnx_reader r = {.file = f->data,
                            .folder = folder,
                            .linked = linked,
                            .limits = limits,
                            .memory = memory,
                            .err = err};
    struct onnx_model *m = onnx_allocate(memory, 1, sizeof *m, err);
    if (!m || !(m->path = onnx_copy_text(memory, path, strlen(path), err)))
        return STRATA_ENOMEM;
    m->memory = memory;
    if (f->size == 0)
        return error_set(err, STRATA_EPARSE, "the file is empty");
    int status = read(&r, m, f->data, f->size);
    if (status == STRATA_OK)
        *out = m;
    return status;
}

/* The first failure's status, and its message behind the path. */
static int report(const strata_error *found, const char *path, strata_error *err)
{
    const size_t n = strlen(path);
    if (found->status == STRATA_OK)
        return STRATA_OK;
    return strncmp(found->message, path, n) == 0 && found->message[n] == ':'
               ? error_set(err, found->status, "%s", found->message)
               : error_set(err, found->status, "%s: %s", path, found->message);
}

static int open_file(const struct onnx_model **out, const char *path, read_fn *read,
                     const struct onnx_limits *limits, strata_error *err)
{
    strata_error e = {0};
    struct file_bytes file = {0};
    struct onnx_model *m = NULL;
    const struct onnx_limits *l = limits ? limits : &onnx_default_limits;
    char *folder = file_folder(path, &e), *linked = NULL;
    struct onnx_memory *memory = NULL;
    *out = NULL;
    if (!folder || linked_folder(&linked, path, &e) != STRATA_OK ||
        !(memory = onnx_memory_new(&e)) ||
        file_map(&file, path, l->file_bytes, &e) != STRATA_OK)
        goto done;
    if (onnx_keep_file(memory, &file, "", &(struct stat){0}, &e) != STRATA_OK)
        file_unmap(&file);
    else if (make(&m, memory, read, &file, path, folder, linked, l, &e) == STRATA_EPARSE)
        stand_in_tell(file.data, file.size, &e);
done:
    if (!m)
        onnx_memory_free(memory);
    free(folder);
    free(linked);
    *out = m;
    return report(&e, path, err);
}

int onnx_open(const struct onnx_model **out, const char *path,
              const struct onnx_limits *limits, strata_error *err)
{
    return open_file(out, path, read_model, limits, err);
}

int onnx_open_tensor(const struct onnx_model **out, const char *path,
                     const struct onnx_limits *limits, strata_error *err)
{
    return open_file(out, path, read_tensor, limits, err);
}

int onnx_parse(const struct onnx_model **out, const void *bytes, size_t size,
               const char *path, const struct onnx_limits *limits, strata_error *err)
{
    strata_error e = {0};
    const struct onnx_limits *l = limits ? limits : &onnx_default_limits;
    const struct file_bytes file = {(void *)(uintptr_t)bytes, size};
    struct onnx_model *m = NULL;
    struct onnx_memory *memory = onnx_memory_new(&e);
    if (memory && size > l->file_bytes)
        error_set(&e, STRATA_EPARSE, "file has %zu bytes, at most %ju are allowed", size,
                  (uintmax_t)l->file_bytes);
    else if (memory) {
        onnx_allow(memory, size);
        make(&m, memory, read_model, &file, path, NULL, NULL, l, &e);
    }
    if (!m)
        onnx_memory_free(memory);
    *out = m;
    return report(&e, path, err);
}

void onnx_close(const struct onnx_model *m)
{
    if (m)
        onnx_memory_free(m->memory);
}

const struct onnx_attribute *onnx_attribute(const struct onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->n_attributes; i++)
        if (strcmp(n->attributes[i].name, name) == 0)
            return &n->attributes[i];
    return NULL;
}
