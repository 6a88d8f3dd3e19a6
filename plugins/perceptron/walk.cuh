/* SPDX-License-Identifier: Apache-2.0
 *
 * A Perceptron's row, or image, by a cluster of blocks: each has a part of the pixels of
 * some channels, and then some results of each product. What all need goes into every
 * block's shared memory, and a barrier of the cluster stands where a launch would.
 */
#ifndef PLUGINS_PERCEPTRON_WALK_CUH
#define PLUGINS_PERCEPTRON_WALK_CUH

#include "kernels/overlap.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/perceptron/shape.h"

#define PERCEPTRON_THREADS 512
#define PERCEPTRON_CLUSTER 16 /* blocks at most */
#define PERCEPTRON_AHEAD 4    /* loads of a thread that go out together */
#define PERCEPTRON_UNITS 4    /* that read an input together */

struct perceptron_product {
    const void *weight; /* units x padded */
    const float *bias;  /* or NULL */
    activation_args f;
    int32_t units, padded; /* padded: inputs to whole pieces of 16 bytes */
    int32_t each;          /* units of a block */
    int32_t sharing;       /* blocks that have the same units, as a shift */
    int32_t team;          /* threads that add up some, as a shift */
    int32_t input, biases; /* where these are: floats into shared memory */
    int32_t staged;        /* its weights, bytes; or -1: they are read where they lie */
};

/* Bytes and floats are from the beginning of a block's shared memory. */
struct perceptron_job {
    const void *x;
    void *y;
    perceptron_product product[PERCEPTRON_PRODUCTS];
    int32_t products, end, mean;
    int32_t blocks;        /* of a cluster, as a shift */
    int32_t parts;         /* blocks that share the pixels of channels, as a shift */
    int64_t row, row_of_y; /* elements, with pads */
    int32_t channels, y_padded;
    int32_t groups, slice;  /* of channels that are read at once: all, a block's */
    int32_t accesses, part; /* of a group: all, a block's */
    int64_t group_step, access_step; /* elements */
    int32_t lanes, helpers;          /* groups at a time, threads that share each */
    int32_t depth;                   /* of the first product */
    int32_t sums, result, tallies;   /* floats */
    float factor;                    /* of a sum, to a mean */
};

/* Of the blocks of a cluster, in each of them. */
struct perceptron_tally {
    float largest, sum;
};

/* What a block has of an image. */
template <typename T, int W, int V>
struct perceptron_place {
    const T *x;
    T *y;
    int groups, group, accesses, access; /* its own, the thread's first; likewise */

    __device__ inline perceptron_place(const perceptron_job &j, int row, int rank)
    {
        const int slice = (rank >> j.parts) * j.slice;
        const int part = (rank & ((1 << j.parts) - 1)) * j.part;
        const int64_t at =
            row * j.row + slice * j.group_step + (int64_t)part * j.access_step;
        const int thread = (int)threadIdx.x;
        const bool within = thread < j.lanes * j.helpers;
        x = (const T *)j.x + at;
        y = (T *)j.y + at;
        groups = within ? min(j.slice, j.groups - slice) : 0;
        accesses = min(j.part, j.accesses - part);
        /* Neighbours are beside each other in memory. */
        group = V > 2 ? thread % j.lanes : thread / j.helpers;
        access = V > 2 ? thread / j.lanes : thread % j.helpers;
    }
};

/* Loads go out before the first is used; what is past the end is 0. */
template <typename T, int W>
static __device__ inline void perceptron_load(pack<T, W> (&q)[PERCEPTRON_AHEAD],
                                              const T *x, int from, int end,
                                              const perceptron_job &j)
{
#pragma unroll
    for (int i = 0; i < PERCEPTRON_AHEAD; i++) {
        const int a = from + i * j.helpers;
        q[i] = {};
        if (a < end)
            q[i] = *(const pack<T, W> *)(x + a * j.access_step);
    }
}

