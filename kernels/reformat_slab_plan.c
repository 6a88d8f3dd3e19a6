/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs the slab kernel takes from the rows below it, and how large its tiles are.
 */
#include "kernels/reformat_request.h"

enum order { PLANES, BLOCKS, LANES }; /* of channels in memory */

static enum order order_of(const strata_desc *d)
{
    if (d->rank > 1 && d->strides[1] == (d->vector_dim == 1 ? d->vector : 1))
        return LANES;
    return d->vector > 1 ? BLOCKS : PLANES;
}

/* Where it measured faster than the rows below (docs/performance.md). Those have the edge
 * on planes, unless they are of halves and come from lanes; of planes that are no whole
 * 16-byte pieces it leaves those that are no whole 8 either. */
static bool slab_wins(const struct request *r)
{
    const enum order to = order_of(r->dst), from = order_of(r->src);
    const bool few = r->dst->rank > 1 && r->dst->dims[1] <= 8;
    int64_t pixels = 1;
    for (int d = 2; d < r->dst->rank; d++)
        pixels *= r->dst->dims[d];
    if (few && from == PLANES && to == LANES)
        return false;
    if (to != PLANES)
        return true;
    if (whole(pixels, 8))
        return r->to_size == 2 && from == LANES;
    return few || (whole(pixels, 4) && (r->to_size != 2 || from == BLOCKS));
}

static bool make_slab_as(union job *j, const struct request *r, struct slab_plan plan)
{
    struct request other;
    if (r->dst->rank > 1 && r->dst->dims[1] <= 8) {
        plan.held = 2;
        plan.whole = plan.parts = 8 * 1024;
    }
    return reformat_cut_slab(&j->slab, r, &plan) ||
           (reformat_turn(&other, r) && reformat_cut_slab(&j->slab, &other, &plan));
}

#define SLAB_PLAN .held = 4, .whole = 52 * 1024, .parts = 18 * 1024 + 512

bool reformat_make_slab(union job *j, const struct request *r)
{
    return slab_wins(r) && make_slab_as(j, r, (struct slab_plan){SLAB_PLAN});
}

bool reformat_make_slab_all(union job *j, const struct request *r)
{
    return make_slab_as(j, r, (struct slab_plan){SLAB_PLAN});
}

bool reformat_make_slab_out(union job *j, const struct request *r)
{
    return make_slab_as(j, r, (struct slab_plan){SLAB_PLAN, .out = true});
}

bool reformat_make_slab_out_half(union job *j, const struct request *r)
{
    return make_slab_as(
        j, r,
        (struct slab_plan){.held = 4,
                           .whole = r->to_size == 4 ? 26 * 1024 : 16 * 1024,
                           .parts = 18 * 1024 + 512,
                           .out = true});
}
