/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing impls of layers on a CUDA device, outside of an engine.
 */
#ifndef BENCH_CUDA_IMPL_TIME_H
#define BENCH_CUDA_IMPL_TIME_H

#include <stdbool.h>

#include "core/handle.h"
#include "registry/registry.h"

enum { IMPL_SETS = 3, IMPL_LAUNCHES = 6, IMPL_PACKS = 16 };

/* The device. One of a process: impls' packed weights are charged to it. */
struct impl_device {
    strata_handle *handle;
    const struct device_ops *ops;
    strata_registry *registry;
    strata_event *from, *to;
    int runs; /* of which the median is taken */
    void *packs[IMPL_PACKS];
    size_t pack_bytes[IMPL_PACKS];
    int n_packs;
};

/* What one impl keeps; in zeroed memory. NULL as the impl: nothing. */
struct impl_state {
    const strata_impl *impl;
    void *state, *ctx, *workspace;
    size_t workspace_size;
    bool set_up, opened;
};

/* To be closed in any case. */
int impl_device_open(struct impl_device *d, bool quick, strata_error *err);
void impl_device_close(struct impl_device *d);

/* Random finite values all over a block of device memory: halves in (-1, 1), or floats
 * in [-1, 1). */
int impl_fill(struct impl_device *d, void *to, size_t bytes, bool half,
              strata_error *err);

/* Sets s->impl up for a node; to be closed in any case. */
int impl_open(struct impl_state *s, struct impl_device *d, const strata_node *n,
              strata_error *err);
void impl_close(struct impl_state *s, struct impl_device *d);

/* One launch, on one of IMPL_SETS sets of buffers. */
typedef int impl_launch(void *user, int set, strata_error *err);

/* Median microseconds of a launch: of replays of a graph of IMPL_LAUNCHES, which go from
 * set to set, or without `capture` of as many launches. */
int impl_time(double *us, struct impl_device *d, impl_launch *launch, void *user,
              bool capture, strata_error *err);

/* Whether an impl's own word admits a node on this device, whatever its rows say. */
bool impl_admits(const strata_impl *impl, const strata_node *n);

#endif /* BENCH_CUDA_IMPL_TIME_H */
