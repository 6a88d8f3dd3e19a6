/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan to JSON and back. What is read is hostile until it has been compared with the
 * network: names must be the network's, indices in range, formats of the table. Whether
 * an impl can run a decision is asked when candidates are made of it (candidate.c).
 */
#include "planner/record.h"

#include <stdlib.h>
#include <string.h>

#include "ini/names.h"
#include "io/json.h"
#include "planner/explain/explain.h"
#include "planner/merge/merge.h"
#include "planner/mixed/mixed.h"

static const char *const kinds[] = {[CANDIDATE_RUN] = "run",
                                    [CANDIDATE_GROUP] = "group",
                                    [CANDIDATE_LONGER] = "longer group",
                                    [CANDIDATE_ABSORBED] = "absorbed",
                                    [CANDIDATE_ALIAS] = "alias",
                                    [CANDIDATE_JOIN] = "join",
                                    [CANDIDATE_UNREAD] = "unread"};
static const enum plan_reason reasons[] = {PLAN_HARD, PLAN_FIXED_IO, PLAN_PADDING,
                                           PLAN_ECONOMIC};
static const char *const cost_kinds[] = {
    [COSTS_ANALYTIC] = "analytic", [COSTS_MEASURE] = "measure", [COSTS_FILE] = "file"};

/* ---- writing ------------------------------------------------------------------------
 */

static json_t *formats(const int *list, int n)
{
    json_t *names = json_array();
    for (int i = 0; i < n; i++)
        names = json_add(names, json_string(format_mask_name(UINT64_C(1) << list[i], 4)));
    return names;
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static json_t *decision_json(const struct planner *planner,
                             const struct plan_choice *choice,
                             const struct record_modules *modules)
{
    const struct planner_candidate *c = &planner->model->candidates[choice->impl];
    const struct network_layer *l = &planner->network->layers[c->node];
    const struct planner_node *n = planner_run_node(planner, c);
    json_t *j =
        json_pack("{s:s, s:s, s:I, s:I}", "layer", l->name, "kind", kinds[c->kind],
                  "fused", (json_int_t)c->fused, "cost", (json_int_t)choice->cost);
    if (c->homed)
        j = json_put(j, "inside", json_true());
    if (!planner_runs(c)) {
        j = json_put(j, "reads", formats(c->in_formats, 1));
        if (c->out_formats[0] != c->in_formats[0])
            j = json_put(j, "writes", formats(c->out_formats, 1));
        return j;
    }
    j = json_put(j, "reads", formats(c->in_formats, at_most(n->n_in, PLAN_MAX_PORTS)));
    j = json_put(j, "writes",
                 formats(c->out_formats, at_most(l->n_outputs, PLAN_MAX_PORTS)));
    j = json_put(j, "impl", json_string(c->impl->impl.name));
    j = json_put(j, "row", json_integer(c->row));
    j = json_put(j, "plugin",
                 json_integer(modules->number(modules->list, c->impl->module)));
    return j;
}

static json_t *label_json(const struct plan_label *l)
{
    return json_pack("{s:s, s:s, s:i}", "format",
                     format_mask_name(UINT64_C(1) << l->format, 4), "pads",
                     l->pad == STRATA_PAD_ANY ? "any" : "zero", "stage", l->stage);
}

static json_t *conversion_json(const struct planner *planner, const struct plan_step *s)
{
    const struct plan_problem *p = &planner->model->problem;
    return json_pack("{s:s, s:o, s:o, s:I, s:s}", "tensor",
                     planner->network->tensors[planner->model->tensor_of[s->tensor]].name,
                     "from", label_json(&p->labels[s->from]), "to",
                     label_json(&p->labels[s->to]), "cost", (json_int_t)s->cost, "reason",
                     explain_reason_name(plan_step_reason(p, planner->plan, s)));
}

static json_t *trade_json(const struct planner_trade *t)
{
    return json_pack("{s:I, s:b, s:I, s:I, s:I, s:b}", "cost", (json_int_t)t->cost,
                     "at_least", t->at_least, "reformats", (json_int_t)t->reformats,
                     "arena_bytes", (json_int_t)t->arena_bytes, "weighed",
                     (json_int_t)t->weighed, "cut", t->cut);
}

static json_t *put_in_place(json_t *record, const struct execution *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < x->n_steps; i++)
        list = json_add(list, json_integer(x->steps[i].in_place));
    return json_put(record, "in_place", list);
}

