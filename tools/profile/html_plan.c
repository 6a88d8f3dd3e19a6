/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan: its drawing, why each reformat stands, what was fused, and for each layer the
 * ways to compute it that lost.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/profile/profile.h"

int html_graph(const struct profile *p, const struct explain *x, FILE *out,
               strata_error *err)
{
    struct graph g;
    int status = graph_make(&g, p->engine, x, err);
    if (status != STRATA_OK)
        return status;
    fputs(
        "<section><h2>The planned network</h2><p class=\"sub\">Predicted times as heat, "
        "formats as the colours of edges, reformats in magenta; point at one for its "
        "reasons.</p><div class=\"wide\">\n",
        out);
    status = graph_write_svg(&g, p->engine, out, err);
    fputs("</div></section>\n", out);
    graph_free(&g);
    return status;
}

/* Takes the text. */
static void put_owned(char *text, const char *end, FILE *out)
{
    if (!text)
        tool_lose_output();
    html_text(text ? text : "", out);
    fputs(end, out);
    free(text);
}

/* Takes the text; a sentence begins large. */
static void put_sentence(char *text, const char *end, FILE *out)
{
    if (text && *text >= 'a' && *text <= 'z')
        *text = (char)(*text - 'a' + 'A');
    put_owned(text, end, out);
}

void html_reformats(const struct profile *p, const struct explain *x, FILE *out)
{
    const strata_engine *e = p->engine;
    fputs("<section><h2>Reformats</h2>", out);
    if (x->n_reformats == 0)
        fputs("<p class=\"sub\">There is none.</p>", out);
    else
        fputs("<table class=\"grid\"><tr><th>tensor</th><th>from</th><th>to</th><th "
              "class=\"n\">predicted µs</th><th>why it stands, what forbidding it costs, "
              "what would remove it</th></tr>\n",
              out);
    for (size_t i = 0; i < x->n_reformats; i++) {
        const struct explain_reformat *r = &x->reformats[i];
        fputs("<tr><td class=\"loud\">", out);
        html_text(e->planner->model->problem.tensors[r->step.tensor].name, out);
        fputs("</td><td>", out);
        put_owned(explain_labels(e->planner, r->step.tensor, UINT64_C(1) << r->step.from),
                  "</td><td>", out);
        put_owned(explain_labels(e->planner, r->step.tensor, UINT64_C(1) << r->step.to),
                  "</td>", out);
        fprintf(out, "<td class=\"n\">%.1f</td><td><b>%s</b>: ",
                explain_microseconds(r->step.cost), explain_reason_name(r->reason));
        put_owned(explain_why(e->planner, r), ". ", out);
        put_sentence(explain_forbidding(e->planner, r), ". ", out);
        put_sentence(explain_remedy_text(e->planner, r), ".</td></tr>\n", out);
    }
    fputs(x->n_reformats ? "</table></section>\n" : "</section>\n", out);
}

void html_fusions(const struct profile *p, FILE *out)
{
    const strata_engine *e = p->engine;
    bool any = false;
    fputs(
        "<section><h2>Fusions</h2><p class=\"sub\">Layers that were, or might have been, "
        "computed by another in its own pass.</p>",
        out);
    for (size_t i = 0; i < e->planner->n_fusions; i++) {
        const struct planner_fusion *f = &e->planner->fusions[i];
        if (!f->reason)
            continue;
        fputs(any ? ""
                  : "<table class=\"grid\"><tr><th>layer</th><th>fused</th><th>into"
                    "</th><th>why</th></tr>\n",
              out);
        any = true;
        fputs(f->done ? "<tr class=\"good\"><td>" : "<tr><td>", out);
        html_text(e->network->layers[i].name, out);
        fprintf(out, "</td><td>%s</td><td>",
                f->done ? f->into < 0 ? "erased" : "yes" : "no");
        html_text(f->done && f->into >= 0 ? e->network->layers[f->into].name : "", out);
        fputs("</td><td>", out);
        html_text(f->done && f->into >= 0 ? "" : f->reason, out);
        fputs("</td></tr>\n", out);
    }
    fputs(any ? "</table></section>\n" : "<p>There is nothing to fuse.</p></section>\n",
          out);
}

/* ---- impls --------------------------------------------------------------------------
 */

static int cheaper(const void *a, const void *b)
{
    const int64_t x = (*(const struct plan_choice *const *)a)->cost;
    const int64_t y = (*(const struct plan_choice *const *)b)->cost;
    return (x > y) - (x < y);
}

static void put_labels(const strata_engine *e, const struct plan_op *o,
                       const struct plan_choice *c, bool output, FILE *out)
{
    const int n = output ? o->n_out : o->n_in;
    char text[96], before[96] = "";
    for (int i = 0; i < n; i++) {
        explain_label(text, sizeof text, e->planner, output ? o->out[i] : o->in[i],
                      output ? plan_out_label(c, i) : plan_in_label(c, i));
        if (strcmp(text, before) == 0) /* of many alike one is enough */
            continue;
        fputs(i ? ", " : "", out);
        html_text(text, out);
        snprintf(before, sizeof before, "%s", text);
    }
}

