/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations at values that arithmetic treats apart: NaN, the infinities, subnormals.
 * Each kind in each host impl and format of Activation, and fused where an impl declares
 * it. What is expected was worked out by hand.
 */
#include "check/harness/harness.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <strata/layers.h>

/* Fused by oneDNN these are a maximum, which takes a number rather than a NaN; its relu
 * of a linear convolution multiplies by 0, and so makes a NaN of -infinity. */
#define MAXIMA (1u << STRATA_RELU | 1u << STRATA_RELU6 | 1u << STRATA_CLIP)

static const double odd[] = {NAN, INFINITY, -INFINITY, 1e-40, -1e-40, 5e-8, -5e-8, 0.0};
enum { ODD = sizeof odd / sizeof odd[0], SMALL = 3 /* the first small number */ };

static const struct {
    const char *name;
    double alpha, beta;
    double up, down; /* of the infinities; NaN where the formula has inf*0 or inf/inf */
    double zero;     /* of 0, and nearly of what is nearly 0 */
} kinds[] = {
    [STRATA_RELU] = {"relu", 0, 0, INFINITY, 0, 0},
    [STRATA_LEAKY_RELU] = {"leaky_relu", 0.01, 0, INFINITY, -INFINITY, 0},
    [STRATA_RELU6] = {"relu6", 0, 0, 6, 0, 0},
    [STRATA_CLIP] = {"clip; alpha = -1; beta = 2", -1, 2, 2, -1, 0},
    [STRATA_SIGMOID] = {"sigmoid", 0, 0, 1, 0, 0.5},
    [STRATA_TANH] = {"tanh", 0, 0, 1, -1, 0},
    [STRATA_ELU] = {"elu", 1, 0, INFINITY, -1, 0},
    [STRATA_SELU] = {"selu; alpha = 2; beta = 3", 2, 3, INFINITY, -6, 0},
    [STRATA_SOFTPLUS] = {"softplus", 0, 0, INFINITY, 0, 0.693147180559945},
    [STRATA_SOFTSIGN] = {"softsign", 0, 0, NAN, NAN, 0},
    [STRATA_GELU] = {"gelu", 0, 0, INFINITY, NAN, 0},
    [STRATA_SILU] = {"silu", 0, 0, INFINITY, NAN, 0},
    [STRATA_HARD_SIGMOID] = {"hard_sigmoid", 0.2, 0.5, 1, 0, 0.5},
    [STRATA_HARD_SWISH] = {"hard_swish", 0, 0, INFINITY, NAN, 0},
    [STRATA_MISH] = {"mish", 0, 0, INFINITY, NAN, 0},
    [STRATA_GELU_TANH] = {"gelu_tanh", 0, 0, INFINITY, NAN, 0},
    [STRATA_SWISH] = {"swish", 1, 0, INFINITY, NAN, 0},
    [STRATA_CELU] = {"celu; alpha = 2", 2, 0, INFINITY, -2, 0},
    [STRATA_THRESHOLDED_RELU] = {"thresholded_relu", 1, 0, INFINITY, 0, 0},
    [STRATA_SHRINK] = {"shrink; beta = 0.25", 0.5, 0.25, INFINITY, -INFINITY, 0},
    [STRATA_SCALED_TANH] = {"scaled_tanh; alpha = 2; beta = 3", 2, 3, 2, -2, 0},
};

static bool close_to(double got, double want, double allowed)
{
    return isnan(want) ? isnan(got) : got == want || fabs(got - want) <= allowed;
}

/* A value in each of CHANNELS channels, of which weights take the mean; a multiple of
 * every block, so that no pad lanes are made of NaN*0. */
enum { CHANNELS = 16, COUNT = ODD * CHANNELS };
struct subject {
    const char *name, *attrs;
    struct harness_shape in;
    int step; /* elements from a value to the next; the channels fill the rest */
    bool fused;
};

static const struct subject subjects[] = {
    {"core::Activation", "kind = ", {4, {1, CHANNELS, 1, ODD}}, 1, false},
    {"core::Convolution",
     "filters = 16; kernel = 1, 1",
     {4, {1, CHANNELS, 1, ODD}},
     1,
     true},
    {"core::FullyConnected", "units = 16", {2, {ODD, CHANNELS}}, CHANNELS, true},
    {"core::MatrixMultiply", "units = 16", {2, {ODD, CHANNELS}}, CHANNELS, true},
};

