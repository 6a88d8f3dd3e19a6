/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers about a plan as sentences, in the user's names.
 */
#include "planner/explain/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/stream.h"

static const char *const reason_names[] = {
    [PLAN_HARD] = "HARD",
    [PLAN_FIXED_IO] = "FIXED-IO",
    [PLAN_PADDING] = "PADDING",
    [PLAN_ECONOMIC] = "ECONOMIC",
};

const char *explain_reason_name(enum plan_reason reason)
{
    return reason_names[reason];
}

double explain_microseconds(int64_t cost)
{
    return (double)cost / PLAN_UNIT_PER_NS / 1e3;
}

const char *explain_in_us(char out[TEXT_REAL], int64_t cost)
{
    return text_fixed(out, 1, explain_microseconds(cost));
}

/* ---- names ------------------------------------------------------------------------ */

static int rank_of(const struct planner *planner, int tensor)
{
    return planner->network->tensors[planner->model->tensor_of[tensor]].rank;
}

void explain_label(char *text, size_t size, const struct planner *planner, int tensor,
                   int label)
{
    const struct plan_label *l = &planner->model->problem.labels[label];
    snprintf(text, size, "%s%s%s",
             format_mask_name(UINT64_C(1) << l->format, rank_of(planner, tensor)),
             l->pad == STRATA_PAD_ANY ? " (pads any)" : "",
             l->stage == PLAN_PLAIN      ? ""
             : l->stage == PLAN_HOME     ? " (joined)"
             : l->stage == PLAN_NONE     ? " (unused)"
             : l->stage == PLAN_CUT      ? " (sliced)"
             : l->stage == PLAN_ANYWHERE ? " (anywhere)"
                                         : " (fused)");
}

/* Without the labels that only the planner knows, if there are others. */
static uint64_t plain_labels(const struct planner *planner, uint64_t labels)
{
    const struct plan_problem *p = &planner->model->problem;
    uint64_t plain = 0;
    for (int l = 0; l < p->n_labels; l++)
        if (p->labels[l].stage == PLAN_PLAIN)
            plain |= UINT64_C(1) << l;
    return labels & plain ? labels & plain : labels;
}

const char *explain_candidate(const struct planner_candidate *c)
{
    static const char *const kinds[] = {[CANDIDATE_ABSORBED] = "(fused)",
                                        [CANDIDATE_ALIAS] = "(alias)",
                                        [CANDIDATE_JOIN] = "(joined)",
                                        [CANDIDATE_UNREAD] = "(unread)"};
    return planner_runs(c) ? c->impl->impl.name : kinds[c->kind];
}

const char *explain_impl(const struct planner *planner, const struct plan_choice *c)
{
    return c->impl < 0 ? "(bound)"
                       : explain_candidate(&planner->model->candidates[c->impl]);
}

size_t explain_fused(const struct planner *planner, const struct plan_choice *c)
{
    const struct planner_candidate *k =
        c->impl < 0 ? NULL : &planner->model->candidates[c->impl];
    return k ? planner_fused(planner, k) : 0;
}

static void put_labels(FILE *f, const struct planner *planner, int tensor,
                       uint64_t labels)
{
    char name[2 * FORMAT_NAME_SIZE];
    const char *gap = "";
    labels = plain_labels(planner, labels);
    for (int l = 0; l < planner->model->problem.n_labels; l++)
        if (labels & UINT64_C(1) << l) {
            explain_label(name, sizeof name, planner, tensor, l);
            fprintf(f, "%s%s", gap, name);
            gap = ", ";
        }
}

char *explain_labels(const struct planner *planner, int tensor, uint64_t labels)
{
    char *text = NULL;
    size_t size;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    put_labels(f, planner, tensor, labels);
    return text_finish(f, &text);
}

