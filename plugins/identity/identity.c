/* SPDX-License-Identifier: Apache-2.0
 *
 * Identity: y = x, in any format; may run in place, and then moves nothing.
 */
#include <strata/layers.h>

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

#define CHUNK ((size_t)1 << 20) /* bytes one thread copies at once */

static int identity_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    size_t bytes = (size_t)y->size * walk_element_size(y->dtype);
    char *to = y->data;
    const char *from = x->data;
#pragma omp parallel for schedule(static) if (bytes > CHUNK && to != from)
    for (size_t at = 0; at < bytes; at += CHUNK)
        if (to != from)
            memcpy(to + at, from + at, bytes - at < CHUNK ? bytes - at : CHUNK);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* Values of any dtype are 8 bytes here. */
static int identity_reference(const strata_node *n, const void *const *in,
                              const void *const *weight, void *const *out)
{
    (void)weight;
    memcpy(out[0], in[0], (size_t)dense_count(&n->out[0]) * sizeof(int64_t));
    return STRATA_OK;
}

static const void *identity_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     identity_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_row rows[] = {{{WALK_ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 1,
     .bandwidth = 0.9,
     .run = identity_run},
};

static const strata_layer identity = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Identity",
    .doc = "The input, unchanged",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
    .flops = walk_no_flops,
    .extension = identity_extension,
};

static const strata_layer *const layers[] = {&identity};
STRATA_MODULE("core", "1.0.0", "Identity", layers)
