/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution on tensor cores with mma.sync (sm_80 and later): tiles come through a
 * pipeline of cp.async stages and ldmatrix. The sizes of tiles are tactics; the small one
 * may split the depth over a cluster of blocks (sm_90), whose sums are added in a fixed
 * order through distributed shared memory.
 */
#include <cooperative_groups.h>

#include "plugins/convolution/cuda/gemm.cuh"

/* Rows x Columns a block, WarpRows x WarpColumns a warp. */
template <int Rows_, int Columns_, int WarpRows_, int WarpColumns_, int Stages_,
          int Blocks_, int Split_ = 1, bool Woven_ = false>
struct mma_tile {
    static const int Rows = Rows_, Columns = Columns_;
    static const int WarpRows = WarpRows_, WarpColumns = WarpColumns_;
    static const int Stages = Stages_, Blocks = Blocks_, Split = Split_;
    static const bool Woven = Woven_;
    static const int WarpsAcross = Columns / WarpColumns;
    static const int Threads = Rows / WarpRows * WarpsAcross * 32;
    static const int StageBytes = (Rows + Columns) * GEMM_ROW;
    static const int StagingFloats = 16 * (WarpColumns + 8); /* of a warp */
    static const int Shared = Stages * StageBytes;
    static const int M = WarpRows / 16, N = WarpColumns / 8;
    static_assert(Threads / 32 * StagingFloats * 4 <= Shared, "staging fits");
    static_assert(Split == 1 || Rows * (Columns + 8) * 4 <= Shared, "a tile fits");
};

static __device__ inline void load_matrices(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from));
}

static __device__ inline void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                       uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* One stage into a warp's sums. a, b: its part of the tiles. */
template <class T>
static __device__ inline void multiply_stage(float (&sum)[T::M][T::N][4], uint32_t a,
                                             uint32_t b)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t a_row = lane % 16, b_row = lane % 8 + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < GEMM_DEPTH / 16; k++) {
        uint32_t rows[T::M][4], columns[T::N / 2][4];
#pragma unroll
        for (int m = 0; m < T::M; m++)
            load_matrices(rows[m], a + swizzled(m * 16 + a_row, 2 * k + lane / 16));
#pragma unroll
        for (int n = 0; n < T::N / 2; n++)
            load_matrices(columns[n], b + swizzled(n * 16 + b_row, 2 * k + lane / 8 % 2));
#pragma unroll
        for (int m = 0; m < T::M; m++)
#pragma unroll
            for (int n = 0; n < T::N; n++)
                multiply(sum[m][n], rows[m], columns[n / 2][n % 2 * 2],
                         columns[n / 2][n % 2 * 2 + 1]);
    }
}

/* The sums of a cluster's blocks lie as tiles in the shared memory of each; every block
 * adds and stores a share of them. */
template <class T>
static __device__ inline void reduce_tiles(const gemm_job &job, float *tile, uint32_t row,
                                           uint32_t column)
{
#if __CUDA_ARCH__ >= 900
    const int Pitch = T::Columns + 8, Pieces = T::Columns / 8;
    cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const convolution_affine<8> affine = gemm_affine_of<T::Columns>(job, column);
    static_assert(T::Threads % Pieces == 0, "a thread keeps its channels");
    cluster.sync();
    for (uint32_t i = blockIdx.z * T::Threads + threadIdx.x; i < T::Rows * Pieces;
         i += job.split * T::Threads) {
        float sum[8] = {};
        const uint32_t r = i / Pieces, c = i % Pieces * 8;
        for (uint32_t k = 0; k < job.split; k++) {
            const float4 *part =
                (const float4 *)(cluster.map_shared_rank(tile, k) + r * Pitch + c);
            const float4 lo = part[0], hi = part[1];
            const float v[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
#pragma unroll
            for (int j = 0; j < 8; j++)
                sum[j] += v[j];
        }
        if (row + r < job.pixels && column + c < job.stored)
            gemm_store(job, affine, gemm_residual(job, row + r, column + c), sum, row + r,
                       column + c);
    }
    cluster.sync();
#endif
}

template <class T>
static __device__ inline void split_tail(const gemm_job &job,
                                         const float (&sum)[T::M][T::N][4], float *tile,
                                         uint32_t row, uint32_t column)
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int Pitch = T::Columns + 8;
    float *to = tile + (warp / T::WarpsAcross * T::WarpRows + lane / 4) * Pitch +
                warp % T::WarpsAcross * T::WarpColumns + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < T::M; m++)
#pragma unroll
        for (int n = 0; n < T::N; n++) {
            *(float2 *)(to + m * 16 * Pitch + n * 8) =
                make_float2(sum[m][n][0], sum[m][n][1]);
            *(float2 *)(to + (m * 16 + 8) * Pitch + n * 8) =
                make_float2(sum[m][n][2], sum[m][n][3]);
        }
    reduce_tiles<T>(job, tile, row, column);
}

