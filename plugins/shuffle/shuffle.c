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

/* Turning a matrix: one factor's elements lie side by side in the input, another's in the
 * output. Tiles of both keep the lines of cache that are read until all of each is used.
 */
#define TILE 16
#define STRIP (16 * TILE) /* of the input's line, whole tiles */

struct turn {
    const struct factor *factor;
    int n, in, out; /* factors; which lies side by side in the input, in the output */
    int64_t from[2 * STRATA_MAX_RANK], to[2 * STRATA_MAX_RANK]; /* strides */
};

/* Whether the copy is one, of tensors without vectors and of enough elements each way. */
static int shuffle_turns(struct turn *t, const struct factor *factors, int n,
                         const strata_tensor *x, const strata_tensor *y)
{
    *t = (struct turn){.factor = factors, .n = n, .in = -1, .out = -1};
    for (int k = 0; k < n; k++) {
        const struct factor *f = &factors[k];
        t->from[k] = x->strides[f->from_dim] * f->from_times;
        t->to[k] = y->strides[f->to_dim] * f->to_times;
        t->in = t->from[k] == 1 && f->n > 1 ? k : t->in;
        t->out = t->to[k] == 1 && f->n > 1 ? k : t->out;
    }
    return x->vector == 1 && y->vector == 1 && t->in >= 0 && t->out >= 0 &&
           t->in != t->out && factors[t->in].n >= 4 && factors[t->out].n >= 4;
}

/* m elements of the output's line by n of the input's; T: of the element's size. */
#define TURN(T)                                                                          \
    static void turn_##T(void *to, const void *from, int64_t to_step, int64_t from_step, \
                         int64_t m, int64_t n)                                           \
    {                                                                                    \
        for (int64_t j = 0; j < n; j++)                                                  \
            for (int64_t i = 0; i < m; i++)                                              \
                ((T *)to)[j * to_step + i] = ((const T *)from)[i * from_step + j];       \
    }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)
#undef TURN

#ifdef __SSE2__
/* Four by four of 4 bytes each. */
static void turn_four(float *to, const float *from, int64_t to_step, int64_t from_step)
{
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + from_step);
    __m128 c = _mm_loadu_ps(from + 2 * from_step), d = _mm_loadu_ps(from + 3 * from_step);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + to_step, b);
    _mm_storeu_ps(to + 2 * to_step, c);
    _mm_storeu_ps(to + 3 * to_step, d);
}

static void turn_words(void *to, const void *from, int64_t to_step, int64_t from_step,
                       int64_t m, int64_t n)
{
    const int64_t whole_m = m & -4, whole_n = n & -4;
    float *y = to;
    const float *x = from;
    for (int64_t j = 0; j < whole_n; j += 4)
        for (int64_t i = 0; i < whole_m; i += 4)
            turn_four(y + j * to_step + i, x + i * from_step + j, to_step, from_step);
    turn_uint32_t(y + whole_m, x + whole_m * from_step, to_step, from_step, m - whole_m,
                  n);
    turn_uint32_t(y + whole_n * to_step, x + whole_n, to_step, from_step, whole_m,
                  n - whole_n);
}
#else
#define turn_words turn_uint32_t
#endif

typedef void turn_tile(void *to, const void *from, int64_t to_step, int64_t from_step,
                       int64_t m, int64_t n);

/* Strip `item` of all, those along the output's line first: tiles one behind the other
 * along the input's lines, as where a tile lies takes as long to find as half of one. */
static void shuffle_strip(const struct turn *t, turn_tile *tile, const strata_run *r,
                          int64_t item)
{
    const size_t size = walk_element_size(r->out[0].dtype);
    const int64_t m = t->factor[t->out].n, n = t->factor[t->in].n;
    const int64_t across = (m + TILE - 1) / TILE, down = (n + STRIP - 1) / STRIP;
    const int64_t i = item % across * TILE, begin = item / across % down * STRIP;
    const int64_t end = n - begin < STRIP ? n : begin + STRIP;
    int64_t to = i + begin * t->to[t->in], from = begin + i * t->from[t->out];
    int64_t rest = item / across / down;
    for (int k = 0; k < t->n; k++) {
        if (k == t->in || k == t->out)
            continue;
        const int64_t at = rest % t->factor[k].n;
        rest /= t->factor[k].n;
        to += at * t->to[k];
        from += at * t->from[k];
    }
    for (int64_t j = begin; j < end; j += TILE, from += TILE, to += TILE * t->to[t->in])
        tile((char *)r->out[0].data + (size_t)to * size,
             (const char *)r->in[0].data + (size_t)from * size, t->to[t->in],
             t->from[t->out], m - i < TILE ? m - i : TILE,
             end - j < TILE ? end - j : TILE);
}

static void shuffle_turn(const struct turn *t, const strata_run *r)
{
    static turn_tile *const sizes[] = {
        [1] = turn_uint8_t, [2] = turn_uint16_t, [4] = turn_words, [8] = turn_uint64_t};
    turn_tile *tile = sizes[walk_element_size(r->out[0].dtype)];
    int64_t items = 1;
    for (int k = 0; k < t->n; k++)
        items *= k == t->in    ? (t->factor[k].n + STRIP - 1) / STRIP
                 : k == t->out ? (t->factor[k].n + TILE - 1) / TILE
                               : t->factor[k].n;
#pragma omp parallel for schedule(static) if (r->out[0].count >= WALK_PARALLEL)
    for (int64_t item = 0; item < items; item++)
        shuffle_strip(t, tile, r, item);
}

/* Whether elements lie in the order of their indices. */
static int shuffle_in_order(const strata_tensor *t)
{
    int64_t step = 1;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        const int is_vector = t->vector > 1 && d == t->vector_dim;
        if (is_vector && (step != 1 || t->dims[d] % t->vector != 0))
            return 0;
        if (t->dims[d] > 1 && t->strides[d] != (is_vector ? t->vector : step))
            return 0;
        step *= t->dims[d];
    }
    return 1;
}

/* Whether the layer only names dims anew, of elements that stay where they are and are
 * too few for several threads. */
static int shuffle_keeps(const strata_run *r)
{
    const strata_shuffle *p = r->params;
    return r->out[0].count < WALK_PARALLEL && p->first.n == 0 && p->second.n == 0 &&
           shuffle_in_order(&r->in[0]) && shuffle_in_order(&r->out[0]);
}

static int shuffle_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct factor factors[2 * STRATA_MAX_RANK];
    struct shuffle s;
    struct walk w;
    struct turn turn;
    if (shuffle_keeps(r)) {
        memcpy(y->data, x->data, (size_t)y->count * walk_element_size(y->dtype));
        return STRATA_OK;
    }
    shuffle_sides(&s, r->params, x, y);
    int n = shuffle_factors(&s, factors);
    if (n >= 0 && shuffle_turns(&turn, factors, n, x, y)) {
        shuffle_turn(&turn, r);
        return STRATA_OK;
    }
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
