/* SPDX-License-Identifier: Apache-2.0
 *
 * The same thing many times: runs of one context, runs of many contexts at once, and the
 * life of an instance from setup to teardown.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/module_range.h"
#include "check/test/test.h"

#define REPEATS 20
#define CONTEXTS 8
#define THREADS 4
#define ROUNDS 100 /* of each context, concurrently */
#define CYCLES 1000
#define CYCLES_LIMIT_S 2.0 /* per impl; slow setups get fewer cycles */
#define MIRROR_BYTES ((size_t)16 << 20)

/* ---- what a run leaves ---------------------------------------------------------------
 */

struct results {
    void *out[HARNESS_OUTPUTS];
};

static void results_free(struct results *r)
{
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        free(r->out[i]);
}

static bool results_read(struct results *r, const struct session *s)
{
    for (int i = 0; i < s->node.n_out; i++) {
        if (!r->out[i])
            r->out[i] = malloc((size_t)s->out[i].count * VALUE_SIZE + 1);
        if (!r->out[i])
            return false;
        session_read(s, i, r->out[i]);
    }
    return true;
}

/* The first element that differs in its bits, as text; false: none. */
static bool results_differ(const struct results *a, const struct results *b,
                           const struct session *s, char *text, size_t size)
{
    char is[NUMBER_TEXT], was[NUMBER_TEXT];
    for (int i = 0; i < s->node.n_out; i++) {
        const unsigned char *before = a->out[i], *now = b->out[i];
        for (int64_t k = 0; k < s->out[i].count; k++)
            if (memcmp(&before[k * VALUE_SIZE], &now[k * VALUE_SIZE], VALUE_SIZE) != 0) {
                snprintf(text, size, "output %d, element %lld is %s, was %s", i,
                         (long long)k, number_text(is, now, s->out[i].dtype, k),
                         number_text(was, before, s->out[i].dtype, k));
                return true;
            }
    }
    return false;
}

static bool exact(const struct trial *t)
{
    return !(t->impl->impl.flags & STRATA_NONDETERMINISTIC);
}

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
    if (!exact(t))
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

void check_determinism(struct check_child *c)
{
    c->target.visit = repeat_runs;
    cases_run(c, CASES_FEW);
}

/* ---- concurrency
 * ----------------------------------------------------------------------- */

/* A context of the shared instance, with inputs of its own. */
struct user {
    struct session s;
    struct harness_node node; /* a copy, for the mirror */
    struct mirror mirror;
    struct trial_values v;
    struct results alone, together;
    int status, round;
};

struct crowd {
    struct user *users; /* CONTEXTS */
    pthread_barrier_t start;
    bool compare;
};

struct thread {
    struct crowd *crowd;
    int index;
};

/* The trial's inputs, turned by `by` elements: no two contexts compute the same. */
static bool turn_inputs(struct user *u, const struct trial *t, int by)
{
    for (int i = 0; i < t->node.node.n_in; i++) {
        const int64_t n = t->node.in[i].count;
        unsigned char *to = u->v.in[i] = malloc((size_t)n * VALUE_SIZE + 1);
        const unsigned char *from = t->v.in[i];
        if (!to)
            return false;
        for (int64_t k = 0; k < n; k++)
            memcpy(to + k * VALUE_SIZE, from + (k + by) % n * VALUE_SIZE, VALUE_SIZE);
    }
    return true;
}

static int open_user(struct user *u, struct trial *t, int row, int index,
                     const struct session *first)
{
    strata_handle *h = t->node.mirror ? t->node.mirror->handle : NULL;
    int status = STRATA_OK;
    u->node = t->node;
    u->node.phase = index == 0 ? t->node.phase : NULL;
    if (h) {
        status = mirror_open_size(&u->mirror, h, false, MIRROR_BYTES, &u->s.err);
        if (status == STRATA_OK)
            status =
                h->device->ops->stream_create(h->device, &u->mirror.stream, &u->s.err);
        u->node.mirror = &u->mirror;
    }
    if (status == STRATA_OK && !turn_inputs(u, t, index))
        status = STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = session_make(&u->s, &u->node, t->impl, row, &t->formats,
                              (const void *const *)u->v.in,
                              (const void *const *)t->v.weight, NULL);
    if (status == STRATA_OK)
        status = first ? session_share(&u->s, first) : session_open(&u->s);
    if (status == STRATA_OK)
        status = session_run(&u->s, session_patterns[0]);
    return status == STRATA_OK && !results_read(&u->alone, &u->s) ? STRATA_ENOMEM
                                                                  : status;
}

static void close_user(struct user *u)
{
    session_close(&u->s);
    session_free(&u->s);
    if (u->mirror.host) {
        strata_stream *own = u->mirror.stream;
        const struct device_ops *ops = u->mirror.handle->device->ops;
        mirror_close(&u->mirror);
        if (own)
            ops->stream_destroy(own);
    }
    for (int i = 0; i < HARNESS_INPUTS; i++)
        free(u->v.in[i]);
    results_free(&u->alone);
    results_free(&u->together);
}

