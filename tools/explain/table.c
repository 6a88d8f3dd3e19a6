/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as tables: the steps, and on request tensors, reformats and refused impls.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "io/stream.h"

static const char *const reasons[] = {
    [PLAN_HARD] = "the producer writes no format that the reader reads",
    [PLAN_FIXED_IO] = "the format of a network input or output is fixed",
    [PLAN_PADDING] = "the reader needs pad lanes of zero",
    [PLAN_ECONOMIC] = "converting costs less than avoiding it",
};

/* ---- steps ------------------------------------------------------------------------ */

const char *explain_value_format(const strata_engine *e, int value)
{
    const struct execution_value *v = &e->execution->values[value];
    return format_mask_name(UINT64_C(1) << v->format, v->desc.rank);
}

/* "fp32:nchw fp32:nchw" shortens to "fp32:nchw". */
static void value_formats(char *text, size_t size, const strata_engine *e,
                          const int *values, int n)
{
    const struct execution *x = e->execution;
    size_t used = 0;
    bool same = true;
    text[0] = '\0';
    for (int i = 1; i < n; i++)
        same &= x->values[values[i]].format == x->values[values[0]].format;
    for (int i = 0; i < (same && n ? 1 : n) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 explain_value_format(e, values[i]));
}

/* By the price, and in place where the plan was timed. */
static void cost_cells(struct table *t, const struct execution *x,
                       const struct execution_step *s)
{
    table_cell(t, "%.1f", explain_microseconds(s->cost));
    if (x->in_place)
        table_cell(t, "%.1f", explain_microseconds(s->in_place));
}

static void add_node_row(struct table *t, const strata_engine *e,
                         const struct execution_step *s)
{
    const struct execution *x = e->execution;
    const struct execution_node *n = &x->nodes[s->node];
    char in[256], out[256], dims[128] = "", inside[EXPLAIN_INSIDE];
    if (s->once)
        snprintf(inside, sizeof inside, "with the engine, once");
    else
        explain_inside(inside, e, n);
    value_formats(in, sizeof in, e, n->in_values, n->n_in);
    value_formats(out, sizeof out, e, n->out_values, n->n_out);
    if (n->n_out)
        tool_dims(dims, sizeof dims, x->values[n->out_values[0]].desc.dims,
                  x->values[n->out_values[0]].desc.rank);
    table_cell(t, "%s", n->name);
    table_cell(t, "%s", n->layer->type->layer.name);
    table_cell(t, "%s", n->impl->impl.name);
    table_cell(t, "%s", in);
    table_cell(t, "%s", out);
    table_cell(t, "%s", dims);
    cost_cells(t, x, s);
    table_cell(t, "%s", inside);
}

/* "conv2, output prob and 3 more" */
struct names {
    char text[256];
    size_t used, n;
};
enum { NAMES_SHOWN = 3 };

static void add_name(struct names *l, const char *kind, const char *name)
{
    const size_t left = sizeof l->text - l->used;
    if (l->n++ >= NAMES_SHOWN || left <= 1)
        return;
    int n = snprintf(l->text + l->used, left, "%s%s%s", l->n > 1 ? ", " : "", kind, name);
    l->used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left - 1;
}

/* Of each value, where its readers begin in the list of nodes, and the last step that
 * leaves it or a part of it to a layer that runs nothing. */
struct uses {
    size_t *first; /* n_values + 2 while it is made */
    int *nodes, *erased;
};

static void close_uses(struct uses *u)
{
    free(u->first);
    free(u->nodes);
    free(u->erased);
}

/* A node that reads a value twice is there twice, side by side. */
static int list_readers(struct uses *u, const struct execution *x, strata_error *err)
{
    size_t total = 0;
    u->first = zalloc(x->n_values + 2, sizeof *u->first, "a table", err);
    if (!u->first)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_nodes; total += (size_t)x->nodes[i++].n_in)
        for (int k = 0; k < x->nodes[i].n_in; k++)
            u->first[x->nodes[i].in_values[k] + 2]++;
    for (size_t v = 2; v < x->n_values + 2; v++)
        u->first[v] += u->first[v - 1];
    if (!(u->nodes = zalloc(total, sizeof *u->nodes, "a table", err)))
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_nodes; i++)
        for (int k = 0; k < x->nodes[i].n_in; k++)
            u->nodes[u->first[x->nodes[i].in_values[k] + 1]++] = (int)i;
    return STRATA_OK;
}

