/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of strided lines that a block holds, with the next lines under way in shared
 * memory, as plugins/softmax/ring.cu has it: of 21 planes of halves 84 KB on a
 * multiprocessor. Such lines take two exponentials an element, 0.6 of what the units for
 * them can where memory is at its full rate.
 *
 * A thread holds some elements of 8 bytes of lines that lie side by side; rows of threads
 * share long lines.
 */
#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/softmax/job.cuh"

template <typename T, int Most>
struct columns_shape {
    static const int V = 8 / (int)sizeof(T);
    static const int Stages = Most == 8 ? 4 : 2;
    static const int Blocks = Most == 8 ? 3 : 2; /* of a multiprocessor */
};

/* The largest, or the sum, of what the rows of threads have of each line. */
template <typename T, int Most, bool Sum>
static __device__ inline void columns_join(float *parts, int rows, float *value)
{
    const int V = columns_shape<T, Most>::V, across = CUDA_BLOCK / rows;
    const int column = (int)threadIdx.x % across;
    if (rows == 1)
        return;
#pragma unroll
    for (int k = 0; k < V; k++)
        parts[k * CUDA_BLOCK + threadIdx.x] = value[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V; k++) {
        value[k] = parts[k * CUDA_BLOCK + column];
        for (int i = 1; i < rows; i++) {
            const float other = parts[k * CUDA_BLOCK + i * across + column];
            value[k] = Sum ? value[k] + other : fmaxf(value[k], other);
        }
    }
}

template <typename T, int Most>
struct columns_lines {
    typedef columns_shape<T, Most> shape;
    uint2 *slots;
    const softmax_job &job;
    int rows, row, held; /* held: packs of a thread */

    __device__ inline bool has(int i) const
    {
        return i < held && row + i * rows < (int)job.length;
    }

    /* Where the lines are; copies nothing past the last. */
    template <typename Index>
    __device__ inline int64_t fetch(int64_t line, int stage)
    {
        const bool live = line < job.n_lines;
        const int64_t at = walk_find<1, Index>(job.lines, live ? (Index)line : 0).at[0];
        const T *x = (const T *)job.x + at + row * job.step;
        for (int i = 0; i < held; i++)
            if (live && has(i))
                copy_ahead<8>(&slots[(stage * held + i) * CUDA_BLOCK],
                              x + (int64_t)i * rows * job.step);
        end_copies();
        return at;
    }

    /* The results into y; p: the elements, parts: shared memory of two joins. */
    __device__ inline void finish(T *y, bool live, const pack<T, shape::V> (&p)[Most],
                                  float *parts)
    {
        const int V = shape::V;
        float largest[V], sum[V];
#pragma unroll
        for (int k = 0; k < V; k++) {
            largest[k] = -INFINITY;
            sum[k] = 0;
        }
#pragma unroll
        for (int i = 0; i < Most; i++)
#pragma unroll
            for (int k = 0; k < V; k++)
                largest[k] = has(i) ? fmaxf(largest[k], to_float(p[i].v[k])) : largest[k];
        columns_join<T, Most, false>(parts, rows, largest);
#pragma unroll
        for (int i = 0; i < Most; i++)
#pragma unroll
            for (int k = 0; k < V; k++)
                if (has(i))
                    sum[k] += __expf(to_float(p[i].v[k]) - largest[k]);
        columns_join<T, Most, true>(parts + V * CUDA_BLOCK, rows, sum);
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] = job.log ? logf(sum[k]) : 1 / sum[k];
#pragma unroll
        for (int i = 0; i < Most; i++) {
            float v[V];
#pragma unroll
            for (int k = 0; k < V; k++) {
                const float x = to_float(p[i].v[k]) - largest[k];
                v[k] = job.log ? x - sum[k] : __expf(x) * sum[k];
            }
            if (live && has(i))
                walk_store<T, V>(y + (int64_t)i * rows * job.step, v);
        }
    }
};

