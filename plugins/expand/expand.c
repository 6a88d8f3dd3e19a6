/* SPDX-License-Identifier: Apache-2.0
 *
 * Expand: the broadcast of the input to a shape, or the input repeated along its dims
 * (Tile). Linear, any dtype.
 */
#include "plugins/expand/expand.h"

#include <string.h>

#include "plugins/common/dense.h"
#include "plugins/common/dtype.h"
#include "plugins/common/pointwise.h"

static int expand_broadcast(const strata_node *n, strata_ints shape)
{
    const strata_tensor *x = &n->in[0];
    strata_tensor *out = &n->out[0];
    const int32_t rank = shape.n > x->rank ? (int32_t)shape.n : x->rank;
    out->rank = rank;
    for (int32_t d = 0; d < rank; d++) {
        const int64_t own = d - (rank - x->rank), at = d - (rank - (int32_t)shape.n);
        const int64_t dim = own < 0 ? 1 : x->dims[own], to = at < 0 ? 1 : shape.v[at];
        if (to < 0 || (dim != to && dim != 1 && to != 1))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "shape has %lld for dim %d, the input %lld; equal dims or "
                               "1 are needed",
                               (long long)to, (int)d, (long long)dim);
        out->dims[d] = dim == 1 ? to : dim;
    }
    return STRATA_OK;
}

static int expand_repeat(const strata_node *n, strata_ints repeats)
{
    const strata_tensor *x = &n->in[0];
    strata_tensor *out = &n->out[0];
    if (repeats.n != x->rank)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld repeats for an input of rank %d; one a dim is needed",
                           (long long)repeats.n, (int)x->rank);
    out->rank = x->rank;
    for (int32_t d = 0; d < x->rank; d++)
        if (repeats.v[d] < 0 ||
            __builtin_mul_overflow(x->dims[d], repeats.v[d], &out->dims[d]))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "%lld repeats of dim %d, %lld; none or more, to a dim "
                               "below 2^63, are needed",
                               (long long)repeats.v[d], (int)d, (long long)x->dims[d]);
    return STRATA_OK;
}

static int expand_shape(const strata_node *n)
{
    const strata_expand *p = n->params;
    if ((p->shape.n > 0) == (p->repeats.n > 0))
        return STRATA_FAIL(n, STRATA_EINVAL, "%s; give one of shape and repeats",
                           p->shape.n > 0 ? "both shape and repeats" : "no shape");
    if (p->shape.n > STRATA_MAX_RANK)
        return STRATA_FAIL(n, STRATA_EINVAL, "shape has %lld dims; %d are the most",
                           (long long)p->shape.n, STRATA_MAX_RANK);
    return p->shape.n > 0 ? expand_broadcast(n, p->shape) : expand_repeat(n, p->repeats);
}

static double expand_flops(const strata_node *n)
{
    (void)n;
    return 0;
}

/* The first `done` bytes of `to` again and again, up to `total`. */
static void expand_fill(char *to, size_t done, size_t total)
{
    while (done < total) {
        const size_t most = total - done < done ? total - done : done;
        memcpy(to + done, to, most);
        done += most;
    }
}

static int expand_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    struct expand_dim dim[STRATA_MAX_RANK + 1];
    const int dims = expand_dims(y, &r->in[0], dim);
    const struct expand_dim inner = dim[dims - 1];
    const size_t run = (size_t)inner.n * dtype_size(y->dtype);
    const size_t total = run * (size_t)inner.repeat;
    const int64_t rows = y->count / (inner.n * inner.repeat);
    char *to = y->data;
    const char *from = r->in[0].data;
#pragma omp parallel for schedule(static) if (y->count >= 1 << 15)
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, at = 0, step = 1;
        for (int d = dims - 2; d >= 0; d--) {
            at += rest % dim[d].n * step;
            rest /= dim[d].n * dim[d].repeat;
            step *= dim[d].n;
        }
        char *begin = to + (size_t)row * total;
        memcpy(begin, from + (size_t)at * run, run);
        expand_fill(begin, run, total);
    }
    return STRATA_OK;
}

/* Elements are of 8 bytes, double or int64_t. */
static int expand_reference(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    const int64_t count = dense_count(y), *from = in[0];
    int64_t *to = out[0], index[STRATA_MAX_RANK];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        dense_index(y, i, index);
        for (int d = 0; d < x->rank; d++)
            at = at * x->dims[d] + index[d + y->rank - x->rank] % x->dims[d];
        to[i] = from[at];
    }
    return STRATA_OK;
}

static const void *expand_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     expand_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "shape",
     .type = STRATA_INTS,
     .offset = offsetof(strata_expand, shape),
     .doc = "shape to broadcast with, from the last dim on; 1 keeps a dim"},
    {.name = "repeats",
     .type = STRATA_INTS,
     .offset = offsetof(strata_expand, repeats),
     .doc = "how often each dim comes (Tile)"},
};

static const strata_row rows[] = {
    {{POINTWISE_LINEAR_FLOATS | STRATA_F64_NCHW | POINTWISE_INTEGERS | STRATA_BOOL_NCHW |
      STRATA_E4M3_NCHW | STRATA_E5M2_NCHW},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .bandwidth = 0.7,
     .run = expand_run},
};

static const strata_layer expand = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Expand",
    .doc = "Broadcast to a shape, or repetition along dims",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_expand),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = expand_shape,
    .flops = expand_flops,
    .extension = expand_extension,
};

static const strata_layer *const layers[] = {&expand};
STRATA_MODULE("core", "1.0.0", "Expand", layers)
