/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs the slab kernel takes from the rows below it, and how large its tiles are.
 */
#include "kernels/reformat/slab.h"

enum order slab_order(const strata_desc *d)
{
    if (d->rank > 1 && d->strides[1] == (d->vector_dim == 1 ? d->vector : 1))
        return LANES;
    return d->vector > 1 ? BLOCKS : PLANES;
}

int64_t slab_pixels(const strata_desc *d)
{
    int64_t pixels = 1;
    for (int i = 2; i < d->rank; i++)
        pixels *= d->dims[i];
    return pixels;
}

static bool has_few_channels(const struct request *r)
{
    return r->dst->rank > 1 && r->dst->dims[1] <= 8;
}

/* Where it measured faster than the rows below (docs/log/reformat.md). Those have the
 * edge where planes are written, but for halves out of lanes and for planes of an odd
 * number of four pixels (14x14), and where few planes become lanes. */
static bool wins(const struct request *r)
{
    const enum order to = slab_order(r->dst), from = slab_order(r->src);
    const int64_t pixels = slab_pixels(r->dst);
    if (to != PLANES)
        return !(has_few_channels(r) && from == PLANES && to == LANES);
    if (whole(pixels, 8))
        return r->to_size == 2 && from == LANES;
    return has_few_channels(r) || whole(pixels, 4);
}

/* Gathering element by element loses there. */
static bool must_unweave(const struct request *r)
{
    return r->to_size == 2 && !has_few_channels(r) && slab_order(r->dst) == PLANES &&
           slab_order(r->src) == LANES && !whole(slab_pixels(r->dst), 8);
}

bool reformat_make_slab(union job *j, const struct request *r)
{
    static const struct slab_plan few = {.held = 2, .whole = 8 * 1024, .parts = 8 * 1024};
    /* 64 whole planes of 14x14 floats; 128 pixels of 72 halves. */
    static const struct slab_plan many = {
        .held = 4, .whole = 49 * 1024, .parts = 18 * 1024};
    const struct slab_plan *plan = has_few_channels(r) ? &few : &many;
    struct request other;
    return wins(r) &&
           (reformat_cut_slab(&j->slab, r, plan) ||
            (reformat_turn(&other, r) && reformat_cut_slab(&j->slab, &other, plan))) &&
           (j->slab.form == SLAB_UNWEAVE || !must_unweave(r));
}
