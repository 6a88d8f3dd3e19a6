/* SPDX-License-Identifier: Apache-2.0
 *
 * What MatrixMultiply's kernels share: a product by value, its batch, its tail.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_CUDA_CUH
#define PLUGINS_MATRIX_MULTIPLY_CUDA_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/matrix_multiply/product.h"

struct matrix_job {
    matrix_product p;
    const void *a, *b, *c;
    const float *bias; /* the layer's own, or NULL */
    void *d;
    float alpha, beta;
    int32_t constant_b; /* nobody before this kernel writes B */
    epilogue_args epilogue;
};

/* weight: packed B, rows of K, or NULL. */
static inline matrix_job matrix_job_of(const strata_run *r, const void *weight)
{
    const strata_matrix_multiply *params = (const strata_matrix_multiply *)r->params;
    const strata_tensor *b = matrix_second(r->n_in, r->in, r->weight);
    matrix_job j = {};
    j.epilogue = epilogue_of(r);
    j.p = matrix_product_of(params, r->n_in, r->in, r->weight, &r->out[0],
                            j.epilogue.residual ? r->epilogue->residual : NULL);
    j.a = r->in[MATRIX_A].data;
    j.b = weight ? weight : b->data;
    if (weight) {
        j.p.at[PRODUCT_B].row = 1;
        j.p.at[PRODUCT_B].column = j.p.k;
    }
    j.constant_b = matrix_is_constant(r->n_in, r->in);
    j.c = matrix_has_c(params, r->n_in, r->in) ? r->in[MATRIX_C].data : NULL;
    j.bias = r->weight[MATRIX_BIAS].rank > 0 ? (const float *)r->weight[MATRIX_BIAS].data
                                             : NULL;
    j.d = r->out[0].data;
    j.alpha = (float)params->alpha;
    j.beta = (float)params->beta;
    return j;
}

/* Where each operand's matrix of this part of the batch begins. */
struct matrix_offsets {
    int64_t at[PRODUCT_MATRICES];
};

static __device__ inline matrix_offsets offsets_of(const matrix_product &p, int64_t i)
{
    matrix_offsets o = {};
    for (int d = p.dims - 1; d >= 0; d--) {
        const int64_t index = i % p.dim[d];
        i /= p.dim[d];
#pragma unroll
        for (int x = 0; x < PRODUCT_MATRICES; x++)
            o.at[x] += index * p.at[x].batch[d];
    }
    return o;
}

/* Element (m, n) of Y from its sum. Called, not inlined: it holds every activation. */
template <typename T>
static __device__ __noinline__ void
store_sum(const matrix_job &j, const matrix_offsets &o, int64_t m, int64_t n, float sum)
{
    const matrix &c = j.p.at[PRODUCT_C], &r = j.p.at[PRODUCT_RESIDUAL];
    const matrix &d = j.p.at[PRODUCT_D];
    float residual = 0, y = j.alpha * sum;
    if (j.c)
        y += j.beta *
             to_float(((const T *)j.c)[o.at[PRODUCT_C] + m * c.row + n * c.column]);
    if (j.bias)
        y += j.bias[n];
    if (j.epilogue.residual)
        residual = to_float(
            ((const T *)
                 j.epilogue.residual)[o.at[PRODUCT_RESIDUAL] + m * r.row + n * r.column]);
    from_float((T *)j.d + o.at[PRODUCT_D] + m * d.row + n * d.column,
               finish(y, 0, residual, j.epilogue));
}

/* gemv.cu: few rows times rows of K. The setup packs a constant B so, for others too. */
struct gemv_state {
    const void *weight; /* packed, or NULL: input 1 */
    int32_t multiprocessors, overlaps;
    int32_t shared; /* bytes of shared memory that a multiprocessor has */
};
int gemv_accept(const strata_node *n);
int gemv_mma_accept(const strata_node *n);
int gemv_setup(const strata_node *n, void *state);
int gemv_run(const strata_run *r);
int gemv_mma_run(const strata_run *r);

/* few_bits.cu: few rows times a constant of 8 or 4 bits, as it lies in the device's
 * memory: [panels][blocks] of [64] pieces of 16 bytes, then the block's factors. */
struct few_matrix {
    const void *values;
    const float *factors; /* [panels][16], if they are of all k; else NULL */
    int64_t blocks;
    int32_t block_bytes;
};

struct few_state {
    few_matrix b;
    int32_t bits, flush; /* flush: pairs of a unit */
    int32_t multiprocessors, overlaps;
};
int few_bits_cuda_accept(const strata_node *n);
int few_bits_cuda_setup(const strata_node *n, void *state);
int few_bits_cuda_run(const strata_run *r);
int few_bits_mma_accept(const strata_node *n);
int few_bits_mma_run(const strata_run *r);

/* exact.cu: integers and FP64. */
int matrix_exact_cuda_run(const strata_run *r);

#endif /* PLUGINS_MATRIX_MULTIPLY_CUDA_CUH */
