/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers on a few numbers that were worked out by hand or stand in the ONNX operators'
 * documentation: what the FP64 references, on which the generic layer test rests, are
 * held to themselves. Each case goes through the reference and through every impl that
 * takes fp32:nchw.
 */
#include "check/harness/harness.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST 64 /* elements of a tensor here */

static const struct value_case {
    const char *layer, *attrs;
    int n_in;
    struct harness_shape in[2], weight, out;
    double x[2][MOST], w[MOST], y[MOST];
} cases[] = {
    /* clang-format off */
    /* One row per kind, with its own defaults. */
    {"Activation", "kind = leaky_relu", 1, {{1, {3}}}, .out = {1, {3}},
     .x = {{-2, 0, 3}}, .y = {-0.02, 0, 3}},
    {"Activation", "kind = clip", 1, {{1, {3}}}, .out = {1, {3}}, .x = {{-2e9, 0, 3e9}},
     .y = {-2e9, 0, 3e9}},
    {"Activation", "kind = clip; beta = 1", 1, {{1, {3}}}, .out = {1, {3}},
     .x = {{-2e9, 0.5, 3}}, .y = {-2e9, 0.5, 1}},
    {"Activation", "kind = relu6", 1, {{1, {3}}}, .out = {1, {3}}, .x = {{-2, 5, 7}},
     .y = {0, 5, 6}},
    {"Activation", "kind = sigmoid", 1, {{1, {2}}}, .out = {1, {2}}, .x = {{0, 1}},
     .y = {0.5, 0.731058578630005}},
    {"Activation", "kind = elu", 1, {{1, {2}}}, .out = {1, {2}}, .x = {{-1, 2}},
     .y = {-0.632120558828558, 2}},
    {"Activation", "kind = selu", 1, {{1, {2}}}, .out = {1, {2}}, .x = {{-1, 1}},
     .y = {-1.1113307412864784, 1.05070102214813232}},
    {"Activation", "kind = softplus", 1, {{1, {1}}}, .out = {1, {1}}, .x = {{0}},
     .y = {0.693147180559945}},
    {"Activation", "kind = softsign", 1, {{1, {1}}}, .out = {1, {1}}, .x = {{-3}},
     .y = {-0.75}},
    {"Activation", "kind = gelu", 1, {{1, {2}}}, .out = {1, {2}}, .x = {{1, -1}},
     .y = {0.841344746068543, -0.158655253931457}},
    {"Activation", "kind = silu", 1, {{1, {1}}}, .out = {1, {1}}, .x = {{1}},
     .y = {0.731058578630005}},
    {"Activation", "kind = hard_sigmoid", 1, {{1, {3}}}, .out = {1, {3}},
     .x = {{-1, 0, 4}}, .y = {0.3, 0.5, 1}},
    {"Activation", "kind = hard_swish", 1, {{1, {3}}}, .out = {1, {3}},
     .x = {{-3, 1, 4}}, .y = {0, 0.666666666666667, 4}},
    {"Activation", "kind = mish", 1, {{1, {1}}}, .out = {1, {1}}, .x = {{1}},
     .y = {0.865098388267310}},
    {"Activation", "kind = gelu_tanh", 1, {{1, {2}}}, .out = {1, {2}}, .x = {{1, -1}},
     .y = {0.841191990608306, -0.158808009391694}},
    {"Activation", "kind = swish; alpha = 2", 1, {{1, {1}}}, .out = {1, {1}},
     .x = {{1}}, .y = {0.880797077977882}},
    {"Activation", "kind = celu; alpha = 2", 1, {{1, {2}}}, .out = {1, {2}},
     .x = {{-2, 3}}, .y = {-1.264241117657115, 3}},
    {"Activation", "kind = thresholded_relu", 1, {{1, {3}}}, .out = {1, {3}},
     .x = {{0.5, 1, 1.5}}, .y = {0, 0, 1.5}},
    {"Activation", "kind = shrink; beta = 0.25", 1, {{1, {5}}}, .out = {1, {5}},
     .x = {{-2, -0.5, 0.25, 0.5, 2}}, .y = {-1.75, 0, 0, 0, 1.75}},
    {"Activation", "kind = scaled_tanh; alpha = 2; beta = 0.5", 1, {{1, {1}}},
     .out = {1, {1}}, .x = {{2}}, .y = {1.523188311911530}},

    {"Scale", "power = 2; shift = 1", 1, {{2, {2, 2}}}, {1, {2}}, {2, {2, 2}},
     {{1, 2, 3, 4}}, {2, 3}, {9, 49, 49, 169}},
    {"ElementWise", "op = sub", 2, {{2, {2, 2}}, {2, {1, 2}}}, .out = {2, {2, 2}},
     .x = {{1, 2, 3, 4}, {10, 20}}, .y = {-9, -18, -7, -16}},
    {"ElementWise", "op = pow", 2, {{1, {2}}, {1, {2}}}, .out = {1, {2}},
     .x = {{2, 9}, {3, 0.5}}, .y = {8, 3}},
    {"Softmax", "", 1, {{2, {1, 3}}}, .out = {2, {1, 3}}, .x = {{-1, 0, 1}},
     .y = {0.090030573170380, 0.244728471054798, 0.665240955774822}},
    {"Softmax", "log = true; axis = 0", 1, {{2, {2, 1}}}, .out = {2, {2, 1}},
     .x = {{5, 5}}, .y = {-0.693147180559945, -0.693147180559945}},
    {"Concatenation", "axis = -1", 2, {{2, {2, 1}}, {2, {2, 2}}}, .out = {2, {2, 3}},
     .x = {{1, 2}, {3, 4, 5, 6}}, .y = {1, 3, 4, 2, 5, 6}},

    {"Slice", "axes = 0, 1; begin = 1, 0; end = 2, 3; step = 1, 2", 1, {{2, {2, 4}}},
     .out = {2, {1, 2}}, .x = {{1, 2, 3, 4, 5, 6, 7, 8}}, .y = {5, 7}},
    {"Slice", "begin = 0, 1; end = -1, 1000", 1, {{2, {2, 4}}}, .out = {2, {1, 3}},
     .x = {{1, 2, 3, 4, 5, 6, 7, 8}}, .y = {2, 3, 4}},
    {"Slice", "begin = 3; end = -5; step = -2", 1, {{1, {4}}}, .out = {1, {2}},
     .x = {{1, 2, 3, 4}}, .y = {4, 2}},
    {"Padding", "begin = 1; end = 2; value = 9", 1, {{1, {2}}}, .out = {1, {5}},
     .x = {{1, 2}}, .y = {9, 1, 2, 9, 9}},
    {"Padding", "mode = reflect; begin = 2; end = 1", 1, {{2, {2, 3}}},
     .out = {2, {2, 6}}, .x = {{1, 2, 3, 4, 5, 6}},
     .y = {3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5}},
    {"Padding", "mode = edge; begin = 1, 0; end = 0, 2", 1, {{2, {2, 2}}},
     .out = {2, {3, 4}}, .x = {{1, 2, 3, 4}}, .y = {1, 2, 2, 2, 1, 2, 2, 2, 3, 4, 4, 4}},
    {"Shuffle", "first = 1, 0", 1, {{2, {2, 3}}}, .out = {2, {3, 2}},
     .x = {{1, 2, 3, 4, 5, 6}}, .y = {1, 4, 2, 5, 3, 6}},
    {"Shuffle", "first = 1, 2, 0; shape = 0, -1; second = 1, 0", 1, {{3, {2, 3, 1}}},
     .out = {2, {2, 3}}, .x = {{1, 2, 3, 4, 5, 6}}, .y = {1, 2, 3, 4, 5, 6}},
    {"Shuffle", "shape = 3, 2; second = 1, 0", 1, {{2, {2, 3}}}, .out = {2, {2, 3}},
     .x = {{1, 2, 3, 4, 5, 6}}, .y = {1, 3, 5, 2, 4, 6}},

    /* Parts leave FP32's range, and FP64's, and the whole is within. */
    {"Reduce", "op = prod", 1, {{2, {1, 6}}}, .out = {2, {1, 1}},
     .x = {{1e30, 1e-30, 1e30, 3, 1e-30, 5}}, .y = {15}},
    {"Reduce", "op = prod; axes = 0", 1, {{2, {6, 1}}}, .out = {2, {1, 1}},
     .x = {{1e-30, 1e-30, 1e-30, 2e30, 1e30, 1e30}}, .y = {2}},
    {"Reduce", "op = prod", 1, {{2, {1, 3}}}, .out = {2, {1, 1}},
     .x = {{1e30, 0, 1e30}}, .y = {0}},
    {"Resize", "scale = 2; coordinates = asymmetric", 1, {{3, {1, 1, 2}}},
     .out = {3, {1, 1, 4}}, .x = {{1, 2}}, .y = {1, 1, 2, 2}},
    {"Resize", "scale = 0.6", 1, {{4, {1, 1, 2, 4}}}, .out = {4, {1, 1, 1, 2}},
     .x = {{1, 2, 3, 4, 5, 6, 7, 8}}, .y = {1, 3}},
    {"Resize", "size = 7, 2", 1, {{4, {1, 1, 2, 2}}}, .out = {4, {1, 1, 7, 2}},
     .x = {{1, 2, 3, 4}}, .y = {1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}},
    {"Resize", "scale = 2; mode = bilinear", 1, {{4, {1, 1, 2, 2}}},
     .out = {4, {1, 1, 4, 4}}, .x = {{1, 2, 3, 4}},
     .y = {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75,
          4}},
    {"Resize", "scale = 2; mode = bilinear; coordinates = align_corners", 1,
     {{4, {1, 1, 2, 2}}}, .out = {4, {1, 1, 4, 4}}, .x = {{1, 2, 3, 4}},
     .y = {1, 1 + 1 / 3., 1 + 2 / 3., 2, 1 + 2 / 3., 2, 2 + 1 / 3., 2 + 2 / 3.,
          2 + 1 / 3., 2 + 2 / 3., 3, 3 + 1 / 3., 3, 3 + 1 / 3., 3 + 2 / 3., 4}},
    {"Resize", "scale = 0.6; mode = bilinear", 1, {{4, {1, 1, 2, 4}}},
     .out = {4, {1, 1, 1, 2}}, .x = {{1, 2, 3, 4, 5, 6, 7, 8}},
     .y = {2 + 2 / 3., 4 + 1 / 3.}},
    {"Identity", "", 1, {{1, {2}}}, .out = {1, {2}}, .x = {{1, 2}}, .y = {1, 2}},
    {"Constant", "shape = 1, 2", 0, .weight = {2, {1, 2}}, .out = {2, {1, 2}},
     .w = {3, 4}, .y = {3, 4}},
    /* clang-format on */
};

