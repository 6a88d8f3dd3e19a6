/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution on CUDA: the table of kernels, one tactic each.
 */
#include "plugins/deconvolution/cuda/deconvolution.cuh"
#include "plugins/deconvolution/cuda/hopper.cuh"

static const strata_row direct_rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};
static const strata_row phases_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC}, {STRATA_SAME}},
};

static const strata_row hopper_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_BF16_NHWC8 | STRATA_BF16_NHWC},
     {STRATA_SAME}},
};

HOPPER_EACH(HOPPER_CALLBACKS)

#define HOPPER_FIRST 40 /* id */
#define HOPPER_IMPL(name_)                                                               \
    {.id = HOPPER_FIRST + HOPPER_##name_,                                                \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,             \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .epilogues = CONVOLUTION_EPILOGUES & ~STRATA_EPILOGUE_RESIDUAL,                     \
     .name = "hopper_" #name_,                                                           \
     .rows = STRATA_ARRAY(hopper_rows),                                                  \
     .activations = CUDA_ALL_ACTIVATIONS,                                                \
     .efficiency = 0.6,                                                                  \
     .state_size = sizeof(sides_state),                                                  \
     .accept = hopper_##name_##_accept,                                                  \
     .setup = hopper_##name_##_setup,                                                    \
     .run = hopper_##name_##_run},

#define PHASES_IMPL(id_, name_, tactic, share)                                           \
    {                                                                                    \
        .id = id_, .device = STRATA_CUDA, .flags = STRATA_WEIGHT_PACKED, .min_sm = 90,   \
        .max_sm = 90, .epilogues = CONVOLUTION_EPILOGUES, .name = name_,                 \
        .rows = STRATA_ARRAY(phases_rows), .activations = CUDA_ALL_ACTIVATIONS,          \
        .efficiency = share, .state_size = sizeof(convolution_state),                    \
        .accept = phases_accept, .setup = tactic##_setup, .run = tactic##_run            \
    }

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_WEIGHT_PACKED,
     .epilogues = CONVOLUTION_EPILOGUES,
     .name = "direct",
     .rows = STRATA_ARRAY(direct_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.005, /* of halves: their peak is that of tensor cores */
     .state_size = sizeof(convolution_state),
     .setup = transposed_direct_setup,
     .run = transposed_direct_run},
    PHASES_IMPL(20, "wgmma_256x128", phases_256x128, 0.55),
    PHASES_IMPL(21, "wgmma_128x256", phases_128x256, 0.55),
    PHASES_IMPL(22, "wgmma_128x128", phases_128x128, 0.5),
    PHASES_IMPL(23, "wgmma_128x64", phases_128x64, 0.45),
    PHASES_IMPL(24, "wgmma_64x64", phases_64x64, 0.4),
    HOPPER_EACH(HOPPER_IMPL)};

static const strata_extends deconvolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Deconvolution",
    .params_size = sizeof(strata_deconvolution),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&deconvolution};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Deconvolution", extends)
