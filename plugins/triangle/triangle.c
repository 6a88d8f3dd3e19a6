/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangle: the input on and to one side of a diagonal of its last two dims, zero on the
 * other. Linear, any dtype; may run in place.
 */
#include <string.h>

#include "plugins/common/dense.h"
#include "plugins/common/dtype.h"
#include "plugins/common/pointwise.h"

static int triangle_shape(const strata_node *n)
{
    if (n->in[0].rank < 2)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input has rank %d; a triangle needs two dims",
                           (int)n->in[0].rank);
    n->out[0].rank = n->in[0].rank;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->out[0].dims);
    return STRATA_OK;
}

static double triangle_flops(const strata_node *n)
{
    (void)n;
    return 0;
}

/* Columns [*begin, *end) of row i stay. */
static void triangle_kept(const strata_triangle *p, int64_t i, int64_t columns,
                          int64_t *begin, int64_t *end)
{
    /* k is limited so that the sum does not wrap. */
    const int64_t k = p->k < -i ? -i - 1 : p->k > columns ? columns : p->k;
    const int64_t at = i + k + !p->upper;
    const int64_t edge = at < 0 ? 0 : at > columns ? columns : at;
    *begin = p->upper ? edge : 0;
    *end = p->upper ? columns : edge;
}

static int triangle_run(const strata_run *r)
{
    const strata_triangle *p = r->params;
    const strata_tensor *x = &r->in[0];
    const int64_t size = (int64_t)dtype_size(x->dtype), m = x->dims[x->rank - 2];
    const int64_t columns = x->dims[x->rank - 1], rows = x->count / columns;
    char *to = r->out[0].data;
    const char *from = x->data;
#pragma omp parallel for schedule(static) if (x->count >= 1 << 15)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t at = row * columns * size;
        int64_t begin, end;
        triangle_kept(p, row % m, columns, &begin, &end);
        if (to != from)
            memcpy(to + at + begin * size, from + at + begin * size,
                   (size_t)((end - begin) * size));
        memset(to + at, 0, (size_t)(begin * size));
        memset(to + at + end * size, 0, (size_t)((columns - end) * size));
    }
    return STRATA_OK;
}

/* Elements are of 8 bytes, double or int64_t: zero is the same in both. */
static int triangle_reference(const strata_node *n, const void *const *in,
                              const void *const *weight, void *const *out)
{
    const strata_triangle *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int64_t m = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    const int64_t count = dense_count(x);
    const int64_t *from = in[0];
    int64_t *y = out[0];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        const double right = (double)(i % columns) - (double)(i / columns % m);
        const int kept = p->upper ? right >= (double)p->k : right <= (double)p->k;
        y[i] = kept ? from[i] : 0;
    }
    return STRATA_OK;
}

static const void *triangle_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     triangle_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "upper",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_triangle, upper),
     .def = 1,
     .doc = "keep what lies on and above the diagonal, else on and below"},
    {.name = "k",
     .type = STRATA_I64,
     .offset = offsetof(strata_triangle, k),
     .doc = "diagonal, 0 the main one, above it positive"},
};

static const strata_row rows[] = {
    {{POINTWISE_LINEAR_FLOATS | STRATA_F64_NCHW | POINTWISE_INTEGERS | STRATA_BOOL_NCHW |
      STRATA_E4M3_NCHW | STRATA_E5M2_NCHW},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .bandwidth = 0.7,
     .run = triangle_run},
};

static const strata_layer triangle = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Triangle",
    .doc = "Upper or lower triangle of the last two dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_triangle),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = triangle_shape,
    .flops = triangle_flops,
    .extension = triangle_extension,
};

static const strata_layer *const layers[] = {&triangle};
STRATA_MODULE("core", "1.0.0", "Triangle", layers)
