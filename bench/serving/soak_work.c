/* SPDX-License-Identifier: Apache-2.0
 *
 * One process of bench/serving/soak: engines on all devices, and threads that run rows by
 * a batcher or by contexts of their own, and compare each row with what it must become.
 */
#include "bench/serving/soak.h"

#include <strata/batcher.h>
#include <strata/parts.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLIENTS = 4, CONTEXTS = 2, MOST_PARTS = 8, MOST_STAY = 20, ANY_BATCH = -1 };

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
    double end;
    atomic_int failed;
};

struct worker {
    struct process *process;
    int device;
    unsigned seed;
    pthread_t thread;
    strata_handle *handle;
    strata_context *context;
    char *pinned, *out; /* of the largest batch */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int draw(unsigned *seed, int n)
{
    return (int)((unsigned)rand_r(seed) % (unsigned)n);
}

static int any_turns(unsigned *seed)
{
    static const int all[] = {STRATA_TURNS_AUTO, STRATA_TURNS_OFF, STRATA_TURNS_ON};
    return all[draw(seed, 3)];
}

/* Whether a row is what it must be: in a place of a batch, or wherever the batcher put
 * it.
 */
static bool is_row(struct soak *s, int batch, int64_t place, int row, const char *out)
{
    if (batch != ANY_BATCH)
        return memcmp(soak_output(s, batch, place, row), out, s->row_out) == 0;
    for (int b = 0; b < s->n_batches; b++)
        for (int64_t k = 0; k < s->batches[b]; k++)
            if (memcmp(soak_output(s, b, k, row), out, s->row_out) == 0)
                return true;
    return false;
}

static void tell_bad(struct worker *w, int batch, int64_t place, int row, const char *out)
{
    struct soak *s = w->process->soak;
    const size_t n = s->row_out / sizeof(float);
    const char *right = soak_output(s, batch == ANY_BATCH ? 0 : batch, place, row);
    size_t differ = 0;
    int other = 0;
    for (size_t i = 0; i < n; i++)
        differ += memcmp(right + i * sizeof(float), out + i * sizeof(float),
                         sizeof(float)) != 0;
    while (other < SOAK_ROWS && !is_row(s, ANY_BATCH, 0, other, out))
        other++;
    soak_tell(s, "%s, device %d, row %d at %lld: %zu of %zu values differ; %s%d",
              w->process->way->name, w->device, row, (long long)place, differ, n,
              other < SOAK_ROWS ? "they are those of row " : "of no row, batch ",
              other < SOAK_ROWS ? other : batch);
}

/* n rows from the first on, the first in that place. */
static void compare(struct worker *w, int batch, int64_t place, int first, int n,
                    const char *out)
{
    struct process *p = w->process;
    for (int i = 0; i < n; i++) {
        const char *row = out + (size_t)i * p->soak->row_out;
        if (is_row(p->soak, batch, place + i, first + i, row))
            continue;
        atomic_fetch_add(&p->tally->bad, 1);
        tell_bad(w, batch, batch == ANY_BATCH ? 0 : place + i, first + i, row);
    }
    atomic_fetch_add(&p->tally->requests, 1);
    atomic_fetch_add(&p->tally->rows, (unsigned long)n);
}

/* Rows where a client has them: shared with other processes, or pinned. */
static void *take_rows(struct worker *w, int first, int n, size_t at)
{
    struct soak *s = w->process->soak;
    char *to = w->pinned + at * s->row_in;
    if (draw(&w->seed, 2) == 0)
        return soak_input(s, first);
    memcpy(to, soak_input(s, first), (size_t)n * s->row_in);
    return to;
}

static int ask_batcher(struct worker *w, strata_error *err)
{
    struct soak *s = w->process->soak;
    const int n = 1 + draw(&w->seed, (int)soak_largest(s));
    const int first = draw(&w->seed, SOAK_ROWS - n + 1);
    const void *in[] = {take_rows(w, first, n, 0)};
    void *out[] = {w->out};
    const strata_request_options request = {
        .struct_size = sizeof request, .rows = n, .inputs = in, .outputs = out};
    memset(w->out, 0xff, (size_t)n * s->row_out);
    const int status = strata_batcher_run(w->process->batcher, &request, err);
    if (status == STRATA_OK)
        compare(w, ANY_BATCH, 0, first, n, w->out);
    return status;
}

static int smallest_batch(const struct soak *s, int64_t rows)
{
    int b = 0;
    while (s->batches[b] < rows)
        b++;
    return b;
}

static int run_parts(struct worker *w, strata_error *err)
{
    struct soak *s = w->process->soak;
    strata_memory memory[MOST_PARTS][2];
    strata_part parts[MOST_PARTS];
    int first[MOST_PARTS], n = 0, left = 1 + draw(&w->seed, (int)soak_largest(s)),
                           all = 0;
    memset(w->out, 0xff, (size_t)soak_largest(s) * s->row_out);
    for (; n < MOST_PARTS && left > 0; n++) {
        const int rows = 1 + draw(&w->seed, left);
        first[n] = draw(&w->seed, SOAK_ROWS - rows + 1);
        memory[n][0] = (strata_memory){take_rows(w, first[n], rows, (size_t)all),
                                       (size_t)rows * s->row_in, STRATA_MEMORY_HOST, 0};
        memory[n][1] = (strata_memory){w->out + (size_t)all * s->row_out,
                                       (size_t)rows * s->row_out, STRATA_MEMORY_HOST, 0};
        parts[n] = (strata_part){.struct_size = sizeof parts[n],
                                 .rows = rows,
                                 .inputs = &memory[n][0],
                                 .outputs = &memory[n][1]};
        all += rows;
        left -= rows;
    }
    const int status = strata_context_run_parts(w->context, parts, (size_t)n, err);
    for (int i = 0, place = 0; i < n && status == STRATA_OK; i++) {
        const int rows = (int)parts[i].rows;
        compare(w, smallest_batch(s, all), place, first[i], rows, memory[i][1].data);
        place += rows;
    }
    return status;
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
    while (now() < p->end && !atomic_load(&p->failed))
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
    struct process p = {.soak = s, .way = &soak_ways[way], .tally = &s->tally[way]};
    strata_error err = {0};
    int n = 0, status = soak_open(s, &p.sites, &err);
    if (status == STRATA_OK && p.way->batcher)
        status = open_batcher(&p, seed, &err);
    const int wanted = s->n_devices * (p.way->batcher ? CLIENTS : CONTEXTS);
    p.end = now() + seconds;
    for (; n < wanted && status == STRATA_OK; n++) {
        workers[n] = (struct worker){
            .process = &p, .device = n % s->n_devices, .seed = seed * 1000 + (unsigned)n};
        status = open_worker(&workers[n], &err);
    }
    if (status != STRATA_OK) {
        soak_tell(s, "%s begins: %s", p.way->name, err.message);
        return 1; /* the process's end gives all memory back */
    }
    if (!in_order) {
        const struct timespec t = {(time_t)seconds, 0};
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
