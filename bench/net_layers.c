/* SPDX-License-Identifier: Apache-2.0
 *
 * Each step of a run between two events, in the order and with the caches of a run; the
 * median of some runs, slowest first. Beside it the price that the plan was made from,
 * and the cost in place (0: not timed), both without what two events cost. `strata
 * profile` shows more, bench/plan/lost_time.py what is lost.
 */
#include "bench/net_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/samples.h"
#include "engine/engine.h"

enum { ROUNDS = 21 };

struct row {
    strata_step step;
    double price, in_place; /* us */
    double us[ROUNDS], median;
    int told;
};

static void note(void *user, const strata_engine *engine, int step, double begin,
                 double took)
{
    struct row *row = (struct row *)user + step;
    (void)engine;
    (void)begin;
    if (row->told < ROUNDS)
        row->us[row->told++] = took;
}

static int slowest_first(const void *a, const void *b)
{
    double x = ((const struct row *)a)->median, y = ((const struct row *)b)->median;
    return (x < y) - (x > y);
}

/* core::Convolution@1 without the namespace and version. */
static void print_type(char out[32], const strata_step *s)
{
    const char *from = s->layer ? strstr(s->layer, "::") : NULL;
    snprintf(out, 32, "%s", from ? from + 2 : s->layer ? s->layer : "-");
    out[strcspn(out, "@")] = '\0';
}

static void print_row(const struct row *r, double sum)
{
    const strata_step *s = &r->step;
    char formats[64], type[32];
    snprintf(formats, sizeof formats, "%s > %s", s->from, s->to);
    print_type(type, s);
    fprintf(stderr,
            "# %9.2f %5.1f%% %9.2f %9.2f %9.2f %5.0f%% %9.3f %9.3f  %-14s %-27s %-16s "
            "%s\n",
            r->median, 100 * r->median / sum, r->price, r->in_place, s->floor_us,
            100 * s->floor_us / r->median, s->bytes * 1e-6, s->operations * 1e-9,
            s->impl ? s->impl : "(reformat)", formats, type, s->name);
}

static void print_rows(struct row *rows, int n)
{
    double sum = 0, floors = 0, prices = 0, in_place = 0;
    for (int i = 0; i < n; i++) {
        qsort(rows[i].us, ROUNDS, sizeof *rows[i].us, by_value);
        rows[i].median = rows[i].us[ROUNDS / 2];
        sum += rows[i].median;
        floors += rows[i].step.floor_us;
        prices += rows[i].price;
        in_place += rows[i].in_place;
    }
    qsort(rows, (size_t)n, sizeof *rows, slowest_first);
    fprintf(stderr, "# %9s %6s %9s %9s %9s %6s %9s %9s  %-14s %-27s %-16s %s\n", "us",
            "share", "price us", "place us", "floor us", "floor%", "MB", "GFLOP", "impl",
            "formats", "type", "layer");
    for (int i = 0; i < n; i++)
        if (rows[i].told)
            print_row(&rows[i], sum);
    fprintf(stderr, "# %9.2f 100.0%% %9.2f %9.2f %9.2f %5.0f%%  of all\n", sum, prices,
            in_place, floors, 100 * floors / sum);
}

int net_layers_print(const strata_engine *e, strata_context *c, strata_error *err)
{
    const int n = strata_engine_steps(e);
    struct row *rows = calloc((size_t)n + 1, sizeof *rows);
    const strata_profiler profiler = {
        .struct_size = sizeof profiler, .step = note, .user = rows};
    int st = rows ? strata_context_set_profiler(c, &profiler, err) : STRATA_ENOMEM;
    for (int i = 0; i < n && !st; i++) {
        rows[i].step.struct_size = sizeof rows[i].step;
        st = strata_engine_step(e, i, &rows[i].step, err);
        rows[i].price = (double)e->execution->steps[i].cost / (PLAN_UNIT_PER_NS * 1e3);
        rows[i].in_place =
            (double)e->execution->steps[i].in_place / (PLAN_UNIT_PER_NS * 1e3);
    }
    for (int round = 0; round < ROUNDS && !st; round++)
        st = strata_context_run(c, err);
    if (!st)
        print_rows(rows, n);
    strata_context_set_profiler(c, NULL, NULL);
    free(rows);
    return st;
}
