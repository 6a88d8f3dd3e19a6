/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of a transformer whose sequences have any length, for tests of sizes that vary.
 * Of the device in STRATA_TEST_DEVICE, or the host.
 */
#ifndef TESTS_ENGINE_SIZES_SIZES_NET_H
#define TESTS_ENGINE_SIZES_SIZES_NET_H

#include <math.h>

#include "tests/engine/batch_net.h"

#include <strata/sizes.h>

enum { WIDTH = 16, MOST = 40, ROWS = 4, VALUES = ROWS * MOST * WIDTH };

/* A block of a transformer of 2 heads: T stands in products, Softmax and shuffles. The
 * weights of `up` and `y` are as large as a version shares packed ones. */
#define BLOCK(up)                                                                        \
    "[layer norm]\ntype = Normalization\nscale = w\ninputs = x\n"                        \
    "[layer q]\ntype = MatrixMultiply\nunits = 16\nb = w\ninputs = norm\n"               \
    "[layer qh]\ntype = Shuffle\nshape = 0, 0, 2, 8\nsecond = 0, 2, 1, 3\n"              \
    "[layer k]\ntype = MatrixMultiply\nunits = 16\nb = w\ninputs = norm\n"               \
    "[layer kh]\ntype = Shuffle\nshape = 0, 0, 2, 8\nsecond = 0, 2, 3, 1\n"              \
    "[layer scores]\ntype = MatrixMultiply\ninputs = qh, kh\n"                           \
    "[layer p]\ntype = Softmax\naxis = -1\n"                                             \
    "[layer mixed]\ntype = MatrixMultiply\ninputs = p, qh\n"                             \
    "[layer back]\ntype = Shuffle\nfirst = 0, 2, 1, 3\nshape = 0, 0, 16\n"               \
    "[layer both]\ntype = ElementWise\ninputs = back, x\n"                               \
    "[layer up]\ntype = MatrixMultiply\nunits = 1024\nb = w\n" up                        \
    "[layer act]\ntype = Activation\nkind = gelu\n"                                      \
    "[layer y]\ntype = MatrixMultiply\nunits = 16\nb = w\n"

static const char block[] = BLOCK("");
static const char analytic[] = "[build]\ncosts = analytic\n";

static inline void fill(float *x, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        x[i] = (float)(seed >> 16 & 0x7fff) / 16384 - 1;
    }
}

static inline const char *device(void)
{
    return env_or("STRATA_TEST_DEVICE", "host");
}

static inline int open_sizes(struct net *n, const char *profile, const char *shape,
                             const char *layers, strata_error *err)
{
    char sections[256];
    snprintf(sections, sizeof sections, "[profile]\n%s\n%s", profile, analytic);
    return open_net_on(n, device(), sections, shape, "y", layers, err);
}

/* Of rows x T x WIDTH. */
static inline void run(strata_context *c, int64_t rows, int64_t t, const float *x,
                       float *y)
{
    strata_error err;
    strata_binding b = {.struct_size = sizeof b};
    const int64_t dims[] = {rows, t, WIDTH};
    OK(strata_context_set_shape(c, 0, 3, dims, &err));
    OK(strata_context_binding(c, 1, &b, &err));
    cr_assert(b.desc.dims[0] == rows && b.desc.dims[1] == t);
    cr_assert_eq(b.bytes, rows * t * WIDTH * 4);
    OK(strata_copy_in(c, 0, x, &err));
    OK(strata_context_run(c, &err));
    OK(strata_copy_out(c, 1, y, &err));
}

/* What a network built for that size alone gives. */
static inline void run_exact(int64_t rows, int64_t t, const float *x, float *y)
{
    struct net n;
    strata_error err;
    strata_context *c;
    char shape[64];
    snprintf(shape, sizeof shape, "%lld x %lld x %d", (long long)rows, (long long)t,
             WIDTH);
    OK(open_net_on(&n, device(), analytic, shape, "y", block, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    run(c, rows, t, x, y);
    strata_context_destroy(c);
    close_net(&n);
}

static inline double difference(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, isfinite(a[i]) ? fabs((double)a[i] - (double)b[i]) : 1e9);
    return worst;
}

#define EXPECT_SAME(a, b, n, ...)                                                        \
    do {                                                                                 \
        double d_ = difference(a, b, n);                                                 \
        cr_expect_lt(d_, 1e-4, __VA_ARGS__);                                             \
    } while (0)

#endif /* TESTS_ENGINE_SIZES_SIZES_NET_H */
