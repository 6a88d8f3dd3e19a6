/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffle: transpose, reshape, transpose, in any format. The dims on both sides of the
 * reshape are cut into common factors, each of which moves by a stride of its own in the
 * input and in the output, and one walk copies. Where there are no such factors
 * (4x6 to 6x4, or a split inside a block's lanes), elements go one by one.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/shuffle/shuffle.h"
#include "plugins/common/walk.h"

static int shuffle_permutation(const strata_node *n, const char *name, strata_ints list,
                               int32_t rank)
{
    uint32_t seen = 0;
    for (int64_t i = 0; i < list.n; i++)
        if (list.v[i] >= 0 && list.v[i] < rank)
            seen |= 1u << list.v[i];
    if (list.n > 0 && (list.n != rank || seen != (1u << rank) - 1))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%s must hold each of 0 to %d once, for a tensor of rank %d",
                           name, (int)rank - 1, (int)rank);
    return STRATA_OK;
}

/* Dims after the reshape, but for an inferred one, which is left -1. */
static int shuffle_given(const strata_node *n, struct shuffle *s)
{
    const strata_shuffle *p = n->params;
    int inferred = 0;
    s->to_rank = p->shape.n ? (int32_t)p->shape.n : s->from_rank;
    for (int32_t d = 0; d < s->to_rank; d++) {
        int64_t dim = p->shape.n ? p->shape.v[d] : 0;
        if (dim == 0 && d >= s->from_rank)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "shape copies dim %d of a tensor of rank %d", (int)d,
                               (int)s->from_rank);
        s->to[d] = dim == 0 ? s->from[d] : dim;
        inferred += dim == -1;
    }
    if (inferred > 1)
        return STRATA_FAIL(n, STRATA_EINVAL, "shape holds -1 %d times; once is allowed",
                           inferred);
    return STRATA_OK;
}

static int shuffle_reshape(const strata_node *n, struct shuffle *s)
{
    int64_t count = 1, product = 1;
    int32_t inferred = -1;
    int status = shuffle_given(n, s);
    if (status)
        return status;
    for (int32_t d = 0; d < s->from_rank; d++)
        count *= s->from[d];
    for (int32_t d = 0; d < s->to_rank; d++)
        if (s->to[d] == -1)
            inferred = d;
        else if (__builtin_mul_overflow(product, s->to[d], &product))
            return STRATA_FAIL(n, STRATA_EOVERFLOW, "the product of shape does not fit");
    if (inferred >= 0 && product > 0 && count % product == 0)
        product *= s->to[inferred] = count / product;
    if (product != count || (inferred >= 0 && s->to[inferred] < 0))
        return STRATA_FAIL(
            n, STRATA_EINVAL, "shape holds %lld elements%s, the input %lld",
            (long long)product, inferred >= 0 ? " times the inferred dim" : "",
            (long long)count);
    return STRATA_OK;
}

static int shuffle_resolve(const strata_node *n, struct shuffle *s)
{
    const strata_shuffle *p = n->params;
    const strata_tensor *x = &n->in[0];
    int status = shuffle_permutation(n, "first", p->first, x->rank);
    if (status)
        return status;
    s->from_rank = x->rank;
    for (int32_t d = 0; d < x->rank; d++) {
        s->from_dim[d] = p->first.n ? (int32_t)p->first.v[d] : d;
        s->from[d] = x->dims[s->from_dim[d]];
    }
    if ((status = shuffle_reshape(n, s)) ||
        (status = shuffle_permutation(n, "second", p->second, s->to_rank)))
        return status;
    for (int32_t d = 0; d < s->to_rank; d++)
        s->to_dim[p->second.n ? p->second.v[d] : d] = d;
    return STRATA_OK;
}

static int shuffle_shape(const strata_node *n)
{
    struct shuffle s;
    int status = shuffle_resolve(n, &s);
    if (status)
        return status;
    n->out[0].rank = s.to_rank;
    for (int32_t d = 0; d < s.to_rank; d++)
        n->out[0].dims[s.to_dim[d]] = s.to[d];
    return STRATA_OK;
}

static size_t shuffle_workspace(const strata_node *n)
{
    return walk_memory(2, n->in[0].dims, n->in[0].rank); /* factors add up to no more */
}

