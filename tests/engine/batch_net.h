/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine from INI text, with the layers of tests/modules/batch_layers.c, for tests of
 * batches. Suites that use it begin with scratch_make and end with scratch_remove.
 */
#ifndef TESTS_ENGINE_BATCH_NET_H
#define TESTS_ENGINE_BATCH_NET_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/engine.h"
#include "tests/broken/build.h"

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

struct net {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
};

/* Layers with weights, dense and packed, for an input of 3 x 6 x 6. */
#define CONV_NET(impl)                                                                   \
    "[layer conv]\ntype = Convolution\nfilters = 5\n"                                    \
    "kernel = 3x3\npad = 1\nweights = w:conv\n" impl                                     \
    "[layer act]\ntype = Activation\nkind = tanh\n"                                      \
    "[layer pool]\ntype = Pooling\nkind = average\n"                                     \
    "kernel = 2x2\nstride = 2\n"                                                         \
    "[layer fc]\ntype = FullyConnected\nunits = 7\n"                                     \
    "weights = w:fc\n" impl "[layer prob]\ntype = Softmax\n"
static const char conv_net[] = CONV_NET("");
/* By impls that compute a row alike wherever in a batch, of any size, it is: others may
 * add in another order where the batch is full. */
static const char row_net[] = CONV_NET("impl = c\n");

/* Loads and builds; the status of whichever fails. layers is what follows the input. */
static inline int open_net_on(struct net *n, const char *device, const char *profile,
                              const char *shape, const char *outputs, const char *layers,
                              strata_error *err)
{
    static const char *files[1];
    FILE *f = fopen(in_scratch("net.ini"), "w");
    cr_assert_not_null(f);
    fprintf(f,
            "[network]\nformat = 1\noutputs = %s\n%s[input x]\nshape = %s\n"
            "[weights w]\nrandom = 1\n%s",
            outputs, profile, shape, layers);
    fclose(f);
    memset(n, 0, sizeof *n);
    files[0] = NULL;
    if (strstr(layers, "Trial"))
        files[0] = build("layers.so", "modules/batch_layers.c", SHARED);
    if (strstr(layers, "Picky"))
        files[0] = build("sizes.so", "modules/size_layers.c", SHARED);
    const strata_registry_options options = {
        .struct_size = sizeof options, .files = files, .n_files = files[0] != NULL};
    int status = strata_create(&n->handle, device, err);
    if (status == STRATA_OK)
        status = strata_registry_create(&n->registry, &options, err);
    if (status == STRATA_OK)
        status = strata_network_load(&n->network, in_scratch("net.ini"), n->registry,
                                     NULL, err);
    return status != STRATA_OK
               ? status
               : strata_engine_build(&n->engine, n->handle, n->network, err);
}

static inline int open_net(struct net *n, const char *profile, const char *shape,
                           const char *outputs, const char *layers, strata_error *err)
{
    return open_net_on(n, "host", profile, shape, outputs, layers, err);
}

static inline void close_net(struct net *n)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_engine_destroy(n->engine);
    if (n->handle)
        strata_get_memory_stats(n->handle, &stats, NULL);
    cr_expect_eq(stats.current_bytes, 0, "%llu bytes of tensors are left",
                 (unsigned long long)stats.current_bytes);
    strata_network_destroy(n->network);
    strata_registry_destroy(n->registry);
    strata_destroy(n->handle);
}

/* A gate's two ends: each run of a Trial behind it takes a byte. */
static int gate[2];

static inline void let_run(int runs)
{
    static const char bytes[16];
    cr_assert_eq(write(gate[1], bytes, (size_t)runs), runs);
}

/* Attributes of a Trial behind a gate that is open, as a batcher runs once to begin. */
static inline const char *behind_gate(void)
{
    static char attributes[32];
    cr_assert_eq(pipe(gate), 0);
    let_run(16);
    snprintf(attributes, sizeof attributes, "gate = %d\n", gate[0]);
    return attributes;
}

static inline void shut_gate(void)
{
    char bytes[16];
    int left;
    cr_assert_eq(ioctl(gate[0], FIONREAD, &left), 0);
    cr_assert_eq(read(gate[0], bytes, (size_t)left), left);
}

#endif /* TESTS_ENGINE_BATCH_NET_H */
