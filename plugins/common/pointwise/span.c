/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans: axes from tensors, joined and run.
 */
#include "plugins/common/pointwise/span.h"

#include <string.h>

#define SPAN_PARALLEL (1 << 15) /* elements below which threads do not pay */
#define SPAN_ITEM 16384         /* elements that a thread takes at once */

/* Steps of an operand along dim d of the output: between blocks of `vector` and between
 * lanes, which are all where the output has no vectors there. */
static void span_steps(const strata_tensor *out, const strata_tensor *t, int d,
                       int64_t *block, int64_t *lane)
{
    const int own = d - (out->rank - t->rank);
    const int64_t vector = d == out->vector_dim ? out->vector : 1;
    *block = *lane = 0;
    if (own < 0 || (t->dims[own] == 1 && out->dims[d] != 1))
        return;
    const int same = t->vector > 1 && own == t->vector_dim;
    *lane = same ? 1 : t->strides[own];
    *block = same ? t->strides[own] : t->strides[own] * vector;
}

/* Keep the axes in the order of the output's memory, outermost first. */
static void span_insert(struct span *s, const struct span_axis *a)
{
    int at = s->axes++;
    for (; at > 0 && s->axis[at - 1].step[0] < a->step[0]; at--)
        s->axis[at] = s->axis[at - 1];
    s->axis[at] = *a;
}

/* The axes of the blocks (`rest` 0) or of the lanes past the last whole one. */
static void span_axes(struct span *s, const strata_tensor *const *operand, int operands,
                      int rest)
{
    const strata_tensor *out = operand[0];
    memset(s, 0, sizeof *s);
    s->operands = operands;
    for (int d = 0; d < out->rank; d++) {
        const int blocked = out->vector > 1 && d == out->vector_dim;
        const int64_t whole = blocked ? out->dims[d] / out->vector : out->dims[d];
        struct span_axis blocks = {.n = rest && blocked ? 1 : whole}, lanes = {.n = 1};
        if (blocked)
            lanes.n = rest ? out->dims[d] % out->vector : out->vector;
        for (int k = 0; k < operands; k++) {
            span_steps(out, operand[k], d, &blocks.step[k], &lanes.step[k]);
            if (rest && blocked)
                s->base[k] += whole * blocks.step[k];
        }
        if (blocks.n != 1)
            span_insert(s, &blocks);
        if (lanes.n != 1)
            span_insert(s, &lanes);
    }
}

static int span_joins(const struct span *s, const struct span_axis *outer,
                      const struct span_axis *inner)
{
    for (int k = 0; k < s->operands; k++)
        if (outer->step[k] != inner->n * inner->step[k])
            return 0;
    return 1;
}

/* Join neighbours, and have at least two axes, of which those that miss are of one. */
static void span_join(struct span *s)
{
    int last = 0;
    for (int i = 1; i < s->axes; i++)
        if (span_joins(s, &s->axis[last], &s->axis[i])) {
            const int64_t n = s->axis[last].n;
            s->axis[last] = s->axis[i];
            s->axis[last].n *= n;
        } else {
            s->axis[++last] = s->axis[i];
        }
    s->axes = s->axes > 0 ? last + 1 : 0;
    for (; s->axes < 2; s->axes++) {
        memmove(s->axis + 1, s->axis, (size_t)s->axes * sizeof *s->axis);
        s->axis[0] = (struct span_axis){.n = 1};
    }
}

/* The inner run is long enough alone: give the outer of the two to the loops outside. */
static void span_split(struct span *s, int64_t most)
{
    if (s->axis[s->axes - 1].n * 2 <= most || s->axis[s->axes - 2].n == 1)
        return;
    s->axis[s->axes] = s->axis[s->axes - 1];
    s->axis[s->axes - 1] = (struct span_axis){.n = 1};
    s->axes++;
}

struct span_call {
    const struct span *span;
    span_tile *tile;
    const void *arg;
    int64_t most;
};

/* Positions [begin, end) of the axis that is divided, in tiles. */
static void span_item(const struct span_call *c, int64_t position, int64_t begin,
                      int64_t end)
{
    const struct span *s = c->span;
    const struct span_axis *outer = &s->axis[s->axes - 2], *inner = outer + 1;
    const int long_run = outer->n == 1;
    const int64_t part = long_run ? c->most : c->most / inner->n;
    int64_t from[SPAN_OPERANDS], base[SPAN_OPERANDS];
    memcpy(from, s->base, sizeof from);
    for (int d = s->axes - 3; d >= 0; d--) {
        const int64_t outside = d > 0 ? position / s->axis[d].n : 0; /* slow, so few */
        const int64_t at = position - outside * s->axis[d].n;
        for (int k = 0; k < s->operands; k++)
            from[k] += at * s->axis[d].step[k];
        position = outside;
    }
    for (int64_t i = begin; i < end; i += part) {
        const int64_t n = end - i < part ? end - i : part;
        const struct span_axis *along = long_run ? inner : outer;
        for (int k = 0; k < s->operands; k++)
            base[k] = from[k] + i * along->step[k];
        c->tile(c->arg, outer, inner, base, long_run ? 1 : n, long_run ? n : inner->n);
    }
}

static void span_all(const struct span_call *c)
{
    const struct span *s = c->span;
    const struct span_axis *outer = &s->axis[s->axes - 2], *inner = outer + 1;
    const int64_t length = outer->n == 1 ? inner->n : outer->n;
    const int64_t width = outer->n == 1 ? 1 : inner->n;
    int64_t grain = SPAN_ITEM / width > 0 ? SPAN_ITEM / width : 1, positions = 1;
    for (int d = 0; d < s->axes - 2; d++)
        positions *= s->axis[d].n;
    const int64_t chunks = (length + grain - 1) / grain, items = positions * chunks;
    const int parallel = positions * length * width >= SPAN_PARALLEL;
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t item = 0; item < items; item++) {
        const int64_t position = positions == 1 ? 0 : chunks == 1 ? item : item / chunks;
        const int64_t begin = (item - position * chunks) * grain;
        span_item(c, position, begin, begin + grain < length ? begin + grain : length);
    }
    (void)parallel; /* unused without OpenMP */
}

void span_run(const strata_tensor *const *operand, int operands, int64_t most,
              span_tile *tile, const void *arg)
{
    const strata_tensor *out = operand[0];
    const int blocked = out->vector > 1;
    for (int rest = 0; rest < 1 + blocked; rest++) {
        struct span s;
        struct span_call call = {&s, tile, arg, most};
        int empty = 0;
        if (rest && out->dims[out->vector_dim] % out->vector == 0)
            continue;
        if (!rest && blocked && out->dims[out->vector_dim] < out->vector)
            continue;
        span_axes(&s, operand, operands, rest);
        for (int d = 0; d < s.axes; d++)
            empty |= s.axis[d].n == 0;
        if (empty)
            continue;
        span_join(&s);
        span_split(&s, most);
        span_all(&call);
    }
}
