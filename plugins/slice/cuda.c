/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice on CUDA: one copy whose input side has steps of its own.
 */
#include <strata/layers.h>

#include "plugins/common/move/move.h"
#include "plugins/slice/slice.h"

static int slice_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct slice_range ranges[STRATA_MAX_RANK];
    struct move_job job;
    slice_ranges(r->params, x, ranges);
    move_begin(&job, y, x);
    for (int32_t d = 0; d < y->rank; d++)
        move_dim(&job, d, y, 0, x, ranges[d].begin, ranges[d].step, y->dims[d]);
    int status = move_launch(r, &job);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static const strata_row rows[] = {{{MOVE_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = slice_run},
};

static const strata_extends slice = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Slice",
    .params_size = sizeof(strata_slice),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&slice};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Slice", extends)