json_t *record_json(const struct planner *planner, const struct execution *x,
                    const struct record_modules *modules)
{
    const struct plan_problem *p = &planner->model->problem;
    json_t *decisions = json_array(), *conversions = json_array();
    for (size_t op = 0; op < p->n_ops; op++) {
        const struct plan_choice *c = plan_chosen(p, planner->plan->choices, (int)op);
        if (c->impl >= 0)
            decisions = json_add(decisions, decision_json(planner, c, modules));
    }
    for (size_t i = 0; i < planner->plan->n_steps; i++)
        conversions =
            json_add(conversions, conversion_json(planner, &planner->plan->steps[i]));
    json_t *j = json_pack(
        "{s:o, s:o, s:o, s:b, s:b, s:b, s:b, s:I, s:I, s:b, s:I, s:s, s:b, s:o}",
        "merges", planner_merges_json(planner), "decisions", decisions, "conversions",
        conversions, "pads_any", planner->model->any_dirty, "pitched",
        !planner->record || planner->record->pitched, "rows",
        !planner->record || planner->record->rows, "residuals",
        !planner->record || planner->record->residuals, "objective",
        (json_int_t)planner->plan->objective, "bound", (json_int_t)planner->plan->bound,
        "proved", planner->plan->proved, "nodes", (json_int_t)planner->plan->nodes,
        "costs", cost_kinds[planner->costs.kind], "costs_complete",
        planner->costs.complete, "least_time", trade_json(&planner->trade));
    if (planner->mixes)
        j = json_put(j, "quantised", planner_mixes_json(planner));
    if (planner->n_left > 0)
        j = json_put(j, "left", record_left_json(planner));
    return x->in_place ? put_in_place(j, x) : j;
}

/* ---- reading ------------------------------------------------------------------------
 */

static int unpack_failed(const json_error_t *wrong, strata_error *err)
{
    return error_set(err, STRATA_EPARSE, "%s", wrong->text);
}

static int index_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (words[i] && strcmp(words[i], word) == 0)
            return (int)i;
    return -1;
}

static int read_format(int *out, const json_t *name, strata_error *err)
{
    struct format f;
    if (!json_is_string(name))
        return error_set(err, STRATA_EPARSE, "a format is not a name");
    if (format_lookup(&f, json_string_value(name), err) != STRATA_OK)
        return STRATA_EPARSE;
    *out = format_index(f);
    return STRATA_OK;
}

/* 1 to PLAN_MAX_PORTS of them; the last one repeats. */
static int read_formats(int out[PLAN_MAX_PORTS], int *n, const json_t *list, int ports,
                        strata_error *err)
{
    int status = STRATA_OK;
    *n = (int)json_array_size(list);
    if (*n != at_most(ports, PLAN_MAX_PORTS))
        return error_set(err, STRATA_EPARSE, "%d formats; needed %d", *n,
                         at_most(ports, PLAN_MAX_PORTS));
    for (int i = 0; i<PLAN_MAX_PORTS && * n> 0 && status == STRATA_OK; i++)
        status =
            read_format(&out[i], json_array_get(list, (size_t)at_most(i, *n - 1)), err);
    return status;
}