static void expect_values(const struct value_case *c, const char *by, const double *y,
                          double tolerance)
{
    int64_t count = 1;
    for (int d = 0; d < c->out.rank; d++)
        count *= c->out.dims[d];
    for (int64_t i = 0; i < count; i++)
        cr_expect(fabs(y[i] - c->y[i]) <= tolerance * fmax(1, fabs(c->y[i])),
                  "%s {%s} by %s: element %lld is %.9g, should be %.9g", c->layer,
                  c->attrs, by, (long long)i, y[i], c->y[i]);
}

static bool takes_linear(const struct harness_formats *f, int n_in)
{
    for (int i = 0; i < n_in; i++)
        if (f->in[i] != STRATA_F32_NCHW)
            return false;
    return f->out[0] == STRATA_F32_NCHW;
}

/* Impls that took fp32:nchw. */
static int run_impls(const struct value_case *c, struct harness_node *n,
                     const void *const *in, const void *const *weight)
{
    struct harness_formats f;
    double y[MOST];
    void *out[] = {y};
    int runs = 0;
    for (size_t i = 0; i < n->layer->n_impls; i++) {
        const struct registry_impl *impl = &n->layer->impls[i];
        const uint32_t rows = impl->impl.device == STRATA_HOST ? impl->impl.rows.n : 0;
        for (uint32_t row = 0; row < rows; row++)
            for (int64_t k = 0; harness_combination(&f, &impl->rows[row], n, k);
                 k++) {
                if (!takes_linear(&f, c->n_in))
                    continue;
                int status = harness_run(n, impl, (int)row, &f, in, weight, NULL, out);
                if (n->vetoed)
                    continue;
                cr_assert(status == STRATA_OK, "%s {%s}: %s", c->layer, c->attrs,
                          n->err.message);
                expect_values(c, impl->impl.name, y, 1e-6);
                runs++;
            }
    }
    return runs;
}

