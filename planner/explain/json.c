/* SPDX-License-Identifier: Apache-2.0
 *
 * The report as JSON, complete enough to be kept as a plan and compared with another:
 * decisions, reasons, and every cost that the planner could have chosen by. Costs are
 * integers in 1/16 ns; `us` beside one is the same in microseconds.
 */
#include "planner/explain/explain.h"
#include "io/json.h"
#include "planner/merge/merge.h"
#include "planner/mixed/mixed.h"
#include "planner/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static json_t *us(int64_t cost)
{
    return json_real(explain_microseconds(cost));
}

/* Takes the text. */
static json_t *owned_text(char *text)
{
    json_t *j = text ? json_string(text) : NULL;
    free(text);
    return j;
}

static json_t *label(const struct planner *planner, int tensor, int l)
{
    char name[2 * FORMAT_NAME_SIZE];
    explain_label(name, sizeof name, planner, tensor, l);
    return json_string(name);
}

static json_t *labels(const struct planner *planner, int tensor, uint64_t mask)
{
    json_t *list = json_array();
    for (int l = 0; l < planner->model->problem.n_labels; l++)
        if (mask & UINT64_C(1) << l)
            list = json_add(list, label(planner, tensor, l));
    return list;
}

static json_t *shape(const struct network_tensor *t)
{
    json_t *dims = json_array();
    for (int d = 0; d < t->rank; d++)
        dims = json_add(dims, json_integer(t->dims[d]));
    return dims;
}

static const struct network_tensor *tensor_at(const struct planner *planner, int tensor)
{
    return &planner->network->tensors[planner->model->tensor_of[tensor]];
}

/* Labels of a choice's ports. */
static json_t *ports(const struct planner *planner, const struct plan_op *o,
                     const struct plan_choice *c, bool output)
{
    json_t *list = json_array();
    for (int i = 0; i < (output ? o->n_out : o->n_in); i++)
        list = json_add(list, label(planner, output ? o->out[i] : o->in[i],
                                    output ? plan_out_label(c, i) : plan_in_label(c, i)));
    return list;
}

static json_t *choice(const struct planner *planner, int op, size_t k)
{
    const struct plan_op *o = &planner->model->problem.ops[op];
    const struct plan_choice *c = &o->choices[k];
    return json_pack("{s:s, s:i, s:I, s:o, s:o, s:I, s:o}", "impl",
                     explain_impl(planner, c), "row", c->row, "fused",
                     (json_int_t)explain_fused(planner, c), "reads",
                     ports(planner, o, c, false), "writes", ports(planner, o, c, true),
                     "cost", (json_int_t)c->cost, "us", us(c->cost));
}

/* ---- sections --------------------------------------------------------------------- */

/* The node that runs a candidate; NULL: it needs none. */
static const struct execution_node *find_node(const struct execution *x, size_t candidate)
{
    for (size_t i = 0; i < x->n_nodes; i++)
        if (x->nodes[i].candidate == candidate)
            return &x->nodes[i];
    return NULL;
}

static json_t *node_entry(const struct planner *planner, const struct execution *x,
                          int op)
{
    const struct plan_op *o = &planner->model->problem.ops[op];
    const struct plan_choice *c =
        plan_chosen(&planner->model->problem, planner->plan->choices, op);
    const struct network_layer *layer =
        &planner->network->layers[planner->model->candidates[c->impl].node];
    const struct execution_node *n = find_node(x, (size_t)c->impl);
    json_t *j = choice(planner, op, planner->plan->choices[op]);
    json_t *dims = o->n_out ? shape(tensor_at(planner, o->out[0])) : json_array();
    j = json_put(j, "name", json_string(o->name));
    j = json_put(j, "layer", json_string(layer->type->layer.name));
    j = json_put(j, "shape", dims);
    j = json_put(j, "computes", json_string(n ? n->name : layer->name));
    j = json_put(j, "workspace", json_integer(n ? (json_int_t)n->workspace : 0));
    j = json_put(j, "choices", json_integer((json_int_t)o->n_choices));
    return j;
}

static json_t *nodes(const struct planner *planner, const struct execution *x)
{
    const struct plan_problem *p = &planner->model->problem;
    json_t *list = json_array();
    for (size_t op = 0; op < p->n_ops; op++)
        if (plan_chosen(p, planner->plan->choices, (int)op)->impl >= 0)
            list = json_add(list, node_entry(planner, x, (int)op));
    return list;
}

