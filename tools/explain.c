/* SPDX-License-Identifier: Apache-2.0
 *
 * strata explain: what the planner chose for each layer, and why each reformat stands.
 */
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

enum { OPTION_REFUSED = TOOL_OWN, OPTION_FUSIONS };

static const struct option options[] = {
    {"refused", no_argument, NULL, OPTION_REFUSED},
    {"fusions", no_argument, NULL, OPTION_FUSIONS},
    {0},
};

static const struct {
    const char *name, *text;
} reasons[] = {
    [PLAN_HARD] = {"HARD", "the producer writes no format that the reader reads"},
    [PLAN_FIXED_IO] = {"FIXED-IO", "the format of a network input or output is fixed"},
    [PLAN_PADDING] = {"PADDING", "the reader needs pad lanes of zero"},
    [PLAN_ECONOMIC] = {"ECONOMIC", "converting costs less than avoiding it"},
};

static double microseconds(int64_t cost)
{
    return (double)cost / PLAN_UNIT_PER_NS / 1e3;
}

static const char *value_format(const strata_engine *e, int value)
{
    const struct engine_value *v = &e->values[value];
    return format_mask_name(UINT64_C(1) << v->format, v->desc.rank);
}

/* "fp32:nchw fp32:nchw" shortens to "fp32:nchw". */
static void value_formats(char *text, size_t size, const strata_engine *e,
                          const int *values, int n)
{
    size_t used = 0;
    bool same = true;
    text[0] = '\0';
    for (int i = 1; i < n; i++)
        same &= e->values[values[i]].format == e->values[values[0]].format;
    for (int i = 0; i < (same && n ? 1 : n) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 value_format(e, values[i]));
}

static void add_node_row(struct table *t, const strata_engine *e,
                         const struct engine_step *s)
{
    const struct engine_node *n = &e->nodes[s->node];
    char in[256], out[256], dims[128] = "";
    value_formats(in, sizeof in, e, n->in_values, n->n_in);
    value_formats(out, sizeof out, e, n->out_values, n->n_out);
    if (n->n_out)
        tool_dims(dims, sizeof dims, e->values[n->out_values[0]].desc.dims,
                  e->values[n->out_values[0]].desc.rank);
    table_cell(t, "%s", n->name);
    table_cell(t, "%s", n->layer->type->layer.name);
    table_cell(t, "%s", n->impl->impl.name);
    table_cell(t, "%s", in);
    table_cell(t, "%s", out);
    table_cell(t, "%s", dims);
    table_cell(t, "%.1f", microseconds(s->cost));
    table_cell(t, "%s", "");
}

/* Readers of a value, by name. */
static void readers(char *text, size_t size, const strata_engine *e, int value)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < e->n_nodes; i++)
        for (int k = 0; k < e->nodes[i].n_in && used < size; k++)
            if (e->nodes[i].in_values[k] == value)
                used += (size_t)snprintf(text + used, size - used, "%s%s",
                                         used ? ", " : "", e->nodes[i].name);
    for (size_t i = e->n_inputs; i < e->n_bindings && used < size; i++)
        if (e->bindings[i].value == value)
            used += (size_t)snprintf(text + used, size - used, "%soutput %s",
                                     used ? ", " : "", e->bindings[i].name);
}

static void add_reformat_row(struct table *t, const strata_engine *e,
                             const struct engine_step *s)
{
    const struct engine_value *to = &e->values[s->to];
    char dims[128], who[512];
    tool_dims(dims, sizeof dims, to->desc.dims, to->desc.rank);
    readers(who, sizeof who, e, s->to);
    table_cell(t, "%s for %s", e->network->tensors[to->tensor].name, who);
    table_cell(t, "%s", s->kind == STEP_RELABEL ? "(re-label)" : "REFORMAT");
    table_cell(t, "%s", "");
    table_cell(t, "%s", value_format(e, s->from));
    table_cell(t, "%s", value_format(e, s->to));
    table_cell(t, "%s", dims);
    table_cell(t, "%.1f", microseconds(s->cost));
    table_cell(t, "%s: %s", reasons[s->reason].name, reasons[s->reason].text);
}

static void print_steps(const strata_engine *e, int format)
{
    static const char *const columns[] = {"name",   "layer", "impl", "reads",
                                          "writes", "shape", "us",   "why"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 6);
    for (size_t i = 0; i < e->n_steps; i++)
        if (e->steps[i].kind == STEP_RUN)
            add_node_row(&t, e, &e->steps[i]);
        else
            add_reformat_row(&t, e, &e->steps[i]);
    table_print(&t, format, stdout);
    table_close(&t);
}

