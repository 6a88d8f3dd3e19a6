/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integers, which wrap around, and of FP64. A block of columns of one row is
 * summed in a buffer, over rows of B where its columns lie side by side.
 */
#include "plugins/matrix_multiply/host.h"

#define BLOCK 256        /* columns */
#define PARALLEL 100000. /* multiply-adds that pay for a thread team */

struct job {
    struct matrix_product p;
    const void *a, *b, *c, *bias;
    void *d;
    double alpha, beta;
};

/* Columns [column, column + n) of row m of matrix i. */
typedef void (*block_fn)(const struct job *j, int64_t i, int64_t m, int64_t column,
                         int64_t n);

#define BLOCK_FUNCTION(NAME, A, B, SUM, FACTOR)                                          \
    static void NAME(const struct job *j, int64_t i, int64_t m, int64_t column,          \
                     int64_t n)                                                          \
    {                                                                                    \
        const struct matrix *at = j->p.at, *y = &at[PRODUCT_B];                          \
        const A *a = (const A *)j->a + matrix_begin(&j->p, PRODUCT_A, i) +               \
                     m * at[PRODUCT_A].row;                                              \
        const B *b = (const B *)j->b + matrix_begin(&j->p, PRODUCT_B, i) +               \
                     column * y->column;                                                 \
        SUM *d = (SUM *)j->d + matrix_begin(&j->p, PRODUCT_D, i) +                       \
                 m * at[PRODUCT_D].row + column;                                         \
        const SUM *bias = j->bias, alpha = (SUM)(FACTOR)j->alpha;                        \
        SUM sum[BLOCK] = {0};                                                            \
        for (int64_t k = 0; k < j->p.k; k++) {                                           \
            const SUM factor = (SUM)a[k * at[PRODUCT_A].column];                         \
            const B *row = b + k * y->row;                                               \
            if (y->column == 1)                                                          \
                for (int64_t l = 0; l < n; l++) {                                        \
                    const SUM x = (SUM)row[l];                                           \
                    sum[l] += factor * x;                                                \
                }                                                                        \
            else                                                                         \
                for (int64_t l = 0; l < n; l++) {                                        \
                    const SUM x = (SUM)row[l * y->column];                               \
                    sum[l] += factor * x;                                                \
                }                                                                        \
        }                                                                                \
        for (int64_t l = 0; l < n; l++)                                                  \
            d[l] = alpha * sum[l];                                                       \
        if (j->c) {                                                                      \
            const SUM *c = (const SUM *)j->c + matrix_begin(&j->p, PRODUCT_C, i) +       \
                           m * at[PRODUCT_C].row + column * at[PRODUCT_C].column;        \
            for (int64_t l = 0; l < n; l++)                                              \
                d[l] += (SUM)(FACTOR)j->beta * c[l * at[PRODUCT_C].column];              \
        }                                                                                \
        for (int64_t l = 0; l < n && bias; l++)                                          \
            d[l] += bias[column + l];                                                    \
    }

BLOCK_FUNCTION(block_s8_s8, int8_t, int8_t, uint32_t, int64_t)
BLOCK_FUNCTION(block_s8_u8, int8_t, uint8_t, uint32_t, int64_t)
BLOCK_FUNCTION(block_u8_s8, uint8_t, int8_t, uint32_t, int64_t)
BLOCK_FUNCTION(block_u8_u8, uint8_t, uint8_t, uint32_t, int64_t)
BLOCK_FUNCTION(block_s32, uint32_t, uint32_t, uint32_t, int64_t)
BLOCK_FUNCTION(block_s64, uint64_t, uint64_t, uint64_t, int64_t)
BLOCK_FUNCTION(block_f64, double, double, double, double)

static const struct {
    int32_t a, b;
    block_fn run;
} blocks[] = {
    {STRATA_INT8, STRATA_INT8, block_s8_s8},   {STRATA_INT8, STRATA_UINT8, block_s8_u8},
    {STRATA_UINT8, STRATA_INT8, block_u8_s8},  {STRATA_UINT8, STRATA_UINT8, block_u8_u8},
    {STRATA_INT32, STRATA_INT32, block_s32},   {STRATA_INT64, STRATA_INT64, block_s64},
    {STRATA_FP64, STRATA_FP64, block_f64},
};

static void compute(const struct job *j, block_fn run)
{
    const struct matrix_product *p = &j->p;
    const int64_t columns = (p->n + BLOCK - 1) / BLOCK;
    const double work =
        (double)p->m * (double)p->n * (double)p->k * (double)p->batches;
#pragma omp parallel for schedule(static) if (work > PARALLEL)
    for (int64_t task = 0; task < columns * p->m * p->batches; task++) {
        const int64_t column = task % columns * BLOCK, rest = p->n - column;
        run(j, task / columns / p->m, task / columns % p->m, column,
            rest < BLOCK ? rest : BLOCK);
    }
}

int matrix_exact_run(const strata_run *r)
{
    const strata_matrix_multiply *p = r->params;
    const strata_tensor *b = matrix_second(r->n_in, r->in, r->weight);
    const struct job j = {
        .p = matrix_product_of(p, r->n_in, r->in, r->weight, &r->out[0], NULL),
        .a = r->in[MATRIX_A].data,
        .b = b->data,
        .c = matrix_has_c(p, r->n_in, r->in) ? r->in[MATRIX_C].data : NULL,
        .bias = r->weight[MATRIX_BIAS].rank > 0 ? r->weight[MATRIX_BIAS].data : NULL,
        .d = r->out[0].data,
        .alpha = p->alpha,
        .beta = p->beta,
    };
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (blocks[i].a == r->in[MATRIX_A].dtype && blocks[i].b == b->dtype) {
            compute(&j, blocks[i].run);
            return STRATA_OK;
        }
    return STRATA_FAIL(r, STRATA_EINTERNAL, "no product of dtypes %d and %d",
                       (int)r->in[MATRIX_A].dtype, (int)b->dtype);
}