/* "conv1", "input x", "output prob" */
static void put_op(FILE *f, const struct planner *planner, int op)
{
    const struct plan_op *o = &planner->model->problem.ops[op];
    const char *kind = o->choices->impl >= 0 ? "" : o->n_in == 0 ? "input " : "output ";
    fprintf(f, "%s%s", kind, o->name);
}

/* The labels of one side, once where they agree. */
static void put_ports(FILE *f, const struct planner *planner, const struct plan_op *o,
                      const struct plan_choice *c, bool output)
{
    int n = output ? o->n_out : o->n_in;
    uint64_t all = 0;
    for (int i = 0; i < n; i++)
        all |= UINT64_C(1) << (output ? plan_out_label(c, i) : plan_in_label(c, i));
    if ((all & (all - 1)) == 0)
        n = n > 1 ? 1 : n;
    for (int i = 0; i < n; i++) {
        int label = output ? plan_out_label(c, i) : plan_in_label(c, i);
        fputs(i ? " " : "", f);
        put_labels(f, planner, output ? o->out[i] : o->in[i], UINT64_C(1) << label);
    }
}

static void put_choice(FILE *f, const struct planner *planner, int op, size_t choice)
{
    const struct plan_op *o = &planner->model->problem.ops[op];
    const struct plan_choice *c = &o->choices[choice];
    if (c->impl >= 0)
        fprintf(f, "%s ", explain_impl(planner, c));
    fputs("in ", f);
    put_ports(f, planner, o, c, o->n_in == 0);
    bool both = o->n_in > 0 && o->n_out > 0;
    if (both && plan_in_label(c, 0) != plan_out_label(c, 0)) {
        fputs(" to ", f);
        put_ports(f, planner, o, c, true);
    }
}

static void put_readers(FILE *f, const struct planner *planner, int tensor, int label)
{
    const struct plan_problem *p = &planner->model->problem;
    const struct plan_tensor *t = &p->tensors[tensor];
    const char *gap = "";
    int last = -1;
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_reader *r = &t->readers[i];
        int wanted =
            plan_in_label(plan_chosen(p, planner->plan->choices, r->op), r->port);
        if ((label >= 0 && wanted != label) || r->op == last)
            continue;
        fputs(gap, f);
        put_op(f, planner, last = r->op);
        gap = ", ";
    }
    if (!*gap && label >= 0)
        fputs("a further conversion", f);
}

char *explain_readers(const struct planner *planner, int tensor, int label)
{
    char *text = NULL;
    size_t size;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    put_readers(f, planner, tensor, label);
    return text_finish(f, &text);
}

/* ---- sentences -------------------------------------------------------------------- */

/* "conv1 writes {fp32:nchw, fp32:nhwc}", "input x is bound as fp32:nchw" */
static void put_formats(FILE *f, const struct planner *planner, int tensor,
                        uint64_t labels, bool bound, const char *verb)
{
    fprintf(f, bound ? " is bound as " : " %s {", verb);
    put_labels(f, planner, tensor, labels);
    fputs(bound ? "" : "}", f);
}

static bool is_bound(const struct planner *planner, int op)
{
    return planner->model->problem.ops[op].choices->impl < 0;
}

/* Whether a reader that wants the label is a network output. */
static bool bound_reader(const struct planner *planner, const struct plan_step *s)
{
    const struct plan_problem *p = &planner->model->problem;
    const struct plan_tensor *t = &p->tensors[s->tensor];
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_reader *r = &t->readers[i];
        const struct plan_choice *c = plan_chosen(p, planner->plan->choices, r->op);
        if (plan_in_label(c, r->port) == s->to && is_bound(planner, r->op))
            return true;
    }
    return false;
}

