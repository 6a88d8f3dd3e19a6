/* SPDX-License-Identifier: Apache-2.0
 *
 * The source of plugin-1.0-x86_64.so, a module built with the headers of ABI 1.0 and kept:
 * every later release loads and runs that file. It uses what the ABI has: attributes of
 * all types, weights, workspace, packed memory, state, context, epilogue, reference, and
 * an impl for a built-in layer.
 *
 *   y = x0*factor + x1*alphas[0] + weight[c] + (bias[c] or shift)
 */
#include <string.h>

#include <strata/layers.h>

typedef struct {
    int64_t shift;
    double factor;
    int32_t negate, mode;
    strata_string title;
    strata_ints kernel;
    strata_reals alphas;
} params;

enum { PLAIN, DOUBLE };
enum { WEIGHT, BIAS };

typedef struct {
    float *packed; /* the weight again */
    int64_t open;  /* counts setups */
} state;

typedef struct {
    int64_t runs;
} context;

static int shape(const strata_node *n)
{
    const params *p = n->params;
    if (p->kernel.n != 2 || p->kernel.v[0] != 3 || p->title.length != 5 ||
        strcmp(p->title.text, "plain") != 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "kernel is not 3x3 or title not plain");
    if (n->in[0].rank != 4 || memcmp(n->in[0].dims, n->in[1].dims, sizeof n->in[0].dims))
        return STRATA_FAIL(n, STRATA_EINVAL, "inputs are not of rank 4 and of one shape");
    n->out[0].rank = 4;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->in[0].dims);
    return STRATA_OK;
}

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    for (int i = WEIGHT; i <= BIAS; i++) {
        expected[i].dtype = STRATA_FP32;
        expected[i].rank = 1;
        expected[i].dims[0] = n->in[0].dims[1];
    }
    return STRATA_OK;
}

static double flops(const strata_node *n)
{
    return 4 * (double)n->out[0].count;
}

static int accept(const strata_node *n)
{
    return n->in[0].dims[1] < 1000
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "a thousand channels");
}

static size_t workspace(const strata_node *n)
{
    return (size_t)n->in[0].dims[1] * sizeof(float);
}

static int setup(const strata_node *n, void *memory)
{
    const strata_pack *pack = n->host->extension(STRATA_PACK_V1);
    state *s = memory;
    void *packed;
    s->open++;
    if (!pack)
        return STRATA_OK;
    int status = pack->alloc(n, (size_t)n->weight[WEIGHT].count * sizeof(float), &packed);
    if (status != STRATA_OK)
        return status;
    memcpy(packed, n->weight[WEIGHT].data,
           (size_t)n->weight[WEIGHT].count * sizeof(float));
    s->packed = packed;
    n->host->log(STRATA_LOG_DEBUG, "plugin-1.0: set up %d", (int)s->open);
    return STRATA_OK;
}

static void teardown(void *memory)
{
    ((state *)memory)->open--;
}

static int ctx_open(const strata_node *n, const void *memory, void *ctx)
{
    (void)n;
    ((context *)ctx)->runs = ((const state *)memory)->open - 1;
    return STRATA_OK;
}

static void ctx_close(void *ctx)
{
    ((context *)ctx)->runs = 0;
}

static int run(const strata_run *r)
{
    const params *p = r->params;
    const state *s = r->state;
    const strata_tensor *y = &r->out[0];
    const float *weight = s->packed ? s->packed : r->weight[WEIGHT].data;
    const int relu = r->epilogue->flags & STRATA_EPILOGUE_ACTIVATION;
    float *add = r->workspace;
    ((context *)r->ctx)->runs++;
    for (int64_t c = 0; c < y->dims[1]; c++)
        add[c] = weight[c] + (r->weight[BIAS].rank > 0
                                  ? ((const float *)r->weight[BIAS].data)[c]
                                  : (float)p->shift);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t w = i % y->dims[3], h = i / y->dims[3] % y->dims[2];
        const int64_t c = i / (y->dims[3] * y->dims[2]) % y->dims[1];
        const int64_t n = i / (y->dims[3] * y->dims[2] * y->dims[1]);
        const int64_t at[] = {n, c, h, w};
        float sum = ((const float *)r->in[0].data)[strata_offset(&r->in[0], at)];
        sum *= (float)p->factor;
        sum += ((const float *)r->in[1].data)[strata_offset4(&r->in[1], n, c, h, w)] *
               (float)p->alphas.v[0];
        sum = (p->negate ? -1 : 1) * (p->mode == DOUBLE ? 2 : 1) * (sum + add[c]);
        ((float *)y->data)[strata_offset(y, at)] = relu && sum < 0 ? 0 : sum;
    }
    return STRATA_OK;
}

