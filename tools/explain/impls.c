/* SPDX-License-Identifier: Apache-2.0
 *
 * strata explain --impls=LAYER: every way to run one layer, what it costs, and what the
 * best plan with it would. So the author of an impl sees why it was taken, or was not.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>
#include <string.h>

/* A choice of the layer, with the least cost of a plan that makes it. */
struct way {
    size_t choice;
    int64_t plan; /* PLAN_INFINITE: none */
};

static int no_layer(const char *layer, const char *const *names, size_t n,
                    strata_error *err)
{
    const char *near = suggest(layer, names, n);
    return error_set(err, STRATA_ENOTFOUND,
                     "--impls: the network has no layer '%s'%s%s%s", layer,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int explain_look_for(const void *layer, const strata_network *net, strata_error *err)
{
    const char **names = zalloc(net->n_layers, sizeof *names, "names of layers", err);
    bool may_be = false;
    if (!names)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < net->n_layers; i++) {
        names[i] = net->layers[i].name;
        may_be |= strstr(layer, names[i]) != NULL;
    }
    int status = may_be ? STRATA_OK : no_layer(layer, names, net->n_layers, err);
    free(names);
    return status;
}

static int find_op(int *op, const strata_engine *e, const char *layer, strata_error *err)
{
    const struct plan_problem *p = &e->planner->model->problem;
    const char **names = zalloc(p->n_ops, sizeof *names, "names of layers", err);
    size_t n = 0;
    if (!names)
        return STRATA_ENOMEM;
    for (*op = 0; *op < (int)p->n_ops; ++*op) {
        const struct plan_op *o = &p->ops[*op];
        if (o->choices->impl < 0) /* a network input or output */
            continue;
        if (strcmp(o->name, layer) == 0)
            break;
        names[n++] = o->name;
    }
    int status = *op == (int)p->n_ops ? no_layer(layer, names, n, err) : STRATA_OK;
    free(names);
    return status;
}

/* Every other choice of the operation is banned; the last ban is the question's. */
static int cost_with(int64_t *cost, const strata_engine *e, int op, size_t choice,
                     strata_error *err)
{
    const struct planner *planner = e->planner;
    const struct plan_op *o = &planner->model->problem.ops[op];
    struct plan_options options = planner->plan_options;
    const size_t given = options.n_bans;
    struct plan_ban *bans =
        zalloc(given + o->n_choices, sizeof *bans, "a question about the plan", err);
    if (!bans)
        return STRATA_ENOMEM;
    if (given)
        memcpy(bans, options.bans, given * sizeof *bans);
    for (size_t k = 0; k < o->n_choices; k++)
        if (k != choice)
            bans[options.n_bans++] =
                (struct plan_ban){PLAN_BAN_CHOICE, -1, op, -1, (int)k};
    int status = STRATA_OK;
    *cost = planner->plan->cost;
    if (options.n_bans > given) {
        options.bans = bans;
        const struct plan_ban *last = &bans[--options.n_bans];
        status = plan_cost_without(cost, &planner->model->problem, &options, last, err);
    }
    free(bans);
    return status;
}

static int by_plan(const void *a, const void *b)
{
    const struct way *x = a, *y = b;
    if (x->plan != y->plan)
        return x->plan < y->plan ? -1 : 1;
    return x->choice < y->choice ? -1 : x->choice > y->choice;
}

static void module_cell(struct table *t, const struct planner_candidate *c)
{
    const char *path = c->impl ? module_info(c->impl->module).path : "";
    const char *slash = strrchr(path, '/');
    table_cell(t, "%s", slash ? slash + 1 : path);
}

static void labels_cell(struct table *t, const strata_engine *e, int op,
                        const struct plan_choice *c, bool output)
{
    const struct plan_op *o = &e->planner->model->problem.ops[op];
    char text[256] = "", name[64];
    int before = -1;
    for (int i = 0; i < (output ? o->n_out : o->n_in); i++) {
        const int label = output ? plan_out_label(c, i) : plan_in_label(c, i);
        if (label == before) /* ports that are alike are told once */
            continue;
        explain_label(name, sizeof name, e->planner, output ? o->out[i] : o->in[i],
                      label);
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", name);
        before = label;
    }
    table_cell(t, "%s", text);
}

static void why_cell(struct table *t, const strata_engine *e, const struct way *w,
                     bool chosen)
{
    const struct planner *planner = e->planner;
    const bool by_time = e->network->build.objective == OBJECTIVE_TIME;
    const int64_t more = w->plan - (by_time ? planner->plan->cost : planner->trade.cost);
    if (chosen)
        table_cell(t, "chosen");
    else if (w->plan >= PLAN_INFINITE)
        table_cell(t, "no plan has it");
    else if (more == 0)
        table_cell(t, "a plan with it is %sas fast",
                   planner->costs.unknown ? "at best " : "");
    else
        table_cell(t, "a plan with it takes %s%.1f us more",
                   planner->costs.unknown ? "at least " : "", explain_microseconds(more));
}

static void add_way(struct table *t, const strata_engine *e, int op, const struct way *w)
{
    const struct plan_choice *c = &e->planner->model->problem.ops[op].choices[w->choice];
    const struct planner_candidate *k = &e->planner->model->candidates[c->impl];
    table_cell(t, "%s", explain_impl(e->planner, c));
    module_cell(t, k);
    labels_cell(t, e, op, c, false);
    labels_cell(t, e, op, c, true);
    table_cell(t, "%zu", explain_fused(e->planner, c));
    table_cell(t, "%.1f", explain_microseconds(c->cost));
    table_cell(t, "%s",
               k->bounded ? "at least" : explain_cost_sources[e->planner->costs.kind]);
    why_cell(t, e, w, e->planner->plan->choices[op] == w->choice);
}

/* Impls for other devices are no news. */
static bool is_refused(const strata_engine *e, const struct planner_candidate *c,
                       int node)
{
    return c->node == node && c->reason && c->impl &&
           c->impl->impl.device == e->handle->properties.kind;
}

static void add_refused(struct table *t, const struct planner_candidate *c)
{
    const bool whole = c->row < 0 || (c->in_formats[0] == 0 && c->out_formats[0] == 0);
    table_cell(t, "%s", c->impl->impl.name);
    module_cell(t, c);
    table_cell(t, "%s",
               whole ? "" : format_mask_name(UINT64_C(1) << c->in_formats[0], 4));
    for (int i = 0; i < 4; i++)
        table_cell(t, "%s", "");
    table_cell(t, "refused: %s", c->reason);
}

int explain_print_impls(const strata_engine *e, const char *layer, int format,
                        strata_error *err)
{
    const struct planner *planner = e->planner;
    static const char *const columns[] = {"impl",  "module", "reads", "writes",
                                          "fused", "us",     "cost",  "why"};
    struct way *ways = NULL;
    struct table t;
    int op, status = find_op(&op, e, explain_merged_name(e, layer), err);
    if (status != STRATA_OK)
        return status;
    const struct plan_op *o = &planner->model->problem.ops[op];
    const int node = planner->model->candidates[o->choices->impl].node;
    if (!(ways = zalloc(o->n_choices, sizeof *ways, "ways to run a layer", err)))
        return STRATA_ENOMEM;
    for (size_t k = 0; k < o->n_choices && status == STRATA_OK; k++) {
        ways[k].choice = k;
        status = cost_with(&ways[k].plan, e, op, k, err);
    }
    if (status != STRATA_OK)
        goto done;
    qsort(ways, o->n_choices, sizeof *ways, by_plan);
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 4 | 1 << 5);
    for (size_t k = 0; k < o->n_choices; k++)
        add_way(&t, e, op, &ways[k]);
    for (size_t i = 0; i < planner->model->n_candidates; i++)
        if (is_refused(e, &planner->model->candidates[i], node))
            add_refused(&t, &planner->model->candidates[i]);
    table_print(&t, format, stdout);
    table_close(&t);
done:
    free(ways);
    return status;
}
