/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: u64 length of the header, a JSON object, the elements.
 *
 * The object's members are read one at a time, each value by jansson from a window of
 * bounded size, so that a header of 100 MB never becomes a tree of gigabytes. Names are
 * decoded in place. When all are read, two sorts show that the tensors cover the data
 * exactly and that no name comes twice.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights/private.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "io/printable.h"

#define PREFIX_SIZE 8             /* bytes of the length before the header */
#define ENTRY_WINDOW (64 * 1024)  /* JSON text of one name or one tensor */
#define METADATA_WINDOW (2 << 20) /* JSON text of __metadata__ */
#define WHAT_SIZE 300             /* "tensor 'NAME'" */

struct reader {
    char *text; /* the header; names already read are decoded */
    size_t size, at;
    size_t data_size;
    const struct weight_limits *limits;
    struct weights *w;
    size_t capacity; /* of w->records */
    bool metadata;   /* __metadata__ has been read */
    strata_error *err;
};

/* Types of the format that the library cannot compute with. */
static const char *const other_dtypes[] = {
    "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4", "C64",
};

#define FAIL(r, ...) error_set((r)->err, STRATA_EPARSE, __VA_ARGS__)

static void skip_space(struct reader *r)
{
    while (r->at < r->size && r->text[r->at] != '\0' && strchr(" \t\r\n", r->text[r->at]))
        r->at++;
}

/* Whether the next character is c, which is then consumed. */
static bool consume(struct reader *r, char c)
{
    skip_space(r);
    if (r->at >= r->size || r->text[r->at] != c)
        return false;
    r->at++;
    return true;
}

static int unexpected(const struct reader *r, const char *needed)
{
    char shown[PRINTABLE_SIZE];
    if (r->at >= r->size)
        return FAIL(r, "byte %zu: the header ends where %s is needed",
                    PREFIX_SIZE + r->at, needed);
    return FAIL(r, "byte %zu: found '%s' where %s is needed", PREFIX_SIZE + r->at,
                printable(shown, r->text + r->at, 1), needed);
}

/* The JSON value at the reader's place, of at most `window` bytes. */
static int next_value(json_t **out, struct reader *r, size_t window, const char *what)
{
    char shown[PRINTABLE_SIZE];
    json_error_t e;
    size_t left = r->size - r->at;
    *out =
        json_loadb(r->text + r->at, left < window ? left : window,
                   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &e);
    if (*out) {
        r->at += (size_t)e.position;
        return STRATA_OK;
    }
    enum json_error_code code = json_error_code(&e);
    size_t place = PREFIX_SIZE + r->at + (size_t)(e.position > 0 ? e.position : 0);
    /* jansson leaves the text empty where its own allocations fail. */
    if (code == json_error_out_of_memory || e.text[0] == '\0')
        return error_no_memory(r->err, window, what);
    if (left > window && code == json_error_premature_end_of_input)
        return FAIL(r, "byte %zu: %s is longer than the %zu bytes allowed",
                    PREFIX_SIZE + r->at, what, window);
    return FAIL(r, "byte %zu: %s is not valid JSON: %s", place, what,
                printable(shown, e.text, strlen(e.text)));
}

static bool has_control(const char *name, size_t n)
{
    const unsigned char *c = (const unsigned char *)name;
    for (size_t i = 0; i < n; i++)
        if (c[i] < ' ' || c[i] == 0x7f ||
            (c[i] == 0xc2 && i + 1 < n && c[i + 1] >= 0x80 && c[i + 1] < 0xa0))
            return true;
    return false;
}

/* Read a member's name and the colon; *offset is where it lies, decoded, in the header.
 * The decoded name and its NUL are never longer than the text with its quotes. */
static int next_name(struct reader *r, uint32_t *offset)
{
    char shown[PRINTABLE_SIZE];
    skip_space(r);
    size_t start = r->at;
    if (start >= r->size || r->text[start] != '"')
        return unexpected(r, "a name in quotes");
    json_t *name;
    int status = next_value(&name, r, ENTRY_WINDOW, "a name");
    if (status != STRATA_OK)
        return status;
    const char *text = json_string_value(name);
    size_t n = json_string_length(name);
    printable(shown, text, n);
    if (n == 0)
        status =
            FAIL(r, "byte %zu: a tensor with an empty name; names have 1 to %zu bytes",
                 PREFIX_SIZE + start, r->limits->name_bytes);
    else if (n > r->limits->name_bytes)
        status = FAIL(r, "byte %zu: name '%s' has %zu bytes, at most %zu are allowed",
                      PREFIX_SIZE + start, shown, n, r->limits->name_bytes);
    else if (has_control(text, n))
        status = FAIL(r, "byte %zu: name '%s' holds a control character; rename it",
                      PREFIX_SIZE + start, shown);
    else
        memcpy(r->text + start, text, n + 1);
    json_decref(name);
    if (status == STRATA_OK && !consume(r, ':'))
        status = unexpected(r, "':' after a name");
    *offset = (uint32_t)start;
    return status;
}

