/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes to a plan problem: candidates become choices over labels, network inputs and
 * outputs operations with one choice.
 */
#include "planner/record.h"

#include <stdlib.h>
#include <string.h>

/* ---- labels -------------------------------------------------------------------- */

/* Index of a label, made at need; -1 where there are PLAN_MAX_LABELS already. */
static int label_of(struct plan_problem *p, int format, int pad, int stage)
{
    for (int i = 0; i < p->n_labels; i++)
        if (p->labels[i].format == format && p->labels[i].pad == pad &&
            p->labels[i].stage == stage)
            return i;
    if (p->n_labels == PLAN_MAX_LABELS)
        return -1;
    p->labels[p->n_labels] = (struct plan_label){
        .format = format,
        .pad = pad,
        .precision = stage == PLAN_NONE ? 0 : dtype_precision(format_at(format)->dtype),
        .range = stage == PLAN_NONE ? 0 : dtype_range(format_at(format)->dtype),
        .stage = stage};
    return p->n_labels++;
}

static int label_of_none(struct plan_problem *p)
{
    return label_of(p, 0, STRATA_PAD_ANY, PLAN_NONE);
}

/* As the application gives it. */
static int input_pad(const strata_network *net, const struct network_input *in)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    return in->pads_any && t->rank > 1 && format_has_pads(in->format, t->dims[1])
               ? STRATA_PAD_ANY
               : STRATA_PAD_ZERO;
}

static bool any_dirty(const struct planner *planner)
{
    const strata_network *net = planner->network;
    if (planner->record) /* what other modules are here does not matter */
        return planner->record->any_dirty;
    for (size_t i = 0; i < net->n_inputs; i++)
        if (input_pad(net, &net->inputs[i]) == STRATA_PAD_ANY)
            return true;
    for (size_t i = 0; i < planner->n_nodes; i++)
        if (planner_leaves_dirty(planner, &planner->nodes[i]))
            return true;
    return false;
}

static int clamped(int port, int ports)
{
    return port < ports ? port : ports - 1;
}

/* Of a tensor that may be read where it lies; plain where it cannot lie elsewhere, or
 * where labels ran out. */
static int label_anywhere(struct planner_model *m, int tensor, int format, int pad)
{
    const int label = m->anywhere[tensor] >> format & 1
                          ? label_of(&m->problem, format, pad, PLAN_ANYWHERE)
                          : -1;
    return label >= 0 ? label : label_of(&m->problem, format, pad, PLAN_PLAIN);
}

/* Of a slice's input: what is one piece of it asks for one. */
static int slice_label(struct planner_model *m, const struct planner_node *n, int format)
{
    bool apart = true;
    for (int i = 0; i < n->n_out; i++)
        apart = apart && m->cut[n->out[i]] >> format & 1;
    return apart ? label_anywhere(m, n->in[0], format, STRATA_PAD_ZERO)
                 : label_of(&m->problem, format, STRATA_PAD_ZERO, PLAN_PLAIN);
}

/* So many layers of a tail computed, as it is to end. */
static int stage_of(const struct planner_candidate *c, size_t fused)
{
    return !c->homed ? (int)fused : fused ? PLAN_HOMING + (int)fused : PLAN_HOME;
}

/* Inside of a group's pass. */
static int pass_of(const struct planner_candidate *c, bool farther)
{
    return (c->homed ? PLAN_HOMING : 0) + (farther ? PLAN_FARTHER : PLAN_INSIDE);
}

/* Label of a tensor that an impl reads in a format. */
static int impl_label(struct planner_model *m, const struct planner *planner,
                      const struct planner_candidate *c, int tensor, int format,
                      bool anywhere)
{
    const int pad =
        planner_port_pad(m, planner->network, tensor, format, &c->impl->impl, false);
    return anywhere ? label_anywhere(m, tensor, format, pad)
                    : label_of(&m->problem, format, pad, PLAN_PLAIN);
}

/* The same, at a port of the node it runs. */
static int read_label(struct planner_model *m, const struct planner *planner,
                      const struct planner_candidate *c, int port)
{
    return impl_label(m, planner, c, planner_run_node(planner, c)->in[port],
                      c->in_formats[clamped(port, PLAN_MAX_PORTS)], c->anywhere);
}

