/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders of the steps: each step after those that write what it reads. The network's own;
 * depth first from the outputs, operands as they stand or the heaviest first; and, step
 * by step, the one that leaves the fewest bytes alive.
 */
#include "planner/execution.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* Which steps write each value: those of value v are list[first[v]] ... first[v + 1]. */
struct writers {
    size_t *first;
    int *list;
};

struct sorter {
    const struct execution *x;
    struct writers writers;
    int *order;
    size_t n; /* steps in order so far */
    bool *done;
    bool heavy;
    int *stack;
    size_t depth;
    int *waiting; /* ORDER_LIVE: writes a step still waits for */
    int *readers; /* reads of an owner's memory still to come */
    bool *alive;
};

static void close_sorter(struct sorter *s)
{
    free(s->writers.first);
    free(s->writers.list);
    free(s->done);
    free(s->stack);
    free(s->waiting);
    free(s->readers);
    free(s->alive);
}

static int find_writers(struct sorter *s, strata_error *err)
{
    const struct execution *x = s->x;
    size_t total = 0;
    int v;
    struct writers *w = &s->writers;
    w->first = zalloc(x->n_values + 2, sizeof *w->first, "the schedule", err);
    if (!w->first)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_steps; i++)
        for (int k = 0; (v = execution_writes(x, &x->steps[i], k)) >= 0; k++, total++)
            w->first[v + 2]++;
    for (size_t i = 2; i < x->n_values + 2; i++)
        w->first[i] += w->first[i - 1];
    w->list = zalloc(total, sizeof *w->list, "the schedule", err);
    if (!w->list)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_steps; i++)
        for (int k = 0; (v = execution_writes(x, &x->steps[i], k)) >= 0; k++)
            w->list[w->first[v + 1]++] = (int)i;
    return STRATA_OK;
}

/* ---- depth first
 * ----------------------------------------------------------------------- */

/* A step that must come before `step` and is not done; the heaviest value's if asked. */
static int missing(const struct sorter *s, int step)
{
    const struct execution_step *at = &s->x->steps[step];
    int v, best = -1;
    int64_t most = -1;
    for (int k = 0; (v = execution_reads(s->x, at, k)) >= 0; k++) {
        int64_t bytes = s->heavy ? s->x->values[v].bytes : 0;
        for (size_t i = s->writers.first[v]; i < s->writers.first[v + 1]; i++)
            if (!s->done[s->writers.list[i]] && bytes > most) {
                best = s->writers.list[i];
                most = bytes;
            }
    }
    return best;
}

static void visit(struct sorter *s, int step)
{
    s->stack[s->depth++] = step;
    while (s->depth > 0) {
        int at = s->stack[s->depth - 1], before = missing(s, at);
        if (before >= 0) {
            s->stack[s->depth++] = before;
            continue;
        }
        s->depth--;
        if (!s->done[at])
            s->order[s->n++] = at;
        s->done[at] = true;
    }
}

/* From the last steps back: a step is visited from its readers. */
static void sort_depth(struct sorter *s)
{
    const struct execution *x = s->x;
    for (size_t i = 0; i < execution_bound(x); i++) {
        int v = x->bindings[i].value;
        for (size_t k = s->writers.first[v]; k < s->writers.first[v + 1]; k++)
            visit(s, s->writers.list[k]);
    }
    for (size_t i = 0; i < x->n_steps; i++)
        if (!s->done[i])
            visit(s, (int)i);
}

/* ---- fewest bytes alive
 * ---------------------------------------------------------------- */

static int64_t arena_bytes(const struct execution *x, int value)
{
    const struct execution_value *v = &x->values[value];
    return v->binding < 0 && v->constant < 0 ? v->bytes : 0;
}

/* Bytes alive after a step minus before it. */
static int64_t growth(const struct sorter *s, int step)
{
    const struct execution_step *at = &s->x->steps[step];
    int64_t bytes = 0;
    int v;
    for (int k = 0; (v = execution_writes(s->x, at, k)) >= 0; k++) {
        int memory = s->x->values[v].owner;
        if (!s->alive[memory])
            bytes += arena_bytes(s->x, memory);
    }
    for (int k = 0; (v = execution_reads(s->x, at, k)) >= 0; k++) {
        int memory = s->x->values[v].owner;
        if (s->readers[memory] == 1)
            bytes -= arena_bytes(s->x, memory);
    }
    return bytes;
}

static void take(struct sorter *s, int step)
{
    const struct execution *x = s->x;
    int v;
    s->order[s->n++] = step;
    s->done[step] = true;
    for (int k = 0; (v = execution_reads(x, &x->steps[step], k)) >= 0; k++)
        s->readers[x->values[v].owner]--;
    for (int k = 0; (v = execution_writes(x, &x->steps[step], k)) >= 0; k++)
        s->alive[x->values[v].owner] = true;
}

static int prepare_live(struct sorter *s, strata_error *err)
{
    const struct execution *x = s->x;
    int v;
    s->readers = zalloc(x->n_values, sizeof *s->readers, "the schedule", err);
    s->alive = zalloc(x->n_values, sizeof *s->alive, "the schedule", err);
    if (!s->readers || !s->alive)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < x->n_steps; i++)
        for (int k = 0; (v = execution_reads(x, &x->steps[i], k)) >= 0; k++)
            s->readers[x->values[v].owner]++;
    return STRATA_OK;
}

/* Steps before `from` are done. Those far ahead cannot help, so a window bounds it. */
static void sort_live(struct sorter *s)
{
    enum { WINDOW = 256 };
    size_t from = 0, n = s->x->n_steps;
    while (s->n < n) {
        int best = -1;
        int64_t least = INT64_MAX;
        while (s->done[from])
            from++;
        for (size_t i = from; i < n && i < from + WINDOW; i++) {
            if (s->done[i] || missing(s, (int)i) >= 0)
                continue;
            int64_t bytes = growth(s, (int)i);
            if (bytes < least) {
                least = bytes;
                best = (int)i;
            }
        }
        take(s, best);
    }
}

int execution_order(const struct execution *x, int which, int *order, strata_error *err)
{
    struct sorter s = {.x = x, .order = order, .heavy = which == ORDER_HEAVY};
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_steps; i++)
        order[i] = (int)i;
    if (which == ORDER_NETWORK)
        return STRATA_OK;
    s.done = zalloc(x->n_steps, sizeof *s.done, "the schedule", err);
    s.stack = zalloc(x->n_steps + 1, sizeof *s.stack, "the schedule", err);
    status = s.done && s.stack ? find_writers(&s, err) : STRATA_ENOMEM;
    if (status == STRATA_OK && which == ORDER_LIVE &&
        (status = prepare_live(&s, err)) == STRATA_OK)
        sort_live(&s);
    else if (status == STRATA_OK)
        sort_depth(&s);
    close_sorter(&s);
    return status;
}
