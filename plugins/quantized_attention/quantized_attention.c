/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedAttention: Attention of E4M3 by scales of whole tensors, to floats or back to
 * E4M3; on the host a query at a time in FP64.
 */
#include "plugins/quantized_attention/quantized_attention.h"

#include <math.h>
#include <stdlib.h>

#include <strata/narrow.h>

#include "plugins/attention/layer.h"
#include "plugins/common/dense.h"
#include "plugins/common/element.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    SCALE_Q = STRATA_QUANTIZED_SCALE_Q,
    SCALE_K = STRATA_QUANTIZED_SCALE_K,
    SCALE_V = STRATA_QUANTIZED_SCALE_V,
    SCALE_Y = STRATA_QUANTIZED_SCALE_Y
};

#define E4M3_MOST 448.0

/* ---- shapes -------------------------------------------------------------------- */

static int check_dtypes(const strata_node *n)
{
    static const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < n->n_in && i <= ATTENTION_V; i++)
        if (n->in[i].rank > 0 && n->in[i].dtype != STRATA_E4M3)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "%s has dtype number %d; needed is e4m3: put a Quantize "
                               "before the layer",
                               names[i], (int)n->in[i].dtype);
    if (n->n_in > ATTENTION_MASK && n->in[ATTENTION_MASK].rank > 0) {
        const int32_t dtype = n->in[ATTENTION_MASK].dtype;
        if (dtype != STRATA_FP32 && dtype != STRATA_FP16 && dtype != STRATA_BF16 &&
            dtype != STRATA_BOOL8)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "a mask is of floats of 32 or 16 bits, or bool");
    }
    return STRATA_OK;
}

static int check_scale(const strata_node *n)
{
    const strata_quantized_attention *params = n->params;
    return params->to && n->weight[SCALE_Y].rank == 0
               ? STRATA_FAIL(n, STRATA_EINVAL,
                             "the output has 8 bits and no scale_out; give one")
               : STRATA_OK;
}

static int shape(const strata_node *n)
{
    const strata_quantized_attention *params = n->params;
    strata_tensor *y = &n->out[0];
    strata_node inputs = *n;
    struct attention_plan p;
    inputs.n_out = 0; /* they have no shape yet */
    int status = check_dtypes(n);
    if (status == STRATA_OK)
        status = quantized_attention_plan(&p, &inputs);
    if (status != STRATA_OK)
        return status;
    y->dtype = params->to ? STRATA_E4M3 : STRATA_FP32;
    y->rank = params->attention.heads ? 3 : 4;
    y->dims[0] = p.batch;
    y->dims[1] = y->rank == 3 ? p.length : p.heads;
    y->dims[2] = p.length;
    y->dims[3] = p.v_dim;
    if (y->rank == 3 && __builtin_mul_overflow(p.heads, p.v_dim, &y->dims[2]))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "rows of y are too long");
    return check_scale(n);
}

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    (void)n;
    for (int w = 0; w < STRATA_QUANTIZED_ATTENTION_WEIGHTS; w++) {
        expected[w].dtype = STRATA_FP32;
        expected[w].rank = 1;
        expected[w].dims[0] = 1;
    }
    return STRATA_OK;
}

static double flops(const strata_node *n)
{
    struct attention_plan p;
    if (quantized_attention_plan(&p, n) != STRATA_OK)
        return 0;
    return 2.0 * (double)(p.batch * p.heads) * (double)p.length * (double)p.keys *
           (double)(p.dim + p.v_dim) * (p.causal ? 0.5 : 1);
}

static int accept(const strata_node *n)
{
    const strata_quantized_attention *p = n->params;
    const int32_t y = n->out[0].dtype;
    return (p->to ? y == STRATA_E4M3 : y == STRATA_FP32)
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output has another dtype");
}

/* ---- plain C ------------------------------------------------------------------- */

struct job {
    const strata_run *r;
    struct attention_plan p;
    float value[256]; /* of each E4M3 */
    double score, v, y; /* factors of q*k, of sums, of results */
};