static void check_case(strata_registry *registry, const struct value_case *c)
{
    const struct registry_layer *layer;
    const void *in[] = {c->x[0], c->x[1]}, *weight[HARNESS_WEIGHTS] = {c->w};
    struct harness_shape shapes[HARNESS_WEIGHTS] = {c->weight};
    double y[MOST];
    void *out[] = {y};
    struct harness_node n = {0};
    strata_error err = {0};
    char name[80];
    snprintf(name, sizeof name, "core::%s", c->layer);
    cr_assert(registry_find(registry, name, &layer, &err) == STRATA_OK, "%s",
              err.message);
    int status = harness_open(&n, layer, c->attrs, c->in, c->n_in, shapes, 6);
    cr_assert(status == STRATA_OK, "%s {%s}: %s", c->layer, c->attrs, n.err.message);
    cr_assert(n.out[0].rank == c->out.rank &&
                  !memcmp(n.out[0].dims, c->out.dims,
                          (size_t)c->out.rank * sizeof c->out.dims[0]),
              "%s {%s}: wrong output shape", c->layer, c->attrs);
    cr_assert(harness_reference(&n, in, weight, out) == STRATA_OK);
    expect_values(c, "the reference", y, 1e-12);
    cr_expect(run_impls(c, &n, in, weight) > 0, "%s {%s}: no impl ran", c->layer,
              c->attrs);
    harness_close(&n);
}

TestSuite(layer_values, .timeout = 600);

Test(layer_values, agree_with_numbers_worked_out_elsewhere)
{
    strata_error err = {0};
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(registry, &cases[i]);
    strata_registry_destroy(registry);
}
