/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK: the k largest or smallest elements along an axis, in order, and their indices.
 * The host keeps the best k so far of a line in a heap with the worst of them on top;
 * stretches in which nothing passes that one are skipped in vectors.
 */
#include "plugins/top_k/top_k.h"

#include <math.h>
#include <stdbool.h>

#include "plugins/common/dense.h"
#include "plugins/common/reduce/reduce.h"
#include "plugins/common/walk.h"
#include "plugins/top_k/few.h"

static int top_k_shape(const strata_node *n)
{
    const strata_top_k *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = lines_axis(p->axis, x->rank);
    if (axis < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)x->rank);
    if (p->k > x->dims[axis])
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "k = %lld of a dim of %lld elements; k is at most that many",
                           (long long)p->k, (long long)x->dims[axis]);
    for (int i = 0; i < 2; i++) {
        n->out[i].rank = x->rank;
        memcpy(n->out[i].dims, x->dims, sizeof x->dims);
        n->out[i].dims[axis] = p->k;
    }
    n->out[1].dtype = STRATA_INT64;
    return STRATA_OK;
}

/* What a new one among the best costs, in comparisons of elements that are none: it is
 * found one by one among its neighbours, and branches are not foreseen (measured). */
#define INSERTION 500

/* In a random line the i-th element is among the best k with probability k/i. */
static double top_k_flops(const strata_node *n)
{
    const strata_top_k *p = n->params;
    const strata_tensor *x = &n->in[0];
    const struct lines l = lines_of(x, lines_axis(p->axis, x->rank));
    const double k = (double)p->k,
                 inserted = k * (1 + log(fmax(1, (double)l.length / k)));
    return 2.0 * (double)x->count + INSERTION * inserted * (double)(l.outer * l.inner);
}

/* ---- the best so far ----------------------------------------------------------------
 */

/* An element by its key and index; of equal keys the lower index is better. */
struct best {
    uint64_t key;
    int64_t index;
};

static bool worse(const struct best *a, const struct best *b)
{
    return a->key != b->key ? a->key < b->key : a->index > b->index;
}

/* The worst of n is heap[0]; element `at` may be better than those below it. */
static void sink(struct best *heap, int64_t n, int64_t at)
{
    const struct best moved = heap[at];
    for (int64_t below; (below = 2 * at + 1) < n; at = below) {
        if (below + 1 < n && worse(&heap[below + 1], &heap[below]))
            below++;
        if (!worse(&heap[below], &moved))
            break;
        heap[at] = heap[below];
    }
    heap[at] = moved;
}

static void heap_make(struct best *heap, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sink(heap, n, i);
}

/* Best first. */
static void heap_sort(struct best *heap, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const struct best worst = heap[0];
        heap[0] = heap[i];
        heap[i] = worst;
        sink(heap, i, 0);
    }
}

/* ---- the definition ------------------------------------------------------------------
 */

static uint64_t key_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return top_k_key64(bits);
}

static int top_k_reference(const strata_node *n, const void *const *in,
                           const void *const *weight, void *const *out)
{
    const strata_top_k *p = n->params;
    const struct lines l = lines_of(&n->in[0], lines_axis(p->axis, n->in[0].rank));
    const bool real = dense_is_real(n->in[0].dtype);
    const double *reals = in[0];
    const int64_t *whole = in[0];
    (void)weight;
    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        const int64_t from = lines_start(i, l.length, l.inner);
        int64_t to = lines_start(i, p->k, l.inner);
        struct best last = {0, -1};
        for (int64_t j = 0; j < p->k; j++, to += l.inner) {
            struct best next = {0, INT64_MAX};
            for (int64_t e = 0; e < l.length; e++) {
                const int64_t at = from + e * l.inner;
                const uint64_t key =
                    real ? key_of_double(reals[at]) : top_k_key_integer(whole[at]);
                const struct best b = {p->largest ? key : ~key, e};
                if ((j == 0 || worse(&b, &last)) && worse(&next, &b))
                    next = b;
            }
            last = next;
            ((int64_t *)out[1])[to] = next.index;
            if (real)
                ((double *)out[0])[to] = reals[from + next.index * l.inner];
            else
                ((int64_t *)out[0])[to] = whole[from + next.index * l.inner];
        }
    }
    return STRATA_OK;
}

