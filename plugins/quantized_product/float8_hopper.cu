/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct of E4M3 on Hopper's tensor cores. The sizes of tiles are tactics:
 * pairs for large products, which fill the chip several times; split ones for small
 * products, whose depth the blocks of a cluster share. All but pairs keep FP32's bits.
 */
#include "plugins/quantized_product/float8.h"

#include "plugins/common/product/launch.cuh"
#include "plugins/common/quantized/quotient.h"
#include "plugins/quantized_product/float8.cuh"

#define PART 2 /* steps of the depth that a sum stays in the tensor cores: 256 */

enum { TO_E4M3, TO_FP16, TO_BF16, TO_FP32, RESULTS };

#define TILE(result, steps, ...)                                                         \
    &launch_of<product_tile<product_float8<result, steps>, __VA_ARGS__>>
#define HALVES(...) TILE(__half, __VA_ARGS__), TILE(__nv_bfloat16, __VA_ARGS__)
#define EVERY(...)                                                                       \
    TILE(__nv_fp8_e4m3, __VA_ARGS__), HALVES(__VA_ARGS__), TILE(float, __VA_ARGS__)

/* Steps, 0: all; parts, columns, warpgroups, stages, turns, pair, split, blocks of a
 * multiprocessor. By what they write: pairs have no room for FP32. */
static const product_launch *const launches[FLOAT8_TACTICS][RESULTS] = {
    [FLOAT8_128x256_pair] = {TILE(__nv_fp8_e4m3, 0, 1, 256, 2, 4, false, true, false, 1),
                             HALVES(0, 1, 256, 2, 3, false, true, false, 1)},
    [FLOAT8_128x128_pair] = {TILE(__nv_fp8_e4m3, 0, 2, 128, 2, 5, true, true, false, 1),
                             HALVES(0, 2, 128, 2, 5, true, true, false, 1)},
    [FLOAT8_128x192_parts] = {TILE(__nv_fp8_e4m3, PART, 1, 192, 2, 5, false, true, false,
                                   1),
                              HALVES(PART, 1, 192, 2, 4, false, true, false, 1),
                              TILE(float, PART, 1, 192, 2, 3, false, true, false, 1)},
    [FLOAT8_128x64_split] = {EVERY(PART, 1, 64, 2, 6, false, false, true, 1)},
    [FLOAT8_64x64_split] = {EVERY(PART, 1, 64, 1, 5, false, false, true, 2)},
    [FLOAT8_64x32_split] = {EVERY(PART, 1, 32, 1, 12, false, false, true, 1)},
};

static const product_launch *launch_for(int tactic, int32_t dtype)
{
    return launches[tactic][dtype == STRATA_E4M3   ? TO_E4M3
                            : dtype == STRATA_FP16 ? TO_FP16
                            : dtype == STRATA_BF16 ? TO_BF16
                                                   : TO_FP32];
}

/* ---- what it takes --------------------------------------------------------------- */

struct float8_shape {
    int64_t rows, depth, units;
};

static float8_shape shape_of(const strata_tensor *x, const strata_tensor *y)
{
    const int64_t units = y->dims[y->rank - 1];
    return {units > 0 ? y->count / units : 0, x->dims[x->rank - 1], units};
}

static const char *refusal(const strata_node *n, const product_launch *l)
{
    const float8_shape s = shape_of(&n->in[0], &n->out[0]);
    const int64_t size = n->out[0].dtype == STRATA_FP32   ? 4
                         : n->out[0].dtype == STRATA_E4M3 ? 1
                                                          : 2;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return "tensor cores are for math = tensor_op";
    if (!l)
        return "it does not write this dtype";
    if (s.depth == 0 || s.depth % 16 != 0 || s.units * size % 16 != 0)
        return "rows are whole pieces of 16 bytes";
    if (s.rows > INT32_MAX / 2 || s.depth > INT32_MAX / 2 || s.units > INT32_MAX / 2)
        return "sides of over 2^30 are for others";
    return product_refusal(*l, s.rows, s.units);
}

int float8_accept(const strata_node *n, int tactic)
{
    const strata_quantized_product *p = (const strata_quantized_product *)n->params;
    const int status = quantized_accept(n, &p->quantized);
    if (status != STRATA_OK)
        return status;
    const char *why = refusal(n, launch_for(tactic, n->out[0].dtype));
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

/* ---- weights --------------------------------------------------------------------- */

struct float8_pack_job {
    uint8_t *packed;
    float *factor, *bias;
    const uint8_t *weight;             /* [u*unit + k*step] */
    const float *scale, *in, *bias_in; /* bias_in: or NULL */
    int64_t size, depth, unit, step;   /* size: of packed */
    int32_t units, padded, many;       /* many: scales */
};

static __global__ void float8_pack_kernel(float8_pack_job j)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const int64_t begin = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = begin; i < j.size; i += step) {
        const int64_t u = product_column((int32_t)(i / j.depth)), k = i % j.depth;
        j.packed[i] = u < j.units ? j.weight[u * j.unit + k * j.step] : 0;
    }
    for (int64_t u = begin; u < j.padded; u += step) {
        const bool real = u < j.units;
        j.factor[u] = real ? __fmul_rn(*j.in, j.scale[j.many ? u : 0]) : 0;
        j.bias[u] = real && j.bias_in ? j.bias_in[u] : 0;
    }
}