/* Formats that a tensor is in, one after another: its first value, and the next ones. */
static json_t *materialised(const struct execution *x, int value, const int *next)
{
    json_t *list = json_array();
    for (; value >= 0; value = next[value]) {
        const struct execution_value *v = &x->values[value];
        list = json_add(
            list, json_pack("{s:s, s:s, s:I, s:b}", "format",
                            format_mask_name(UINT64_C(1) << v->format, v->desc.rank),
                            "pads", v->pad == STRATA_PAD_ANY ? "any" : "zero", "bytes",
                            (json_int_t)v->bytes, "own_memory", v->alias < 0));
    }
    return list;
}

static json_t *wanted(const struct planner *planner, const struct plan_tensor *t,
                      int tensor)
{
    const struct plan_problem *p = &planner->model->problem;
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_reader *r = &t->readers[i];
        const struct plan_choice *c = plan_chosen(p, planner->plan->choices, r->op);
        list =
            json_add(list, json_pack("{s:s, s:i, s:b, s:o}", "by", p->ops[r->op].name,
                                     "port", r->port, "output", c->impl < 0, "format",
                                     label(planner, tensor, plan_in_label(c, r->port))));
    }
    return list;
}

/* The values of each tensor of the network as lists; -1 ends one. */
static void list_values(const struct execution *x, int *first, size_t n_tensors,
                        int *next)
{
    memset(first, -1, n_tensors * sizeof *first);
    for (size_t v = x->n_values; v-- > 0;) {
        next[v] = first[x->values[v].tensor];
        first[x->values[v].tensor] = (int)v;
    }
}

static json_t *list_tensors(const struct planner *planner, const struct execution *x,
                            const int *first, const int *next)
{
    const struct plan_problem *p = &planner->model->problem;
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct plan_tensor *t = &p->tensors[i];
        const struct plan_choice *c = plan_chosen(p, planner->plan->choices, t->producer);
        list = json_add(
            list,
            json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o}", "name", t->name, "shape",
                      shape(tensor_at(planner, (int)i)), "by", p->ops[t->producer].name,
                      "impl", explain_impl(planner, c), "produced",
                      label(planner, (int)i, plan_out_label(c, t->port)), "materialised",
                      materialised(x, first[planner->model->tensor_of[i]], next),
                      "wanted", wanted(planner, t, (int)i)));
    }
    return list;
}

/* NULL for want of memory, as jansson has it. */
static json_t *tensors(const struct planner *planner, const struct execution *x)
{
    size_t n = planner->network->n_tensors;
    int *first = zalloc(n, sizeof *first, "a report", NULL);
    int *next = zalloc(x->n_values, sizeof *next, "a report", NULL);
    json_t *list = NULL;
    if (first && next) {
        list_values(x, first, n, next);
        list = list_tensors(planner, x, first, next);
    }
    free(first);
    free(next);
    return list;
}

static json_t *changes(const struct planner *planner, const struct explain_reformat *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_changes; i++)
        list = json_add(
            list, json_pack("{s:s, s:o, s:o}", "name",
                            planner->model->problem.ops[r->changes[i].op].name, "from",
                            choice(planner, r->changes[i].op, r->changes[i].before), "to",
                            choice(planner, r->changes[i].op, r->changes[i].after)));
    return list;
}

static json_t *forbidding(const struct planner *planner, const struct explain_reformat *r)
{
    if (!r->asked)
        return json_null();
    if (!r->avoidable)
        return json_pack("{s:b}", "possible", 0);
    return json_pack("{s:b, s:I, s:o, s:I, s:o}", "possible", 1, "cost",
                     (json_int_t)r->penalty, "us", us(r->penalty), "more_reformats",
                     (json_int_t)r->reformats, "changes", changes(planner, r));
}

static json_t *remedy(const struct planner *planner, const struct explain_reformat *r)
{
    const struct explain_remedy *m = &r->remedy;
    if (m->op < 0)
        return json_null();
    return json_pack("{s:s, s:i, s:s, s:b, s:o, s:I, s:I, s:o, s:I}", "name",
                     planner->model->problem.ops[m->op].name, "operations", m->n_ops,
                     "side", m->output ? "writes" : "reads", "all_ports", m->all_ports,
                     "format", label(planner, r->step.tensor, m->label), "at_most",
                     (json_int_t)m->cost, "gain", (json_int_t)m->gain, "us", us(m->gain),
                     "fewer_reformats", (json_int_t)m->reformats);
}

