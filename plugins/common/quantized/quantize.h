/* SPDX-License-Identifier: Apache-2.0
 *
 * What Quantize and Dequantize share on all devices: the shapes of scale and zero, which
 * are of one element, of the length of a dim, or of the input's rank with that dim
 * divided by the block; and the tensors as which they broadcast.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_QUANTIZE_H
#define PLUGINS_COMMON_QUANTIZED_QUANTIZE_H

#include <strata/layers.h>

static inline int32_t quantize_axis(const strata_quantize *p, int32_t rank)
{
    return (int32_t)(p->axis < 0 ? p->axis + rank : p->axis);
}

/* Quantize's own. */
static inline int32_t quantize_dtype(const strata_quantize *p)
{
    return p->dtype == 0   ? STRATA_UINT8
           : p->dtype == 1 ? STRATA_INT8
           : p->dtype == 2 ? STRATA_E4M3
                           : STRATA_E5M2;
}

static inline int quantize_to_fp8(const strata_quantize *p)
{
    return p->dtype >= 2;
}

/* The largest of the FP8. */
static inline double quantize_most(const strata_quantize *p)
{
    return quantize_dtype(p) == STRATA_E4M3 ? 448 : 57344;
}

static inline int quantize_accept(const strata_node *n)
{
    const strata_quantize *p = (const strata_quantize *)n->params;
    return n->out[0].dtype == quantize_dtype(p)
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output has another dtype");
}

/* Elements of the scale along the axis. */
static inline int64_t quantize_blocks(const strata_quantize *p, int64_t dim)
{
    return p->block > 0 ? dim / p->block : dim;
}

static inline int64_t quantize_count(const strata_tensor *t)
{
    int64_t count = 1;
    for (int32_t d = 0; d < t->rank; d++)
        count *= t->dims[d];
    return count;
}

static inline int quantize_blocked(const strata_node *n, const strata_tensor *w,
                                   const char *name)
{
    const strata_quantize *p = (const strata_quantize *)n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = quantize_axis(p, x->rank);
    int same = w->rank == x->rank;
    if (x->dims[axis] % p->block != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "dim %d of the input, %lld, is no multiple of the block of "
                           "%lld",
                           (int)axis, (long long)x->dims[axis], (long long)p->block);
    for (int32_t d = 0; d < x->rank && same; d++)
        same = w->dims[d] == (d == axis ? quantize_blocks(p, x->dims[d]) : x->dims[d]);
    return same ? STRATA_OK
                : STRATA_FAIL(n, STRATA_EINVAL,
                              "weight %s has other dims than the input with dim %d "
                              "divided by the block of %lld, %lld",
                              name, (int)axis, (long long)p->block,
                              (long long)quantize_blocks(p, x->dims[axis]));
}

static inline int quantize_check(const strata_node *n, const strata_tensor *w,
                                 const char *name)
{
    const strata_quantize *p = (const strata_quantize *)n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = quantize_axis(p, x->rank);
    const int64_t count = quantize_count(w);
    if (w->rank == 0 || (count == 1 && p->block == 0))
        return STRATA_OK;
    if (axis < 0 || axis >= x->rank)
        return STRATA_FAIL(
            n, STRATA_EINVAL, "axis %lld of an input of rank %d; -%d to %d are there",
            (long long)p->axis, (int)x->rank, (int)x->rank, (int)x->rank - 1);
    if (p->block > 0)
        return quantize_blocked(n, w, name);
    if (count != x->dims[axis])
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight %s has %lld elements, dim %d of the input %lld; one "
                           "element or one each is needed",
                           name, (long long)count, (int)axis, (long long)x->dims[axis]);
    return STRATA_OK;
}

static inline int quantize_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[0];
    int status = quantize_check(n, &n->weight[0], "scale");
    if (status == STRATA_OK)
        status = quantize_check(n, &n->weight[1], "zero");
    if (status == STRATA_OK && n->weight[1].rank > 0 &&
        quantize_count(&n->weight[0]) != quantize_count(&n->weight[1]))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight zero has %lld elements, scale %lld; as many are "
                           "needed",
                           (long long)quantize_count(&n->weight[1]),
                           (long long)quantize_count(&n->weight[0]));
    if (((const strata_quantize *)n->params)->block > 0 && x->rank == STRATA_MAX_RANK)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "an input of rank %d; with blocks %d is the most",
                           (int)x->rank, STRATA_MAX_RANK - 1);
    n->out[0].rank = x->rank;
    for (int32_t d = 0; d < x->rank; d++)
        n->out[0].dims[d] = x->dims[d];
    return status;
}

/* Where the network gives none: one scale for all, or one each of block and row; of zero
 * as many. */
static inline int quantize_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_quantize *p = (const strata_quantize *)n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = quantize_axis(p, x->rank);
    for (int i = 0; i < 2; i++) {
        strata_tensor *e = &expected[i];
        if (n->weight[i].rank > 0)
            continue;
        e->dtype = STRATA_FP32;
        e->rank = p->block > 0 ? x->rank : 1;
        e->dims[0] = 1;
        for (int32_t d = 0; d < x->rank && p->block > 0; d++)
            e->dims[d] = d == axis ? quantize_blocks(p, x->dims[d]) : x->dims[d];
        if (i == 1 && n->weight[0].rank > 0) {
            e->rank = n->weight[0].rank;
            for (int32_t d = 0; d < e->rank; d++)
                e->dims[d] = n->weight[0].dims[d];
        }
    }
    return STRATA_OK;
}

/* Index of the scale of element `index` of the input. */
static inline int64_t quantize_place(const strata_quantize *p, const strata_tensor *x,
                                     const strata_tensor *scale, const int64_t *index)
{
    const int32_t axis = quantize_axis(p, x->rank);
    int64_t at = 0;
    if (p->block == 0)
        return quantize_count(scale) == 1 ? 0 : index[axis];
    for (int32_t d = 0; d < x->rank; d++)
        at = at * scale->dims[d] + (d == axis ? index[d] / p->block : index[d]);
    return at;
}

/* t, with the axis as two dims, blocks and what is in one: a view of a linear tensor for
 * loops that broadcast. */
static inline strata_tensor quantize_split(const strata_tensor *t, int32_t axis,
                                           int64_t block)
{
    strata_tensor v = *t;
    for (int32_t d = t->rank; d > axis; d--) {
        v.dims[d] = t->dims[d - 1];
        v.strides[d] = t->strides[d - 1];
    }
    v.rank = t->rank + 1;
    v.dims[axis] = t->dims[axis] / block;
    v.dims[axis + 1] = block;
    v.strides[axis] = t->strides[axis] * block;
    v.strides[axis + 1] = t->strides[axis];
    return v;
}

/* Scale or zero as a tensor of the input's rank (or of that with the axis split). */
static inline strata_tensor quantize_view(const strata_quantize *p,
                                          const strata_tensor *x, const strata_tensor *w)
{
    const int32_t axis = quantize_axis(p, x->rank);
    strata_tensor v = *w;
    if (p->block > 0)
        return quantize_split(w, axis, 1);
    v.rank = x->rank;
    for (int32_t d = 0; d < x->rank; d++) {
        v.dims[d] = d == axis && w->count > 1 ? w->count : 1;
        v.strides[d] = 1;
    }
    v.vector = 1;
    v.vector_dim = -1;
    return v;
}

#endif /* PLUGINS_COMMON_QUANTIZED_QUANTIZE_H */