static int read_run(struct record_decision *d, const json_t *j,
                    const struct network_layer *l, const struct record_modules *modules,
                    strata_error *err)
{
    json_error_t wrong;
    json_t *reads, *writes;
    json_int_t row, plugin;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:s, s:I, s:I, s:o, s:o}", "impl",
                       &d->impl, "row", &row, "plugin", &plugin, "reads", &reads,
                       "writes", &writes) != 0)
        return unpack_failed(&wrong, err);
    d->module = modules->at(modules->list, plugin);
    if (!d->module || row < 0 || row > INT32_MAX)
        return error_set(err, STRATA_EPARSE, "row %lld of plugin %lld: out of range",
                         (long long)row, (long long)plugin);
    d->row = (int)row;
    /* A group reads what the network tells, a list that grows the one before it;
     * candidates are looked for accordingly. */
    const int given = (int)json_array_size(reads);
    const bool grows = strcmp(l->type->full_name, "core::Concatenation@1") == 0 &&
                       given > 0 && given < l->n_inputs;
    const int n_in = d->kind != CANDIDATE_RUN || grows ? given : l->n_inputs;
    int status = read_formats(d->in_formats, &d->n_in, reads, n_in, err);
    return status == STRATA_OK
               ? read_formats(d->out_formats, &d->n_out, writes, l->n_outputs, err)
               : status;
}

static int read_decision(struct record_decision *d, const json_t *j,
                         const struct network_layer *l,
                         const struct record_modules *modules, strata_error *err)
{
    json_error_t wrong;
    const char *layer, *kind;
    json_int_t fused, cost;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:s, s:s, s:I, s:I}", "layer", &layer,
                       "kind", &kind, "fused", &fused, "cost", &cost) != 0)
        return unpack_failed(&wrong, err);
    if (strcmp(layer, l->name) != 0)
        return error_set(err, STRATA_EPARSE, "it is for layer '%s'", layer);
    int index = index_of(kind, kinds, ARRAY_LENGTH(kinds));
    if (index < 0)
        return error_set(err, STRATA_EPARSE, "kind '%s' is unknown", kind);
    if (fused < 0 || fused > NETWORK_MAX_LAYERS || cost < 0 || cost >= PLAN_INFINITE)
        return error_set(err, STRATA_EPARSE, "fused %lld, cost %lld: out of range",
                         (long long)fused, (long long)cost);
    d->kind = (enum candidate_kind)index;
    d->fused = (size_t)fused;
    d->cost = cost;
    d->homed = json_is_true(json_object_get(j, "inside"));
    if (d->kind <= CANDIDATE_LONGER)
        return read_run(d, j, l, modules, err);
    const json_t *reads = json_object_get(j, "reads"), *writes;
    writes = json_object_get(j, "writes");
    int status = read_formats(d->in_formats, &d->n_in, reads, 1, err);
    return status == STRATA_OK
               ? read_formats(d->out_formats, &d->n_out, writes ? writes : reads, 1, err)
               : status;
}

static int read_label(struct plan_label *out, const json_t *j, strata_error *err)
{
    json_error_t wrong;
    json_t *format;
    const char *pads;
    json_int_t stage;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:o, s:s, s:I}", "format", &format,
                       "pads", &pads, "stage", &stage) != 0)
        return unpack_failed(&wrong, err);
    if (stage < 0 || stage >= PLAN_STAGES)
        return error_set(err, STRATA_EPARSE, "stage %lld: out of range",
                         (long long)stage);
    out->stage = (int)stage;
    out->pad = strcmp(pads, "any") == 0 ? STRATA_PAD_ANY : STRATA_PAD_ZERO;
    return read_format(&out->format, format, err);
}