/* Stages [first, first + count) of the depth into the block's sums. */
template <class T>
static __device__ inline void
multiply_tile(float (&sum)[T::M][T::N][4], const gemm_job &job, uint32_t shared,
              uint32_t row, uint32_t column, uint32_t first, uint32_t count)
{
    const uint32_t warp = threadIdx.x / 32, B = T::Rows * GEMM_ROW;
    const uint32_t warp_a = warp / T::WarpsAcross * T::WarpRows * GEMM_ROW;
    const uint32_t warp_b = B + warp % T::WarpsAcross * T::WarpColumns * GEMM_ROW;
    gemm_loader<T::Rows, T::Columns, T::Threads> loader;
    loader.start(job, row, column, first);
#pragma unroll
    for (uint32_t s = 0; s < T::Stages - 1; s++)
        if (s < count)
            loader.copy_b(shared + s * T::StageBytes + B);
    wait_for_previous();
#pragma unroll
    for (uint32_t s = 0; s < T::Stages - 1; s++) {
        if (s < count)
            loader.copy_a(job, shared + s * T::StageBytes);
        copy_commit();
    }
    launch_next();
    uint32_t use = 0, fill = T::Stages - 1;
    for (uint32_t i = 0; i < count; i++) {
        copy_wait<T::Stages - 2>();
        __syncthreads();
        if (i + T::Stages - 1 < count) {
            loader.copy_a(job, shared + fill * T::StageBytes);
            loader.copy_b(shared + fill * T::StageBytes + B);
        }
        copy_commit();
        multiply_stage<T>(sum, shared + use * T::StageBytes + warp_a,
                          shared + use * T::StageBytes + warp_b);
        use = use + 1 == T::Stages ? 0 : use + 1;
        fill = fill + 1 == T::Stages ? 0 : fill + 1;
    }
    copy_wait<0>();
    __syncthreads();
}

template <class T>
static __global__ void __launch_bounds__(T::Threads, T::Blocks)
    mma_kernel(const __grid_constant__ gemm_job job)
{
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t warp = threadIdx.x / 32, tile = divide_by(blockIdx.x, job.tiles);
    const uint32_t row = tile * T::Rows;
    const uint32_t column = (blockIdx.x - tile * job.tiles.d) * T::Columns;
    const uint32_t share = (job.stages + job.split - 1) / job.split;
    const uint32_t first = min(blockIdx.z * share, job.stages);
    float sum[T::M][T::N][4] = {};
    multiply_tile<T>(sum, job, shared_address(shared), row, column, first,
                     min(share, job.stages - first));
    if (T::Split > 1) {
        split_tail<T>(job, sum, (float *)shared, row, column);
        return;
    }
    const uint32_t warp_row = row + warp / T::WarpsAcross * T::WarpRows;
    const uint32_t warp_column = column + warp % T::WarpsAcross * T::WarpColumns;
    if constexpr (T::Woven) {
        gemm_woven_tail<T::M, T::WarpColumns, 16>(job, sum, warp_row, warp_column);
        return;
    }
    float *staging = (float *)shared + warp * T::StagingFloats;
    const convolution_affine<8> affine = gemm_affine_of<T::WarpColumns>(job, warp_column);
#pragma unroll
    for (int m = 0; m < T::M; m++)
        gemm_tail<T::WarpColumns>(job, affine, sum[m], staging, warp_row + m * 16,
                                  warp_column);
}

template <class T>
static const gemm_launch mma_launch = {
    .kernel = (const void *)mma_kernel<T>,
    .rows = T::Rows,
    .columns = T::Columns,
    .threads = T::Threads,
    .stages = T::Stages,
    .stage_bytes = T::StageBytes,
    .extra = 0,
    .split = T::Split,
    .woven = T::Woven,
};

#define MMA_TACTIC(name, ...) GEMM_TACTIC(name, mma_launch<mma_tile<__VA_ARGS__>>)
#define WOVEN 1, true

MMA_TACTIC(mma_128x128, 128, 128, 64, 32, 3, 2)
MMA_TACTIC(mma_128x64, 128, 64, 64, 32, 3, 3)
MMA_TACTIC(mma_64x64, 64, 64, 32, 32, 4, 3)
MMA_TACTIC(mma_256x64, 256, 64, 64, 32, 3, 1)
MMA_TACTIC(mma_64x32, 64, 32, 32, 16, 9, 1, 8)
MMA_TACTIC(mma_split, 64, 64, 32, 32, 7, 1, 8)
MMA_TACTIC(mma_128x128w, 128, 128, 64, 32, 3, 2, WOVEN)
MMA_TACTIC(mma_128x64w, 128, 64, 64, 32, 3, 3, WOVEN)
MMA_TACTIC(mma_64x64w, 64, 64, 32, 32, 4, 4, WOVEN)
MMA_TACTIC(mma_64x128w, 64, 128, 32, 64, 3, 3, WOVEN)
