/* SPDX-License-Identifier: Apache-2.0
 *
 * One process of bench/serving/soak: engines on all devices, and threads that run rows by
 * a batcher or by contexts of their own, and compare each row with what it must become.
 */
#include "bench/serving/soak.h"

#include <strata/parts.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 4, CONTEXTS = 2, MOST_PARTS = 8, MOST_STAY = 20, MOST_LOOKS = 40 };

const struct soak_way soak_ways[SOAK_WAYS] = {
    {.name = "batcher over all devices", .turns = SOAK_ANY_TURNS, .batcher = true},
    {.name = "contexts in turns", .turns = STRATA_TURNS_ON},
    {.name = "contexts that share", .turns = STRATA_TURNS_OFF},
    {.name = "contexts that come and go", .turns = SOAK_ANY_TURNS, .leaves = true},
};

struct process {
    struct soak *soak;
    const struct soak_way *way;
    struct soak_tally *tally;
    struct soak_sites sites;
    strata_batcher *batcher;
    struct soak_batches batches;
    struct worker *workers;
    int n_workers;
    double end;
    atomic_int failed, looks;
};

struct worker {
    struct process *process;
    int device;
    unsigned seed;
    pthread_t thread;
    strata_handle *handle;
    strata_context *context;
    char *pinned, *out; /* of the largest batch */
    unsigned long asked;
    bool broken;      /* an answer, on purpose */
    bool from_pinned; /* the last rows that were taken */
    atomic_int runs;  /* rows, now, by its context */
};

/* Rows that one call of the application was given back. */
struct answer {
    int batch; /* or SOAK_ANY_BATCH */
    int64_t place;
    int first, n;
    char *out;
};

static int draw(unsigned *seed, int n)
{
    return (int)((unsigned)rand_r(seed) % (unsigned)n);
}

static int any_turns(unsigned *seed)
{
    static const int all[] = {STRATA_TURNS_AUTO, STRATA_TURNS_OFF, STRATA_TURNS_ON};
    return all[draw(seed, 3)];
}

static int count_wrong(struct soak *s, const struct answer *a, const char *out)
{
    int wrong = 0;
    for (int i = 0; i < a->n; i++)
        wrong += !soak_is_row(s, a->batch, a->place + i, a->first + i,
                              out + (size_t)i * s->row_out);
    return wrong;
}

/* A byte of the first answer, which then has to be found. */
static void break_one(struct worker *w, const struct answer *a)
{
    struct soak *s = w->process->soak;
    const int i = draw(&w->seed, a->n);
    const size_t at = (size_t)draw(&w->seed, (int)s->row_out);
    if (!s->breaks || w->broken)
        return;
    w->broken = true;
    a->out[(size_t)i * s->row_out + at] ^= 0x10;
    fprintf(stderr, "process %d: changed value %zu of row %d\n", (int)getpid(),
            at / sizeof(float), a->first + i);
}

/* Counts an answer; whether some of it is wrong. */
static bool is_wrong(struct worker *w, const struct answer *a)
{
    struct process *p = w->process;
    break_one(w, a);
    const int wrong = count_wrong(p->soak, a, a->out);
    atomic_fetch_add(&p->tally->bad, (unsigned long)wrong);
    atomic_fetch_add(&p->tally->requests, 1);
    atomic_fetch_add(&p->tally->rows, (unsigned long)a->n);
    return wrong > 0 && atomic_fetch_add(&p->looks, 1) < MOST_LOOKS;
}

static void tell_wrong(struct worker *w, const struct answer *a, const char *how)
{
    struct soak *s = w->process->soak;
    char text[SOAK_TEXT];
    soak_tell(s,
              "wrong: %.3f s, %s, worker %td's call %lu, rows %d to %d from %s memory, "
              "%d wrong; %s",
              soak_now(), w->process->way->name, w - w->process->workers, w->asked,
              a->first, a->first + a->n - 1, w->from_pinned ? "pinned" : "shared",
              count_wrong(s, a, a->out), how);
    for (int i = 0; i < a->n; i++) {
        const char *row = a->out + (size_t)i * s->row_out;
        if (soak_is_row(s, a->batch, a->place + i, a->first + i, row))
            continue;
        soak_look(s, a->batch, a->place + i, a->first + i, row, text);
        soak_tell(s, "wrong: %d of its %d, %s", i, a->n, text);
    }
}

/* Rows where a client has them: shared with other processes, or pinned. */
static void *take_rows(struct worker *w, int first, int n, size_t at)
{
    struct soak *s = w->process->soak;
    char *to = w->pinned + at * s->row_in;
    w->from_pinned = draw(&w->seed, 2) != 0;
    if (!w->from_pinned)
        return soak_input(s, first);
    memcpy(to, soak_input(s, first), (size_t)n * s->row_in);
    return to;
}

