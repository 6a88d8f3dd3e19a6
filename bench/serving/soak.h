/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processes of bench/serving/soak share: rows, what they must become, and
 * counts.
 */
#ifndef BENCH_SERVING_SOAK_H
#define BENCH_SERVING_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strata/strata.h>

enum {
    SOAK_DEVICES = 8,
    SOAK_BATCHES = 8,
    SOAK_ROWS = 64, /* that differ */
    SOAK_WAYS = 4,
    SOAK_LEFT = 10 /* exit code of a process that left without giving anything back */
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
    int64_t batches[SOAK_BATCHES];
    int n_batches;
    int distinct;  /* outputs of the rows, in the first place of the largest batch */
    bool by_place; /* in another place, or by another plan, a row has other bits */
    size_t row_in, row_out; /* bytes */
    struct soak_tally tally[SOAK_WAYS];
    atomic_int told;
    char first[1024]; /* what went wrong first */
    size_t room;      /* bytes of what follows: */
    char data[];      /* SOAK_ROWS inputs, then as many outputs of each place */
};

void soak_tell(struct soak *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *soak_input(struct soak *s, int row);
/* What a row becomes by the plan of a batch, an index into batches, in a place of it. */
char *soak_output(struct soak *s, int batch, int64_t place, int row);

int64_t soak_largest(const struct soak *s); /* batch */

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