/* 0 if the factors do not fit the formats. */
static int shuffle_walk(struct walk *w, const struct factor *factors, int n,
                        const strata_tensor *x, const strata_tensor *y, int64_t *memory)
{
    int64_t none[STRATA_MAX_RANK] = {0};
    walk_over(w, 2, y, none, memory);
    w->axes = 0;
    w->lanes = -1;
    for (int k = 0; k < n; k++) {
        const struct factor *f = &factors[k];
        if (!shuffle_separable(x, f->from_dim, f->from_times) ||
            !shuffle_separable(y, f->to_dim, f->to_times))
            return 0;
        if (y->vector > 1 && f->to_dim == y->vector_dim && f->to_times == 1)
            w->lanes = w->axes;
        memory = walk_axis(w, f->n, memory);
        for (int64_t i = 0; i < f->n; i++) {
            w->axis[k].at[0][i] = walk_offset(y, f->to_dim, i * f->to_times);
            w->axis[k].at[1][i] = walk_offset(x, f->from_dim, i * f->from_times);
        }
    }
    return 1;
}

/* Input index under an output index. */
static void shuffle_source(const struct shuffle *s, const int64_t *out, int64_t *in)
{
    int64_t at = 0;
    for (int32_t d = 0; d < s->to_rank; d++)
        at = at * s->to[d] + out[s->to_dim[d]];
    for (int32_t d = s->from_rank - 1; d >= 0; d--) {
        in[s->from_dim[d]] = at % s->from[d];
        at /= s->from[d];
    }
}

static void shuffle_each(const struct shuffle *s, const strata_tensor *x,
                         const strata_tensor *y)
{
    size_t size = walk_element_size(y->dtype);
    int64_t count = y->count;
#pragma omp parallel for schedule(static) if (count >= WALK_PARALLEL)
    for (int64_t i = 0; i < count; i++) {
        int64_t out[STRATA_MAX_RANK], in[STRATA_MAX_RANK];
        dense_index(y, i, out);
        shuffle_source(s, out, in);
        memcpy((char *)y->data + (size_t)strata_offset(y, out) * size,
               (const char *)x->data + (size_t)strata_offset(x, in) * size, size);
    }
}

static int shuffle_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct factor factors[2 * STRATA_MAX_RANK];
    struct shuffle s;
    struct walk w;
    shuffle_sides(&s, r->params, x, y);
    int n = shuffle_factors(&s, factors);
    if (n >= 0 && shuffle_walk(&w, factors, n, x, y, r->workspace))
        walk_copy(&w, y, x);
    else
        shuffle_each(&s, x, y);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* Values of any dtype are 8 bytes here. */
static int shuffle_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    int64_t count = dense_count(y), to[STRATA_MAX_RANK], from[STRATA_MAX_RANK];
    struct shuffle s;
    (void)weight;
    shuffle_sides(&s, n->params, x, y);
    for (int64_t i = 0; i < count; i++) {
        dense_index(y, i, to);
        shuffle_source(&s, to, from);
        ((int64_t *)out[0])[i] = ((const int64_t *)in[0])[dense_offset(x, from)];
    }
    return STRATA_OK;
}

static const void *shuffle_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     shuffle_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "first",
     .type = STRATA_INTS,
     .offset = offsetof(strata_shuffle, first),
     .min = 0,
     .max = STRATA_MAX_RANK - 1,
     .doc = "transpose before the reshape: input dim of each dim; empty: none"},
    {.name = "shape",
     .type = STRATA_INTS,
     .offset = offsetof(strata_shuffle, shape),
     .min = -1,
     .max = 0x1p53,
     .doc =
         "dims after the reshape; 0 copies the dim at its place, -1 infers one; empty: "
         "no reshape"},
    {.name = "second",
     .type = STRATA_INTS,
     .offset = offsetof(strata_shuffle, second),
     .min = 0,
     .max = STRATA_MAX_RANK - 1,
     .doc = "transpose after the reshape; empty: none"},
};

static const strata_row rows[] = {{{WALK_ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.3,
     .workspace = shuffle_workspace,
     .run = shuffle_run},
};

static const strata_layer shuffle = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Shuffle",
    .doc = "Transpose, reshape, transpose",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_shuffle),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = shuffle_shape,
    .flops = walk_no_flops,
    .extension = shuffle_extension,
};

static const strata_layer *const layers[] = {&shuffle};
STRATA_MODULE("core", "1.0.0", "Shuffle", layers)
