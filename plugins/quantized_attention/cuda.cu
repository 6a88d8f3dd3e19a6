/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedAttention on CUDA: the impls, and the plain one, a warp for each query.
 */
#include "kernels/counting.cuh"
#include "plugins/quantized_attention/float8.h"
#include "plugins/quantized_attention/quantized_attention.h"

#include <cuda_fp8.h>

/* ---- from a call to a job ---------------------------------------------------------- */

static int job_of(quantized_attention_job *a, const strata_run *r)
{
    attention_job *job = &a->job;
    struct attention_plan *p = &job->plan;
    const int status = quantized_attention_plan_run(p, r);
    if (status != STRATA_OK)
        return status;
    job->q = (const uint8_t *)r->in[p->q.port].data + p->q.begin;
    job->k = (const uint8_t *)r->in[p->k.port].data + p->k.begin;
    job->v = (const uint8_t *)r->in[p->v.port].data + p->v.begin;
    job->mask = p->mask.port < 0 ? NULL : r->in[p->mask.port].data;
    job->lengths = p->lengths_port < 0 ? NULL : r->in[QUANTIZED_ATTENTION_LENGTHS].data;
    job->y = r->out[0].data;
    a->q_scale = quantized_attention_scale(r, STRATA_QUANTIZED_SCALE_Q);
    a->k_scale = quantized_attention_scale(r, STRATA_QUANTIZED_SCALE_K);
    a->v_scale = quantized_attention_scale(r, STRATA_QUANTIZED_SCALE_V);
    a->to_scale = quantized_attention_scale(r, STRATA_QUANTIZED_SCALE_Y);
    return STRATA_OK;
}

