/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation on CUDA: an input is a launch, in order, since channels moved in whole
 * vectors may leave lanes that belong to the next input.
 */
#include <strata/layers.h>

#include "plugins/common/move/move.h"
#include "plugins/concatenation/concatenation.h"

static int concatenation_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    const int32_t axis = concatenation_axis(r->params, y->rank);
    int64_t begin = 0;
    int status = STRATA_OK;
    for (int32_t k = 0; k < r->n_in && status == STRATA_OK; k++) {
        const strata_tensor *x = &r->in[k];
        struct move_job job;
        move_begin(&job, y, x);
        for (int32_t d = 0; d < y->rank; d++)
            move_dim(&job, d, y, d == axis ? begin : 0, x, 0, 1, x->dims[d]);
        status = move_launch(r, &job);
        begin += x->dims[axis];
    }
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static const strata_row rows[] = {{{MOVE_FORMATS, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = concatenation_run},
};

static const strata_extends concatenation = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Concatenation",
    .params_size = sizeof(strata_concatenation),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&concatenation};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Concatenation", extends)