/* Sums of a block's channels of its pixels: a row of them for each helper, or warp. */
template <typename T, int W, int V>
static __device__ inline void
perceptron_sums(const perceptron_job &j, const perceptron_place<T, W, V> &p, float *sums)
{
    for (int g = p.group; g < p.groups; g += j.lanes) {
        const T *x = p.x + g * j.group_step;
        float v[V] = {};
        for (int a = p.access; a < p.accesses; a += PERCEPTRON_AHEAD * j.helpers) {
            pack<T, W> q[PERCEPTRON_AHEAD];
            perceptron_load(q, x, a, p.accesses, j);
#pragma unroll
            for (int i = 0; i < PERCEPTRON_AHEAD; i++)
#pragma unroll
                for (int k = 0; k < W; k++)
                    v[k % V] += to_float(q[i].v[k]);
        }
        if (V <= 2)
#pragma unroll
            for (int d = 16; d > 0; d /= 2)
#pragma unroll
                for (int k = 0; k < V; k++)
                    v[k] += __shfl_xor_sync(0xffffffffu, v[k], d);
        float *to = sums + ((V > 2 ? p.access : p.access / 32) * j.slice + g) * V;
        if (V > 2 || p.access % 32 == 0)
#pragma unroll
            for (int k = 0; k < V; k++)
                to[k] = v[k];
    }
}

/* ---- what blocks tell each other -------------------------------------------------- */

/* Everything that is to come into a block's shared memory has a barrier there, which
 * counts its bytes: nobody waits for the others' memory otherwise. */
enum { PERCEPTRON_TALLIES = PERCEPTRON_PRODUCTS, PERCEPTRON_BARRIERS };

#if __CUDA_ARCH__ >= 900
static __device__ inline uint32_t perceptron_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* By one thread, before the cluster has met. Only if `awaited` does it arrive, for tools
 * tell of a phase that ends and is waited for by nobody; a branch would take longer. */
static __device__ inline void perceptron_expect(uint64_t *barrier, int bytes,
                                                bool awaited = true)
{
    const uint32_t at = perceptron_address(barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(at) : "memory");
    asm volatile(
        "{\n.reg .pred awaited;\n"
        "setp.ne.u32 awaited, %2, 0;\n"
        "@awaited mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n}\n" ::"r"(at),
        "r"(bytes), "r"((uint32_t)awaited)
        : "memory");
}

static __device__ inline void perceptron_await(uint64_t *barrier)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra again;\n}\n" ::"r"(perceptron_address(barrier))
                 : "memory");
}

/* What is at an address of this block, in another. */
static __device__ inline uint32_t perceptron_there(const void *shared, int block)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;\n"
        : "=r"(there)
        : "r"(perceptron_address(shared)), "r"(block));
    return there;
}

static __device__ inline void perceptron_tell(float *to, float value, uint64_t *barrier,
                                              int block)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                 "[%0], %1, [%2];\n" ::"r"(perceptron_there(to, block)),
                 "r"(__float_as_uint(value)), "r"(perceptron_there(barrier, block))
                 : "memory");
}

static __device__ inline void perceptron_tell(perceptron_tally *to, perceptron_tally t,
                                              uint64_t *barrier, int block)
{
    const uint64_t both =
        (uint64_t)__float_as_uint(t.sum) << 32 | __float_as_uint(t.largest);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 "
                 "[%0], %1, [%2];\n" ::"r"(perceptron_there(to, block)),
                 "l"(both), "r"(perceptron_there(barrier, block))
                 : "memory");
}

/* The rows of sums to means, which all blocks learn; those of other pixels beside them.
 */
template <int V>
static __device__ inline void perceptron_means(const perceptron_job &j, int rank,
                                               float *shared, uint64_t *barrier)
{
    const int width = j.slice * V, first = (rank >> j.parts) * width;
    const int rows = V > 2 ? j.helpers : j.helpers / 32;
    float *to =
        shared + j.product[0].input + (rank & ((1 << j.parts) - 1)) * j.product[0].padded;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < (4 * width + 31) / 32 * 32;
         i += PERCEPTRON_THREADS) {
        const int c = i / 4, part = i % 4;
        float sum = 0;
        if (c < width && first + c < j.channels)
#pragma unroll 4
            for (int r = part; r < rows; r += 4)
                sum += shared[j.sums + r * width + c];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (c < width && first + c < j.channels)
            for (int block = part; block < 1 << j.blocks; block += 4)
                perceptron_tell(to + first + c, sum * j.factor, barrier, block);
    }
}

