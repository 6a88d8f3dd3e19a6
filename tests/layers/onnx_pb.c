/* SPDX-License-Identifier: Apache-2.0
 *
 * The protobuf wire: fields of a number and a kind, one after another. A message is a
 * function that is told each of its fields.
 */
#include "tests/layers/onnx_pb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct field {
    unsigned number;
    enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 } kind;
    uint64_t value;             /* of a number */
    const unsigned char *bytes; /* of BYTES */
    size_t size;
};
typedef bool (*told)(void *to, const struct field *f);

static bool varint(const unsigned char **p, const unsigned char *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        const unsigned char byte = *(*p)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool fixed(const unsigned char **p, const unsigned char *end, size_t size,
                  uint64_t *value)
{
    *value = 0;
    if ((size_t)(end - *p) < size)
        return false;
    memcpy(value, *p, size);
    *p += size;
    return true;
}

static bool message(const unsigned char *p, size_t size, told tell, void *to)
{
    const unsigned char *end = p + size;
    while (p < end) {
        uint64_t key, length = 0;
        struct field f = {0};
        if (!varint(&p, end, &key))
            return false;
        f.number = (unsigned)(key >> 3);
        f.kind = key & 7;
        if (f.kind == BYTES) {
            if (!varint(&p, end, &length) || length > (uint64_t)(end - p))
                return false;
            f.bytes = p;
            f.size = (size_t)length;
            p += length;
        } else if (f.kind == VARINT ? !varint(&p, end, &f.value)
                                    : !fixed(&p, end, f.kind == FIXED64 ? 8 : 4, &f.value))
            return false;
        if (!tell(to, &f))
            return false;
    }
    return true;
}

static bool take_text(char text[PB_NAME], const struct field *f)
{
    snprintf(text, PB_NAME, "%.*s", (int)(f->size < PB_NAME ? f->size : PB_NAME - 1),
             (const char *)f->bytes);
    return f->kind == BYTES; /* a longer name is none that matters here */
}

static bool take_name(char names[PB_PORTS][PB_NAME], int *n, const struct field *f)
{
    return *n < PB_PORTS && take_text(names[(*n)++], f);
}

static double real_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return (double)x;
}

/* One number, or several packed, of `size` bytes each (0: varints). */
static bool numbers(const struct field *f, size_t size, bool (*add)(void *, uint64_t),
                    void *to)
{
    const unsigned char *p = f->bytes, *end = p + f->size;
    uint64_t value = f->value;
    if (f->kind != BYTES)
        return add(to, value);
    while (p < end)
        if (!(size ? fixed(&p, end, size, &value) : varint(&p, end, &value)) ||
            !add(to, value))
            return false;
    return true;
}

/* ---- models -------------------------------------------------------------------- */

static bool add_integer(void *to, uint64_t value)
{
    struct pb_attr *a = to;
    if (a->n_integers == PB_LIST)
        return false;
    a->integers[a->n_integers++] = (int64_t)value;
    return true;
}

static bool add_real(void *to, uint64_t value)
{
    struct pb_attr *a = to;
    if (a->n_reals == PB_LIST)
        return false;
    a->reals[a->n_reals++] = real_of(value);
    return true;
}

static bool tell_attribute(void *to, const struct field *f)
{
    struct pb_attr *a = to;
    switch (f->number) {
    case 1: return take_text(a->name, f);
    case 2: a->real = real_of(f->value); return true;
    case 3: a->integer = (int64_t)f->value; return true;
    case 4: return take_text(a->text, f);
    case 7: return numbers(f, 4, add_real, a);
    case 8: return numbers(f, 0, add_integer, a);
    case 20: a->kind = (int)f->value; return true;
    default: return true;
    }
}

static bool tell_node(void *to, const struct field *f)
{
    struct pb_model *m = to;
    switch (f->number) {
    case 1: return take_name(m->in, &m->n_in, f);
    case 2: return take_name(m->out, &m->n_out, f);
    case 4: return take_text(m->op, f);
    case 5:
        return m->n_attrs < PB_ATTRS &&
               message(f->bytes, f->size, tell_attribute, &m->attrs[m->n_attrs++]);
    default: return true;
    }
}

static bool tell_value(void *to, const struct field *f)
{
    struct pb_model *m = to;
    return f->number != 1 || take_name(m->graph_in, &m->n_graph_in, f);
}

static bool tell_graph(void *to, const struct field *f)
{
    struct pb_model *m = to;
    if (f->number == 1)
        return m->nodes++ > 0 || message(f->bytes, f->size, tell_node, m);
    return f->number != 11 || message(f->bytes, f->size, tell_value, m);
}