static int threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static int thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static size_t share_of(const struct attention_plan *p)
{
    int64_t bytes;
    return __builtin_add_overflow(p->keys, p->v_dim, &bytes) ||
                   __builtin_mul_overflow(bytes, (int64_t)sizeof(double), &bytes)
               ? SIZE_MAX
               : (size_t)bytes;
}

static size_t workspace(const strata_node *n)
{
    struct attention_plan p;
    size_t bytes;
    return quantized_attention_plan(&p, n) != STRATA_OK ||
                   __builtin_mul_overflow(share_of(&p), (size_t)threads(), &bytes)
               ? SIZE_MAX
               : bytes;
}

static const uint8_t *row_of(const struct job *j, const struct attention_view *v,
                             int64_t b, int64_t h, int64_t i)
{
    const uint8_t *data = j->r->in[v->port].data;
    return data + v->begin + b * v->batch + h * v->head + i * v->row;
}

/* The score of a key within bounds: -infinity where the mask closes it. */
static double through_mask(const struct job *j, int64_t b, int64_t h, int64_t i,
                           int64_t key, double score)
{
    const struct attention_mask *m = &j->p.mask;
    const int64_t at = b * m->batch + h * m->head + i * m->row + key * m->key;
    if (m->port < 0)
        return score;
    if (key >= m->keys)
        return -INFINITY;
    const void *data = j->r->in[m->port].data;
    if (m->dtype == STRATA_BOOL8)
        return ((const uint8_t *)data)[at] ? score : -INFINITY;
    return score + (double)element_load(data, m->dtype, at);
}

static void store(const struct job *j, int64_t b, int64_t h, int64_t i, int64_t d,
                  double y)
{
    const struct attention_view *v = &j->p.y;
    const int64_t at = b * v->batch + h * v->head + i * v->row + d;
    void *data = j->r->out[0].data;
    if (v->dtype == STRATA_E4M3)
        ((uint8_t *)data)[at] = strata_e4m3_of_float((float)(y * j->y), 1);
    else
        ((float *)data)[at] = (float)y;
}

/* Weights of the keys in [begin, end), before their sum divides them; that sum. */
static double weigh(const struct job *j, double *weight, int64_t b, int64_t h, int64_t i,
                    int64_t begin, int64_t end)
{
    const struct attention_plan *p = &j->p;
    const uint8_t *q = row_of(j, &p->q, b, h, i);
    double most = -INFINITY, sum = 0;
    for (int64_t key = begin; key < end; key++) {
        const uint8_t *k = row_of(j, &p->k, b, h / p->group, key);
        double s = 0;
        for (int64_t d = 0; d < p->dim; d++)
            s += (double)(j->value[q[d]] * j->value[k[d]]);
        s *= j->score;
        s = p->softcap > 0 ? p->softcap * tanh(s / p->softcap) : s;
        weight[key] = through_mask(j, b, h, i, key, s);
        most = weight[key] <= most || isnan(most) ? most : weight[key];
    }
    for (int64_t key = begin; key < end; key++) {
        weight[key] = most == -INFINITY ? 0 : exp(weight[key] - most);
        sum += weight[key];
    }
    return sum;
}

static void run_query(const struct job *j, double *scratch, int64_t b, int64_t h,
                      int64_t i)
{
    const struct attention_plan *p = &j->p;
    double *weight = scratch, *y = scratch + p->keys;
    const void *lengths = p->lengths_port < 0
                              ? NULL
                              : j->r->in[QUANTIZED_ATTENTION_LENGTHS].data;
    const struct attention_reach reach =
        attention_reach_of(p, attention_length(p, lengths, b));
    int64_t begin, end;
    attention_bounds(p, &reach, i, &begin, &end);
    const double sum = weigh(j, weight, b, h, i, begin, end);
    for (int64_t d = 0; d < p->v_dim; d++)
        y[d] = 0;
    for (int64_t key = begin; key < end; key++) {
        const uint8_t *v = row_of(j, &p->v, b, h / p->group, key);
        for (int64_t d = 0; d < p->v_dim && weight[key] != 0; d++)
            y[d] += weight[key] * (double)j->value[v[d]];
    }
    for (int64_t d = 0; d < p->v_dim; d++)
        store(j, b, h, i, d, sum == 0 ? 0 : y[d] / sum * j->v);
}

