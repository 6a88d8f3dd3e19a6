/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention: each query's mean of the values, weighted by the softmax of its products with
 * the keys. Linear tensors; heads lie in a dim of their own or side by side in rows.
 */
#include "plugins/attention/layer.h"

#include "plugins/common/dense.h"
#include "plugins/common/element.h"

static int is_float(int32_t dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16 || dtype == STRATA_BF16;
}

static int check_dtypes(const strata_node *n)
{
    static const char *const names[] = {"q", "k", "v", "mask", "past_k", "past_v"};
    const int wide = n->in[ATTENTION_Q].dtype == STRATA_FP64;
    for (int i = 0; i < n->n_in && i < ATTENTION_LENGTHS; i++) {
        const int32_t dtype = n->in[i].dtype;
        const int fits = n->in[i].rank == 0 ||
                         (wide ? dtype == STRATA_FP64 : is_float(dtype)) ||
                         (i == ATTENTION_MASK && dtype == STRATA_BOOL8);
        if (!fits)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "%s does not go with q: all are floats of 32 and 16 bits, "
                               "or all fp64, and a mask may be bool; a Cast gives one",
                               names[i]);
    }
    return STRATA_OK;
}

static void set_shape(strata_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    t->rank = 4;
    t->dims[0] = a;
    t->dims[1] = b;
    t->dims[2] = c;
    t->dims[3] = d;
}

static int attention_shape(const strata_node *n)
{
    const strata_attention *params = n->params;
    strata_node inputs = *n;
    struct attention_plan p;
    inputs.n_out = 0; /* they have no shape yet */
    int status = check_dtypes(n), out = 1;
    if (status == STRATA_OK)
        status = attention_plan(&p, &inputs);
    if (status != STRATA_OK)
        return status;
    if (params->heads) {
        n->out[0].rank = 3;
        n->out[0].dims[0] = p.batch;
        n->out[0].dims[1] = p.length;
        if (__builtin_mul_overflow(p.heads, p.v_dim, &n->out[0].dims[2]))
            return STRATA_FAIL(n, STRATA_EOVERFLOW, "rows of y are too long");
    } else
        set_shape(&n->out[0], p.batch, p.heads, p.length, p.v_dim);
    if (params->cache || params->present) {
        set_shape(&n->out[out++], p.batch, p.kv_heads, p.keys, p.dim);
        set_shape(&n->out[out++], p.batch, p.kv_heads, p.keys, p.v_dim);
    }
    if (params->scores != STRATA_SCORES_NONE)
        set_shape(&n->out[out], p.batch, p.heads, p.length, p.keys);
    return STRATA_OK;
}

static int attention_outputs(const void *params)
{
    const strata_attention *p = params;
    return 1 + (p->cache || p->present ? 2 : 0) + (p->scores != STRATA_SCORES_NONE);
}

static double attention_flops(const strata_node *n)
{
    struct attention_plan p;
    if (attention_plan(&p, n) != STRATA_OK)
        return 0;
    return 2.0 * (double)(p.batch * p.heads) * (double)p.length * (double)p.keys *
           (double)(p.dim + p.v_dim) * (p.causal ? 0.5 : 1);
}

static int accept_without_scores(const strata_node *n)
{
    const strata_attention *p = n->params;
    return p->scores == STRATA_SCORES_NONE
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it keeps no scores");
}

static const void *attention_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     attention_reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

#define LONGEST 9007199254740992.0 /* 2^53 */