static int read_metadata(struct reader *r)
{
    const char *key;
    json_t *object, *value;
    if (r->metadata)
        return FAIL(r, "byte %zu: __metadata__ comes twice", PREFIX_SIZE + r->at);
    r->metadata = true;
    int status = next_value(&object, r, METADATA_WINDOW, "__metadata__");
    if (status != STRATA_OK)
        return status;
    if (!json_is_object(object))
        status = FAIL(r, "byte %zu: __metadata__ must be an object of strings",
                      PREFIX_SIZE + r->at);
    json_object_foreach(object, key, value)
    {
        char shown[PRINTABLE_SIZE];
        if (status == STRATA_OK && !json_is_string(value))
            status = FAIL(r,
                          "byte %zu: __metadata__ '%s' is not a string; only strings "
                          "are allowed",
                          PREFIX_SIZE + r->at, printable(shown, key, strlen(key)));
    }
    json_decref(object);
    return status;
}

static int read_dtype(struct reader *r, const json_t *value, const char *what,
                      uint8_t *out)
{
    char shown[PRINTABLE_SIZE];
    if (!json_is_string(value))
        return FAIL(r, "%s: dtype is %s; a string such as \"F32\" is needed", what,
                    value ? "not a string" : "missing");
    const char *text = json_string_value(value);
    for (int d = 0; d < WEIGHT_DTYPE_COUNT; d++)
        if (strcmp(text, weight_dtype_name((enum weight_dtype)d)) == 0) {
            *out = (uint8_t)d;
            return STRATA_OK;
        }
    int code = STRATA_EPARSE;
    for (size_t i = 0; i < ARRAY_LENGTH(other_dtypes); i++)
        if (strcmp(text, other_dtypes[i]) == 0)
            code = STRATA_EUNSUPPORTED;
    error_set(r->err, code, "%s: dtype '%s' is %s; supported are", what,
              printable(shown, text, json_string_length(value)),
              code == STRATA_EPARSE ? "unknown" : "not supported");
    for (int d = 0; d < WEIGHT_DTYPE_COUNT; d++)
        error_append(r->err, "%s %s", d ? "," : "",
                     weight_dtype_name((enum weight_dtype)d));
    return code;
}

/* Integers not below 0 from an array of at most `max` of them. */
static int read_integers(struct reader *r, const json_t *value, const char *what,
                         const char *key, int64_t *out, size_t max, size_t *n)
{
    if (!json_is_array(value))
        return FAIL(r, "%s: %s is %s; an array of integers is needed", what, key,
                    value ? "not an array" : "missing");
    *n = json_array_size(value);
    if (*n > max)
        return FAIL(r, "%s: %s has %zu entries, at most %zu are allowed", what, key, *n,
                    max);
    for (size_t i = 0; i < *n; i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_integer(item))
            return FAIL(r, "%s: %s[%zu] is not an integer", what, key, i);
        out[i] = json_integer_value(item);
        if (out[i] < 0)
            return FAIL(r, "%s: %s[%zu] is %" PRId64 "; it must not be negative", what,
                        key, i, out[i]);
    }
    return STRATA_OK;
}

static int check_keys(struct reader *r, json_t *object, const char *what)
{
    static const char *const known[] = {"dtype", "shape", "data_offsets"};
    const char *key;
    json_t *value;
    char shown[PRINTABLE_SIZE];
    json_object_foreach(object, key, value)
    {
        bool found = false;
        for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
            found = found || strcmp(key, known[i]) == 0;
        if (!found)
            return FAIL(r, "%s: unknown key '%s'; allowed are dtype, shape, data_offsets",
                        what, printable(shown, key, strlen(key)));
    }
    return STRATA_OK;
}