/* ---- products -------------------------------------------------------------------- */

/* Units of a block, some at a time by each team, to their sums. What is past the last is
 * computed as that, and not written. */
template <typename T>
static __device__ inline void perceptron_dots(const perceptron_product &p, const T *w,
                                              const float *x, float *sums, int count)
{
    const int E = 16 / (int)sizeof(T), N = PERCEPTRON_UNITS;
    const int team = (int)threadIdx.x >> p.team;
    const int lane = (int)threadIdx.x & ((1 << p.team) - 1);
#pragma unroll 1
    for (int u = team * N; u - team * N < count; u += PERCEPTRON_THREADS * N >> p.team) {
        const T *rows[N];
        float sum[N] = {};
#pragma unroll
        for (int n = 0; n < N; n++)
            rows[n] = w + (int64_t)min(u + n, count - 1) * p.padded;
#pragma unroll 1
        for (int k = lane * E; k < p.padded; k += E << p.team) {
            pack<T, E> b[N];
            pack<float, 4> a[E / 4];
#pragma unroll
            for (int n = 0; n < N; n++)
                b[n] = *(const pack<T, E> *)(rows[n] + k);
#pragma unroll
            for (int e = 0; e < E / 4; e++)
                a[e] = *(const pack<float, 4> *)(x + k + 4 * e);
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int e = 0; e < E; e++)
                    sum[n] = fmaf(to_float(b[n].v[e]), a[e / 4].v[e % 4], sum[n]);
        }
#pragma unroll 1
        for (int d = (1 << p.team) / 2; d > 0; d /= 2)
#pragma unroll
            for (int n = 0; n < N; n++)
                sum[n] += __shfl_xor_sync(0xffffffffu, sum[n], d);
#pragma unroll
        for (int n = 0; n < N; n++)
            if (lane == 0 && u + n < count)
                sums[u + n] = sum[n];
    }
}

/* A block's units of a product; all blocks learn them but the last one's. */
template <typename T>
static __device__ inline void perceptron_multiply(const perceptron_job &j, int product,
                                                  int rank, float *shared,
                                                  uint64_t *barriers)
{
    const perceptron_product &p = j.product[product];
    const bool last = product + 1 == j.products;
    const int first = (rank >> p.sharing) * p.each, count = min(p.each, p.units - first);
    const int told = last ? 0 : j.blocks;
    const T *w = p.staged >= 0 ? (const T *)((const char *)shared + p.staged)
                               : (const T *)p.weight + (int64_t)first * p.padded;
    float *sums = shared + j.sums;
    perceptron_dots(p, w, shared + p.input, sums, count);
    __syncthreads();
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < count << told; i += PERCEPTRON_THREADS) {
        const int unit = i >> told;
        const float value = activate(sums[unit] + shared[p.biases + unit], p.f);
        if (last)
            shared[j.result + unit] = value;
        else
            perceptron_tell(shared + j.product[product + 1].input + first + unit, value,
                            barriers + product + 1, i & ((1 << told) - 1));
    }
}

/* ---- ends ------------------------------------------------------------------------ */