static void put_choice(const strata_engine *e, const struct plan_op *o,
                       const struct plan_choice *c, const struct plan_choice *chosen,
                       FILE *out)
{
    const struct planner_candidate *k = &e->planner->model->candidates[c->impl];
    const int64_t more = c->cost - chosen->cost;
    fprintf(out, "<tr%s><td>", c == chosen ? " class=\"won\"" : "");
    html_text(explain_impl(e->planner, c), out);
    fprintf(out, "</td><td class=\"n\">%.0d</td><td>", k->row > 0 ? k->row : 0);
    put_labels(e, o, c, false, out);
    fputs("</td><td>", out);
    put_labels(e, o, c, true, out);
    fprintf(out, "</td><td class=\"n\">%zu</td><td class=\"n\">%.2f</td><td class=\"n\">",
            explain_fused(e->planner, c), explain_microseconds(c->cost));
    if (c != chosen)
        fprintf(out, "%+.2f", explain_microseconds(more));
    fprintf(out, "</td><td>%s</td></tr>\n",
            c == chosen ? "chosen"
            : more < 0  ? "dearer with its reformats"
                        : "slower");
}

static void put_refused(const strata_engine *e, int node, FILE *out)
{
    const struct planner *planner = e->planner;
    for (size_t i = 0; i < planner->model->n_candidates; i++) {
        const struct planner_candidate *c = &planner->model->candidates[i];
        if (!c->reason || c->node != node)
            continue;
        fputs("<tr class=\"out\"><td>", out);
        html_text(c->impl ? c->impl->impl.name : "", out);
        fputs("</td><td></td><td></td><td></td><td></td><td></td><td></td><td>refused: ",
              out);
        html_text(c->reason, out);
        fputs("</td></tr>\n", out);
    }
}

enum { MOST_CHOICES = 40 }; /* shown of one layer */

static void put_op(const strata_engine *e, size_t op, bool open, FILE *out)
{
    const struct plan_op *o = &e->planner->model->problem.ops[op];
    const struct plan_choice *chosen =
        plan_chosen(&e->planner->model->problem, e->planner->plan->choices, (int)op);
    const struct plan_choice **sorted =
        zalloc(o->n_choices, sizeof *sorted, "impls", NULL);
    if (!sorted) {
        tool_lose_output();
        return;
    }
    for (size_t i = 0; i < o->n_choices; i++)
        sorted[i] = &o->choices[i];
    qsort(sorted, o->n_choices, sizeof *sorted, cheaper);
    fputs(open ? "<details open><summary>" : "<details><summary>", out);
    html_text(o->name, out);
    fputs(" <span class=\"how\">", out);
    html_text(explain_impl(e->planner, chosen), out);
    fprintf(out, "</span><span class=\"n\">%zu ways, %.2f µs</span></summary>",
            o->n_choices, explain_microseconds(chosen->cost));
    fputs("<table class=\"grid\"><tr><th>impl</th><th class=\"n\">row</th><th>reads</th>"
          "<th>writes</th><th class=\"n\">fused</th><th class=\"n\">µs</th>"
          "<th class=\"n\">more</th><th></th></tr>\n",
          out);
    for (size_t i = 0; i < o->n_choices; i++)
        if (i < MOST_CHOICES || sorted[i] == chosen)
            put_choice(e, o, sorted[i], chosen, out);
    if (o->n_choices > MOST_CHOICES)
        fprintf(out,
                "<tr class=\"out\"><td colspan=\"8\">%zu in all; the cheapest %d are "
                "shown</td></tr>\n",
                o->n_choices, (int)MOST_CHOICES);
    put_refused(e, e->planner->model->candidates[chosen->impl].node, out);
    fputs("</table></details>\n", out);
    free(sorted);
}

void html_impls(const struct profile *p, FILE *out)
{
    const strata_engine *e = p->engine;
    const struct plan_problem *problem = &e->planner->model->problem;
    size_t dearest = 0;
    int64_t most = -1;
    for (size_t op = 0; op < problem->n_ops; op++) {
        const struct plan_choice *c =
            plan_chosen(problem, e->planner->plan->choices, (int)op);
        if (c->impl < 0 || c->cost <= most)
            continue;
        dearest = op;
        most = c->cost;
    }
    fputs("<section><h2>Impls</h2><p class=\"sub\">For each layer every way to compute "
          "it, the fastest first. A faster one that lost costs more with the reformats "
          "that it needs.</p>\n",
          out);
    for (size_t op = 0; op < problem->n_ops; op++)
        if (plan_chosen(problem, e->planner->plan->choices, (int)op)->impl >= 0)
            put_op(e, op, op == dearest, out);
    fputs("</section>\n", out);
}
