/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of whole planes, a reduction: each input element is read once, so bytes bound
 * it. Small planes are read many at once through shared memory, as they seldom begin at a
 * multiple of 16 bytes; large ones by a block each; channels-last images by columns of
 * channels. Where that makes too few blocks, planes are cut into slices whose FP32
 * results a second kernel joins.
 */
#ifndef PLUGINS_POOLING_WHOLE_CUH
#define PLUGINS_POOLING_WHOLE_CUH

#include "plugins/pooling/window.cuh"

#define WHOLE_BLOCKS 264   /* that fill a large device */
#define WHOLE_SLICE 8192   /* elements of a plane at least, or pixels of an image / 8 */
#define WHOLE_SHARED 24576 /* bytes of small planes */
#define WHOLE_FLIGHT 4     /* loads of a thread at once */

struct whole_job {
    void *y;
    float *partial; /* [slices][size], or NULL */
    const void *x;
    int64_t size;         /* outputs, pad lanes included */
    int64_t pixels;       /* of a plane */
    int64_t image, pitch; /* channels-last: from an image, a pixel, to the next */
    int32_t padded;       /* channels of an image, with pads */
    int32_t channels;
    int32_t slices;
    float factor; /* of an average */
};

/* value is of output o, over `slice` of its plane. */
template <typename T>
static __device__ inline void whole_store(const whole_job &job, int64_t o, float value,
                                          int slice)
{
    if (job.slices > 1)
        job.partial[slice * job.size + o] = value;
    else
        from_float((T *)job.y + o, job.padded == job.channels || /* a long division */
                                           o % job.padded < job.channels
                                       ? value * job.factor
                                       : 0.0f);
}

template <typename T, bool Max>
static __global__ void __launch_bounds__(CUDA_BLOCK) whole_join_kernel(whole_job job)
{
    const int64_t o = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    float v = pool_start<Max>();
    launch_next();
    wait_for_previous();
    if (o >= job.size)
        return;
    for (int slice = 0; slice < job.slices; slice++)
        v = pool_fold<Max>(v, job.partial[slice * job.size + o]);
    from_float((T *)job.y + o, o % job.padded < job.channels ? v * job.factor : 0.0f);
}