static json_t *reformat(const struct planner *planner, const struct plan_step *s,
                        const struct explain_reformat *r)
{
    const char *name = planner->model->problem.tensors[s->tensor].name;
    json_t *j = json_pack(
        "{s:s, s:o, s:o, s:o, s:s, s:I, s:o}", "tensor", name, "from",
        label(planner, s->tensor, s->from), "to", label(planner, s->tensor, s->to), "for",
        owned_text(explain_readers(planner, s->tensor, s->to)), "kind",
        s->cost ? "reformat" : "relabel", "cost", (json_int_t)s->cost, "us", us(s->cost));
    if (!r)
        return j;
    j = json_put(j, "reason", json_string(explain_reason_name(r->reason)));
    j = json_put(j, "written", labels(planner, s->tensor, r->written));
    j = json_put(j, "read", labels(planner, s->tensor, r->read));
    j = json_put(j, "forbidding", forbidding(planner, r));
    j = json_put(j, "remedy", remedy(planner, r));
    j = json_put(j, "why", owned_text(explain_why(planner, r)));
    j = json_put(j, "text", owned_text(explain_forbidding(planner, r)));
    j = json_put(j, "hint", owned_text(explain_remedy_text(planner, r)));
    return j;
}

static json_t *reformats(const struct planner *planner, const struct explain *answers)
{
    json_t *list = json_array();
    for (size_t i = 0; i < planner->plan->n_steps; i++) {
        const struct plan_step *s = &planner->plan->steps[i];
        list =
            json_add(list, reformat(planner, s, explain_find(answers, s->tensor, s->to)));
    }
    return list;
}

static json_t *fusions(const struct planner *planner)
{
    json_t *list = json_array();
    for (size_t i = 0; i < planner->n_fusions; i++) {
        const struct planner_fusion *f = &planner->fusions[i];
        const char *into = f->into >= 0 ? planner->network->layers[f->into].name : NULL;
        if (f->reason)
            list = json_add(list, json_pack("{s:s, s:b, s:b, s:s?, s:s}", "name",
                                            planner->network->layers[i].name, "possible",
                                            f->possible, "done", f->done, "into", into,
                                            "reason", f->reason));
    }
    return list;
}

/* What was given up; null where time was the objective. */
static json_t *least_time(const struct planner *planner)
{
    const struct planner_trade *t = &planner->trade;
    if (planner->network->build.objective == OBJECTIVE_TIME)
        return json_null();
    return json_pack("{s:I, s:o, s:b, s:I, s:I, s:I, s:b}", "cost", (json_int_t)t->cost,
                     "us", us(t->cost), "at_least", t->at_least, "reformats",
                     (json_int_t)t->reformats, "arena_bytes", (json_int_t)t->arena_bytes,
                     "plans_weighed", (json_int_t)t->weighed, "plans_cut", t->cut);
}

/* Of the whole; null where the plan was not timed. */
static json_t *in_place_us(const struct execution *x)
{
    return x->in_place ? us(x->in_place) : json_null();
}

/* Of each step that does something, in their order. */
static json_t *in_place(const struct planner *planner, const struct execution *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < x->n_steps && x->in_place; i++) {
        const struct execution_step *s = &x->steps[i];
        const char *name = s->kind == STEP_RUN
                               ? x->nodes[s->node].name
                               : planner->network->tensors[x->values[s->to].tensor].name;
        if (s->kind != STEP_RELABEL && !s->once)
            list = json_add(list, json_pack("{s:s, s:o, s:o}", "name", name, "price_us",
                                            us(s->cost), "us", us(s->in_place)));
    }
    return list;
}

size_t explain_relabels(const struct execution *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_steps; i++)
        n += x->steps[i].kind == STEP_RELABEL && !execution_erases(x, &x->steps[i]);
    return n;
}

size_t explain_erased(const struct planner *planner)
{
    size_t n = 0;
    for (size_t i = 0; i < planner->n_fusions; i++)
        n += planner->fusions[i].done && planner->fusions[i].into < 0;
    return n;
}

