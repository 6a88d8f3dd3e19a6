/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integers, which wrap around, and of FP64: a thread an element, operands
 * through shared memory.
 */
#include "plugins/matrix_multiply/cuda.cuh"

#define SIDE 16

struct exact_job {
    matrix_product p;
    const void *a, *b, *c, *bias;
    void *d;
    double alpha, beta;
};

/* Factors of integers are whole numbers; they wrap with the rest. */
template <typename Sum> static __device__ inline Sum factor_of(double x)
{
    return (Sum)(long long)x;
}
template <> __device__ inline double factor_of<double>(double x)
{
    return x;
}

template <typename A, typename B, typename Sum>
static __device__ inline Sum exact_sum(const exact_job &j, const matrix_offsets &o,
                                       int64_t m, int64_t n)
{
    __shared__ Sum as[SIDE][SIDE + 1], bs[SIDE][SIDE + 1];
    const matrix &x = j.p.at[PRODUCT_A], &y = j.p.at[PRODUCT_B];
    const A *a = (const A *)j.a + o.at[PRODUCT_A];
    const B *b = (const B *)j.b + o.at[PRODUCT_B];
    const int across = threadIdx.x, down = threadIdx.y;
    Sum sum = 0;
    for (int64_t k = 0; k < j.p.k; k += SIDE) {
        as[down][across] = m < j.p.m && k + across < j.p.k
                               ? (Sum)a[m * x.row + (k + across) * x.column]
                               : (Sum)0;
        bs[down][across] = n < j.p.n && k + down < j.p.k
                               ? (Sum)b[(k + down) * y.row + n * y.column]
                               : (Sum)0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SIDE; i++)
            sum += as[down][i] * bs[i][across];
        __syncthreads();
    }
    return sum;
}

template <typename A, typename B, typename Sum>
static __global__ void __launch_bounds__(SIDE *SIDE)
    exact_kernel(const __grid_constant__ exact_job j)
{
    const int64_t columns = (j.p.n + SIDE - 1) / SIDE, rows = (j.p.m + SIDE - 1) / SIDE;
    const matrix &c = j.p.at[PRODUCT_C], &d = j.p.at[PRODUCT_D];
    wait_for_previous();
    for (int64_t i = blockIdx.x; i < columns * rows * j.p.batches; i += gridDim.x) {
        const int64_t m = i / columns % rows * SIDE + threadIdx.y;
        const int64_t n = i % columns * SIDE + threadIdx.x;
        const matrix_offsets o = offsets_of(j.p, i / columns / rows);
        Sum y = factor_of<Sum>(j.alpha) * exact_sum<A, B, Sum>(j, o, m, n);
        if (m >= j.p.m || n >= j.p.n)
            continue;
        if (j.c)
            y += factor_of<Sum>(j.beta) *
                 ((const Sum *)j.c)[o.at[PRODUCT_C] + m * c.row + n * c.column];
        if (j.bias)
            y += ((const Sum *)j.bias)[n];
        ((Sum *)j.d)[o.at[PRODUCT_D] + m * d.row + n * d.column] = y;
    }
}

template <typename A, typename B, typename Sum>
static void launch(const exact_job &j, const strata_run *r)
{
    const int64_t squares =
        (j.p.n + SIDE - 1) / SIDE * ((j.p.m + SIDE - 1) / SIDE) * j.p.batches;
    exact_kernel<A, B, Sum>
        <<<layer_blocks(squares, 1), dim3(SIDE, SIDE), 0, layer_stream(r)>>>(j);
}

static const struct {
    int32_t a, b;
    void (*launch)(const exact_job &, const strata_run *);
} kernels[] = {
    {STRATA_INT8, STRATA_INT8, launch<int8_t, int8_t, uint32_t>},
    {STRATA_INT8, STRATA_UINT8, launch<int8_t, uint8_t, uint32_t>},
    {STRATA_UINT8, STRATA_INT8, launch<uint8_t, int8_t, uint32_t>},
    {STRATA_UINT8, STRATA_UINT8, launch<uint8_t, uint8_t, uint32_t>},
    {STRATA_INT32, STRATA_INT32, launch<uint32_t, uint32_t, uint32_t>},
    {STRATA_INT64, STRATA_INT64, launch<uint64_t, uint64_t, uint64_t>},
    {STRATA_FP64, STRATA_FP64, launch<double, double, double>},
};

int matrix_exact_cuda_run(const strata_run *r)
{
    const strata_matrix_multiply *p = (const strata_matrix_multiply *)r->params;
    const strata_tensor *b = matrix_second(r->n_in, r->in, r->weight);
    exact_job j = {};
    j.p = matrix_product_of(p, r->n_in, r->in, r->weight, &r->out[0], NULL);
    j.a = r->in[MATRIX_A].data;
    j.b = b->data;
    j.c = matrix_has_c(p, r->n_in, r->in) ? r->in[MATRIX_C].data : NULL;
    j.bias = r->weight[MATRIX_BIAS].rank > 0 ? r->weight[MATRIX_BIAS].data : NULL;
    j.d = r->out[0].data;
    j.alpha = p->alpha;
    j.beta = p->beta;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].a == r->in[MATRIX_A].dtype && kernels[i].b == b->dtype) {
            kernels[i].launch(j, r);
            return layer_launched(r, "matrix_multiply exact");
        }
    return STRATA_FAIL(r, STRATA_EINTERNAL, "no product of dtypes %d and %d",
                       (int)r->in[MATRIX_A].dtype, (int)b->dtype);
}
