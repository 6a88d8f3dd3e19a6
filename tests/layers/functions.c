/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions of float against the definition in double, in units of the last
 * place: layers are compared by tolerances that a function off by a hundred of them would
 * pass. A value is drawn by its bits, so that small ones are as many as large ones.
 * Tested is every compilation of them that this processor runs; a layer takes the best.
 */
#include "plugins/common/pointwise/float.c"

#include <criterion/criterion.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/status.h"

enum { VALUES = 200000 };

typedef void apply_fn(int op, const struct pointwise_constants *k, void *y, const void *a,
                      const void *b, const void *c, int64_t n);

static int always(void)
{
    return 1;
}

static const struct variant {
    const char *name;
    int (*runs_here)(void);
    apply_fn *apply;
} variants[] = {
    {"plain", always, float_plain},
#ifdef ELEMENT_X86
    {"avx2", element_has_f16c, float_avx2},
    {"avx512", row_has_avx512, float_avx512},
#endif
};

/* The next variant that this processor runs, NULL behind the last. */
static const struct variant *next_variant(const struct variant *v)
{
    const struct variant *end = variants + ARRAY_LENGTH(variants);
    for (v = v ? v + 1 : variants; v < end && !v->runs_here();)
        v++;
    return v < end ? v : NULL;
}

struct function {
    const char *name;
    int op;
    double units, low, high; /* where the range of floats, or a sum, allows so few */
    double plain;            /* units of code without FMA; 0: as many */
};

#define UNARY(name) STRATA_UNARY_##name
#define ACTIVATION(name) POINTWISE_ACTIVATION + STRATA_##name
static const struct function functions[] = {
    {"exp", UNARY(EXP), 2.5, -87, 88},
    {"log", UNARY(LOG), 2.5, FLT_MIN, FLT_MAX},
    {"sin", UNARY(SIN), 2.5, -1e6, 1e6},
    {"cos", UNARY(COS), 2.5, -1e6, 1e6},
    {"tan", UNARY(TAN), 2.5, -1e6, 1e6},
    {"asin", UNARY(ASIN), 2.5, -1, 1},
    {"acos", UNARY(ACOS), 2.5, -1, 0.5},
    {"atan", UNARY(ATAN), 2.5, -FLT_MAX, FLT_MAX, .plain = 3},
    {"sinh", UNARY(SINH), 2.5, -88, 88},
    {"cosh", UNARY(COSH), 2.5, -88, 88},
    {"tanh", UNARY(TANH), 6, -FLT_MAX, FLT_MAX},
    {"asinh", UNARY(ASINH), 2.5, -FLT_MAX, FLT_MAX},
    {"acosh", UNARY(ACOSH), 2.5, 1, FLT_MAX},
    {"atanh", UNARY(ATANH), 2.5, -1, 1},
    {"erf", UNARY(ERF), 8, -FLT_MAX, FLT_MAX},
    {"sigmoid", ACTIVATION(SIGMOID), 2.5, -87, FLT_MAX},
    {"tanh of activations", ACTIVATION(TANH), 6, -FLT_MAX, FLT_MAX},
    {"elu", ACTIVATION(ELU), 2.5, -FLT_MAX, FLT_MAX},
    {"selu", ACTIVATION(SELU), 3, -FLT_MAX, FLT_MAX},
    {"celu", ACTIVATION(CELU), 3, -FLT_MAX, FLT_MAX},
    {"softplus", ACTIVATION(SOFTPLUS), 2.5, -87, FLT_MAX},
    {"gelu", ACTIVATION(GELU), 4, -0.5, FLT_MAX},
    {"gelu_tanh", ACTIVATION(GELU_TANH), 4, -0.5, FLT_MAX},
    {"silu", ACTIVATION(SILU), 4, -80, FLT_MAX},
    {"mish", ACTIVATION(MISH), 4, -0.5, FLT_MAX},
    {"hard_swish", ACTIVATION(HARD_SWISH), 4, -1, FLT_MAX},
};

/* A float of [low, high] by its bits. */
static float draw(uint64_t *random, const struct function *f)
{
    for (;;) {
        *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
        const uint32_t bits = (uint32_t)(*random >> 32);
        float x;
        memcpy(&x, &bits, sizeof x);
        if ((double)x >= f->low && (double)x <= f->high)
            return x;
    }
}

static double units_off(float got, double want)
{
    int exponent;
    frexp(want, &exponent);
    const double unit =
        ldexp(1, (exponent < FLT_MIN_EXP ? FLT_MIN_EXP : exponent) - FLT_MANT_DIG);
    return isinf((float)want) && isinf(got) ? 0 : fabs((double)got - want) / unit;
}

static void check(const struct variant *v, const struct function *f)
{
    const struct pointwise_constants k = {.alpha = 1, .beta = 1};
    float x[POINTWISE_ROW], y[POINTWISE_ROW], at = 0;
    double wide[POINTWISE_ROW], want[POINTWISE_ROW], most = 0;
    uint64_t random = 1;
    for (int drawn = 0; drawn < VALUES; drawn += POINTWISE_ROW) {
        for (int i = 0; i < POINTWISE_ROW; i++)
            wide[i] = (double)(x[i] = draw(&random, f));
        v->apply(f->op, &k, y, x, x, x, POINTWISE_ROW);
        pointwise_double.apply(f->op, &k, want, wide, wide, wide, POINTWISE_ROW);
        for (int i = 0; i < POINTWISE_ROW; i++) {
            const double off = units_off(y[i], want[i]);
            at = off > most ? x[i] : at;
            most = off > most ? off : most;
        }
    }
    const double units = f->plain > 0 && v == variants ? f->plain : f->units;
    cr_expect_leq(most, units, "%s, %s(%a): %.2f units in the last place, %g allowed",
                  v->name, f->name, (double)at, most, units);
}