static json_t *totals(const struct planner *planner, const struct execution *x,
                      const struct explain *answers, uint64_t weight_bytes)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:b, s:f, s:b, s:I, s:I, s:I, "
        "s:s, "
        "s:o}",
        "nodes", (json_int_t)x->n_nodes, "reformats",
        (json_int_t)planner->plan->n_reformats, "relabels",
        (json_int_t)explain_relabels(x), "erased", (json_int_t)explain_erased(planner),
        "cost", (json_int_t)planner->plan->cost, "us", us(planner->plan->cost),
        "in_place_us", in_place_us(x), "reformat_cost",
        (json_int_t)planner->plan->conversion_cost, "reformat_us",
        us(planner->plan->conversion_cost), "proved", planner->plan->proved, "gap",
        plan_gap(planner->plan), "answers_proved", answers->exact, "weight_bytes",
        (json_int_t)weight_bytes, "arena_bytes", (json_int_t)x->arena_bytes,
        "arena_bound", (json_int_t)x->arena_bound, "objective",
        planner_objective_names[planner->network->build.objective], "least_time",
        least_time(planner));
}

/* ---- costs ------------------------------------------------------------------------ */

static json_t *all_choices(const struct planner *planner)
{
    const struct plan_problem *p = &planner->model->problem;
    json_t *list = json_array();
    for (size_t op = 0; op < p->n_ops; op++)
        for (size_t k = 0; k < p->ops[op].n_choices; k++) {
            if (p->ops[op].choices[k].impl < 0)
                continue;
            json_t *j = choice(planner, (int)op, k);
            j = json_put(j, "name", json_string(p->ops[op].name));
            list = json_add(list, j);
        }
    return list;
}

/* Every possible conversion of each tensor; tensors of one shape share their costs. */
static json_t *all_conversions(const struct planner *planner)
{
    const struct plan_problem *p = &planner->model->problem;
    const struct planner_model *m = planner->model;
    size_t n = (size_t)p->n_labels, matrix = 0;
    json_t *list = json_array();
    for (size_t t = 0; t < p->n_tensors && matrix < m->n_matrices; t++) {
        if (p->tensors[t].conversion != m->matrices[matrix])
            continue; /* an earlier one has it: they are in the order of their first */
        matrix++;
        for (size_t i = 0; i < n * n; i++) {
            int64_t cost = p->tensors[t].conversion[i];
            if (cost <= 0 || cost >= PLAN_INFINITE)
                continue;
            list = json_add(list, json_pack("{s:o, s:o, s:o, s:I}", "shape",
                                            shape(tensor_at(planner, (int)t)), "from",
                                            label(planner, (int)t, (int)(i / n)), "to",
                                            label(planner, (int)t, (int)(i % n)), "cost",
                                            (json_int_t)cost));
        }
    }
    return list;
}

static const char *const cost_sources[] = {
    [COSTS_ANALYTIC] = "analytic",
    [COSTS_MEASURE] = "measured",
    [COSTS_FILE] = "recorded",
};

/* A file may have a name that is no UTF-8, JSON has none that is not. */
static json_t *path_json(const char *path)
{
    char *text = duplicate(path, NULL);
    size_t left = text ? strlen(text) : 0, size;
    for (char *at = text; left > 0; at += size, left -= size)
        if ((size = text_character_size((const unsigned char *)at, left)) == 0) {
            *at = '?';
            size = 1;
        }
    json_t *j = text ? json_string(text) : NULL;
    free(text);
    return j;
}

json_t *explain_json(const struct planner *planner, const struct execution *x,
                     const struct explain *answers, uint64_t weight_bytes)
{
    const struct device_properties *d = &planner->device.properties;
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, config_hash(planner->network->config));
    json_t *costs =
        json_pack("{s:s, s:i, s:o, s:o}", "source", cost_sources[planner->costs.kind],
                  "units_per_ns", PLAN_UNIT_PER_NS, "choices", all_choices(planner),
                  "conversions", all_conversions(planner));
    return json_pack(
        "{s:i, s:{s:s?, s:o, s:s}, s:{s:s, s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o}",
        "plan", EXPLAIN_PLAN_VERSION, "network", "name", planner->network->name, "path",
        path_json(planner->network->path), "hash", hash, "device", "name", d->name,
        "kind", d->kind == STRATA_HOST ? "host" : "cuda", "totals",
        totals(planner, x, answers, weight_bytes), "nodes", nodes(planner, x), "tensors",
        tensors(planner, x), "reformats", reformats(planner, answers), "fusions",
        fusions(planner), "merges", planner_merges_json(planner), "quantised",
        planner_mixes_json(planner), "left", record_left_json(planner), "in_place",
        in_place(planner, x), "costs", costs);
}
