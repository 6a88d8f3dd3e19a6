/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by cuBLASLt: D = f(op(A)*op(B) + C), all column-major, accumulated
 * in FP32, or INT32 for INT8. FP32 runs on tensor cores as TF32 alone, all else does. The
 * library's heuristic gives a list of algorithms, best guess first: a rank in it is a
 * tactic.
 */
#ifndef PLUGINS_COMMON_CUBLASLT_PRODUCT_H
#define PLUGINS_COMMON_CUBLASLT_PRODUCT_H

#include "plugins/common/cublaslt/bias.h"
#include "plugins/common/cublaslt/library.h"

#define CUBLASLT_RANKS 8

/* D is m x n, B is k x n, C as D. Leading dims and strides between the products of a
 * batch are in elements. */
struct cublaslt_problem {
    int32_t dtype;
    int32_t a_transposed; /* A lies as k x m, else m x k */
    int64_t m, n, k, lda, ldb, ldd;
    int64_t batch, a_stride, b_stride, d_stride, c_stride;
    int32_t b_transposed; /* B lies as n x k, else k x n */
    int32_t b_dtype;      /* where it is not A's; FP8 alone */
    int32_t result;       /* dtype of C and D: INT32 of INT8, a wider float of FP8 */
    int64_t ldc;          /* 0: as D's */
    int32_t pitched;      /* one of several leading dims, all of which must do: where the
                             list is shorter for it, its last entry stands for the rest */
    double alpha, beta;   /* D = f(alpha*op(A)*op(B) + bias + beta*C) */
    int32_t bias;         /* an element for each of D's rows is added */
    int32_t addend;       /* there is a C */
    int32_t tf32;         /* factors of FP32 may be rounded to it */
    int32_t relu;
    int32_t gelu; /* of the tanh form: cuBLASLt has no other */
};

struct cublaslt_plan {
    const struct cublaslt_library *library;
    cublasLtHandle_t handle;
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t a, b, c, d;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace; /* bytes: room for any algorithm; no less for more rows */
    int32_t addend;
    struct cublaslt_bias laid; /* into D ahead of the product, which adds it as C */
    union cublaslt_factor {
        float real;
        int32_t whole; /* of integers */
    } alpha, beta;
};

/* The rank-th algorithm for a problem on the current device. bias: device memory, or NULL
 * if it is not known yet. EUNSUPPORTED with the reason if there are fewer. */
int cublaslt_plan(const strata_node *n, const struct cublaslt_problem *problem, int rank,
                  const void *bias, struct cublaslt_plan *out);

/* Enqueue on r's stream, in r's workspace. c: NULL without an addend. */
int cublaslt_run(const strata_run *r, const struct cublaslt_plan *plan, const void *a,
                 const void *b, const void *c, void *d);

#endif /* PLUGINS_COMMON_CUBLASLT_PRODUCT_H */
