/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of one instance that run at once, each over inputs of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check/test/results.h"
#include "check/test/test.h"

#define CONTEXTS 8
#define THREADS 4
#define ROUNDS 100 /* of each context */
#define MIRROR_BYTES ((size_t)16 << 20)

/* A context of the shared instance, with inputs of its own. */
struct user {
    struct session s;
    struct harness_node node; /* a copy, for the mirror */
    struct mirror mirror;
    struct trial_values v;
    struct results alone, together;
    unsigned char
        *kept[PATTERNS][HARNESS_OUTPUTS]; /* blocks that held what alone holds */
    int index, status;
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
    u->index = index;
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
    for (int p = 0; p < PATTERNS; p++)
        for (int i = 0; i < HARNESS_OUTPUTS; i++)
            free(u->kept[p][i]);
}

/* Values are read one by one, which takes longer than most runs; the same bytes as before
 * are the same values. */
static bool left_as_before(const struct user *u, int pattern)
{
    for (int i = 0; i < u->s.node.n_out; i++) {
        const struct block *b = session_output_block(&u->s, i);
        if (!u->kept[pattern][i] || memcmp(u->kept[pattern][i], b->data, b->bytes) != 0)
            return false;
    }
    return true;
}

/* Without memory the values are read again the next time. */
static void keep_what_is_left(struct user *u, int pattern)
{
    for (int i = 0; i < u->s.node.n_out; i++) {
        const struct block *b = session_output_block(&u->s, i);
        unsigned char **kept = &u->kept[pattern][i];
        *kept = *kept ? *kept : malloc(b->bytes + 1);
        if (*kept)
            memcpy(*kept, b->data, b->bytes);
    }
}

static void run_once(struct user *u, int round, bool compare)
{
    const int pattern = round % PATTERNS;
    char text[256];
    u->status = session_run(&u->s, session_patterns[pattern]);
    if (u->status != STRATA_OK || !compare || left_as_before(u, pattern) ||
        !results_read(&u->together, &u->s))
        return;
    if (results_differ(&u->alone, &u->together, &u->s, text, sizeof text))
        u->status = session_fault(&u->s, "concurrency", "context %d of %d, round %d: %s",
                                  u->index, CONTEXTS, round, text);
    else
        keep_what_is_left(u, pattern);
}

/* Runs its share of the contexts in turn; a context is always the same thread's. */
static void *run_share(void *argument)
{
    const struct thread *me = argument;
    pthread_barrier_wait(&me->crowd->start);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = me->index; i < CONTEXTS; i += THREADS) {
            struct user *u = &me->crowd->users[i];
            if (u->status == STRATA_OK)
                run_once(u, round, me->crowd->compare);
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

static struct seen seen;

static void run_together(struct trial *t, int row)
{
    struct crowd crowd = {.compare = results_exact(t)};
    int opened = 0, status = STRATA_OK;
    if (seen_before(&seen, t))
        return;
    t->variant = NULL;
    t->target->place(t, t->target->user);
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
        mark_seen(&seen, t);
    while (opened-- > 0) /* the first owns the state */
        close_user(&crowd.users[opened]);
    free(crowd.users);
}

void check_concurrency(struct check_child *c)
{
    seen = (struct seen){0};
    c->target.visit = run_together;
    cases_run(c, CASES_LARGE);
}
