/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest program: a network file and raw input in, the largest output out.
 *
 *   minimal NETWORK.ini INPUT      cc minimal.c $(pkg-config --cflags --libs strata)
 *
 * INPUT holds the values of the first input as it is bound (fp32:nchw if the network does
 * not say otherwise); the first output is FP32.
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
    strata_binding in = {.struct_size = sizeof in}, out = {.struct_size = sizeof out};
    FILE *f = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!f)
        return fprintf(stderr, "usage: minimal NETWORK.ini INPUT\n"), 2;
    check(strata_create(&handle, "host", &err));
    check(strata_registry_create(&registry, NULL, &err));
    check(strata_network_load(&network, argv[1], registry, NULL, &err));
    check(strata_engine_build(&engine, handle, network, &err));
    check(strata_context_create(&context, engine, handle, &err));
    check(strata_engine_binding(engine, 0, &in, &err));
    check(strata_engine_binding(engine, strata_engine_bindings(engine) - 1, &out, &err));
    size_t got = fread(strata_context_data(context, 0), 1, (size_t)in.bytes, f);
    if (fclose(f) != 0 || got != (size_t)in.bytes)
        return fprintf(stderr, "minimal: %zu bytes of %lld\n", got, (long long)in.bytes),
               1;
    check(strata_context_run(context, &err));
    const float *y = strata_context_data(context, strata_engine_bindings(engine) - 1);
    long best = 0;
    for (long i = 1; i < out.bytes / (long)sizeof *y; i++)
        best = y[i] > y[best] ? i : best;
    printf("%ld %.2f %%\n", best, 100 * (double)y[best]);
    strata_context_destroy(context);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(handle);
    return 0;
}
