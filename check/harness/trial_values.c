/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a trial: what its tensors hold, and what must come out of them.
 */
#include "check/harness/trial.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values -------------------------------------------------------------------- */

/* On a grid that is exact in FP16. */
static double draw(struct trial *k, double low, double high)
{
    double u = (double)(trial_random(k) >> 11) * 0x1p-53, grid = 0x1p-6;
    while (fmax(fabs(low), fabs(high)) > 2048 * grid)
        grid *= 2;
    if (k->c->integers && grid < 1)
        grid = 1;
    return rint((low + u * (high - low)) / grid) * grid;
}

static double *draw_values(struct trial *k, const strata_tensor *t, double low,
                           double high)
{
    double *v = malloc((size_t)t->count * sizeof *v + 1);
    for (int64_t i = 0; v && i < t->count; i++)
        v[i] = draw(k, low, high);
    return v;
}

static double *blank_values(const strata_tensor *t)
{
    return calloc((size_t)t->count + 1, sizeof(double));
}

/* The same data for the same seed, attributes and shapes, whatever ran before. */
static void restart_random(struct trial *k)
{
    k->random = k->seed;
    for (const char *p = k->attrs; *p; p++)
        k->random = k->random * 31 + (unsigned char)*p;
    for (int i = 0; i < k->node.node.n_in; i++)
        for (int d = 0; d < k->node.in[i].rank; d++)
            k->random = k->random * 1000003 + (uint64_t)k->node.in[i].dims[d];
}

bool trial_make_values(struct trial *k)
{
    const struct layer_case *c = k->c;
    const struct harness_node *n = &k->node;
    restart_random(k);
    bool ranged = c->low != 0 || c->high != 0, done = true;
    bool weighted = c->weight_low != 0 || c->weight_high != 0;
    for (int i = 0; i < n->node.n_in; i++) {
        done &= (k->v.in[i] = draw_values(k, &n->in[i], ranged ? c->low : -2,
                                          ranged ? c->high : 2)) != NULL;
        for (int64_t e = 0; done && e < n->in[i].count; e++)
            k->v.in[i][e] = trial_number(k, k->v.in[i][e]);
    }
    for (int i = 0; i < n->node.n_weights; i++)
        if (n->weight[i].rank > 0)
            done &= (k->v.weight[i] =
                         draw_values(k, &n->weight[i], weighted ? c->weight_low : -1,
                                     weighted ? c->weight_high : 1)) != NULL;
    for (int i = 0; i < n->node.n_out; i++) {
        done &= (k->v.out[i] = blank_values(&n->out[i])) != NULL;
        done &= (k->v.expected[i] = blank_values(&n->out[i])) != NULL;
    }
    int64_t channels = n->out[0].rank > 1 ? n->out[0].dims[1] : 1;
    k->v.residual = draw_values(k, &n->out[0], -2, 2);
    k->v.scale = malloc((size_t)channels * sizeof(float));
    k->v.bias = malloc((size_t)channels * sizeof(float));
    for (int64_t i = 0; k->v.scale && k->v.bias && i < channels; i++) {
        k->v.scale[i] = (float)draw(k, 0.5, 1.5);
        k->v.bias[i] = (float)draw(k, -1, 1);
    }
    return done && k->v.residual && k->v.scale && k->v.bias;
}

void trial_free_values(struct trial_values *v)
{
    for (int i = 0; i < HARNESS_INPUTS; i++)
        free(v->in[i]);
    for (int i = 0; i < HARNESS_WEIGHTS; i++)
        free(v->weight[i]);
    for (int i = 0; i < HARNESS_OUTPUTS; i++) {
        free(v->out[i]);
        free(v->expected[i]);
    }
    free(v->residual);
    free(v->scale);
    free(v->bias);
    memset(v, 0, sizeof *v);
}

/* ---- the definition, with the epilogue applied --------------------------------- */

/* y in FP64; the kinds as plugin.h defines them. A NaN stays one, which fmax and fmin
 * would not see to. */
static double activate(const strata_epilogue *e, double x)
{
    if (isnan(x))
        return x;
    double a = e->alpha, b = e->beta, softplus = log1p(exp(-fabs(x))) + fmax(x, 0);
    switch (e->activation) {
    case STRATA_RELU:
        return fmax(x, 0);
    case STRATA_LEAKY_RELU:
        return x > 0 ? x : a * x;
    case STRATA_RELU6:
        return fmin(fmax(x, 0), 6);
    case STRATA_CLIP:
        return fmin(fmax(x, a), b);
    case STRATA_SIGMOID:
        return 1 / (1 + exp(-x));
    case STRATA_TANH:
        return tanh(x);
    case STRATA_ELU:
        return x > 0 ? x : a * (exp(x) - 1);
    case STRATA_SELU:
        return b * (x > 0 ? x : a * (exp(x) - 1));
    case STRATA_SOFTPLUS:
        return softplus;
    case STRATA_SOFTSIGN:
        return x / (1 + fabs(x));
    case STRATA_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2)));
    case STRATA_SILU:
        return x / (1 + exp(-x));
    case STRATA_HARD_SIGMOID:
        return fmin(fmax(a * x + b, 0), 1);
    case STRATA_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    default:
        return x * tanh(softplus);
    }
}