static bool tell_opset(void *to, const struct field *f)
{
    struct pb_model *m = to;
    if (f->number == 2)
        m->opset = (int64_t)f->value;
    return true;
}

static bool tell_model(void *to, const struct field *f)
{
    return f->number == 7   ? message(f->bytes, f->size, tell_graph, to)
           : f->number == 8 ? message(f->bytes, f->size, tell_opset, to)
                            : true;
}

/* ---- tensors ------------------------------------------------------------------- */

struct elements {
    struct pb_tensor *t;
    int64_t n; /* of t->data that are there */
};

int32_t pb_dtype(int type)
{
    static const int8_t dtypes[] = {
        [1] = STRATA_FP32,  [2] = STRATA_UINT8, [3] = STRATA_INT8,   [6] = STRATA_INT32,
        [7] = STRATA_INT64, [9] = STRATA_BOOL8, [10] = STRATA_FP16,  [11] = STRATA_FP64,
        [16] = STRATA_BF16, [17] = STRATA_E4M3, [19] = STRATA_E5M2};
    const bool known = type > 0 && type < (int)ARRAY_LENGTH(dtypes);
    return known && (dtypes[type] || type == 1) ? dtypes[type] : -1;
}

static bool add_dim(void *to, uint64_t value)
{
    struct harness_shape *s = to;
    if (s->rank == STRATA_MAX_RANK || value > 1 << 24)
        return false;
    s->dims[s->rank++] = (int64_t)value;
    return true;
}

static bool tell_shape(void *to, const struct field *f)
{
    struct pb_tensor *t = to;
    if (f->number == 1)
        return numbers(f, 0, add_dim, &t->shape);
    if (f->number == 2)
        t->type = (int)f->value;
    return f->number != 8 || take_text(t->name, f);
}

/* A number as a list of the type's has it: its bits, or for 16-bit types in 32. */
static bool add_element(void *to, uint64_t bits)
{
    struct elements *e = to;
    if (e->n < e->t->count)
        number_load(e->t->data, e->n++, &bits, e->t->dtype, 0);
    return true;
}

static bool tell_data(void *to, const struct field *f)
{
    struct elements *e = to;
    const size_t size = strata_dtype_size(e->t->dtype);
    switch (f->number) {
    case 4: return numbers(f, 4, add_element, e);
    case 5:
    case 7: return numbers(f, 0, add_element, e);
    case 9: return numbers(f, size, add_element, e);
    case 10: return numbers(f, 8, add_element, e);
    default: return true;
    }
}

static unsigned char *slurp_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    long end = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    unsigned char *bytes = end >= 0 && end < 1 << 28 ? malloc((size_t)end + 1) : NULL;
    bool whole = bytes && fseek(file, 0, SEEK_SET) == 0 &&
                 fread(bytes, 1, (size_t)end, file) == (size_t)end;
    if (file)
        fclose(file);
    *size = whole ? (size_t)end : 0;
    return bytes;
}

bool pb_read_model(struct pb_model *m, const char *path)
{
    size_t size;
    unsigned char *bytes = slurp_file(path, &size);
    memset(m, 0, sizeof *m);
    const bool read = bytes && message(bytes, size, tell_model, m) && m->nodes > 0;
    free(bytes);
    return read;
}

bool pb_read_tensor(struct pb_tensor *t, const char *path)
{
    size_t size;
    unsigned char *bytes = slurp_file(path, &size);
    struct elements e = {t, 0};
    memset(t, 0, sizeof *t);
    bool read = bytes && message(bytes, size, tell_shape, t);
    t->dtype = pb_dtype(t->type);
    t->count = 1;
    for (int d = 0; d < t->shape.rank; d++)
        t->count *= t->shape.dims[d];
    if (read && t->dtype >= 0 && t->count <= 1 << 24) {
        t->data = malloc((size_t)t->count * VALUE_SIZE + 1);
        read = t->data && message(bytes, size, tell_data, &e) && e.n == t->count;
    }
    free(bytes);
    return read;
}

void pb_free_tensor(struct pb_tensor *t)
{
    free(t->data);
    t->data = NULL;
}

const struct pb_attr *pb_attr(const struct pb_model *m, const char *name)
{
    for (int i = 0; i < m->n_attrs; i++)
        if (strcmp(m->attrs[i].name, name) == 0)
            return &m->attrs[i];
    return NULL;
}
