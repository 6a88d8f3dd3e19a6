/* SPDX-License-Identifier: Apache-2.0
 *
 * Every impl and row over the cases: once for the values, once under guard.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/test/test.h"

static void note_agreement(const struct trial *t, void *user)
{
    struct check_child *c = user;
    check_place_at(t, c);
    if (t->agreement && !strstr(c->report->note, "agreement only"))
        check_note(c, "agreement only: the layer gives no " STRATA_REFERENCE_V1);
}

/* Add the impls that ran nowhere to the note. */
static void note_untested(struct check_child *c, const struct harness_tally *tally)
{
    const int device = c->handle ? c->handle->properties.kind : STRATA_HOST;
    char *note = c->report->note;
    const size_t size = sizeof c->report->note;
    const char *lead = "not tested, as all that was tried is vetoed:";
    for (size_t i = 0; i < c->layer->n_impls; i++) {
        const struct registry_impl *impl = &c->layer->impls[i];
        const size_t used = strlen(note);
        if (tally[i].runs > 0 || impl->impl.device != device || !c->target.wants(impl, c))
            continue;
        snprintf(note + used, size - used, "%s%s %s", used && *lead ? "; " : "", lead,
                 impl->impl.name);
        lead = "";
    }
}

static bool has_tried(const struct check_child *c)
{
    return c->report->runs > 0 || c->report->n_findings > 0;
}

/* Whether each impl that was asked said that it is not for this machine: of one case is
 * enough, which another machine would have run. */
static bool is_elsewhere(const struct check_child *c, const struct harness_tally *tally)
{
    bool elsewhere = false;
    for (size_t i = 0; tally && i < c->layer->n_impls; i++) {
        if (tally[i].vetoed > 0 && tally[i].lacking == 0)
            return false;
        elsewhere = elsewhere || tally[i].lacking > 0;
    }
    return elsewhere;
}

/* Nothing ran; with the last impl's reason, if it gave one. */
static void find_untested(struct check_child *c, const struct harness_tally *tally)
{
    const char *veto = "";
    c->report->place = (struct check_place){0};
    for (size_t i = 0; tally && i < c->layer->n_impls; i++)
        veto = tally[i].veto[0] ? tally[i].veto : veto;
    if (is_elsewhere(c, tally)) {
        snprintf(c->report->skip, sizeof c->report->skip,
                 "this machine runs none of its impls: %s", veto);
        return;
    }
    veto = veto[0] ? veto : c->cases.refusal;
    check_found(c, "untested",
                "every impl vetoes, or the layer refuses, what was tried; give "
                "attributes and shapes with --attrs and --shape, or a network of the "
                "file's name with .ini%s%s",
                veto[0] ? ". The last refusal: " : "", veto);
}

void check_values(struct check_child *c)
{
    struct harness_tally *tally = calloc(c->layer->n_impls + 1, sizeof *tally);
    c->target.plain = true;
    c->target.place = note_agreement;
    c->target.tally = tally;
    if (c->cases.own_note[0])
        check_note(c, "%s", c->cases.own_note);
    cases_run(c, CASES_ALL);
    if (!has_tried(c) && !is_elsewhere(c, tally))
        cases_run(c, CASES_REST);
    c->target.tally = NULL;
    if (!has_tried(c))
        find_untested(c, tally);
    else if (tally && c->report->runs > 0) /* what is found says why nothing ran */
        note_untested(c, tally);
    free(tally);
}

/* ---- memory
 * ------------------------------------------------------------------------------ */

/* What the values' test tells is not told twice. */
static void memory_problem(const struct trial *t, const char *rule, const char *text,
                           void *user)
{
    if (strcmp(rule, "value-wrong") != 0 && strcmp(rule, "run-failed") != 0 &&
        strncmp(rule, "reference-", 10) != 0)
        check_problem(t, rule, text, user);
}

/* An engine made for a batch also runs smaller ones, in the same workspace. */
static void compare_workspace(struct trial *t, int row)
{
    struct harness_node single = {.mirror = t->node.mirror,
                                  .phase = t->node.phase,
                                  .in_dtype = t->node.in_dtype,
                                  .weight_dtype = t->node.weight_dtype};
    struct harness_shape in[HARNESS_INPUTS];
    struct session large = {0}, small = {0};
    const int n_in = t->node.node.n_in;
    size_t large_bytes = 0, small_bytes = 0;
    if (!t->impl->impl.workspace || n_in == 0 || t->node.in[0].dims[0] < 2)
        return;
    for (int i = 0; i < n_in; i++) {
        in[i].rank = t->node.in[i].rank;
        memcpy(in[i].dims, t->node.in[i].dims, sizeof in[i].dims);
        in[i].dims[0] = 1;
    }
    int status =
        harness_open(&single, t->node.layer, t->attrs, in, n_in, NULL, t->c->absent);
    single.node.device = t->node.node.device;
    single.node.sm = t->node.node.sm;
    if (status == STRATA_OK)
        status = trial_session(t, &large, row);
    if (status == STRATA_OK)
        status = session_size(&large, &large_bytes);
    session_free(&large);
    if (status == STRATA_OK)
        status = session_make(&small, &single, t->impl, row, &t->formats,
                              (const void *const *)t->v.in,
                              (const void *const *)t->v.weight, NULL);
    if (status == STRATA_OK)
        status = session_size(&small, &small_bytes);
    session_free(&small);
    if (status == STRATA_OK && small_bytes > large_bytes) {
        session_fault(&small, "workspace-grows", "%zu bytes for batch %lld, %zu for 1",
                      large_bytes, (long long)t->node.in[0].dims[0], small_bytes);
        trial_session_problem(t, &small, "workspace-grows");
    }
    harness_close(&single);
}

void check_memory(struct check_child *c)
{
    c->target.problem = memory_problem;
    cases_run(c, CASES_FIRST);
    c->target.visit = compare_workspace;
    cases_run(c, CASES_FEW);
}
