/* SPDX-License-Identifier: Apache-2.0
 *
 * Walk: one loop over the elements of several tensors at once, in any formats.
 *
 * An element's offset is a sum over dims, also in blocked formats, so each axis of the
 * loop carries one table per operand: where position i lies. Slicing, broadcasting,
 * concatenating, mirroring and resizing are only other tables. Before it runs, a walk
 *   1. splits the axis of vectors into blocks and lanes where every operand allows it,
 *   2. orders the axes by the distance of operand 0 (the one written),
 *   3. joins inner axes into one run of constant steps, as long as possible.
 * So a copy between equal layouts ends as one memcpy, and an addition as one flat loop.
 * Tables live in the impl's workspace. Offsets are in elements.
 */
#ifndef PLUGINS_COMMON_WALK_H
#define PLUGINS_COMMON_WALK_H

#include "plugins/common/dtype.h"
#include "plugins/common/element.h"

/* What a walk takes: float formats for arithmetic, all for copies. */
#define WALK_FLOATS ELEMENT_FLOATS
#define WALK_ALL ((UINT64_C(1) << STRATA_FORMAT_COUNT) - 1)

#define WALK_OPERANDS 12
#define WALK_AXES 17
#define WALK_GRAIN 16384        /* elements of a run one thread takes at once */
#define WALK_PARALLEL (1 << 15) /* elements below which threads do not pay */
#define WALK_LONG_RUN 32        /* elements from which a run is an item of its own */

struct walk_axis {
    int64_t n;                  /* positions */
    int64_t every;              /* table entries from one position to the next */
    int64_t *at[WALK_OPERANDS]; /* tables */
};

struct walk {
    int32_t operands, axes;
    int32_t lanes;  /* axis of vectors, -1: none */
    int64_t vector; /* lanes in one block */
    struct walk_axis axis[WALK_AXES];
    int64_t base[WALK_OPERANDS];
    int64_t n;                   /* elements of the run */
    int64_t step[WALK_OPERANDS]; /* of the run */
    int64_t line;                /* elements behind each: of the axes dropped */
};

/* Table of an axis of one position, whose offset is elsewhere. */
static int64_t walk_zero[1];

/* Handles positions of the innermost axis times n elements of the run:
 *   for i < inner->n: operand k's element j is at
 *     base[k] + inner->at[k][i*inner->every] + j*w->step[k] */
typedef void walk_row(const void *arg, const struct walk *w, const int64_t *base,
                      int64_t n);

static inline const struct walk_axis *walk_inner(const struct walk *w)
{
    return &w->axis[w->axes - 1];
}

/* Workspace bytes for a walk over dims. */
static inline size_t walk_memory(int operands, const int64_t *dims, int rank)
{
    size_t entries = 0, bytes;
    for (int d = 0; d < rank; d++)
        if (__builtin_add_overflow(entries, (uint64_t)dims[d], &entries))
            return SIZE_MAX;
    return __builtin_mul_overflow(entries, (size_t)operands * sizeof(int64_t), &bytes)
               ? SIZE_MAX
               : bytes;
}

/* The same for the output and one input: the workspace function of an impl. */
static inline size_t walk_pair_memory(const strata_node *n)
{
    return walk_memory(2, n->out[0].dims, n->out[0].rank);
}

/* The flops function of a layer that moves values. */
static inline double walk_no_flops(const strata_node *n)
{
    (void)n;
    return 0;
}

/* Add an axis of n positions; its tables start as zero. Returns the memory behind it. */
static inline int64_t *walk_axis(struct walk *w, int64_t n, int64_t *memory)
{
    struct walk_axis *a = &w->axis[w->axes++];
    a->n = n;
    a->every = 1;
    memset(memory, 0, (size_t)n * (size_t)w->operands * sizeof *memory);
    for (int k = 0; k < w->operands; k++)
        a->at[k] = memory + k * n;
    return memory + w->operands * n;
}

