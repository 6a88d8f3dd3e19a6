/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatrixMultiply as a batch of products, for both devices: D = A*B over m x n x k,
 * where every operand is a matrix with a distance between its rows, between its columns,
 * and between its matrices along each dim of the batch. Transposition and broadcasting
 * are such distances, and a batch that shares one B is one taller product.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_PRODUCT_H
#define PLUGINS_MATRIX_MULTIPLY_PRODUCT_H

#include <string.h>

#include <strata/layers.h>

enum { MATRIX_WEIGHT, MATRIX_BIAS, MATRIX_FACTORS }; /* weights */
enum { MATRIX_A, MATRIX_B, MATRIX_C };               /* inputs */
enum { MATRIX_BATCH_DIMS = STRATA_MAX_RANK - 2 };

/* Distances in elements; 0 where a dim of 1 stretches. */
struct matrix {
    int64_t row, column, batch[MATRIX_BATCH_DIMS];
};

enum { PRODUCT_A, PRODUCT_B, PRODUCT_C, PRODUCT_D, PRODUCT_RESIDUAL, PRODUCT_MATRICES };

struct matrix_product {
    int64_t m, n, k, batches;
    int64_t dim[MATRIX_BATCH_DIMS]; /* of the batch, outermost first */
    int32_t dims;
    struct matrix at[PRODUCT_MATRICES]; /* absent ones have no distances */
};

static inline int matrix_has_c(const strata_matrix_multiply *p, int n_in,
                               const strata_tensor *in)
{
    return n_in > MATRIX_C && in[MATRIX_C].rank > 0 && p->beta != 0;
}

/* B: the weight where there is no second input. */
static inline const strata_tensor *matrix_second(int n_in, const strata_tensor *in,
                                                 const strata_tensor *weight)
{
    return n_in > MATRIX_B && in[MATRIX_B].rank > 0 ? &in[MATRIX_B]
                                                    : &weight[MATRIX_WEIGHT];
}

static inline int matrix_is_constant(int n_in, const strata_tensor *in)
{
    return n_in <= MATRIX_B || in[MATRIX_B].rank == 0;
}

/* Distance of dim `back` from the last; t may have fewer dims. Weights come dense. */
static inline int64_t matrix_distance(const strata_tensor *t, int back)
{
    const int d = t->rank - 1 - back;
    return d < 0 || t->dims[d] == 1 ? 0 : t->strides[d];
}

static inline void matrix_operand(struct matrix_product *p, int which,
                                  const strata_tensor *t, int transposed)
{
    struct matrix *x = &p->at[which];
    x->row = matrix_distance(t, transposed ? 0 : 1);
    x->column = matrix_distance(t, transposed ? 1 : 0);
    for (int d = 0; d < p->dims; d++)
        x->batch[d] = matrix_distance(t, p->dims + 1 - d);
}

static inline void matrix_drop_dim(struct matrix_product *p, int d)
{
    p->dims--;
    for (int i = d; i < p->dims; i++) {
        p->dim[i] = p->dim[i + 1];
        for (int x = 0; x < PRODUCT_MATRICES; x++)
            p->at[x].batch[i] = p->at[x].batch[i + 1];
    }
}

/* Dims d and d + 1 are one where every operand walks them as one. */
static inline int matrix_joins(const struct matrix_product *p, int d)
{
    int joins = 1;
    for (int x = 0; x < PRODUCT_MATRICES; x++)
        joins &= p->at[x].batch[d] == p->at[x].batch[d + 1] * p->dim[d + 1];
    return joins;
}

/* The last dim of the batch is more rows where B has none of it. */
static inline int matrix_is_taller(const struct matrix_product *p)
{
    const int d = p->dims - 1;
    int taller = p->at[PRODUCT_B].batch[d] == 0;
    for (int x = 0; x < PRODUCT_MATRICES && p->m > 1; x++)
        if (x != PRODUCT_B)
            taller &= p->at[x].batch[d] == p->at[x].row * p->m;
    return taller;
}

static inline void matrix_simplify(struct matrix_product *p)
{
    for (int d = p->dims - 1; d >= 0; d--)
        if (p->dim[d] == 1)
            matrix_drop_dim(p, d);
    for (int d = p->dims - 2; d >= 0; d--)
        if (matrix_joins(p, d)) {
            p->dim[d + 1] *= p->dim[d];
            matrix_drop_dim(p, d);
        }
    while (p->dims > 0 && matrix_is_taller(p)) {
        const int d = p->dims - 1;
        for (int x = 0; x < PRODUCT_MATRICES && p->m == 1; x++)
            if (x != PRODUCT_B)
                p->at[x].row = p->at[x].batch[d];
        p->m *= p->dim[d];
        matrix_drop_dim(p, d);
    }
}

/* residual: NULL without one. Tensors must be complete (dims and strides). */
static inline struct matrix_product
matrix_product_of(const strata_matrix_multiply *params, int n_in, const strata_tensor *in,
                  const strata_tensor *weight, const strata_tensor *out,
                  const strata_tensor *residual)
{
    struct matrix_product p;
    const strata_tensor *a = &in[MATRIX_A], *b = matrix_second(n_in, in, weight);
    memset(&p, 0, sizeof p);
    p.dims = out->rank - 2;
    p.m = out->dims[out->rank - 2];
    p.n = out->dims[out->rank - 1];
    p.k = a->dims[a->rank - (params->transpose_a ? 2 : 1)];
    for (int d = 0; d < p.dims; d++)
        p.dim[d] = out->dims[d];
    matrix_operand(&p, PRODUCT_A, a, params->transpose_a);
    matrix_operand(&p, PRODUCT_B, b, params->transpose_b);
    if (matrix_has_c(params, n_in, in))
        matrix_operand(&p, PRODUCT_C, &in[MATRIX_C], 0);
    matrix_operand(&p, PRODUCT_D, out, 0);
    if (residual)
        matrix_operand(&p, PRODUCT_RESIDUAL, residual, 0);
    matrix_simplify(&p);
    p.batches = 1;
    for (int d = 0; d < p.dims; d++)
        p.batches *= p.dim[d];
    return p;
}

/* Where matrix i of the batch begins. */
static inline int64_t matrix_begin(const struct matrix_product *p, int which, int64_t i)
{
    int64_t at = 0;
    for (int d = p->dims - 1; d >= 0; d--) {
        at += i % p->dim[d] * p->at[which].batch[d];
        i /= p->dim[d];
    }
    return at;
}

#endif /* PLUGINS_MATRIX_MULTIPLY_PRODUCT_H */
