/* SPDX-License-Identifier: Apache-2.0
 *
 * Padding on CUDA: one pass over the output. A dim that changes has a table, made in setup,
 * of where each of its indices comes from.
 */
#include <strata/layers.h>

#include "plugins/common/fill.h"
#include "plugins/common/move/move.h"
#include "plugins/padding/padding.h"

static int64_t source(const strata_node *n, int d, int64_t i)
{
    const strata_padding *p = n->params;
    const strata_tensor *x = &n->in[0];
    return padding_source(p, d, x->rank, i, x->dims[d]);
}

static int padding_setup(const strata_node *n, void *state)
{
    uint32_t dims = 0;
    const strata_padding *p = n->params;
    for (int32_t d = 0; d < n->in[0].rank; d++)
        if (padding_entry(p->begin, d, n->in[0].rank) ||
            padding_entry(p->end, d, n->in[0].rank))
            dims |= 1u << d;
    return move_make_tables(n, dims, source, state);
}

static int padding_run(const strata_run *r)
{
    const strata_padding *p = r->params;
    const struct move_tables *tables = r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct move_job job;
    move_begin(&job, y, x);
    const uint64_t fill = fill_bits(y->dtype, p->value);
    job.fill = (uint32_t)fill;
    job.fill_upper = (uint32_t)(fill >> 32);
    for (int32_t d = 0; d < y->rank; d++)
        move_table(&job, d, y, x, tables->dim[d]);
    int status = move_launch(r, &job);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static const strata_row rows[] = {{{MOVE_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(struct move_tables),
     .setup = padding_setup,
     .run = padding_run},
};

static const strata_extends padding = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Padding",
    .params_size = sizeof(strata_padding),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&padding};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Padding", extends)