static int define(const strata_node *n, const double *const *in,
                  const double *const *weight, double *const *out)
{
    const params *p = n->params;
    const int64_t *dims = n->out[0].dims;
    for (int64_t i = 0; i < n->out[0].count; i++) {
        const int64_t c = i / (dims[3] * dims[2]) % dims[1];
        const double sum = in[0][i] * p->factor + in[1][i] * p->alphas.v[0] +
                           weight[WEIGHT][c] +
                           (weight[BIAS] ? weight[BIAS][c] : (double)p->shift);
        out[0][i] = (p->negate ? -1 : 1) * (p->mode == DOUBLE ? 2 : 1) * sum;
    }
    return STRATA_OK;
}

static const strata_reference reference = {sizeof reference, 0, define};

static const void *extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

static const strata_attr attrs[] = {
    {.name = "shift", .type = STRATA_I64, .offset = offsetof(params, shift), .def = 1,
     .min = -9, .max = 9, .doc = "added where there is no bias"},
    {.name = "factor", .type = STRATA_F64, .offset = offsetof(params, factor), .def = 2,
     .min = 0, .max = 4, .doc = "of input 0"},
    {.name = "negate", .type = STRATA_BOOL, .offset = offsetof(params, negate),
     .doc = "change the sign"},
    {.name = "mode", .type = STRATA_ENUM, .offset = offsetof(params, mode),
     .choices = "plain|double", .doc = "double doubles"},
    {.name = "title", .type = STRATA_STRING, .offset = offsetof(params, title),
     .def_text = "plain", .doc = "must be plain"},
    {.name = "kernel", .type = STRATA_INTS, .offset = offsetof(params, kernel), .min = 1,
     .max = 7, .def_text = "3x3", .doc = "must be 3x3"},
    {.name = "alphas", .type = STRATA_REALS, .offset = offsetof(params, alphas),
     .def_text = "0.5, 0.25", .doc = "the first is input 1's factor"},
};
static const strata_weight weights[] = {
    {.name = "weight", .flags = STRATA_REQUIRED, .rank = 1, .doc = "one value a channel"},
    {.name = "bias", .rank = 1, .doc = "one value a channel"},
};
static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F32_NHWC, STRATA_SAME}, {STRATA_SAME}},
};
static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRATA_PAD_IGNORED,
     .epilogues = STRATA_EPILOGUE_ACTIVATION, .name = "old", .rows = STRATA_ARRAY(rows),
     .activations = UINT64_C(1) << STRATA_RELU, .efficiency = 0.1,
     .state_size = sizeof(state), .ctx_size = sizeof(context), .accept = accept,
     .workspace = workspace, .setup = setup, .teardown = teardown, .ctx_open = ctx_open,
     .ctx_close = ctx_close, .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Kept",
    .doc = "What ABI 1.0 has", .min_in = 2, .max_in = 2, .n_out = 1,
    .params_size = sizeof(params), .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights), .impls = STRATA_ARRAY(impls), .shape = shape,
    .weight_shape = weight_shape, .flops = flops, .extension = extension,
};
static const strata_layer *const layers[] = {&layer};

/* ---- an impl for a layer of somebody else ----------------------------------------------- */

static int scale_accept(const strata_node *n)
{
    const strata_scale *p = n->params;
    return p->power == 1 && n->weight[0].rank == 0 && n->weight[1].rank == 0 &&
                   n->weight[2].rank == 0
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "weights or a power");
}

static int scale_run(const strata_run *r)
{
    const strata_scale *p = r->params;
    for (int64_t i = 0; i < r->out[0].count; i++)
        ((float *)r->out[0].data)[i] =
            ((const float *)r->in[0].data)[i] * (float)p->scale + (float)p->shift;
    return STRATA_OK;
}

static const strata_row scale_rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl scale_impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRATA_INPLACE_OK, .name = "old",
     .rows = STRATA_ARRAY(scale_rows), .accept = scale_accept, .run = scale_run},
};
static const strata_extends scale = {
    .struct_size = sizeof(strata_extends), .version = 1, .layer = "core::Scale",
    .params_size = sizeof(strata_scale), .impls = STRATA_ARRAY(scale_impls),
};
static const strata_extends *const extends[] = {&scale};

STRATA_MODULE_TABLES("org.example.kept", "1.0.0", "Kept,+core::Scale", layers, 1, extends,
                     1)