static int read_conversion(struct record_conversion *c, const json_t *j,
                           const struct names *tensors, strata_error *err)
{
    json_error_t wrong;
    json_t *from, *to;
    const char *tensor, *reason;
    json_int_t cost;
    size_t k = 0;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:s, s:o, s:o, s:I, s:s}", "tensor",
                       &tensor, "from", &from, "to", &to, "cost", &cost, "reason",
                       &reason) != 0)
        return unpack_failed(&wrong, err);
    c->tensor = names_get(tensors, tensor);
    if (c->tensor < 0)
        return error_set(err, STRATA_EPARSE, "there is no tensor '%s'", tensor);
    if (cost < 0 || cost >= PLAN_INFINITE)
        return error_set(err, STRATA_EPARSE, "cost %lld: out of range", (long long)cost);
    while (k < ARRAY_LENGTH(reasons) &&
           strcmp(explain_reason_name(reasons[k]), reason) != 0)
        k++;
    if (k == ARRAY_LENGTH(reasons))
        return error_set(err, STRATA_EPARSE, "reason '%s' is unknown", reason);
    c->reason = reasons[k];
    c->cost = cost;
    int status = read_label(&c->from, from, err);
    return status == STRATA_OK ? read_label(&c->to, to, err) : status;
}

static int read_trade(struct planner_trade *t, const json_t *j, strata_error *err)
{
    json_error_t wrong;
    json_int_t cost, reformats, arena, weighed;
    int at_least, cut;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:I, s:b, s:I, s:I, s:I, s:b}", "cost",
                       &cost, "at_least", &at_least, "reformats", &reformats,
                       "arena_bytes", &arena, "weighed", &weighed, "cut", &cut) != 0)
        return unpack_failed(&wrong, err);
    *t = (struct planner_trade){.cost = cost,
                                .at_least = at_least,
                                .reformats = (size_t)reformats,
                                .arena_bytes = arena,
                                .weighed = (size_t)weighed,
                                .cut = cut};
    return STRATA_OK;
}

static int read_totals(struct record *r, strata_error *err)
{
    json_error_t wrong;
    json_t *trade;
    const char *costs;
    json_int_t objective, bound, nodes;
    int dirty, proved, complete;
    if (json_unpack_ex(r->json, &wrong, 0, "{s:b, s:I, s:I, s:b, s:I, s:s, s:b, s:o}",
                       "pads_any", &dirty, "objective", &objective, "bound", &bound,
                       "proved", &proved, "nodes", &nodes, "costs", &costs,
                       "costs_complete", &complete, "least_time", &trade) != 0)
        return unpack_failed(&wrong, err);
    int kind = index_of(costs, cost_kinds, ARRAY_LENGTH(cost_kinds));
    if (kind < 0)
        return error_set(err, STRATA_EPARSE, "costs '%s' are unknown", costs);
    r->any_dirty = dirty;
    r->pitched = json_is_true(json_object_get(r->json, "pitched"));
    r->rows = json_is_true(json_object_get(r->json, "rows"));
    r->residuals = json_is_true(json_object_get(r->json, "residuals"));
    r->objective = objective;
    r->bound = bound;
    r->proved = proved;
    r->nodes = (uint64_t)nodes;
    r->costs = (struct cost_report){.kind = (enum cost_kind)kind, .complete = complete};
    return read_trade(&r->trade, trade, err);
}

static int read_decisions(struct record *r, const strata_network *net,
                          const struct record_modules *modules, strata_error *err)
{
    const json_t *list = json_object_get(r->json, "decisions");
    if (json_array_size(list) != net->n_layers)
        return error_set(err, STRATA_EPARSE, "%zu decisions for %zu layers",
                         json_array_size(list), net->n_layers);
    r->decisions = zalloc(net->n_layers, sizeof *r->decisions, "the plan", err);
    int status = r->decisions ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++) {
        status = read_decision(&r->decisions[i], json_array_get(list, i), &net->layers[i],
                               modules, err);
        if (status != STRATA_OK)
            error_prefix(err, "decision of layer '%s'", net->layers[i].name);
    }
    return status;
}