static int check_offsets(struct reader *r, const struct weight_record *record,
                         const int64_t *dims, const int64_t *offsets, size_t n,
                         const char *what)
{
    int64_t count, bytes;
    enum weight_dtype dtype = (enum weight_dtype)record->dtype;
    if (n != 2)
        return FAIL(r, "%s: data_offsets has %zu entries, 2 are needed", what, n);
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > r->data_size)
        return FAIL(r,
                    "%s: data_offsets [%" PRId64 ", %" PRId64 "] %s, which has %zu "
                    "bytes after the header",
                    what, offsets[0], offsets[1],
                    offsets[0] > offsets[1] ? "run backwards in the data"
                                            : "lead out of the data",
                    r->data_size);
    int status = weight_count(&count, dims, record->rank, r->limits, what, r->err);
    if (status != STRATA_OK)
        return status;
    if (!checked_mul(count, (int64_t)weight_dtype_size(dtype), &bytes) ||
        bytes != offsets[1] - offsets[0])
        return FAIL(r,
                    "%s: data_offsets span %" PRId64 " bytes, but %" PRId64
                    " elements of %s need %zu bytes each",
                    what, offsets[1] - offsets[0], count, weight_dtype_name(dtype),
                    weight_dtype_size(dtype));
    return STRATA_OK;
}

static int read_record(struct reader *r, json_t *object, const char *what,
                       struct weight_record *record)
{
    int64_t dims[STRATA_MAX_RANK], offsets[2];
    size_t rank, n;
    if (!json_is_object(object))
        return FAIL(r, "%s: is not an object with dtype, shape, data_offsets", what);
    int status = check_keys(r, object, what);
    if (status == STRATA_OK)
        status = read_dtype(r, json_object_get(object, "dtype"), what, &record->dtype);
    if (status == STRATA_OK)
        status = read_integers(r, json_object_get(object, "shape"), what, "shape", dims,
                               STRATA_MAX_RANK, &rank);
    if (status == STRATA_OK)
        status = read_integers(r, json_object_get(object, "data_offsets"), what,
                               "data_offsets", offsets, 2, &n);
    if (status != STRATA_OK)
        return status;
    record->rank = (uint8_t)rank;
    status = check_offsets(r, record, dims, offsets, n, what);
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < rank; i++)
        record->dims[i] = (uint32_t)dims[i];
    record->offset = (uint64_t)offsets[0];
    return STRATA_OK;
}

static int read_tensor(struct reader *r, uint32_t name)
{
    char what[WHAT_SIZE];
    struct weights *w = r->w;
    snprintf(what, sizeof what, "tensor '%s'", r->text + name);
    if (w->count >= r->limits->tensors || w->count >= r->capacity)
        return FAIL(r, "byte %zu: more than the %" PRIu64 " tensors allowed",
                    PREFIX_SIZE + r->at, r->limits->tensors);
    json_t *object;
    int status = next_value(&object, r, ENTRY_WINDOW, what);
    if (status != STRATA_OK)
        return status;
    struct weight_record record = {.name = name};
    status = read_record(r, object, what, &record);
    json_decref(object);
    if (status == STRATA_OK)
        w->records[w->count++] = record;
    return status;
}

static int read_members(struct reader *r)
{
    uint32_t name = 0;
    int status = STRATA_OK;
    if (!consume(r, '{'))
        return unexpected(r, "'{'");
    for (bool first = true; status == STRATA_OK && !consume(r, '}'); first = false) {
        if (!first && !consume(r, ','))
            return unexpected(r, "',' or '}'");
        status = next_name(r, &name);
        if (status != STRATA_OK)
            return status;
        status = strcmp(r->text + name, "__metadata__") == 0 ? read_metadata(r)
                                                             : read_tensor(r, name);
    }
    while (status == STRATA_OK && r->at < r->size)
        if (r->text[r->at++] != ' ')
            return FAIL(r, "byte %zu: only spaces may follow the header's object",
                        PREFIX_SIZE + r->at - 1);
    return status;
}

static int by_offset(const void *a, const void *b, void *user)
{
    const struct weights *w = user;
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    uint64_t x = w->records[i].offset, y = w->records[j].offset;
    if (x == y) { /* empty tensors first */
        x = weights_at(w, i).bytes;
        y = weights_at(w, j).bytes;
    }
    return x < y ? -1 : x > y;
}

static int by_name(const void *a, const void *b, void *user)
{
    const struct weights *w = user;
    return strcmp(w->names + w->records[*(const uint32_t *)a].name,
                  w->names + w->records[*(const uint32_t *)b].name);
}