static void put_why(FILE *f, const struct planner *planner,
                    const struct explain_reformat *r)
{
    const struct plan_tensor *t = &planner->model->problem.tensors[r->step.tensor];
    if (r->reason == PLAN_PADDING) {
        put_readers(f, planner, r->step.tensor, r->step.to);
        fputs(" needs pad lanes of zero, which ", f);
        put_op(f, planner, t->producer);
        fputs(" leaves undefined", f);
        return;
    }
    put_op(f, planner, t->producer);
    put_formats(f, planner, r->step.tensor, r->written, is_bound(planner, t->producer),
                "writes");
    fputs("; ", f);
    put_readers(f, planner, r->step.tensor, r->step.to);
    put_formats(f, planner, r->step.tensor, r->read, bound_reader(planner, &r->step),
                "reads");
    fprintf(f, "%s",
            r->reason == PLAN_HARD       ? ": no common format"
            : r->reason == PLAN_ECONOMIC ? ": converting costs less than agreeing"
                                         : ": the network fixes the format of one end");
}

enum { CHANGES_SHOWN = 3 };

static void put_forbidding(FILE *f, const struct planner *planner,
                           const struct explain_reformat *r)
{
    char text[TEXT_REAL];
    if (!r->asked || !r->avoidable) {
        fputs(r->asked ? "no plan is without it"
                       : "not asked: only the dearest reformats are",
              f);
        return;
    }
    if (r->penalty == 0)
        fputs("forbidding it costs nothing", f);
    else
        fprintf(f, "forbidding it costs %s%s us", r->penalty > 0 ? "+" : "",
                explain_in_us(text, r->penalty));
    if (r->reformats)
        fprintf(f, " with %+" PRId64 " reformat%s", r->reformats,
                llabs(r->reformats) == 1 ? "" : "s");
    fputs(r->n_changes ? ": the next-best plan runs " : "", f);
    for (size_t i = 0; i < r->n_changes && i < CHANGES_SHOWN; i++) {
        fputs(i ? ", " : "", f);
        put_op(f, planner, r->changes[i].op);
        fputs(" as ", f);
        put_choice(f, planner, r->changes[i].op, r->changes[i].after);
    }
    if (r->n_changes > CHANGES_SHOWN)
        fprintf(f, ", and %zu others otherwise", r->n_changes - CHANGES_SHOWN);
}

static void put_remedy(FILE *f, const struct planner *planner,
                       const struct explain_reformat *r)
{
    const struct explain_remedy *m = &r->remedy;
    char text[TEXT_REAL];
    if (m->op < 0) {
        fputs(r->asked ? "no format of one operation removes it at a gain" : "not asked",
              f);
        return;
    }
    bool bound = is_bound(planner, m->op);
    fputs("if ", f);
    put_op(f, planner, m->op);
    if (m->n_ops > 1)
        fprintf(f, " and %d more", m->n_ops - 1);
    fputs(bound          ? " were bound as "
          : m->all_ports ? " ran in "
          : m->output    ? " wrote "
                         : " read ",
          f);
    put_labels(f, planner, r->step.tensor, UINT64_C(1) << m->label);
    if (!bound)
        fprintf(f, " in <= %s us", explain_in_us(text, m->cost));
    fprintf(f, ", the plan gains %s us", explain_in_us(text, m->gain));
    if (m->reformats > 0)
        fprintf(f, " and loses %" PRId64 " reformat%s", m->reformats,
                m->reformats == 1 ? "" : "s");
    else if (m->reformats < 0)
        fprintf(f, " with %" PRId64 " more reformats", -m->reformats);
}

static char *sentence(const struct planner *planner, const struct explain_reformat *r,
                      void (*put)(FILE *, const struct planner *,
                                  const struct explain_reformat *))
{
    char *text = NULL;
    size_t size;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    put(f, planner, r);
    return text_finish(f, &text);
}

char *explain_why(const struct planner *planner, const struct explain_reformat *r)
{
    return sentence(planner, r, put_why);
}

char *explain_forbidding(const struct planner *planner, const struct explain_reformat *r)
{
    return sentence(planner, r, put_forbidding);
}

char *explain_remedy_text(const struct planner *planner, const struct explain_reformat *r)
{
    return sentence(planner, r, put_remedy);
}
