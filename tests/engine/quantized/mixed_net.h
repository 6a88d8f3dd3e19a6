/* SPDX-License-Identifier: Apache-2.0
 *
 * A network of int8 in regions of which each may be without its pairs, and its values.
 */
#ifndef TESTS_ENGINE_QUANTIZED_MIXED_NET_H
#define TESTS_ENGINE_QUANTIZED_MIXED_NET_H

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "planner/mixed/mixed.h"
#include "tests/engine/engine_saved.h"

/* ---- a network ---------------------------------------------------------------------
 */

enum { BLOCK, POOL, JOIN, END, REGIONS }; /* what reads the pairs */

struct text {
    char s[8192];
    size_t n;
    int dropped; /* bit r: the pairs that region r reads are not there */
};

static inline void add(struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void add(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    t->n += (size_t)vsnprintf(t->s + t->n, sizeof t->s - t->n, format, list);
    va_end(list);
    cr_assert_lt(t->n, sizeof t->s);
}

/* The tensor that a region reads of `from`: of the pair, if that is there. */
static inline void add_pair(char name[32], struct text *t, int region, const char *from,
                            const char *scale)
{
    snprintf(name, 32, "%s", from);
    if (t->dropped >> region & 1)
        return;
    add(t,
        "[layer %s.q]\ntype = Quantize\ninputs = %s\ndtype = int8\nscale = w:%s\n"
        "[layer %s.dq]\ntype = Dequantize\ninputs = %s.q\nscale = w:%s\n",
        from, from, scale, from, from, scale);
    snprintf(name, 32, "%s.dq", from);
}

/* weights: of 1x1 to 8 or 16 channels, or of 3x3. */
static inline void add_convolution(struct text *t, const char *name, const char *from,
                                   int filters, int kernel, const char *weights,
                                   bool relu)
{
    add(t,
        "[layer %s%s]\ntype = Convolution\ninputs = %s\nfilters = %d\nkernel = %dx%d\n"
        "pad = %d\nweights = w:%s\n",
        name, relu ? ".c" : "", from, filters, kernel, kernel, kernel / 2, weights);
    if (relu)
        add(t, "[layer %s]\ntype = Activation\nkind = relu\ninputs = %s.c\n", name, name);
}

/* A residual block, maxima, a concatenation, and a product. */
static inline void draw(struct text *t, int dropped)
{
    char a[32], b[32], c[32], d[32];
    *t = (struct text){.dropped = dropped};
    add(t, "[network]\nformat = 1\nname = drawn\noutputs = y\n[input x]\n"
           "shape = N x 16 x 8 x 8\n[profile]\nN = 2\n[weights w]\nfile = w.safetensors\n"
           "[build]\ncosts = analytic\n");
    add_convolution(t, "stem", "x", 16, 3, "float", true);
    add_pair(a, t, BLOCK, "stem", "a");
    add_convolution(t, "one", a, 8, 1, "down", true);
    add_pair(b, t, BLOCK, "one", "b");
    add_convolution(t, "two", b, 8, 3, "wide", true);
    add_pair(c, t, BLOCK, "two", "b");
    add_convolution(t, "three", c, 16, 1, "up", false);
    add_pair(d, t, BLOCK, "three", "a");
    add(t,
        "[layer sum]\ntype = ElementWise\nop = sum\ninputs = %s, %s\n"
        "[layer relu]\ntype = Activation\nkind = relu\ninputs = sum\n",
        d, a);
    add_pair(a, t, POOL, "relu", "c");
    add(t,
        "[layer pool]\ntype = Pooling\nkind = max\nkernel = 2\nstride = 2\n"
        "inputs = %s\n",
        a);
    add_pair(a, t, JOIN, "pool", "b");
    add_convolution(t, "side", a, 16, 3, "conv", true);
    add_pair(b, t, JOIN, "side", "b");
    add(t, "[layer join]\ntype = Concatenation\naxis = 1\ninputs = %s, %s\n", a, b);
    add_pair(a, t, END, "join", "a");
    add(t,
        "[layer y]\ntype = FullyConnected\nunits = 10\ninputs = %s\n"
        "weights = w:fc\n",
        a);
}

static inline void spill_weights(void)
{
    static int8_t conv[16 * 16 * 9], fc[10 * 32 * 16];
    static float floats[16 * 16 * 9], scale[16], one = 1.0F / 4096, a = 0.0625F,
                                                 b = 0.03125F, c = 0.05F;
    struct weight_view views[] = {
        {"float.weight", WEIGHT_F32, 4, {16, 16, 3, 3}, floats, sizeof floats},
        {"down.weight", WEIGHT_I8, 4, {8, 16, 1, 1}, conv, 128},
        {"down.weight_scale", WEIGHT_F32, 1, {8}, scale, 8 * sizeof *scale},
        {"wide.weight", WEIGHT_I8, 4, {8, 8, 3, 3}, conv, 576},
        {"wide.weight_scale", WEIGHT_F32, 1, {8}, scale, 8 * sizeof *scale},
        {"up.weight", WEIGHT_I8, 4, {16, 8, 1, 1}, conv, 128},
        {"up.weight_scale", WEIGHT_F32, 1, {16}, scale, sizeof scale},
        {"conv.weight", WEIGHT_I8, 4, {16, 16, 3, 3}, conv, sizeof conv},
        {"conv.weight_scale", WEIGHT_F32, 1, {1}, &one, sizeof one},
        {"fc.weight", WEIGHT_I8, 2, {10, 32 * 16}, fc, sizeof fc},
        {"fc.weight_scale", WEIGHT_F32, 1, {1}, &one, sizeof one},
        {"a", WEIGHT_F32, 1, {1}, &a, sizeof a},
        {"b", WEIGHT_F32, 1, {1}, &b, sizeof b},
        {"c", WEIGHT_F32, 1, {1}, &c, sizeof c},
    };
    srand((unsigned)getpid());
    for (size_t i = 0; i < sizeof conv; i++) {
        conv[i] = (int8_t)(rand() % 255 - 127);
        floats[i] = (float)(rand() % 255 - 127) / 512;
    }
    for (size_t i = 0; i < sizeof fc; i++)
        fc[i] = (int8_t)(rand() % 255 - 127);
    for (int k = 0; k < 16; k++)
        scale[k] = (float)(rand() % 1000 + 500) / 524288;
    cr_assert_eq(
        weights_save(in_scratch("w.safetensors"), views, ARRAY_LENGTH(views), NULL),
        STRATA_OK);
}

/* ---- values -------------------------------------------------------------------------
 */

enum { INPUTS = 2 * 16 * 8 * 8, OUTPUTS = 2 * 10 };

/* rows: of the batch; 0: as many as there are at most. */
static inline void run_rows(const strata_engine *e, strata_handle *handle, int64_t rows,
                            float y[OUTPUTS])
{
    static float x[INPUTS];
    strata_context *c = NULL;
    strata_error err = {0};
    srand(7);
    for (int i = 0; i < INPUTS; i++)
        x[i] = (float)(rand() % 2000 - 1000) / 1000;
    cr_assert_eq(strata_context_create(&c, e, handle, &err), STRATA_OK, "%s",
                 err.message);
    if (rows)
        cr_assert_eq(strata_context_set_batch(c, rows, &err), STRATA_OK, "%s",
                     err.message);
    cr_assert_eq(strata_copy_in(c, strata_engine_find(e, "x"), x, &err), STRATA_OK, "%s",
                 err.message);
    for (int k = 0; k < 2; k++)
        cr_assert_eq(strata_context_run(c, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(strata_copy_out(c, strata_engine_find(e, "y"), y, &err), STRATA_OK, "%s",
                 err.message);
    strata_context_destroy(c);
}

static inline void run(const strata_engine *e, strata_handle *handle, float y[OUTPUTS])
{
    run_rows(e, handle, 0, y);
}

/* Root of the mean square, of that of b. */
static inline double distance(const float *a, const float *b)
{
    double error = 0, size = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return sqrt(error / size);
}

/* Bit r: region r is in floats. */
static inline int dropped_of(const struct planner *planner)
{
    const struct planner_mixes *m = planner->mixes;
    int dropped = 0;
    for (size_t r = 0; m && r < m->pairs.n_regions; r++)
        dropped |= m->list[r].dropped << r;
    return dropped;
}

#endif /* TESTS_ENGINE_QUANTIZED_MIXED_NET_H */