static int check_cover(struct reader *r)
{
    const struct weights *w = r->w;
    const char *before = NULL;
    uint64_t end = 0;
    for (size_t i = 0; i < w->count; i++) {
        struct weight_view v = weights_at(w, w->order[i]);
        uint64_t begin = w->records[w->order[i]].offset;
        if (begin < end)
            return FAIL(r,
                        "tensor '%s': begins at byte %" PRIu64 " of the data, inside "
                        "tensor '%s', which ends at %" PRIu64
                        "; tensors must not overlap",
                        v.name, begin, before, end);
        if (begin > end)
            return FAIL(r,
                        "tensor '%s': bytes %" PRIu64 " to %" PRIu64 " of the data, "
                        "before it, belong to no tensor; holes are not allowed",
                        v.name, end, begin);
        end = begin + v.bytes;
        before = v.name;
    }
    if (end != r->data_size)
        return FAIL(r,
                    "%" PRIu64 " bytes after the last tensor belong to none; the file "
                    "must end at byte %" PRIu64,
                    r->data_size - end, PREFIX_SIZE + r->size + end);
    return STRATA_OK;
}

static int check_names(struct reader *r)
{
    const struct weights *w = r->w;
    for (size_t i = 1; i < w->count; i++)
        if (by_name(&w->order[i - 1], &w->order[i], r->w) == 0)
            return FAIL(r, "tensor '%s': the name comes twice; names must be unique",
                        w->names + w->records[w->order[i]].name);
    return STRATA_OK;
}

/* Room for as many tensors as the header can hold: each has a '{' of its own. */
static int make_records(struct reader *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->size; i++)
        n += r->text[i] == '{';
    r->capacity = n < r->limits->tensors ? n : (size_t)r->limits->tensors;
    r->w->records = zalloc(r->capacity, sizeof *r->w->records, "tensor records", r->err);
    return r->w->records ? STRATA_OK : STRATA_ENOMEM;
}

static int read_header(struct reader *r)
{
    struct weights *w = r->w;
    int status = make_records(r);
    if (status == STRATA_OK)
        status = read_members(r);
    if (status != STRATA_OK)
        return status;
    w->order = zalloc(w->count, sizeof *w->order, "order of tensors", r->err);
    if (!w->order)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < w->count; i++)
        w->order[i] = (uint32_t)i;
    qsort_r(w->order, w->count, sizeof *w->order, by_offset, w);
    status = check_cover(r);
    if (status != STRATA_OK)
        return status;
    qsort_r(w->order, w->count, sizeof *w->order, by_name, w);
    return check_names(r);
}

/* Length of the header, checked; the caller's view of the first PREFIX_SIZE bytes. */
static int header_length(uint64_t *out, const unsigned char *bytes, size_t size,
                         const struct weight_limits *limits, strata_error *err)
{
    uint64_t n = 0;
    uint64_t most = limits->header_bytes < UINT32_MAX ? limits->header_bytes : UINT32_MAX;
    if (size <= PREFIX_SIZE)
        return error_set(err, STRATA_EPARSE,
                         "file has %zu bytes; neither .npy nor safetensors, which has at "
                         "least 10",
                         size);
    if (bytes[PREFIX_SIZE] != '{')
        return error_set(err, STRATA_EPARSE,
                         "byte 8 is 0x%02x, not '{', and the file does not start with "
                         "\"\\x93NUMPY\"; neither safetensors nor .npy",
                         bytes[PREFIX_SIZE]);
    for (int i = PREFIX_SIZE - 1; i >= 0; i--)
        n = n << 8 | bytes[i];
    if (n > most)
        return error_set(err, STRATA_EPARSE,
                         "byte 0: header of %" PRIu64 " bytes, at most %" PRIu64
                         " are allowed",
                         n, most);
    if (n > size - PREFIX_SIZE)
        return error_set(err, STRATA_EPARSE,
                         "byte 0: header of %" PRIu64 " bytes, but only %zu follow; the "
                         "file is cut short",
                         n, size - PREFIX_SIZE);
    *out = n;
    return STRATA_OK;
}

int safetensors_parse(struct weights *w, const void *bytes, size_t size,
                      const struct weight_limits *limits, strata_error *err)
{
    uint64_t length = 0;
    int status = header_length(&length, bytes, size, limits, err);
    if (status != STRATA_OK)
        return status;
    struct reader r = {.size = (size_t)length, .limits = limits, .w = w, .err = err};
    if (w->file.data == bytes) {
        r.text = (char *)w->file.data + PREFIX_SIZE;
    } else {
        r.text = w->extra = zalloc(r.size, 1, "safetensors header", err);
        if (!r.text)
            return STRATA_ENOMEM;
        memcpy(r.text, (const char *)bytes + PREFIX_SIZE, r.size);
    }
    w->names = r.text;
    w->data = (const char *)bytes + PREFIX_SIZE + r.size;
    r.data_size = size - PREFIX_SIZE - r.size;
    return read_header(&r);
}
