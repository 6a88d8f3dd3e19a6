/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalization: the layer, and its host impls. The variance is taken from centred values
 * in a second look, never as a difference of moments. Rows (layer, rms) are worked on one
 * by one, all other kinds by channels. May run in place.
 */
#include "plugins/normalization/channels.h"
#include "plugins/normalization/definition.h"
#include "plugins/normalization/lines.h"

static const char *const kinds[] = {"layer", "rms", "group", "instance", "batch", "lp"};

/* ---- the layer ------------------------------------------------------------------- */

/* Dims of the weights scale and bias. */
static void norm_scale_dims(const strata_node *n, strata_tensor *w)
{
    const strata_normalization *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = norm_axis(p, x->rank);
    w->rank = 0;
    if (norm_by_rows(p) && axis >= 0) {
        w->rank = x->rank - axis;
        memcpy(w->dims, x->dims + axis, sizeof(int64_t) * (size_t)w->rank);
    } else if (!norm_by_rows(p) && p->kind != STRATA_NORMALIZATION_LP && x->rank > 1) {
        w->rank = 1;
        w->dims[0] = x->dims[1];
    }
}

static int norm_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_normalization *p = n->params;
    for (int k = NORM_SCALE; k <= NORM_BIAS; k++)
        norm_scale_dims(n, &expected[k]);
    for (int k = NORM_MEAN; k <= NORM_VARIANCE; k++)
        if (p->kind == STRATA_NORMALIZATION_BATCH)
            norm_scale_dims(n, &expected[k]);
    return STRATA_OK;
}

static int norm_refuse(const strata_node *n)
{
    const strata_normalization *p = n->params;
    const strata_tensor *x = &n->in[0];
    const bool lp = p->kind == STRATA_NORMALIZATION_LP;
    if ((norm_by_rows(p) || lp) && norm_axis(p, x->rank) < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)x->rank);
    if (!norm_by_rows(p) && !lp && x->rank < 2)
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "input has rank %d; %s normalization needs channels: rank 2 or "
            "more",
            (int)x->rank, kinds[p->kind]);
    if (p->kind == STRATA_NORMALIZATION_GROUP && x->dims[1] % p->groups != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld channels are not divided by groups = %lld",
                           (long long)x->dims[1], (long long)p->groups);
    if (p->statistics && p->kind != STRATA_NORMALIZATION_LAYER)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "statistics = yes with kind = %s; mean and deviation are "
                           "outputs of kind = layer alone",
                           kinds[p->kind]);
    return STRATA_OK;
}

static int norm_refuse_weights(const strata_node *n)
{
    const strata_normalization *p = n->params;
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    strata_tensor want = {0};
    norm_scale_dims(n, &want);
    for (int k = 0; k < NORM_WEIGHTS; k++) {
        const strata_tensor *w = &n->weight[k];
        if (w->rank == 0)
            continue;
        if (want.rank == 0 || (k >= NORM_MEAN && p->kind != STRATA_NORMALIZATION_BATCH))
            return STRATA_FAIL(n, STRATA_EINVAL, "kind = %s has no weight %s",
                               kinds[p->kind], names[k]);
        if (dense_count(w) != dense_count(&want))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "weight %s has %lld elements; %lld are needed", names[k],
                               (long long)dense_count(w), (long long)dense_count(&want));
    }
    return STRATA_OK;
}

static int norm_residual(const strata_node *n)
{
    const strata_normalization *p = n->params;
    const strata_tensor *x = &n->in[0], *residual = &n->in[1];
    const bool given = n->n_in > 1 && residual->rank > 0;
    if (p->sum && !given)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "sum = yes needs a second input, which is added to the first");
    if (!given)
        return STRATA_OK;
    if (residual->rank != x->rank ||
        memcmp(residual->dims, x->dims, sizeof(int64_t) * (size_t)x->rank) != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input 1, which is added to input 0, has other dims than it");
    if (residual->dtype != x->dtype)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input 1, which is added to input 0, has another dtype");
    return STRATA_OK;
}

