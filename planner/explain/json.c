/* SPDX-License-Identifier: Apache-2.0
 *
 * The report as JSON, complete enough to be kept as a plan and compared with another:
 * decisions, reasons, and every cost that the planner could have chosen by. Costs are
 * integers in 1/16 ns; `us` beside one is the same in microseconds.
 */
#include "planner/explain/explain.h"
#include "io/json.h"

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

static json_t *label(const strata_engine *e, int tensor, int l)
{
    char name[2 * FORMAT_NAME_SIZE];
    explain_label(name, sizeof name, e, tensor, l);
    return json_string(name);
}

static json_t *labels(const strata_engine *e, int tensor, uint64_t mask)
{
    json_t *list = json_array();
    for (int l = 0; l < e->model->problem.n_labels; l++)
        if (mask & UINT64_C(1) << l)
            list = json_add(list, label(e, tensor, l));
    return list;
}

static json_t *shape(const struct network_tensor *t)
{
    json_t *dims = json_array();
    for (int d = 0; d < t->rank; d++)
        dims = json_add(dims, json_integer(t->dims[d]));
    return dims;
}

static const struct network_tensor *tensor_at(const strata_engine *e, int tensor)
{
    return &e->network->tensors[e->model->tensor_of[tensor]];
}

/* Labels of a choice's ports. */
static json_t *ports(const strata_engine *e, const struct plan_op *o,
                     const struct plan_choice *c, bool output)
{
    json_t *list = json_array();
    for (int i = 0; i < (output ? o->n_out : o->n_in); i++)
        list = json_add(list, label(e, output ? o->out[i] : o->in[i],
                                    output ? plan_out_label(c, i) : plan_in_label(c, i)));
    return list;
}

static json_t *choice(const strata_engine *e, int op, size_t k)
{
    const struct plan_op *o = &e->model->problem.ops[op];
    const struct plan_choice *c = &o->choices[k];
    return json_pack("{s:s, s:i, s:I, s:o, s:o, s:I, s:o}", "impl", explain_impl(e, c),
                     "row", c->row, "fused", (json_int_t)explain_fused(e, c), "reads",
                     ports(e, o, c, false), "writes", ports(e, o, c, true), "cost",
                     (json_int_t)c->cost, "us", us(c->cost));
}

/* ---- sections --------------------------------------------------------------------- */

/* The node that runs a layer; NULL: it needs none. */
static const struct engine_node *find_node(const strata_engine *e,
                                           const struct network_layer *layer)
{
    for (size_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].layer == layer)
            return &e->nodes[i];
    return NULL;
}

static json_t *node_entry(const strata_engine *e, int op)
{
    const struct plan_op *o = &e->model->problem.ops[op];
    const struct plan_choice *c = plan_chosen(&e->model->problem, e->plan->choices, op);
    const struct network_layer *layer =
        &e->network->layers[e->model->candidates[c->impl].node];
    const struct engine_node *n = find_node(e, layer);
    json_t *j = choice(e, op, e->plan->choices[op]);
    json_t *dims = o->n_out ? shape(tensor_at(e, o->out[0])) : json_array();
    j = json_put(j, "name", json_string(o->name));
    j = json_put(j, "layer", json_string(layer->type->layer.name));
    j = json_put(j, "shape", dims);
    j = json_put(j, "computes", json_string(n ? n->name : layer->name));
    j = json_put(j, "workspace", json_integer(n ? (json_int_t)n->workspace : 0));
    j = json_put(j, "choices", json_integer((json_int_t)o->n_choices));
    return j;
}

static json_t *nodes(const strata_engine *e)
{
    const struct plan_problem *p = &e->model->problem;
    json_t *list = json_array();
    for (size_t op = 0; op < p->n_ops; op++)
        if (plan_chosen(p, e->plan->choices, (int)op)->impl >= 0)
            list = json_add(list, node_entry(e, (int)op));
    return list;
}

static json_t *materialised(const strata_engine *e, int tensor)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->n_values; i++) {
        const struct engine_value *v = &e->values[i];
        if (v->tensor != e->model->tensor_of[tensor])
            continue;
        list = json_add(
            list, json_pack("{s:s, s:s, s:I, s:b}", "format",
                            format_mask_name(UINT64_C(1) << v->format, v->desc.rank),
                            "pads", v->pad == STRATA_PAD_ANY ? "any" : "zero", "bytes",
                            (json_int_t)v->bytes, "own_memory", v->alias < 0));
    }
    return list;
}