#define BFLOATS (STRATA_BF16_NCHW | STRATA_BF16_NHWC | STRATA_BF16_NHWC8)

/* All but the first `skip` values. */
static void expect_odd(const struct subject *s, const char *impl, uint64_t format,
                       int kind, const double *y, int skip)
{
    const uint64_t bfloats = STRATA_BF16_NCHW | STRATA_BF16_NHWC | STRATA_BF16_NHWC8;
    const double want[] = {NAN, kinds[kind].up, kinds[kind].down};
    const double allowed = format & bfloats ? 4e-3 : 5e-4;
    for (int at = 0; at < COUNT; at++) {
        int i = at / s->step % ODD;
        if (i >= skip)
            cr_expect(close_to(y[at], i < SMALL ? want[i] : kinds[kind].zero, allowed),
                      "%s, impl %s, format bit %d: %s(%g) is %g", s->name, impl,
                      __builtin_ctzll(format), kinds[kind].name, odd[i], y[at]);
    }
}

/* What an impl is excused from. */
static int excused(const struct subject *s, const struct registry_impl *impl, int kind)
{
    bool onednn = s->fused && strncmp(impl->impl.name, "onednn", 6) == 0;
    return onednn && kind == STRATA_RELU ? SMALL : onednn && MAXIMA >> kind & 1;
}

/* Every combination of formats of every host impl that does the kind. */
static int run_kind(const struct subject *s, struct harness_node *n, int kind,
                    const strata_epilogue *epilogue)
{
    double x[COUNT], mean[CHANNELS * CHANNELS], zeros[CHANNELS] = {0}, y[COUNT];
    const void *const in[] = {x}, *const weight[HARNESS_WEIGHTS] = {mean, zeros};
    void *const out[] = {y};
    struct harness_formats f;
    int runs = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = odd[i / s->step % ODD];
    for (int i = 0; i < CHANNELS * CHANNELS; i++)
        mean[i] = 1.0 / CHANNELS;
    for (size_t i = 0; i < n->layer->n_impls; i++) {
        const struct registry_impl *impl = &n->layer->impls[i];
        const uint32_t rows = impl->impl.device == STRATA_HOST ? impl->impl.rows.n : 0;
        if (epilogue && !(impl->impl.activations >> kind & 1))
            continue;
        for (uint32_t row = 0; row < rows; row++)
            for (int64_t k = 0; harness_combination(&f, &impl->rows[row], n, k); k++) {
                int status =
                    harness_run(n, impl, (int)row, &f, in, weight, epilogue, out);
                if (n->vetoed)
                    continue;
                cr_assert(status == STRATA_OK, "%s: %s", s->name, n->err.message);
                expect_odd(s, impl->impl.name, f.out[0], kind, y, excused(s, impl, kind));
                runs++;
            }
    }
    return runs;
}

static void check_kind(strata_registry *registry, const struct subject *s, int kind)
{
    const struct registry_layer *layer;
    const struct harness_shape shapes[HARNESS_WEIGHTS] = {{0}};
    const strata_epilogue epilogue = {.flags = STRATA_EPILOGUE_ACTIVATION,
                                      .activation = kind,
                                      .alpha = kinds[kind].alpha,
                                      .beta = kinds[kind].beta};
    struct harness_node n = {0};
    strata_error err = {0};
    char text[160];
    cr_assert(registry_find(registry, s->name, &layer, &err) == STRATA_OK, "%s",
              err.message);
    snprintf(text, sizeof text, "%s%s", s->attrs, s->fused ? "" : kinds[kind].name);
    int status = harness_open(&n, layer, text, &s->in, 1, shapes, 0);
    cr_assert(status == STRATA_OK, "%s {%s}: %s", s->name, text, n.err.message);
    cr_expect(run_kind(s, &n, kind, s->fused ? &epilogue : NULL) > 0,
              "%s: no impl does %s", s->name, kinds[kind].name);
    harness_close(&n);
}

TestSuite(odd_values, .timeout = 600);

Test(odd_values, of_activations_alone_and_fused)
{
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        for (int kind = 0; kind < STRATA_ACTIVATION_COUNT; kind++)
            check_kind(registry, &subjects[i], kind);
    strata_registry_destroy(registry);
}