/* The last that runs is the best. */
Test(functions, layers_have_the_best_of_the_processor)
{
    const struct pointwise_constants k = {.alpha = 1, .beta = 1};
    const struct variant *best = variants;
    float x[POINTWISE_ROW], y[POINTWISE_ROW], want[POINTWISE_ROW];
    uint64_t random = 3;
    for (const struct variant *v = variants; (v = next_variant(v));)
        best = v;
    for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
        for (int j = 0; j < POINTWISE_ROW; j++)
            x[j] = draw(&random, &functions[i]);
        pointwise_float.apply(functions[i].op, &k, y, x, x, x, POINTWISE_ROW);
        best->apply(functions[i].op, &k, want, x, x, x, POINTWISE_ROW);
        cr_expect(memcmp(y, want, sizeof y) == 0, "%s of a layer is not %s's",
                  functions[i].name, best->name);
    }
}

Test(functions, are_within_units_of_the_last_place)
{
    for (const struct variant *v = next_variant(NULL); v; v = next_variant(v))
        for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
            check(v, &functions[i]);
}

/* Values drawn by their bits hardly meet the few binades where erf comes to 1 and is off
 * the most: every third float of them. */
static void check_end_of_erf(const struct variant *v)
{
    const struct pointwise_constants k = {.alpha = 1, .beta = 1};
    float x[POINTWISE_ROW], y[POINTWISE_ROW], at = 0;
    double most = 0;
    uint32_t bits = 0x3f800000; /* 1 */
    while (bits < 0x40800000) { /* 4 */
        for (int i = 0; i < POINTWISE_ROW; i++, bits += 3)
            memcpy(&x[i], &bits, sizeof x[i]);
        v->apply(UNARY(ERF), &k, y, x, x, x, POINTWISE_ROW);
        for (int i = 0; i < POINTWISE_ROW; i++) {
            const double off = units_off(y[i], erf((double)x[i]));
            at = off > most ? x[i] : at;
            most = off > most ? off : most;
        }
    }
    cr_expect_leq(most, 8, "%s, erf(%a): %.2f units in the last place, 8 allowed",
                  v->name, (double)at, most);
}

Test(functions, erf_is_within_its_units_where_it_comes_to_one)
{
    for (const struct variant *v = next_variant(NULL); v; v = next_variant(v))
        check_end_of_erf(v);
}

/* Who takes 1 - y^2, or atanh, of what is above 1 gets no number. */
static void check_most(const struct variant *v, int op)
{
    const struct pointwise_constants k = {.alpha = 1, .beta = 1};
    float x[POINTWISE_ROW], y[POINTWISE_ROW], at = 3;
    while (at < 10) { /* every float from 3 on */
        for (int j = 0; j < POINTWISE_ROW; j++)
            x[j] = at = nextafterf(at, 10);
        v->apply(op, &k, y, x, x, x, POINTWISE_ROW);
        for (int j = 0; j < POINTWISE_ROW; j++)
            cr_assert(y[j] <= 1, "%s, op %d of %a: %a", v->name, op, (double)x[j],
                      (double)y[j]);
    }
}

Test(functions, tanh_and_erf_are_at_most_one)
{
    static const int ops[] = {UNARY(TANH), UNARY(ERF), ACTIVATION(TANH)};
    for (const struct variant *v = next_variant(NULL); v; v = next_variant(v))
        for (size_t i = 0; i < ARRAY_LENGTH(ops); i++)
            check_most(v, ops[i]);
}

/* What C's functions give, bit for bit but for a NaN's. */
static void check_odd(const struct variant *v, int op)
{
    static const float x[] = {0, -0.0F, INFINITY, -INFINITY, NAN};
    static const double wide[] = {0, -0.0, INFINITY, -INFINITY, NAN};
    const struct pointwise_constants k = {.alpha = 1, .beta = 1};
    float y[ARRAY_LENGTH(x)];
    double want[ARRAY_LENGTH(x)];
    v->apply(op, &k, y, x, x, x, ARRAY_LENGTH(x));
    pointwise_double.apply(op, &k, want, wide, wide, wide, ARRAY_LENGTH(x));
    for (size_t j = 0; j < ARRAY_LENGTH(x); j++) {
        cr_expect_eq(isnan(y[j]) != 0, isnan(want[j]) != 0, "%s, op %d of %g", v->name,
                     op, wide[j]);
        if (!isnan(want[j]))
            cr_expect(memcmp(&y[j], &(float){(float)want[j]}, sizeof y[j]) == 0,
                      "%s, op %d of %g: %g, not %g", v->name, op, wide[j], (double)y[j],
                      want[j]);
    }
}

Test(functions, keep_zeros_infinities_and_nan)
{
    static const int odd[] = {UNARY(SIN), UNARY(TANH), UNARY(ERF), ACTIVATION(ELU)};
    for (const struct variant *v = next_variant(NULL); v; v = next_variant(v))
        for (size_t i = 0; i < ARRAY_LENGTH(odd); i++)
            check_odd(v, odd[i]);
}
