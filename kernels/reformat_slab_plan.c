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
 * on planes of whole 16-byte pieces, and where many channels leave as planes of halves.
 */
static bool slab_wins(const struct request *r)
{
    const enum order to = order_of(r->dst), from = order_of(r->src);
    const bool few = r->dst->rank > 1 && r->dst->dims[1] <= 8;
    int64_t pixels = 1;
    for (int d = 2; d < r->dst->rank; d++)
        pixels *= r->dst->dims[d];
    if (few && from == PLANES && to == LANES)
        return false;
    if (whole(pixels, 8))
        return few ? to != PLANES || (r->to_size == 2 && from == LANES)
                   : to != PLANES && from != LANES;
    return few || to != PLANES || r->to_size != 2;
}

static bool make_slab_as(union job *j, const struct request *r, struct slab_plan plan)
{
    struct request other;
    if (r->dst->rank > 1 && r->dst->dims[1] <= 8) {
        plan.pieces = 2;
        plan.plane_threads = plan.part_threads = 256;
    }
    return reformat_cut_slab(&j->slab, r, &plan) ||
           (reformat_turn(&other, r) && reformat_cut_slab(&j->slab, &other, &plan));
}

#define SLAB_PLAN .pieces = 4, .plane_threads = 512, .part_threads = 256, .rounds = 20

bool reformat_make_slab(union job *j, const struct request *r)
{
    return slab_wins(r) && make_slab_as(j, r, (struct slab_plan){SLAB_PLAN});
}

#define SLAB_VARIANT(name, ...)                                                          \
    bool reformat_make_slab_##name(union job *j, const struct request *r)                \
    {                                                                                    \
        return make_slab_as(j, r, (struct slab_plan){__VA_ARGS__});                      \
    }
SLAB_VARIANT(plain, SLAB_PLAN)
SLAB_VARIANT(128, SLAB_PLAN, .ahead = 128)
SLAB_VARIANT(256, SLAB_PLAN, .ahead = 256)
SLAB_VARIANT(stay, SLAB_PLAN, .ahead = 256, .stays = true)
SLAB_VARIANT(few, .pieces = 4, .plane_threads = 256, .part_threads = 256, .rounds = 20,
             .ahead = 256)
SLAB_VARIANT(fewer, .pieces = 4, .plane_threads = 128, .part_threads = 256, .rounds = 20,
             .ahead = 256)
SLAB_VARIANT(run, .pieces = 4, .plane_threads = 512, .part_threads = 256, .rounds = 6,
             .ahead = 256)
SLAB_VARIANT(more, .pieces = 4, .plane_threads = 512, .part_threads = 320, .rounds = 20,
             .ahead = 256)
SLAB_VARIANT(fold, SLAB_PLAN, .folds = true)
SLAB_VARIANT(fold2, .pieces = 4, .plane_threads = 256, .part_threads = 256, .rounds = 20,
             .folds = true, .ahead = 256)
SLAB_VARIANT(fold3, .pieces = 4, .plane_threads = 128, .part_threads = 256, .rounds = 20,
             .folds = true, .ahead = 256)
