/* SPDX-License-Identifier: Apache-2.0
 *
 * A network file and its plan, for tests of planning: no engine, no handle, no device. It
 * is planned for a host of two threads that need not be this one.
 */
#ifndef TESTS_PLANNER_PLANNING_H
#define TESTS_PLANNER_PLANNING_H

#include "planner/planner.h"
#include "tests/support/scratch.h"

struct planning {
    strata_registry *registry;
    strata_network *network;
    struct planner_device device;
    struct planner *planner;
    struct execution *execution;
    strata_error err;
};

static inline struct planner_device planning_host(void)
{
    struct planner_device d = {.properties = {.name = "host",
                                              .build = "host",
                                              .kind = STRATA_HOST,
                                              .threads = 2,
                                              .bandwidth = 20e9,
                                              .launch_ns = 2000}};
    for (int dtype = 0; dtype < STRATA_DTYPE_COUNT; dtype++)
        d.properties.flops[dtype] = 100e9;
    return d;
}

/* A device that need not be here: about as fast as one of compute capability 9.0. */
static inline struct planner_device planning_cuda(void)
{
    struct planner_device d = {.properties = {.name = "cuda",
                                              .build = "cuda",
                                              .kind = STRATA_CUDA,
                                              .sm = 90,
                                              .cache_bytes = 50 << 20,
                                              .bandwidth = 4e12,
                                              .launch_ns = 3000}};
    for (int dtype = 0; dtype < STRATA_DTYPE_COUNT; dtype++)
        d.properties.flops[dtype] = dtype == STRATA_FP16 ? 600e12 : 50e12;
    return d;
}

/* Whether there are impls for such a device. */
static inline bool planning_has_cuda(const struct planning *p)
{
    const struct registry_layer *type = p->network->layers[0].type;
    for (size_t i = 0; i < type->n_impls; i++)
        if (type->impls[i].impl.device == STRATA_CUDA)
            return true;
    return false;
}

/* Up to the network; from: NULL for the plugins of the tree. */
static inline int planning_load(struct planning *p, const char *path,
                                const strata_registry_options *from,
                                const char *const *set, size_t n_set)
{
    const strata_network_options options = {sizeof options, set, n_set, NULL, 0};
    memset(p, 0, sizeof *p);
    p->device = planning_host();
    int status = strata_registry_create(&p->registry, from, &p->err);
    return status == STRATA_OK
               ? strata_network_load(&p->network, path, p->registry, &options, &p->err)
               : status;
}

/* Of a network that is loaded: its plan, and what would run. */
static inline int planning_make(struct planning *p, struct cost_source *costs)
{
    int status = planner_make(&p->planner, p->network, &p->device, costs, &p->err);
    return status == STRATA_OK
               ? execution_make(&p->execution, p->planner, p->planner->plan, &p->err)
               : status;
}

static inline int planning_open(struct planning *p, const char *path,
                                const char *const *set, size_t n_set)
{
    int status = planning_load(p, path, NULL, set, n_set);
    return status == STRATA_OK ? planning_make(p, NULL) : status;
}

/* Of a network that is loaded: its problem, without a plan. */
static inline int planning_model(struct planning *p)
{
    int status = planner_open(&p->planner, p->network, &p->device, &p->err);
    if (status == STRATA_OK)
        status = planner_make_nodes(p->planner, &p->err);
    return status == STRATA_OK ? planner_make_model(p->planner, &p->err) : status;
}

/* In any state, once or more. */
static inline void planning_close(struct planning *p)
{
    execution_free(p->execution);
    planner_free(p->planner);
    strata_network_destroy(p->network);
    strata_registry_destroy(p->registry);
    memset(p, 0, sizeof *p);
}

#endif /* TESTS_PLANNER_PLANNING_H */
