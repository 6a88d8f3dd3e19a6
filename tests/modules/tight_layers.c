/* SPDX-License-Identifier: Apache-2.0
 *
 * Tight: the identity by an impl that has no memory for an output inside a larger tensor,
 * of which it gives no reason.
 */
#include <strata/plugin.h>

#include <string.h>

static int accept(const strata_node *n)
{
    const strata_tensor *y = &n->out[0];
    return y->strides[0] > y->dims[1] * y->strides[1] ? STRATA_ENOMEM : STRATA_OK;
}

static int run(const strata_run *r)
{
    memcpy(r->out[0].data, r->in[0].data, (size_t)r->in[0].size * sizeof(float));
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_impl impls[] = {
    {.id = 1,
     .name = "tight",
     .flags = STRATA_PITCHED_OUT,
     .rows = STRATA_ARRAY(rows),
     .accept = accept,
     .run = run},
};
static const strata_layer tight = {.struct_size = sizeof(strata_layer),
                                   .version = 1,
                                   .name = "Tight",
                                   .doc = "The identity.",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .n_out = 1,
                                   .impls = STRATA_ARRAY(impls)};
static const strata_layer *const layers[] = {&tight};
STRATA_MODULE("test.tight", "1.0.0", "Tight", layers)
