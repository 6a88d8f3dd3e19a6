/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN: recurrent layers of LSTM, GRU or simple cells, in one direction or both, over
 * sequences of one length or of lengths of their own. The layer's shapes and tables.
 */
#include "plugins/rnn/rnn.h"

#include <stdlib.h>

#include "plugins/common/dense.h"
#include "plugins/common/element.h"
#include "plugins/rnn/definition.h"
#include "plugins/rnn/host.h"

static const char *const ops[] = {"lstm", "gru", "tanh", "relu"};

/* ---- shapes ------------------------------------------------------------------------ */

static void dims_of(strata_tensor *t, int rank, int64_t a, int64_t b, int64_t c)
{
    t->rank = rank;
    t->dims[0] = a;
    t->dims[1] = b;
    t->dims[2] = c;
}

/* The weights' dims; rank 0: there is none, or H is not known. */
static int rnn_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_rnn *p = n->params;
    const int64_t h = rnn_hidden(p, n->weight), lines = p->layers * rnn_directions(p);
    const int64_t d = rnn_directions(p), rows = rnn_gates(p) * h;
    if (h < 1 || h > INT32_MAX || n->in[RNN_X].rank != 3)
        return STRATA_OK; /* shape says why */
    if (p->input_mode == STRATA_RNN_LINEAR)
        dims_of(&expected[RNN_W], 3, d, rows, n->in[RNN_X].dims[2]);
    if (p->layers > 1)
        dims_of(&expected[RNN_U], 3, lines - d, rows, d * h);
    dims_of(&expected[RNN_R], 3, lines, rows, h);
    dims_of(&expected[RNN_B], 2, lines, 2 * rows, 0);
    if (p->op == STRATA_RNN_LSTM)
        dims_of(&expected[RNN_P], 2, lines, 3 * h, 0);
    return STRATA_OK;
}

static int refuse_activations(const strata_node *n)
{
    const strata_rnn *p = n->params;
    const int each = rnn_functions(p), both = each * rnn_directions(p);
    int32_t kinds[2 * RNN_MOST_FUNCTIONS];
    const int given = rnn_kinds(p, kinds, 2 * RNN_MOST_FUNCTIONS);
    if (given < 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "activations: word %d is no kind of the layer Activation",
                           -given);
    if (given != 0 && given != each && given != both)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "activations names %d; %s needs %d, or as many for each of %d "
                           "directions",
                           given, ops[p->op], each, rnn_directions(p));
    const int64_t factors[] = {p->activation_alpha.n, p->activation_beta.n};
    for (int i = 0; i < 2; i++)
        if (factors[i] != 0 && factors[i] != (given ? given : each))
            return STRATA_FAIL(n, STRATA_EINVAL, "%s has %lld numbers for %d activations",
                               i ? "activation_beta" : "activation_alpha",
                               (long long)factors[i], given ? given : each);
    return STRATA_OK;
}

