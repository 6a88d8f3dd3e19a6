/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest program: a network file and an image in, the class out.
 *
 *   minimal NETWORK.ini IMAGE      cc minimal.c $(pkg-config --cflags --libs strata)
 *
 * The image becomes the first input as the network's [input] section says; the last
 * output holds a value in FP32 for each class.
 */
#include <strata/strata.h>

#include <stdio.h>
#include <stdlib.h>

static strata_error err;

static void check(int status)
{
    if (status == STRATA_OK)
        return;
    fprintf(stderr, "minimal: %s\n", err.message);
    exit(1);
}

int main(int argc, char **argv)
{
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    strata_binding out = {.struct_size = sizeof out};
    if (argc != 3)
        return fprintf(stderr, "usage: minimal NETWORK.ini IMAGE\n"), 2;
    check(strata_create(&handle, "host", &err));
    check(strata_registry_create(&registry, NULL, &err));
    check(strata_network_load(&network, argv[1], registry, NULL, &err));
    check(strata_engine_build(&engine, handle, network, &err));
    check(strata_context_create(&context, engine, handle, &err));
    check(strata_engine_binding(engine, strata_engine_bindings(engine) - 1, &out, &err));
    check(strata_engine_read_image(engine, 0, strata_context_data(context, 0), argv[2],
                                   &err));
    check(strata_context_run(context, &err));
    const float *y = strata_context_data(context, strata_engine_bindings(engine) - 1);
    long best = 0;
    for (long i = 1; i < out.bytes / (long)sizeof *y; i++)
        best = y[i] > y[best] ? i : best;
    const char *label = strata_engine_label(engine, best);
    printf("%ld %s%s%.2f %%\n", best, label ? label : "", label ? " " : "",
           100 * (double)y[best]);
    strata_context_destroy(context);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(handle);
    return 0;
}
