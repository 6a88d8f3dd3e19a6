/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedSum on CUDA: inputs and output lie alike, pad lanes too.
 */
#include "plugins/common/quantized/direct.cuh"
#include "plugins/common/quantized/round.cuh"

enum { SCALE_A, SCALE_B, SCALE_OUT };
enum { PACK = 16 };

struct sum_job {
    const uint8_t *a, *b;
    void *y;
    const float *scale_a, *scale_b, *scale_out;
    strata_quantized q;
    quantized_activation activation;
    channel_map channels;
    int64_t size, zero_b;
    int32_t signed_a, signed_b, out, pads;
};

/* What a byte stands for. */
static __device__ inline float value_of(uint8_t byte, bool is_signed, int64_t zero,
                                        float scale)
{
    const int32_t x = is_signed ? (int8_t)byte : byte;
    return __fmul_rn((float)(x - (int32_t)zero), scale);
}

static __device__ inline float sum_of(const sum_job &j, float scale_a, float scale_b,
                                      uint8_t a, uint8_t b)
{
    return quantized_activate_rounded(
        j.q, __fadd_rn(value_of(a, j.signed_a, j.q.zero_in, scale_a),
                       value_of(b, j.signed_b, j.zero_b, scale_b)));
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    sum_kernel(const __grid_constant__ sum_job j)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    launch_next();
    wait_for_previous();
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < j.size;
         i += step) {
        if (j.pads && channel_of(i, j.channels) >= j.channels.channels)
            ((uint8_t *)j.y)[i] = 0;
        else
            quantized_put(j.y, j.out, i, j.q,
                          sum_of(j, *j.scale_a, *j.scale_b, j.a[i], j.b[i]), j.scale_out);
    }
}

/* Bytes to bytes without pad lanes, 16 at a time: size counts these. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    sum_pack_kernel(const __grid_constant__ sum_job j)
{
    typedef pack<uint8_t, PACK> bytes;
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    const float scale_a = *j.scale_a, scale_b = *j.scale_b;
    const quantized_rounding rounding(j.scale_out, (int32_t)j.q.zero_out,
                                      j.out == STRATA_UINT8 ? 128 : 0);
    launch_next();
    wait_for_previous();
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < j.size;
         i += step) {
        const bytes a = ((const bytes *)j.a)[i], b = ((const bytes *)j.b)[i];
        uint32_t words[PACK / 4];
        float v[PACK];
        int32_t x[PACK];
#pragma unroll
        for (int e = 0; e < PACK; e++)
            v[e] = __fadd_rn(value_of(a.v[e], j.signed_a, j.q.zero_in, scale_a),
                             value_of(b.v[e], j.signed_b, j.zero_b, scale_b));
        quantized_activate_all(v, j.activation);
        rounding.round(v, x);
#pragma unroll
        for (int w = 0; w < PACK / 4; w++)
            words[w] = saturate_four(x[w * 4], x[w * 4 + 1], x[w * 4 + 2], x[w * 4 + 3]) ^
                       (j.out == STRATA_UINT8 ? QUANTIZED_FLIP : 0);
        ((uint4 *)j.y)[i] = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

static int accept(const strata_node *n)
{
    return quantized_accept(n, &((const strata_quantized_sum *)n->params)->quantized);
}

static int run(const strata_run *r)
{
    const strata_quantized_sum *p = (const strata_quantized_sum *)r->params;
    const strata_tensor *y = &r->out[0];
    sum_job j = {};
    j.a = (const uint8_t *)r->in[0].data;
    j.b = (const uint8_t *)r->in[1].data;
    j.y = y->data;
    j.scale_a = (const float *)r->weight[SCALE_A].data;
    j.scale_b = (const float *)r->weight[SCALE_B].data;
    j.scale_out = (const float *)r->weight[SCALE_OUT].data;
    j.q = p->quantized;
    j.activation = quantized_activation_of(&j.q);
    j.channels = channel_map_of(y);
    j.size = y->size;
    j.zero_b = p->zero_b;
    j.signed_a = r->in[0].dtype == STRATA_INT8;
    j.signed_b = r->in[1].dtype == STRATA_INT8;
    j.out = y->dtype;
    j.pads = y->size != y->count;
    const bool packed = !j.pads && j.size % PACK == 0 && p->quantized.to != 0;
    if (packed)
        j.size /= PACK;
    launch_overlapped(packed ? sum_pack_kernel : sum_kernel,
                      dim3(layer_blocks(j.size, CUDA_BLOCK)), dim3(CUDA_BLOCK), 0,
                      layer_stream(r), j);
    return layer_launched(r, "quantized_sum");
}

#define BYTES(layout) (STRATA_I8_##layout | STRATA_U8_##layout)
#define ROW(bytes, floats)                                                               \
    {                                                                                    \
        {bytes, bytes},                                                                  \
        {                                                                                \
            (bytes) | (floats)                                                           \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(BYTES(NCHW), STRATA_F32_NCHW),
    ROW(BYTES(NHWC), STRATA_F32_NHWC),
    ROW(BYTES(NC4HW4), 0),
    ROW(BYTES(NC32HW32), 0),
    ROW(STRATA_I8_NHWC16, 0),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = accept,
     .run = run,
     .bandwidth = 0.2},
};

static const strata_extends quantized_sum = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedSum",
    .params_size = sizeof(strata_quantized_sum),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&quantized_sum};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::QuantizedSum", extends)