static const strata_attr attrs[] = {
    {.name = "heads", .type = STRATA_I64, .offset = offsetof(strata_attention, heads),
     .max = 1 << 24,
     .doc = "of q, side by side in its rows; 0: a dim of their own (4-D inputs)"},
    {.name = "kv_heads", .type = STRATA_I64,
     .offset = offsetof(strata_attention, kv_heads), .max = 1 << 24,
     .doc = "of k and v; 0: as many as q's, or by their dim"},
    {.name = "scale", .type = STRATA_F64, .offset = offsetof(strata_attention, scale),
     .doc = "factor of the products; 0: 1/sqrt(elements of a head)"},
    {.name = "softcap", .type = STRATA_F64, .offset = offsetof(strata_attention, softcap),
     .max = LONGEST, .doc = "c: scores become c*tanh(score/c); 0: they stay"},
    {.name = "window_left", .type = STRATA_I64,
     .offset = offsetof(strata_attention, window_left), .def = -1, .min = -1,
     .max = LONGEST, .doc = "keys that a query sees before its own place; -1: all"},
    {.name = "window_right", .type = STRATA_I64,
     .offset = offsetof(strata_attention, window_right), .def = -1, .min = -1,
     .max = LONGEST, .doc = "keys that a query sees behind its own place; -1: all"},
    {.name = "causal", .type = STRATA_BOOL, .offset = offsetof(strata_attention, causal),
     .doc = "a query sees no key behind its own place"},
    {.name = "scores", .type = STRATA_ENUM, .offset = offsetof(strata_attention, scores),
     .choices = "none|raw|softcap|masked|softmax",
     .doc = "give them as the last output, at which stage"},
    {.name = "cache", .type = STRATA_BOOL, .offset = offsetof(strata_attention, cache),
     .doc = "past_k and past_v are caches with room, into which k and v are written"},
    {.name = "present", .type = STRATA_BOOL,
     .offset = offsetof(strata_attention, present),
     .doc = "give all keys and values as outputs 1 and 2, as `cache` does"},
};

#define FLOAT_MASKS                                                                      \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_BOOL_NCHW)
#define ROW(format, masks)                                                               \
    {{(format), STRATA_SAME, STRATA_SAME, (masks)},                                      \
     {STRATA_SAME},                                                                      \
     {STRATA_SAME, STRATA_SAME, STRATA_I32_NCHW | STRATA_I64_NCHW},                      \
     {0}}

static const strata_row rows[] = {
    ROW(STRATA_F32_NCHW, FLOAT_MASKS),
    ROW(STRATA_F16_NCHW, FLOAT_MASKS),
    ROW(STRATA_BF16_NCHW, FLOAT_MASKS),
    ROW(STRATA_F64_NCHW, STRATA_F64_NCHW | STRATA_BOOL_NCHW),
};
static const strata_row float_rows[] = {
    ROW(STRATA_F32_NCHW, FLOAT_MASKS),
    ROW(STRATA_F16_NCHW, FLOAT_MASKS),
    ROW(STRATA_BF16_NCHW, FLOAT_MASKS),
};

#define STRIDED (STRATA_STRIDED_IN | STRATA_STRIDED_OUT)
/* present_k and present_v may be the caches past_k and past_v. */
#define CACHES {0, 1 + ATTENTION_PAST_K, 1 + ATTENTION_PAST_V}

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRIDED, .in_place = CACHES, .name = "c",
     .rows = STRATA_ARRAY(rows), .efficiency = 0.01, .bandwidth = 0.05,
     .workspace = attention_exact_workspace, .run = attention_exact_run},
    {.id = 2, .device = STRATA_HOST, .flags = STRIDED, .in_place = CACHES, .name = "tiled",
     .rows = STRATA_ARRAY(float_rows), .efficiency = 0.5, .bandwidth = 0.5,
     .accept = accept_without_scores, .workspace = attention_tiled_workspace,
     .run = attention_tiled_run},
    {.id = 3, .device = STRATA_HOST, .flags = STRIDED, .in_place = CACHES, .name = "split",
     .rows = STRATA_ARRAY(float_rows), .efficiency = 0.2, .bandwidth = 0.7,
     .accept = attention_split_accept, .workspace = attention_split_workspace,
     .run = attention_split_run},
};

static const strata_layer attention = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Attention",
    .doc = "Means of values, weighted by the softmax of products of queries and keys.",
    .min_in = 1, .max_in = ATTENTION_INPUTS, .n_out = -1,
    .params_size = sizeof(strata_attention), .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls), .shape = attention_shape, .flops = attention_flops,
    .outputs = attention_outputs, .extension = attention_extension,
    .optional_in = ((1 << ATTENTION_INPUTS) - 1) & ~1,
};
static const strata_layer *const layers[] = {&attention};
STRATA_MODULE("core", "1.0.0", "Attention", layers)