static int launched(const strata_run *r, cudaError_t e, const char *kernel)
{
    cudaGetLastError();
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel quantized_attention %s: %s (%s)",
                             kernel, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- plain --------------------------------------------------------------------------
 */

enum { COLUMNS = 8, PLAIN_DIM = 32 * COLUMNS }; /* of a lane; of V at most */

static __device__ inline float e4m3(const uint8_t *at)
{
    __nv_fp8_e4m3 x;
    x.__x = *at;
    return (float)x;
}

static __device__ inline float warp_max(float x)
{
    for (int d = 16; d > 0; d /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

static __device__ inline float warp_sum(float x)
{
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* A warp's query, its sums of a lane's columns, and what they are to be divided by. */
struct plain_query {
    const quantized_attention_job &a;
    int64_t b, h, i;
    float o[COLUMNS], largest, sum;

    __device__ inline float score(const uint8_t *q, const uint8_t *k, float by,
                                  int64_t key) const
    {
        const struct attention_plan &p = a.job.plan;
        const float cap = (float)p.softcap;
        float s = 0;
        for (int64_t d = 0; d < p.dim; d++)
            s = fmaf(e4m3(q + d), e4m3(k + d), s);
        s *= by;
        s = cap > 0 ? cap * tanhf(s / cap) : s;
        return attention_masked(a.job, s, b, h, i, key);
    }

    /* Keys [key, key + 32), one a lane, of which those up to `end` are seen. */
    __device__ inline void take(const uint8_t *q, const uint8_t *k, const uint8_t *v,
                                float by, int64_t key, int64_t end)
    {
        const struct attention_plan &p = a.job.plan;
        const int lane = threadIdx.x % 32;
        const float s = key + lane < end
                            ? score(q, k + (key + lane) * p.k.row, by, key + lane)
                            : -INFINITY;
        const float most = fmaxf(largest, warp_max(s)),
                    base = most == -INFINITY ? 0 : most;
        const float shrink = exp2_near(LOG2_E * (largest - base)),
                    w = exp2_near(LOG2_E * (s - base));
        largest = most;
        sum = sum * shrink + warp_sum(w);
        for (int c = 0; c < COLUMNS; c++)
            o[c] *= shrink;
        for (int j = 0; j < 32 && key + j < end; j++) {
            const float weight = __shfl_sync(0xffffffffu, w, j);
            const uint8_t *row = v + (key + j) * p.v.row;
            if (weight == 0)
                continue;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                if (c * 32 + lane < p.v_dim)
                    o[c] = fmaf(weight, e4m3(row + c * 32 + lane), o[c]);
        }
    }

    template <typename T>
    __device__ inline void store(T *y, float unit) const
    {
        const struct attention_plan &p = a.job.plan;
        const int lane = threadIdx.x % 32;
        y += b * p.y.batch + h * p.y.head + i * p.y.row;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (c * 32 + lane < p.v_dim)
                from_float(y + c * 32 + lane, /* 0: all keys are masked */
                           sum == 0 ? 0 : o[c] / sum * unit);
    }
};

static __device__ inline void from_float(__nv_fp8_e4m3 *y, float x)
{
    y->__x = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    plain_kernel(const __grid_constant__ quantized_attention_job a)
{
    const struct attention_plan &p = a.job.plan;
    const int64_t query = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) / 32;
    if (query >= p.batch * p.heads * p.length)
        return;
    plain_query x = {a,
                     query / p.length / p.heads,
                     query / p.length % p.heads,
                     query % p.length,
                     {},
                     -INFINITY,
                     0};
    const attention_reach reach = attention_reach_at(&p, a.job.lengths, x.b);
    const int64_t kv = x.h / p.group;
    const uint8_t *q =
        (const uint8_t *)a.job.q + x.b * p.q.batch + x.h * p.q.head + x.i * p.q.row;
    const uint8_t *k = (const uint8_t *)a.job.k + x.b * p.k.batch + kv * p.k.head;
    const uint8_t *v = (const uint8_t *)a.job.v + x.b * p.v.batch + kv * p.v.head;
    const float by = (float)p.scale * *a.q_scale * *a.k_scale;
    int64_t begin, end;
    attention_bounds(&p, &reach, x.i, &begin, &end);
    for (int64_t key = begin; key < end; key += 32)
        x.take(q, k, v, by, key, end);
    x.store((T *)a.job.y, sizeof(T) == 1 ? *a.v_scale / *a.to_scale : *a.v_scale);
}

static int run_plain(const strata_run *r, const quantized_attention_job &a)
{
    const struct attention_plan &p = a.job.plan;
    const int64_t warps = p.batch * p.heads * p.length;
    const unsigned blocks = (unsigned)((warps + CUDA_BLOCK / 32 - 1) / (CUDA_BLOCK / 32));
    if (p.y.dtype == STRATA_E4M3)
        plain_kernel<__nv_fp8_e4m3><<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(a);
    else
        layer_float(p.y.dtype, [&](auto t) {
            plain_kernel<decltype(t)><<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(a);
        });
    return launched(r, cudaGetLastError(), "plain");
}

static int plain_run(const strata_run *r)
{
    quantized_attention_job a;
    const int status = job_of(&a, r);
    return status == STRATA_OK ? run_plain(r, a) : status;
}

static int plain_accept(const strata_node *n)
{
    const strata_quantized_attention *params =
        (const strata_quantized_attention *)n->params;
    const int32_t y = n->out[0].dtype;
    struct attention_plan p;
    const int status = quantized_attention_plan(&p, n);
    if (status != STRATA_OK)
        return status;
    if (params->to ? y != STRATA_E4M3
                   : y != STRATA_FP32 && y != STRATA_FP16 && y != STRATA_BF16)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output has another dtype");
    if (p.v_dim > PLAIN_DIM)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes heads of up to %d, not %lld",
                           PLAIN_DIM, (long long)p.v_dim);
    if ((double)p.batch * p.heads * p.length >= 2147483647.0 || p.keys >= 1 << 29)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes under 2^31 queries, and 2^29 keys");
    return STRATA_OK;
}

/* ---- on tensor cores -----------------------------------------------------------------
 */

static bool whole_pieces(const attention_view *v)
{
    return v->begin % 16 == 0 && v->batch % 16 == 0 && v->head % 16 == 0 &&
           v->row % 16 == 0;
}

static int float8_accept(const strata_node *n)
{
    struct attention_plan p;
    int status = plain_accept(n);
    if (status == STRATA_OK)
        status = quantized_attention_plan(&p, n);
    if (status != STRATA_OK)
        return status;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "tensor cores are for math = tensor_op");
    if (p.dim % 16 || p.v_dim % 16 || p.dim > 128 || p.v_dim > 128)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes heads of multiples of 16 up to 128");
    if (!whole_pieces(&p.q) || !whole_pieces(&p.k) || !whole_pieces(&p.v) ||
        !whole_pieces(&p.y))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes rows that begin at multiples of 16");
    if (p.scale <= 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes scales above 0");
    return p.batch * p.kv_heads < 65536
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "takes under 2^16 heads of all the batch");
}

static size_t float8_workspace(const strata_node *n)
{
    struct attention_plan p;
    return quantized_attention_plan(&p, n) == STRATA_OK
               ? quantized_attention_float8_workspace(&p)
               : SIZE_MAX;
}

static int float8_open(const strata_node *n, const void *, void *ctx)
{
    return counting_open(n, ctx, HOPPER_COUNTERS * sizeof(uint32_t));
}

/* Whether rows begin at multiples of 16 bytes, by the addresses of this call. */
static bool aligned(const attention_job &job)
{
    const uintptr_t all =
        (uintptr_t)job.q | (uintptr_t)job.k | (uintptr_t)job.v | (uintptr_t)job.y;
    return all % 16 == 0;
}

static int float8_run(const strata_run *r)
{
    quantized_attention_job a;
    const int status = job_of(&a, r);
    if (status != STRATA_OK || !aligned(a.job) || a.job.plan.keys == 0)
        return status != STRATA_OK ? status : run_plain(r, a);
    return launched(
        r, quantized_attention_float8(&a, r->workspace, counting_of(r), layer_stream(r)),
        "float8");
}

/* ---- tables ------------------------------------------------------------------------ */

static const strata_row rows[] = {
    {{STRATA_E4M3_NCHW, STRATA_SAME, STRATA_SAME,
      STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_BOOL_NCHW},
     {STRATA_E4M3_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F32_NCHW},
     {STRATA_I32_NCHW | STRATA_I64_NCHW},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.005,
     .accept = plain_accept,
     .run = plain_run,
     .bandwidth = 0.05},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .min_sm = 90,
     .max_sm = 90,
     .name = "float8",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.9,
     .ctx_size = sizeof(counting_context),
     .accept = float8_accept,
     .workspace = float8_workspace,
     .ctx_open = float8_open,
     .ctx_close = counting_close,
     .run = float8_run,
     .bandwidth = 0.7},
};

static const strata_extends quantized_attention = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedAttention",
    .params_size = sizeof(strata_quantized_attention),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&quantized_attention};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::QuantizedAttention", extends)
