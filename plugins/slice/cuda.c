/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice on CUDA: a copy an output, whose input side has steps of its own; as many in a
 * launch as its parameters hold.
 */
#include <strata/layers.h>

#include "plugins/common/move/move.h"
#include "plugins/slice/slice.h"

static void move_output(const strata_run *r, int port, void *user, struct move_job *job)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[port];
    struct slice_range ranges[STRATA_MAX_RANK];
    (void)user;
    slice_ranges(r->params, r->in, port, ranges);
    move_begin(job, y, x);
    for (int32_t d = 0; d < y->rank; d++)
        move_dim(job, d, y, 0, x, ranges[d].begin, ranges[d].step, y->dims[d]);
}

static int slice_run(const strata_run *r)
{
    int status = move_all(r, r->n_out, move_output, NULL);
    for (int32_t port = 0; port < r->n_out && status == STRATA_OK; port++)
        if (r->out[port].count > 0)
            status = move_clear_pads(r, &r->out[port]);
    return status;
}

static const strata_row rows[] = {{{MOVE_FORMATS, MOVE_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
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