/* A walk over dims with all tables zero; vectors as in t, the tensor to be written. */
static inline void walk_over(struct walk *w, int operands, const strata_tensor *t,
                             const int64_t *dims, void *workspace)
{
    int64_t *memory = workspace;
    memset(w, 0, sizeof *w);
    w->operands = operands;
    w->lanes = t->vector > 1 ? t->vector_dim : -1;
    w->vector = t->vector;
    w->n = w->line = 1;
    for (int d = 0; d < t->rank; d++)
        memory = walk_axis(w, dims[d], memory);
}

/* Offset that index i of dim d adds. */
static inline int64_t walk_offset(const strata_tensor *t, int d, int64_t i)
{
    return d == t->vector_dim ? i / t->vector * t->strides[d] + i % t->vector
                              : i * t->strides[d];
}

/* Axis d of operand k runs over t's dim d: index begin + i*step, step 0 repeats one. */
static inline void walk_map(struct walk *w, int k, int d, const strata_tensor *t,
                            int64_t begin, int64_t step)
{
    int64_t *at = w->axis[d].at[k];
    for (int64_t i = 0; i < w->axis[d].n; i++)
        at[i] = walk_offset(t, d, begin + i * step);
}

/* Every axis of operand k runs over t, dims of 1 stretch. */
static inline void walk_map_all(struct walk *w, int k, const strata_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        walk_map(w, k, d, t, 0, t->dims[d] == 1 ? 0 : 1);
}

/* Leave the walk at position 0 of axis d; its tables are the caller's. */
static inline void walk_drop(struct walk *w, int d)
{
    w->line *= w->axis[d].n;
    w->axis[d].n = 1;
    w->lanes = w->lanes == d ? -1 : w->lanes;
    for (int k = 0; k < w->operands; k++)
        w->axis[d].at[k] = walk_zero;
}

/* Step of operand k between the lanes of a block. */
static inline int64_t walk_lane_step(const struct walk *w, int k)
{
    const struct walk_axis *a = &w->axis[w->lanes];
    return a->n > 1 ? a->at[k][1] - a->at[k][0] : 0;
}

/* Whether lanes have one step in all blocks, for every operand. */
static inline int walk_aligned(const struct walk *w)
{
    const struct walk_axis *a = &w->axis[w->lanes];
    for (int k = 0; k < w->operands; k++) {
        int64_t step = walk_lane_step(w, k);
        for (int64_t i = 0; i < a->n; i++) {
            int64_t lane = i % w->vector;
            if (a->at[k][i] != a->at[k][i - lane] + lane * step)
                return 0;
        }
    }
    return 1;
}

/* Distance operand 0 moves from the first to the second position. */
static inline int64_t walk_distance(const struct walk_axis *a)
{
    int64_t d = a->at[0][a->every] - a->at[0][0];
    return d < 0 ? -d : d;
}

/* Drop axes of one position, order the rest outermost first. 0 if nothing is to do. */
static inline int walk_order(struct walk *w)
{
    int axes = w->axes;
    w->axes = 0;
    for (int d = 0; d < axes; d++) {
        struct walk_axis a = w->axis[d];
        int at = w->axes;
        if (a.n == 0)
            return 0;
        if (a.n == 1) {
            for (int k = 0; k < w->operands; k++)
                w->base[k] += a.at[k][0];
            continue;
        }
        for (; at > 0 && walk_distance(&w->axis[at - 1]) < walk_distance(&a); at--)
            w->axis[at] = w->axis[at - 1];
        w->axis[at] = a;
        w->axes++;
    }
    return 1;
}

static inline int walk_joins(const struct walk *w, const struct walk_axis *a)
{
    for (int k = 0; k < w->operands; k++) {
        const int64_t *at = a->at[k];
        int64_t step = at[a->every] - at[0];
        if (w->n > 1 && step != w->n * w->step[k])
            return 0;
        for (int64_t i = 2; i < a->n; i++)
            if (at[i * a->every] != at[0] + i * step)
                return 0;
    }
    return 1;
}

