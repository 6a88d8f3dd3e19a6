/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottleneck: channels are reduced (1x1), convolved together, and projected (1x1), each
 * with its bias and activation; a second input is added before the last one, or another
 * product (1x1) of the input. A plan makes it of the layers that are such a block, and
 * what is between need not be written.
 */
#include "plugins/bottleneck/shape.h"
#include "plugins/common/stages/run.h"

static int stages_of(const strata_node *n, struct stages *s)
{
    const strata_bottleneck *p = n->params;
    struct bottleneck_shape shape = {0};
    const int status = bottleneck_resolve(n, &shape);
    if (status != STRATA_OK)
        return status;
    *s = (struct stages){.channels = shape.channels,
                         .before = shape.reduced,
                         .behind = shape.convolved,
                         .results = shape.results,
                         .groups = 1,
                         .first = true,
                         .last = true,
                         .shortcut = shape.shortcut,
                         .w = shape.w};
    stages_activate(s, p->activation, p->alpha, p->beta);
    return STRATA_OK;
}

/* ---- tables ---------------------------------------------------------------------- */

#define RESULTS(field, of, otherwise)                                                    \
    {                                                                                    \
        .name = #field, .type = STRATA_I64,                                              \
        .offset = offsetof(strata_bottleneck, field), .max = INT32_MAX,                  \
        .doc = "results of " of "; 0: from its weight" otherwise                         \
    }

static const strata_attr attrs[] = {
    RESULTS(reduced, "the first product", ""),
    RESULTS(convolved, "the windows", ", or as many as are reduced"),
    RESULTS(projected, "the second product", ", or as many as x has"),
    WINDOW_ATTRS(strata_convolution, /* which is the first member */
                 "window size, one value or one per spatial dim; empty: from the weight",
                 "zeros around what is reduced"),
    STAGE_ATTRS(strata_bottleneck, STRATA_BOTTLENECK_REDUCED, "reduced"),
    STAGE_ATTRS(strata_bottleneck, STRATA_BOTTLENECK_CONVOLVED, "convolved"),
    STAGE_ATTRS(strata_bottleneck, STRATA_BOTTLENECK_PROJECTED, "projected"),
};

static const strata_weight weights[] = {
    {.name = "reduce", .flags = STRATA_REQUIRED, .rank = 2, .doc = "reduced x channels"},
    {.name = "reduce_bias", .rank = 1, .doc = "reduced"},
    {.name = "windows",
     .flags = STRATA_REQUIRED,
     .rank = 4,
     .doc = "convolved x reduced x kernel"},
    {.name = "windows_bias", .rank = 1, .doc = "convolved"},
    {.name = "project",
     .flags = STRATA_REQUIRED,
     .rank = 2,
     .doc = "projected x convolved"},
    {.name = "project_bias", .rank = 1, .doc = "projected"},
    {.name = "shortcut",
     .rank = 2,
     .doc = "projected x channels: a product of x, added in place of a second input"},
    {.name = "shortcut_bias", .rank = 1, .doc = "projected"},
};

static const strata_layer bottleneck = {
    STAGES_LAYER,
    .name = "Bottleneck",
    .doc = "Channels reduced, convolved together and projected, in one pass.",
    .params_size = sizeof(strata_bottleneck),
};

static const strata_layer *const layers[] = {&bottleneck};
STRATA_MODULE("core", "1.0.0", "Bottleneck", layers)