/* Results of a block to their softmax: the largest and the sum of all blocks. */
static __device__ inline void perceptron_soften(const perceptron_job &j, int rank,
                                                int count, float *shared,
                                                uint64_t *barrier)
{
    float *v = shared + j.result;
    perceptron_tally *tallies = (perceptron_tally *)(shared + j.tallies);
    const int lane = (int)threadIdx.x, blocks = 1 << j.blocks;
    if (lane < 32) {
        perceptron_tally t = {-INFINITY, 0};
        for (int i = lane; i < count; i += 32)
            t.largest = fmaxf(t.largest, v[i]);
        for (int d = 16; d > 0; d /= 2)
            t.largest = fmaxf(t.largest, __shfl_xor_sync(0xffffffffu, t.largest, d));
        const float base = t.largest == -INFINITY ? 0 : t.largest;
        for (int i = lane; i < count; i += 32)
            t.sum += __expf(v[i] - base);
        for (int d = 16; d > 0; d /= 2)
            t.sum += __shfl_xor_sync(0xffffffffu, t.sum, d);
        if (lane < blocks)
            perceptron_tell(tallies + rank, t, barrier, lane);
    }
    perceptron_await(barrier);
    float largest = -INFINITY, sum = 0;
    for (int i = 0; i < blocks; i++)
        largest = fmaxf(largest, tallies[i].largest);
    for (int i = 0; i < blocks; i++)
        if (tallies[i].sum != 0)
            sum += tallies[i].sum * __expf(tallies[i].largest - largest);
    for (int i = lane; i < count; i += PERCEPTRON_THREADS)
        v[i] = __fdividef(__expf(v[i] - largest), sum);
    __syncthreads();
}

/* Results of a block, and pads behind the last one's. */
template <typename T>
static __device__ inline void perceptron_store(const perceptron_job &j, int row,
                                               int first, int count, const float *v)
{
    const perceptron_product &p = j.product[j.products - 1];
    T *y = (T *)j.y + row * j.row_of_y;
    for (int i = (int)threadIdx.x; i < count; i += PERCEPTRON_THREADS)
        from_float(y + first + i, v[i]);
    if (first == 0 && (int)threadIdx.x < j.y_padded - p.units)
        from_float(y + p.units + threadIdx.x, 0.0f);
}

/* A block's pixels of its channels times their factors; pads stay 0. */
template <typename T, int W, int V>
static __device__ inline void perceptron_scale(const perceptron_job &j,
                                               const perceptron_place<T, W, V> &p,
                                               int count, const float *factors)
{
    for (int g = p.group; g < p.groups; g += j.lanes) {
        const T *x = p.x + g * j.group_step;
        T *y = p.y + g * j.group_step;
        float f[V];
#pragma unroll
        for (int k = 0; k < V; k++)
            f[k] = g * V + k < count ? factors[g * V + k] : 0;
        for (int a = p.access; a < p.accesses; a += PERCEPTRON_AHEAD * j.helpers) {
            pack<T, W> q[PERCEPTRON_AHEAD];
            perceptron_load(q, x, a, p.accesses, j);
#pragma unroll
            for (int i = 0; i < PERCEPTRON_AHEAD; i++) {
#pragma unroll
                for (int k = 0; k < W; k++)
                    from_float(&q[i].v[k], to_float(q[i].v[k]) * f[k % V]);
                if (a + i * j.helpers < p.accesses)
                    *(pack<T, W> *)(y + (a + i * j.helpers) * j.access_step) = q[i];
            }
        }
    }
}

/* ---- all of it ------------------------------------------------------------------- */

/* Weights of a block that shared memory has room for, and its biases, while the kernel
 * before still runs; and zeros behind inputs that are no whole pieces, which nobody else
 * writes. */
template <typename T>
static __device__ inline void perceptron_fetch(const perceptron_job &j, int rank,
                                               float *shared)
{
    const int thread = (int)threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < j.products; i++) {
        const perceptron_product &p = j.product[i];
        const int first = (rank >> p.sharing) * p.each;
        const int count = min(p.each, p.units - first);
        const int bytes = p.staged >= 0 ? count * p.padded * (int)sizeof(T) : 0;
        const char *w = (const char *)((const T *)p.weight + (int64_t)first * p.padded);
#pragma unroll 1
        for (int at = thread * 16; at < bytes; at += PERCEPTRON_THREADS * 16)
            copy_ahead<16>((char *)shared + p.staged + at, w + at);
        for (int u = thread; u < count; u += PERCEPTRON_THREADS)
            if (p.bias)
                copy_ahead<4>(shared + p.biases + u, p.bias + first + u);
            else
                shared[p.biases + u] = 0;
        const int depth = i > 0 ? j.product[i - 1].units : j.depth;
        if (thread < p.padded - depth)
            for (int row = 0; row < (i == 0 ? 1 << j.parts : 1); row++)
                shared[p.input + row * p.padded + depth + thread] = 0;
    }
    end_copies();
}