static int run(const strata_run *r)
{
    struct job j = {.r = r};
    int status = quantized_attention_plan_run(&j.p, r);
    if (status != STRATA_OK)
        return status;
    const struct attention_plan *p = &j.p;
    for (int i = 0; i < 256; i++)
        j.value[i] = strata_float_of_e4m3((uint8_t)i);
    j.score = p->scale * (double)*quantized_attention_scale(r, SCALE_Q) *
              (double)*quantized_attention_scale(r, SCALE_K);
    j.v = (double)*quantized_attention_scale(r, SCALE_V);
    if (p->y.dtype == STRATA_E4M3)
        j.y = 1 / (double)*quantized_attention_scale(r, SCALE_Y);
    const size_t share = share_of(p);
    const int64_t tasks = p->batch * p->heads * p->length;
    const int64_t made = share ? (int64_t)(r->workspace_size / share) : 1;
    const int team = made < threads() ? (int)made : threads();
    (void)team;
#pragma omp parallel for schedule(static) num_threads(team)
    for (int64_t t = 0; t < tasks; t++) {
        double *scratch = r->workspace;
        scratch += share / sizeof *scratch * (size_t)thread();
        run_query(&j, scratch, t / p->length / p->heads, t / p->length % p->heads,
                  t % p->length);
    }
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

/* Input `port` times its scale; of a packed one each part times its own. */
static double *scaled(const strata_node *n, const void *const *in,
                      const double *const *scale, int port)
{
    const strata_tensor *t = &n->in[port];
    const strata_attention *a = n->params; /* the first member */
    const int64_t count = dense_count(t), row = t->dims[t->rank - 1];
    const int64_t kv = a->kv_heads ? a->kv_heads : a->heads;
    const int packed = n->n_in <= ATTENTION_K || n->in[ATTENTION_K].rank == 0;
    const int64_t heads = packed ? a->heads + 2 * kv : 1;
    double *y = malloc((size_t)count * sizeof *y + 1);
    for (int64_t i = 0; i < count && y; i++) {
        const int64_t head = i % row / (row / heads);
        const int part = !packed ? port : (head >= a->heads) + (head >= a->heads + kv);
        y[i] = ((const double *)in[port])[i] * *scale[part];
    }
    return y;
}

/* Attention's, of inputs times their scales. */
static int define(const strata_node *n, const void *const *in, const double *const *scale,
                  void *const *out)
{
    strata_tensor tensors[ATTENTION_INPUTS];
    const strata_node inner = quantized_attention_inner(n, tensors);
    const void *values[ATTENTION_INPUTS] = {0};
    double *own[ATTENTION_V + 1] = {0};
    int status = STRATA_OK;
    for (int i = 0; i <= ATTENTION_V && status == STRATA_OK; i++) {
        if (tensors[i].rank == 0)
            continue;
        values[i] = own[i] = scaled(n, in, scale, i);
        if (!own[i])
            status = STRATA_FAIL(n, STRATA_ENOMEM, "no memory for a copy of an input");
    }
    if (tensors[ATTENTION_MASK].rank > 0)
        values[ATTENTION_MASK] = in[ATTENTION_MASK];
    if (tensors[ATTENTION_LENGTHS].rank > 0)
        values[ATTENTION_LENGTHS] = in[QUANTIZED_ATTENTION_LENGTHS];
    if (status == STRATA_OK)
        status = attention_reference_run(&inner, values, NULL, out);
    for (int i = 0; i <= ATTENTION_V; i++)
        free(own[i]);
    return status;
}

/* What is stored as E4M3 is limited, and rounded by who compares. */
static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_quantized_attention *p = n->params;
    const double *const scale[] = {weight[SCALE_Q], weight[SCALE_K], weight[SCALE_V]};
    const int status = define(n, in, scale, out);
    if (status != STRATA_OK || !p->to)
        return status;
    const double *scale_out = weight[SCALE_Y];
    double *y = out[0];
    for (int64_t i = 0; i < dense_count(&n->out[0]); i++) {
        y[i] /= *scale_out;
        y[i] = y[i] > E4M3_MOST ? E4M3_MOST : y[i] < -E4M3_MOST ? -E4M3_MOST : y[i];
    }
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {
        sizeof reference, STRATA_E4M3_WITHIN, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

#define LONGEST 9007199254740992.0 /* 2^53 */
#define AT(field) offsetof(strata_quantized_attention, field)

/* As Attention's. */
static const strata_attr attrs[] = {
    {.name = "heads", .type = STRATA_I64, .offset = AT(attention.heads), .max = 1 << 24,
     .doc = "of q, side by side in its rows; 0: a dim of their own (4-D inputs)"},
    {.name = "kv_heads", .type = STRATA_I64, .offset = AT(attention.kv_heads),
     .max = 1 << 24, .doc = "of k and v; 0: as many as q's, or by their dim"},
    {.name = "scale", .type = STRATA_F64, .offset = AT(attention.scale),
     .doc = "factor of the products; 0: 1/sqrt(elements of a head)"},
    {.name = "softcap", .type = STRATA_F64, .offset = AT(attention.softcap),
     .max = LONGEST, .doc = "c: scores become c*tanh(score/c); 0: they stay"},
    {.name = "window_left", .type = STRATA_I64, .offset = AT(attention.window_left),
     .def = -1, .min = -1, .max = LONGEST,
     .doc = "keys that a query sees before its own place; -1: all"},
    {.name = "window_right", .type = STRATA_I64, .offset = AT(attention.window_right),
     .def = -1, .min = -1, .max = LONGEST,
     .doc = "keys that a query sees behind its own place; -1: all"},
    {.name = "causal", .type = STRATA_BOOL, .offset = AT(attention.causal),
     .doc = "a query sees no key behind its own place"},
    {.name = "to", .type = STRATA_ENUM, .offset = AT(to), .choices = "fp32|e4m3",
     .doc = "dtype of the output"},
};

static const strata_weight weights[] = {
    [SCALE_Q] = {.name = "scale_q", .flags = STRATA_REQUIRED, .rank = -1,
                 .doc = "factor of q, above 0"},
    [SCALE_K] = {.name = "scale_k", .flags = STRATA_REQUIRED, .rank = -1,
                 .doc = "factor of k, above 0; packed, too"},
    [SCALE_V] = {.name = "scale_v", .flags = STRATA_REQUIRED, .rank = -1,
                 .doc = "factor of v; packed, too"},
    [SCALE_Y] = {.name = "scale_out", .rank = -1,
                 .doc = "divisor of the output, where that has 8 bits"},
};

static const strata_row rows[] = {
    {{STRATA_E4M3_NCHW, STRATA_SAME, STRATA_SAME,
      STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_BOOL_NCHW},
     {STRATA_F32_NCHW | STRATA_E4M3_NCHW},
     {STRATA_I32_NCHW | STRATA_I64_NCHW},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRATA_STRIDED_IN | STRATA_STRIDED_OUT,
     .name = "c", .rows = STRATA_ARRAY(rows), .efficiency = 0.01, .bandwidth = 0.05,
     .accept = accept, .workspace = workspace, .run = run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "QuantizedAttention",
    .doc = "Attention of e4m3 by scales of tensors, to floats or e4m3.",
    .min_in = 1, .max_in = QUANTIZED_ATTENTION_INPUTS, .n_out = 1,
    .params_size = sizeof(strata_quantized_attention), .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights), .impls = STRATA_ARRAY(impls), .shape = shape,
    .weight_shape = weight_shape, .flops = flops, .extension = extension,
    .optional_in = ((1 << QUANTIZED_ATTENTION_INPUTS) - 1) & ~1,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedAttention", layers)