/* Join inner axes into the run, and leave one axis inside it for the row function. */
static inline void walk_join(struct walk *w)
{
    while (w->axes > 0 && walk_joins(w, walk_inner(w))) {
        const struct walk_axis *a = walk_inner(w);
        for (int k = 0; k < w->operands; k++) {
            if (w->n == 1)
                w->step[k] = a->at[k][a->every] - a->at[k][0];
            w->base[k] += a->at[k][0];
        }
        w->n *= a->n;
        w->axes--;
    }
    if (w->axes == 0 || w->n >= WALK_LONG_RUN) {
        struct walk_axis *unit = &w->axis[w->axes++];
        unit->n = unit->every = 1;
        for (int k = 0; k < w->operands; k++)
            unit->at[k] = walk_zero;
    }
}

/* Offsets of an item's first element: which of the outer positions, from where in the
 * run. */
static inline void walk_item(const struct walk *w, int64_t position, int64_t begin,
                             int64_t *base)
{
    for (int k = 0; k < w->operands; k++)
        base[k] = w->base[k] + begin * w->step[k];
    for (int d = w->axes - 2; d >= 0; d--) {
        const struct walk_axis *a = &w->axis[d];
        int64_t i = position % a->n * a->every;
        position /= a->n;
        for (int k = 0; k < w->operands; k++)
            base[k] += a->at[k][i];
    }
}

/* Of the run, what one thread takes at once. Lines that lie side by side are taken some
 * cache lines wide. */
static inline int64_t walk_grain(const struct walk *w)
{
    const int64_t least = w->line > 1 && w->step[0] == 1 ? 64 : 1;
    const int64_t grain = w->line > 1 ? WALK_GRAIN / w->line : WALK_GRAIN;
    return grain > least ? grain : least;
}

static inline void walk_part(struct walk *w, walk_row *row, const void *arg)
{
    int64_t items = 1;
    if (!walk_order(w))
        return;
    walk_join(w);
    for (int d = 0; d + 1 < w->axes; d++)
        items *= w->axis[d].n;
    const int64_t grain = walk_grain(w), chunks = (w->n + grain - 1) / grain;
    int parallel = items * walk_inner(w)->n * w->n * w->line >= WALK_PARALLEL;
    items *= chunks;
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t item = 0; item < items; item++) {
        int64_t begin = item % chunks * grain, base[WALK_OPERANDS];
        walk_item(w, item / chunks, begin, base);
        row(arg, w, base, begin + grain < w->n ? grain : w->n - begin);
    }
    (void)parallel; /* unused without OpenMP */
}

/* Run the row function over everything. Pad lanes are not visited. */
static inline void walk_run(const struct walk *plan, walk_row *row, const void *arg)
{
    struct walk w = *plan;
    if (w.lanes < 0 || !walk_aligned(&w)) {
        walk_part(&w, row, arg);
        return;
    }
    int64_t blocks = plan->axis[plan->lanes].n / plan->vector;
    int64_t rest = plan->axis[plan->lanes].n % plan->vector;
    for (int k = 0; k < w.operands; k++)
        w.step[k] = walk_lane_step(plan, k);
    struct walk tail = w;
    struct walk_axis *a = &w.axis[w.lanes], *last = &tail.axis[w.lanes];
    w.n = plan->vector;
    a->n = blocks;
    a->every = plan->vector;
    walk_part(&w, row, arg);
    tail.n = rest;
    last->n = rest > 0;
    for (int k = 0; k < tail.operands; k++)
        last->at[k] += blocks * plan->vector;
    walk_part(&tail, row, arg);
}

/* ---- FP32 rows ---- */

#define WALK_ROW 512 /* elements of a row function's buffers */