static int norm_shape(const strata_node *n)
{
    const strata_normalization *p = n->params;
    const strata_tensor *x = &n->in[0];
    int status = norm_refuse(n);
    if (status == STRATA_OK)
        status = norm_refuse_weights(n);
    if (status == STRATA_OK)
        status = norm_residual(n);
    for (int i = 0; i < n->n_out && status == STRATA_OK; i++) {
        strata_tensor *out = &n->out[i];
        out->rank = x->rank;
        memcpy(out->dims, x->dims, sizeof x->dims);
        if (norm_mean_output(p) < 0 || i < norm_mean_output(p))
            continue;
        out->dtype = x->dtype == STRATA_FP64 ? STRATA_FP64 : STRATA_FP32;
        out->exact = 1;
        for (int32_t d = norm_axis(p, x->rank); d < x->rank; d++)
            out->dims[d] = 1;
    }
    return status;
}

static int norm_outputs(const void *params)
{
    const strata_normalization *p = params;
    return 1 + (p->sum != 0) + (p->statistics ? 2 : 0);
}

static double norm_flops(const strata_node *n)
{
    return 8.0 * (double)n->out[0].count;
}

static const void *norm_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, norm_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- rows -------------------------------------------------------------------------- */

static void norm_row(const struct norm_call *c, int64_t row, int64_t n)
{
    const strata_normalization *p = c->params;
    const bool centred = p->kind == STRATA_NORMALIZATION_LAYER;
    const int64_t at = row * n;
    const float *scale = c->run->weight[NORM_SCALE].data;
    const float *bias = c->run->weight[NORM_BIAS].data;
    float buffer[2 * GATHER_STRETCH];
    double sum = 0, square = 0;
    for (int64_t j = 0; j < n && (centred || c->sum); j += GATHER_STRETCH) {
        const int64_t part = norm_part(j, n);
        const float *x = norm_first_load(c, at + j, part, buffer);
        sum += (double)c->code->row(GATHER_SUM, x, part, 0);
    }
    const float mean = centred ? (float)(sum / (double)n) : 0;
    for (int64_t j = 0; j < n; j += GATHER_STRETCH) {
        const int64_t part = norm_part(j, n);
        const float *x = norm_load(c, at + j, part, buffer);
        square += (double)c->code->row(GATHER_CENTRED, x, part, mean);
    }
    const float factor = norm_inverse(p, square, n);
    for (int64_t j = 0; j < n; j += GATHER_STRETCH) {
        const int64_t part = norm_part(j, n);
        const float *x = norm_load(c, at + j, part, buffer);
        float *y = norm_target(c, at + j, buffer);
        c->code->adjust_row(y, x, mean, factor, scale ? scale + j : NULL,
                            bias ? bias + j : NULL, part);
        norm_store(c, at + j, part, y, buffer);
    }
    if (p->statistics) {
        const int out = norm_mean_output(p);
        ((float *)c->run->out[out].data)[row] = mean;
        ((float *)c->run->out[out + 1].data)[row] = factor;
    }
}

/* A line of lp that lies in one piece. */
static void norm_lp_row(const struct norm_call *c, int64_t row, int64_t n)
{
    const enum gather g = c->params->p == 1 ? GATHER_ABS : GATHER_SQUARE;
    const int64_t at = row * n;
    float buffer[2 * GATHER_STRETCH];
    double sum = 0;
    for (int64_t j = 0; j < n; j += GATHER_STRETCH) {
        const int64_t part = norm_part(j, n);
        const float *x = norm_first_load(c, at + j, part, buffer);
        sum += (double)c->code->row(g, x, part, 0);
    }
    const float factor = norm_lp_of(c->params, sum, n);
    for (int64_t j = 0; j < n; j += GATHER_STRETCH) {
        const int64_t part = norm_part(j, n);
        const float *x = norm_load(c, at + j, part, buffer);
        float *y = norm_target(c, at + j, buffer);
        c->code->adjust_row(y, x, 0, factor, NULL, NULL, part);
        norm_store(c, at + j, part, y, buffer);
    }
}