static const void *top_k_extension(const char *id)
{
    /* A NaN is taken as the largest; where it stood is another place's number. */
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     top_k_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- the host's -----------------------------------------------------------------------
 */

struct top_k_call {
    const strata_run *run;
    const strata_top_k *params;
    struct lines lines;
    uint64_t flip; /* makes the smallest the best */
};

static uint64_t key_at(const strata_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case STRATA_FP64:
        return key_of_double(((const double *)t->data)[i]);
    case STRATA_INT8:
        return top_k_key_integer(((const int8_t *)t->data)[i]);
    case STRATA_UINT8:
        return top_k_key_integer(((const uint8_t *)t->data)[i]);
    case STRATA_INT32:
        return top_k_key_integer(((const int32_t *)t->data)[i]);
    case STRATA_INT64:
        return top_k_key_integer(((const int64_t *)t->data)[i]);
    default:
        return top_k_key32(strata_bits_of_float(element_load(t->data, t->dtype, i)));
    }
}

static void offer(struct best *heap, int64_t k, uint64_t key, int64_t index)
{
    if (key <= heap[0].key) /* later ones of equal keys are worse */
        return;
    heap[0] = (struct best){key, index};
    sink(heap, k, 0);
}

/* The worst kept value as a float, which none that is not past it passes. */
static float bar_of(const struct top_k_call *c, const struct best *heap)
{
    const uint32_t key = (uint32_t)((heap[0].key ^ c->flip) & 0xffffffff);
    return strata_float_of_bits(key >> 31 ? key & 0x7fffffff : ~key);
}

/* Which of GATHER_LANES elements are past the bar, or NaNs; whether one is. */
static bool passes(const float *x, float bar, bool largest, uint8_t *past)
{
    uint8_t any = 0;
    for (int i = 0; i < GATHER_LANES; i++) {
        past[i] = largest ? !(x[i] <= bar) : !(x[i] >= bar);
        any |= past[i];
    }
    return any;
}

static void offer_float(const struct top_k_call *c, struct best *heap, float x, int64_t j)
{
    offer(heap, c->params->k, top_k_key32(strata_bits_of_float(x)) ^ c->flip, j);
}

/* GATHER_LANES elements, of which those marked may be among the best. */
static void offer_marked(const struct top_k_call *c, struct best *heap, const float *x,
                         const uint8_t *past, int64_t j)
{
    for (int i = 0; i < GATHER_LANES; i += 8) {
        uint64_t marks;
        memcpy(&marks, past + i, sizeof marks);
        for (int e = i; marks && e < i + 8; e++)
            if (past[e])
                offer_float(c, heap, x[e], j + e);
    }
}

/* The rest of a line of floats in one piece, from element j on. */
static void take_floats(const struct top_k_call *c, struct best *heap, int64_t from,
                        int64_t j)
{
    const int64_t n = c->lines.length;
    const bool largest = c->params->largest;
    float buffer[GATHER_STRETCH];
    uint8_t past[GATHER_LANES];
    for (int64_t part; j < n; j += part) {
        part = n - j < GATHER_STRETCH ? n - j : GATHER_STRETCH;
        const float *x = gather_load(&c->run->in[0], from + j, part, buffer);
        const int64_t whole = part / GATHER_LANES * GATHER_LANES;
        for (int64_t i = 0; i < whole; i += GATHER_LANES)
            if (passes(x + i, bar_of(c, heap), largest, past))
                offer_marked(c, heap, x + i, past, j + i);
        for (int64_t i = whole; i < part; i++)
            offer_float(c, heap, x[i], j + i);
    }
}

