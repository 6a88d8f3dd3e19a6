/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers for a CUDA device that cannot run here, for tests of planning without one. No
 * impl is linked with anything of CUDA.
 */
#include <strata/plugin.h>

static int far_run(const strata_run *r)
{
    return STRATA_FAIL(r, STRATA_EDEVICE, "this device is not here");
}

static const strata_row linear[] = {{{STRATA_F32_NCHW}, {STRATA_F32_NCHW}}};
static const strata_row packed[] = {{{STRATA_F16_NHWC8}, {STRATA_F16_NHWC8}}};

static const strata_impl plain_impls[] = {
    {.id = 1,
     .name = "plain",
     .device = STRATA_CUDA,
     .rows = STRATA_ARRAY(linear),
     .efficiency = 0.5,
     .run = far_run},
};
static const strata_impl dense_impls[] = {
    {.id = 1,
     .name = "volta",
     .device = STRATA_CUDA,
     .min_sm = 70,
     .max_sm = 75,
     .rows = STRATA_ARRAY(linear),
     .efficiency = 0.9,
     .run = far_run},
    {.id = 2,
     .name = "hopper",
     .device = STRATA_CUDA,
     .min_sm = 90,
     .rows = STRATA_ARRAY(packed),
     .efficiency = 0.9,
     .run = far_run},
};
static const strata_layer plain_layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Plain",
    .doc = "The identity, linear.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(plain_impls),
};
static const strata_layer dense_layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Dense",
    .doc = "The identity, in a format for each generation.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .impls = STRATA_ARRAY(dense_impls),
};
static const strata_layer *const layers[] = {&plain_layer, &dense_layer};
STRATA_MODULE("far", "1.0.0", "Plain,Dense", layers)
