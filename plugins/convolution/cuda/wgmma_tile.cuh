/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of the product on Hopper's tensor cores: wgmma (sm_90a) reads both tiles from
 * shared memory, where cp.async puts them; twice the rate of mma.sync. A warpgroup makes
 * Columns columns of one or two times 64 rows.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_WGMMA_TILE_CUH
#define PLUGINS_CONVOLUTION_CUDA_WGMMA_TILE_CUH

#include "plugins/convolution/cuda/gemm.cuh"
#include "plugins/common/product/order.cuh"

/* Rows x Columns a block of `Groups` warpgroups. */
template <int Rows_, int Columns_, int Groups_, int Stages_, int Blocks_,
          bool Woven_ = true, bool Deep_ = false>
struct wgmma_tile {
    static const int Rows = Rows_, Columns = Columns_, Stages = Stages_;
    static const int Blocks = Blocks_, Threads = Groups_ * 128;
    static const bool Woven = Woven_, Deep = Deep_;
    static const int M = Rows / 64 / Groups_; /* times 64 rows a warpgroup */
    static const int Ahead = Stages - 2;      /* stages under way */
    static const int StageBytes = (Rows + Columns) * GEMM_ROW;
    static const int StagingFloats = 16 * (Columns + 8); /* of a warp */
    static_assert(Threads / 32 * StagingFloats * 4 <= Stages * StageBytes,
                  "staging fits");
};

/* ---- instructions ---------------------------------------------------------------------
 */

/* Rows of 128 bytes, swizzled by 128 bytes, 8 rows apart by 1024 bytes. */
static __device__ inline uint64_t matrix_descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | UINT64_C(1) << 16 | UINT64_C(64) << 32 |
           UINT64_C(1) << 62;
}

/* d += a*b, 64 x Columns x 16. */
template <int Columns>
static __device__ void multiply_async(float (&d)[Columns / 8][4], uint64_t a, uint64_t b);

#define SUMS(s) "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])

template <>
__device__ inline void multiply_async<64>(float (&d)[8][4], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31"
                 "}, %32, %33, 1, 1, 1, 0, 0;\n"
                 : SUMS(d[0]), SUMS(d[1]), SUMS(d[2]), SUMS(d[3]), SUMS(d[4]), SUMS(d[5]),
                   SUMS(d[6]), SUMS(d[7])
                 : "l"(a), "l"(b));
}

template <>
__device__ inline void multiply_async<128>(float (&d)[16][4], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, 1, 1, 1, 0, 0;\n"
                 : SUMS(d[0]), SUMS(d[1]), SUMS(d[2]), SUMS(d[3]), SUMS(d[4]), SUMS(d[5]),
                   SUMS(d[6]), SUMS(d[7]), SUMS(d[8]), SUMS(d[9]), SUMS(d[10]),
                   SUMS(d[11]), SUMS(d[12]), SUMS(d[13]), SUMS(d[14]), SUMS(d[15])
                 : "l"(a), "l"(b));
}

template <>
__device__ inline void multiply_async<256>(float (&d)[32][4], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, "
                 "%72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, "
                 "%88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, "
                 "%104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, "
                 "%120, %121, %122, %123, %124, %125, %126, %127"
                 "}, %128, %129, 1, 1, 1, 0, 0;\n"
                 : SUMS(d[0]), SUMS(d[1]), SUMS(d[2]), SUMS(d[3]), SUMS(d[4]), SUMS(d[5]),
                   SUMS(d[6]), SUMS(d[7]), SUMS(d[8]), SUMS(d[9]), SUMS(d[10]),
                   SUMS(d[11]), SUMS(d[12]), SUMS(d[13]), SUMS(d[14]), SUMS(d[15]),
                   SUMS(d[16]), SUMS(d[17]), SUMS(d[18]), SUMS(d[19]), SUMS(d[20]),
                   SUMS(d[21]), SUMS(d[22]), SUMS(d[23]), SUMS(d[24]), SUMS(d[25]),
                   SUMS(d[26]), SUMS(d[27]), SUMS(d[28]), SUMS(d[29]), SUMS(d[30]),
                   SUMS(d[31])
                 : "l"(a), "l"(b));
}

/* ---- the kernel -----------------------------------------------------------------------
 */