/* Across `width` neighbouring threads, those with the same index mod Lanes. */
template <int Lanes, bool Max>
static __device__ inline float whole_shuffle(float v, int width)
{
    for (int d = width / 2; d >= Lanes; d /= 2)
        v = pool_fold<Max>(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}

/* ---- planes that are contiguous -----------------------------------------------------
 */

/* `planes` of them to a block, CUDA_BLOCK / planes threads to a plane. */
template <typename T, int Lanes, bool Max>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    whole_small_kernel(whole_job job, int planes)
{
    alignas(16) __shared__ unsigned char memory[WHOLE_SHARED];
    const int N = 16 / (int)sizeof(T), length = (int)job.pixels * Lanes;
    const int64_t first = (int64_t)blockIdx.x * planes;
    const int n = (int)min((int64_t)planes, job.size / Lanes - first);
    const int count = n * length, packs = count / N;
    const T *x = (const T *)job.x + first * length;
    T *shared = (T *)memory;
    launch_next();
    wait_for_previous();
    for (int i = threadIdx.x; i < packs; i += CUDA_BLOCK)
        ((pack<T, N> *)shared)[i] = ((const pack<T, N> *)x)[i];
    for (int i = packs * N + threadIdx.x; i < count; i += CUDA_BLOCK)
        shared[i] = x[i];
    __syncthreads();
    const int width = CUDA_BLOCK / planes;
    const int plane = threadIdx.x / width, part = threadIdx.x % width;
    float v = pool_start<Max>();
    for (int i = part; i < length && plane < n; i += width)
        v = pool_fold<Max>(v, to_float(shared[plane * length + i]));
    v = whole_shuffle<Lanes, Max>(v, width);
    if (part < Lanes && plane < n)
        whole_store<T>(job, (first + plane) * Lanes + part, v, 0);
}

/* A block to a plane and slice; N elements to an access, of which N / Lanes per lane. A
 * thread's loads, up to WHOLE_FLIGHT, are on their way at once, or each is awaited before
 * the next. */
template <typename T, int N, int Lanes, bool Max, int Threads>
static __global__ void __launch_bounds__(Threads) whole_large_kernel(whole_job job)
{
    typedef typename word_of<sizeof(T) * N>::type word;
    __shared__ float warps[Lanes][Threads / 32];
    const int64_t plane = blockIdx.x, length = job.pixels * Lanes;
    const int64_t packs = length / N, step = (int64_t)job.slices * Threads;
    const word *x = (const word *)((const T *)job.x + plane * length);
    float v[Lanes];
#pragma unroll
    for (int l = 0; l < Lanes; l++)
        v[l] = pool_start<Max>();
    launch_next();
    wait_for_previous();
    for (int64_t i = (int64_t)blockIdx.y * Threads + threadIdx.x; i < packs;
         i += WHOLE_FLIGHT * step) {
        word w[WHOLE_FLIGHT] = {};
#pragma unroll
        for (int u = 0; u < WHOLE_FLIGHT; u++)
            if (i + u * step < packs)
                w[u] = x[i + u * step];
#pragma unroll
        for (int u = 0; u < WHOLE_FLIGHT; u++) {
            const pack<T, N> p = *(const pack<T, N> *)&w[u];
            if (i + u * step < packs)
#pragma unroll
                for (int k = 0; k < N; k++)
                    v[k % Lanes] = pool_fold<Max>(v[k % Lanes], to_float(p.v[k]));
        }
    }
#pragma unroll
    for (int l = 0; l < Lanes; l++) {
        v[l] = whole_shuffle<1, Max>(v[l], 32);
        if (threadIdx.x % 32 == 0)
            warps[l][threadIdx.x / 32] = v[l];
    }
    __syncthreads();
    if (threadIdx.x >= Lanes)
        return;
    float sum = pool_start<Max>();
#pragma unroll
    for (int i = 0; i < Threads / 32; i++)
        sum = pool_fold<Max>(sum, warps[threadIdx.x][i]);
    whole_store<T>(job, plane * Lanes + threadIdx.x, sum, (int)blockIdx.y);
}

template <typename T, int N, int Lanes, bool Max>
static void whole_large(const whole_job &job, dim3 grid, cudaStream_t stream)
{
    const int few = CUDA_BLOCK / 2;
    if (job.pixels * Lanes <= (int64_t)few * WHOLE_FLIGHT * N)
        launch_overlapped(whole_large_kernel<T, N, Lanes, Max, few>, grid, few, 0, stream,
                          job);
    else
        launch_overlapped(whole_large_kernel<T, N, Lanes, Max, CUDA_BLOCK>, grid,
                          CUDA_BLOCK, 0, stream, job);
}

/* ---- channels-last images -----------------------------------------------------------
 */

/* A block has blockDim.x columns of N channels, blockDim.y rows that share the pixels. */
template <typename T, int N, bool Max>
static __global__ void __launch_bounds__(CUDA_BLOCK) whole_last_kernel(whole_job job)
{
    __shared__ float rows[CUDA_BLOCK][N + 1];
    const int columns = job.padded / N;
    const int64_t groups = (columns + blockDim.x - 1) / blockDim.x;
    const int64_t image = blockIdx.x / groups;
    const int column = (int)(blockIdx.x % groups) * (int)blockDim.x + (int)threadIdx.x;
    const T *x = (const T *)job.x + image * job.image + (int64_t)column * N;
    float v[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        v[k] = pool_start<Max>();
    launch_next();
    wait_for_previous();
#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
         column < columns && i < job.pixels; i += (int64_t)job.slices * blockDim.y) {
        const pack<T, N> p = *(const pack<T, N> *)(x + i * job.pitch);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = pool_fold<Max>(v[k], to_float(p.v[k]));
    }
    float *row = rows[threadIdx.y * blockDim.x + threadIdx.x];
#pragma unroll
    for (int k = 0; k < N; k++)
        row[k] = v[k];
    __syncthreads();
    /* One thread to a channel. */
    for (unsigned c = threadIdx.y * blockDim.x + threadIdx.x; c < blockDim.x * N;
         c += blockDim.x * blockDim.y) {
        const int64_t channel = (blockIdx.x % groups) * blockDim.x * N + c;
        float sum = pool_start<Max>();
        for (unsigned i = 0; i < blockDim.y; i++)
            sum = pool_fold<Max>(sum, rows[i * blockDim.x + c / N][c % N]);
        if (channel < job.padded)
            whole_store<T>(job, image * job.padded + channel, sum, (int)blockIdx.y);
    }
}

/* ---- on the host --------------------------------------------------------------------
 */

static inline int64_t whole_padded(const strata_tensor *t)
{
    return (t->dims[1] + t->vector - 1) / t->vector * t->vector;
}

static inline bool whole_is_last(const strata_tensor *x)
{
    return x->vector == 8 || (x->vector == 1 && x->strides[1] == 1);
}

/* Elements of one column of channels-last images that move as a word. */
static inline int whole_width(const strata_tensor *x)
{
    const int width = x->dtype == STRATA_FP32 ? 4 : 8;
    return whole_padded(x) % width == 0 ? width : 1;
}

static inline int whole_columns(const strata_tensor *x)
{
    const int64_t columns = whole_padded(x) / whole_width(x);
    int threads = 32;
    while (threads > 1 && threads / 2 >= columns)
        threads /= 2;
    return threads;
}

/* Blocks without slices. */
static inline int64_t whole_blocks(const strata_tensor *x)
{
    const int64_t padded = whole_padded(x);
    if (!whole_is_last(x))
        return x->dims[0] * padded / x->vector;
    const int64_t columns = padded / whole_width(x), threads = whole_columns(x);
    return x->dims[0] * ((columns + threads - 1) / threads);
}

static inline int whole_slices(const strata_tensor *x, int64_t pixels)
{
    const int64_t blocks = whole_blocks(x);
    const int64_t room = blocks > 0 ? WHOLE_BLOCKS / blocks : 1;
    const int64_t work = whole_is_last(x) ? pixels * whole_columns(x) * whole_width(x)
                                          : pixels * x->vector;
    const int64_t slices = room < work / WHOLE_SLICE ? room : work / WHOLE_SLICE;
    return slices > 1 ? (int)slices : 1;
}

/* From a pixel to the next, channels-last. */
static inline int64_t whole_pitch(const strata_tensor *x)
{
    return x->rank > 2 ? x->strides[x->rank - 1] : whole_padded(x);
}

/* Whether a channels-last tensor's pixels are evenly spaced, in whole words. */
static inline bool whole_is_even(const strata_tensor *x)
{
    const int64_t width = whole_width(x);
    bool even =
        whole_is_last(x) && whole_pitch(x) % width == 0 && x->strides[0] % width == 0;
    for (int d = 2; d < x->rank - 1; d++)
        even = even &&
               (x->dims[d] == 1 || x->strides[d] == x->strides[d + 1] * x->dims[d + 1]);
    return even;
}

static inline bool whole_fits(const strata_run *r, const struct window *w)
{
    bool whole = true;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t outputs = y->dims[0] * whole_padded(y);
    for (int d = 0; d < WINDOW_DIMS; d++)
        whole = whole && w->kernel[d] == w->in[d] && w->begin[d] == 0 && w->end[d] == 0 &&
                (w->dilation[d] == 1 || w->kernel[d] == 1);
    const bool dense = x->size == outputs * window_in_count(w);
    return whole && (dense || whole_is_even(x)) && y->size == outputs &&
           (uintptr_t)x->data % 16 == 0 && whole_blocks(x) < 0x7fffffff;
}

/* Planes to a block of the kernel for small ones; 0: they are not small. */
static inline int whole_planes(const whole_job &job, int64_t bytes)
{
    int planes = 64;
    if (bytes > WHOLE_SHARED / 8)
        return 0;
    while (planes > 8 &&
           (planes * bytes > WHOLE_SHARED || job.size / planes < 2 * WHOLE_BLOCKS))
        planes /= 2;
    return planes;
}

template <typename T, int Lanes, bool Max>
static void whole_planar(const whole_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T);
    const int64_t length = job.pixels * Lanes, planes = job.size / Lanes;
    const int each = job.slices > 1 ? 0 : whole_planes(job, length * (int64_t)sizeof(T));
    const dim3 grid((unsigned)planes, (unsigned)job.slices);
    if (each)
        launch_overlapped(whole_small_kernel<T, Lanes, Max>, layer_blocks(planes, each),
                          CUDA_BLOCK, 0, stream, job, each);
    else if (length % N == 0)
        whole_large<T, N, Lanes, Max>(job, grid, stream);
    else
        whole_large<T, Lanes, Lanes, Max>(job, grid, stream);
}