static json_t *wanted(const strata_engine *e, const struct plan_tensor *t, int tensor)
{
    const struct plan_problem *p = &e->model->problem;
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_reader *r = &t->readers[i];
        const struct plan_choice *c = plan_chosen(p, e->plan->choices, r->op);
        list = json_add(list, json_pack("{s:s, s:i, s:b, s:o}", "by", p->ops[r->op].name,
                                        "port", r->port, "output", c->impl < 0, "format",
                                        label(e, tensor, plan_in_label(c, r->port))));
    }
    return list;
}

static json_t *tensors(const strata_engine *e)
{
    const struct plan_problem *p = &e->model->problem;
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct plan_tensor *t = &p->tensors[i];
        const struct plan_choice *c = plan_chosen(p, e->plan->choices, t->producer);
        list = json_add(list, json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o}", "name",
                                        t->name, "shape", shape(tensor_at(e, (int)i)),
                                        "by", p->ops[t->producer].name, "impl",
                                        explain_impl(e, c), "produced",
                                        label(e, (int)i, plan_out_label(c, t->port)),
                                        "materialised", materialised(e, (int)i), "wanted",
                                        wanted(e, t, (int)i)));
    }
    return list;
}

static json_t *changes(const strata_engine *e, const struct explain_reformat *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_changes; i++)
        list = json_add(list,
                        json_pack("{s:s, s:o, s:o}", "name",
                                  e->model->problem.ops[r->changes[i].op].name, "from",
                                  choice(e, r->changes[i].op, r->changes[i].before), "to",
                                  choice(e, r->changes[i].op, r->changes[i].after)));
    return list;
}

static json_t *forbidding(const strata_engine *e, const struct explain_reformat *r)
{
    if (!r->asked)
        return json_null();
    if (!r->avoidable)
        return json_pack("{s:b}", "possible", 0);
    return json_pack("{s:b, s:I, s:o, s:I, s:o}", "possible", 1, "cost",
                     (json_int_t)r->penalty, "us", us(r->penalty), "more_reformats",
                     (json_int_t)r->reformats, "changes", changes(e, r));
}

static json_t *remedy(const strata_engine *e, const struct explain_reformat *r)
{
    const struct explain_remedy *m = &r->remedy;
    if (m->op < 0)
        return json_null();
    return json_pack("{s:s, s:i, s:s, s:b, s:o, s:I, s:I, s:o, s:I}", "name",
                     e->model->problem.ops[m->op].name, "operations", m->n_ops, "side",
                     m->output ? "writes" : "reads", "all_ports", m->all_ports, "format",
                     label(e, r->step.tensor, m->label), "at_most", (json_int_t)m->cost,
                     "gain", (json_int_t)m->gain, "us", us(m->gain), "fewer_reformats",
                     (json_int_t)m->reformats);
}

static json_t *reformat(const strata_engine *e, const struct plan_step *s,
                        const struct explain_reformat *r)
{
    const char *name = e->model->problem.tensors[s->tensor].name;
    json_t *j = json_pack("{s:s, s:o, s:o, s:o, s:s, s:I, s:o}", "tensor", name, "from",
                          label(e, s->tensor, s->from), "to", label(e, s->tensor, s->to),
                          "for", owned_text(explain_readers(e, s->tensor, s->to)), "kind",
                          s->cost ? "reformat" : "relabel", "cost", (json_int_t)s->cost,
                          "us", us(s->cost));
    if (!r)
        return j;
    j = json_put(j, "reason", json_string(explain_reason_name(r->reason)));
    j = json_put(j, "written", labels(e, s->tensor, r->written));
    j = json_put(j, "read", labels(e, s->tensor, r->read));
    j = json_put(j, "forbidding", forbidding(e, r));
    j = json_put(j, "remedy", remedy(e, r));
    j = json_put(j, "why", owned_text(explain_why(e, r)));
    j = json_put(j, "text", owned_text(explain_forbidding(e, r)));
    j = json_put(j, "hint", owned_text(explain_remedy_text(e, r)));
    return j;
}

static json_t *reformats(const strata_engine *e, const struct explain *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->plan->n_steps; i++) {
        const struct plan_step *s = &e->plan->steps[i];
        list = json_add(list, reformat(e, s, explain_find(x, s->tensor, s->to)));
    }
    return list;
}

static json_t *fusions(const strata_engine *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->n_fusions; i++) {
        const struct engine_fusion *f = &e->fusions[i];
        const char *into = f->into >= 0 ? e->network->layers[f->into].name : NULL;
        if (f->reason)
            list = json_add(list, json_pack("{s:s, s:b, s:b, s:s?, s:s}", "name",
                                            e->network->layers[i].name, "possible",
                                            f->possible, "done", f->done, "into", into,
                                            "reason", f->reason));
    }
    return list;
}