/* What was wrong is asked for again, which tells whether it stays so. */
static int ask_batcher(struct worker *w, strata_error *err)
{
    struct process *p = w->process;
    struct soak *s = p->soak;
    const int n = 1 + draw(&w->seed, (int)soak_largest(s));
    const struct answer a = {.batch = SOAK_ANY_BATCH,
                             .first = draw(&w->seed, SOAK_ROWS - n + 1),
                             .n = n,
                             .out = w->out};
    struct soak_request ran = {
        .batches = &p->batches, .rows = n, .most = soak_largest(s), .begin = soak_now()};
    const void *in[] = {take_rows(w, a.first, n, 0)};
    void *out[] = {w->out};
    const strata_request_options request = {.struct_size = sizeof request,
                                            .rows = n,
                                            .inputs = in,
                                            .outputs = out,
                                            .done = soak_done,
                                            .user = &ran};
    memset(w->out, SOAK_UNWRITTEN, (size_t)n * s->row_out);
    const int status = strata_batcher_run(p->batcher, &request, err);
    if (status != STRATA_OK || !is_wrong(w, &a))
        return status;
    char how[SOAK_TEXT];
    soak_tell_batch(s, &ran, how);
    tell_wrong(w, &a, how);
    memset(w->out, SOAK_UNWRITTEN, (size_t)n * s->row_out);
    const int again = strata_batcher_run(p->batcher, &request, err);
    if (again == STRATA_OK)
        soak_tell(s, "wrong: asked for again, %d are", count_wrong(s, &a, w->out));
    return again;
}

static int smallest_batch(const struct soak *s, int64_t rows)
{
    int b = 0;
    while (s->batches[b] < rows)
        b++;
    return b;
}

/* Parts of any size, as many rows as a batch has at most. */
struct parts {
    strata_memory memory[MOST_PARTS][2];
    strata_part parts[MOST_PARTS];
    struct answer answers[MOST_PARTS];
    int n, rows;
};

static void draw_parts(struct worker *w, struct parts *p)
{
    struct soak *s = w->process->soak;
    int left = 1 + draw(&w->seed, (int)soak_largest(s));
    for (p->n = 0; p->n < MOST_PARTS && left > 0;
         p->n++, left -= p->answers[p->n - 1].n) {
        struct answer *a = &p->answers[p->n];
        const int rows = 1 + draw(&w->seed, left);
        *a = (struct answer){.place = p->rows,
                             .first = draw(&w->seed, SOAK_ROWS - rows + 1),
                             .n = rows,
                             .out = w->out + (size_t)p->rows * s->row_out};
        p->memory[p->n][0] =
            (strata_memory){take_rows(w, a->first, rows, (size_t)p->rows),
                            (size_t)rows * s->row_in, STRATA_MEMORY_HOST, 0};
        p->memory[p->n][1] =
            (strata_memory){a->out, (size_t)rows * s->row_out, STRATA_MEMORY_HOST, 0};
        p->parts[p->n] = (strata_part){.struct_size = sizeof *p->parts,
                                       .rows = rows,
                                       .inputs = &p->memory[p->n][0],
                                       .outputs = &p->memory[p->n][1]};
        p->rows += rows;
    }
    for (int i = 0; i < p->n; i++)
        p->answers[i].batch = smallest_batch(s, p->rows);
}

/* How a run of parts was, and which rows other contexts of the process compute. */
static void tell_parts(struct worker *w, const struct parts *p, const struct answer *a,
                       char text[SOAK_TEXT])
{
    const struct process *all = w->process;
    int at = snprintf(
        text, SOAK_TEXT,
        "in a batch of %d rows (plan %lld) on device %d, from place %lld on;"
        " others' batches:",
        p->rows, (long long)all->soak->batches[a->batch], w->device, (long long)a->place);
    for (int i = 0; i < all->n_workers && at < SOAK_TEXT / 2; i++)
        if (&all->workers[i] != w)
            at += snprintf(text + at, (size_t)(SOAK_TEXT - at), " %d rows on device %d",
                           atomic_load(&all->workers[i].runs), all->workers[i].device);
}

/* All parts anew, where some were wrong. */
static int run_again(struct worker *w, struct parts *p, unsigned wrong, strata_error *err)
{
    struct soak *s = w->process->soak;
    memset(w->out, SOAK_UNWRITTEN, (size_t)soak_largest(s) * s->row_out);
    const int status = strata_context_run_parts(w->context, p->parts, (size_t)p->n, err);
    for (int i = 0; i < p->n && status == STRATA_OK; i++)
        if (wrong >> i & 1)
            soak_tell(s, "wrong: run again, %d are",
                      count_wrong(s, &p->answers[i], p->answers[i].out));
    return status;
}