static int refuse_options(const strata_node *n)
{
    const strata_rnn *p = n->params;
    const int lstm = p->op == STRATA_RNN_LSTM;
    if (p->coupled && !lstm)
        return STRATA_FAIL(n, STRATA_EINVAL, "coupled = yes with op = %s; of lstm alone",
                           ops[p->op]);
    if (!lstm && n->weight[RNN_P].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "op = %s has no peepholes p; lstm has",
                           ops[p->op]);
    if (!lstm && n->n_in > RNN_C0 && n->in[RNN_C0].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "op = %s has no cell, input 3; lstm has",
                           ops[p->op]);
    if (p->input_mode == STRATA_RNN_SKIP && n->weight[RNN_W].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input_mode = skip has no input product and no weight w");
    if (p->layers == 1 && n->weight[RNN_U].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "weight u is of the layers above the first; there is one");
    return refuse_activations(n);
}

static int refuse_weights(const strata_node *n)
{
    static const char *const names[] = {"w", "u", "r", "b", "p"};
    strata_tensor want[RNN_P + 1] = {{0}};
    rnn_weight_shape(n, want);
    for (int i = 0; i <= RNN_P; i++) {
        const strata_tensor *w = &n->weight[i];
        if (w->rank == 0 && (i >= RNN_B || want[i].rank == 0))
            continue;
        if (w->rank != want[i].rank ||
            memcmp(w->dims, want[i].dims, sizeof *w->dims * (size_t)w->rank) != 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "weight %s has rank %d and %lld elements; needed is rank "
                               "%d, %lld x %lld x %lld",
                               names[i], (int)w->rank, (long long)dense_count(w),
                               (int)want[i].rank, (long long)want[i].dims[0],
                               (long long)want[i].dims[1],
                               want[i].rank > 2 ? (long long)want[i].dims[2] : 1LL);
    }
    return STRATA_OK;
}

static int refuse_inputs(const strata_node *n, int64_t batch, int64_t hidden)
{
    const strata_rnn *p = n->params;
    const strata_tensor *x = &n->in[RNN_X];
    const int64_t lines = p->layers * rnn_directions(p);
    for (int i = 1; i < n->n_in; i++) {
        const strata_tensor *t = &n->in[i];
        if (t->rank == 0)
            continue;
        if (i == RNN_LENGTHS &&
            (t->dtype != STRATA_INT32 || t->rank != 1 || t->dims[0] != batch))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "lengths are of rank %d and %lld elements; needed is an "
                               "i32 for each of %lld sequences: a Cast makes i32",
                               (int)t->rank, (long long)dense_count(t), (long long)batch);
        if (i > RNN_LENGTHS && (t->rank != 3 || t->dims[0] != lines ||
                                t->dims[1] != batch || t->dims[2] != hidden))
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "input %d, a first state, has rank %d and %lld elements; "
                               "needed is %lld x %lld x %lld",
                               i, (int)t->rank, (long long)dense_count(t),
                               (long long)lines, (long long)batch, (long long)hidden);
        if (i > RNN_LENGTHS && t->dtype != x->dtype)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "input %d, a first state, has another dtype than input 0",
                               i);
    }
    return STRATA_OK;
}

static int rnn_shape(const strata_node *n)
{
    const strata_rnn *p = n->params;
    const strata_tensor *x = &n->in[RNN_X];
    const int64_t hidden = rnn_hidden(p, n->weight);
    if (x->rank != 3)
        return STRATA_FAIL(
            n, STRATA_EINVAL, "input has rank %d; needed is rank 3: %s, features",
            (int)x->rank,
            p->layout == STRATA_RNN_BATCH ? "batch, steps" : "steps, batch");
    if (hidden < 1 || hidden > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld hidden units; give hidden, or the weight r",
                           (long long)hidden);
    const struct rnn_plan plan = rnn_plan_of(p, n->in, n->weight);
    const int64_t lines = (int64_t)plan.layers * plan.directions;
    int status;
    if (plan.steps < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "sequences of 0 steps; at least 1 is needed");
    if (plan.skip && plan.inputs != hidden)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input_mode = skip with %lld features and %lld hidden units; "
                           "they must be as many",
                           (long long)plan.inputs, (long long)hidden);
    if ((status = refuse_options(n)) || (status = refuse_weights(n)) ||
        (status = refuse_inputs(n, plan.batch, hidden)))
        return status;
    strata_tensor *y = &n->out[RNN_Y];
    dims_of(y, 3, x->dims[0], x->dims[1], plan.directions * hidden);
    if (p->split_directions) {
        const int batch_first = p->layout == STRATA_RNN_BATCH;
        y->rank = 4;
        y->dims[1] = batch_first ? plan.steps : plan.directions;
        y->dims[2] = batch_first ? plan.directions : plan.batch;
        y->dims[3] = hidden;
    }
    for (int i = RNN_HN; i < n->n_out; i++)
        dims_of(&n->out[i], 3, lines, plan.batch, hidden);
    return STRATA_OK;
}

static int rnn_outputs(const void *params)
{
    return ((const strata_rnn *)params)->op == STRATA_RNN_LSTM ? 3 : 2;
}