/* Who reads a value. */
static struct names find_readers(const strata_engine *e, const struct uses *u, int value)
{
    const struct execution *x = e->execution;
    struct names l = {.text = "the next conversion"};
    for (size_t i = u->first[value]; i < u->first[value + 1]; i++)
        if (i == u->first[value] || u->nodes[i] != u->nodes[i - 1])
            add_name(&l, "", x->nodes[u->nodes[i]].layer->name);
    for (size_t i = x->n_inputs; i < x->n_bindings; i++)
        if (x->bindings[i].value == value)
            add_name(&l, "output ", x->bindings[i].name);
    if (l.n > NAMES_SHOWN)
        snprintf(l.text + l.used, sizeof l.text - l.used, " and %zu more",
                 l.n - NAMES_SHOWN);
    return l;
}

bool explain_is_copy(const strata_engine *e, const struct execution_step *s)
{
    const struct execution *x = e->execution;
    return s->kind == STEP_REFORMAT &&
           x->values[s->from].format == x->values[s->to].format &&
           x->values[s->from].pad == x->values[s->to].pad;
}

static void add_reformat_why(struct table *t, const strata_engine *e,
                             const struct uses *u, const struct execution_step *s)
{
    const struct execution *x = e->execution;
    const struct execution_value *to = &x->values[s->to];
    const struct names who = find_readers(e, u, s->to);
    if (explain_is_copy(e, s) && to->stage == PLAN_HOME)
        table_cell(t, "to its place in %s",
                   e->network->tensors[x->values[to->alias].tensor].name);
    else if (explain_is_copy(e, s) && x->values[s->from].pitched)
        table_cell(t, "for %s, which takes it as one piece alone", who.text);
    else if (explain_is_copy(e, s))
        table_cell(t, "for %s: an output has memory of its own", who.text);
    else if (s->kind == STEP_RELABEL)
        table_cell(t, "for %s: both formats mean the same bytes", who.text);
    else
        table_cell(t, "for %s; %s: %s", who.text, explain_reason_name(s->reason),
                   reasons[s->reason]);
}

static void add_reformat_row(struct table *t, const strata_engine *e,
                             const struct uses *u, const struct execution_step *s)
{
    const struct execution_value *to = &e->execution->values[s->to];
    char dims[128];
    tool_dims(dims, sizeof dims, to->desc.dims, to->desc.rank);
    table_cell(t, "%s", e->network->tensors[to->tensor].name);
    table_cell(t, "%s",
               explain_is_copy(e, s)     ? "COPY"
               : s->kind == STEP_RELABEL ? "(re-label)"
                                         : "REFORMAT");
    table_cell(t, "%s", "");
    table_cell(t, "%s", explain_value_format(e, s->from));
    table_cell(t, "%s", explain_value_format(e, s->to));
    table_cell(t, "%s", dims);
    cost_cells(t, e->execution, s);
    add_reformat_why(t, e, u, s);
}

static int find_uses(struct uses *u, const strata_engine *e, strata_error *err)
{
    const struct execution *x = e->execution;
    u->erased = zalloc(x->n_values, sizeof *u->erased, "a table", err);
    for (size_t i = 0; u->erased && i < x->n_steps; i++)
        if (execution_erases(x, &x->steps[i]))
            u->erased[x->steps[i].to] = (int)i;
    return u->erased ? list_readers(u, x, err) : STRATA_ENOMEM;
}

static void add_erased_row(struct table *t, const strata_engine *e,
                           const struct execution_step *s)
{
    const struct execution *x = e->execution;
    const struct execution_value *to = &x->values[s->to];
    const int index = e->network->tensors[to->tensor].producer;
    const struct network_layer *layer = &e->network->layers[index];
    const struct plan_choice *c =
        plan_chosen(&e->planner->model->problem, e->planner->plan->choices,
                    (int)e->network->n_inputs + index);
    char dims[128];
    tool_dims(dims, sizeof dims, to->desc.dims, to->desc.rank);
    table_cell(t, "%s", layer->name);
    table_cell(t, "%s", layer->type->layer.name);
    table_cell(t, "%s", explain_impl(e->planner, c));
    table_cell(t, "%s", explain_value_format(e, s->from));
    table_cell(t, "%s", explain_value_format(e, s->to));
    table_cell(t, "%s", dims);
    cost_cells(t, x, s);
    table_cell(t, "%s",
               e->planner->fusions[index].reason ? e->planner->fusions[index].reason
                                                 : "");
}