static int run_parts(struct worker *w, strata_error *err)
{
    struct soak *s = w->process->soak;
    struct parts p = {.rows = 0};
    unsigned wrong = 0; /* a bit a part */
    draw_parts(w, &p);
    memset(w->out, SOAK_UNWRITTEN, (size_t)soak_largest(s) * s->row_out);
    atomic_store(&w->runs, p.rows);
    const int status = strata_context_run_parts(w->context, p.parts, (size_t)p.n, err);
    for (int i = 0; i < p.n && status == STRATA_OK; i++) {
        const struct answer *a = &p.answers[i];
        char how[SOAK_TEXT];
        if (!is_wrong(w, a))
            continue;
        wrong |= 1U << i;
        tell_parts(w, &p, a, how);
        tell_wrong(w, a, how);
    }
    const int again = wrong ? run_again(w, &p, wrong, err) : STRATA_OK;
    atomic_store(&w->runs, 0);
    return status == STRATA_OK ? again : status;
}

static int open_context(struct worker *w, strata_error *err)
{
    const struct process *p = w->process;
    const int turns = p->way->turns;
    int status = strata_create(&w->handle, p->soak->devices[w->device], err);
    if (status == STRATA_OK)
        status = strata_context_create(&w->context, p->sites.engine[w->device], w->handle,
                                       err);
    if (status == STRATA_OK)
        status = strata_context_set_turns(
            w->context, turns == SOAK_ANY_TURNS ? any_turns(&w->seed) : turns, err);
    return status;
}

static void close_context(struct worker *w)
{
    strata_context_destroy(w->context);
    strata_destroy(w->handle);
    w->context = NULL;
    w->handle = NULL;
}

/* As a client of the batcher, or by a context. */
static int load_once(struct worker *w, strata_error *err)
{
    w->asked++;
    if (w->process->batcher)
        return ask_batcher(w, err);
    if (w->context && w->process->way->leaves && draw(&w->seed, MOST_STAY) == 0)
        close_context(w);
    const int status = w->context ? STRATA_OK : open_context(w, err);
    return status == STRATA_OK ? run_parts(w, err) : status;
}

static void *load(void *arg)
{
    struct worker *w = arg;
    struct process *p = w->process;
    strata_error err = {0};
    while (soak_now() < p->end && !atomic_load(&p->failed))
        if (load_once(w, &err) != STRATA_OK) {
            soak_tell(p->soak, "%s, device %d: %s", p->way->name, w->device, err.message);
            atomic_store(&p->failed, 1);
        }
    return NULL;
}

static int open_batcher(struct process *p, unsigned seed, strata_error *err)
{
    const strata_engine *engines[SOAK_DEVICES];
    const strata_batcher_options options = {.struct_size = sizeof options,
                                            .turns = any_turns(&seed)};
    for (int i = 0; i < p->soak->n_devices; i++)
        engines[i] = p->sites.engine[i];
    return strata_batcher_create_over(&p->batcher, engines, p->soak->n_devices, &options,
                                      err);
}

static int open_worker(struct worker *w, strata_error *err)
{
    const struct soak *s = w->process->soak;
    w->out = malloc((size_t)soak_largest(s) * s->row_out);
    w->pinned = strata_host_alloc(w->process->sites.handle[w->device],
                                  (size_t)soak_largest(s) * s->row_in, err);
    if (!w->out || !w->pinned)
        return STRATA_ENOMEM;
    return pthread_create(&w->thread, NULL, load, w) == 0 ? STRATA_OK : STRATA_ENOMEM;
}

static void close_worker(struct worker *w)
{
    const struct process *p = w->process;
    close_context(w);
    strata_host_free(p->sites.handle[w->device], w->pinned,
                     (size_t)soak_largest(p->soak) * p->soak->row_in);
    free(w->out);
}

int soak_work(struct soak *s, int way, unsigned seed, double seconds, bool in_order)
{
    struct worker workers[SOAK_DEVICES * CLIENTS] = {{0}};
    struct process p = {.soak = s,
                        .way = &soak_ways[way],
                        .tally = &s->tally[way],
                        .batches.lock = PTHREAD_MUTEX_INITIALIZER,
                        .workers = workers};
    strata_error err = {0};
    int n = 0, status = soak_open(s, &p.sites, &err);
    if (status == STRATA_OK && p.way->batcher)
        status = open_batcher(&p, seed, &err);
    const int wanted = s->n_devices * (p.way->batcher ? CLIENTS : CONTEXTS);
    p.n_workers = wanted;
    p.end = soak_now() + seconds;
    for (int i = 0; i < wanted; i++)
        workers[i] = (struct worker){
            .process = &p, .device = i % s->n_devices, .seed = seed * 1000 + (unsigned)i};
    for (; n < wanted && status == STRATA_OK; n++)
        status = open_worker(&workers[n], &err);
    if (status != STRATA_OK) {
        soak_tell(s, "%s begins: %s", p.way->name, err.message);
        return 1; /* the process's end gives all memory back */
    }
    if (!in_order) {
        const time_t whole = (time_t)seconds;
        const struct timespec t = {whole, (long)((seconds - (double)whole) * 1e9)};
        nanosleep(&t, NULL);
        return SOAK_LEFT;
    }
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    strata_batcher_destroy(p.batcher);
    for (int i = 0; i < n; i++)
        close_worker(&workers[i]);
    soak_close(&p.sites);
    return atomic_load(&p.failed);
}
