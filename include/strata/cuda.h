/* SPDX-License-Identifier: Apache-2.0
 *
 * What a CUDA plugin needs beside plugin.h: launches that cannot fail unseen, elements of
 * the three float types as float, and the pad lanes of the vectorised formats. For nvcc, C++14
 * and later; all of it is inline, so a plugin still links nothing of ours. The functions
 * that touch no device code can be used from a C or C++ file too.
 *
 * Build with `-cudart shared`, which `pkg-config --variable=cudaflags strata-plugin-1`
 * holds: with a runtime of its own in the plugin, the host never sees a failed launch.
 */
#ifndef STRATA_CUDA_H
#define STRATA_CUDA_H

#include <cuda_runtime.h>

#include <strata/plugin.h>

/* ---- calls --------------------------------------------------------------------------
 */

static inline cudaStream_t strata_stream_of(const strata_run *r)
{
    return (cudaStream_t)r->stream;
}

static inline int strata_cuda_fail(const strata_host *host, strata_error *err,
                                   cudaError_t e, const char *what)
{
    return host->fail(err,
                      e == cudaErrorMemoryAllocation ? STRATA_ENOMEM : STRATA_EDEVICE,
                      "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Leave the callback where a CUDA call fails; call: the strata_node or strata_run. */
#define STRATA_CUDA(call, expression)                                                    \
    do {                                                                                 \
        const cudaError_t strata_cuda_e_ = (expression);                                 \
        if (strata_cuda_e_ != cudaSuccess)                                               \
            return strata_cuda_fail((call)->host, (call)->err, strata_cuda_e_,           \
                                    #expression);                                        \
    } while (0)

static inline int strata_launched_(const strata_run *r, const char *where)
{
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK : strata_cuda_fail(r->host, r->err, e, where);
}

#define STRATA_TEXT_(x) #x
#define STRATA_TEXT(x) STRATA_TEXT_(x)
/* What run returns right after a launch: a launch that was refused (too many threads, too
 * much shared memory, no code for this device) tells nobody else. */
#define STRATA_LAUNCHED(r)                                                               \
    strata_launched_((r), "kernel launch before " __FILE__ ":" STRATA_TEXT(__LINE__))

/* Blocks for n elements, one a thread. Beyond the largest grid a kernel walks with
 * STRATA_FOR_EACH. */
static inline unsigned strata_blocks(int64_t n, int threads)
{
    const int64_t blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks < 0x7fffffff ? blocks : 0x7fffffff);
}

/* ---- channels and pad lanes ---------------------------------------------------------
 */

/*
 * Where the channels of a dense tensor lie, whatever its format, for a kernel that walks
 * over memory as it is: the element at i has the channel
 *   (i / step % blocks) * vector + i % vector
 * and from `count` on these are pad lanes, which are to hold zero.
 */
typedef struct strata_channels {
    int64_t step; /* elements from one block of channels to the next */
    int32_t blocks, vector, count;
} strata_channels;

static inline strata_channels strata_channels_of(const strata_tensor *t)
{
    strata_channels c = {1, 1, t->vector_dim == 1 ? t->vector : 1, 1};
    if (t->rank < 2)
        return c;
    c.step = t->strides[1] > 0 ? t->strides[1] : 1;
    c.count = (int32_t)t->dims[1];
    c.blocks = (c.count + c.vector - 1) / c.vector;
    return c;
}

/* ---- device code ----------------------------------------------------------------------
 */

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* i over [0, n), shared by all threads of a grid of any size. */
#define STRATA_FOR_EACH(i, n)                                                            \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);            \
         i += (int64_t)gridDim.x * blockDim.x)

static __device__ inline int64_t strata_channel(const strata_channels &c, int64_t i)
{
    const int64_t row =
        i >> 32 || c.step >> 32 ? i / c.step : (uint32_t)i / (uint32_t)c.step;
    const int64_t block = row >> 32 ? row % c.blocks : (uint32_t)row % (uint32_t)c.blocks;
    return block * c.vector + i % c.vector;
}

static __device__ inline bool strata_is_pad(const strata_channels &c, int64_t i)
{
    return c.vector > 1 && strata_channel(c, i) >= c.count;
}

static __device__ inline float strata_get(const float *x)
{
    return *x;
}
static __device__ inline float strata_get(const __half *x)
{
    return __half2float(*x);
}
static __device__ inline float strata_get(const __nv_bfloat16 *x)
{
    return __bfloat162float(*x);
}
static __device__ inline void strata_put(float *y, float value)
{
    *y = value;
}
static __device__ inline void strata_put(__half *y, float value)
{
    *y = __float2half_rn(value);
}
static __device__ inline void strata_put(__nv_bfloat16 *y, float value)
{
    *y = __float2bfloat16_rn(value);
}
#endif /* __CUDACC__ */

#endif /* STRATA_CUDA_H */
