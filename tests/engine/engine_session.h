/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine of a network file, for tests that look inside it; errors are the caller's to
 * expect. (session.h runs whole networks.)
 */
#ifndef TESTS_ENGINE_ENGINE_SESSION_H
#define TESTS_ENGINE_ENGINE_SESSION_H

#include "engine/engine.h"
#include "tests/support/scratch.h"

struct session {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_error err;
};

/* Up to the handle; device: NULL for the best; from: NULL for the plugins of the tree. */
static inline int session_open(struct session *s, const char *device,
                               const strata_registry_options *from)
{
    memset(s, 0, sizeof *s);
    int status = strata_registry_create(&s->registry, from, &s->err);
    return status == STRATA_OK ? strata_create(&s->handle, device, &s->err) : status;
}

/* Up to the network, on the host. */
static inline int session_load(struct session *s, const char *path,
                               const strata_registry_options *from,
                               const char *const *set, size_t n_set)
{
    strata_network_options options = {sizeof options, set, n_set, NULL, 0};
    int status = session_open(s, "host", from);
    if (status == STRATA_OK)
        status = strata_network_load(&s->network, path, s->registry, &options, &s->err);
    return status;
}

static inline int session_build(struct session *s, const char *path,
                                const char *const *set, size_t n_set)
{
    int status = session_load(s, path, NULL, set, n_set);
    return status == STRATA_OK
               ? strata_engine_build(&s->engine, s->handle, s->network, &s->err)
               : status;
}

/* In any state, once or more. */
static inline void release(struct session *s)
{
    strata_engine_destroy(s->engine);
    strata_network_destroy(s->network);
    strata_destroy(s->handle);
    strata_registry_destroy(s->registry);
    memset(s, 0, sizeof *s);
}

#endif /* TESTS_ENGINE_ENGINE_SESSION_H */