/* Whether rows are read and written as they lie, and nothing else is done. */
static bool has_lines(const struct norm_call *c, int64_t n)
{
    const strata_run *r = c->run;
    return r->in[0].dtype == STRATA_FP32 && r->out[0].dtype == STRATA_FP32 &&
           !c->residual && !c->sum &&
           !(r->epilogue->flags & STRATA_EPILOGUE_ACTIVATION) && n <= GATHER_STRETCH;
}

static void norm_lines(const struct norm_call *c, const struct norm_lines_code *code,
                       int64_t rows, int64_t n)
{
    const strata_normalization *p = c->params;
    const int out = norm_mean_output(p);
    const struct norm_lines l = {
        .x = c->run->in[0].data,
        .scale = c->run->weight[NORM_SCALE].data,
        .bias = c->run->weight[NORM_BIAS].data,
        .y = c->run->out[0].data,
        .mean = p->statistics ? c->run->out[out].data : NULL,
        .factor = p->statistics ? c->run->out[out + 1].data : NULL,
        .n = n,
        .epsilon = p->epsilon,
        .centred = p->kind == STRATA_NORMALIZATION_LAYER,
    };
    const int64_t fit = n < NORM_ELEMENTS ? NORM_ELEMENTS / n : 1;
    const int64_t some = fit < NORM_ROWS ? fit : NORM_ROWS;
#pragma omp parallel for schedule(static) if (rows * n >= WALK_PARALLEL)
    for (int64_t row = 0; row < rows; row += some)
        code->run(&l, row, rows - row < some ? rows - row : some);
}

static int norm_rows(const struct norm_call *c)
{
    const strata_tensor *x = &c->run->in[0];
    const bool lp = c->params->kind == STRATA_NORMALIZATION_LP;
    const int64_t n = norm_span(x, norm_axis(c->params, x->rank), x->rank);
    const int64_t rows = x->count / n;
    const struct norm_lines_code *code = norm_lines_choose(n);
    if (code && !lp && has_lines(c, n)) {
        norm_lines(c, code, rows, n);
        return STRATA_OK;
    }
#pragma omp parallel for schedule(static) if (x->count >= WALK_PARALLEL)
    for (int64_t row = 0; row < rows; row++)
        if (lp)
            norm_lp_row(c, row, n);
        else
            norm_row(c, row, n);
    return STRATA_OK;
}

static int norm_run(const strata_run *r)
{
    const struct norm_call c = norm_call_of(r);
    const bool line = c.params->kind == STRATA_NORMALIZATION_LP && c.params->p <= 2 &&
                      norm_axis(c.params, r->in[0].rank) == r->in[0].rank - 1;
    return norm_by_rows(c.params) || line ? norm_rows(&c) : norm_channels(&c);
}

/* ---- FP64 -------------------------------------------------------------------------- */

/* Bytes for the weights as FP64. */
static size_t norm_double_workspace(const strata_node *n)
{
    size_t elements = 0;
    for (int k = 0; k < n->n_weights; k++)
        elements += n->weight[k].rank ? (size_t)dense_count(&n->weight[k]) : 0;
    return elements * sizeof(double);
}

/* As it is defined. */
static int norm_double_run(const strata_run *r)
{
    const strata_node n = {.params = r->params, .n_in = r->n_in, .in = r->in};
    const void *in[2] = {r->in[0].data, NULL}, *weight[NORM_WEIGHTS] = {NULL};
    void *out[4];
    double *memory = r->workspace;
    if (r->n_in > 1 && r->in[1].rank > 0)
        in[1] = r->in[1].data;
    for (int k = 0; k < NORM_WEIGHTS; k++)
        if (r->weight[k].rank > 0) {
            const int64_t count = dense_count(&r->weight[k]);
            weight[k] = memory;
            for (int64_t i = 0; i < count; i++)
                *memory++ = (double)((const float *)r->weight[k].data)[i];
        }
    for (int i = 0; i < r->n_out; i++)
        out[i] = r->out[i].data;
    return norm_reference(&n, in, weight, out);
}

