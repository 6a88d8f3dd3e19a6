/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice on CUDA: one copy an output, whose input side has steps of its own.
 */
#include <strata/layers.h>

#include "plugins/common/move/move.h"
#include "plugins/slice/slice.h"

static int slice_port(const strata_run *r, int32_t port)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[port];
    struct slice_range ranges[STRATA_MAX_RANK];
    struct move_job job;
    if (y->count == 0)
        return STRATA_OK;
    slice_ranges(r->params, r->in, port, ranges);
    move_begin(&job, y, x);
    for (int32_t d = 0; d < y->rank; d++)
        move_dim(&job, d, y, 0, x, ranges[d].begin, ranges[d].step, y->dims[d]);
    int status = move_launch(r, &job);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static int slice_run(const strata_run *r)
{
    int status = STRATA_OK;
    for (int32_t port = 0; port < r->n_out && status == STRATA_OK; port++)
        status = slice_port(r, port);
    return status;
}

static const strata_row rows[] = {{{MOVE_FORMATS, MOVE_FORMATS}, {STRATA_SAME}}};

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
