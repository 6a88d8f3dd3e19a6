/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors live in the plan itself, so that a plan needs no freeing.
 */
#include "plugins/common/cublaslt/product.h"

#include <string.h>

enum {
    /* Bytes; the most is the library's own default on Hopper. They count in a network's
     * memory. */
    LEAST_WORKSPACE = 1 << 20,
    MOST_WORKSPACE = 32 << 20,
    SPLITS = 16,   /* of K, that workspace has room for */
    ALIGNMENT = 16 /* bytes, of all matrices */
};

static int failed(const strata_node *n, const struct cublaslt_library *l,
                  const char *what, cublasStatus_t s)
{
    return STRATA_FAIL(n, STRATA_EDEVICE, "cuBLASLt, %s: %s", what,
                       l->cublasLtGetStatusString(s));
}

static cudaDataType_t data_type(int32_t dtype)
{
    return dtype == STRATA_FP16    ? CUDA_R_16F
           : dtype == STRATA_BF16  ? CUDA_R_16BF
           : dtype == STRATA_INT8  ? CUDA_R_8I
           : dtype == STRATA_INT32 ? CUDA_R_32I
           : dtype == STRATA_E4M3  ? CUDA_R_8F_E4M3
           : dtype == STRATA_E5M2  ? CUDA_R_8F_E5M2
                                   : CUDA_R_32F;
}

static cublasStatus_t set_layout(const struct cublaslt_library *l,
                                 cublasLtMatrixLayout_t layout, int32_t dtype,
                                 int64_t rows, int64_t columns, int64_t ld, int64_t batch,
                                 int64_t stride)
{
    const int32_t count = (int32_t)batch;
    cublasStatus_t s = l->cublasLtMatrixLayoutInit_internal(
        layout, sizeof *layout, data_type(dtype), (uint64_t)rows, (uint64_t)columns, ld);
    if (s == CUBLAS_STATUS_SUCCESS && batch > 1)
        s = l->cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (s == CUBLAS_STATUS_SUCCESS && batch > 1)
        s = l->cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    return s;
}

static cublasStatus_t set_layouts(struct cublaslt_plan *plan,
                                  const struct cublaslt_problem *p)
{
    const int t = p->a_transposed, u = p->b_transposed;
    const int64_t ldc = p->addend && p->ldc ? p->ldc : p->ldd;
    cublasStatus_t s;
    if ((s = set_layout(plan->library, &plan->a, p->dtype, t ? p->k : p->m,
                        t ? p->m : p->k, p->lda, p->batch, p->a_stride)) ||
        (s = set_layout(plan->library, &plan->b, p->b_dtype, u ? p->n : p->k,
                        u ? p->k : p->n, p->ldb, p->batch, p->b_stride)) ||
        (s = set_layout(plan->library, &plan->c, p->result, p->m, p->n, ldc, p->batch,
                        p->addend ? p->c_stride : p->d_stride)))
        return s;
    return set_layout(plan->library, &plan->d, p->result, p->m, p->n, p->ldd, p->batch,
                      p->d_stride);
}

static cublasStatus_t set_operation(struct cublaslt_plan *plan,
                                    const struct cublaslt_problem *p, const void *bias)
{
    static const cublasLtEpilogue_t epilogues[2][3] = {
        {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU},
        {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
         CUBLASLT_EPILOGUE_GELU_BIAS}};
    const struct cublaslt_library *l = plan->library;
    const cublasLtEpilogue_t epilogue =
        epilogues[p->bias != 0][p->gelu ? 2 : p->relu != 0];
    const cublasOperation_t transpose = p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int whole = p->result == STRATA_INT32;
    const cublasComputeType_t compute = whole     ? CUBLAS_COMPUTE_32I
                                        : p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
    cublasStatus_t s;
    if ((s = l->cublasLtMatmulDescInit_internal(&plan->operation, sizeof plan->operation,
                                                compute,
                                                whole ? CUDA_R_32I : CUDA_R_32F)) ||
        (s = l->cublasLtMatmulDescSetAttribute(&plan->operation,
                                               CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                               sizeof transpose)) ||
        (s = l->cublasLtMatmulDescSetAttribute(
             &plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second)) ||
        (s = l->cublasLtMatmulDescSetAttribute(&plan->operation,
                                               CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                               sizeof epilogue)) ||
        !p->bias)
        return s;
    return l->cublasLtMatmulDescSetAttribute(
        &plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
}

/* Bytes of workspace that an algorithm may ask for, and what an impl claims whichever it
 * gets: what algorithms do ask for may be more for fewer rows, this is not. */
static uint64_t room(const struct cublaslt_problem *p)
{
    const double parts =
        (double)sizeof(float) * SPLITS * (double)p->m * (double)p->n * (double)p->batch;
    return parts < LEAST_WORKSPACE  ? LEAST_WORKSPACE
           : parts > MOST_WORKSPACE ? MOST_WORKSPACE
                                    : (uint64_t)parts;
}

/* Of the ways to add up a split K only the one through FP32: in place adds in the order
 * blocks finish, so two runs differ, and the output's type rounds each part to FP16. */
static cublasStatus_t set_preference(const struct cublaslt_library *l, uint64_t workspace,
                                     cublasLtMatmulPreferenceOpaque_t *preference)
{
    static const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t alignment = ALIGNMENT;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasStatus_t s =
        l->cublasLtMatmulPreferenceInit_internal(preference, sizeof *preference);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = l->cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
            sizeof workspace);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = l->cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
            sizeof schemes);
    for (size_t i = 0; i < sizeof sides / sizeof sides[0] && s == CUBLAS_STATUS_SUCCESS;
         i++)
        s = l->cublasLtMatmulPreferenceSetAttribute(preference, sides[i], &alignment,
                                                    sizeof alignment);
    return s;
}