/* What was given up; null where time was the objective. */
static json_t *least_time(const strata_engine *e)
{
    const struct engine_trade *t = &e->trade;
    if (e->network->build.objective == OBJECTIVE_TIME)
        return json_null();
    return json_pack("{s:I, s:o, s:b, s:I, s:I, s:I, s:b}", "cost", (json_int_t)t->cost,
                     "us", us(t->cost), "at_least", t->at_least, "reformats",
                     (json_int_t)t->reformats, "arena_bytes", (json_int_t)t->arena_bytes,
                     "plans_weighed", (json_int_t)t->weighed, "plans_cut", t->cut);
}

static json_t *totals(const strata_engine *e, const struct explain *x)
{
    size_t n = e->plan->n_reformats;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:b, s:f, s:b, s:I, s:I, s:I, s:s, s:o}",
        "nodes", (json_int_t)e->n_nodes, "reformats", (json_int_t)n, "relabels",
        (json_int_t)(e->plan->n_steps - n), "cost", (json_int_t)e->plan->cost, "us",
        us(e->plan->cost), "reformat_cost", (json_int_t)e->plan->conversion_cost,
        "reformat_us", us(e->plan->conversion_cost), "proved", e->plan->proved, "gap",
        plan_gap(e->plan), "answers_proved", x->exact, "weight_bytes",
        (json_int_t)e->weight_bytes, "arena_bytes", (json_int_t)e->arena_bytes,
        "arena_bound", (json_int_t)e->arena_bound, "objective",
        engine_objective_names[e->network->build.objective], "least_time", least_time(e));
}

/* ---- costs ------------------------------------------------------------------------ */

static json_t *all_choices(const strata_engine *e)
{
    const struct plan_problem *p = &e->model->problem;
    json_t *list = json_array();
    for (size_t op = 0; op < p->n_ops; op++)
        for (size_t k = 0; k < p->ops[op].n_choices; k++) {
            if (p->ops[op].choices[k].impl < 0)
                continue;
            json_t *j = choice(e, (int)op, k);
            j = json_put(j, "name", json_string(p->ops[op].name));
            list = json_add(list, j);
        }
    return list;
}

/* Every possible conversion of each tensor; tensors of one shape share their costs. */
static json_t *all_conversions(const strata_engine *e)
{
    const struct plan_problem *p = &e->model->problem;
    size_t n = (size_t)p->n_labels;
    json_t *list = json_array();
    for (size_t t = 0; t < p->n_tensors; t++) {
        size_t first = 0;
        while (p->tensors[first].conversion != p->tensors[t].conversion)
            first++;
        for (size_t i = 0; i < n * n && first == t; i++) {
            int64_t cost = p->tensors[t].conversion[i];
            if (cost <= 0 || cost >= PLAN_INFINITE)
                continue;
            list = json_add(list, json_pack("{s:o, s:o, s:o, s:I}", "shape",
                                            shape(tensor_at(e, (int)t)), "from",
                                            label(e, (int)t, (int)(i / n)), "to",
                                            label(e, (int)t, (int)(i % n)), "cost",
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
        if ((size = config_character_size((const unsigned char *)at, left)) == 0) {
            *at = '?';
            size = 1;
        }
    json_t *j = text ? json_string(text) : NULL;
    free(text);
    return j;
}

json_t *explain_json(const strata_engine *e, const struct explain *x)
{
    const struct device_properties *d = &e->handle->properties;
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, config_hash(e->network->config));
    json_t *costs = json_pack(
        "{s:s, s:i, s:o, s:o}", "source", cost_sources[e->costs.kind], "units_per_ns",
        PLAN_UNIT_PER_NS, "choices", all_choices(e), "conversions", all_conversions(e));
    return json_pack(
        "{s:i, s:{s:s?, s:o, s:s}, s:{s:s, s:s}, s:o, s:o, s:o, s:o, s:o, s:o}", "plan",
        EXPLAIN_PLAN_VERSION, "network", "name", e->network->name, "path",
        path_json(e->network->path), "hash", hash, "device", "name", d->name, "kind",
        d->kind == STRATA_HOST ? "host" : "cuda", "totals", totals(e, x), "nodes",
        nodes(e), "tensors", tensors(e), "reformats", reformats(e, x), "fusions",
        fusions(e), "costs", costs);
}
