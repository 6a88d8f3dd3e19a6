/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of hopper.cuh's kernels, packed on the device: rows of filters in the kernels'
 * order, elements of the window, and of each its channels, rounded up to whole pieces.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_HOPPER_PACK_CUH
#define PLUGINS_COMMON_QUANTIZED_HOPPER_PACK_CUH

#include "plugins/common/quantized/hopper.cuh"
#include "plugins/common/quantized/hopper.h"
#include "plugins/common/quantized/quantized.h"
#include "plugins/common/quantized/resident.cuh"

struct quantized_columns_job {
    int8_t *packed;
    float *factor, *bias;
    int32_t *offset; /* or NULL */
    const int8_t *weight;
    const float *scale, *in, *bias_in; /* bias_in: or NULL */
    int64_t size;                      /* of packed */
    int64_t depth, filter, channel;    /* depth: channels to whole pieces */
    int32_t in_c, elements, filters, padded;
    int32_t zero_in, many; /* many: scales */
    int32_t lanes;         /* columns that change places among themselves */
};

/* The column of the weight whose sums are those of a column of B. */
static __device__ inline int32_t quantized_column(int32_t column, int32_t lanes)
{
    return lanes == RESIDENT_LANES ? resident_column(column) : product_column(column);
}

static __global__ void quantized_columns_kernel(quantized_columns_job j)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const int64_t begin = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = begin; i < j.size; i += step) {
        const int64_t c = i % j.depth, rest = i / j.depth;
        const int64_t t = rest % j.elements;
        const int64_t k = quantized_column((int32_t)(rest / j.elements), j.lanes);
        j.packed[i] = c < j.in_c && k < j.filters
                          ? j.weight[k * j.filter + c * j.channel + t]
                          : (int8_t)0;
    }
    for (int64_t k = begin; k < j.padded; k += step) {
        const bool real = k < j.filters;
        j.factor[k] = real ? __fmul_rn(*j.in, j.scale[j.many ? k : 0]) : 0;
        j.bias[k] = real && j.bias_in ? j.bias_in[k] : 0;
        if (!j.offset)
            continue;
        int32_t sum = 0;
        for (int64_t c = 0; real && c < j.in_c; c++)
            for (int64_t t = 0; t < j.elements; t++)
                sum += j.weight[k * j.filter + c * j.channel + t];
        j.offset[k] = -j.zero_in * sum;
    }
}

/* Rows of the packed weights: whole groups that change places. */
static inline int64_t quantized_rows(const quantized_shape &s, int32_t lanes)
{
    return (s.out_c + lanes - 1) / lanes * lanes;
}

static inline int quantized_reserve(const strata_node *n, quantized_hopper_state *state,
                                    const quantized_columns_job &j)
{
    const size_t column = sizeof(float) * (size_t)j.padded;
    int status = quantized_pack(n, (size_t)j.size, &state->weight);
    if (status == STRATA_OK)
        status = quantized_pack(n, column, (void **)&state->factor);
    if (status == STRATA_OK)
        status = quantized_pack(n, column, (void **)&state->bias);
    if (status == STRATA_OK && j.zero_in != 0)
        status = quantized_pack(n, column, (void **)&state->offset);
    if (status == STRATA_OK)
        status = quantized_pack(n, 2 * column + sizeof state->quick,
                                (void **)&state->quick_scale);
    return status;
}

/* `joined`: of a layer with a second input, or NULL. */
static inline cudaError_t quantized_pack_quick(const strata_node *n,
                                               const strata_quantized *q,
                                               const strata_quantized_convolution *joined,
                                               quantized_hopper_state *state,
                                               int32_t columns)
{
    const strata_tensor *w = n->weight;
    quick_job j = {};
    static_assert(sizeof state->quick == sizeof *j.quick + sizeof *j.alone, "of both");
    j.quick = (quantized_quick *)(state->quick_scale + 2 * columns);
    j.alone = (quantized_alone *)(j.quick + 1);
    j.scale = state->quick_scale;
    j.bias = state->quick_scale + columns;
    j.factor = state->factor;
    j.bias_in = state->bias;
    j.offset = state->offset;
    j.columns = columns;
    j.out = (const float *)w[STRATA_QUANTIZED_SCALE_OUT].data;
    j.activate = quantized_activation_of(q);
    j.zero_out = (int32_t)q->zero_out;
    j.to_unsigned = n->out[0].dtype == STRATA_UINT8;
    if (joined) {
        j.addend = (const float *)w[STRATA_QUANTIZED_SCALE_ADDEND].data;
        j.zero_addend = (int32_t)joined->zero_addend;
        j.addend_unsigned = n->in[1].dtype == STRATA_UINT8;
    }
    if (joined && joined->between) {
        j.between = (const float *)w[STRATA_QUANTIZED_SCALE_BETWEEN].data;
        j.zero_between = (int32_t)joined->zero_between;
        j.between_unsigned = joined->between == 2;
    }
    if (q->to == 0) /* others are not rounded to bytes */
        return cudaGetLastError();
    quick_kernel<<<1, CUDA_BLOCK, 0, (cudaStream_t)n->stream>>>(j);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) /* runs hand it to kernels as a constant */
        e = cudaMemcpyAsync(state->quick, j.quick, sizeof state->quick,
                            cudaMemcpyDeviceToHost, (cudaStream_t)n->stream);
    return e == cudaSuccess ? cudaStreamSynchronize((cudaStream_t)n->stream) : e;
}

/* `depth`: elements of a piece of K; `lanes`: columns that change places. */
static inline int quantized_pack_columns(const strata_node *n, const quantized_shape &s,
                                         const strata_quantized_convolution *joined,
                                         quantized_hopper_state *state, int64_t depth,
                                         int32_t lanes)
{
    const strata_tensor *scale = &n->weight[STRATA_QUANTIZED_FACTORS];
    const strata_tensor *bias = &n->weight[STRATA_QUANTIZED_BIAS];
    const int64_t rows = quantized_rows(s, lanes);
    quantized_columns_job j = {};
    j.depth = (s.in_stored + depth - 1) / depth * depth;
    j.elements = (int32_t)window_kernel_count(&s.w);
    if (__builtin_mul_overflow(j.depth * j.elements, rows, &j.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    j.in_c = (int32_t)s.in_c;
    j.filters = (int32_t)s.out_c;
    /* The last tile of any width ends before rows + QUANTIZED_COLUMNS. */
    j.padded = (int32_t)((rows / QUANTIZED_COLUMNS + 2) * QUANTIZED_COLUMNS);
    j.zero_in = (int32_t)s.q->zero_in;
    state->columns = j.padded;
    const int status = quantized_reserve(n, state, j);
    if (status != STRATA_OK)
        return status;
    j.packed = (int8_t *)state->weight;
    j.factor = state->factor;
    j.bias = state->bias;
    j.offset = state->offset;
    j.weight = (const int8_t *)n->weight[STRATA_QUANTIZED_WEIGHT].data;
    j.scale = (const float *)scale->data;
    j.in = (const float *)n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    j.bias_in = bias->rank > 0 ? (const float *)bias->data : NULL;
    j.filter = s.filter;
    j.channel = s.channel;
    j.many = scale->count > 1;
    j.lanes = lanes;
    quantized_columns_kernel<<<layer_blocks(j.size, CUDA_BLOCK), CUDA_BLOCK, 0,
                               (cudaStream_t)n->stream>>>(j);
    const cudaError_t e =
        quantized_pack_quick(n, s.q, n->n_in > 1 ? joined : NULL, state, j.padded);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

#endif /* PLUGINS_COMMON_QUANTIZED_HOPPER_PACK_CUH */