static union cublaslt_factor factor(const struct cublaslt_problem *p, double x)
{
    union cublaslt_factor f;
    if (p->result == STRATA_INT32)
        f.whole = (int32_t)(uint32_t)(int64_t)x; /* wraps with the rest */
    else
        f.real = (float)x;
    return f;
}

/* Whether all lines of the matrices begin at multiples of 16 bytes, of halves. */
static int has_aligned_lines(const struct cublaslt_problem *p)
{
    const int64_t lines = p->lda | p->ldb | p->ldc | p->ldd;
    const int64_t batches = p->a_stride | p->b_stride | p->c_stride | p->d_stride;
    return lines % 8 == 0 && (p->batch == 1 || batches % 8 == 0);
}

/* The library's kernels for Hopper sum product, bias and addend in FP32. Those it takes
 * for lines at any place, and with an addend has for other devices, round the result to
 * its dtype before the bias comes to it, in another kernel: where they cancel, more is
 * lost than by one rounding at the end. docs/log/layers.md tells more. */
static int rounds_before_bias(const strata_node *n, const struct cublaslt_problem *p)
{
    const int halves = p->result == STRATA_FP16 || p->result == STRATA_BF16;
    const int fused = has_aligned_lines(p) && (n->sm >= 90 || !p->addend);
    return halves && p->bias && !fused;
}

/* An addend is not rounded on the way, so a bias becomes one. */
static void lay_bias(struct cublaslt_plan *plan, struct cublaslt_problem *p,
                     const void *bias)
{
    plan->laid = (struct cublaslt_bias){.values = bias,
                                        .rows = p->m,
                                        .columns = p->n,
                                        .pitch = p->ldd,
                                        .batch = p->batch,
                                        .step = p->d_stride};
    p->bias = 0;
    p->beta = 1;
}

int cublaslt_plan(const strata_node *n, const struct cublaslt_problem *given, int rank,
                  const void *bias, struct cublaslt_plan *out)
{
    struct cublaslt_problem described = *given, *problem = &described;
    cublasLtMatmulHeuristicResult_t results[CUBLASLT_RANKS];
    cublasLtMatmulPreferenceOpaque_t preference;
    const void *aligned = (const void *)(uintptr_t)256; /* only its alignment counts */
    cublasStatus_t s;
    int found = 0;
    memset(out, 0, sizeof *out);
    if (!problem->m || !problem->n || !problem->k || !problem->batch)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "cuBLASLt takes no empty matrices");
    if (rounds_before_bias(n, problem) && problem->addend)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "cuBLASLt rounds the sum of product and addend before it adds "
                           "the bias");
    if (rounds_before_bias(n, problem))
        lay_bias(out, problem, bias ? bias : aligned);
    int status = cublaslt_library_get(n, &out->library, &out->handle);
    if (status != STRATA_OK)
        return status;
    out->workspace = room(problem);
    out->addend = problem->addend;
    out->alpha = factor(problem, problem->alpha);
    out->beta = factor(problem, problem->addend || out->laid.values ? problem->beta : 0);
    if ((s = set_layouts(out, problem)) ||
        (s = set_operation(out, problem, bias ? bias : aligned)) ||
        (s = set_preference(out->library, out->workspace, &preference)))
        return failed(n, out->library, "describing the product", s);
    s = out->library->cublasLtMatmulAlgoGetHeuristic(
        out->handle, &out->operation, &out->a, &out->b, &out->c, &out->d, &preference,
        CUBLASLT_RANKS, results, &found);
    if (s == CUBLAS_STATUS_SUCCESS && problem->pitched && found > 0 && rank >= found)
        rank = found - 1;
    if ((s == CUBLAS_STATUS_NOT_SUPPORTED && found == 0) ||
        (s == CUBLAS_STATUS_SUCCESS &&
         (rank >= found || results[rank].state != CUBLAS_STATUS_SUCCESS)))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "cuBLASLt has %d algorithms for this product; this is number "
                           "%d from 0",
                           found, rank);
    if (s != CUBLAS_STATUS_SUCCESS)
        return failed(n, out->library, "asking for algorithms", s);
    out->algorithm = results[rank].algo;
    return STRATA_OK;
}

int cublaslt_run(const strata_run *r, const struct cublaslt_plan *plan, const void *a,
                 const void *b, const void *c, void *d)
{
    const int status =
        plan->laid.values ? cublaslt_lay_bias(r, &plan->laid, d) : STRATA_OK;
    if (status != STRATA_OK)
        return status;
    const cublasStatus_t s = plan->library->cublasLtMatmul(
        plan->handle, (cublasLtMatmulDescOpaque_t *)&plan->operation, &plan->alpha, a,
        (cublasLtMatrixLayoutOpaque_t *)&plan->a, b,
        (cublasLtMatrixLayoutOpaque_t *)&plan->b, &plan->beta, plan->addend ? c : d,
        (cublasLtMatrixLayoutOpaque_t *)&plan->c, d,
        (cublasLtMatrixLayoutOpaque_t *)&plan->d, &plan->algorithm, r->workspace,
        r->workspace_size, (cudaStream_t)r->stream);
    return s == CUBLAS_STATUS_SUCCESS
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "cuBLASLt: %s",
                             plan->library->cublasLtGetStatusString(s));
}
