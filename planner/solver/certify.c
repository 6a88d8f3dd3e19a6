/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates: the search is run again, without ties, for anything cheaper than the
 * plan, and writes down each step; and their text.
 */
#include "planner/solver/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/stream.h"

/* ---- making ------------------------------------------------------------------------ */

static int copy_plan(struct plan_certificate *c, const struct plan_problem *p,
                     const struct plan *plan, strata_error *err)
{
    c->choices = zalloc(p->n_ops, sizeof *c->choices, "a certificate", err);
    c->steps = zalloc(plan->n_steps, sizeof *c->steps, "a certificate", err);
    if (!c->choices || !c->steps)
        return STRATA_ENOMEM;
    memcpy(c->choices, plan->choices, p->n_ops * sizeof *c->choices);
    if (plan->n_steps)
        memcpy(c->steps, plan->steps, plan->n_steps * sizeof *c->steps);
    c->n_choices = p->n_ops;
    c->n_steps = plan->n_steps;
    c->objective = plan->objective;
    return STRATA_OK;
}

static int prove(struct plan_certificate *c, const struct plan_model *m,
                 const struct plan_options *o, strata_error *err)
{
    struct pbqp_search s = {.err = err, .best = c->objective, .record = true};
    struct plan_graph g = {0};
    if (plan_graph_is_relaxed(m) || plan_graph_is_large(m))
        return error_set(err, STRATA_EUNSUPPORTED,
                         "a tensor may have too many sets of formats to prove the plan");
    s.max_nodes = o ? o->max_nodes : 0;
    s.deadline = o && o->max_seconds > 0 ? plan_seconds() + o->max_seconds : 0;
    int status = plan_graph_build(&g, m, &s);
    if (status == STRATA_OK)
        status = pbqp_search(&s, &g.pb);
    if (status == STRATA_OK && s.found)
        status = error_set(err, STRATA_EMISMATCH, "there is a better plan");
    if (status == STRATA_OK && s.stopped)
        status = error_set(err, STRATA_EPLAN, "the limit ended the proof");
    if (status == STRATA_OK) {
        c->proof = s.proof;
        c->n_proof = s.n_proof;
        s.proof = NULL;
    }
    plan_graph_close(&g);
    pbqp_search_close(&s);
    return status;
}

int plan_certify(struct plan_certificate **out, const struct plan_problem *p,
                 const struct plan_options *options, const struct plan *plan,
                 strata_error *err)
{
    struct plan_model m = {0};
    struct plan_certificate *c = zalloc(1, sizeof *c, "a certificate", err);
    int status = c ? plan_model_open(&m, p, options, err) : STRATA_ENOMEM;
    if (status == STRATA_OK) {
        m.shift = 0;
        memset(m.tie, 0, m.first[p->n_ops] * sizeof *m.tie);
        status = copy_plan(c, p, plan, err);
    }
    if (status == STRATA_OK)
        status = prove(c, &m, options, err);
    if (status == STRATA_OK) {
        *out = c;
        c = NULL;
    }
    plan_certificate_free(c);
    plan_model_close(&m);
    return status;
}

void plan_certificate_free(struct plan_certificate *c)
{
    if (!c)
        return;
    free(c->choices);
    free(c->steps);
    free(c->proof);
    free(c);
}

/* ---- text -------------------------------------------------------------------------- */

static const struct {
    const char *word;
    int numbers; /* fixed ones; shift tells its own rest */
} lines[PLAN_PROOF_KINDS] = {
    [PLAN_PROOF_ELIMINATE] = {"eliminate", 1}, [PLAN_PROOF_NORMALISE] = {"normalise", 2},
    [PLAN_PROOF_DOMINATE] = {"dominate", 3},   [PLAN_PROOF_PRUNE] = {"prune", 2},
    [PLAN_PROOF_SHIFT] = {"shift", 4},         [PLAN_PROOF_BRANCH] = {"branch", 2},
    [PLAN_PROOF_LEAF] = {"leaf", 1},
};

static size_t line_numbers(const int64_t *w)
{
    size_t n = (size_t)lines[w[0]].numbers;
    return w[0] == PLAN_PROOF_SHIFT ? n + (size_t)w[3] + (size_t)w[4] : n;
}

static void print(FILE *f, const struct plan_certificate *c)
{
    fprintf(f, "strata-plan-certificate 1\nobjective %" PRId64 "\nchoices %zu",
            c->objective, c->n_choices);
    for (size_t i = 0; i < c->n_choices; i++)
        fprintf(f, " %zu", c->choices[i]);
    fprintf(f, "\nsteps %zu\n", c->n_steps);
    for (size_t i = 0; i < c->n_steps; i++)
        fprintf(f, "step %d %d %d %" PRId64 "\n", c->steps[i].tensor, c->steps[i].from,
                c->steps[i].to, c->steps[i].cost);
    for (size_t at = 0; at < c->n_proof;) {
        const int64_t *w = c->proof + at;
        size_t n = line_numbers(w);
        fprintf(f, "%s", lines[w[0]].word);
        for (size_t i = 1; i <= n; i++)
            fprintf(f, " %" PRId64, w[i]);
        fprintf(f, "\n");
        at += 1 + n;
    }
    fprintf(f, "end\n");
}

