/* SPDX-License-Identifier: Apache-2.0
 *
 * Bring a pair of descriptors into the shape of runs or of a panel: write each dim as a
 * loop with its two strides, drop loops of one step, merge neighbours that both sides
 * lay out as one, and see which loop is contiguous on which side.
 */
#include "formats/reformat/kernels.h"

/* Runs shorter than this go through a panel when they make one. */
#define RUN_BYTES 1024

/* A side of the vectorised dim, with equal offset functions written alike. */
struct side {
    int64_t vector; /* 0: channels `block` apart; else lanes 1 apart in vectors */
    int64_t block;
    int64_t padded;
};

static struct side side_of(const strata_desc *d, int dim)
{
    const int64_t extent = d->dims[dim];
    struct side s = {0, d->strides[dim], extent};
    if (dim != d->vector_dim)
        return s;
    const int64_t blocks = (extent + d->vector - 1) / d->vector;
    s.padded = blocks * d->vector;
    if (blocks == 1 || s.block == d->vector)
        s.block = 1; /* one line of neighbours */
    else
        s.vector = d->vector;
    return s;
}

/* Stable, by the stride in dst, largest first. */
static void loops_sort(struct loop *loops, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && loops[j - 1].dst < loops[j].dst; j--) {
            const struct loop swap = loops[j];
            loops[j] = loops[j - 1];
            loops[j - 1] = swap;
        }
}

static int loops_merge(struct loop *loops, int n)
{
    int last = 0;
    loops_sort(loops, n);
    for (int i = 1; i < n; i++) {
        const struct loop inner = loops[i];
        if (loops[last].dst == inner.extent * inner.dst &&
            loops[last].src == inner.extent * inner.src)
            loops[last] =
                (struct loop){loops[last].extent * inner.extent, inner.dst, inner.src};
        else
            loops[++last] = inner;
    }
    return n > 0 ? last + 1 : 0;
}

static void loops_take(struct loop *loops, int *n, int index, struct loop *out)
{
    *out = loops[index];
    for (int i = index + 1; i < *n; i++)
        loops[i - 1] = loops[i];
    --*n;
}

static void loops_add(struct loop *loops, int *n, int64_t extent, int64_t dst,
                      int64_t src)
{
    if (extent > 1)
        loops[(*n)++] = (struct loop){extent, dst, src};
}

bool runs_shape(struct runs *r, const strata_desc *dst, const strata_desc *src)
{
    const int64_t element = (int64_t)strata_dtype_size(dst->dtype);
    *r = (struct runs){.length = 1};
    for (int d = 0; d < dst->rank; d++) {
        const struct side to = side_of(dst, d), from = side_of(src, d);
        const int64_t extent = dst->dims[d];
        if (to.padded > extent || (to.vector != from.vector && extent > 1))
            return false;
        if (to.vector > 0 && extent > 1) {
            loops_add(r->outer, &r->n_outer, to.vector, 1, 1);
            loops_add(r->outer, &r->n_outer, to.padded / to.vector, to.block, from.block);
        } else {
            loops_add(r->outer, &r->n_outer, extent, to.block, from.block);
        }
    }
    const int n = r->n_outer = loops_merge(r->outer, r->n_outer);
    if (n > 0 && r->outer[n - 1].dst == 1 && r->outer[n - 1].src == 1)
        r->length = r->outer[--r->n_outer].extent;
    return r->n_outer == 0 || r->length * element >= RUN_BYTES;
}

/* The loop that is contiguous on a side, or -1. */
static int contiguous(const struct loop *loops, int n, bool in_dst)
{
    for (int i = 0; i < n; i++)
        if ((in_dst ? loops[i].dst : loops[i].src) == 1)
            return i;
    return -1;
}

/* No dim is blocked or padded: the two loops of the panel are contiguous on one side
 * each, or one is on both and the innermost other one gives the pixels. */
static bool panel_plain(struct panel *p)
{
    const int to = contiguous(p->outer, p->n_outer, true);
    const int from = contiguous(p->outer, p->n_outer, false);
    if (to < 0 || from < 0 || p->n_outer < 2)
        return false;
    const int channel = p->outer[to].extent < p->outer[from].extent ? to : from;
    int pixel = channel == to ? from : to;
    if (to == from)
        pixel = to == p->n_outer - 1 ? to - 1 : p->n_outer - 1;
    struct loop c;
    loops_take(p->outer, &p->n_outer, channel, &c);
    loops_take(p->outer, &p->n_outer, pixel > channel ? pixel - 1 : pixel, &p->pixel);
    p->channels = p->padded = c.extent;
    p->dst = (struct lanes){c.dst != 1, c.extent, c.dst};
    p->src = (struct lanes){c.src != 1, c.extent, c.src};
    return true;
}

static struct lanes lanes_of(struct side s)
{
    const bool planar = s.vector == 0 && s.block != 1;
    return (struct lanes){planar, s.vector > 0 ? s.vector : s.padded, s.block};
}

/* The channel dim is blocked or padded: pixels are what the planar side has contiguous,
 * or the innermost loop where neither side is planar. */
static bool panel_vector(struct panel *p, const strata_desc *dst, const strata_desc *src,
                         int dim)
{
    const struct side to = side_of(dst, dim), from = side_of(src, dim);
    p->channels = dst->dims[dim];
    p->padded = to.padded;
    p->dst = lanes_of(to);
    p->src = lanes_of(from);
    p->pixel = (struct loop){1, p->dst.vector, p->src.vector};
    if (p->n_outer == 0)
        return true;
    int pixel = p->n_outer - 1;
    if (p->channels == 1) /* src's stride of channels means nothing */
        p->src.planar = contiguous(p->outer, p->n_outer, false) >= 0;
    if (p->dst.planar || p->src.planar)
        pixel = contiguous(p->outer, p->n_outer, p->dst.planar);
    if (pixel < 0)
        return false;
    loops_take(p->outer, &p->n_outer, pixel, &p->pixel);
    return (!p->dst.planar || p->pixel.dst == 1) && (!p->src.planar || p->pixel.src == 1);
}

bool panel_shape(struct panel *p, const strata_desc *dst, const strata_desc *src)
{
    int special = -1;
    *p = (struct panel){.n_outer = 0};
    for (int d = 0; d < dst->rank; d++) {
        const struct side to = side_of(dst, d), from = side_of(src, d);
        const int64_t extent = dst->dims[d];
        const bool blocked = extent > 1 && (to.vector > 0 || from.vector > 0);
        if (!blocked && to.padded == extent) {
            loops_add(p->outer, &p->n_outer, extent, to.block, from.block);
            continue;
        }
        if (special >= 0)
            return false;
        special = d;
    }
    p->n_outer = loops_merge(p->outer, p->n_outer);
    return special < 0 ? panel_plain(p) : panel_vector(p, dst, src, special);
}
