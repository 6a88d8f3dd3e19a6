/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution on CUDA: the table of kernels, one tactic each.
 */
#include "plugins/convolution/cuda/convolution.cuh"
#include "plugins/convolution/cuda/hopper.cuh"
#include "plugins/convolution/cuda/plain.cuh"
#include "plugins/convolution/cuda/stem/float.cuh"
#include "plugins/convolution/cuda/turned.cuh"

static const strata_row direct_rows[] = {
    {{CUDA_FLOATS}, {STRATA_SAME}},
    {{STRATA_F32_NCHW}, {STRATA_F16_NHWC8}},
    {{STRATA_F16_NCHW}, {STRATA_F16_NHWC8}},
};
static const strata_row same_rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};
static const strata_row stem_rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW}, {STRATA_F16_NHWC8 | STRATA_F16_NHWC}},
};
static const strata_row stem_float_rows[] = {
    {{STRATA_F32_NCHW}, {STRATA_F32_NHWC | STRATA_F32_NCHW}},
};
static const strata_row gemm_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC}, {STRATA_SAME}},
};

static const strata_row hopper_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_BF16_NHWC8 | STRATA_BF16_NHWC |
      STRATA_F32_NHWC},
     {STRATA_SAME}},
};
static const strata_row plain_rows[] = {{{STRATA_F32_NHWC}, {STRATA_SAME}}};

int reach_accept(const strata_node *n);
CONVOLUTION_TACTIC(reach)
static const strata_row reach_rows[] = {{{STRATA_F16_NHWC8}, {STRATA_SAME}}};

static const strata_row turned_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_BF16_NHWC8 | STRATA_BF16_NHWC},
     {STRATA_SAME}},
};

HOPPER_EACH(HOPPER_CALLBACKS)
PLAIN_EACH(PLAIN_CALLBACKS)
TURNED_EACH(TURNED_CALLBACKS)

#define HOPPER_FIRST 60 /* id */
#define HOPPER_IMPL(name_)                                                               \
    COPIED_IMPL(HOPPER_FIRST + HOPPER_##name_, "hopper_" #name_, hopper_##name_,         \
                hopper_rows),