int plan_certificate_write(char **text, const struct plan_certificate *c,
                           strata_error *err)
{
    size_t size;
    FILE *f = text_stream(text, &size);
    if (f)
        print(f, c);
    if (!f || !text_finish(f, text))
        return error_no_memory(err, size, "a certificate's text");
    return STRATA_OK;
}

struct reader {
    const char *at;
    int line;
    strata_error *err;
};

static int malformed(const struct reader *r, const char *wanted)
{
    return error_set(r->err, STRATA_EPARSE, "certificate, line %d: %s expected", r->line,
                     wanted);
}

static bool accept_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0 || (r->at[n] != ' ' && r->at[n] != '\n'))
        return false;
    r->at += n;
    return true;
}

static bool read_number(struct reader *r, int64_t *out)
{
    char *end;
    if (r->at[0] != ' ' || (r->at[1] != '-' && (r->at[1] < '0' || r->at[1] > '9')))
        return false;
    *out = strtoll(r->at + 1, &end, 10);
    bool fine = end > r->at + 1;
    r->at = end;
    return fine;
}

static bool end_line(struct reader *r)
{
    if (*r->at != '\n')
        return false;
    r->at++;
    r->line++;
    return true;
}

static int read_count(struct reader *r, const char *word, size_t *out)
{
    int64_t n;
    if (!accept_word(r, word) || !read_number(r, &n) || n < 0 ||
        (size_t)n > strlen(r->at))
        return malformed(r, word);
    *out = (size_t)n;
    return STRATA_OK;
}

static int read_plan(struct reader *r, struct plan_certificate *c)
{
    int64_t n;
    if (!accept_word(r, "strata-plan-certificate") || !read_number(r, &n) || n != 1 ||
        !end_line(r))
        return malformed(r, "strata-plan-certificate 1");
    if (!accept_word(r, "objective") || !read_number(r, &c->objective) || !end_line(r))
        return malformed(r, "objective");
    int status = read_count(r, "choices", &c->n_choices);
    if (status != STRATA_OK)
        return status;
    if (!(c->choices = zalloc(c->n_choices, sizeof *c->choices, "a certificate", r->err)))
        return STRATA_ENOMEM;
    for (size_t i = 0; i < c->n_choices; i++) {
        if (!read_number(r, &n) || n < 0)
            return malformed(r, "a choice");
        c->choices[i] = (size_t)n;
    }
    return end_line(r) ? STRATA_OK : malformed(r, "the end of the choices");
}

static int read_steps(struct reader *r, struct plan_certificate *c)
{
    int status = read_count(r, "steps", &c->n_steps);
    if (status != STRATA_OK)
        return status;
    if (!end_line(r))
        return malformed(r, "a line's end");
    if (!(c->steps = zalloc(c->n_steps, sizeof *c->steps, "a certificate", r->err)))
        return STRATA_ENOMEM;
    for (size_t i = 0; i < c->n_steps; i++) {
        int64_t n[4];
        bool fine = accept_word(r, "step");
        for (int k = 0; k < 4 && fine; k++)
            fine = read_number(r, &n[k]) && (k == 3 || (n[k] >= 0 && n[k] < INT32_MAX));
        if (!fine || !end_line(r))
            return malformed(r, "step");
        c->steps[i].tensor = (int)n[0];
        c->steps[i].from = (int)n[1];
        c->steps[i].to = (int)n[2];
        c->steps[i].cost = n[3];
    }
    return STRATA_OK;
}

static int append(struct reader *r, struct plan_certificate *c, size_t *capacity,
                  int64_t word)
{
    int status = grow(&c->proof, capacity, c->n_proof, sizeof *c->proof, r->err);
    if (status == STRATA_OK)
        c->proof[c->n_proof++] = word;
    return status;
}

static int read_line(struct reader *r, struct plan_certificate *c, size_t *capacity)
{
    int64_t kind = 0, n, left;
    while (kind < PLAN_PROOF_KINDS && !accept_word(r, lines[kind].word))
        kind++;
    if (kind == PLAN_PROOF_KINDS)
        return malformed(r, "a step of the proof, or end,");
    int status = append(r, c, capacity, kind);
    left = lines[kind].numbers;
    for (int64_t i = 0; i < left && status == STRATA_OK; i++) {
        if (!read_number(r, &n))
            return malformed(r, "a number");
        status = append(r, c, capacity, n);
        if (kind != PLAN_PROOF_SHIFT || i < 2 || i > 3)
            continue;
        if (n < 0 || n > INT32_MAX)
            return malformed(r, "a count");
        left += n;
    }
    if (status == STRATA_OK && !end_line(r))
        return malformed(r, "a line's end");
    return status;
}

int plan_certificate_read(struct plan_certificate **out, const char *text,
                          strata_error *err)
{
    struct reader r = {text, 1, err};
    size_t capacity = 0;
    struct plan_certificate *c = zalloc(1, sizeof *c, "a certificate", err);
    int status = STRATA_ENOMEM;
    if (c && (status = read_plan(&r, c)) == STRATA_OK)
        status = read_steps(&r, c);
    while (status == STRATA_OK && !accept_word(&r, "end"))
        status = read_line(&r, c, &capacity);
    if (status == STRATA_OK && (!end_line(&r) || *r.at))
        status = malformed(&r, "nothing after end");
    if (status == STRATA_OK) {
        *out = c;
        c = NULL;
    }
    plan_certificate_free(c);
    return status;
}
