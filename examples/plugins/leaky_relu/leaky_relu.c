/* SPDX-License-Identifier: Apache-2.0 */ /* clang-format off */
#include <strata/plugin.h>
typedef struct { double slope; } params;

static int run(const strata_run *r)
{
    const params *p = r->params;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    for (int64_t i = 0; i < r->out[0].count; i++)
        y[i] = x[i] > 0 ? x[i] : (float)p->slope * x[i];
    return STRATA_OK;
}
static const strata_attr attrs[] = {
    {.name = "slope", .type = STRATA_F64, .offset = offsetof(params, slope),
     .def = 0.01, .min = 0, .max = 1, .doc = "factor for negative inputs"},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .name = "c", .rows = STRATA_ARRAY(rows), .run = run},
};
static const strata_layer leaky = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "LeakyReLU",
    .doc = "x > 0 ? x : slope*x", .min_in = 1, .max_in = 1, .n_out = 1,
    .params_size = sizeof(params), .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
};
static const strata_layer *const layers[] = {&leaky};
STRATA_MODULE("org.example", "1.0.0", "LeakyReLU", layers)