static double rnn_flops(const strata_node *n)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    double depth = 0;
    for (int layer = 0; layer < p.layers; layer++)
        depth +=
            (double)(p.hidden + (rnn_multiplies(&p, layer) ? rnn_depth(&p, layer) : 0));
    return 2.0 * depth * (double)p.steps * (double)p.batch * p.directions * p.gates *
           (double)p.hidden;
}

/* ---- the definition ---------------------------------------------------------------- */

static int rnn_reference(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    const int64_t elements = rnn_definition_memory(&p);
    const struct rnn_doubles v = {
        .x = in[RNN_X],
        .lengths = n->n_in > RNN_LENGTHS ? in[RNN_LENGTHS] : NULL,
        .h0 = n->n_in > RNN_H0 ? in[RNN_H0] : NULL,
        .c0 = n->n_in > RNN_C0 ? in[RNN_C0] : NULL,
        .w = weight[RNN_W],
        .u = weight[RNN_U],
        .r = weight[RNN_R],
        .b = weight[RNN_B],
        .p = weight[RNN_P],
        .y = out[RNN_Y],
        .hn = out[RNN_HN],
        .cn = p.op == STRATA_RNN_LSTM ? out[RNN_CN] : NULL,
    };
    double *memory = elements < 0 ? NULL : calloc((size_t)elements, sizeof *memory);
    if (!memory)
        return STRATA_FAIL(n, STRATA_ENOMEM, "%lld numbers between layers",
                           (long long)elements);
    rnn_definition(&p, &v, memory);
    free(memory);
    return STRATA_OK;
}

static const void *rnn_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, rnn_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- FP64 -------------------------------------------------------------------------- */

/* Working memory, the weights as FP64, and lengths. */
static size_t double_workspace(const strata_node *n)
{
    const struct rnn_plan p = rnn_plan_of(n->params, n->in, n->weight);
    int64_t elements = rnn_definition_memory(&p);
    size_t bytes;
    if (elements < 0 || __builtin_add_overflow(elements, p.batch, &elements))
        return SIZE_MAX;
    for (int i = 0; i < n->n_weights; i++)
        if (n->weight[i].rank &&
            __builtin_add_overflow(elements, dense_count(&n->weight[i]), &elements))
            return SIZE_MAX;
    return __builtin_mul_overflow((size_t)elements, sizeof(double), &bytes) ? SIZE_MAX
                                                                            : bytes;
}

static int double_run(const strata_run *r)
{
    const struct rnn_plan p = rnn_plan_of(r->params, r->in, r->weight);
    const int32_t *lengths = rnn_input(r->n_in, r->in, RNN_LENGTHS);
    const double *weight[RNN_P + 1] = {NULL};
    double *memory = r->workspace;
    int64_t *whole = r->workspace;
    for (int64_t i = 0; i < p.batch; i++)
        whole[i] = rnn_length(&p, lengths, i);
    memory += p.batch;
    for (int k = 0; k < r->n_weights; k++) {
        const int64_t count = r->weight[k].rank > 0 ? dense_count(&r->weight[k]) : 0;
        weight[k] = r->weight[k].rank > 0 ? memory : NULL;
        for (int64_t i = 0; i < count; i++)
            *memory++ = (double)((const float *)r->weight[k].data)[i];
    }
    const struct rnn_doubles v = {
        .x = r->in[RNN_X].data,
        .lengths = whole,
        .h0 = rnn_input(r->n_in, r->in, RNN_H0),
        .c0 = rnn_input(r->n_in, r->in, RNN_C0),
        .w = weight[RNN_W],
        .u = weight[RNN_U],
        .r = weight[RNN_R],
        .b = weight[RNN_B],
        .p = weight[RNN_P],
        .y = r->out[RNN_Y].data,
        .hn = r->out[RNN_HN].data,
        .cn = p.op == STRATA_RNN_LSTM ? r->out[RNN_CN].data : NULL,
    };
    rnn_definition(&p, &v, memory);
    return STRATA_OK;
}

/* ---- tables ------------------------------------------------------------------------ */

#define FIELD(name_) .name = #name_, .offset = offsetof(strata_rnn, name_)

