/* SPDX-License-Identifier: Apache-2.0
 *
 * A run watched from step to step: every tensor right after it was made, since memory is
 * used again later. The plan stays as it is, so what is seen is what runs.
 */
#ifndef CALIBRATE_WATCH_H
#define CALIBRATE_WATCH_H

#include "engine/context/context.h"

struct watcher {
    void *of;
    /* Once for each tensor, the network's inputs too, of the first value of it: made by
     * the node, or, where that is NULL, by others or the application. */
    int (*made)(void *of, strata_context *c, int value, const struct execution_node *n,
                strata_error *err);
    /* Each value that the node is about to read, which may be changed; or NULL. */
    int (*read)(void *of, strata_context *c, int value, const struct execution_node *n,
                strata_error *err);
};

/* One run, each step waited for; the inputs are set. */
int watch_run(strata_context *c, const struct watcher *w, strata_error *err);

/* A value's bytes as they lie in memory, malloc'ed; and back. */
int watch_bytes(void **out, strata_context *c, int value, strata_error *err);
int watch_set_bytes(strata_context *c, int value, const void *bytes, strata_error *err);
/* A value's elements as FP32, dense and in logical order, malloc'ed; and back. */
int watch_floats(float **out, int64_t *n, strata_context *c, int value,
                 strata_error *err);
int watch_set_floats(strata_context *c, int value, const float *from, strata_error *err);

static inline const struct network_tensor *watch_tensor(const strata_context *c,
                                                        int value)
{
    return &c->engine->network->tensors[c->engine->execution->values[value].tensor];
}

#endif /* CALIBRATE_WATCH_H */
