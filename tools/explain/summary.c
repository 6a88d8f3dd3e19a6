/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines below the table of steps: what a run takes, whether the plan is proved, and
 * what another objective than time gave up.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>

const char *const explain_cost_sources[] = {
    [COSTS_ANALYTIC] = "analytic",
    [COSTS_MEASURE] = "measured",
    [COSTS_FILE] = "recorded",
};

/* What another objective than time gave up, and for what. */
static void print_trade(const strata_engine *e)
{
    const struct planner_trade *t = &e->planner->trade;
    const struct build_options *b = &e->network->build;
    if (b->objective == OBJECTIVE_TIME)
        return;
    tool_print("chosen for %s", planner_objective_names[b->objective]);
    if (b->objective == OBJECTIVE_MEMORY)
        tool_print(" among %zu plan%s within %g %% of the least time%s", t->weighed,
                   t->weighed == 1 ? "" : "s", b->memory_slack,
                   t->cut ? " (of more: see build.memory_plans)" : "");
    tool_print("; the plan of least time takes %s%.1f us, %zu reformats, %.2f MiB\n",
               t->at_least ? "at least " : "", explain_microseconds(t->cost),
               t->reformats, (double)t->arena_bytes / 1048576);
}

/* How far a plan may be from the best one that its objective asks for. */
static void print_proof(const strata_engine *e)
{
    const struct plan *p = e->planner->plan;
    if (p->proved)
        tool_print(", plan proved optimal");
    else if (e->network->build.objective == OBJECTIVE_REFORMATS)
        tool_print(", plan not proved: see build.plan_nodes");
    else if (e->network->build.objective == OBJECTIVE_TIME)
        tool_print(", plan at most %.2f %% above the best: see build.plan_nodes",
                   100 * plan_gap(p));
}

/* Inputs that a full batch's requests send to the device as halves. On the host nothing
 * travels. */
static void print_rounded(const struct execution *x)
{
    for (size_t i = 0; i < x->n_inputs && x->device != STRATA_HOST; i++) {
        const struct execution_binding *b = &x->bindings[i];
        if (engine_sends_halves(x, i, (uint64_t)x->values[b->value].bytes))
            tool_print(
                "input %s: all who read it round it to FP16, so requests of %d MiB "
                "or more from memory that is not pinned travel as halves\n",
                b->name, ENGINE_HALVES >> 20);
    }
}

/* What the plan is without, though it costs more so by the prices. */
static void print_left(const struct planner *planner)
{
    for (size_t i = 0; i < planner->n_left; i++) {
        char *text = planner_left_text(&planner->left[i]);
        tool_print("%s\n", text ? text : "no memory");
        free(text);
    }
}

void explain_print_summary(const strata_engine *e)
{
    const struct planner *planner = e->planner;
    const struct execution *x = e->execution;
    tool_print("\n%zu nodes, %zu reformats, %zu re-labels, %zu layers that run nothing; "
               "predicted %.1f us",
               x->n_nodes, planner->plan->n_reformats, explain_relabels(x),
               explain_erased(planner), explain_microseconds(execution_predicts(x)));
    if (x->in_place)
        tool_print(", timed in place; the prices add up to %.1f us",
                   explain_microseconds(x->cost));
    tool_print(", of which %.1f us reformat (%s costs",
               explain_microseconds(planner->plan->conversion_cost),
               explain_cost_sources[planner->costs.kind]);
    print_proof(e);
    tool_print(
        ")\nweights %.2f MiB; memory per context %.2f MiB, at least %.2f MiB alive at "
        "once\n",
        (double)e->weight_bytes / 1048576, (double)x->arena_bytes / 1048576,
        (double)x->arena_bound / 1048576);
    print_rounded(x);
    print_trade(e);
    print_left(planner);
    explain_print_wishes(e);
}
