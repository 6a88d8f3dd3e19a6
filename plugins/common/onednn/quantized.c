/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that compute in 8 bits, by oneDNN: the factors are output scales, what follows
 * are post-ops in the order of the definition, the last of them a true division, so that
 * the integers are those of the definition.
 */
#include "plugins/common/onednn/primitive.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Some, of which the values do not matter. */
enum { MOST_FACTORS = 65536 };
static const float unknown[MOST_FACTORS];

int onednn_quantized_factors(const strata_node *n, const strata_quantized *q, int dim,
                             bool known, struct onednn_request *request)
{
    const strata_tensor *f = &n->weight[STRATA_QUANTIZED_FACTORS];
    const float *scale = f->data;
    const float *in = n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    if (!onednn_has(dnnl_cpu_isa_avx512_core_vnni))
        return STRATA_FAIL(n, STRATA_EDEVICE,
                           "without the CPU's VNNI oneDNN's sums of two saturate");
    request->quantized = q;
    request->factors_dim = dim;
    request->n_factors = f->count;
    if (request->n_factors > MOST_FACTORS)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it takes at most %d factors",
                           MOST_FACTORS);
    request->factors = unknown;
    if (!known)
        return STRATA_OK;
    request->own_factors = malloc((size_t)request->n_factors * sizeof(float));
    if (!request->own_factors)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for %lld factors",
                           (long long)request->n_factors);
    for (int64_t k = 0; k < request->n_factors; k++)
        request->own_factors[k] = *in * scale[k];
    request->factors = request->own_factors;
    return STRATA_OK;
}

/* A quotient by 0 is infinite, and 0 of 0 in the definition: so is one by the least
 * number, once what lies past 8 bits is cut. */
int onednn_quantized_divisor(const strata_node *n, void **divisor)
{
    const float scale = *(const float *)n->weight[STRATA_QUANTIZED_SCALE_OUT].data;
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    int status = pack ? pack->alloc(n, sizeof scale, divisor)
                      : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                                    "the host has no " STRATA_PACK_V1 " for a divisor");
    if (status == STRATA_OK)
        *(float *)*divisor = scale == 0 ? copysignf(FLT_MIN, scale) : scale;
    return status;
}

int onednn_quantized_attributes(const strata_node *n,
                                const struct onednn_request *request,
                                dnnl_primitive_attr_t attr)
{
    const int32_t zero = (int32_t)request->quantized->zero_in;
    const int mask = request->n_factors > 1 ? 1 << request->factors_dim : 0;
    int status = onednn_check(n,
                              dnnl_primitive_attr_set_output_scales(
                                  attr, request->n_factors, mask, request->factors),
                              "factors");
    if (status || zero == 0)
        return status;
    return onednn_check(
        n, dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_SRC, 1, 0, &zero),
        "zero_in");
}

static int append_activation(const strata_node *n, const strata_quantized *q,
                             dnnl_post_ops_t ops)
{
    static const dnnl_alg_kind_t algorithms[] = {dnnl_alg_kind_undef, dnnl_eltwise_relu,
                                                 dnnl_eltwise_relu, dnnl_eltwise_clip,
                                                 dnnl_eltwise_clip};
    const bool six = q->activation == 1 + STRATA_RELU6;
    const bool plain = six || q->activation == 1 + STRATA_RELU;
    return onednn_check(n,
                        dnnl_post_ops_append_eltwise(ops, 1, algorithms[q->activation],
                                                     plain ? 0 : (float)q->alpha,
                                                     six ? 6 : (float)q->beta),
                        "activation");
}

static int append_operand(const strata_node *n, dnnl_post_ops_t ops,
                          dnnl_alg_kind_t algorithm, const int64_t *dims, int rank,
                          enum onednn_source source, struct onednn_arguments *arguments)
{
    dnnl_memory_desc_t md;
    const int position = dnnl_post_ops_len(ops);
    int status = onednn_dense(n, dims, rank, &md);
    if (status)
        return status;
    onednn_bind(arguments, DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1,
                source);
    return onednn_check(n, dnnl_post_ops_append_binary(ops, algorithm, &md),
                        "an operand");
}

/* oneDNN adds a zero point before it rounds: whole numbers are added exactly. */
static int append_zero(const strata_node *n, dnnl_post_ops_t ops, float zero)
{
    int status = onednn_check(
        n, dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_round, 0, 0), "rounding");
    if (status)
        return status;
    return onednn_check(
        n, dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_linear, 1, zero),
        "zero_out");
}

int onednn_quantized_steps(const strata_node *n, const struct onednn_request *request,
                           dnnl_post_ops_t ops, struct onednn_arguments *arguments)
{
    const strata_quantized *q = request->quantized;
    const int rank = request->output.ndims;
    const int64_t one[] = {1, 1, 1, 1, 1};
    int64_t channels[] = {1, 1, 1, 1, 1};
    int status = STRATA_OK;
    channels[request->factors_dim] = request->output.dims[request->factors_dim];
    if (n->weight[STRATA_QUANTIZED_BIAS].rank > 0)
        status = append_operand(n, ops, dnnl_binary_add, channels, rank, ONEDNN_BIAS,
                                arguments);
    if (!status && q->activation)
        status = append_activation(n, q, ops);
    if (!status && q->to != 0)
        status = append_operand(n, ops, dnnl_binary_div, one, rank, ONEDNN_SCALE_OUT,
                                arguments);
    if (!status && q->to != 0 && q->zero_out != 0)
        status = append_zero(n, ops, (float)q->zero_out);
    return status;
}
