/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of tensors: from raw_data, from the typed field of their type, or from another
 * file, to dense elements.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#include <inttypes.h>
#include <string.h>

#include "core/checked.h"
#include "io/printable.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "elements of files are used as they lie");

#define MAX_ELEMENTS (INT64_C(1) << 40) /* elements */
#define FAIL(r, ...) error_set((r)->err, STRATA_EPARSE, __VA_ARGS__)

/* The typed field of a type. Values of fewer than 32 bits are a number each in
 * int32_data; of fewer than 8, a byte of them each. */
static const struct {
    enum tensor_row row;
    int64_t least, most; /* of INT32S and UINT64S */
} typed[ONNX_TYPE_COUNT] = {
    [ONNX_FLOAT] = {TENSOR_FLOATS, 0, 0},
    [ONNX_UINT8] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_INT8] = {TENSOR_INT32S, INT8_MIN, INT8_MAX},
    [ONNX_UINT16] = {TENSOR_INT32S, 0, UINT16_MAX},
    [ONNX_INT16] = {TENSOR_INT32S, INT16_MIN, INT16_MAX},
    [ONNX_INT32] = {TENSOR_INT32S, INT32_MIN, INT32_MAX},
    [ONNX_INT64] = {TENSOR_INT64S, 0, 0},
    [ONNX_STRING] = {TENSOR_TEXTS, 0, 0},
    [ONNX_BOOL] = {TENSOR_INT32S, 0, 1},
    [ONNX_FLOAT16] = {TENSOR_INT32S, 0, UINT16_MAX},
    [ONNX_DOUBLE] = {TENSOR_DOUBLES, 0, 0},
    [ONNX_UINT32] = {TENSOR_UINT64S, 0, UINT32_MAX},
    [ONNX_UINT64] = {TENSOR_UINT64S, 0, 0},
    [ONNX_COMPLEX64] = {TENSOR_FLOATS, 0, 0},
    [ONNX_COMPLEX128] = {TENSOR_DOUBLES, 0, 0},
    [ONNX_BFLOAT16] = {TENSOR_INT32S, 0, UINT16_MAX},
    [ONNX_FLOAT8E4M3FN] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_FLOAT8E4M3FNUZ] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_FLOAT8E5M2] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_FLOAT8E5M2FNUZ] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_UINT4] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_INT4] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_FLOAT4E2M1] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_FLOAT8E8M0] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_UINT2] = {TENSOR_INT32S, 0, UINT8_MAX},
    [ONNX_INT2] = {TENSOR_INT32S, 0, UINT8_MAX},
};

enum { EXTERNAL = 1 }; /* TensorProto.DataLocation */

static bool is_complex(enum onnx_type type)
{
    return type == ONNX_COMPLEX64 || type == ONNX_COMPLEX128;
}

/* ---- shape --------------------------------------------------------------------------
 */

static int finish_shape(struct onnx_reader *r, const struct raw_tensor *raw,
                        struct onnx_tensor *t)
{
    if (raw->type <= ONNX_UNDEFINED || raw->type >= ONNX_TYPE_COUNT)
        return FAIL(r, "has data type %" PRId64 ", of 1 to %d", raw->type,
                    ONNX_TYPE_COUNT - 1);
    t->type = (enum onnx_type)raw->type;
    if (raw->n_dims > ARRAY_LENGTH(t->dims))
        return FAIL(r, "has %zu dims, at most %zu are allowed", raw->n_dims,
                    ARRAY_LENGTH(t->dims));
    t->rank = (int)raw->n_dims;
    for (int i = 0; i < t->rank; i++) {
        t->dims[i] = raw->dims[i];
        if (t->dims[i] < 0 || t->dims[i] > INT32_MAX)
            return FAIL(r, "dim %d is %" PRId64 ", of 0 to %d", i, t->dims[i], INT32_MAX);
    }
    if (!checked_product(t->dims, t->rank, &t->count) || t->count >= MAX_ELEMENTS)
        return FAIL(r, "has 2^40 elements or more");
    const int bits = onnx_type_bits(t->type);
    t->bytes = (size_t)(bits < 8 ? (t->count * bits + 7) / 8 : t->count * (bits / 8));
    return STRATA_OK;
}

