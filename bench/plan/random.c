/* SPDX-License-Identifier: Apache-2.0
 *
 *   operation    launch + max(operations / (peak * e1), bytes / (bandwidth * e2))
 *   conversion   launch + bytes / (bandwidth * e3), 0 between equal memory
 *
 * e1, e2 are drawn for each operation and format, e3 for each shape and pair of formats.
 * Most impls read and write one format on all ports; some of the convolutions and dense
 * layers write another one than they read.
 */
#include "bench/plan/random.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* The ceilings of a data-centre GPU: multiply-adds count two, FP32 without, FP16 with
 * tensor cores. */
#define FLOPS_FP32 60e12
#define FLOPS_FP16 780e12
#define BANDWIDTH 4.3e12
#define LAUNCH_NS 2500
#define COMPUTE_LEAST 0.15 /* e1 */
#define COMPUTE_MOST 0.9
#define MEMORY_LEAST 0.35 /* e2, e3 */
#define MEMORY_MOST 0.9
#define MIXED_SHARE 0.15 /* of the pairs of supported formats that have an impl */

static const struct format formats[] = {
    {STRATA_FP32, ORDER_LINEAR, 1}, {STRATA_FP32, ORDER_LAST, 1},
    {STRATA_FP16, ORDER_LINEAR, 1}, {STRATA_FP16, ORDER_LINEAR, 2},
    {STRATA_FP16, ORDER_LAST, 8},   {STRATA_FP16, ORDER_LAST, 1},
    {STRATA_FP32, ORDER_LINEAR, 8}, {STRATA_FP32, ORDER_LINEAR, 16},
};

struct generator {
    const struct planner *planner;
    const struct random_options *options;
    struct random_problem *out;
    uint64_t state;
    strata_error *err;
};

