/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct: rows of INT8 or UINT8 times a constant matrix of INT8, sums in 32
 * bits, or rows of E4M3 times one of E4M3, sums in FP32 (float8.c); scales, bias and
 * activation in FP32, to FP32 or back to 8 bits.
 */
#include "plugins/quantized_product/product.h"

#include "plugins/common/dense.h"

enum { WEIGHT = STRATA_QUANTIZED_WEIGHT };

static const strata_attr attrs[] = {
    {.name = "units",
     .type = STRATA_I64,
     .offset = offsetof(strata_quantized_product, units),
     .min = 0,
     .max = 1e15,
     .doc = "columns of the output; 0: from the weight"},
    {.name = "transposed",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_quantized_product, transposed),
     .doc = "the weight is units x depth instead of depth x units"},
    QUANTIZED_ATTRS_TO(strata_quantized_product, "fp32|int8|u8|e4m3"),
};

static const strata_weight weights[] = {
    QUANTIZED_WEIGHTS_OF(UINT64_C(1) << STRATA_INT8 | UINT64_C(1) << STRATA_E4M3,
                         "depth x units, or units x depth if transposed", "unit"),
};

/* ---- shapes -------------------------------------------------------------------- */

/* What is E4M3 stays so, or becomes floats. */
static int check_dtypes(const strata_node *n)
{
    const strata_quantized_product *p = n->params;
    const strata_quantized *q = &p->quantized;
    const int floats = n->in[0].dtype == STRATA_E4M3;
    if (q->to != 0 && floats != (quantized_dtype(q) == STRATA_E4M3))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "to = e4m3 is for an input of e4m3, and that gives e4m3 or "
                           "fp32");
    if (floats && q->zero_in != 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "zero_in is %lld; in e4m3 0 stands for 0",
                           (long long)q->zero_in);
    return floats ? STRATA_OK : quantized_check_byte(n, &n->in[0], q->zero_in);
}

/* Fails with the reason. */
static int resolve(const strata_node *n, int64_t *depth, int64_t *units)
{
    const strata_quantized_product *p = n->params;
    const strata_tensor *in = &n->in[0], *weight = &n->weight[WEIGHT];
    if (in->rank < 2)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input has rank %d; a matrix has at least 2 dims: give it a "
                           "dim of 1 by a Shuffle",
                           (int)in->rank);
    *depth = in->dims[in->rank - 1];
    *units = p->units            ? p->units
             : weight->rank == 2 ? weight->dims[p->transposed ? 0 : 1]
                                 : 0;
    if (*units < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units is not known; give units = N or a weight");
    return check_dtypes(n);
}

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_quantized_product *p = n->params;
    int64_t depth, units;
    int status = resolve(n, &depth, &units);
    if (status != STRATA_OK)
        return status;
    expected[WEIGHT].dtype = n->in[0].dtype == STRATA_E4M3 ? STRATA_E4M3 : STRATA_INT8;
    expected[WEIGHT].rank = 2;
    expected[WEIGHT].dims[p->transposed ? 1 : 0] = depth;
    expected[WEIGHT].dims[p->transposed ? 0 : 1] = units;
    quantized_weight_shape(n, expected, units);
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    const strata_quantized_product *p = n->params;
    int64_t depth, units;
    int status = resolve(n, &depth, &units);
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = n->in[0].rank;
    for (int d = 0; d < n->in[0].rank - 1; d++)
        n->out[0].dims[d] = n->in[0].dims[d];
    n->out[0].dims[n->in[0].rank - 1] = units;
    return quantized_check_output(n, &p->quantized,
                                  &n->weight[STRATA_QUANTIZED_SCALE_OUT]);
}

static double flops(const strata_node *n)
{
    return 2 * (double)n->out[0].count * (double)n->in[0].dims[n->in[0].rank - 1];
}

/* ---- plain C ------------------------------------------------------------------- */