/* What will come into the block, before others may send it. */
static __device__ inline void perceptron_prepare(const perceptron_job &j,
                                                 uint64_t *barriers)
{
    const int each = (int)sizeof(float);
    if (threadIdx.x == 0) {
        perceptron_expect(barriers, (j.channels << j.parts) * each, j.mean);
        for (int i = 1; i < j.products; i++)
            perceptron_expect(barriers + i, j.product[i - 1].units * each);
        perceptron_expect(barriers + PERCEPTRON_TALLIES,
                          (int)sizeof(perceptron_tally) << j.blocks,
                          j.end == STRATA_PERCEPTRON_SOFTMAX);
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
}

/* The inputs of the first product, in every block; once the kernel before has ended. */
template <typename T, int W, int V>
static __device__ inline void
perceptron_inputs(const perceptron_job &j, const perceptron_place<T, W, V> &place,
                  int row, int rank, float *shared, uint64_t *barrier)
{
    float *x = shared + j.product[0].input;
    const int padded = j.product[0].padded;
    if (!j.mean) {
        for (int k = (int)threadIdx.x; k < j.depth; k += PERCEPTRON_THREADS)
            x[k] = to_float(((const T *)j.x + row * j.row)[k]);
    } else {
        perceptron_sums(j, place, shared + j.sums);
    }
    await_copies<0>();
    __syncthreads();
    if (!j.mean)
        return;
    perceptron_means<V>(j, rank, shared, barrier);
    perceptron_await(barrier);
    if (j.parts > 0)
        for (int c = (int)threadIdx.x; c < padded; c += PERCEPTRON_THREADS) {
            float sum = x[c];
            for (int part = 1; part < 1 << j.parts; part++)
                sum += x[part * padded + c];
            x[c] = sum;
        }
    __syncthreads(); /* nobody reads sums any more, either */
}
#endif

/* A cluster a row. W elements are read at once, of V channels in turn; more than two are
 * the channels of a pixel. */
template <typename T, int W, int V>
static __global__ void __launch_bounds__(PERCEPTRON_THREADS)
    perceptron_kernel(const __grid_constant__ perceptron_job j)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ float4 perceptron_memory[];
    __shared__ uint64_t barriers[PERCEPTRON_BARRIERS];
    float *shared = (float *)perceptron_memory;
    const int row = (int)(blockIdx.x >> j.blocks);
    const int rank = (int)blockIdx.x & ((1 << j.blocks) - 1);
    perceptron_prepare(j, barriers);
    perceptron_fetch<T>(j, rank, shared);
    const perceptron_place<T, W, V> place(j, row, rank);
    __syncwarp();
    /* All blocks have begun; later it would empty the cache of what has been read. */
    asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory");
    wait_for_previous();
    launch_next();
    perceptron_inputs(j, place, row, rank, shared, barriers);
#pragma unroll 1
    for (int i = 0; i < j.products; i++) {
        if (i > 0)
            perceptron_await(barriers + i);
        perceptron_multiply<T>(j, i, rank, shared, barriers);
        __syncthreads();
    }
    const perceptron_product &p = j.product[j.products - 1];
    const int first = (rank >> p.sharing) * p.each, count = min(p.each, p.units - first);
    if (j.end == STRATA_PERCEPTRON_FACTORS) {
        perceptron_scale(j, place, count, shared + j.result);
        return;
    }
    if (j.end == STRATA_PERCEPTRON_SOFTMAX)
        perceptron_soften(j, rank, count, shared, barriers + PERCEPTRON_TALLIES);
    perceptron_store<T>(j, row, first, count, shared + j.result);
#endif
}

#endif /* PLUGINS_PERCEPTRON_WALK_CUH */
