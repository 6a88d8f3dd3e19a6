/* SPDX-License-Identifier: Apache-2.0
 *
 * The same thing many times: runs of one context, and the life of an instance from setup
 * to teardown.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <strata/half.h>

#include "check/module_range.h"
#include "check/test/results.h"
#include "check/test/test.h"

#define REPEATS 20
#define CYCLES 1000
#define CYCLES_LIMIT_S 2.0 /* per impl; slow setups get fewer cycles */
#define QUICK_LIMIT_S 0.5  /* the same in a quick check */

static void place(struct trial *t)
{
    t->variant = NULL;
    t->target->place(t, t->target->user);
}

/* ---- determinism ----------------------------------------------------------------------
 */

/* One more run in the same ctx, everything at other addresses. What lies at the old ones
 * is another run's by then: inputs hold something else. */
static void run_elsewhere(struct trial *t, int row, struct session *s,
                          const struct results *first)
{
    struct session other = {0};
    struct results found = {{0}};
    char text[256];
    int status = trial_session(t, &other, row);
    if (status == STRATA_OK)
        status = session_adopt(&other, s);
    for (int i = 0; i < s->node.n_in; i++)
        memset(s->in_block[i].data, 0x3c, s->in_block[i].bytes);
    if (status == STRATA_OK)
        status = session_prepare(s, session_patterns[1]);
    if (status == STRATA_OK)
        status = session_run(&other, session_patterns[0]);
    if (status == STRATA_OK && results_read(&found, &other) &&
        results_differ(first, &found, &other, text, sizeof text))
        session_fault(&other, "keeps-pointer",
                      "a run with its tensors and workspace elsewhere: %s", text);
    for (size_t i = 0; i < s->workspace.bytes && !s->mirror && status == STRATA_OK; i++)
        if (s->workspace.data[i] != session_patterns[1]) {
            session_fault(&other, "keeps-pointer",
                          "a run with another workspace wrote to that of the one before");
            break;
        }
    if (other.fault)
        trial_session_problem(t, &other, other.fault);
    results_free(&found);
    session_free(&other);
}

static void repeat_runs(struct trial *t, int row)
{
    struct session s = {0};
    struct results first = {{0}}, again = {{0}};
    char text[256];
    if (!results_exact(t))
        return;
    place(t);
    int status = trial_session(t, &s, row);
    if (status == STRATA_OK)
        status = session_open(&s);
    for (int i = 0; i < REPEATS && status == STRATA_OK; i++) {
        status = session_run(&s, session_patterns[0]);
        if (status != STRATA_OK || !results_read(i == 0 ? &first : &again, &s))
            break;
        if (i > 0 && results_differ(&first, &again, &s, text, sizeof text)) {
            session_fault(&s, "nondeterministic", "run %d of %d: %s", i + 1, REPEATS,
                          text);
            trial_session_problem(t, &s, "nondeterministic");
            break;
        }
    }
    if (status == STRATA_OK && first.out[0] && !s.fault)
        run_elsewhere(t, row, &s, &first);
    t->result.runs += status == STRATA_OK;
    session_close(&s);
    session_free(&s);
    results_free(&first);
    results_free(&again);
}

/* What is drawn may be halves already: these lie up to a half's step beside them. */
static float beside(float x, int64_t k)
{
    return x * (1 + (float)(k % 61 + 1) * 0x1p-16f);
}

static float to_half(float x, int64_t k)
{
    (void)k;
    return strata_float_of_half(strata_half_of_float(x));
}

/* FP32 inputs, where they lie. */
static void change_inputs(struct session *s, float (*to)(float, int64_t))
{
    for (int i = 0; i < s->node.n_in; i++) {
        const struct block *b = &s->in_block[i];
        float *x = (float *)(void *)(b->data + b->lead);
        for (int64_t k = 0; s->in[i].dtype == STRATA_FP32 && k < s->in[i].size; k++)
            x[k] = to(x[k], k);
    }
}

static void run_rounded(struct trial *t, int row)
{
    struct session s = {0};
    struct results given = {{0}}, rounded = {{0}};
    char text[256];
    if (!(t->impl->impl.flags & STRATA_ROUNDS_IN) || !results_exact(t))
        return;
    place(t);
    int status = trial_session(t, &s, row);
    if (status == STRATA_OK)
        status = session_open(&s);
    if (status == STRATA_OK) {
        change_inputs(&s, beside);
        status = session_run(&s, session_patterns[0]);
    }
    if (status == STRATA_OK && results_read(&given, &s)) {
        change_inputs(&s, to_half);
        status = session_run(&s, session_patterns[0]);
        if (status == STRATA_OK && results_read(&rounded, &s) &&
            results_differ(&given, &rounded, &s, text, sizeof text)) {
            session_fault(&s, "rounds-in", "inputs rounded to FP16 before: %s", text);
            trial_session_problem(t, &s, "rounds-in");
        }
    }
    t->result.runs += status == STRATA_OK;
    session_close(&s);
    session_free(&s);
    results_free(&given);
    results_free(&rounded);
}

void check_determinism(struct check_child *c)
{
    c->target.visit = repeat_runs;
    cases_run(c, CASES_FEW);
    c->target.visit = run_rounded;
    cases_run(c, CASES_FEW);
}

/* ---- leaks
 * -------------------------------------------------------------------------------- */