static const strata_attr attrs[] = {
    {FIELD(op), .type = STRATA_ENUM, .choices = "lstm|gru|tanh|relu",
     .doc = "cell; tanh and relu: simple ones"},
    {FIELD(hidden), .type = STRATA_I64, .min = 0, .max = 1 << 24,
     .doc = "hidden units; 0: from the weight r"},
    {FIELD(layers), .type = STRATA_I64, .def = 1, .min = 1, .max = 1024,
     .doc = "layers, each over the outputs of the one below"},
    {FIELD(direction), .type = STRATA_ENUM, .choices = "forward|reverse|bidirectional",
     .doc = "order of the steps; reverse begins at each sequence's last"},
    {FIELD(input_mode), .type = STRATA_ENUM, .choices = "linear|skip",
     .doc = "skip: the first layer adds the input to every gate as it is"},
    {FIELD(reset_after), .type = STRATA_BOOL, .def = 1,
     .doc = "gru: the reset is applied behind the recurrent product"},
    {FIELD(layout), .type = STRATA_ENUM, .choices = "sequence|batch",
     .doc = "which dim of x and y is first: steps or batch"},
    {FIELD(clip), .type = STRATA_F64, .def = INFINITY, .min = 0, .max = INFINITY,
     .doc = "bound of what activations take, both ways; inf: none"},
    {FIELD(activations), .type = STRATA_STRING,
     .doc = "kinds of Activation: lstm of gates, candidate, cell; gru of gates, "
            "candidate; for all directions or for each; empty: sigmoid, and tanh or op"},
    {FIELD(activation_alpha), .type = STRATA_REALS,
     .doc = "alpha of each activation; inf, or empty: the kind's own"},
    {FIELD(activation_beta), .type = STRATA_REALS,
     .doc = "beta of each activation; inf, or empty: the kind's own"},
    {FIELD(coupled), .type = STRATA_BOOL, .doc = "lstm: forget gate 1 - input gate"},
    {FIELD(split_directions), .type = STRATA_BOOL,
     .doc = "y has a dim of directions, before the batch or, batch first, before the "
            "units"},
};

static const strata_weight weights[] = {
    {.name = "w", .rank = 3, .doc = "input products of layer 0: D x G*H x I"},
    {.name = "u", .rank = 3, .doc = "of the other layers: (L-1)*D x G*H x D*H"},
    {.name = "r",
     .flags = STRATA_REQUIRED,
     .rank = 3,
     .doc = "recurrent products: L*D x G*H x H"},
    {.name = "b", .rank = 2, .doc = "biases of both products: L*D x 2*G*H"},
    {.name = "p", .rank = 2, .doc = "lstm: peepholes i, o, f: L*D x 3*H"},
};

#define ROW(formats)                                                                     \
    {                                                                                    \
        {(formats), STRATA_I32_NCHW, STRATA_SAME, STRATA_SAME},                          \
        {                                                                                \
            STRATA_SAME                                                                  \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)};
static const strata_row double_rows[] = {ROW(STRATA_F64_NCHW)};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.5,
     .state_size = sizeof(struct rnn_host),
     .workspace = rnn_host_workspace,
     .setup = rnn_host_setup,
     .run = rnn_host_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c_fp64",
     .rows = STRATA_ARRAY(double_rows),
     .efficiency = 0.02,
     .workspace = double_workspace,
     .run = double_run},
};

static const strata_layer rnn = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "RNN",
    .doc = "Recurrent layers over sequences: LSTM, GRU and simple cells",
    .min_in = 1,
    .max_in = 4,
    .n_out = -1,
    .params_size = sizeof(strata_rnn),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = rnn_shape,
    .weight_shape = rnn_weight_shape,
    .flops = rnn_flops,
    .outputs = rnn_outputs,
    .extension = rnn_extension,
    .optional_in = 1 << RNN_LENGTHS | 1 << RNN_H0 | 1 << RNN_C0,
};

static const strata_layer *const layers[] = {&rnn};
STRATA_MODULE("core", "1.0.0", "RNN", layers)