/* ---- tables ------------------------------------------------------------------------ */

/* The rows of `sum` name it as output 1; without it that place is the mean's. */
static int norm_accept(const strata_node *n)
{
    const strata_normalization *p = n->params;
    const bool linear = n->in[0].format & NORM_LINEAR;
    const bool lines = norm_by_rows(p) || p->kind == STRATA_NORMALIZATION_LP;
    if (lines && !linear)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "kind = %s takes linear formats alone",
                           kinds[p->kind]);
    if ((n->row == 1) != (p->statistics && !p->sum))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "another row has these outputs");
    return STRATA_OK;
}

static const strata_attr attrs[] = {
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_normalization, kind),
     .choices = "layer|rms|group|instance|batch|lp",
     .doc = "what shares mean and deviation"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_normalization, axis),
     .def = -1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc =
         "layer, rms: first normalized dim; lp: the dim; negative counts from the end"},
    {.name = "groups",
     .type = STRATA_I64,
     .offset = offsetof(strata_normalization, groups),
     .def = 1,
     .min = 1,
     .max = 1 << 20,
     .doc = "group: groups of channels"},
    {.name = "p",
     .type = STRATA_I64,
     .offset = offsetof(strata_normalization, p),
     .def = 2,
     .min = 1,
     .max = 64,
     .doc = "lp: exponent of the norm"},
    {.name = "epsilon",
     .type = STRATA_F64,
     .offset = offsetof(strata_normalization, epsilon),
     .def = 1e-5,
     .min = 0,
     .max = 1e9,
     .doc = "added to the variance; not of lp"},
    {.name = "sum",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_normalization, sum),
     .doc = "give the sum of both inputs as the next output"},
    {.name = "statistics",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_normalization, statistics),
     .doc = "layer: give mean and inverse deviation as the last outputs, in FP32"},
};

static const strata_weight weights[] = {
    {.name = "scale", .rank = -1, .doc = "factors behind the normalization"},
    {.name = "bias", .rank = -1, .doc = "addends behind the factors"},
    {.name = "mean", .rank = -1, .doc = "batch: means of the channels"},
    {.name = "variance", .rank = -1, .doc = "batch: variances of the channels"},
};

static const strata_row rows[] = {
    {{WALK_FLOATS, STRATA_SAME}, {STRATA_SAME, STRATA_SAME, STRATA_F32_NCHW}, {0}, {0}},
    {{WALK_FLOATS, STRATA_SAME}, {STRATA_SAME, STRATA_F32_NCHW}, {0}, {0}},
};

static const strata_row double_rows[] = {
    {{STRATA_F64_NCHW, STRATA_SAME}, {STRATA_SAME}, {0}, {0}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .epilogues = STRATA_EPILOGUE_ACTIVATION,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .activations = ELEMENT_ALL_ACTIVATIONS,
     .efficiency = 0.2,
     .bandwidth = 0.5,
     .accept = norm_accept,
     .workspace = norm_workspace,
     .run = norm_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK,
     .name = "c_fp64",
     .rows = STRATA_ARRAY(double_rows),
     .efficiency = 0.02,
     .bandwidth = 0.02,
     .workspace = norm_double_workspace,
     .run = norm_double_run},
};

static const strata_layer normalization = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Normalization",
    .doc = "Mean 0 and variance 1 over rows, groups or channels; or a p-norm of 1",
    .min_in = 1,
    .max_in = 2,
    .n_out = -1,
    .params_size = sizeof(strata_normalization),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = norm_shape,
    .weight_shape = norm_weight_shape,
    .flops = norm_flops,
    .outputs = norm_outputs,
    .extension = norm_extension,
    .optional_in = 2,
};

static const strata_layer *const layers[] = {&normalization};
STRATA_MODULE("core", "1.0.0", "Normalization", layers)