/* Runs its share of the contexts in turn; a context is always the same thread's. */
static void *run_share(void *argument)
{
    const struct thread *me = argument;
    pthread_barrier_wait(&me->crowd->start);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = me->index; i < CONTEXTS; i += THREADS) {
            struct user *u = &me->crowd->users[i];
            char text[256];
            if (u->status != STRATA_OK)
                continue;
            u->round = round;
            u->status = session_run(&u->s, session_patterns[round % PATTERNS]);
            if (u->status != STRATA_OK || !results_read(&u->together, &u->s))
                continue;
            if (me->crowd->compare &&
                results_differ(&u->alone, &u->together, &u->s, text, sizeof text))
                u->status =
                    session_fault(&u->s, "concurrency", "context %d of %d, round %d: %s",
                                  i, CONTEXTS, round, text);
        }
    return NULL;
}

static void run_crowd(struct crowd *crowd)
{
    pthread_t ids[THREADS];
    struct thread threads[THREADS];
    int started = 0;
    pthread_barrier_init(&crowd->start, NULL, THREADS);
    for (; started < THREADS; started++) {
        threads[started] = (struct thread){crowd, started};
        if (pthread_create(&ids[started], NULL, run_share, &threads[started]) != 0)
            abort(); /* half a barrier cannot be left */
    }
    for (int i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&crowd->start);
}

/* One combination of each impl and shape is enough where each takes long. */
static const struct registry_impl *last_impl;
static char last_shapes[192];

static bool seen_before(const struct trial *t)
{
    char now[sizeof last_shapes];
    trial_shapes(t, now, sizeof now);
    return last_impl == t->impl && strcmp(last_shapes, now) == 0;
}

static void mark_seen(const struct trial *t)
{
    last_impl = t->impl;
    trial_shapes(t, last_shapes, sizeof last_shapes);
}

static void run_together(struct trial *t, int row)
{
    struct crowd crowd = {.compare = exact(t)};
    int opened = 0, status = STRATA_OK;
    if (seen_before(t))
        return;
    place(t);
    crowd.users = calloc(CONTEXTS, sizeof *crowd.users);
    for (; crowd.users && opened < CONTEXTS && status == STRATA_OK; opened++)
        status = open_user(&crowd.users[opened], t, row, opened,
                           opened ? &crowd.users[0].s : NULL);
    if (status == STRATA_OK && crowd.users)
        run_crowd(&crowd);
    for (int i = 0; i < opened && status == STRATA_OK; i++)
        if (crowd.users[i].status != STRATA_OK) {
            trial_session_problem(t, &crowd.users[i].s, "concurrency");
            break;
        }
    t->result.runs += status == STRATA_OK;
    if (status == STRATA_OK)
        mark_seen(t);
    while (opened-- > 0) /* the first owns the state */
        close_user(&crowd.users[opened]);
    free(crowd.users);
}

void check_concurrency(struct check_child *c)
{
    last_impl = NULL;
    c->target.visit = run_together;
    cases_run(c, CASES_LARGE);
}

/* ---- leaks
 * -------------------------------------------------------------------------------- */

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

/* Memory lost over some cycles. A library's caches may grow once more on a busy host, and
 * other processes' memory counts on a device, so that only what is lost each time anew is
 * the plugin's. */
#define LEAK_WINDOWS 5
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

static uint64_t lost_bytes(struct trial *t, int row, struct session *s, int cycles,
                           uint64_t free_before)
{
    uint64_t least = UINT64_MAX;
    for (int window = 0; window < LEAK_WINDOWS; window++) {
        for (int i = 0; window > 0 && i < cycles; i++)
            live(t, row, s);
        const uint64_t now = device_bytes(t);
        if (now + LEAK_BYTES > free_before)
            return 0;
        least = free_before - now < least ? free_before - now : least;
        free_before = now;
    }
    return least;
}

/* Lives of an instance for half the time, then as many again: what the second half
 * added is lost for good. Caches are full by then. */
static void count_leaks(struct trial *t, int row)
{
    struct session s = {0};
    int half = 0;
    if (seen_before(t))
        return;
    place(t);
    const double start = seconds();
    while (half < CYCLES / 2 && seconds() - start < CYCLES_LIMIT_S / 2) {
        if (live(t, row, &s) != STRATA_OK)
            return; /* vetoed, or told by another test */
        half++;
    }
    const uint64_t free_before = device_bytes(t);
    struct environment open_before, open_after;
    environment_take(&open_before);
    const size_t host_lost = lost_host_bytes(t, row, &s, half);
    environment_take(&open_after);
    const uint64_t lost = lost_bytes(t, row, &s, half, free_before);
    t->result.runs += 2 * half;
    mark_seen(t);
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
    last_impl = NULL;
    c->target.visit = count_leaks;
    cases_run(c, CASES_SMALL);
    c->target.visit = count_requests;
    cases_run(c, CASES_FEW);
}
