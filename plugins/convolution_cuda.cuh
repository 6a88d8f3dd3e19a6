/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA kernels of Convolution share: the resolved layer, tensors as kernels see
 * them, packed weights. Channels are those of one group unless said otherwise.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_CUH
#define PLUGINS_CONVOLUTION_CUDA_CUH

#include "kernels/layer.cuh"
#include "plugins/window.h"

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

/* Of data at index (n, c, i): n*image + (c >> shift)*channel + (c & mask) + i*step. */
struct convolution_tensor {
    void *data;
    int64_t image, channel, step[WINDOW_DIMS];
    uint32_t shift, mask; /* of the vector of channels */
};

static inline convolution_tensor convolution_tensor_of(const strata_tensor *t)
{
    convolution_tensor v = {t->data, t->strides[0], t->strides[1], {}, 0, 0};
    while (t->vector_dim == 1 && (1 << v.shift) < t->vector)
        v.shift++;
    v.mask = (1u << v.shift) - 1;
    for (int d = 2; d < t->rank; d++)
        v.step[WINDOW_DIMS - t->rank + d] = t->strides[d];
    return v;
}

static __device__ inline int64_t channel_offset(const convolution_tensor &t, uint32_t c)
{
    return (c >> t.shift) * t.channel + (c & t.mask);
}

/* Channels as they lie in memory: rounded up to the vector. */
static inline int64_t stored_channels(const strata_tensor *t)
{
    const int64_t vector = t->vector_dim == 1 ? t->vector : 1;
    return (t->dims[1] + vector - 1) / vector * vector;
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

/* ---- the tail -------------------------------------------------------------------------
 */

/* Out of line: kernels finish many elements in unrolled loops. */
static __device__ __noinline__ float activate_rare(float x, activation_args p)
{
    return activate(x, p);
}

static __device__ inline float activate_usual(float x, const activation_args &p)
{
    if (p.kind == STRATA_RELU)
        return x < 0 ? 0 : x;
    return p.kind < 0 ? x : activate_rare(x, p);
}

/* What a sum becomes before the residual is added: sum*scale + shift, N channels. */
template <int N>
struct convolution_affine {
    float scale[N], shift[N];

    __device__ inline void load(const float *bias, const epilogue_args &e, uint32_t c,
                                uint32_t channels)
    {
#pragma unroll
        for (uint32_t i = 0; i < N; i++) {
            const bool real = c + i < channels;
            scale[i] = e.scale && real ? __ldg(e.scale + c + i) : 1.0f;
            shift[i] = e.bias && real ? __ldg(e.bias + c + i) : 0.0f;
            if (bias && real)
                shift[i] += __ldg(bias + c + i) * scale[i];
        }
    }
};

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

/* To be returned right after a launch from setup. */
static inline int convolution_packed(const strata_node *n)
{
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
int stem_accept(const strata_node *n);
CONVOLUTION_TACTIC(stem)
int gemm_accept(const strata_node *n);
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

#endif /* PLUGINS_CONVOLUTION_CUDA_CUH */
