/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan to JSON and back. What is read is hostile until it has been compared with the
 * network: names must be the network's, indices in range, formats of the table. Whether
 * an impl can run a decision is asked when candidates are made of it (candidate.c).
 */
#include "engine/file/stored.h"

#include <stdlib.h>
#include <string.h>

#include "planner/explain/explain.h"
#include "core/names.h"

static const char *const kinds[] = {[CANDIDATE_RUN] = "run",
                                    [CANDIDATE_ABSORBED] = "absorbed",
                                    [CANDIDATE_ALIAS] = "alias",
                                    [CANDIDATE_JOIN] = "join"};
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

static json_t *decision_json(const strata_engine *e, const struct plan_choice *choice,
                             const json_t *plugins)
{
    const struct engine_candidate *c = &e->model->candidates[choice->impl];
    const struct network_layer *l = &e->network->layers[c->node];
    json_t *j =
        json_pack("{s:s, s:s, s:I, s:I}", "layer", l->name, "kind", kinds[c->kind],
                  "fused", (json_int_t)c->fused, "cost", (json_int_t)choice->cost);
    if (c->kind != CANDIDATE_RUN) {
        j = json_put(j, "reads", formats(c->in_formats, 1));
        return j;
    }
    j = json_put(j, "reads",
                 formats(c->in_formats, at_most(l->n_inputs, PLAN_MAX_PORTS)));
    j = json_put(j, "writes",
                 formats(c->out_formats, at_most(l->n_outputs, PLAN_MAX_PORTS)));
    j = json_put(j, "impl", json_string(c->impl->impl.name));
    j = json_put(j, "row", json_integer(c->row));
    j = json_put(j, "plugin",
                 json_integer(engine_plugin_index(plugins, c->impl->module)));
    return j;
}

static json_t *label_json(const struct plan_label *l)
{
    return json_pack("{s:s, s:s, s:i}", "format",
                     format_mask_name(UINT64_C(1) << l->format, 4), "pads",
                     l->pad == STRATA_PAD_ANY ? "any" : "zero", "stage", l->stage);
}

static json_t *conversion_json(const strata_engine *e, const struct plan_step *s)
{
    const struct plan_problem *p = &e->model->problem;
    return json_pack("{s:s, s:o, s:o, s:I, s:s}", "tensor",
                     e->network->tensors[e->model->tensor_of[s->tensor]].name, "from",
                     label_json(&p->labels[s->from]), "to", label_json(&p->labels[s->to]),
                     "cost", (json_int_t)s->cost, "reason",
                     explain_reason_name(plan_step_reason(p, e->plan, s)));
}

static json_t *trade_json(const struct engine_trade *t)
{
    return json_pack("{s:I, s:b, s:I, s:I, s:I, s:b}", "cost", (json_int_t)t->cost,
                     "at_least", t->at_least, "reformats", (json_int_t)t->reformats,
                     "arena_bytes", (json_int_t)t->arena_bytes, "weighed",
                     (json_int_t)t->weighed, "cut", t->cut);
}

static json_t *smaller_json(const strata_engine *e, const json_t *plugins)
{
    json_t *list = json_array();
    for (size_t i = 0; i < e->n_smaller; i++)
        list = json_add(list, engine_plan_json(e->smaller[i], plugins));
    return list;
}

json_t *engine_plan_json(const strata_engine *e, const json_t *plugins)
{
    const struct plan_problem *p = &e->model->problem;
    json_t *decisions = json_array(), *conversions = json_array();
    for (size_t op = 0; op < p->n_ops; op++) {
        const struct plan_choice *c = plan_chosen(p, e->plan->choices, (int)op);
        if (c->impl >= 0)
            decisions = json_add(decisions, decision_json(e, c, plugins));
    }
    for (size_t i = 0; i < e->plan->n_steps; i++)
        conversions = json_add(conversions, conversion_json(e, &e->plan->steps[i]));
    return json_pack(
        "{s:o, s:o, s:b, s:I, s:I, s:b, s:I, s:s, s:b, s:o, s:o}", "decisions", decisions,
        "conversions", conversions, "pads_any", e->model->any_dirty, "objective",
        (json_int_t)e->plan->objective, "bound", (json_int_t)e->plan->bound, "proved",
        e->plan->proved, "nodes", (json_int_t)e->plan->nodes, "costs",
        cost_kinds[e->costs.kind], "costs_complete", e->costs.complete, "least_time",
        trade_json(&e->trade), "smaller", smaller_json(e, plugins));
}