static int read_conversions(struct record *r, const strata_network *net,
                            strata_error *err)
{
    const json_t *list = json_object_get(r->json, "conversions");
    struct names tensors = {0};
    int status = STRATA_OK;
    size_t n = json_array_size(list);
    r->conversions = zalloc(n, sizeof *r->conversions, "the plan", err);
    if (!r->conversions)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors && status == STRATA_OK; t++)
        status = names_put(&tensors, net->tensors[t].name, (int)t, err);
    for (; r->n_conversions < n && status == STRATA_OK; r->n_conversions++) {
        status = read_conversion(&r->conversions[r->n_conversions],
                                 json_array_get(list, r->n_conversions), &tensors, err);
        if (status != STRATA_OK)
            error_prefix(err, "conversion %zu", r->n_conversions);
    }
    names_free(&tensors);
    return status;
}

/* A record without is one as well. */
static int read_in_place(struct record *r, strata_error *err)
{
    const json_t *list = json_object_get(r->json, "in_place");
    const size_t n = json_array_size(list);
    int64_t sum = 0;
    if (!list)
        return STRATA_OK;
    if (!(r->in_place = zalloc(n, sizeof *r->in_place, "the plan", err)))
        return STRATA_ENOMEM;
    for (; r->n_in_place < n; r->n_in_place++) {
        const json_t *j = json_array_get(list, r->n_in_place);
        const json_int_t cost = json_integer_value(j);
        if (!json_is_integer(j) || cost < 0 || cost >= PLAN_INFINITE - sum)
            return error_set(err, STRATA_EPARSE, "cost in place %zu: out of range",
                             r->n_in_place);
        r->in_place[r->n_in_place] = cost;
        sum += cost;
    }
    return STRATA_OK;
}

void record_in_place(const struct record *r, struct execution *x)
{
    if (r->n_in_place != x->n_steps)
        return;
    for (size_t i = 0; i < x->n_steps; i++) {
        x->steps[i].in_place = r->in_place[i];
        x->in_place += r->in_place[i];
    }
}

int record_read(struct record **out, json_t *json, const strata_network *net,
                const struct record_modules *modules, strata_error *err)
{
    struct record *r = zalloc(1, sizeof *r, "the plan", err);
    *out = NULL;
    if (!r)
        return STRATA_ENOMEM;
    r->json = json_incref(json);
    int status = read_totals(r, err);
    if (status == STRATA_OK)
        status = read_decisions(r, net, modules, err);
    if (status == STRATA_OK)
        status = read_conversions(r, net, err);
    if (status == STRATA_OK)
        status = read_in_place(r, err);
    if (status == STRATA_OK)
        *out = r;
    else
        record_free(r);
    return status;
}

int record_decisions(struct record **out, const struct planner *planner,
                     strata_error *err)
{
    const struct plan_problem *p = &planner->model->problem;
    struct record *r = *out = zalloc(1, sizeof *r, "the plan", err);
    if (!r)
        return STRATA_ENOMEM;
    r->decisions = zalloc(planner->n_nodes, sizeof *r->decisions, "the plan", err);
    if (!r->decisions)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < p->n_ops; op++) {
        const struct plan_choice *choice =
            plan_chosen(p, planner->plan->choices, (int)op);
        if (choice->impl < 0)
            continue;
        const struct planner_candidate *c = &planner->model->candidates[choice->impl];
        struct record_decision *d = &r->decisions[c->node];
        d->kind = c->kind;
        d->impl = c->impl ? c->impl->impl.name : NULL;
        d->module = c->impl ? c->impl->module : NULL;
        d->row = c->row;
        d->homed = c->homed;
        d->fused = c->fused;
        d->n_in = d->n_out = PLAN_MAX_PORTS;
        memcpy(d->in_formats, c->in_formats, sizeof d->in_formats);
        memcpy(d->out_formats, c->out_formats, sizeof d->out_formats);
        d->cost = choice->cost;
    }
    return STRATA_OK;
}

void record_free(struct record *r)
{
    if (!r)
        return;
    json_decref(r->json);
    free(r->decisions);
    free(r->conversions);
    free(r->in_place);
    free(r);
}
