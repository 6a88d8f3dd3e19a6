/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stage's results pass through on CUDA: two bounds, or a curve.
 */
#ifndef PLUGINS_COMMON_STAGES_TAIL_CUH
#define PLUGINS_COMMON_STAGES_TAIL_CUH

#include <math.h>

#include <strata/layers.h>

enum stage_kind { STAGE_BOUNDS, STAGE_SILU, STAGE_HARD_SWISH };

struct stage_tail {
    int32_t kind;
    float low, high; /* no bounds: infinite */
};

/* Of a stage's params: 0 is none, 1 + STRATA_RELU ... False: no kernel has it. */
static inline bool stage_tail_of(stage_tail *f, int32_t activation, double alpha,
                                 double beta)
{
    const strata_activation a = {activation - 1, 0, alpha, beta};
    *f = {STAGE_BOUNDS, -INFINITY, INFINITY};
    if (activation <= 0)
        return true;
    switch (a.kind) {
    case STRATA_RELU:
        f->low = 0;
        return true;
    case STRATA_RELU6:
        *f = {STAGE_BOUNDS, 0, 6};
        return true;
    case STRATA_CLIP:
        *f = {STAGE_BOUNDS, (float)strata_activation_alpha(&a),
              (float)strata_activation_beta(&a)};
        return f->low <= f->high;
    case STRATA_SILU:
        f->kind = STAGE_SILU;
        return true;
    case STRATA_HARD_SWISH:
        f->kind = STAGE_HARD_SWISH;
        return true;
    default:
        return false;
    }
}

/* Pads of channels stay 0. */
static inline bool stage_keeps_zero(const stage_tail &f)
{
    return f.low <= 0 && f.high >= 0;
}

static const char stage_tails[] =
    "its activations are none, relu, relu6, clip, silu and hard_swish";

#endif /* PLUGINS_COMMON_STAGES_TAIL_CUH */