/* ---- reading ------------------------------------------------------------------------
 */

int engine_section_json(json_t **out, const struct engine_file *f, const char *name,
                        strata_error *err)
{
    const struct engine_section *s = engine_file_find(f, name);
    json_error_t wrong;
    *out = NULL;
    if (!s)
        return error_set(err, STRATA_EPARSE, "there is no section '%s'", name);
    *out = json_loadb(s->data, s->size, JSON_REJECT_DUPLICATES, &wrong);
    if (*out)
        return STRATA_OK;
    return error_set(err, STRATA_EPARSE, "section '%s', line %d, column %d: %s", name,
                     wrong.line, wrong.column, wrong.text);
}

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
    if (format_parse(&f, json_string_value(name), err) != STRATA_OK)
        return STRATA_EPARSE;
    *out = format_index(f);
    return *out >= 0 ? STRATA_OK
                     : error_set(err, STRATA_EPARSE, "no layer can have format '%s'",
                                 json_string_value(name));
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

static int read_run(struct engine_decision *d, const json_t *j,
                    const struct network_layer *l, const struct engine_plugin *plugins,
                    size_t n_plugins, strata_error *err)
{
    json_error_t wrong;
    json_t *reads, *writes;
    json_int_t row, plugin;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:s, s:I, s:I, s:o, s:o}", "impl",
                       &d->impl, "row", &row, "plugin", &plugin, "reads", &reads,
                       "writes", &writes) != 0)
        return unpack_failed(&wrong, err);
    if (plugin < 0 || (size_t)plugin >= n_plugins || row < 0 || row > INT32_MAX)
        return error_set(err, STRATA_EPARSE, "row %lld of plugin %lld: out of range",
                         (long long)row, (long long)plugin);
    d->row = (int)row;
    d->module = plugins[plugin].module;
    int status = read_formats(d->in_formats, &d->n_in, reads, l->n_inputs, err);
    return status == STRATA_OK
               ? read_formats(d->out_formats, &d->n_out, writes, l->n_outputs, err)
               : status;
}

static int read_decision(struct engine_decision *d, const json_t *j,
                         const struct network_layer *l,
                         const struct engine_plugin *plugins, size_t n_plugins,
                         strata_error *err)
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
    return d->kind == CANDIDATE_RUN ? read_run(d, j, l, plugins, n_plugins, err)
                                    : read_formats(d->in_formats, &d->n_in,
                                                   json_object_get(j, "reads"), 1, err);
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
    if (stage < 0 || stage > PLAN_NONE)
        return error_set(err, STRATA_EPARSE, "stage %lld: out of range",
                         (long long)stage);
    out->stage = (int)stage;
    out->pad = strcmp(pads, "any") == 0 ? STRATA_PAD_ANY : STRATA_PAD_ZERO;
    return read_format(&out->format, format, err);
}

static int read_conversion(struct engine_conversion *c, const json_t *j,
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

static int read_trade(struct engine_trade *t, const json_t *j, strata_error *err)
{
    json_error_t wrong;
    json_int_t cost, reformats, arena, weighed;
    int at_least, cut;
    if (json_unpack_ex((json_t *)j, &wrong, 0, "{s:I, s:b, s:I, s:I, s:I, s:b}", "cost",
                       &cost, "at_least", &at_least, "reformats", &reformats,
                       "arena_bytes", &arena, "weighed", &weighed, "cut", &cut) != 0)
        return unpack_failed(&wrong, err);
    *t = (struct engine_trade){.cost = cost,
                               .at_least = at_least,
                               .reformats = (size_t)reformats,
                               .arena_bytes = arena,
                               .weighed = (size_t)weighed,
                               .cut = cut};
    return STRATA_OK;
}

static int read_totals(struct engine_stored *s, strata_error *err)
{
    json_error_t wrong;
    json_t *trade;
    const char *costs;
    json_int_t objective, bound, nodes;
    int dirty, proved, complete;
    if (json_unpack_ex(s->plan, &wrong, 0, "{s:b, s:I, s:I, s:b, s:I, s:s, s:b, s:o}",
                       "pads_any", &dirty, "objective", &objective, "bound", &bound,
                       "proved", &proved, "nodes", &nodes, "costs", &costs,
                       "costs_complete", &complete, "least_time", &trade) != 0)
        return unpack_failed(&wrong, err);
    int kind = index_of(costs, cost_kinds, ARRAY_LENGTH(cost_kinds));
    if (kind < 0)
        return error_set(err, STRATA_EPARSE, "costs '%s' are unknown", costs);
    s->any_dirty = dirty;
    s->objective = objective;
    s->bound = bound;
    s->proved = proved;
    s->nodes = (uint64_t)nodes;
    s->costs = (struct cost_report){.kind = (enum cost_kind)kind, .complete = complete};
    return read_trade(&s->trade, trade, err);
}

static int read_decisions(struct engine_stored *s, const strata_network *net,
                          const struct engine_plugin *plugins, size_t n_plugins,
                          strata_error *err)
{
    const json_t *list = json_object_get(s->plan, "decisions");
    if (json_array_size(list) != net->n_layers)
        return error_set(err, STRATA_EPARSE, "%zu decisions for %zu layers",
                         json_array_size(list), net->n_layers);
    s->decisions = zalloc(net->n_layers, sizeof *s->decisions, "the plan", err);
    int status = s->decisions ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++) {
        status = read_decision(&s->decisions[i], json_array_get(list, i), &net->layers[i],
                               plugins, n_plugins, err);
        if (status != STRATA_OK)
            error_prefix(err, "decision of layer '%s'", net->layers[i].name);
    }
    return status;
}