/* n <= WALK_ROW elements as FP32: the tensor's own memory where that is what they are,
 * else `buffer`. */
static inline const float *walk_load(const strata_tensor *t, int64_t offset, int64_t step,
                                     int64_t n, float *buffer)
{
    if (step == 1 && t->dtype == STRATA_FP32)
        return (const float *)t->data + offset;
    element_load_row(buffer, t->data, t->dtype, offset, step, n);
    return buffer;
}

/* Where to write n results: the tensor's own memory, or `buffer`; then walk_stored. */
static inline float *walk_target(const strata_tensor *t, int64_t offset, int64_t step,
                                 float *buffer)
{
    return step == 1 && t->dtype == STRATA_FP32 ? (float *)t->data + offset : buffer;
}

static inline void walk_stored(const strata_tensor *t, int64_t offset, int64_t step,
                               const float *row, const float *buffer, int64_t n)
{
    if (row == buffer)
        element_store_row(t->data, t->dtype, offset, step, buffer, n);
}

/* ---- copies ---- */

/* Copying: operand 0 is written, operand 1 read; elements of `size` bytes. */
struct walk_copy {
    char *to;
    const char *from;
    size_t size; /* bytes of an element: 1, 2, 4 or 8 */
};

static inline __attribute__((always_inline)) void
walk_copy_sized(const struct walk_copy *c, const struct walk *w, const int64_t *base,
                int64_t n, size_t size)
{
    const struct walk_axis *inner = walk_inner(w);
    int64_t step = (int64_t)size, to_step = w->step[0] * step;
    int64_t from_step = w->step[1] * step;
    char *to_base = c->to + base[0] * step;
    const char *from_base = c->from + base[1] * step;
    for (int64_t i = 0; i < inner->n; i++) {
        char *to = to_base + inner->at[0][i * inner->every] * step;
        const char *from = from_base + inner->at[1][i * inner->every] * step;
        if (n == 1)
            memcpy(to, from, size);
        else if (to_step == step && from_step == step)
            memcpy(to, from, (size_t)n * size);
        else
            for (int64_t j = 0; j < n; j++)
                memcpy(to + j * to_step, from + j * from_step, size);
    }
}

static inline void walk_copy_row(const void *arg, const struct walk *w,
                                 const int64_t *base, int64_t n)
{
    const struct walk_copy *c = arg;
    if (c->size == 1)
        walk_copy_sized(c, w, base, n, 1);
    else if (c->size == 2)
        walk_copy_sized(c, w, base, n, 2);
    else if (c->size == 4)
        walk_copy_sized(c, w, base, n, 4);
    else
        walk_copy_sized(c, w, base, n, 8);
}

static inline size_t walk_element_size(int32_t dtype)
{
    return dtype_size(dtype);
}

static inline void walk_copy(const struct walk *w, const strata_tensor *to,
                             const strata_tensor *from)
{
    struct walk_copy c = {to->data, from->data, walk_element_size(to->dtype)};
    walk_run(w, walk_copy_row, &c);
}

/* Write zero into the pad lanes of a dense tensor. */
static inline void walk_clear_pads(const strata_tensor *t)
{
    if (t->vector <= 1 || t->rank < 2 || t->dims[1] % t->vector == 0)
        return;
    int64_t used = t->dims[1] % t->vector, last = t->dims[1] / t->vector * t->strides[1];
    int64_t step = t->rank > 2 ? t->strides[t->rank - 1] : 0, positions = 1;
    size_t size = walk_element_size(t->dtype);
    for (int d = 2; d < t->rank; d++)
        positions *= t->dims[d];
    for (int64_t n = 0; n < t->dims[0]; n++)
        for (int64_t i = 0; i < positions; i++)
            memset((char *)t->data +
                       size * (size_t)(n * t->strides[0] + last + used + i * step),
                   0, size * (size_t)(t->vector - used));
}

#endif /* PLUGINS_COMMON_WALK_H */
