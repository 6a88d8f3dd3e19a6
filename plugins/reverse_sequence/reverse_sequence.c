/* SPDX-License-Identifier: Apache-2.0
 *
 * ReverseSequence: the first steps of each sequence of a batch in reverse order, as many
 * as its length says; the others stay. Elements are moved as they are.
 */
#include "plugins/reverse_sequence/reverse_sequence.h"

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

static int reverse_shape(const strata_node *n)
{
    const strata_reverse_sequence *p = n->params;
    const strata_tensor *x = &n->in[0], *length = &n->in[1];
    const int32_t time = index_axis(p->time_axis, x->rank),
                  batch = index_axis(p->batch_axis, x->rank);
    if (time < 0 || batch < 0 || time == batch)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "batch_axis %lld and time_axis %lld; needed are two dims of a "
                           "tensor of rank %d",
                           (long long)p->batch_axis, (long long)p->time_axis,
                           (int)x->rank);
    if (!index_is_integer(length->dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "lengths are of no integer type; i32 or i64 is needed: a Cast "
                           "gives one");
    if (length->rank != 1 || length->dims[0] != x->dims[batch])
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "lengths have rank %d and %lld elements; needed is one for each "
            "of the %lld sequences",
            (int)length->rank, (long long)length->dims[0], (long long)x->dims[batch]);
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    return STRATA_OK;
}

/* The steps of a sequence whose elements lie side by side. */
#define LINE(T)                                                                          \
    static void line_##T(void *to, const void *from, int64_t length, int64_t n)          \
    {                                                                                    \
        T *y = to;                                                                       \
        const T *x = from;                                                               \
        for (int64_t t = 0; t < length; t++)                                             \
            y[t] = x[length - 1 - t];                                                    \
        memcpy(y + length, x + length, (size_t)(n - length) * sizeof *y);                \
    }
LINE(uint8_t)
LINE(uint16_t)
LINE(uint32_t)
LINE(uint64_t)
#undef LINE

static void reverse_lines(const strata_run *r, const struct reverse_rows *s)
{
    static void (*const each[])(void *, const void *, int64_t,
                                int64_t) = {[1] = line_uint8_t,
                                            [2] = line_uint16_t,
                                            [4] = line_uint32_t,
                                            [8] = line_uint64_t};
    const int64_t size = index_size(r->in[0].dtype), n = s->second;
    const int64_t lines = r->out[0].count / n;
#pragma omp parallel for schedule(static) if (lines * n * size >= INDEX_PARALLEL)
    for (int64_t i = 0; i < lines; i++) {
        const int64_t given = index_value(s->length, s->dtype, i / s->middle % s->first);
        const int64_t length = given < 0 ? 0 : given < n ? given : n;
        each[size]((char *)r->out[0].data + i * n * size,
                   (const char *)r->in[0].data + i * n * size, length, n);
    }
}

static int reverse_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct reverse_rows source = reverse_rows(r->params, x, &r->in[1]);
    const int64_t bytes = reverse_row(r->params, x) * index_size(x->dtype);
    const int64_t rows = y->count * index_size(x->dtype) / bytes;
    if (!source.time_first && reverse_row(r->params, x) == 1) {
        reverse_lines(r, &source);
        return STRATA_OK;
    }
#pragma omp parallel for schedule(static) if (rows * bytes >= INDEX_PARALLEL)
    for (int64_t row = 0; row < rows; row++)
        index_copy_row((char *)y->data + row * bytes,
                       (const char *)x->data + reverse_source(&source, row) * bytes,
                       bytes);
    return STRATA_OK;
}

static int reverse_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_reverse_sequence *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t time = index_axis(p->time_axis, x->rank),
                  batch = index_axis(p->batch_axis, x->rank);
    const int64_t count = dense_count(x), *length = in[1];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[STRATA_MAX_RANK];
        dense_index(x, i, at);
        at[time] = reverse_step(at[time], length[at[batch]], x->dims[time]);
        /* a double or an int64_t */
        memcpy((char *)out[0] + i * 8, (const char *)in[0] + dense_offset(x, at) * 8, 8);
    }
    return STRATA_OK;
}

static const void *reverse_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     reverse_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

static const strata_attr attrs[] = {
    {.name = "batch_axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_reverse_sequence, batch_axis),
     .def = 1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim of the sequences, one length each; negative counts from the end"},
    {.name = "time_axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_reverse_sequence, time_axis),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim of their steps; negative counts from the end"},
};

static const strata_row rows[] = {{{INDEX_LINEAR, INDEX_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.6,
     .run = reverse_run},
};

static const strata_layer reverse_sequence = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "ReverseSequence",
    .doc = "The first steps of each sequence in reverse order",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_reverse_sequence),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = reverse_shape,
    .flops = walk_no_flops,
    .extension = reverse_extension,
};

static const strata_layer *const layers[] = {&reverse_sequence};
STRATA_MODULE("core", "1.0.0", "ReverseSequence", layers)