static const char *const cost_sources[] = {
    [COSTS_ANALYTIC] = "analytic",
    [COSTS_MEASURE] = "measured",
    [COSTS_FILE] = "recorded",
};

static void print_summary(const strata_engine *e)
{
    size_t reformats = 0, relabels = 0;
    for (size_t i = 0; i < e->n_steps; i++) {
        reformats += e->steps[i].kind == STEP_REFORMAT;
        relabels += e->steps[i].kind == STEP_RELABEL;
    }
    printf("\n%zu nodes, %zu reformats, %zu re-labels; predicted %.1f us, of which "
           "%.1f us reformat (%s costs%s)\n",
           e->n_nodes, reformats, relabels, microseconds(e->plan->cost),
           microseconds(e->plan->conversion_cost), cost_sources[e->costs.kind],
           e->plan->proved ? ", plan proved optimal" : "");
    printf("weights %.2f MiB; memory per context %.2f MiB, at least %.2f MiB alive at "
           "once\n",
           (double)e->weight_bytes / 1048576, (double)e->arena_bytes / 1048576,
           (double)e->arena_bound / 1048576);
}

static void print_fusions(const strata_engine *e, int format)
{
    static const char *const columns[] = {"layer", "fused", "into", "why"};
    struct table t;
    bool any = false;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < e->n_fusions; i++) {
        const struct engine_fusion *f = &e->fusions[i];
        if (!f->reason)
            continue;
        any = true;
        table_cell(&t, "%s", e->network->layers[i].name);
        table_cell(&t, "%s", f->done ? f->into < 0 ? "erased" : "yes" : "no");
        table_cell(&t, "%s",
                   f->done && f->into >= 0 ? e->network->layers[f->into].name : "");
        table_cell(&t, "%s", f->done && f->into >= 0 ? "" : f->reason);
    }
    if (any) {
        printf("\n");
        table_print(&t, format, stdout);
    }
    table_close(&t);
}

static void print_refused(const strata_engine *e, int format)
{
    static const char *const columns[] = {"name", "impl", "row", "reads", "why not"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 2);
    for (size_t i = 0; i < e->model->n_candidates; i++) {
        const struct engine_candidate *c = &e->model->candidates[i];
        if (!c->reason)
            continue;
        bool whole = c->row < 0 || (c->in_formats[0] == 0 && c->out_formats[0] == 0);
        table_cell(&t, "%s", e->network->layers[c->node].name);
        table_cell(&t, "%s", c->impl->impl.name);
        table_cell(&t, c->row < 0 ? "%.0d" : "%d", c->row < 0 ? 0 : c->row);
        table_cell(&t, "%s",
                   whole ? "" : format_mask_name(UINT64_C(1) << c->in_formats[0], 4));
        table_cell(&t, "%s", c->reason);
    }
    printf("\n");
    table_print(&t, format, stdout);
    table_close(&t);
}

static int run_explain(int argc, char **argv)
{
    struct tool_options o = {0};
    struct tool_session s = {0};
    strata_error err;
    bool refused = false, fusions = false;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
        refused |= option == OPTION_REFUSED;
        fusions |= option == OPTION_FUSIONS;
    }
    if (o.help) {
        code = tool_help(&tool_explain);
    } else if (argc - optind != 1) {
        code = tool_usage(&tool_explain, "one network file is needed");
    } else if (tool_open_engine(&s, &o, argv[optind], &err) != STRATA_OK) {
        code = tool_fail(&err);
    } else {
        print_steps(s.engine, o.format);
        if (o.format == TABLE_TEXT || o.format == TABLE_MARKDOWN)
            print_summary(s.engine);
        if (fusions)
            print_fusions(s.engine, o.format);
        if (refused)
            print_refused(s.engine, o.format);
    }
done:
    tool_close(&s);
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_explain = {
    .name = "explain",
    .summary = "Show the plan: each layer's impl and formats, why each reformat stands",
    .usage = "NET.ini [OPTION...]",
    .help =
        "Options:\n"
        "      --fusions  also each layer that was or might have been fused, and why "
        "not\n"
        "      --refused  also every impl that could not be used, and why\n\n"
        "Reasons of reformats: HARD, no common format; FIXED-IO, a network input or\n"
        "output; PADDING, pad lanes are cleared; ECONOMIC, avoidable at a higher cost.\n"
        "\nExamples:\n"
        "  strata explain examples/digits/digits.ini\n"
        "  strata explain net.ini --set build.precision=fp16 -o md\n",
    .run = run_explain,
};