/* SplitMix64; a number on [0, 1). */
static double draw(struct generator *g)
{
    uint64_t x = g->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static double draw_between(struct generator *g, double least, double most)
{
    return least + (most - least) * draw(g);
}

/* ---- operations -------------------------------------------------------------------- */

/* Bytes of a tensor in a label's format, -1 where its rank does not have it. */
static double tensor_bytes(const struct generator *g, int tensor, int label)
{
    strata_desc d;
    int format = g->out->problem.labels[label].format;
    if (planner_desc(&d, g->planner->network, tensor, format, NULL) != STRATA_OK)
        return -1;
    return (double)strata_desc_bytes(&d);
}

static double ports_bytes(const struct generator *g, const int *tensors, int n, int label)
{
    double total = 0;
    for (int i = 0; i < n; i++) {
        double bytes = tensor_bytes(g, tensors[i], label);
        if (bytes < 0)
            return -1;
        total += bytes;
    }
    return total;
}

/* Operations and weight elements of a node's layer, by the layer's own ports: a node may
 * read fewer tensors, where a growing concatenation was made a running one. */
static int count_work(const struct generator *g, const struct planner_node *n,
                      double *flops, double *weights)
{
    const struct network_layer *layer = n->layer;
    const strata_layer *type = &layer->type->layer;
    size_t ports =
        (size_t)(layer->n_inputs + layer->n_outputs) + layer->type->n_weights;
    strata_node node;
    strata_tensor *t = zalloc(ports, sizeof *t, "a node", g->err);
    if (!t)
        return STRATA_ENOMEM;
    strata_tensor *out = t + layer->n_inputs, *weight = out + layer->n_outputs;
    network_node(g->planner->network, layer, &node, t, out, weight, g->err);
    *flops = type->flops ? type->flops(&node) : 0;
    *weights = 0;
    for (int i = 0; i < layer->n_outputs && !type->flops; i++)
        *flops += (double)network_elements(out[i].dims, out[i].rank);
    for (size_t w = 0; w < layer->type->n_weights; w++)
        if (layer->weights[w].source != WEIGHT_ABSENT)
            *weights +=
                (double)network_elements(layer->weights[w].dims, layer->weights[w].rank);
    free(t);
    return STRATA_OK;
}

static int64_t run_cost(struct generator *g, double flops, double bytes, int dtype)
{
    double peak = dtype == STRATA_FP16 ? FLOPS_FP16 : FLOPS_FP32;
    double compute = flops / (peak * draw_between(g, COMPUTE_LEAST, COMPUTE_MOST));
    double memory = bytes / (BANDWIDTH * draw_between(g, MEMORY_LEAST, MEMORY_MOST));
    double ns = LAUNCH_NS + 1e9 * (compute > memory ? compute : memory);
    return (int64_t)(ns * PLAN_UNIT_PER_NS);
}

static bool mixes_formats(const struct planner_node *n)
{
    const char *name = n->layer->type->layer.name;
    return strcmp(name, "Convolution") == 0 || strcmp(name, "FullyConnected") == 0;
}

/* The impl that reads `in` and writes `out`, if the draw gives one. All draws are made
 * whether it does or not. */
static int add_choice(struct generator *g, struct plan_op *op,
                      const struct planner_node *n, const double *work, int in, int out,
                      bool supported)
{
    int dtype = format_at(g->out->problem.labels[in].format)->dtype;
    double read = ports_bytes(g, n->in, n->n_in, in);
    double written = ports_bytes(g, n->out, n->n_out, out);
    double bytes = read + written + work[1] * (double)strata_dtype_size(dtype);
    int64_t cost = run_cost(g, work[0], bytes, dtype);
    if (!supported || read < 0 || written < 0)
        return STRATA_OK;
    struct plan_choice *choice = &op->choices[op->n_choices++];
    *choice = (struct plan_choice){.impl = in, .row = out, .cost = cost};
    memset(choice->in, in, sizeof choice->in);
    memset(choice->out, out, sizeof choice->out);
    return STRATA_OK;
}

static int make_choices(struct generator *g, struct plan_op *op,
                        const struct planner_node *n)
{
    bool supported[ARRAY_LENGTH(formats)];
    double work[2], share = g->options->support_percent / 100.0;
    int labels = g->options->n_labels, status = count_work(g, n, &work[0], &work[1]);
    op->choices =
        zalloc((size_t)(labels * labels), sizeof *op->choices, "choices", g->err);
    if (status != STRATA_OK || !op->choices)
        return STRATA_ENOMEM;
    for (int l = 0; l < labels; l++)
        supported[l] = draw(g) < share || l == 0;
    for (int in = 0; in < labels; in++)
        for (int out = 0; out < labels; out++) {
            bool mixed = mixes_formats(n) && draw(g) < MIXED_SHARE;
            status = add_choice(g, op, n, work, in, out,
                                (in == out || mixed) && supported[in] && supported[out]);
            if (status != STRATA_OK)
                return status;
        }
    return STRATA_OK;
}

/* A network input or output is bound as fp32:nchw, label 0. */
static int make_fixed(struct generator *g, struct plan_op *op, const char *name)
{
    op->name = name;
    op->n_choices = 1;
    op->choices = zalloc(1, sizeof *op->choices, "a choice", g->err);
    return op->choices ? STRATA_OK : STRATA_ENOMEM;
}

/* ---- the graph ----------------------------------------------------------------------
 */

static const int *index_tensors(struct generator *g, int **next, const int *tensors,
                                int n)
{
    struct random_problem *r = g->out;
    int *first = *next;
    for (int i = 0; i < n; i++) {
        int t = tensors[i];
        if (r->index[t] < 0) {
            r->index[t] = (int)r->problem.n_tensors;
            r->tensors[r->problem.n_tensors] = t;
            r->problem.tensors[r->problem.n_tensors++].name =
                g->planner->network->tensors[t].name;
        }
        first[i] = r->index[t];
    }
    *next += n;
    return first;
}

static int make_operations(struct generator *g)
{
    const strata_network *net = g->planner->network;
    struct plan_op *op = g->out->problem.ops;
    int *next = g->out->ports, status = STRATA_OK;
    for (size_t i = 0; i < net->n_inputs && status == STRATA_OK; i++, op++) {
        op->n_out = 1;
        op->out = index_tensors(g, &next, &net->inputs[i].tensor, 1);
        status = make_fixed(g, op, net->inputs[i].name);
    }
    for (size_t i = 0; i < g->planner->n_nodes && status == STRATA_OK; i++, op++) {
        const struct planner_node *n = &g->planner->nodes[i];
        op->name = n->layer->name;
        op->n_in = n->n_in;
        op->n_out = n->n_out;
        op->in = index_tensors(g, &next, n->in, n->n_in);
        op->out = index_tensors(g, &next, n->out, n->n_out);
        status = make_choices(g, op, n);
    }
    for (size_t i = 0; i < net->n_outputs && status == STRATA_OK; i++, op++) {
        op->n_in = 1;
        op->in = index_tensors(g, &next, &net->outputs[i].tensor, 1);
        status = make_fixed(g, op, net->outputs[i].name);
    }
    return status;
}

/* ---- conversions ---------------------------------------------------------------------
 */

static int64_t convert_cost(struct generator *g, int tensor, int from, int to)
{
    strata_desc a, b;
    const struct plan_label *labels = g->out->problem.labels;
    double efficiency = draw_between(g, MEMORY_LEAST, MEMORY_MOST);
    if (planner_desc(&a, g->planner->network, tensor, labels[from].format, NULL) !=
            STRATA_OK ||
        planner_desc(&b, g->planner->network, tensor, labels[to].format, NULL) !=
            STRATA_OK)
        return PLAN_INFINITE;
    if (labels[from].precision == labels[to].precision && strata_desc_equal(&a, &b))
        return 0;
    double bytes = (double)strata_desc_bytes(&a) + (double)strata_desc_bytes(&b);
    double ns = LAUNCH_NS + 1e9 * bytes / (BANDWIDTH * efficiency);
    return (int64_t)(ns * PLAN_UNIT_PER_NS);
}

static bool same_shape(const strata_network *net, int a, int b)
{
    const struct network_tensor *x = &net->tensors[a], *y = &net->tensors[b];
    return x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

static int make_conversions(struct generator *g)
{
    struct random_problem *r = g->out;
    struct plan_problem *p = &r->problem;
    for (size_t i = 0; i < p->n_tensors; i++) {
        for (size_t j = 0; j < i && !p->tensors[i].conversion; j++)
            if (same_shape(g->planner->network, r->tensors[i], r->tensors[j]))
                p->tensors[i].conversion = p->tensors[j].conversion;
        if (p->tensors[i].conversion)
            continue;
        int n = p->n_labels;
        int64_t *matrix = zalloc((size_t)(n * n), sizeof *matrix, "costs", g->err);
        if (!matrix)
            return STRATA_ENOMEM;
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                matrix[a * n + b] = a == b ? 0 : convert_cost(g, r->tensors[i], a, b);
        p->tensors[i].conversion = r->matrices[r->n_matrices++] = matrix;
    }
    return STRATA_OK;
}

static int allocate(const struct generator *g)
{
    const strata_network *net = g->planner->network;
    struct random_problem *r = g->out;
    size_t ports = net->n_inputs + net->n_outputs;
    for (size_t i = 0; i < g->planner->n_nodes; i++)
        ports += (size_t)(g->planner->nodes[i].n_in + g->planner->nodes[i].n_out);
    r->problem.n_ops = net->n_inputs + g->planner->n_nodes + net->n_outputs;
    r->problem.ops = zalloc(r->problem.n_ops, sizeof *r->problem.ops, "ops", g->err);
    r->problem.tensors =
        zalloc(net->n_tensors, sizeof *r->problem.tensors, "tensors", g->err);
    r->tensors = zalloc(net->n_tensors, sizeof *r->tensors, "tensors", g->err);
    r->index = zalloc(net->n_tensors, sizeof *r->index, "tensors", g->err);
    r->matrices = zalloc(net->n_tensors, sizeof *r->matrices, "tensors", g->err);
    r->ports = zalloc(ports, sizeof *r->ports, "ports", g->err);
    r->readers = zalloc(ports, sizeof *r->readers, "ports", g->err);
    if (!r->problem.ops || !r->problem.tensors || !r->tensors || !r->index ||
        !r->matrices || !r->ports || !r->readers)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors; t++)
        r->index[t] = -1;
    return STRATA_OK;
}

int random_problem_make(struct random_problem *out, const struct planner *planner,
                        const struct random_options *options, strata_error *err)
{
    struct generator g = {.planner = planner,
                          .options = options,
                          .out = out,
                          .state = options->seed,
                          .err = err};
    *out = (struct random_problem){.problem = {.n_labels = options->n_labels}};
    for (int l = 0; l < options->n_labels; l++)
        out->problem.labels[l] = (struct plan_label){
            format_index(formats[l]), STRATA_PAD_ZERO, dtype_precision(formats[l].dtype)};
    int status = allocate(&g);
    if (status == STRATA_OK)
        status = make_operations(&g);
    if (status == STRATA_OK) {
        plan_connect(&out->problem, out->readers);
        status = make_conversions(&g);
    }
    if (status != STRATA_OK)
        random_problem_free(out);
    return status;
}

void random_problem_free(struct random_problem *r)
{
    for (size_t op = 0; r->problem.ops && op < r->problem.n_ops; op++)
        free(r->problem.ops[op].choices);
    for (size_t i = 0; i < r->n_matrices; i++)
        free(r->matrices[i]);
    free(r->problem.ops);
    free(r->problem.tensors);
    free(r->tensors);
    free(r->index);
    free(r->matrices);
    free(r->ports);
    free(r->readers);
    *r = (struct random_problem){0};
}