/* Of what a group reads beyond the first layer's inputs, counted from there. */
static int group_label(struct planner_model *m, const struct planner *planner,
                       const struct planner_candidate *c, int more)
{
    const struct planner_node *n = &planner->nodes[c->node];
    const struct planner_group *group = planner_group_of(n, c->kind);
    const int port = n->group->instead ? more : n->n_in + more;
    if (!group || more < 0 || port >= group->node.n_in)
        return label_of_none(&m->problem);
    return read_label(m, planner, c, port);
}

/* Whether a tensor is made by a node that comes before another in its chain. */
static bool is_within(const struct planner *planner, int node, int tensor)
{
    for (int h = planner->nodes[node].previous; h >= 0; h = planner->nodes[h].previous)
        if (planner->nodes[h].out[0] == tensor)
            return true;
    return false;
}

/* Label of an input. After the layer's own come the residual, where a tail holds a sum,
 * and what the group that begins here reads. */
static int in_label(struct planner_model *m, const struct planner *planner,
                    const struct planner_candidate *c, int port)
{
    struct plan_problem *p = &m->problem;
    const struct planner_node *n = &planner->nodes[c->node];
    const struct planner_group *group = planner_group_of(n, c->kind);
    const int sums = n->residual >= 0;
    if (n->group && port >= n->n_in + sums)
        return group_label(m, planner, c, port - n->n_in - sums);
    if (port >= n->n_in && sums)
        return planner_adds(planner, c) ? impl_label(m, planner, c, n->residual,
                                                     c->out_formats[0], c->adds_anywhere)
                                        : label_of_none(p);
    port = clamped(port, n->n_in);
    if (group && (group->instead || port >= group->node.n_in))
        return label_of_none(p); /* the layer it is does without */
    switch (c->kind) {
    case CANDIDATE_UNREAD:
        return label_of_none(p);
    case CANDIDATE_ABSORBED:
        if (c->grouped)
            return is_within(planner, c->node, n->in[port])
                       ? label_of(p, c->in_formats[0], c->pad, pass_of(c, c->farther))
                       : label_of_none(p);
        return port == n->chain_port
                   ? label_of(p, c->in_formats[port], c->pad, stage_of(c, c->fused + 1))
                   : label_of_none(p);
    case CANDIDATE_JOIN:
        return label_of(p, c->in_formats[0], STRATA_PAD_ZERO, PLAN_HOME);
    case CANDIDATE_ALIAS:
        return slice_label(m, n, c->in_formats[0]);
    default:
        break;
    }
    return read_label(m, planner, c, port);
}

static int out_label(struct planner_model *m, const struct planner *planner,
                     const struct planner_candidate *c, int port)
{
    const struct planner_node *n = planner_run_node(planner, c);
    if (c->kind == CANDIDATE_UNREAD)
        return label_of_none(&m->problem);
    int format = c->out_formats[clamped(port, PLAN_MAX_PORTS)], pad = c->pad;
    const struct planner_group *group =
        planner_group_of(&planner->nodes[c->node], c->kind);
    const bool inside = group ? group->members > 1 : c->grouped && c->fused > 0;
    const bool farther = group ? group->farther : c->farther;
    int stage = inside ? pass_of(c, farther) : stage_of(c, c->fused);
    if (c->kind == CANDIDATE_ALIAS &&
        m->cut[n->out[clamped(port, n->n_out)]] >> format & 1)
        stage = PLAN_CUT;
    if (planner_runs(c))
        pad = planner_port_pad(
            m, planner->network,
            planner_output(planner, n, c->fused, clamped(port, n->n_out)), format,
            &c->impl->impl, true);
    return label_of(&m->problem, format, pad, stage);
}

/* False if the labels ran out; plain ones never do. */
static bool label_choice(struct planner_model *m, const struct planner *planner,
                         const struct planner_candidate *c, struct plan_choice *choice)
{
    const struct planner_node *n = &planner->nodes[c->node];
    for (int i = 0; i < PLAN_MAX_PORTS; i++) {
        int in = n->n_in ? in_label(m, planner, c, i) : 0;
        int out = n->n_out ? out_label(m, planner, c, i) : 0;
        if (in < 0 || out < 0)
            return false;
        choice->in[i] = (uint8_t)in;
        choice->out[i] = (uint8_t)out;
    }
    return true;
}

/* The formats of the table in two pad states and PLAN_NONE fit; stages take what is
 * left. */
