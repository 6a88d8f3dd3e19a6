/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA kernels of Convolution share: the resolved layer, tensors as kernels see
 * them, packed weights. Channels are those of one group unless said otherwise.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_CONVOLUTION_CUH
#define PLUGINS_CONVOLUTION_CUDA_CONVOLUTION_CUH

#include "kernels/activate.cuh"
#include "plugins/common/window.cuh"

enum { CONVOLUTION_WEIGHT, CONVOLUTION_BIAS };

#define CONVOLUTION_EPILOGUES                                                            \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_RESIDUAL |           \
     STRATA_EPILOGUE_ACTIVATION)

/* State of every impl. */
struct convolution_state {
    struct window w;
    int64_t groups, in_c, out_c;
    void *packed; /* weights, as the kernel reads them; the core's memory */
    int32_t multiprocessors;
    bool overlaps; /* kernels may be launched before the one before them has ended */
};

/* Channels as they lie in memory: rounded up to the vector. */
static inline int64_t stored_channels(const strata_tensor *t)
{
    const int64_t vector = t->vector_dim == 1 ? t->vector : 1;
    return (t->dims[1] + vector - 1) / vector * vector;
}

/* Channels-last: elements from a pixel to the next, over rows and images too. */
static inline int64_t pixel_pitch(const strata_tensor *t)
{
    for (int d = t->rank - 1; d >= 2; d--)
        if (t->dims[d] > 1)
            return t->strides[d];
    return t->dims[0] > 1 ? t->strides[0] : stored_channels(t);
}

static inline const float *convolution_bias(const strata_run *r)
{
    const strata_tensor *bias = &r->weight[CONVOLUTION_BIAS];
    return bias->rank > 0 ? (const float *)bias->data : NULL;
}

static inline int convolution_resolve(const strata_node *n, convolution_state *s)
{
    const strata_convolution *p = (const strata_convolution *)n->params;
    s->groups = p->groups;
    s->in_c = n->in[0].dims[1] / p->groups;
    s->out_c = n->out[0].dims[1] / p->groups;
    return window_of_convolution(&s->w, p, &n->in[0], &n->weight[CONVOLUTION_WEIGHT],
                                 n->host, n->err);
}

/* ---- moving packs ---------------------------------------------------------------------
 */

/* In one access: a pack of __half assigned as such moves by halves. */
template <typename T, int N>
static __device__ inline pack<T, N> load_pack(const T *p)
{
    typedef typename word_of<sizeof(T) * N>::type word;
    const word w = *(const word *)p;
    pack<T, N> x;
    memcpy(&x, &w, sizeof x);
    return x;
}

template <typename T, int N>
static __device__ inline void store_pack(T *p, const pack<T, N> &x)
{
    typedef typename word_of<sizeof(T) * N>::type word;
    word w;
    memcpy(&w, &x, sizeof w);
    *(word *)p = w;
}

/* The same, or zeros where not `valid`: without a branch, so that the loads of a loop go
 * out together. Of memory that nobody writes meanwhile. Neither the compiler moves them
 * ahead of the wait for the kernel before nor ptxas, as it does with ld.global.nc. */
static __device__ inline void load_if(uint16_t &v, const void *p, bool valid)
{
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; mov.b16 %0, 0;\n"
                 "  @q ld.global.b16 %0, [%1]; }"
                 : "=h"(v)
                 : "l"(p), "r"((int)valid));
}

static __device__ inline void load_if(uint32_t &v, const void *p, bool valid)
{
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; mov.b32 %0, 0;\n"
                 "  @q ld.global.b32 %0, [%1]; }"
                 : "=r"(v)
                 : "l"(p), "r"((int)valid));
}

static __device__ inline void load_if(uint2 &v, const void *p, bool valid)
{
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0;\n"
                 "  @q ld.global.v2.b32 {%0, %1}, [%2]; }"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(p), "r"((int)valid));
}

