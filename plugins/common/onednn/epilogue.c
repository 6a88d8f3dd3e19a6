/* SPDX-License-Identifier: Apache-2.0
 *
 * Epilogues as oneDNN post-ops: channel factors, addends and the residual are binary
 * post-ops whose operands are bound at run; activations are elementwise ones.
 */
#include "plugins/common/onednn/epilogue.h"

#include <stdbool.h>

/* A parameter of an elementwise post-op: a constant, or the activation's own. */
enum source { FIXED, ALPHA, BETA };
struct parameter {
    enum source source;
    float value;
};

struct step {
    dnnl_alg_kind_t algorithm; /* dnnl_alg_kind_undef: no step */
    struct parameter alpha, beta;
    bool times_beta; /* the result is multiplied by the activation's beta */
};

static const struct step activations[STRATA_ACTIVATION_COUNT] = {
    [STRATA_RELU] = {dnnl_eltwise_relu},
    [STRATA_LEAKY_RELU] = {dnnl_eltwise_relu, {ALPHA}},
    [STRATA_RELU6] = {dnnl_eltwise_clip, {FIXED, 0}, {FIXED, 6}},
    [STRATA_CLIP] = {dnnl_eltwise_clip, {ALPHA}, {BETA}},
    [STRATA_SIGMOID] = {dnnl_eltwise_logistic},
    [STRATA_TANH] = {dnnl_eltwise_tanh},
    [STRATA_ELU] = {dnnl_eltwise_elu, {ALPHA}},
    [STRATA_SELU] = {dnnl_eltwise_elu, {ALPHA}, .times_beta = true},
    [STRATA_SOFTPLUS] = {dnnl_eltwise_soft_relu},
    [STRATA_GELU] = {dnnl_eltwise_gelu_erf},
    [STRATA_SILU] = {dnnl_eltwise_swish, {FIXED, 1}},
    [STRATA_HARD_SWISH] = {dnnl_eltwise_hardswish},
    [STRATA_MISH] = {dnnl_eltwise_mish},
    [STRATA_GELU_TANH] = {dnnl_eltwise_gelu_tanh},
    [STRATA_SWISH] = {dnnl_eltwise_swish, {ALPHA}},
};

static float parameter_value(struct parameter p, const strata_epilogue *e)
{
    return p.source == ALPHA  ? (float)e->alpha
           : p.source == BETA ? (float)e->beta
                              : p.value;
}

static int append_activation(const strata_node *n, dnnl_post_ops_t ops)
{
    const strata_epilogue *e = n->epilogue;

    if (e->activation < 0 || e->activation >= STRATA_ACTIVATION_COUNT ||
        !activations[e->activation].algorithm)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "oneDNN cannot fuse activation kind %d", (int)e->activation);
    const struct step *s = &activations[e->activation];
    return onednn_check(n,
                        dnnl_post_ops_append_eltwise(
                            ops, s->times_beta ? (float)e->beta : 1, s->algorithm,
                            parameter_value(s->alpha, e), parameter_value(s->beta, e)),
                        "fused activation");
}

static int append_binary(const strata_node *n, dnnl_post_ops_t ops,
                         dnnl_alg_kind_t algorithm, const dnnl_memory_desc_t *operand,
                         enum onednn_source source, struct onednn_arguments *arguments)
{
    int position = dnnl_post_ops_len(ops);
    onednn_bind(arguments, DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1,
                source);
    return onednn_check(n, dnnl_post_ops_append_binary(ops, algorithm, operand),
                        "fused operand");
}

static int append_all(const strata_node *n, const struct onednn_request *request,
                      dnnl_post_ops_t ops, struct onednn_arguments *arguments)
{
    const int32_t flags = n->epilogue ? n->epilogue->flags : 0;
    const dnnl_memory_desc_t *output = &request->output;
    const int64_t dims[] = {1, output->dims[1], 1, 1, 1}; /* broadcast over the rest */
    dnnl_memory_desc_t channels;
    int status = onednn_dense(n, dims, output->ndims, &channels);

    if (!status && request->quantized)
        return onednn_quantized_steps(n, request, ops, arguments);
    if (!status && request->addend.ndims > 0)
        status = append_binary(n, ops, dnnl_binary_add, &request->addend, ONEDNN_THIRD,
                               arguments);
    if (!status && flags & STRATA_EPILOGUE_SCALE)
        status = append_binary(n, ops, dnnl_binary_mul, &channels, ONEDNN_EPILOGUE_SCALE,
                               arguments);
    if (!status && flags & STRATA_EPILOGUE_BIAS && request->bias != ONEDNN_EPILOGUE_BIAS)
        status = append_binary(n, ops, dnnl_binary_add, &channels, ONEDNN_EPILOGUE_BIAS,
                               arguments);
    if (!status && flags & STRATA_EPILOGUE_RESIDUAL)
        status = append_binary(n, ops, dnnl_binary_add, output, ONEDNN_EPILOGUE_RESIDUAL,
                               arguments);
    if (!status && flags & STRATA_EPILOGUE_ACTIVATION)
        status = append_activation(n, ops);
    return status;
}

int onednn_epilogue(const strata_node *n, const struct onednn_request *request,
                    dnnl_primitive_attr_t attr, struct onednn_arguments *arguments)
{
    dnnl_post_ops_t ops = NULL;
    int status;

    if ((!n->epilogue || n->epilogue->flags == 0) && request->addend.ndims == 0 &&
        !request->quantized)
        return STRATA_OK;
    if ((status = onednn_check(n, dnnl_post_ops_create(&ops), "post-ops")))
        return status;
    status = append_all(n, request, ops, arguments);
    if (!status)
        status = onednn_check(n, dnnl_primitive_attr_set_post_ops(attr, ops), "post-ops");
    dnnl_post_ops_destroy(ops);
    return status;
}
