/* SPDX-License-Identifier: Apache-2.0
 * A layer in C++ whose run lets an exception out.
 */
#include <strata/plugin.h>

#include <stdexcept>

static int run(const strata_run *r)
{
    if (r->n_in == 1)
        throw std::runtime_error("no luck");
    return STRATA_OK;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .name = "c", .rows = STRATA_ARRAY(rows), .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Throws",
    .doc = "an exception",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(impls),
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.faulty", "1.0.0", "Throws", layers)
