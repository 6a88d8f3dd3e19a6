/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layers of module cublaslt have alike: a node as a product, and whether a rank
 * of the library's list takes it.
 */
#include "plugins/common/cublaslt/module.h"

int cublaslt_start(const strata_node *n, struct cublaslt_problem *out)
{
    const strata_epilogue *e = n->epilogue;
    *out = (struct cublaslt_problem){
        .dtype = n->in[0].dtype,
        .b_dtype = n->in[0].dtype,
        .result = n->out[0].dtype,
        .alpha = 1,
        .beta = 1,
        .batch = 1,
        .bias = n->weight[1].rank > 0,
        .addend = e && (e->flags & STRATA_EPILOGUE_RESIDUAL) != 0,
        .tf32 = n->in[0].dtype == STRATA_FP32 && strata_may_use_tf32(n),
    };
    if (e && (e->flags & STRATA_EPILOGUE_ACTIVATION)) {
        out->relu = e->activation == STRATA_RELU;
        out->gelu = e->activation == STRATA_GELU_TANH;
    }
    if (out->dtype != STRATA_FP32 && n->math != STRATA_MATH_TENSOR_OP)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%s uses tensor cores, which math = tensor_op allows",
                           out->dtype == STRATA_FP16   ? "FP16"
                           : out->dtype == STRATA_BF16 ? "BF16"
                                                       : "a dtype of 8 bits");
    if (out->gelu && out->result != STRATA_FP16)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "cuBLASLt's tanh has the precision of FP16 alone");
    return STRATA_OK;
}

int cublaslt_accept(const strata_node *n, cublaslt_describe *describe, int rank)
{
    struct cublaslt_problem problem;
    struct cublaslt_plan plan;
    int status = describe(n, &problem);
    return status == STRATA_OK ? cublaslt_plan(n, &problem, rank, NULL, &plan) : status;
}

size_t cublaslt_workspace(const strata_node *n, cublaslt_describe *describe, int rank)
{
    struct cublaslt_problem problem;
    struct cublaslt_plan plan;
    if (describe(n, &problem) != STRATA_OK ||
        cublaslt_plan(n, &problem, rank, NULL, &plan) != STRATA_OK)
        return SIZE_MAX;
    return plan.workspace;
}