/* ---- where the values are -----------------------------------------------------------
 */

static size_t entries_of(const struct raw_tensor *raw, enum tensor_row row)
{
    switch (row) {
    case TENSOR_FLOATS:
        return raw->n_floats;
    case TENSOR_INT32S:
        return raw->n_int32s;
    case TENSOR_TEXTS:
        return raw->n_texts;
    case TENSOR_INT64S:
        return raw->n_int64s;
    case TENSOR_DOUBLES:
        return raw->n_doubles;
    default:
        return raw->n_uint64s;
    }
}

static const struct {
    enum tensor_row row;
    const char *name;
} sources[] = {
    {TENSOR_FLOATS, "float_data"},   {TENSOR_INT32S, "int32_data"},
    {TENSOR_TEXTS, "string_data"},   {TENSOR_INT64S, "int64_data"},
    {TENSOR_DOUBLES, "double_data"}, {TENSOR_UINT64S, "uint64_data"},
};

/* There is one source of values at most, and a typed field is that of the type. */
static int check_sources(struct onnx_reader *r, const struct raw_tensor *raw,
                         const struct onnx_tensor *t)
{
    const bool external = raw->location == EXTERNAL;
    const char *found = external ? "external data" : NULL;
    if (raw->location != 0 && raw->location != EXTERNAL)
        return FAIL(r, "has data_location %" PRId64 ", of 0 and 1", raw->location);
    if (raw->seen >> TENSOR_SEGMENT & 1)
        return FAIL(r, "is a segment of a tensor; it must be whole");
    if (raw->seen >> TENSOR_RAW & 1 && (raw->raw.size || !external)) {
        if (found)
            return FAIL(r, "has values in %s and in raw_data", found);
        found = "raw_data";
    }
    if (t->type == ONNX_STRING && found)
        return FAIL(r, "has strings in %s; string_data is needed", found);
    for (size_t i = 0; i < ARRAY_LENGTH(sources); i++) {
        if (!entries_of(raw, sources[i].row))
            continue;
        if (found)
            return FAIL(r, "has values in %s and in %s", found, sources[i].name);
        if (sources[i].row != typed[t->type].row)
            return FAIL(r, "has values of type %s in %s", onnx_type_name(t->type),
                        sources[i].name);
        found = sources[i].name;
    }
    return STRATA_OK;
}

/* ---- values -------------------------------------------------------------------------
 */

static size_t alignment(const struct onnx_tensor *t)
{
    const int bits = onnx_type_bits(t->type) / (is_complex(t->type) ? 2 : 1);
    return bits < 8 ? 1 : (size_t)bits / 8;
}

static int check_bools(struct onnx_reader *r, const struct onnx_tensor *t)
{
    const uint8_t *values = t->data;
    for (size_t i = 0; t->type == ONNX_BOOL && i < t->bytes; i++)
        if (values[i] > 1)
            return FAIL(r, "element %zu is %d; a bool is 0 or 1", i, values[i]);
    return STRATA_OK;
}

/* Bytes of the file, where they lie if that is aligned. */
static int use_bytes(struct onnx_reader *r, const struct onnx_bytes *from,
                     struct onnx_tensor *t)
{
    if (from->size != t->bytes)
        return FAIL(r,
                    "has %zu bytes of values; %" PRId64 " elements of type %s need %zu",
                    from->size, t->count, onnx_type_name(t->type), t->bytes);
    if (t->bytes == 0)
        return STRATA_OK;
    t->data = from->at;
    t->loose = (uintptr_t)from->at % alignment(t) && r->limits->loose_bytes &&
               t->bytes >= r->limits->loose_bytes;
    if ((uintptr_t)from->at % alignment(t) && !t->loose) {
        void *copy = onnx_allocate(r->memory, t->bytes, 1, r->err);
        if (!copy)
            return STRATA_ENOMEM;
        t->data = memcpy(copy, from->at, t->bytes);
    }
    return check_bools(r, t);
}

