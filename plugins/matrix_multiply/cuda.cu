/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixMultiply on CUDA. simt: a block makes squares of Y from tiles in shared memory, a
 * thread 4 x 4 elements of it, whatever the distances of its operands.
 */
#include "plugins/matrix_multiply/cuda.cuh"
#include "plugins/matrix_multiply/hopper.cuh"
#include "plugins/matrix_multiply/pack.h"

#define SIDE 64    /* of a square */
#define DEPTH 16   /* of k in shared memory */
#define ACROSS 16  /* threads a side */
#define THREADS (ACROSS * ACROSS)
#define EACH (SIDE * DEPTH / THREADS) /* elements of a tile a thread moves */

/* One operand's tile on its way: lines of SIDE, DEPTH of k. Threads go along whichever is
 * side by side in memory. */
template <typename T> struct tile_way {
    const T *from;
    int64_t line, step, lines, k;
    int32_t along_k;
    float held[EACH];

    __device__ inline void start(const void *matrix, int64_t begin, int64_t line_step,
                                 int64_t k_step, int64_t first, int64_t all, int64_t depth)
    {
        from = (const T *)matrix + begin + first * line_step;
        line = line_step;
        step = k_step;
        lines = all - first;
        k = depth;
        along_k = k_step == 1;
    }

    __device__ inline void place(int i, int *at_line, int *at_k) const
    {
        const int e = threadIdx.x + i * THREADS;
        *at_line = along_k ? e / DEPTH : e % SIDE;
        *at_k = along_k ? e % DEPTH : e / SIDE;
    }

    __device__ inline void load(int64_t k0)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int l, d;
            place(i, &l, &d);
            const bool inside = l < lines && k0 + d < k;
            held[i] = inside ? to_float(from[l * line + (k0 + d) * step]) : 0.0f;
        }
    }

    __device__ inline void store(float (*tile)[SIDE + 4]) const
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int l, d;
            place(i, &l, &d);
            tile[d][l] = held[i];
        }
    }
};

template <typename T>
static __device__ inline void simt_square(const matrix_job &j, int64_t batch, int64_t m,
                                          int64_t n)
{
    __shared__ __align__(16) float as[DEPTH][SIDE + 4], bs[DEPTH][SIDE + 4];
    const int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    const matrix_offsets o = offsets_of(j.p, batch);
    const matrix &a = j.p.at[PRODUCT_A], &b = j.p.at[PRODUCT_B];
    tile_way<T> x, y;
    float sum[4][4] = {};
    x.start(j.a, o.at[PRODUCT_A], a.row, a.column, m, j.p.m, j.p.k);
    y.start(j.b, o.at[PRODUCT_B], b.column, b.row, n, j.p.n, j.p.k);
    x.load(0);
    y.load(0);
    for (int64_t k = 0; k < j.p.k; k += DEPTH) {
        __syncthreads();
        x.store(as);
        y.store(bs);
        __syncthreads();
        if (k + DEPTH < j.p.k) {
            x.load(k + DEPTH);
            y.load(k + DEPTH);
        }
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const float4 u = *(const float4 *)&as[d][down * 4];
            const float4 v = *(const float4 *)&bs[d][across * 4];
            const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int l = 0; l < 4; l++)
                    sum[i][l] += us[i] * vs[l];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int l = 0; l < 4; l++)
            if (m + down * 4 + i < j.p.m && n + across * 4 + l < j.p.n)
                store_sum<T>(j, o, m + down * 4 + i, n + across * 4 + l, sum[i][l]);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    simt_kernel(const __grid_constant__ matrix_job j)
{
    const int64_t columns = (j.p.n + SIDE - 1) / SIDE, rows = (j.p.m + SIDE - 1) / SIDE;
    const int64_t squares = columns * rows * j.p.batches;
    wait_for_previous();
    for (int64_t i = blockIdx.x; i < squares; i += gridDim.x)
        simt_square<T>(j, i / columns / rows, i / columns % rows * SIDE,
                       i % columns * SIDE);
}

/* ---- the layer ------------------------------------------------------------------- */

static int simt_setup(const strata_node *n, void *state)
{
    gemv_state *s = (gemv_state *)state;
    void *packed = NULL;
    const int status = matrix_is_constant(n->n_in, n->in)
                           ? matrix_weight_pack(n, 0, &packed)
                           : (int)STRATA_OK;
    s->weight = packed;
    return status;
}

