/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a tokenizer, and what is asked of its tokens.
 */
#include "language/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/file.h"

#define FILE_BYTES (UINT64_C(128) << 20)

/* The number that tokenizer.bin begins with has a NUL behind any byte that is '{'. */
static bool is_json(const char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size && bytes[at] && strchr(" \t\r\n", bytes[at]))
        at++;
    return at < size && bytes[at] == '{' && (at + 1 == size || bytes[at + 1]);
}

int tokenizer_parse(struct tokenizer **out, const void *bytes, size_t size,
                    const char *name, strata_error *err)
{
    *out = NULL;
    struct tokenizer *t = zalloc(1, sizeof *t, "a tokenizer", err);
    if (!t)
        return STRATA_ENOMEM;
    t->begin = t->model.unknown = -1;
    int status = is_json(bytes, size) ? tokenizer_json_read(t, bytes, size, err)
                                      : llama2c_read(t, bytes, size, err);
    if (status != STRATA_OK) {
        error_prefix(err, "%s", name);
        tokenizer_free(t);
        return status;
    }
    *out = t;
    return STRATA_OK;
}

int tokenizer_open(struct tokenizer **out, const char *path, strata_error *err)
{
    struct file_bytes file;
    *out = NULL;
    int status = file_read(&file, path, FILE_BYTES, err);
    if (status != STRATA_OK)
        return status;
    status = tokenizer_parse(out, file.data, file.size, path, err);
    file_free(&file);
    return status;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    added_free(&t->raw);
    added_free(&t->normal);
    normaliser_free(&t->normaliser);
    splitter_free(&t->splitter);
    model_free(&t->model);
    decoder_free(&t->decoder);
    vocabulary_free(&t->added);
    vocabulary_free(&t->shown);
    free(t->flags);
    free(t);
}

int32_t tokenizer_size(const struct tokenizer *t)
{
    return (int32_t)t->size;
}

bool tokenizer_has(const struct tokenizer *t, int32_t id)
{
    size_t n;
    return tokenizer_spelling(t, id, &n) != NULL;
}

int32_t tokenizer_begin(const struct tokenizer *t)
{
    return t->begin;
}

bool tokenizer_ends(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->size && (t->flags[id] & TOKEN_ENDS);
}

int32_t tokenizer_find(const struct tokenizer *t, const char *text)
{
    const size_t n = strlen(text);
    const int32_t id = vocabulary_find(&t->added, text, n);
    return id >= 0 ? id : vocabulary_find(&t->model.words, text, n);
}