static int plain_accept(const strata_node *n)
{
    const strata_quantized_product *p = n->params;
    int64_t depth, units;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = resolve(n, &depth, &units);
    return status ? status : quantized_check_depth(n, depth, 1);
}

static int plain_setup(const strata_node *n, void *state)
{
    const strata_quantized_product *p = n->params;
    struct product_plain *c = state;
    const int8_t *from = n->weight[WEIGHT].data;
    void *packed, *factor;
    int status = resolve(n, &c->depth, &c->units);
    if (status == STRATA_OK)
        status = quantized_factors(n, c->units, &factor);
    if (status == STRATA_OK)
        status = quantized_pack(n, (size_t)n->weight[WEIGHT].count, &packed);
    if (status != STRATA_OK)
        return status;
    for (int64_t u = 0; u < c->units; u++)
        for (int64_t k = 0; k < c->depth; k++)
            ((int8_t *)packed)[u * c->depth + k] =
                from[p->transposed ? u * c->depth + k : k * c->units + u];
    c->packed = packed;
    c->factor = factor;
    return STRATA_OK;
}

static int plain_run(const strata_run *r)
{
    const struct product_plain *c = r->state;
    const int8_t *packed = c->packed;
    const strata_quantized_product *p = r->params;
    const strata_quantized *q = &p->quantized;
    const strata_tensor *in = &r->in[0];
    const float *bias = r->weight[STRATA_QUANTIZED_BIAS].data;
    const float scale = quantized_scale_out(r);
    const int64_t rows = r->out[0].count / c->units;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < rows * c->units; task++) {
        const int64_t row = task / c->units, u = task % c->units;
        const int32_t sum =
            quantized_dot((const char *)in->data + row * c->depth, in->dtype,
                          packed + u * c->depth, c->depth, (int32_t)q->zero_in);
        quantized_store(q, &r->out[0], task,
                        quantized_value(q, sum, c->factor[u], bias ? bias[u] : 0), scale);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static int integer_reference(const strata_node *n, const void *const *in,
                             const void *const *weight, void *const *out)
{
    const strata_quantized_product *p = n->params;
    const strata_quantized *q = &p->quantized;
    const double *bias = weight[STRATA_QUANTIZED_BIAS];
    const int64_t *x = in[0], *w = weight[WEIGHT];
    int64_t depth, units;
    int status = resolve(n, &depth, &units);
    for (int64_t e = 0; e < dense_count(&n->out[0]) && status == STRATA_OK; e++) {
        const int64_t u = e % units, row = e / units;
        int64_t sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += (x[row * depth + k] - q->zero_in) *
                   w[p->transposed ? u * depth + k : k * units + u];
        quantized_define(q, out[0], e,
                         quantized_value(q, (int32_t)sum, quantized_factor(n, weight, u),
                                         bias ? (float)bias[u] : 0),
                         weight[STRATA_QUANTIZED_SCALE_OUT]);
    }
    return status;
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    return (n->in[0].dtype == STRATA_E4M3 ? float8_reference
                                          : integer_reference)(n, in, weight, out);
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

static const strata_row rows[] = {
    {{STRATA_I8_NCHW | STRATA_U8_NCHW},
     {STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_F32_NCHW}},
};

static const strata_row float8_rows[] = {
    {{STRATA_E4M3_NCHW}, {STRATA_E4M3_NCHW | STRATA_F32_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.3,
     .state_size = sizeof(struct product_plain),
     .accept = plain_accept,
     .setup = plain_setup,
     .run = plain_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "float8",
     .rows = STRATA_ARRAY(float8_rows),
     .efficiency = 0.01,
     .bandwidth = 0.1,
     .state_size = sizeof(struct product_plain),
     .accept = float8_accept,
     .setup = plain_setup,
     .run = float8_run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "QuantizedProduct",
    .doc = "Matrix product of 8-bit numbers by a constant, scaled to floats or 8 bits.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_quantized_product),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .flops = flops,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedProduct", layers)
