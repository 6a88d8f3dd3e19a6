/* SPDX-License-Identifier: Apache-2.0
 *
 * DynamicQuantize on CUDA: blocks find the ranges of their elements, then each has all of
 * those and rounds its part by a true division.
 */
#include "kernels/layer.cuh"

#define BLOCKS 264
enum { Y, SCALE, ZERO };

struct range {
    float low, high;
};

static __device__ inline range joined(range a, range b)
{
    return {fminf(a.low, b.low), fmaxf(a.high, b.high)};
}

/* Of all threads of the block, in each of them. */
static __device__ inline range of_block(range r)
{
    __shared__ range warps[CUDA_BLOCK / 32];
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        r = joined(r, {__shfl_xor_sync(0xffffffffu, r.low, d),
                       __shfl_xor_sync(0xffffffffu, r.high, d)});
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = r;
    __syncthreads();
    for (int w = 0; w < CUDA_BLOCK / 32; w++)
        r = joined(r, warps[w]);
    return r;
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    range_kernel(range *out, const float *x, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    range r = {0, 0};
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n; i += step)
        r = joined(r, {x[i], x[i]});
    r = of_block(r);
    if (threadIdx.x == 0)
        out[blockIdx.x] = r;
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    round_kernel(uint8_t *y, float *scale_out, uint8_t *zero_out, const float *x,
                 const range *ranges, int count, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    range r = {0, 0};
    for (int i = (int)threadIdx.x; i < count; i += CUDA_BLOCK)
        r = joined(r, ranges[i]);
    r = of_block(r);
    const float scale = __fdiv_rn(__fsub_rn(r.high, r.low), 255.0f);
    const float share = rintf(-__fdiv_rn(r.low, scale));
    const float zero = share > 0 ? fminf(share, 255.0f) : 0.0f;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n; i += step) {
        const float v = rintf(__fdiv_rn(x[i], scale)) + zero; /* no number becomes 0 */
        y[i] = (uint8_t)max(0, min(255, __float2int_rn(v)));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *scale_out = scale;
        *zero_out = (uint8_t)zero;
    }
}

static unsigned blocks_of(int64_t n)
{
    const int64_t blocks = (n + CUDA_BLOCK - 1) / CUDA_BLOCK;
    return (unsigned)(blocks < 1 ? 1 : blocks < BLOCKS ? blocks : (int64_t)BLOCKS);
}

static size_t dynamic_workspace(const strata_node *n)
{
    return blocks_of(n->in[0].count) * sizeof(range);
}

static int dynamic_run(const strata_run *r)
{
    const int64_t n = r->in[0].count;
    const unsigned blocks = blocks_of(n);
    const cudaStream_t stream = layer_stream(r);
    const float *x = (const float *)r->in[0].data;
    range_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>((range *)r->workspace, x, n);
    round_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>(
        (uint8_t *)r->out[Y].data, (float *)r->out[SCALE].data,
        (uint8_t *)r->out[ZERO].data, x, (const range *)r->workspace, (int)blocks, n);
    return layer_launched(r, "dynamic_quantize");
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW}, {STRATA_U8_NCHW, STRATA_F32_NCHW, STRATA_U8_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .workspace = dynamic_workspace,
     .run = dynamic_run,
     .bandwidth = 0.4},
};

static const strata_extends dynamic_quantize = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::DynamicQuantize",
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&dynamic_quantize};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::DynamicQuantize", extends)