/* Rows of the packed weight: whole groups that change places. */
static int64_t packed_rows(int64_t units)
{
    return product_whole_lanes(units);
}

static int pack_columns(const strata_node *n, float8_state *state)
{
    const strata_quantized_product *p = (const strata_quantized_product *)n->params;
    const strata_tensor *scale = &n->weight[STRATA_QUANTIZED_FACTORS];
    const strata_tensor *bias = &n->weight[STRATA_QUANTIZED_BIAS];
    const int64_t rows = packed_rows(state->units);
    float8_pack_job j = {};
    if (__builtin_mul_overflow(rows, state->depth, &j.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    j.padded = (int32_t)((rows / FLOAT8_COLUMNS + 1) * FLOAT8_COLUMNS);
    int status = quantized_pack(n, (size_t)j.size, &state->weight);
    if (status == STRATA_OK)
        status =
            quantized_pack(n, sizeof(float) * (size_t)j.padded, (void **)&state->factor);
    if (status == STRATA_OK)
        status =
            quantized_pack(n, sizeof(float) * (size_t)j.padded, (void **)&state->bias);
    if (status != STRATA_OK)
        return status;
    j.packed = (uint8_t *)state->weight;
    j.factor = state->factor;
    j.bias = state->bias;
    j.weight = (const uint8_t *)n->weight[STRATA_QUANTIZED_WEIGHT].data;
    j.scale = (const float *)scale->data;
    j.in = (const float *)n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    j.bias_in = bias->rank > 0 ? (const float *)bias->data : NULL;
    j.depth = state->depth;
    j.unit = p->transposed ? state->depth : 1;
    j.step = p->transposed ? 1 : state->units;
    j.units = (int32_t)state->units;
    j.many = scale->count > 1;
    float8_pack_kernel<<<layer_blocks(j.size, CUDA_BLOCK), CUDA_BLOCK, 0,
                         (cudaStream_t)n->stream>>>(j);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

int float8_setup(const strata_node *n, float8_state *state, int tactic)
{
    const product_launch &l = *launch_for(tactic, n->out[0].dtype);
    const float8_shape s = shape_of(&n->in[0], &n->out[0]);
    int device = 0;
    state->depth = s.depth;
    state->units = s.units;
    cudaError_t e = product_prepare(l);
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&state->multiprocessors,
                                   cudaDevAttrMultiProcessorCount, device);
    return e == cudaSuccess
               ? pack_columns(n, state)
               : STRATA_FAIL(n, STRATA_EDEVICE, "preparing a kernel: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- running --------------------------------------------------------------------- */

static bool fill(float8_job *job, const strata_run *r, const float8_state &s,
                 const product_launch &l)
{
    const strata_quantized_product *p = (const strata_quantized_product *)r->params;
    const product_matrix rows = {r->in[0].data, s.depth, job->m, s.depth, 1, 0};
    const product_matrix columns = {s.weight, s.depth, packed_rows(s.units),
                                    s.depth,  1,       0};
    job->n = job->real = (int32_t)s.units;
    job->steps = (int32_t)((s.depth + l.depth - 1) / l.depth);
    job->b_early = 1;
    job->scale = s.factor;
    job->bias = s.bias;
    job->to = r->out[0].data;
    job->to_row = s.units;
    job->scale_out = (const float *)r->weight[STRATA_QUANTIZED_SCALE_OUT].data;
    quantized_bounds(&p->quantized, &job->slope, &job->low, &job->high);
    return map_matrix(&job->a, rows, STRATA_E4M3, l.rows, l.depth) &&
           map_matrix(&job->b, columns, STRATA_E4M3, l.box, l.depth) &&
           map_results(job, l, r->out[0].dtype, 1);
}

int float8_run(const strata_run *r, int tactic)
{
    const float8_state &state = *(const float8_state *)r->state;
    const product_launch &l = *launch_for(tactic, r->out[0].dtype);
    float8_job job = {};
    job.m = (int32_t)shape_of(&r->in[0], &r->out[0]).rows;
    if (job.m == 0)
        return STRATA_OK;
    if (!fill(&job, r, state, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these operands");
    const cudaError_t e = product_run(&job, l, 1, state.multiprocessors, layer_stream(r));
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE,
                                          "kernel quantized_product float8: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}