/* One stage into a warpgroup's sums. a, b: addresses of its rows and of the columns. */
template <class T>
static __device__ inline void multiply_stage(float (&sum)[T::M][T::Columns / 8][4],
                                             uint32_t a, uint32_t b)
{
    multiply_begin();
#pragma unroll
    for (int k = 0; k < GEMM_DEPTH / 16; k++)
#pragma unroll
        for (int m = 0; m < T::M; m++)
            multiply_async<T::Columns>(sum[m],
                                       matrix_descriptor(a + m * 64 * GEMM_ROW + k * 32),
                                       matrix_descriptor(b + k * 32));
    multiply_commit();
}

template <class T>
using wgmma_loader = gemm_loader<T::Rows, T::Columns, T::Threads, T::Deep>;

/* Asks for the first stages: the weights, which nobody writes before this kernel, then the
 * pixels. */
template <class T>
static __device__ inline void load_weights(wgmma_loader<T> &loader, const gemm_job &job,
                                           uint32_t shared)
{
#pragma unroll
    for (uint32_t s = 0; s < T::Ahead; s++)
        if (s < job.stages)
            loader.copy_b(shared + s * T::StageBytes + T::Rows * GEMM_ROW);
}

template <class T>
static __device__ inline void load_pixels(wgmma_loader<T> &loader, const gemm_job &job,
                                          uint32_t shared)
{
#pragma unroll
    for (uint32_t s = 0; s < T::Ahead; s++) {
        if (s < job.stages)
            loader.copy_a(job, shared + s * T::StageBytes);
        copy_commit();
    }
}

/* The product, whose first stages are under way. A stage is filled two steps after it was
 * read: when all warpgroups have passed the barrier, each has waited for its products of
 * the step before the last. */
template <class T>
static __device__ inline void multiply_tile(float (&sum)[T::M][T::Columns / 8][4],
                                            wgmma_loader<T> &loader, const gemm_job &job,
                                            uint32_t shared)
{
    const int Ahead = T::Ahead;
    const uint32_t B = T::Rows * GEMM_ROW;
    const uint32_t group_a = threadIdx.x / 128 * T::M * 64 * GEMM_ROW;
    uint32_t use = shared, fill = shared + Ahead * T::StageBytes;
    const uint32_t end = shared + T::Stages * T::StageBytes;
    for (uint32_t i = 0; i < job.stages; i++) {
        copy_wait<Ahead - 1>();
        publish_shared();
        __syncthreads();
        multiply_stage<T>(sum, use + group_a, use + B);
        if (i + Ahead < job.stages) {
            loader.copy_a(job, fill);
            loader.copy_b(fill + B);
        }
        copy_commit();
        multiply_wait<1>();
        use = use + T::StageBytes == end ? shared : use + T::StageBytes;
        fill = fill + T::StageBytes == end ? shared : fill + T::StageBytes;
    }
    multiply_wait<0>();
    copy_wait<0>();
    __syncthreads();
}

/* Tile `index` of the product, the columns fastest. */
template <class T, class Job>
static __device__ inline void wgmma_block(const Job &job, uint32_t index)
{
    extern __shared__ uint8_t memory[];
    uint8_t *shared = memory + (1024 - shared_address(memory) % 1024) % 1024;
    const uint32_t warp = threadIdx.x / 32, tile = divide_by(index, job.tiles);
    const uint32_t column = (index - tile * job.tiles.d) * T::Columns;
    const uint32_t row = tile * T::Rows;
    float sum[T::M][T::Columns / 8][4] = {};
    wgmma_loader<T> loader;
    loader.start(job, row, column, 0);
    load_weights<T>(loader, job, shared_address(shared));
    wait_for_previous();
    load_pixels<T>(loader, job, shared_address(shared));
    launch_next();
    multiply_tile<T>(sum, loader, job, shared_address(shared));
    const uint32_t warp_row = row + warp / 4 * T::M * 64 + warp % 4 * 16;
    if constexpr (T::Woven) {
        gemm_woven_tail<T::M, T::Columns, 64>(job, sum, warp_row, column);
        return;
    }
    float *staging = (float *)shared + warp * T::StagingFloats;
    const convolution_affine<8> affine = gemm_affine_of<T::Columns>(job, column);
#pragma unroll
    for (int m = 0; m < T::M; m++)
        gemm_tail<T::Columns>(job, affine, sum[m], staging, warp_row + m * 64, column);
}

#endif /* PLUGINS_CONVOLUTION_CUDA_WGMMA_TILE_CUH */
