/* SPDX-License-Identifier: Apache-2.0
 *
 * DynamicProduct on CUDA: a block has 64 rows by 64 columns, a thread 4 by 4 of them,
 * four products an instruction. Zeros come off by what rows and columns sum up to, which
 * the same instruction counts.
 */
#include "kernels/layer.cuh"
#include "plugins/dynamic_product/product.h"

enum { TILE = 64, QUADS = 16, EACH = 4, SIDE = TILE / EACH };

struct dynamic_job {
    const uint8_t *x;
    const int8_t *w, *weight_zero;  /* weight_zero: or NULL */
    const float *scale, *factor, *bias; /* bias: or NULL */
    const uint8_t *zero;
    float *y;
    int64_t rows, columns, depth;
    bool one_factor, one_zero; /* for all columns */
};

/* sum + the products of four UINT8 and four INT8. */
static __device__ inline int32_t dot(uint32_t x, uint32_t w, int32_t sum)
{
    int32_t y;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(w), "r"(sum));
    return y;
}

/* Bytes k to k + 3 of line `line`, `step` apart; zeros outside. */
static __device__ inline uint32_t four(const uint8_t *from, bool inside, int64_t k,
                                       int64_t depth, int64_t step)
{
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (inside && k + i < depth)
            word |= (uint32_t)from[(k + i) * step] << 8 * i;
    return word;
}

struct sums {
    int32_t of[EACH][EACH], row[EACH], column[EACH];
};

static __device__ inline void add_tile(sums &s, const uint32_t (*x)[QUADS + 1],
                                       const uint32_t (*w)[TILE], int row, int column)
{
    const uint32_t ones = 0x01010101u;
#pragma unroll 4
    for (int q = 0; q < QUADS; q++) {
        uint32_t a[EACH], b[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            a[i] = x[row * EACH + i][q];
            b[i] = w[q][column + i * SIDE];
            s.row[i] = dot(a[i], ones, s.row[i]);
            s.column[i] = dot(ones, b[i], s.column[i]);
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int k = 0; k < EACH; k++)
                s.of[i][k] = dot(a[i], b[k], s.of[i][k]);
    }
}

/* One operation of FP32 after the other, as the layer is defined; sums wrap. */
static __device__ inline float result(const dynamic_job &job, uint32_t sum, uint32_t row,
                                      uint32_t column, int64_t n)
{
    const uint32_t zero = *job.zero;
    const uint32_t other =
        job.weight_zero ? (uint32_t)(int32_t)job.weight_zero[job.one_zero ? 0 : n] : 0u;
    const uint32_t whole =
        sum - zero * (column - (uint32_t)job.depth * other) - row * other;
    const float factor = __fmul_rn(*job.scale, job.factor[job.one_factor ? 0 : n]);
    const float y = __fmul_rn((float)(int32_t)whole, factor);
    return job.bias ? __fadd_rn(y, job.bias[n]) : y;
}

static __global__ void __launch_bounds__(CUDA_BLOCK)
    product_kernel(const __grid_constant__ dynamic_job job)
{
    __shared__ uint32_t x[TILE][QUADS + 1], w[QUADS][TILE];
    const int64_t first = (int64_t)blockIdx.y * TILE, at = (int64_t)blockIdx.x * TILE;
    const int row = (int)threadIdx.x / SIDE, column = (int)threadIdx.x % SIDE;
    sums s = {};
    for (int64_t k = 0; k < job.depth; k += QUADS * 4) {
        for (int i = (int)threadIdx.x; i < TILE * QUADS; i += CUDA_BLOCK) {
            const int line = i / QUADS, q = i % QUADS;
            x[line][q] = four(job.x + (first + line) * job.depth, first + line < job.rows,
                              k + q * 4, job.depth, 1);
        }
        for (int i = (int)threadIdx.x; i < TILE * QUADS; i += CUDA_BLOCK) {
            const int line = i % TILE, q = i / TILE;
            w[q][line] = four((const uint8_t *)job.w + at + line, at + line < job.columns,
                              k + q * 4, job.depth, job.columns);
        }
        __syncthreads();
        add_tile(s, x, w, row, column);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int c = 0; c < EACH; c++) {
            const int64_t m = first + row * EACH + i, n = at + column + c * SIDE;
            if (m < job.rows && n < job.columns)
                job.y[m * job.columns + n] =
                    result(job, (uint32_t)s.of[i][c], (uint32_t)s.row[i],
                           (uint32_t)s.column[c], n);
        }
}

static int dynamic_accept(const strata_node *n)
{
    const int64_t columns = n->out[0].dims[n->out[0].rank - 1];
    if (columns && n->out[0].count / columns > (int64_t)65535 * TILE)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "there are over %lld rows",
                           (long long)65535 * TILE);
    return STRATA_OK;
}

static int dynamic_run(const strata_run *r)
{
    const strata_tensor *w = r->weight;
    dynamic_job job = {};
    job.x = (const uint8_t *)r->in[DYNAMIC_X].data;
    job.scale = (const float *)r->in[DYNAMIC_SCALE].data;
    job.zero = (const uint8_t *)r->in[DYNAMIC_ZERO].data;
    job.w = (const int8_t *)w[DYNAMIC_WEIGHT].data;
    if (w[DYNAMIC_WEIGHT_ZERO].rank > 0)
        job.weight_zero = (const int8_t *)w[DYNAMIC_WEIGHT_ZERO].data;
    job.factor = (const float *)w[DYNAMIC_FACTORS].data;
    if (w[DYNAMIC_BIAS].rank > 0)
        job.bias = (const float *)w[DYNAMIC_BIAS].data;
    job.y = (float *)r->out[0].data;
    job.depth = w[DYNAMIC_WEIGHT].dims[0];
    job.columns = w[DYNAMIC_WEIGHT].dims[1];
    job.rows = r->out[0].count / job.columns;
    job.one_factor = w[DYNAMIC_FACTORS].count == 1;
    job.one_zero = w[DYNAMIC_WEIGHT_ZERO].count == 1;
    const dim3 grid((unsigned)((job.columns + TILE - 1) / TILE),
                    (unsigned)((job.rows + TILE - 1) / TILE));
    product_kernel<<<grid, CUDA_BLOCK, 0, layer_stream(r)>>>(job);
    return layer_launched(r, "dynamic_product");
}

static const strata_row rows[] = {
    {{STRATA_U8_NCHW, STRATA_F32_NCHW, STRATA_U8_NCHW}, {STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.3,
     .accept = dynamic_accept,
     .run = dynamic_run,
     .bandwidth = 0.3},
};

static const strata_extends dynamic_product = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::DynamicProduct",
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&dynamic_product};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::DynamicProduct", extends)