#define PLAIN_FIRST 90
#define PLAIN_IMPL(name_)                                                                \
    COPIED_IMPL(PLAIN_FIRST + PLAIN_##name_, "plain_" #name_, plain_##name_, plain_rows),
#define TURNED_FIRST 100
#define TURNED_IMPL(name_)                                                               \
    COPIED_IMPL(TURNED_FIRST + TURNED_##name_, "turned_" #name_, turned_##name_,         \
                turned_rows),
/* Fed by the copy engine. */
#define COPIED_IMPL(id_, name_, tactic, rows_)                                                 \
    {.id = id_,                                                                          \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT |            \
              STRATA_PITCHED_RESIDUAL,                                                   \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .epilogues = CONVOLUTION_EPILOGUES,                                                 \
     .name = name_,                                                                      \
     .rows = STRATA_ARRAY(rows_),                                                        \
     .activations = CUDA_ALL_ACTIVATIONS,                                                \
     .efficiency = 0.5,                                                                  \
     .state_size = sizeof(convolution_state),                                            \
     .accept = tactic##_accept,                                                          \
     .setup = tactic##_setup,                                                            \
     .run = tactic##_run}

#define GEMM_IMPL(...) GEMM_IMPL_OF(gemm_accept, __VA_ARGS__)
#define GEMM_IMPL_OF(accept_, id_, name_, tactic, sm, last_sm, share)                    \
    {                                                                                    \
        .id = id_, .device = STRATA_CUDA,                                                \
        .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,          \
        .min_sm = sm, .max_sm = last_sm, .epilogues = CONVOLUTION_EPILOGUES,             \
        .name = name_,                                                                   \
        .rows = STRATA_ARRAY(gemm_rows), .activations = CUDA_ALL_ACTIVATIONS,            \
        .efficiency = share, .state_size = sizeof(convolution_state),                    \
        .accept = accept_, .setup = tactic##_setup, .run = tactic##_run                  \
    }

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT |
              STRATA_PITCHED_RESIDUAL | STRATA_WEIGHT_PACKED,
     .epilogues = CONVOLUTION_EPILOGUES,
     .name = "direct",
     .rows = STRATA_ARRAY(direct_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.005, /* of halves: their peak is that of tensor cores */
     .state_size = sizeof(convolution_state),
     .setup = direct_setup,
     .run = direct_run},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .epilogues = CONVOLUTION_EPILOGUES,
     .name = "depthwise",
     .rows = STRATA_ARRAY(same_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.8,
     .state_size = sizeof(convolution_state),
     .accept = depthwise_accept,
     .setup = depthwise_setup,
     .run = depthwise_run},
    {.id = 5,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .epilogues = CONVOLUTION_EPILOGUES,
     .name = "depthwise_narrow",
     .rows = STRATA_ARRAY(same_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.7,
     .state_size = sizeof(convolution_state),
     .accept = depthwise_narrow_accept,
     .setup = depthwise_setup,
     .run = depthwise_narrow_run},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_ROUNDS_IN,
     .min_sm = 80,
     .epilogues = CONVOLUTION_EPILOGUES & ~STRATA_EPILOGUE_RESIDUAL,
     .name = "stem",
     .rows = STRATA_ARRAY(stem_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.3,
     .state_size = sizeof(convolution_state),
     .accept = stem_accept,
     .setup = stem_setup,
     .run = stem_run},
    {.id = 6,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_ROUNDS_IN,
     .min_sm = 80,
     .epilogues = CONVOLUTION_EPILOGUES & ~STRATA_EPILOGUE_RESIDUAL,
     .name = "stem_ahead",
     .rows = STRATA_ARRAY(stem_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.4,
     .state_size = sizeof(convolution_state),
     .accept = stem_ahead_accept,
     .setup = stem_ahead_setup,
     .run = stem_ahead_run},
    {.id = 7,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_ROUNDS_IN,
     .min_sm = 90,
     .max_sm = 90,
     .epilogues = CONVOLUTION_EPILOGUES & ~STRATA_EPILOGUE_RESIDUAL,
     .name = "stem_wgmma",
     .rows = STRATA_ARRAY(stem_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.7,
     .state_size = sizeof(convolution_state),
     .accept = stem_wgmma_accept,
     .setup = stem_wgmma_setup,
     .run = stem_wgmma_run},
    {.id = 8,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .min_sm = 90,
     .max_sm = 90,
     .epilogues = CONVOLUTION_EPILOGUES & ~STRATA_EPILOGUE_RESIDUAL,
     .name = "stem_tf32",
     .rows = STRATA_ARRAY(stem_float_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.7,
     .state_size = sizeof(convolution_state),
     .accept = stem_tf32_accept,
     .setup = stem_tf32_setup,
     .run = stem_tf32_run},
    {.id = 9,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .min_sm = 80,
     .epilogues = CONVOLUTION_EPILOGUES & ~STRATA_EPILOGUE_RESIDUAL,
     .name = "stem_plain",
     .rows = STRATA_ARRAY(stem_float_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.6,
     .state_size = sizeof(convolution_state),
     .accept = stem_plain_accept,
     .setup = stem_plain_setup,
     .run = stem_plain_run},
    {.id = 4,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_STRIDED_OUT | STRATA_PITCHED_RESIDUAL |
              STRATA_WEIGHT_PACKED,
     .epilogues = CONVOLUTION_EPILOGUES,
     .name = "simt",
     .rows = STRATA_ARRAY(same_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.05, /* of halves, as above */
     .state_size = sizeof(convolution_state),
     .accept = simt_accept,
     .setup = simt_setup,
     .run = simt_run},
    GEMM_IMPL(10, "mma_128x128", mma_128x128, 80, 0, 0.45),
    GEMM_IMPL(11, "mma_128x64", mma_128x64, 80, 0, 0.40),
    GEMM_IMPL(12, "mma_64x64", mma_64x64, 80, 0, 0.35),
    GEMM_IMPL(13, "mma_256x64", mma_256x64, 80, 0, 0.40),
    GEMM_IMPL(14, "mma_64x32_split", mma_64x32, 90, 0, 0.25),
    GEMM_IMPL(15, "mma_64x64_split", mma_split, 90, 0, 0.25),
    GEMM_IMPL(20, "wgmma_128x256", wgmma_128x256, 90, 90, 0.6),
    GEMM_IMPL(21, "wgmma_256x128", wgmma_256x128, 90, 90, 0.6),
    GEMM_IMPL(22, "wgmma_128x128", wgmma_128x128, 90, 90, 0.55),
    GEMM_IMPL(23, "wgmma_128x64", wgmma_128x64, 90, 90, 0.5),
    GEMM_IMPL(24, "wgmma_64x64", wgmma_64x64, 90, 90, 0.4),
    GEMM_IMPL(30, "mma_128x128w", mma_128x128w, 80, 0, 0.5),
    GEMM_IMPL(31, "mma_128x64w", mma_128x64w, 80, 0, 0.5),
    GEMM_IMPL(32, "mma_64x64w", mma_64x64w, 80, 0, 0.5),
    GEMM_IMPL(33, "mma_64x128w", mma_64x128w, 80, 0, 0.5),
    GEMM_IMPL(34, "wgmma_128x256w", wgmma_128x256w, 90, 90, 0.5),
    GEMM_IMPL(35, "wgmma_256x128w", wgmma_256x128w, 90, 90, 0.5),
    GEMM_IMPL(36, "wgmma_128x128w", wgmma_128x128w, 90, 90, 0.5),
    GEMM_IMPL(37, "wgmma_128x64w", wgmma_128x64w, 90, 90, 0.5),
    GEMM_IMPL(38, "wgmma_64x64w", wgmma_64x64w, 90, 90, 0.5),
    GEMM_IMPL(39, "wgmma_64x128w", wgmma_64x128w, 90, 90, 0.5),
    GEMM_IMPL(40, "wgmma_256x64w", wgmma_256x64w, 90, 90, 0.5),
    GEMM_IMPL_OF(gemm_deep_accept, 50, "wgmma_128x256d", wgmma_128x256d, 90, 90, 0.55),
    GEMM_IMPL_OF(gemm_deep_accept, 51, "wgmma_256x128d", wgmma_256x128d, 90, 90, 0.55),
    GEMM_IMPL_OF(gemm_deep_accept, 52, "wgmma_128x128d", wgmma_128x128d, 90, 90, 0.5),
    GEMM_IMPL_OF(gemm_deep_accept, 53, "wgmma_128x64d", wgmma_128x64d, 90, 90, 0.45),
    HOPPER_EACH(HOPPER_IMPL)
    PLAIN_EACH(PLAIN_IMPL)
    TURNED_EACH(TURNED_IMPL)
    COPIED_IMPL(80, "patch_64", patch_64, hopper_rows),
    COPIED_IMPL(81, "patch_32", patch_32, hopper_rows),
    COPIED_IMPL(82, "reach", reach, reach_rows),
};

static const strata_extends convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Convolution",
    .params_size = sizeof(strata_convolution),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&convolution};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Convolution", extends)
