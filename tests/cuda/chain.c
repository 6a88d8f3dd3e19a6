/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of Trial layers for tests on CUDA.
 */
#include "tests/cuda/chain.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

static char folder[] = "/tmp/strata-cuda-XXXXXX";
char net_path[64];

/* The network file, in a folder made at first need: a test that is skipped is not cleaned
 * up after. */
static FILE *open_file(void)
{
    if (!*net_path)
        cr_assert_neq(mkdtemp(folder), NULL);
    snprintf(net_path, sizeof net_path, "%s/net.ini", folder);
    FILE *f = fopen(net_path, "w");
    cr_assert_neq(f, NULL);
    return f;
}

void write_text(const char *ini)
{
    FILE *f = open_file();
    cr_assert(fputs(ini, f) >= 0 && !fclose(f));
}

void remove_files(void)
{
    if (!*net_path)
        return;
    unlink(net_path);
    rmdir(folder);
}

void close_net(struct net *n)
{
    strata_context_destroy(n->context);
    strata_engine_destroy(n->engine);
    strata_network_destroy(n->network);
    strata_registry_destroy(n->registry);
    strata_destroy(n->handle);
    *n = (struct net){0};
}

void open_net(struct net *n, strata_handle *handle)
{
    strata_error err = {0};
    char module[4096];
    const char *modules = getenv("STRATA_TEST_MODULES");
    const char *files[] = {module};
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .files = files,
                                             .n_files = 1,
                                             .allow_untrusted = 1};
    snprintf(module, sizeof module, "%s/cuda_trial.so", modules ? modules : ".");
    *n = (struct net){.handle = handle};
    OK(strata_registry_create(&n->registry, &options, &err));
    OK(strata_network_load(&n->network, net_path, n->registry, NULL, &err));
    OK(strata_engine_build(&n->engine, n->handle, n->network, &err));
    OK(strata_context_create(&n->context, n->engine, n->handle, &err));
}

strata_handle *host_handle(void)
{
    strata_handle *h = NULL;
    cr_assert_eq(strata_create(&h, "host", NULL), STRATA_OK);
    return h;
}

void write_chain(const char *const *impls, size_t n, bool on_host)
{
    FILE *f = open_file();
    fprintf(f,
            "[network]\nformat = 1\noutputs = t%zu\n[build]\ncosts = analytic\n"
            "[input x]\nshape = 3 x 5 x 17 x 13\n",
            n - 1);
    for (size_t i = 0; i < n; i++)
        fprintf(f,
                "[layer t%zu]\ntype = Trial\nadd = 0.%zu\nformat = fp32:%s\nimpl = %s\n",
                i, i + 1, i % 2 ? "nhwc" : "nchw", on_host ? "c" : impls[i]);
    fclose(f);
}

unsigned fresh_seed(void)
{
    static unsigned seed;
    if (seed == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        seed = (unsigned)t.tv_nsec | 1;
        fprintf(stderr, "# seed %u\n", seed);
    }
    return seed++;
}

void draw_from(float *x, size_t n, unsigned seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (float)(state >> 40) / (float)(1 << 23) - 1;
    }
}

void draw(float *x, size_t n)
{
    draw_from(x, n, fresh_seed());
}

void chain_of(float *y, const float *x, size_t layers)
{
    for (size_t i = 0; i < CHAIN_COUNT; i++) {
        y[i] = x[i];
        for (size_t k = 0; k < layers; k++)
            y[i] += (float)((double)(k + 1) / 10);
    }
}

void expect_equal(const float *got, const float *want, const char *what)
{
    size_t wrong = 0, first = 0;
    for (size_t i = CHAIN_COUNT; i-- > 0;)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0) {
            wrong++;
            first = i;
        }
    cr_expect_eq(wrong, 0, "%s: %zu of %d differ, first %zu: got %g, want %g", what,
                 wrong, CHAIN_COUNT, first, (double)got[first], (double)want[first]);
}

void run_chain(struct net *n, size_t layers, const char *what)
{
    static float x[CHAIN_COUNT], y[CHAIN_COUNT], want[CHAIN_COUNT];
    strata_error err = {0};
    draw(x, CHAIN_COUNT);
    chain_of(want, x, layers);
    memset(y, 0xff, sizeof y);
    OK(strata_copy_in(n->context, 0, x, &err));
    OK(strata_copy_in(n->context, 1, y, &err));
    OK(strata_context_run(n->context, &err));
    OK(strata_copy_out(n->context, 1, y, &err));
    expect_equal(y, want, what);
}
