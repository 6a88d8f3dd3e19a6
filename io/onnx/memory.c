/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of one model: blocks that are freed together, within a bound that its files'
 * sizes give.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/checked.h"

#define BLOCK (64 * 1024)            /* bytes of a block, at least */
#define ALLOWED (UINT64_C(64) << 20) /* bytes, whatever the file's size */
#define PER_BYTE 8                   /* bytes for each byte of a file */
#define MAX_FILES 4096               /* with values */

struct block {
    struct block *next;
    alignas(max_align_t) unsigned char data[];
};

struct kept_file {
    struct file_bytes bytes;
    char *name;
    struct stat state; /* before it was opened */
};

struct onnx_memory {
    struct block *blocks;
    size_t used, size; /* bytes of the first block */
    uint64_t total, allowed;
    struct kept_file *files;
    size_t n_files, files_capacity;
};

struct onnx_memory *onnx_memory_new(strata_error *err)
{
    struct onnx_memory *m = zalloc(1, sizeof *m, "an ONNX model", err);
    if (m)
        m->allowed = ALLOWED;
    return m;
}

void onnx_memory_free(struct onnx_memory *m)
{
    if (!m)
        return;
    for (struct block *b = m->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    for (size_t i = 0; i < m->n_files; i++) {
        file_unmap(&m->files[i].bytes);
        free(m->files[i].name);
    }
    free(m->files);
    free(m);
}

static struct block *new_block(struct onnx_memory *m, size_t bytes, strata_error *err)
{
    if (bytes > m->allowed - m->total) {
        error_set(err, STRATA_EPARSE,
                  "needs more memory than the %" PRIu64
                  " bytes that a file of its size may",
                  m->allowed);
        return NULL;
    }
    struct block *b = bytes <= SIZE_MAX - sizeof *b ? calloc(1, sizeof *b + bytes) : NULL;
    if (b)
        m->total += bytes;
    else
        error_no_memory(err, bytes, "an ONNX model");
    return b;
}

/* A large piece gets a block of its own behind the first, which stays in use. */
static void *allocate(struct onnx_memory *m, size_t size, size_t align, strata_error *err)
{
    const size_t begin = m->used + (align - m->used % align) % align;
    if (m->blocks && begin <= m->size && size <= m->size - begin) {
        m->used = begin + size;
        return m->blocks->data + begin;
    }
    const bool large = m->blocks && size > BLOCK / 4;
    struct block *b = new_block(m, large || size > BLOCK ? size : BLOCK, err);
    if (!b)
        return NULL;
    if (large) {
        b->next = m->blocks->next;
        m->blocks->next = b;
        return b->data;
    }
    b->next = m->blocks;
    m->blocks = b;
    m->size = size > BLOCK ? size : BLOCK;
    m->used = size;
    return b->data;
}

void *onnx_allocate(struct onnx_memory *m, size_t n, size_t size, strata_error *err)
{
    size_t bytes;
    if (!checked_size_mul(n, size, &bytes)) {
        error_no_memory(err, 0, "an ONNX model");
        return NULL;
    }
    return allocate(m, bytes, alignof(max_align_t), err);
}

char *onnx_copy_text(struct onnx_memory *m, const void *text, size_t size,
                     strata_error *err)
{
    char *copy = size < SIZE_MAX ? allocate(m, size + 1, 1, err) : NULL;
    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

void onnx_allow(struct onnx_memory *m, size_t file_bytes)
{
    uint64_t more;
    if (__builtin_mul_overflow((uint64_t)file_bytes, PER_BYTE, &more) ||
        __builtin_add_overflow(m->allowed, more, &m->allowed))
        m->allowed = UINT64_MAX;
}

int onnx_keep_file(struct onnx_memory *m, const struct file_bytes *f, const char *name,
                   const struct stat *state, strata_error *err)
{
    if (m->n_files >= MAX_FILES)
        return error_set(err, STRATA_EPARSE,
                         "values in more files than the %d that are allowed", MAX_FILES);
    int status = grow(&m->files, &m->files_capacity, m->n_files, sizeof *m->files, err);
    if (status != STRATA_OK)
        return status;
    char *copy = duplicate(name, err);
    if (!copy)
        return STRATA_ENOMEM;
    m->files[m->n_files++] = (struct kept_file){*f, copy, *state};
    onnx_allow(m, f->size);
    return STRATA_OK;
}

const struct file_bytes *onnx_kept_file(const struct onnx_memory *m, const char *name)
{
    for (size_t i = m->n_files; i-- > 0;)
        if (strcmp(m->files[i].name, name) == 0)
            return &m->files[i].bytes;
    return NULL;
}

const char *onnx_file_beside(const struct onnx_model *m, size_t i, struct stat *state)
{
    const struct onnx_memory *memory = m->memory;
    for (size_t k = 0; k < memory->n_files; k++)
        if (*memory->files[k].name && i-- == 0) { /* "" is the model itself */
            *state = memory->files[k].state;
            return memory->files[k].name;
        }
    return NULL;
}