static void label_plain(struct planner_model *m, const struct planner *planner)
{
    const strata_network *net = planner->network;
    struct plan_choice unused;
    label_of_none(&m->problem);
    for (size_t i = 0; i < net->n_inputs; i++)
        label_of(&m->problem, format_index(net->inputs[i].format),
                 input_pad(net, &net->inputs[i]), PLAN_PLAIN);
    for (size_t i = 0; i < net->n_outputs; i++)
        label_of(&m->problem, format_index(net->outputs[i].format), STRATA_PAD_ZERO,
                 PLAN_PLAIN);
    for (size_t i = 0; i < m->n_candidates; i++) {
        const struct planner_candidate *c = &m->candidates[i];
        if (c->kind == CANDIDATE_RUN && !c->reason && c->fused == 0)
            label_choice(m, planner, c, &unused);
    }
}

/* Labels that a file's conversions pass through. */
static void label_stored(struct planner_model *m, const struct record *r)
{
    for (size_t i = 0; r && i < r->n_conversions; i++) {
        const struct plan_label *ends[] = {&r->conversions[i].from,
                                           &r->conversions[i].to};
        for (int k = 0; k < 2; k++)
            label_of(&m->problem, ends[k]->format, ends[k]->pad, ends[k]->stage);
    }
}

/* ---- operations and tensors ---------------------------------------------------- */

static int make_choices(struct planner_model *m, const struct planner *planner,
                        struct plan_op *op, int node, strata_error *err)
{
    size_t capacity = 0;
    for (size_t i = m->first[node]; i < m->first[node + 1]; i++) {
        const struct planner_candidate *c = &m->candidates[i];
        if (c->reason)
            continue;
        int status =
            grow(&op->choices, &capacity, op->n_choices, sizeof *op->choices, err);
        if (status != STRATA_OK)
            return status;
        struct plan_choice *choice = &op->choices[op->n_choices];
        choice->impl = (int)i;
        choice->row = c->row;
        choice->cost = c->cost;
        op->n_choices += label_choice(m, planner, c, choice);
    }
    return STRATA_OK;
}

/* Network inputs and outputs: operations with one choice, the bound format. */
static int make_fixed(struct planner_model *m, struct plan_op *op, struct format format,
                      int pad, strata_error *err)
{
    if (!(op->choices = zalloc(1, sizeof *op->choices, "a choice", err)))
        return STRATA_ENOMEM;
    op->n_choices = 1;
    op->choices->impl = op->choices->row = -1;
    int label = label_of(&m->problem, format_index(format), pad, PLAN_PLAIN);
    memset(op->choices->in, label, sizeof op->choices->in);
    memset(op->choices->out, label, sizeof op->choices->out);
    return STRATA_OK;
}

static int index_tensor(struct planner_model *m, const strata_network *net, int tensor)
{
    if (m->index_of[tensor] < 0) {
        m->index_of[tensor] = (int)m->problem.n_tensors;
        m->tensor_of[m->problem.n_tensors] = tensor;
        m->problem.tensors[m->problem.n_tensors++].name = net->tensors[tensor].name;
    }
    return m->index_of[tensor];
}

static int *index_tensors(struct planner_model *m, const strata_network *net, int **next,
                          const int *tensors, int n)
{
    int *first = *next;
    for (int i = 0; i < n; i++)
        first[i] = index_tensor(m, net, tensors[i]);
    *next += n;
    return first;
}

static int make_operations(struct planner *planner, struct planner_model *m,
                           strata_error *err)
{
    const strata_network *net = planner->network;
    struct plan_op *op = m->problem.ops;
    int *next = m->ports;
    int status = STRATA_OK;
    for (size_t i = 0; i < net->n_inputs && status == STRATA_OK; i++, op++) {
        op->name = net->inputs[i].name;
        op->n_out = 1;
        op->out = index_tensors(m, net, &next, &net->inputs[i].tensor, 1);
        status = make_fixed(m, op, net->inputs[i].format, input_pad(net, &net->inputs[i]),
                            err);
    }
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++, op++) {
        const struct planner_node *n = &planner->nodes[i];
        op->name = n->layer->name;
        op->n_in = n->n_in + (n->residual >= 0);
        const int more = n->group ? planner_group_more(n) : 0;
        op->n_out = n->n_out;
        op->in = index_tensors(m, net, &next, n->in, n->n_in);
        if (n->residual >= 0)
            index_tensors(m, net, &next, &n->residual, 1);
        if (more > 0)
            index_tensors(
                m, net, &next,
                planner_widest(n)->node.in + planner_widest(n)->node.n_in - more, more);
        op->n_in += more;
        op->out = index_tensors(m, net, &next, n->out, n->n_out);
        status = make_choices(m, planner, op, (int)i, err);
    }
    for (size_t i = 0; i < net->n_outputs && status == STRATA_OK; i++, op++) {
        op->name = net->outputs[i].name;
        op->n_in = 1;
        op->in = index_tensors(m, net, &next, &net->outputs[i].tensor, 1);
        status = make_fixed(m, op, net->outputs[i].format, STRATA_PAD_ZERO, err);
    }
    return status;
}