int explain_print_steps(const strata_engine *e, int format, strata_error *err)
{
    struct uses u = {0};
    const struct execution *x = e->execution;
    static const char *const priced[] = {"name",   "layer", "impl", "reads",
                                         "writes", "shape", "us",   "why"};
    static const char *const timed[] = {"name",  "layer", "impl",     "reads", "writes",
                                        "shape", "price", "in place", "why"};
    struct table t;
    int status = find_uses(&u, e, err);
    if (x->in_place)
        table_open(&t, timed, ARRAY_LENGTH(timed), 1 << 6 | 1 << 7);
    else
        table_open(&t, priced, ARRAY_LENGTH(priced), 1 << 6);
    for (size_t i = 0; i < x->n_steps && status == STRATA_OK; i++) {
        const struct execution_step *s = &x->steps[i];
        if (s->kind == STEP_RUN)
            add_node_row(&t, e, s);
        else if (!execution_erases(x, s))
            add_reformat_row(&t, e, &u, s);
        else if (u.erased[s->to] == (int)i)
            add_erased_row(&t, e, s);
    }
    if (status == STRATA_OK)
        table_print(&t, format, stdout);
    table_close(&t);
    close_uses(&u);
    return status;
}

void explain_print_wishes(const strata_engine *e)
{
    struct names l = {.text = ""};
    for (size_t i = 0; i < e->network->n_layers && e->network->build.formats; i++)
        if (!planner_wish_holds(e->network, &e->network->layers[i]))
            add_name(&l, "", e->network->layers[i].name);
    if (l.n > 0)
        tool_print(
            "build.formats does not hold for %s%s: a tensor there can have none of "
            "them\n",
            l.text, l.n > NAMES_SHOWN ? " and others" : "");
}

/* ---- details
 * --------------------------------------------------------------------------- */

/* Takes the text. */
static void owned_cell(struct table *t, char *text)
{
    table_cell(t, "%s", text ? text : "");
    t->failed |= !text;
    free(text);
}

/* "fp32:nchw, fp16:nhwc8": every value of a tensor. */
static void materialised(char *text, size_t size, const strata_engine *e, int tensor)
{
    const struct execution *x = e->execution;
    size_t used = 0;
    text[0] = '\0';
    for (size_t v = 0; v < x->n_values && used < size; v++)
        if (x->values[v].tensor == tensor)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     explain_value_format(e, (int)v));
}

/* "conv2 fp16:nhwc8, output prob fp32:nchw" */
static void wanted(struct table *t, const strata_engine *e, int tensor)
{
    const struct plan_problem *p = &e->planner->model->problem;
    uint64_t labels = plan_wanted(p, e->planner->plan->choices, &p->tensors[tensor]);
    char *text = NULL;
    size_t size;
    const char *gap = "";
    FILE *f = text_stream(&text, &size);
    for (int l = 0; f && l < p->n_labels; l++) {
        if (!(labels & UINT64_C(1) << l))
            continue;
        char *who = explain_readers(e->planner, tensor, l);
        char *what = explain_labels(e->planner, tensor, UINT64_C(1) << l);
        fprintf(f, "%s%s: %s", gap, what ? what : "", who ? who : "");
        gap = "; ";
        t->failed |= !who || !what;
        free(who);
        free(what);
    }
    owned_cell(t, f ? text_finish(f, &text) : NULL);
}