static __device__ inline void load_if(uint4 &v, const void *p, bool valid)
{
    asm volatile("{ .reg .pred q; setp.ne.b32 q, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0;\n"
                 "  mov.b32 %2, 0; mov.b32 %3, 0;\n"
                 "  @q ld.global.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p), "r"((int)valid));
}

template <typename T, int N>
static __device__ inline pack<T, N> load_pack_if(const T *p, bool valid)
{
    typename word_of<sizeof(T) * N>::type w;
    pack<T, N> x;
    load_if(w, p, valid);
    memcpy(&x, &w, sizeof x);
    return x;
}

/* ---- the tail -------------------------------------------------------------------------
 */

/* A tail that is two bounds, with 0, which pads are, between them: no branches. */
struct convolution_bounds {
    bool plain; /* the tail is that */
    float low, high;
};

static inline convolution_bounds convolution_bounds_of(const epilogue_args &e)
{
    const activation_args &a = e.activation;
    const bool from_zero = a.kind == STRATA_RELU || a.kind == STRATA_RELU6;
    const bool clips = a.kind == STRATA_CLIP;
    convolution_bounds b;
    b.low = from_zero ? 0.0f : clips ? a.alpha : -INFINITY;
    b.high = a.kind == STRATA_RELU6 ? 6.0f : clips ? a.beta : INFINITY;
    b.plain =
        !e.residual && b.low <= 0 && b.high >= 0 && (a.kind < 0 || from_zero || clips);
    if (!b.plain)
        b.low = -INFINITY, b.high = INFINITY;
    return b;
}

static __device__ inline float bounded(float x, const convolution_bounds &b)
{
    asm("max.NaN.f32 %0, %0, %1; min.NaN.f32 %0, %0, %2;"
        : "+f"(x)
        : "f"(b.low), "f"(b.high));
    return x;
}

/* What a sum becomes before the residual is added: sum*scale + shift, N channels. */
template <int N>
struct convolution_affine {
    float scale[N], shift[N];

    /* N values of a vector from c on; `absent` without one and behind the channels. */
    static __device__ inline void take(float (&to)[N], const float *from, float absent,
                                       uint32_t c, uint32_t channels)
    {
        const bool whole =
            N % 4 == 0 && from && c + N <= channels && ((uintptr_t)(from + c) & 15) == 0;
        if (whole) {
#pragma unroll
            for (int i = 0; i < N; i += 4) {
                const float4 v = __ldg((const float4 *)(from + c + i));
                to[i] = v.x, to[i + 1 < N ? i + 1 : 0] = v.y;
                to[i + 2 < N ? i + 2 : 0] = v.z, to[i + 3 < N ? i + 3 : 0] = v.w;
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            to[i] = from && c + i < channels ? __ldg(from + c + i) : absent;
    }

    __device__ inline void load(const float *bias, const epilogue_args &e, uint32_t c,
                                uint32_t channels)
    {
        float own[N];
        take(scale, e.scale, 1, c, channels);
        take(shift, e.bias, 0, c, channels);
        take(own, bias, 0, c, channels);
#pragma unroll
        for (int i = 0; i < N; i++)
            shift[i] = fmaf(own[i], scale[i], shift[i]);
    }
};

/* sums become results; `real` of the N channels exist, the others become 0. */
template <int N>
static __device__ inline void
finish_all(float (&v)[N], const convolution_affine<N> &affine, const float (&residual)[N],
           uint32_t real, const activation_args &activation)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = fmaf(v[i], affine.scale[i], affine.shift[i]) + residual[i];
    activate_all(v, activation);
    if (real < N) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = i < real ? v[i] : 0;
    }
}

static inline cudaError_t convolution_count_multiprocessors(convolution_state *s)
{
    int device;
    const cudaError_t e = cudaGetDevice(&device);
    return e != cudaSuccess
               ? e
               : cudaDeviceGetAttribute(&s->multiprocessors,
                                        cudaDevAttrMultiProcessorCount, device);
}

/* For a kernel that goes through its work in as many blocks as fit: counts what it runs
 * on, and allows it so many bytes of shared memory. */
static inline int convolution_prepare(const strata_node *n, convolution_state *s,
                                      const void *kernel, int shared)
{
    cudaError_t e =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e == cudaSuccess)
        e = convolution_count_multiprocessors(s);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EDEVICE, "%d bytes of shared memory: %s (%s)",
                             shared, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- weights --------------------------------------------------------------------------
 */

/* Device memory for `count` elements of packed weights, into s->packed. */
static inline int convolution_reserve(const strata_node *n, convolution_state *s,
                                      int64_t count, int64_t element)
{
    const strata_pack *pack = (const strata_pack *)n->host->extension(STRATA_PACK_V1);
    int64_t bytes;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " to keep packed weights");
    if (__builtin_mul_overflow(count, element, &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    return pack->alloc(n, (size_t)bytes, &s->packed);
}

/* Has a kernel write `job.size` packed weights of so many bytes each. */
template <class Job>
static inline int convolution_pack(const strata_node *n, convolution_state *s, Job job,
                                   size_t element, void (*kernel)(Job))
{
    const int status = convolution_reserve(n, s, job.size, (int64_t)element);
    if (status != STRATA_OK)
        return status;
    job.packed = (decltype(job.packed))s->packed;
    job.weight = (const float *)n->weight[CONVOLUTION_WEIGHT].data;
    kernel<<<layer_blocks(job.size, CUDA_BLOCK), CUDA_BLOCK, 0,
             (cudaStream_t)n->stream>>>(job);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- impls, a file each --------------------------------------------------------------
 */

#define CONVOLUTION_TACTIC(name)                                                         \
    int name##_setup(const strata_node *n, void *state);                                 \
    int name##_run(const strata_run *r);
CONVOLUTION_TACTIC(direct)
int depthwise_accept(const strata_node *n);
CONVOLUTION_TACTIC(depthwise)
int depthwise_narrow_accept(const strata_node *n);
int depthwise_narrow_run(const strata_run *r);
int simt_accept(const strata_node *n);
CONVOLUTION_TACTIC(simt)
int stem_accept(const strata_node *n);
CONVOLUTION_TACTIC(stem)
int stem_ahead_accept(const strata_node *n);
CONVOLUTION_TACTIC(stem_ahead)
int stem_wgmma_accept(const strata_node *n);
CONVOLUTION_TACTIC(stem_wgmma)
int gemm_takes_flat(const strata_node *n); /* in any math mode */
int gemm_accept(const strata_node *n);
int gemm_deep_accept(const strata_node *n);
CONVOLUTION_TACTIC(mma_128x128)
CONVOLUTION_TACTIC(mma_128x64)
CONVOLUTION_TACTIC(mma_64x64)
CONVOLUTION_TACTIC(mma_256x64)
CONVOLUTION_TACTIC(mma_64x32)
CONVOLUTION_TACTIC(mma_split)
CONVOLUTION_TACTIC(wgmma_128x256)
CONVOLUTION_TACTIC(wgmma_256x128)
CONVOLUTION_TACTIC(wgmma_128x128)
CONVOLUTION_TACTIC(wgmma_128x64)
CONVOLUTION_TACTIC(wgmma_64x64)
CONVOLUTION_TACTIC(mma_128x128w)
CONVOLUTION_TACTIC(mma_128x64w)
CONVOLUTION_TACTIC(mma_64x64w)
CONVOLUTION_TACTIC(mma_64x128w)
CONVOLUTION_TACTIC(wgmma_128x256w)
CONVOLUTION_TACTIC(wgmma_256x128w)
CONVOLUTION_TACTIC(wgmma_128x128w)
CONVOLUTION_TACTIC(wgmma_128x64w)
CONVOLUTION_TACTIC(wgmma_64x64w)
CONVOLUTION_TACTIC(wgmma_64x128w)
CONVOLUTION_TACTIC(wgmma_256x64w)
CONVOLUTION_TACTIC(wgmma_128x256d)
CONVOLUTION_TACTIC(wgmma_256x128d)
CONVOLUTION_TACTIC(wgmma_128x128d)
CONVOLUTION_TACTIC(wgmma_128x64d)
int patch_64_accept(const strata_node *n);
CONVOLUTION_TACTIC(patch_64)
int patch_32_accept(const strata_node *n);
CONVOLUTION_TACTIC(patch_32)

#endif /* PLUGINS_CONVOLUTION_CUDA_CONVOLUTION_CUH */
