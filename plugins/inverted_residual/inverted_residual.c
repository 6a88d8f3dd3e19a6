/* SPDX-License-Identifier: Apache-2.0
 *
 * InvertedResidual: channels are expanded (1x1), convolved one by one, and projected
 * (1x1), each with its bias and activation; either product may be absent. A plan makes it
 * of the layers that are such a block, and what is between need not be written.
 */
#include "plugins/common/stages/run.h"
#include "plugins/inverted_residual/shape.h"

static int stages_of(const strata_node *n, struct stages *s)
{
    const strata_inverted_residual *p = n->params;
    struct inverted_shape shape;
    const int status = inverted_resolve(n, &shape);
    if (status != STRATA_OK)
        return status;
    *s = (struct stages){.channels = shape.channels,
                         .before = shape.middle,
                         .behind = shape.middle,
                         .results = shape.results,
                         .groups = shape.middle,
                         .first = shape.expands,
                         .last = shape.projects,
                         .w = shape.w};
    stages_activate(s, p->activation, p->alpha, p->beta);
    return STRATA_OK;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "expanded",
     .type = STRATA_I64,
     .offset = offsetof(strata_inverted_residual, expanded),
     .max = INT32_MAX,
     .doc = "results of the first product; 0: from its weight, or there is none"},
    {.name = "projected",
     .type = STRATA_I64,
     .offset = offsetof(strata_inverted_residual, projected),
     .max = INT32_MAX,
     .doc = "results of the second product; 0: from its weight, or there is none"},
    WINDOW_ATTRS(strata_convolution, /* which is the first member */
                 "window size, one value or one per spatial dim; empty: from the weight",
                 "zeros around what is expanded"),
    STAGE_ATTRS(strata_inverted_residual, STRATA_INVERTED_EXPANDED, "expanded"),
    STAGE_ATTRS(strata_inverted_residual, STRATA_INVERTED_CONVOLVED, "convolved"),
    STAGE_ATTRS(strata_inverted_residual, STRATA_INVERTED_PROJECTED, "projected"),
};

static const strata_weight weights[] = {
    {.name = "expand", .rank = 2, .doc = "expanded x channels"},
    {.name = "expand_bias", .rank = 1, .doc = "expanded"},
    {.name = "depthwise",
     .flags = STRATA_REQUIRED,
     .rank = 4,
     .doc = "channels x 1 x kernel"},
    {.name = "depthwise_bias", .rank = 1, .doc = "one a channel"},
    {.name = "project", .rank = 2, .doc = "projected x channels between"},
    {.name = "project_bias", .rank = 1, .doc = "projected"},
};

static const strata_layer inverted_residual = {
    STAGES_LAYER,
    .name = "InvertedResidual",
    .doc = "Channels expanded, convolved one by one and projected, in one pass.",
    .params_size = sizeof(strata_inverted_residual),
};

static const strata_layer *const layers[] = {&inverted_residual};
STRATA_MODULE("core", "1.0.0", "InvertedResidual", layers)
