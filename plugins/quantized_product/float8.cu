/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct of E4M3 on CUDA as its definition says: a thread an output, sums in
 * FP32.
 */
#include "plugins/quantized_product/float8.h"

#include "plugins/common/convert.cuh"
#include "plugins/common/quantized/quotient.h"

struct float8_plain_job {
    const __nv_fp8_e4m3 *x, *weight;            /* weight [u*unit + k*step] */
    const float *scale, *in, *bias, *scale_out; /* bias, scale_out: or NULL */
    void *y;
    int64_t total, depth, units, unit, step; /* total: outputs */
    int32_t many;                            /* scales */
    float slope, low, high;                  /* y > 0 ? y : slope*y, cut */
};

template <typename T>
static __global__ void float8_kernel(float8_plain_job j)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < j.total;
         i += step) {
        const int64_t row = i / j.units, u = i % j.units;
        const __nv_fp8_e4m3 *x = j.x + row * j.depth, *w = j.weight + u * j.unit;
        float sum = 0;
        for (int64_t k = 0; k < j.depth; k++)
            sum = fmaf((float)x[k], (float)w[k * j.step], sum);
        float y = fmaf(sum, *j.in * j.scale[j.many ? u : 0], j.bias ? j.bias[u] : 0);
        y = y > 0 ? y : j.slope == 1 ? y : j.slope * y;
        y = y < j.low ? j.low : y > j.high ? j.high : y;
        ((T *)j.y)[i] =
            cast_element<T>(sizeof(T) == 1 ? __fdiv_rn(y, *j.scale_out) : y, true);
    }
}

int float8_plain_accept(const strata_node *n)
{
    const strata_quantized_product *p = (const strata_quantized_product *)n->params;
    return quantized_accept(n, &p->quantized);
}

int float8_plain_run(const strata_run *r)
{
    const strata_quantized_product *p = (const strata_quantized_product *)r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const strata_tensor *scale = &r->weight[STRATA_QUANTIZED_FACTORS];
    float8_plain_job j = {};
    j.x = (const __nv_fp8_e4m3 *)x->data;
    j.weight = (const __nv_fp8_e4m3 *)r->weight[STRATA_QUANTIZED_WEIGHT].data;
    j.scale = (const float *)scale->data;
    j.in = (const float *)r->weight[STRATA_QUANTIZED_SCALE_IN].data;
    j.bias = (const float *)r->weight[STRATA_QUANTIZED_BIAS].data;
    j.scale_out = (const float *)r->weight[STRATA_QUANTIZED_SCALE_OUT].data;
    j.y = y->data;
    j.total = y->count;
    j.depth = x->dims[x->rank - 1];
    j.units = y->dims[y->rank - 1];
    j.unit = p->transposed ? j.depth : 1;
    j.step = p->transposed ? 1 : j.units;
    j.many = scale->count > 1;
    quantized_bounds(&p->quantized, &j.slope, &j.low, &j.high);
    if (j.total == 0)
        return STRATA_OK;
    const unsigned blocks = layer_blocks(j.total, CUDA_BLOCK);
    if (y->dtype == STRATA_E4M3)
        float8_kernel<__nv_fp8_e4m3><<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(j);
    else
        layer_float(y->dtype, [&](auto t) {
            float8_kernel<decltype(t)><<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(j);
        });
    return layer_launched(r, "quantized_product float8");
}