static double with_epilogue(const struct trial *k, const strata_epilogue *e, double x,
                            int64_t i)
{
    const strata_tensor *out = &k->node.out[0];
    int64_t plane = 1;
    for (int d = 2; d < out->rank; d++)
        plane *= out->dims[d];
    int64_t channel = out->rank > 1 ? i / plane % out->dims[1] : 0;
    if (e->flags & STRATA_EPILOGUE_SCALE)
        x *= (double)k->v.scale[channel];
    if (e->flags & STRATA_EPILOGUE_BIAS)
        x += (double)k->v.bias[channel];
    if (e->flags & STRATA_EPILOGUE_RESIDUAL)
        x += k->v.residual[i];
    return e->flags & STRATA_EPILOGUE_ACTIVATION ? activate(e, x) : x;
}

/* Multiply-adds behind one output element. */
static double accumulation(const struct trial *k)
{
    double (*flops)(const strata_node *) = k->node.layer->layer.flops;
    double each = flops ? flops(&k->node.node) / 2 / (double)k->node.out[0].count : 1;
    return each > 1 ? each : 1;
}

/* Of the largest output; and of the sums behind them, `sum` the largest: an activation or
 * a residual may leave little of a sum, but its FP32 error stays. That of n terms grows
 * as sqrt(n) times what the partial sums grow to. */
static double bound(const struct trial *k, int32_t dtype, double largest, double sum)
{
    double factor = k->c->tolerance > 0 ? k->c->tolerance : 1;
    double root = sqrt(accumulation(k)), relative = 1e-5 * root;
    const bool small = k->c->numbers == NUMBERS_TINY || k->c->numbers == NUMBERS_DENORMAL;
    const double least = small ? 0 : 1e-2;
    if (dtype == STRATA_FP16 && relative < 2e-3)
        relative = 2e-3;
    if (dtype != STRATA_FP32 && dtype != STRATA_FP16)
        return 0.5 + 1e-3 * factor; /* integers: the nearest one */
    return factor * (relative * (largest > least ? largest : least) +
                     0x1p-23 * root * (sum > root ? sum : root));
}

static bool agrees(double got, double want, double allowed, int32_t dtype)
{
    const double most = dtype == STRATA_FP16 ? 65504 : FLT_MAX;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(got) && fabs(want) + allowed > most)
        return (got > 0) == (want > 0);
    return got == want || fabs(got - want) <= allowed;
}

static void compare_output(struct trial *k, const strata_epilogue *e, int o)
{
    static const strata_epilogue none;
    char what[256];
    const strata_tensor *t = &k->node.out[o];
    e = o == 0 ? e : &none; /* epilogues are of the first output */
    const double *got = k->v.out[o], *expected = k->v.expected[o];
    int32_t dtype = format_at(__builtin_ctzll(k->formats.out[o]))->dtype;
    double largest = 0, sum = 0, worst = -1;
    int64_t at = -1;
    for (int64_t i = 0; i < t->count; i++) {
        double want = with_epilogue(k, e, expected[i], i);
        largest = isfinite(want) && fabs(want) > largest ? fabs(want) : largest;
        sum = isfinite(expected[i]) ? fmax(sum, fabs(expected[i])) : sum;
    }
    double allowed = bound(k, dtype, largest, sum) + 4 * k->v.shaken[o];
    const bool special =
        k->c->numbers >= NUMBERS_NAN && k->c->numbers <= NUMBERS_NEGATIVE_INFINITE;
    if (special && trial_specials_agree(k, o, dtype, allowed, &at))
        return;
    for (int64_t i = 0; i < t->count && !special; i++) {
        double want = with_epilogue(k, e, expected[i], i), error = fabs(got[i] - want);
        if (agrees(got[i], want, allowed, dtype))
            continue;
        if (at < 0 || error > worst || isnan(error))
            worst = error, at = i;
    }
    if (at < 0)
        return;
    snprintf(
        what, sizeof what,
        "output %d, element %lld is %.9g, should be %.9g (largest %.3g, allowed error "
        "%.3g)",
        o, (long long)at, got[at], with_epilogue(k, e, expected[at], at), largest,
        allowed);
    trial_problem(k, "value-wrong", what);
}

void trial_compare(struct trial *k, const strata_epilogue *e)
{
    for (int o = 0; o < k->node.node.n_out; o++)
        compare_output(k, e, o);
}