static int simt_run(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    const matrix_job j = matrix_job_of(r, s->weight);
    const int64_t squares =
        (j.p.n + SIDE - 1) / SIDE * ((j.p.m + SIDE - 1) / SIDE) * j.p.batches;
    const unsigned blocks = layer_blocks(squares, 1);
    layer_float(r->out[0].dtype, [&](auto t) {
        simt_kernel<decltype(t)><<<blocks, THREADS, 0, layer_stream(r)>>>(j);
    });
    return layer_launched(r, "matrix_multiply");
}

HOPPER_EACH(HOPPER_CALLBACKS)

#define SAME_ROW(format) {{(format), STRATA_SAME, STRATA_SAME}, {STRATA_SAME}}
#define BYTES (STRATA_I8_NCHW | STRATA_U8_NCHW)

static const strata_row float_rows[] = {
    SAME_ROW(STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)};
/* Floats as TF32. */
static const strata_row hopper_rows[] = {
    SAME_ROW(STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)};
static const strata_row half_rows[] = {SAME_ROW(STRATA_F16_NCHW | STRATA_BF16_NCHW)};
static const strata_row exact_rows[] = {
    {{BYTES, BYTES, STRATA_I32_NCHW}, {STRATA_I32_NCHW}},
    SAME_ROW(STRATA_I32_NCHW),
    SAME_ROW(STRATA_I64_NCHW),
    SAME_ROW(STRATA_F64_NCHW),
};

#define HOPPER_FIRST 5 /* id */
#define EPILOGUES (STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION)

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .epilogues = EPILOGUES,
     .name = "simt",
     .rows = STRATA_ARRAY(float_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.01, /* of halves: their peak is that of tensor cores */
     .state_size = sizeof(gemv_state),
     .setup = simt_setup,
     .run = simt_run,
     .bandwidth = 0.3},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .epilogues = EPILOGUES,
     .name = "gemv",
     .rows = STRATA_ARRAY(float_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.02,
     .state_size = sizeof(gemv_state),
     .accept = gemv_accept,
     .setup = gemv_setup,
     .run = gemv_run,
     .bandwidth = 0.85},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .min_sm = 80,
     .epilogues = EPILOGUES,
     .name = "gemv_mma",
     .rows = STRATA_ARRAY(half_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.2,
     .state_size = sizeof(gemv_state),
     .accept = gemv_mma_accept,
     .setup = gemv_setup,
     .run = gemv_mma_run,
     .bandwidth = 0.9},
    {.id = 4,
     .device = STRATA_CUDA,
     .flags = STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "exact",
     .rows = STRATA_ARRAY(exact_rows),
     .efficiency = 0.005,
     .run = matrix_exact_cuda_run,
     .bandwidth = 0.2},
    {.id = 64, /* after all tactics of the next ones */
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_WEIGHT_STORED,
     .min_sm = 80,
     .epilogues = EPILOGUES,
     .name = "few_bits",
     .rows = STRATA_ARRAY(half_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.02,
     .state_size = sizeof(few_state),
     .accept = few_bits_cuda_accept,
     .setup = few_bits_cuda_setup,
     .run = few_bits_cuda_run,
     .bandwidth = 0.7},
    {.id = 65,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED | STRATA_WEIGHT_STORED,
     .min_sm = 80,
     .epilogues = EPILOGUES,
     .name = "few_bits_mma",
     .rows = STRATA_ARRAY(half_rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.2,
     .state_size = sizeof(few_state),
     .accept = few_bits_mma_accept,
     .setup = few_bits_cuda_setup,
     .run = few_bits_mma_run,
     .bandwidth = 0.85},
#define HOPPER_IMPL(name_)                                                               \
    {.id = HOPPER_FIRST + HOPPER_##name_,                                                \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_WEIGHT_PACKED,                                                      \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .epilogues = EPILOGUES,                                                             \
     .name = "hopper_" #name_,                                                           \
     .rows = STRATA_ARRAY(hopper_rows),                                                  \
     .activations = CUDA_ALL_ACTIVATIONS,                                                \
     .efficiency = 0.7,                                                                  \
     .state_size = sizeof(gemv_state),                                                   \
     .accept = hopper_##name_##_accept,                                                  \
     .setup = hopper_##name_##_setup,                                                    \
     .run = hopper_##name_##_run},
    HOPPER_EACH(HOPPER_IMPL)
};

static const strata_extends matrix_multiply = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::MatrixMultiply",
    .params_size = sizeof(strata_matrix_multiply),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&matrix_multiply};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::MatrixMultiply", extends)