static int read_conversions(struct engine_stored *s, const strata_network *net,
                            strata_error *err)
{
    const json_t *list = json_object_get(s->plan, "conversions");
    struct names tensors = {0};
    int status = STRATA_OK;
    size_t n = json_array_size(list);
    s->conversions = zalloc(n, sizeof *s->conversions, "the plan", err);
    if (!s->conversions)
        return STRATA_ENOMEM;
    for (size_t t = 0; t < net->n_tensors && status == STRATA_OK; t++)
        status = names_put(&tensors, net->tensors[t].name, (int)t, err);
    for (; s->n_conversions < n && status == STRATA_OK; s->n_conversions++) {
        status = read_conversion(&s->conversions[s->n_conversions],
                                 json_array_get(list, s->n_conversions), &tensors, err);
        if (status != STRATA_OK)
            error_prefix(err, "conversion %zu", s->n_conversions);
    }
    names_free(&tensors);
    return status;
}

/* Plans for the other batches are as the first, without such plans of their own. */
static int read_smaller(struct engine_stored *s, const strata_network *net,
                        const struct engine_plugin *plugins, size_t n_plugins,
                        strata_error *err)
{
    const json_t *list = json_object_get(s->plan, "smaller");
    const size_t n = json_array_size(list),
                 needed = net->n_batches ? net->n_batches - 1 : 0;
    int status = STRATA_OK;
    if (n != needed)
        return error_set(err, STRATA_EPARSE,
                         "%zu plans for smaller batches, the network has %zu", n, needed);
    if (!(s->smaller = zalloc(n, sizeof *s->smaller, "the plan", err)))
        return STRATA_ENOMEM;
    for (; s->n_smaller < n && status == STRATA_OK; s->n_smaller++) {
        struct engine_stored *small = zalloc(1, sizeof *small, "the plan", err);
        if (!small)
            return STRATA_ENOMEM;
        s->smaller[s->n_smaller] = small;
        small->plan = json_incref(json_array_get(list, s->n_smaller));
        small->math = s->math;
        if ((status = read_totals(small, err)) == STRATA_OK &&
            (status = read_decisions(small, net, plugins, n_plugins, err)) == STRATA_OK)
            status = read_conversions(small, net, err);
        if (status != STRATA_OK)
            error_prefix(err, "smaller batch %zu", s->n_smaller);
    }
    return status;
}

int engine_read_plan(struct engine_stored *s, const strata_network *net,
                     const struct engine_plugin *plugins, size_t n_plugins,
                     strata_error *err)
{
    int status = read_totals(s, err);
    if (status == STRATA_OK)
        status = read_decisions(s, net, plugins, n_plugins, err);
    if (status == STRATA_OK)
        status = read_conversions(s, net, err);
    if (status == STRATA_OK)
        status = read_smaller(s, net, plugins, n_plugins, err);
    if (status != STRATA_OK)
        error_prefix(err, "section '" SECTION_PLAN "'");
    return status;
}

void engine_stored_free(struct engine_stored *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_smaller; i++)
        engine_stored_free(s->smaller[i]);
    free(s->smaller);
    json_decref(s->plan);
    free(s->decisions);
    free(s->conversions);
    engine_file_close(&s->file);
    free(s);
}
