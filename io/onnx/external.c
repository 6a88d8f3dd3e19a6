/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in a file beside the model. Its name is the model's word, so it may lead to a
 * regular file with one link below the model's folder, and nowhere else; but where the
 * model is a symbolic link itself, also by one to the folder where that leads.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "io/linked.h"
#include "io/printable.h"

#define FAIL(r, ...) error_set((r)->err, STRATA_EPARSE, __VA_ARGS__)

enum { LOCATION, OFFSET, LENGTH, KEYS };
static const char *const keys[KEYS] = {"location", "offset", "length"};

/* Other keys (checksum, what a runtime keeps for itself) are ignored. */
static int find_keys(struct onnx_reader *r, const struct raw_tensor *raw,
                     const char *out[KEYS])
{
    for (size_t i = 0; i < raw->n_external; i++)
        for (int k = 0; k < KEYS; k++) {
            if (strcmp(raw->external[i].key, keys[k]) != 0)
                continue;
            if (out[k])
                return FAIL(r, "external data: %s comes twice", keys[k]);
            out[k] = raw->external[i].value;
        }
    if (!out[LOCATION] || !out[LOCATION][0])
        return FAIL(r, "external data: no location");
    return STRATA_OK;
}

static int read_number(struct onnx_reader *r, const char *key, const char *text,
                       uint64_t *out)
{
    char shown[PRINTABLE_SIZE];
    const size_t digits = strspn(text, "0123456789");
    *out = 0;
    for (size_t i = 0; i < digits; i++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(text[i] - '0'), out))
            return FAIL(r, "external data: %s is over 64 bits", key);
    if (digits == 0 || text[digits])
        return FAIL(r, "external data: %s is '%s'; a number of bytes is needed", key,
                    printable(shown, text, strlen(text)));
    return STRATA_OK;
}

/* A link beside a model that is none stays what it is: refused. */
static int map_file(struct file_bytes *out, struct onnx_reader *r, const char *location)
{
    const uint64_t limit = r->limits->external_bytes;
    strata_error why = {0};
    bool is = false;
    int status = file_map_beneath(out, r->folder, location, limit, &why);
    if (status == STRATA_EINVAL && r->linked &&
        linked_name(&is, r->folder, location, r->err) != STRATA_OK)
        return STRATA_ENOMEM;
    if (is)
        return linked_map(out, r->folder, location, r->linked, limit, r->err);
    return status == STRATA_OK ? STRATA_OK : error_set(r->err, status, "%s", why.message);
}

/* What stat says while it can still be what will be opened. */
static void look_at(struct stat *state, const struct onnx_reader *r, const char *location)
{
    char *path = text_print("%s/%s", r->folder, location);
    if (!path || stat(path, state) != 0)
        *state = (struct stat){0};
    free(path);
}

static int open_file(struct onnx_reader *r, const char *location,
                     const struct file_bytes **out)
{
    struct file_bytes file;
    struct stat state;
    if ((*out = onnx_kept_file(r->memory, location)))
        return STRATA_OK;
    look_at(&state, r, location);
    int status = map_file(&file, r, location);
    if (status != STRATA_OK) {
        error_prefix(r->err, "external data");
        return status;
    }
    status = onnx_keep_file(r->memory, &file, location, &state, r->err);
    if (status != STRATA_OK)
        file_unmap(&file);
    else
        *out = onnx_kept_file(r->memory, location);
    return status;
}

static int check_place(struct onnx_reader *r, const struct onnx_tensor *t, size_t size,
                       uint64_t offset, uint64_t length)
{
    char shown[PRINTABLE_SIZE];
    if (length != t->bytes)
        return FAIL(r,
                    "external data: length %" PRIu64 "; %" PRId64
                    " elements of type %s need %zu bytes",
                    length, t->count, onnx_type_name(t->type), t->bytes);
    if (offset > size || length > size - offset)
        return FAIL(r,
                    "external data: bytes %" PRIu64 " to %" PRIu64 "+%" PRIu64
                    " lead out of '%s', which has %zu bytes",
                    offset, offset, length,
                    printable(shown, t->location, strlen(t->location)), size);
    return STRATA_OK;
}

int onnx_external(struct onnx_reader *r, const struct raw_tensor *raw,
                  struct onnx_tensor *t, struct onnx_bytes *out)
{
    const char *found[KEYS] = {0};
    const struct file_bytes *file = NULL;
    uint64_t offset = 0, length = t->bytes;
    if (!r->folder)
        return FAIL(r, "external data: a model in memory has no folder for them");
    int status = find_keys(r, raw, found);
    if (status == STRATA_OK && found[OFFSET])
        status = read_number(r, keys[OFFSET], found[OFFSET], &offset);
    if (status == STRATA_OK && found[LENGTH])
        status = read_number(r, keys[LENGTH], found[LENGTH], &length);
    if (status == STRATA_OK) {
        t->location = found[LOCATION];
        status = open_file(r, t->location, &file);
    }
    if (status == STRATA_OK)
        status = check_place(r, t, file->size, offset, length);
    if (status != STRATA_OK)
        return status;
    *out = (struct onnx_bytes){(const uint8_t *)file->data + offset, (size_t)length};
    return STRATA_OK;
}
