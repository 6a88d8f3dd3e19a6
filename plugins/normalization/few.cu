/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of so few rows that what a row waits for is what counts:
 * scale and bias, which come from memory, are in registers before the kernel before has
 * ended. A row is a warp's.
 */
#include "kernels/overlap.cuh"
#include "plugins/normalization/packed.cuh"

#define FEW_ROWS 4   /* of a block */
#define FEW_BLOCKS 3 /* of a multiprocessor */
#define FEW_THREADS (FEW_ROWS * 32)

/* A plain load: those of constants are moved behind the wait for the kernel before. */
static __device__ inline float4 few_ask(const float *from)
{
    float4 w;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(w.x), "=f"(w.y), "=f"(w.z), "=f"(w.w)
                 : "l"(from)
                 : "memory");
    return w;
}

/* Of a thread's `count` packs; value: where there are no weights. */
template <int P, int N>
static __device__ inline void few_weights(float4 (&w)[P * N / 4], const float *from,
                                          int lane, int count, float value)
{
#pragma unroll
    for (int i = 0; i < P * N / 4; i++) {
        const int pack = i / (N / 4) < count ? lane + i / (N / 4) * 32 : 0;
        w[i] = {value, value, value, value};
        if (from)
            w[i] = few_ask(from + pack * N + i % (N / 4) * 4);
    }
}

/* P: packs of a thread. early: the next kernel may begin before the one before has ended.
 */
template <typename T, int P, bool Centred>
static __global__ void __launch_bounds__(FEW_THREADS, FEW_BLOCKS)
    few_kernel(const __grid_constant__ norm_job job, bool early)
{
    const int N = 16 / (int)sizeof(T);
    const int packs = (int)job.cols / N, lane = (int)threadIdx.x % 32;
    const int count = packs > lane ? (packs - lane + 31) / 32 : 0;
    const int64_t row = (int64_t)blockIdx.x * FEW_ROWS + (int)threadIdx.x / 32;
    float4 scale[P * N / 4], bias[P * N / 4];
    packed_part<T, P, false> part;
    few_weights<P, N>(scale, job.scale, lane, count, 1);
    few_weights<P, N>(bias, job.bias, lane, count, 0);
    if (early)
        launch_next();
    wait_for_previous();
    if (!early)
        launch_next();
    if (row >= job.rows)
        return;
    part.load(job, row * packs + lane, 32, count);
    const row_part t = packed_warp<Centred>(part, count);
    const float factor = held_factor(job, t.square);
    if (job.mean && lane == 0) {
        job.mean[row] = t.mean;
        job.inverse[row] = factor;
    }
    pack<T, N> *y = (pack<T, N> *)job.y + row * packs + lane;
#pragma unroll
    for (int i = 0; i < P; i++) {
        pack<T, N> out;
        float v[N];
        part.take(v, i);
#pragma unroll
        for (int k = 0; k < N; k += 4)
            packed_round(&out.v[k], v + k, t.mean, factor, scale[(i * N + k) / 4],
                         bias[(i * N + k) / 4]);
        if (i < count)
            y[i * 32] = out;
    }
}

/* ---- launches ---------------------------------------------------------------------- */

/* Whether the next kernel may begin before the one before has ended. With 132
 * multiprocessors 128, 384 and 1,024 rows won by it, 197 lost. */
static bool few_early(int64_t rows, int64_t multiprocessors)
{
    return rows <= multiprocessors || rows > 2 * multiprocessors;
}

template <typename T, int P, bool Centred>
static bool few_launch(const norm_job &job, int64_t multiprocessors, cudaStream_t stream)
{
    launch_overlapped(few_kernel<T, P, Centred>, layer_blocks(job.rows, FEW_ROWS),
                      FEW_THREADS, 0, stream, job, few_early(job.rows, multiprocessors));
    return true;
}

template <typename T, bool Centred>
static bool few_choose(const norm_job &job, cudaStream_t stream)
{
    const int64_t packs = job.cols / (16 / (int64_t)sizeof(T));
    const int64_t units = device_attribute(cudaDevAttrMultiProcessorCount);
    if (job.rows > FEW_ROWS * FEW_BLOCKS * units) /* that are there at once */
        return false;
    return packs <= 64    ? few_launch<T, 2, Centred>(job, units, stream)
           : packs <= 96  ? few_launch<T, 3, Centred>(job, units, stream)
           : packs <= 128 ? few_launch<T, 4, Centred>(job, units, stream)
                          : false;
}

template <typename T>
bool norm_few(const norm_job &job, cudaStream_t stream)
{
    if (job.residual || job.sum)
        return false;
    return job.measure == NORM_CENTRED ? few_choose<T, true>(job, stream)
                                       : few_choose<T, false>(job, stream);
}

template bool norm_few<float>(const norm_job &job, cudaStream_t stream);
template bool norm_few<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_few<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