static int allocate(const struct planner *planner, struct planner_model *m,
                    strata_error *err)
{
    const strata_network *net = planner->network;
    size_t n_ops = net->n_inputs + planner->n_nodes + net->n_outputs,
           ports = net->n_inputs;
    for (size_t i = 0; i < planner->n_nodes; i++)
        ports += (size_t)(planner->nodes[i].n_in + planner->nodes[i].n_out +
                          1); /* a residual */
    for (size_t i = 0; i < planner->n_nodes; i++)
        if (planner->nodes[i].group)
            ports += PLAN_MAX_PORTS;
    ports += net->n_outputs;
    m->problem.n_ops = n_ops;
    m->problem.ops = zalloc(n_ops, sizeof *m->problem.ops, "the plan", err);
    m->problem.tensors =
        zalloc(net->n_tensors, sizeof *m->problem.tensors, "the plan", err);
    m->tensor_of = zalloc(net->n_tensors, sizeof *m->tensor_of, "the plan", err);
    m->index_of = zalloc(net->n_tensors, sizeof *m->index_of, "the plan", err);
    m->home = zalloc(net->n_tensors, sizeof *m->home, "the plan", err);
    m->pitched = zalloc(net->n_tensors, sizeof *m->pitched, "the plan", err);
    m->cut = zalloc(net->n_tensors, sizeof *m->cut, "the plan", err);
    m->anywhere = zalloc(net->n_tensors, sizeof *m->anywhere, "the plan", err);
    m->matrices = zalloc(net->n_tensors, sizeof *m->matrices, "the plan", err);
    m->ports = zalloc(ports, sizeof *m->ports, "the plan", err);
    m->first = zalloc(planner->n_nodes + 1, sizeof *m->first, "the plan", err);
    m->readers = zalloc(ports, sizeof *m->readers, "the plan", err);
    if (!m->problem.ops || !m->problem.tensors || !m->tensor_of || !m->index_of ||
        !m->home || !m->pitched || !m->cut || !m->anywhere || !m->matrices || !m->first ||
        !m->ports || !m->readers)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors; t++)
        m->index_of[t] = m->home[t] = -1;
    m->any_dirty = any_dirty(planner);
    return STRATA_OK;
}

int planner_make_model(struct planner *planner, strata_error *err)
{
    struct planner_model *m = planner->model = zalloc(1, sizeof *m, "the plan", err);
    int status = m ? allocate(planner, m, err) : STRATA_ENOMEM;
    if (!m)
        return status;
    if (status == STRATA_OK)
        planner_find_homes(planner, m);
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++)
        status = planner_find_candidates(planner, m, (int)i, err);
    if (status == STRATA_OK)
        status = planner_prune_claims(planner, m, err);
    if (status == STRATA_OK)
        status = planner_prune_homes(planner, m, err);
    if (status == STRATA_OK) {
        label_plain(m, planner);
        label_stored(m, planner->record);
        status = make_operations(planner, m, err);
    }
    if (status != STRATA_OK)
        return status;
    plan_connect(&m->problem, m->readers);
    return planner_make_conversions(planner, m, err);
}

void planner_free_model(struct planner_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_candidates; i++)
        free(m->candidates[i].reason);
    for (size_t i = 0; m->problem.ops && i < m->problem.n_ops; i++)
        free(m->problem.ops[i].choices);
    for (size_t i = 0; i < m->n_matrices; i++)
        free(m->matrices[i]);
    free(m->candidates);
    free(m->first);
    free(m->problem.ops);
    free(m->problem.tensors);
    free(m->tensor_of);
    free(m->index_of);
    free(m->home);
    free(m->pitched);
    free(m->cut);
    free(m->anywhere);
    free(m->matrices);
    free(m->ports);
    free(m->readers);
    free(m);
}
