/* SPDX-License-Identifier: Apache-2.0
 *
 * Concatenation on CUDA: as many inputs in a launch as its parameters hold.
 */
#include <strata/layers.h>

#include "plugins/common/move/move.h"
#include "plugins/concatenation/concatenation.h"

struct progress {
    int32_t axis;
    int64_t begin; /* of the next input, along the axis */
};

static void move_input(const strata_run *r, int k, void *user, struct move_job *job)
{
    struct progress *p = user;
    const strata_tensor *y = &r->out[0], *x = &r->in[k];
    move_begin(job, y, x);
    for (int32_t d = 0; d < y->rank; d++)
        move_dim(job, d, y, d == p->axis ? p->begin : 0, x, 0, 1, x->dims[d]);
    p->begin += x->dims[p->axis];
}

static int concatenation_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    struct progress p = {concatenation_axis(r->params, y->rank), 0};
    const int status = move_all(r, r->n_in, move_input, &p);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static const strata_row rows[] = {{{MOVE_FORMATS, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
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