template <typename T, int Most, typename Index>
static __global__ void __launch_bounds__(CUDA_BLOCK, (columns_shape<T, Most>::Blocks))
    columns_kernel(const __grid_constant__ softmax_job job, int rows, int held)
{
    typedef columns_shape<T, Most> shape;
    const int V = shape::V, ahead = shape::Stages - 1, across = CUDA_BLOCK / rows;
    extern __shared__ uint4 ring[];
    __shared__ float parts[2 * V * CUDA_BLOCK];
    columns_lines<T, Most> lines = {(uint2 *)ring + threadIdx.x, job, rows,
                                    (int)threadIdx.x / across, held};
    const int64_t step = (int64_t)gridDim.x * across * V;
    const int64_t begin = (int64_t)blockIdx.x * across * V;
    int64_t line = begin + (int)threadIdx.x % across * V, at[shape::Stages];
    T *y = (T *)job.y + lines.row * job.step;
#pragma unroll
    for (int s = 0; s < ahead; s++)
        at[s] = lines.template fetch<Index>(line + s * step, s);
    int stage = 0;
    for (int64_t i = begin; i < job.n_lines; i += step, line += step) {
        pack<T, V> p[Most];
        at[ahead] = lines.template fetch<Index>(line + ahead * step,
                                                (stage + ahead) % shape::Stages);
        await_copies<ahead>();
#pragma unroll
        for (int k = 0; k < Most; k++)
            p[k] = *(const pack<T, V> *)&lines
                        .slots[(stage * held + (k < held ? k : 0)) * CUDA_BLOCK];
        lines.finish(y + at[0], line < job.n_lines, p, parts);
#pragma unroll
        for (int s = 0; s < ahead; s++)
            at[s] = at[s + 1];
        stage = stage + 1 == shape::Stages ? 0 : stage + 1;
    }
}

/* ---- launches -----------------------------------------------------------------------
 */

template <typename T, int Most>
static bool columns_launch(const softmax_job &job, int rows, int held,
                           cudaStream_t stream)
{
    typedef columns_shape<T, Most> shape;
    const int64_t most =
        (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) * shape::Blocks;
    const int64_t each = CUDA_BLOCK / rows * shape::V;
    const int64_t needed = (job.n_lines + each - 1) / each;
    const int shared = shape::Stages * held * CUDA_BLOCK * (int)sizeof(uint2);
    const auto kernel = job.n_lines < 0x7fffffff ? columns_kernel<T, Most, uint32_t>
                                                 : columns_kernel<T, Most, uint64_t>;
    if (shared_allow((const void *)kernel, (size_t)shared) != cudaSuccess)
        return give_up();
    kernel<<<(unsigned)(needed < most ? needed : most), CUDA_BLOCK, shared, stream>>>(
        job, rows, held);
    return true;
}

enum { MOST_HELD = 24, MOST_ROWS = 32 };

/* Lines side by side, 8 bytes of them at a time, without pads. */
template <typename T>
static bool columns_choose(const softmax_job &job, cudaStream_t stream)
{
    const int V = 8 / (int)sizeof(T);
    const walk<1> &w = job.lines;
    bool fits = w.lanes == 1 && w.channel_dim < 0 && job.shift == 0 &&
                job.step % V == 0 && w.stride[0][0] == 1 && w.extent[0] % V == 0 &&
                (uintptr_t)job.x % 8 == 0 && (uintptr_t)job.y % 8 == 0 &&
                job.length <= MOST_HELD * MOST_ROWS;
    for (int d = 1; d < w.dims; d++)
        fits = fits && w.stride[0][d] % V == 0;
    if (!fits)
        return false;
    const int64_t blocks = 2 * device_attribute(cudaDevAttrMultiProcessorCount);
    int rows = 1;
    while (job.length > rows * MOST_HELD ||
           (rows < MOST_ROWS && job.length >= rows * 4 &&
            job.n_lines / V * rows < blocks * CUDA_BLOCK))
        rows *= 2;
    const int held = (int)((job.length + rows - 1) / rows);
    return held <= 8    ? columns_launch<T, 8>(job, rows, held, stream)
           : held <= 16 ? columns_launch<T, 16>(job, rows, held, stream)
                        : columns_launch<T, MOST_HELD>(job, rows, held, stream);
}

bool softmax_columns(const softmax_job &job, int32_t dtype, cudaStream_t stream)
{
    bool launched = false;
    layer_float(dtype,
                [&](auto t) { launched = columns_choose<decltype(t)>(job, stream); });
    return launched;
}
