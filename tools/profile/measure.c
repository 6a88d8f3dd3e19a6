/* SPDX-License-Identifier: Apache-2.0
 *
 * The times of a profile. Unwatched runs come first, each between two events: they are
 * what the sum of the steps is held against.
 */
#include "tools/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "engine/context/context.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* us of whole runs, each waited for, into us[first] and on. */
static int time_whole(double *us, size_t first, size_t end, strata_context *c,
                      strata_error *err)
{
    strata_event *from = NULL, *to = NULL;
    double ms = 0;
    int status = strata_event_create(&from, c->handle, err);
    if (status == STRATA_OK)
        status = strata_event_create(&to, c->handle, err);
    if (status == STRATA_OK)
        status = strata_context_prepare(c, err);
    for (size_t i = first; i < end && status == STRATA_OK; i++) {
        status = strata_event_record(from, c->stream, err);
        if (status == STRATA_OK)
            status = strata_context_enqueue(c, NULL, err);
        if (status == STRATA_OK)
            status = strata_event_record(to, c->stream, err);
        if (status == STRATA_OK)
            status = strata_context_wait(c, err);
        if (status == STRATA_OK)
            status = strata_event_elapsed(&ms, from, to, err);
        us[i] = ms * 1e3;
    }
    strata_event_destroy(from);
    strata_event_destroy(to);
    return status;
}

static void note_step(void *user, const strata_engine *engine, int step, double begin,
                      double took)
{
    struct profile *p = user;
    (void)engine;
    (void)begin;
    if (p->told < p->runs)
        p->rows[step].us[p->told] = took;
}

/* Watched runs up to the one numbered `end`; one more comes first, and is not kept. */
static int watch(struct profile *p, strata_context *c, size_t end, bool ranges,
                 strata_error *err)
{
    const strata_profiler profiler = {
        .struct_size = sizeof profiler, .step = note_step, .user = p, .ranges = ranges};
    const size_t first = p->told;
    int status = strata_context_set_profiler(c, &profiler, err);
    if (status == STRATA_OK)
        status = strata_context_run(c, err); /* overwritten by the next */
    for (p->told = first; p->told < end && status == STRATA_OK; p->told++)
        status = strata_context_run(c, err);
    const int ended = strata_context_set_profiler(c, NULL, status ? NULL : err);
    return status != STRATA_OK ? status : ended;
}

/* Before the rows' times are sorted; us has room for one a run. */
static void sum_runs(struct profile *p, double *us)
{
    for (size_t i = 0; i < p->runs; i++) {
        us[i] = 0;
        for (size_t row = 0; row < p->n; row++)
            us[i] += p->rows[row].us[i];
    }
    p->watched_us = median(us, p->runs);
}

/* All three kinds in turns, so that what else the machine does meets them alike. */
static int measure(struct profile *p, strata_context *c, bool ranges, strata_error *err)
{
    enum { TURNS = 5 };
    double *us = zalloc(2 * p->runs, sizeof *us, "times", err), *stepped = us + p->runs;
    int status = us ? STRATA_OK : STRATA_ENOMEM;
    for (size_t turn = 0; turn < TURNS && status == STRATA_OK; turn++) {
        const size_t first = p->runs * turn / TURNS, end = p->runs * (turn + 1) / TURNS;
        status = time_whole(us, first, end, c, err);
        if (status == STRATA_OK && p->graph)
            status = strata_context_use_graph(c, 0, err);
        if (status == STRATA_OK)
            status = time_whole(stepped, first, end, c, err);
        if (status == STRATA_OK)
            status = watch(p, c, end, ranges, err);
        if (status == STRATA_OK && p->graph)
            status = strata_context_use_graph(c, 1, err);
    }
    if (status == STRATA_OK) {
        /* without graphs they are alike */
        p->whole_us = median(us, p->graph ? p->runs : 2 * p->runs);
        p->stepped_us = p->graph ? median(stepped, p->runs) : p->whole_us;
        sum_runs(p, us);
    }
    free(us);
    return status;
}

static int make_rows(struct profile *p, strata_error *err)
{
    p->n = (size_t)strata_engine_steps(p->engine);
    p->rows = zalloc(p->n, sizeof *p->rows, "a profile", err);
    int status = p->rows ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < p->n && status == STRATA_OK; i++) {
        p->rows[i].step.struct_size = sizeof p->rows[i].step;
        status = strata_engine_step(p->engine, (int)i, &p->rows[i].step, err);
        p->rows[i].us = zalloc(p->runs, sizeof *p->rows[i].us, "a profile", err);
        if (!p->rows[i].us)
            status = STRATA_ENOMEM;
    }
    return status;
}

static void summarise(struct profile *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct profile_row *r = &p->rows[i];
        r->median = median(r->us, p->runs);
        r->low = r->us[p->runs / 10];
        r->high = r->us[p->runs - 1 - p->runs / 10];
        p->sum_us += r->median;
    }
}

int profile_measure(struct profile *p, strata_context *c, size_t runs, bool ranges,
                    strata_error *err)
{
    *p = (struct profile){.engine = c->active->engine, .handle = c->handle, .runs = runs};
    p->graph = c->use_graph;
    int status = make_rows(p, err);
    if (status == STRATA_OK)
        status = measure(p, c, ranges, err);
    if (status == STRATA_OK)
        summarise(p);
    return status;
}

void profile_free(struct profile *p)
{
    for (size_t i = 0; p->rows && i < p->n; i++)
        free(p->rows[i].us);
    free(p->rows);
}

const char *profile_module(const struct profile_row *r)
{
    const char *path = r->step.module ? r->step.module : "";
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

double profile_roofline(const struct profile_row *r)
{
    return r->median > 0 ? r->step.floor_us / r->median : 0;
}
