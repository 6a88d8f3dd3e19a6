/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of bench/serving/soak share: rows, what they must become, and
 * counts.
 */
#ifndef BENCH_SERVING_SOAK_H
#define BENCH_SERVING_SOAK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strata/batcher.h>

enum {
    SOAK_DEVICES = 8,
    SOAK_BATCHES = 8,
    SOAK_ROWS = 64, /* that differ */
    SOAK_WAYS = 4,
    SOAK_LEFT = 10, /* exit code of a process that left without giving anything back */
    SOAK_ANY_BATCH = -1,
    SOAK_UNWRITTEN = 0xff, /* what answers are filled with before */
    SOAK_TEXT = 1024       /* bytes of a line */
};

/* How a process uses the devices. */
struct soak_way {
    const char *name;
    int turns; /* STRATA_TURNS_*, or SOAK_ANY_TURNS */
    bool batcher, leaves;
};
enum { SOAK_ANY_TURNS = 100 };
extern const struct soak_way soak_ways[SOAK_WAYS];

struct soak_tally {
    atomic_ulong requests, rows, bad;
};

/* In memory that is shared before any process begins. */
struct soak {
    const char *path, *devices[SOAK_DEVICES];
    int n_devices, way; /* of all processes; -1: by lot */
    double seconds;     /* in which processes begin */
    bool breaks;        /* each client or context changes a byte of its first answer */
    const char *folder; /* for rows that are wrong; NULL: they are not kept */
    int64_t batches[SOAK_BATCHES];
    int n_batches;
    int distinct;  /* outputs of the rows, in the first place of the largest batch */
    bool by_place; /* in another place, or by another plan, a row has other bits */
    size_t row_in, row_out; /* bytes */
    struct soak_tally tally[SOAK_WAYS];
    atomic_int told;
    char first[SOAK_TEXT]; /* what went wrong first */
    size_t room;           /* bytes of what follows: */
    char data[];           /* SOAK_ROWS inputs, then as many outputs of each place */
};

void soak_tell(struct soak *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *soak_input(struct soak *s, int row);
/* What a row becomes by the plan of a batch, an index into batches, in a place of it. */
char *soak_output(struct soak *s, int batch, int64_t place, int row);

int64_t soak_largest(const struct soak *s); /* batch */
double soak_now(void);                      /* s, as the system's log has it */

/* Whether a row is what it must be: in a place of a batch, or of any. */
bool soak_is_row(struct soak *s, int batch, int64_t place, int row, const char *out);
/* What one that is wrong looks like: how much of it differs and by how much, what it was
 * never given, and which row it is rather. Kept in a file, too, where there is a folder.
 */
void soak_look(struct soak *s, int batch, int64_t place, int row, const char *out,
               char text[SOAK_TEXT]);

/* soak_batches.c: which requests a batcher ran together. It does not say, but its threads
 * tell the end of a run's requests one behind the other, in their order. */
enum { SOAK_RECENT = 64, SOAK_THREADS = 2 * SOAK_DEVICES };
struct soak_batch {
    int thread; /* of the batcher, from 0 on */
    int64_t rows;
    double end;
};
struct soak_batches {
    pthread_mutex_t lock; /* of all */
    unsigned long n;
    struct soak_batch recent[SOAK_RECENT];
    int n_threads, threads[SOAK_THREADS]; /* by the system's number */
};
struct soak_request {
    struct soak_batches *batches;
    int64_t rows, most; /* of a batch */
    double begin;
    unsigned long batch; /* that it was in, */
    int64_t place;       /* from there on */
};
/* For strata_request_options, with a soak_request. */
void soak_done(void *request, const strata_error *err);
/* How it ran, a moment later, when the others of its batch have ended too. */
void soak_tell_batch(const struct soak *s, const struct soak_request *r,
                     char text[SOAK_TEXT]);

/* An engine on each device, of one process. */
struct soak_sites {
    strata_registry *registry;
    strata_handle *handle[SOAK_DEVICES];
    strata_engine *engine[SOAK_DEVICES];
};
/* To be closed also if it fails. */
int soak_open(const struct soak *s, struct soak_sites *sites, strata_error *err);
void soak_close(struct soak_sites *sites);

/* In processes of their own. The first fills `s`: the rows, and what each becomes by
 * strata_context_run, which must be the same on all devices. Exit codes. */
int soak_reference(struct soak *s);
/* Load all devices for so long; then give all back in order, or leave. */
int soak_work(struct soak *s, int way, unsigned seed, double seconds, bool in_order);

#endif /* BENCH_SERVING_SOAK_H */