static struct seen seen;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t host_bytes(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static uint64_t device_bytes(const struct trial *t)
{
    const struct mirror *m = t->node.mirror;
    return m && m->handle->device->ops->free_bytes
               ? m->handle->device->ops->free_bytes(m->handle->device)
               : 0;
}

/* One life; a run in the middle. */
static int live(struct trial *t, int row, struct session *s)
{
    int status = trial_session(t, s, row);
    if (status == STRATA_OK)
        status = session_open(s);
    if (status == STRATA_OK)
        status = session_run(s, session_patterns[0]);
    session_close(s);
    session_free(s);
    return status;
}

/* Memory lost over some cycles. A library's caches may grow once more on a busy host, so
 * that only what is lost each time anew is the plugin's. A device counts the memory of
 * all programs: only windows are asked behind which nothing changes for as long again. */
#define LEAK_WINDOWS 5
#define LEAK_MOST_WINDOWS 20 /* on a device that others use; then it cannot be told */
#define LEAK_BYTES ((uint64_t)1 << 20) /* of a device */
#define LEAK_HOST_BYTES 4096
#define LEAK_CYCLE_BYTES 8

static size_t lost_host_bytes(struct trial *t, int row, struct session *s, int cycles)
{
    size_t before = host_bytes(), least = SIZE_MAX;
    for (int window = 0; window < LEAK_WINDOWS; window++) {
        for (int i = 0; i < cycles; i++)
            live(t, row, s);
        const size_t now = host_bytes(), lost = now > before ? now - before : 0;
        if (lost <= LEAK_HOST_BYTES || lost < (size_t)cycles * LEAK_CYCLE_BYTES)
            return 0;
        least = lost < least ? lost : least;
        before = now;
    }
    return least;
}

/* Whether the device's free bytes stay within what is no leak for that long. */
static bool stays_quiet(const struct trial *t, double for_s)
{
    const uint64_t before = device_bytes(t);
    const long ns = (long)((for_s - (double)(long)for_s) * 1e9);
    nanosleep(&(struct timespec){.tv_sec = (time_t)for_s, .tv_nsec = ns}, NULL);
    const uint64_t now = device_bytes(t);
    return now + LEAK_BYTES > before && before + LEAK_BYTES > now;
}

static uint64_t lost_bytes(struct trial *t, int row, struct session *s, int cycles,
                           uint64_t free_before, double took)
{
    uint64_t least = UINT64_MAX;
    int quiet = 0;
    for (int window = 0; window < LEAK_MOST_WINDOWS && quiet < LEAK_WINDOWS; window++) {
        const double begin = seconds();
        for (int i = 0; window > 0 && i < cycles; i++)
            live(t, row, s);
        const uint64_t now = device_bytes(t);
        if (now + LEAK_BYTES > free_before)
            return 0;
        if (stays_quiet(t, window > 0 ? seconds() - begin : took)) {
            least = free_before - now < least ? free_before - now : least;
            quiet++;
        }
        free_before = device_bytes(t);
    }
    return quiet == LEAK_WINDOWS ? least : 0;
}

/* Lives of an instance for half the time, then as many again: what the second half
 * added is lost for good. Caches are full by then. */
static void count_leaks(struct trial *t, int row)
{
    struct session s = {0};
    int half = 0;
    if (seen_before(&seen, t))
        return;
    place(t);
    const struct check_child *c = t->target->user;
    const double start = seconds(), limit = c->o->quick ? QUICK_LIMIT_S : CYCLES_LIMIT_S;
    while (half < CYCLES / 2 && seconds() - start < limit / 2) {
        if (live(t, row, &s) != STRATA_OK)
            return; /* vetoed, or told by another test */
        half++;
    }
    const uint64_t free_before = device_bytes(t);
    const double middle = seconds();
    struct environment open_before, open_after;
    environment_take(&open_before);
    const size_t host_lost = lost_host_bytes(t, row, &s, half);
    environment_take(&open_after);
    const uint64_t lost = lost_bytes(t, row, &s, half, free_before, seconds() - middle);
    t->result.runs += 2 * half;
    mark_seen(&seen, t);
    if (host_lost > 0)
        session_fault(&s, "leak", "%zu bytes of host memory a cycle, over %d cycles",
                      host_lost / (size_t)half, half);
    else if (lost > 0)
        session_fault(&s, "leak", "%llu bytes of device memory in %d cycles",
                      (unsigned long long)lost, half);
    else if (open_after.descriptors > open_before.descriptors)
        session_fault(&s, "leak", "%d open files in %d cycles",
                      open_after.descriptors - open_before.descriptors, half);
    else if (environment_is_full(&open_after))
        session_fault(&s, "leak", "%d open files, which is all that may be open",
                      open_after.descriptors);
    if (s.fault)
        trial_session_problem(t, &s, "leak");
}

/* Requests of the module's own code during a second run. */
static void count_requests(struct trial *t, int row)
{
    struct session s = {0};
    const void *begin, *end;
    if (!check_allocations || t->impl->impl.device != STRATA_HOST ||
        !module_range(t->impl->impl.run, &begin, &end))
        return;
    place(t);
    int status = trial_session(t, &s, row);
    if (status == STRATA_OK)
        status = session_open(&s);
    if (status == STRATA_OK)
        status = session_run(&s, session_patterns[0]);
    if (status == STRATA_OK)
        status = session_prepare(&s, session_patterns[0]);
    if (status == STRATA_OK) {
        check_allocations->watch(begin, end);
        status = session_call(&s, NULL);
        const unsigned n = check_allocations->count();
        check_allocations->stop();
        if (n > 0 && status == STRATA_OK) {
            session_fault(&s, "allocates",
                          "run asked malloc %u times; its workspace, "
                          "ctx and state are for that",
                          n);
            trial_session_problem(t, &s, "allocates");
        }
    }
    session_close(&s);
    session_free(&s);
}

void check_leaks(struct check_child *c)
{
    seen = (struct seen){0};
    c->target.visit = count_leaks;
    cases_run(c, CASES_SMALL);
    c->target.visit = count_requests;
    cases_run(c, CASES_FEW);
}