static int out_of_range(struct onnx_reader *r, const struct onnx_tensor *t, size_t i,
                        int64_t value)
{
    return FAIL(
        r, "element %zu is %" PRId64 "; a number for %s is %" PRId64 " to %" PRId64, i,
        value, onnx_type_name(t->type), typed[t->type].least, typed[t->type].most);
}

/* In place: elements are not larger than their entries. */
static int narrow_int32s(struct onnx_reader *r, const struct raw_tensor *raw,
                         struct onnx_tensor *t)
{
    const size_t size = raw->n_int32s ? t->bytes / raw->n_int32s : 0;
    unsigned char *to = (unsigned char *)raw->int32s;
    for (size_t i = 0; i < raw->n_int32s; i++) {
        const int32_t value = raw->int32s[i];
        if (value < typed[t->type].least || value > typed[t->type].most)
            return out_of_range(r, t, i, value);
        memcpy(to + i * size, &value, size);
    }
    t->data = to;
    return STRATA_OK;
}

static int narrow_uint64s(struct onnx_reader *r, const struct raw_tensor *raw,
                          struct onnx_tensor *t)
{
    uint32_t *to = (uint32_t *)(void *)raw->uint64s;
    t->data = to;
    for (size_t i = 0; t->type == ONNX_UINT32 && i < raw->n_uint64s; i++) {
        const uint64_t value = raw->uint64s[i];
        if (value > UINT32_MAX)
            return FAIL(
                r, "element %zu is %" PRIu64 "; a number for uint32 is at most %" PRIu32,
                i, value, UINT32_MAX);
        memcpy(to + i, &(uint32_t){(uint32_t)value}, sizeof *to);
    }
    return STRATA_OK;
}

static int use_entries(struct onnx_reader *r, const struct raw_tensor *raw,
                       struct onnx_tensor *t)
{
    const enum tensor_row row = typed[t->type].row;
    const size_t found = entries_of(raw, row);
    const size_t needed = onnx_type_bits(t->type) < 8 && t->type != ONNX_STRING
                              ? t->bytes
                              : (size_t)t->count * (is_complex(t->type) ? 2 : 1);
    if (found != needed)
        return FAIL(r, "has %zu values; %" PRId64 " elements of type %s need %zu", found,
                    t->count, onnx_type_name(t->type), needed);
    if (found == 0) /* a field may be there, and hold none */
        return STRATA_OK;
    switch (row) {
    case TENSOR_INT32S:
        return narrow_int32s(r, raw, t);
    case TENSOR_UINT64S:
        return narrow_uint64s(r, raw, t);
    case TENSOR_FLOATS:
        t->data = raw->floats;
        break;
    case TENSOR_DOUBLES:
        t->data = raw->doubles;
        break;
    case TENSOR_INT64S:
        t->data = raw->int64s;
        break;
    default:
        break;
    }
    return STRATA_OK;
}

static int finish_values(struct onnx_reader *r, const struct raw_tensor *raw,
                         struct onnx_tensor *t)
{
    struct onnx_bytes bytes = raw->raw;
    int status = finish_shape(r, raw, t);
    if (status == STRATA_OK)
        status = check_sources(r, raw, t);
    if (status != STRATA_OK)
        return status;
    if (raw->location == EXTERNAL) {
        status = onnx_external(r, raw, t, &bytes);
        return status == STRATA_OK ? use_bytes(r, &bytes, t) : status;
    }
    return raw->seen >> TENSOR_RAW & 1 ? use_bytes(r, &bytes, t) : use_entries(r, raw, t);
}

int onnx_finish_tensor(struct onnx_reader *r, void *raw, void *out)
{
    const struct raw_tensor *from = raw;
    struct onnx_tensor *t = out;
    char shown[PRINTABLE_SIZE];
    *t = (struct onnx_tensor){.name = from->name, .location = ""};
    int status = finish_values(r, from, t);
    if (status != STRATA_OK)
        error_prefix(r->err, "tensor '%s'",
                     printable(shown, from->name, strlen(from->name)));
    return status;
}