/* The line of floats at `from`, best first. */
static void find_few(const struct top_k_call *c, struct best *best, int64_t from)
{
    struct few few = {.k = c->params->k, .flip = (uint32_t)c->flip};
    float buffer[GATHER_STRETCH];
    for (int64_t j = 0, part; j < c->lines.length; j += part) {
        part =
            c->lines.length - j < GATHER_STRETCH ? c->lines.length - j : GATHER_STRETCH;
        few_take(&few, gather_load(&c->run->in[0], from + j, part, buffer), part, j);
    }
    for (int64_t j = 0; j < few.k; j++)
        best[j] = (struct best){few.best[j] >> 32, few_index(few.best[j])};
}

/* The line at `from`, whose elements are `step` apart, best first. */
static void find(const struct top_k_call *c, struct best *heap, int64_t from,
                 int64_t step, bool floats)
{
    const strata_tensor *x = &c->run->in[0];
    const int64_t k = c->params->k;
    for (int64_t j = 0; j < k; j++)
        heap[j] = (struct best){key_at(x, from + j * step) ^ c->flip, j};
    heap_make(heap, k);
    if (step == 1 && floats)
        take_floats(c, heap, from, k);
    else
        for (int64_t j = k; j < c->lines.length; j++)
            offer(heap, k, key_at(x, from + j * step) ^ c->flip, j);
    heap_sort(heap, k);
}

static void top_k_line(const struct top_k_call *c, int64_t line)
{
    const strata_tensor *x = &c->run->in[0], *y = &c->run->out[0];
    const int64_t k = c->params->k, step = c->lines.inner;
    const int64_t from = lines_start(line, c->lines.length, step);
    const int64_t to = lines_start(line, k, step);
    const size_t size = dtype_size(x->dtype);
    const bool floats = dense_is_real(x->dtype) && x->dtype != STRATA_FP64;
    struct best *best = (struct best *)c->run->workspace + line * k;
    if (step == 1 && floats && few_fits(k, c->lines.length))
        find_few(c, best, from);
    else
        find(c, best, from, step, floats);
    for (int64_t j = 0; j < k; j++) {
        ((int64_t *)c->run->out[1].data)[to + j * step] = best[j].index;
        memcpy((char *)y->data + (size_t)(to + j * step) * size,
               (const char *)x->data + (size_t)(from + best[j].index * step) * size,
               size);
    }
}

static size_t top_k_workspace(const strata_node *n)
{
    return (size_t)n->out[0].count * sizeof(struct best);
}

static int top_k_run(const strata_run *r)
{
    const strata_top_k *p = r->params;
    const strata_tensor *x = &r->in[0];
    struct top_k_call c = {.run = r, .params = p};
    c.lines = lines_of(x, lines_axis(p->axis, x->rank));
    c.flip = p->largest                                           ? 0
             : dense_is_real(x->dtype) && x->dtype != STRATA_FP64 ? UINT32_MAX
                                                                  : UINT64_MAX;
#pragma omp parallel for schedule(static) if (x->count >= WALK_PARALLEL)
    for (int64_t i = 0; i < c.lines.outer * c.lines.inner; i++)
        top_k_line(&c, i);
    return STRATA_OK;
}

/* ---- tables
 * ----------------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "k",
     .type = STRATA_I64,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_top_k, k),
     .min = 1,
     .max = INT32_MAX,
     .doc = "elements that are given of each line"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_top_k, axis),
     .def = -1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim that is looked along; negative counts from the end"},
    {.name = "largest",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_top_k, largest),
     .def = 1,
     .doc = "the largest, else the smallest"},
    {.name = "sorted",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_top_k, sorted),
     .def = 1,
     .doc = "whether the order matters; they are in order anyway"},
};

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |
      STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW},
     {STRATA_SAME, STRATA_I64_NCHW},
     {0},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = 0,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.3,
     .workspace = top_k_workspace,
     .run = top_k_run},
};

static const strata_layer top_k = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "TopK",
    .doc = "The largest or smallest elements along a dim, and their indices",
    .min_in = 1,
    .max_in = 1,
    .n_out = 2,
    .params_size = sizeof(strata_top_k),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = top_k_shape,
    .flops = top_k_flops,
    .extension = top_k_extension,
};

static const strata_layer *const layers[] = {&top_k};
STRATA_MODULE("core", "1.0.0", "TopK", layers)
