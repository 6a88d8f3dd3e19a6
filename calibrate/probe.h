/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks run on data to learn something of them: with every tensor in memory and FP32
 * between, planned by the model's costs.
 */
#ifndef CALIBRATE_PROBE_H
#define CALIBRATE_PROBE_H

#include "calibrate/quantised.h"
#include "engine/context/context.h"

/* The inputs of runs, in an order that stays. */
struct samples {
    size_t n;
    void *of;
    int (*load)(void *of, strata_context *c, size_t i, strata_error *err);
    /* Told before each run of how many, 0 of 0 behind the last; false: stop, which is
     * EBUSY of the work. NULL: nobody asks. */
    bool (*step)(void *of, const char *what, size_t i, size_t n);
};
/* STRATA_OK, or the error of an interruption. */
int samples_step(const struct samples *s, const char *what, size_t i, size_t n,
                 strata_error *err);

struct probe {
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    struct quantised made; /* what the network was read from */
};
/* Of a network that stays the caller's, whose build options become the probe's; of what
 * it becomes quantised. Free after a failure, too. */
int probe_open(struct probe *t, strata_handle *handle, strata_network *net,
               strata_error *err);
int probe_open_quantised(struct probe *t, strata_handle *handle,
                         const struct quantising *q, strata_error *err);
void probe_close(struct probe *t);

/* Options under which probes run; net's own otherwise stay. */
void probe_set_options(strata_network *net);

#endif /* CALIBRATE_PROBE_H */