template <typename T, bool Max>
static void whole_last(const whole_job &job, const strata_tensor *x, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T), columns = whole_columns(x);
    const dim3 threads((unsigned)columns, (unsigned)(CUDA_BLOCK / columns));
    const dim3 grid((unsigned)whole_blocks(x), (unsigned)job.slices);
    launch_overlapped(whole_width(x) == N ? whole_last_kernel<T, N, Max>
                                          : whole_last_kernel<T, 1, Max>,
                      grid, threads, 0, stream, job);
}

template <typename T, bool Max>
static void whole_planes_of(const strata_run *r)
{
    const pooling *pool = (const pooling *)r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const cudaStream_t stream = layer_stream(r);
    whole_job job = {};
    job.y = y->data;
    job.x = x->data;
    job.partial = (float *)r->workspace;
    job.size = y->size;
    job.pixels = window_in_count(&pool->w);
    job.image = x->strides[0];
    job.pitch = whole_pitch(x);
    job.padded = (int32_t)whole_padded(y);
    job.channels = (int32_t)y->dims[1];
    job.slices = whole_slices(x, job.pixels);
    job.factor = Max ? 1.0f : 1.0f / (float)job.pixels;
    if (whole_is_last(x))
        whole_last<T, Max>(job, x, stream);
    else if (x->vector == 2)
        whole_planar<__half, 2, Max>(job, stream); /* of FP16 alone */
    else
        whole_planar<T, 1, Max>(job, stream);
    if (job.slices > 1)
        launch_overlapped(whole_join_kernel<T, Max>, layer_blocks(job.size, CUDA_BLOCK),
                          CUDA_BLOCK, 0, stream, job);
}

#endif /* PLUGINS_POOLING_WHOLE_CUH */