void explain_print_tensors(const strata_engine *e, int format)
{
    static const char *const columns[] = {"tensor",   "by",           "impl",
                                          "produced", "materialised", "wanted"};
    const struct plan_problem *p = &e->planner->model->problem;
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct plan_tensor *tensor = &p->tensors[i];
        const struct plan_choice *c =
            plan_chosen(p, e->planner->plan->choices, tensor->producer);
        char name[2 * FORMAT_NAME_SIZE], all[512];
        explain_label(name, sizeof name, e->planner, (int)i,
                      plan_out_label(c, tensor->port));
        materialised(all, sizeof all, e, e->planner->model->tensor_of[i]);
        table_cell(&t, "%s", tensor->name);
        table_cell(&t, "%s", p->ops[tensor->producer].name);
        table_cell(&t, "%s", explain_impl(e->planner, c));
        table_cell(&t, "%s", name);
        table_cell(&t, "%s", all);
        wanted(&t, e, (int)i);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

/* Four lines for each, which a table has no room for. */
static void print_sentences(const strata_engine *e, const struct explain *x)
{
    for (size_t i = 0; i < x->n_reformats; i++) {
        const struct explain_reformat *r = &x->reformats[i];
        char *from =
            explain_labels(e->planner, r->step.tensor, UINT64_C(1) << r->step.from);
        char *to = explain_labels(e->planner, r->step.tensor, UINT64_C(1) << r->step.to);
        char *why = explain_why(e->planner, r), *cost = explain_forbidding(e->planner, r);
        char *remedy = explain_remedy_text(e->planner, r);
        if (from && to && why && cost && remedy)
            tool_print("%s: %s -> %s, %.1f us, %s\n  %s\n  %s\n  %s\n",
                       e->planner->model->problem.tensors[r->step.tensor].name, from, to,
                       explain_microseconds(r->step.cost), explain_reason_name(r->reason),
                       why, cost, remedy);
        free(from);
        free(to);
        free(why);
        free(cost);
        free(remedy);
    }
}

void explain_print_reformats(const strata_engine *e, const struct explain *x, int format)
{
    static const char *const columns[] = {
        "tensor", "from", "to",         "us",
        "reason", "why",  "without it", "what would remove it"};
    struct table t;
    if (format == TABLE_TEXT && x->n_reformats == 0)
        tool_print("no reformat is needed\n");
    if (format == TABLE_TEXT) {
        print_sentences(e, x);
        return;
    }
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 3);
    for (size_t i = 0; i < x->n_reformats; i++) {
        const struct explain_reformat *r = &x->reformats[i];
        table_cell(&t, "%s", e->planner->model->problem.tensors[r->step.tensor].name);
        owned_cell(
            &t, explain_labels(e->planner, r->step.tensor, UINT64_C(1) << r->step.from));
        owned_cell(&t,
                   explain_labels(e->planner, r->step.tensor, UINT64_C(1) << r->step.to));
        table_cell(&t, "%.1f", explain_microseconds(r->step.cost));
        table_cell(&t, "%s", explain_reason_name(r->reason));
        owned_cell(&t, explain_why(e->planner, r));
        owned_cell(&t, explain_forbidding(e->planner, r));
        owned_cell(&t, explain_remedy_text(e->planner, r));
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

void explain_print_fusions(const strata_engine *e, int format)
{
    const struct planner *planner = e->planner;
    static const char *const columns[] = {"layer", "fused", "into", "why"};
    struct table t;
    bool any = false;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < planner->n_fusions; i++) {
        const struct planner_fusion *f = &planner->fusions[i];
        if (!f->reason)
            continue;
        any = true;
        table_cell(&t, "%s", e->network->layers[i].name);
        table_cell(&t, "%s", f->done ? f->into < 0 ? "erased" : "yes" : "no");
        table_cell(&t, "%s",
                   f->done && f->into >= 0 ? e->network->layers[f->into].name : "");
        table_cell(&t, "%s", f->reason);
    }
    if (any)
        table_print(&t, format, stdout);
    else if (format == TABLE_TEXT)
        tool_print("no layer could be fused into another, or erased\n");
    table_close(&t);
}

/* Of an impl that no network could use on this device. */
static bool is_elsewhere(const strata_engine *e, const struct planner_candidate *c)
{
    return planner_runs(c) && c->impl->impl.device != e->handle->properties.kind;
}

void explain_print_refused(const strata_engine *e, int format)
{
    const struct planner *planner = e->planner;
    static const char *const columns[] = {"name", "impl", "row", "reads", "why not"};
    const bool text = format == TABLE_TEXT;
    struct table t;
    size_t elsewhere = 0;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 2);
    for (size_t i = 0; i < planner->model->n_candidates; i++) {
        const struct planner_candidate *c = &planner->model->candidates[i];
        if (!c->reason)
            continue;
        elsewhere += is_elsewhere(e, c);
        if (text && is_elsewhere(e, c))
            continue;
        bool whole = c->row < 0 || (c->in_formats[0] == 0 && c->out_formats[0] == 0);
        table_cell(&t, "%s", e->network->layers[c->node].name);
        table_cell(&t, "%s", explain_candidate(c));
        table_cell(&t, c->row < 0 ? "%.0d" : "%d", c->row < 0 ? 0 : c->row);
        table_cell(&t, "%s",
                   whole ? "" : format_mask_name(UINT64_C(1) << c->in_formats[0], 4));
        table_cell(&t, "%s", c->reason);
    }
    table_print(&t, format, stdout);
    if (text && elsewhere)
        tool_print("and %zu for other devices (-o csv lists them)\n", elsewhere);
    table_close(&t);
}
