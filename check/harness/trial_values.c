/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a trial: what its tensors hold, and what must come out of them.
 */
#include "check/harness/trial.h"

#include "check/harness/stored.h"
#include "registry/math/mode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how many ------------------------------------------------------------------ */

/* Elements that a tensor of a test may have; a layer may ask for more by attribute. With
 * odd numbers the reference runs many times. */
#define MOST_ELEMENTS (1 << 22)
#define MOST_ODD_ELEMENTS (1 << 19)

bool trial_is_moderate(const struct trial *k)
{
    const struct harness_node *n = &k->node;
    const bool odd =
        k->c->numbers != NUMBERS_PLAIN && k->c->numbers != NUMBERS_WHOLE_RANGE;
    const int64_t most = odd               ? MOST_ODD_ELEMENTS
                         : k->target->most ? k->target->most
                                           : MOST_ELEMENTS;
    for (int i = 0; i < n->node.n_out; i++)
        if (n->out[i].count > most)
            return false;
    for (int i = 0; i < n->node.n_weights; i++)
        if (n->weight[i].rank > 0 && n->weight[i].count > most)
            return false;
    return true;
}

/* ---- values -------------------------------------------------------------------- */

/* On a grid that is exact in BF16, as in every wider float. */
static double draw(struct trial *k, double low, double high)
{
    double u = (double)(trial_random(k) >> 11) * 0x1p-53, grid = 0x1p-6;
    while (fmax(fabs(low), fabs(high)) > 256 * grid)
        grid *= 2;
    if (k->c->integers && grid < 1)
        grid = 1;
    return rint((low + u * (high - low)) / grid) * grid;
}

/* A float as its dtype has it: FP64 in full. */
static double draw_real(struct trial *k, int32_t dtype, double low, double high)
{
    if (dtype == STRATA_FP64 && !k->c->integers)
        return low + (double)(trial_random(k) >> 11) * 0x1p-53 * (high - low);
    return number_round(dtype, draw(k, low, high));
}

#define MOST_WHOLE (INT64_C(1) << 53) /* that a double holds with all below it */

/* Whole numbers of a range, or of all that the type has; ends come up now and then. */
static int64_t draw_whole(struct trial *k, int32_t dtype, double low, double high)
{
    const bool wide = dtype == STRATA_INT64 && !harness_is_typed(k->node.layer);
    const int64_t lowest = wide ? -MOST_WHOLE : number_lowest(dtype);
    const int64_t highest = wide ? MOST_WHOLE : number_highest(dtype);
    const bool all = k->c->numbers == NUMBERS_WHOLE_RANGE;
    int64_t from = all || low <= (double)lowest ? lowest : (int64_t)ceil(low);
    int64_t to = all || high >= (double)highest ? highest : (int64_t)floor(high);
    const uint64_t random = trial_random(k);
    if (dtype == STRATA_BOOL8)
        from = 0, to = 1;
    const uint64_t span = (uint64_t)to - (uint64_t)from + 1; /* 0: all of 64 bits */
    if (all && random % 16 < 2)
        return random % 16 ? lowest : highest;
    return (int64_t)((uint64_t)from + (span ? (random >> 4) % span : random));
}

static void *draw_values(struct trial *k, const strata_tensor *t, double low, double high)
{
    void *v = malloc((size_t)t->count * VALUE_SIZE + 1);
    for (int64_t i = 0; v && i < t->count; i++)
        if (number_is_real(t->dtype))
            ((double *)v)[i] = draw_real(k, t->dtype, low, high);
        else
            ((int64_t *)v)[i] = draw_whole(k, t->dtype, low, high);
    return v;
}

static void *blank_values(const strata_tensor *t)
{
    return calloc((size_t)t->count + 1, VALUE_SIZE);
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

static bool make_inputs(struct trial *k)
{
    const struct layer_case *c = k->c;
    bool done = true;
    for (int i = 0; i < k->node.node.n_in; i++) {
        const strata_tensor *t = &k->node.in[i];
        const struct harness_range *own = &c->in_range[i];
        double low = -2, high = 2;
        if (c->low != 0 || c->high != 0)
            low = c->low, high = c->high;
        if (own->low != 0 || own->high != 0)
            low = own->low, high = own->high;
        if (t->rank == 0)
            continue;
        double *v = k->v.in[i] = draw_values(k, t, low, high);
        done &= v != NULL;
        const bool wide = number_is_any(t->dtype) || t->dtype == STRATA_FP64;
        for (int64_t e = 0; v && wide && e < t->count; e++)
            v[e] = trial_number(k, v[e]);
    }
    return done;
}

static bool make_outputs(struct trial *k)
{
    const struct harness_node *n = &k->node;
    bool done = true;
    for (int i = 0; i < n->node.n_out; i++) {
        done &= (k->v.out[i] = blank_values(&n->out[i])) != NULL;
        done &= (k->v.expected[i] = blank_values(&n->out[i])) != NULL;
    }
    return done;
}

static bool make_epilogue(struct trial *k)
{
    strata_tensor residual = k->node.out[0];
    const int64_t channels = residual.rank > 1 ? residual.dims[1] : 1;
    residual.dtype = STRATA_FP32;
    k->v.residual = draw_values(k, &residual, -2, 2);
    k->v.scale = malloc((size_t)channels * sizeof(float) + 1);
    k->v.bias = malloc((size_t)channels * sizeof(float) + 1);
    for (int64_t i = 0; k->v.scale && k->v.bias && i < channels; i++) {
        k->v.scale[i] = (float)draw(k, 0.5, 1.5);
        k->v.bias[i] = (float)draw(k, -1, 1);
    }
    k->v.wanted = malloc((size_t)residual.count * sizeof *k->v.wanted + 1);
    return k->v.residual && k->v.wanted && k->v.scale && k->v.bias;
}

static struct harness_range weight_range(const struct layer_case *c, int i)
{
    const struct harness_range *own = &c->weight_range[i];
    if (own->low != 0 || own->high != 0)
        return *own;
    if (c->weight_low != 0 || c->weight_high != 0)
        return (struct harness_range){c->weight_low, c->weight_high};
    return (struct harness_range){-1, 1};
}

bool trial_make_values(struct trial *k)
{
    const struct layer_case *c = k->c;
    const struct harness_node *n = &k->node;
    restart_random(k);
    bool done = make_inputs(k);
    for (int i = 0; i < n->node.n_weights; i++) {
        const struct harness_range range = weight_range(c, i);
        if (n->weight[i].rank > 0)
            done &= (k->v.weight[i] =
                         draw_values(k, &n->weight[i], range.low, range.high)) != NULL;
        const bool fine =
            c->numbers == NUMBERS_FINE && number_is_real(n->weight[i].dtype);
        for (int64_t e = 0; done && fine && e < n->weight[i].count; e++)
            ((double *)k->v.weight[i])[e] =
                trial_number(k, ((double *)k->v.weight[i])[e]);
    }
    if (done && n->stored.factors > 0)
        done = stored_draw(k, k->v.weight[0]);
    done &= make_outputs(k);
    return make_epilogue(k) && done;
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
        free(v->held[i]);
    }
    free(v->residual);
    free(v->wanted);
    free(v->scale);
    free(v->bias);
    memset(v, 0, sizeof *v);
}

/* ---- the definition, with the epilogue applied --------------------------------- */

#define PI 3.14159265358979323846

static double softplus(double x)
{
    return log1p(exp(-fabs(x))) + fmax(x, 0);
}

/* y in FP64; the kinds as plugin.h defines them. A NaN stays one, which fmax and fmin
 * would not see to. */
static double activate(const strata_epilogue *e, double x)
{
    if (isnan(x))
        return x;
    const double a = e->alpha, b = e->beta;
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
        return softplus(x);
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
    case STRATA_MISH:
        return x * tanh(softplus(x));
    case STRATA_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / PI) * (x + 0.044715 * x * x * x)));
    case STRATA_SWISH:
        return x / (1 + exp(-a * x));
    case STRATA_CELU:
        return fmax(x, 0) + fmin(a * (exp(x / a) - 1), 0);
    case STRATA_THRESHOLDED_RELU:
        return x > a ? x : 0;
    case STRATA_SHRINK:
        return x < -a ? x + b : x > a ? x - b : 0;
    default:
        return a * tanh(b * x);
    }
}

/* What an epilogue adds up before its activation. */
static double before_activation(const struct trial *k, const strata_epilogue *e, double x,
                                int64_t i, int64_t channel)
{
    if (e->flags & STRATA_EPILOGUE_SCALE)
        x *= (double)k->v.scale[channel];
    if (e->flags & STRATA_EPILOGUE_BIAS)
        x += (double)k->v.bias[channel];
    if (e->flags & STRATA_EPILOGUE_RESIDUAL)
        x += k->v.residual[i];
    return x;
}

/* Elements of a channel that lie one after the other. */
static int64_t plane_of(const strata_tensor *out)
{
    int64_t plane = 1;
    for (int d = 2; d < out->rank; d++)
        plane *= out->dims[d];
    return plane;
}

/* What output o has to be: the definition's values, with the epilogue applied. */
static const double *wanted_values(const struct trial *k, const strata_epilogue *e, int o,
                                   const double *expected)
{
    const strata_tensor *out = &k->node.out[o];
    const int64_t plane = plane_of(out), channels = out->rank > 1 ? out->dims[1] : 1;
    int64_t i = 0;
    if (!e->flags)
        return expected;
    for (int64_t row = 0; i < out->count; row++)
        for (int64_t end = i + plane; i < end; i++) {
            const double x = before_activation(k, e, expected[i], i, row % channels);
            k->v.wanted[i] = e->flags & STRATA_EPILOGUE_ACTIVATION ? activate(e, x) : x;
        }
    return k->v.wanted;
}

/* Multiply-adds behind one output element. */
static double accumulation(const struct trial *k)
{
    double (*flops)(const strata_node *) = k->node.layer->layer.flops;
    const double count = fmax(1, (double)k->node.out[0].count);
    double each = flops ? flops(&k->node.node) / 2 / count : 1;
    return each > 1 ? each : 1;
}

/* What TF32 may add: each factor is cut to 11 bits, so that a product is up to 2^-9 of it
 * nearer to 0, and so are sums of one sign; of n products of both signs errors grow as
 * sqrt(n). Nothing, where all factors are kept. */
static double cut_error(const struct trial *k, int32_t dtype, double sum, double root)
{
    const bool fine = k->c->numbers == NUMBERS_FINE || k->c->numbers == NUMBERS_DENORMAL;
    if (!fine || dtype != STRATA_FP32 || math_of(&k->node.node) != STRATA_MATH_TF32)
        return 0;
    return 0x1p-9 * (sum + (k->c->numbers == NUMBERS_FINE ? 2 * root : 0));
}

/* Of the largest output; and of the sums behind them, `sum` the largest: an activation or
 * a residual may leave little of a sum, but its error stays. That of n terms grows as
 * sqrt(n) times what the partial sums grow to. */
static double bound(const struct trial *k, int32_t dtype, double largest, double sum)
{
    static const double least_relative[STRATA_DTYPE_COUNT] = {
        [STRATA_FP16] = 2e-3, [STRATA_BF16] = 0x1p-7};
    double factor = k->c->tolerance > 0 ? k->c->tolerance : 1;
    const double root = sqrt(accumulation(k));
    const bool full = dtype == STRATA_FP64;
    const double within = harness_rounds_within(k->node.layer) ? 0x1p-4 : 0;
    const double relative =
        fmax(fmax((full ? 1e-12 : 1e-5) * root, least_relative[dtype]), within);
    const bool small = k->c->numbers == NUMBERS_TINY || k->c->numbers == NUMBERS_DENORMAL;
    const double least = small ? 0 : 1e-2;
    return factor * (relative * (largest > least ? largest : least) +
                     (full ? 0x1p-52 : 0x1p-23) * root * (sum > root ? sum : root) +
                     cut_error(k, dtype, sum, root));
}

static bool agrees(double got, double want, double allowed, int32_t dtype)
{
    const double most = number_largest(dtype);
    if (isnan(want) || isnan(got))
        return (isnan(want) && isnan(got)) ||
               (dtype == STRATA_E4M3 && fabs(want) + allowed > most);
    if (fabs(got) >= most && fabs(want) + allowed > most)
        return (got > 0) == (want > 0);
    return got == want || fabs(got - want) <= allowed + number_rounding(dtype, want);
}

/* How far an output may be off, and the largest number in it. */
static double allowed_error(const struct trial *k, const double *expected,
                            const double *wanted, int o, int32_t dtype, double *largest)
{
    double sum = 0;
    *largest = 0;
    for (int64_t i = 0; i < k->node.out[o].count; i++) {
        const double want = fabs(wanted[i]), term = fabs(expected[i]);
        *largest = isfinite(want) && want > *largest ? want : *largest;
        sum = isfinite(term) && term > sum ? term : sum;
    }
    return bound(k, dtype, *largest, sum) + 4 * k->v.shaken[o];
}

/* What an activation makes of a sum that is off: of one that is rounded to the format
 * first, as layers by themselves round it; and where it jumps, of one that is on the
 * other side. */
static bool agrees_behind(const struct trial *k, const strata_epilogue *e,
                          const double *expected, int o, int64_t i, double allowed,
                          int32_t dtype)
{
    const double got = ((const double *)k->v.out[o])[i];
    const strata_tensor *out = &k->node.out[o];
    const int64_t channel = out->rank > 1 ? i / plane_of(out) % out->dims[1] : 0;
    if (!(e->flags & STRATA_EPILOGUE_ACTIVATION))
        return false;
    const double x = before_activation(k, e, expected[i], i, channel);
    const bool jumps =
        e->activation == STRATA_SHRINK || e->activation == STRATA_THRESHOLDED_RELU;
    return (number_is_any(dtype) &&
            agrees(got, activate(e, number_round(dtype, x)), allowed, dtype)) ||
           (jumps && (agrees(got, activate(e, x - allowed), 2 * allowed, dtype) ||
                      agrees(got, activate(e, x + allowed), 2 * allowed, dtype)));
}

#define WHAT 256 /* characters that say what is wrong */

/* Elements whose terms a rounding may turn: where two keys all but tie, a whole row. */
static int64_t few_of(int64_t count)
{
    return count / 64 + 64;
}

/* Where output o is not `expected` with the epilogue applied, the worst of it; a few may
 * be off by `moved`. */
static bool reals_differ(struct trial *k, const strata_epilogue *e, int o,
                         const double *expected, double moved, char what[WHAT])
{
    const strata_tensor *t = &k->node.out[o];
    const double *got = k->v.out[o], *wanted = wanted_values(k, e, o, expected);
    const int32_t dtype = format_at(__builtin_ctzll(k->formats.out[o]))->dtype;
    double largest, worst = -1;
    int64_t at = -1, few = moved > 0 ? few_of(t->count) : 0;
    const double allowed = allowed_error(k, expected, wanted, o, dtype, &largest);
    const bool special =
        k->c->numbers >= NUMBERS_NAN && k->c->numbers <= NUMBERS_NEGATIVE_INFINITE;
    if (special && trial_specials_agree(k, o, expected, dtype, allowed, &at))
        return false;
    for (int64_t i = 0; i < t->count && !special; i++) {
        double want = wanted[i], error = fabs(got[i] - want);
        if (agrees(got[i], want, allowed, dtype) || trial_drops(k, want, dtype) ||
            agrees_behind(k, e, expected, o, i, allowed, dtype) ||
            (error <= moved && few-- > 0))
            continue;
        if (at < 0 || error > worst || isnan(error))
            worst = error, at = i;
    }
    if (at < 0)
        return false;
    snprintf(
        what, WHAT,
        "output %d, element %lld is %.9g, should be %.9g (largest %.3g, allowed error "
        "%.3g)",
        o, (long long)at, got[at], wanted[at], largest, allowed);
    return true;
}

static void compare_reals(struct trial *k, const strata_epilogue *e, int o)
{
    static const strata_epilogue none;
    char what[WHAT], held[WHAT];
    e = o == 0 ? e : &none; /* epilogues are of the first output */
    if (!reals_differ(k, e, o, k->v.expected[o], 0, what))
        return;
    const double *within = trial_held(k, o);
    if (!within || reals_differ(k, e, o, within, 4 * k->v.shaken_held[o], held))
        trial_problem(k, "value-wrong", what);
}

/* Integers and BOOL8 to the last bit. */
static void compare_wholes(struct trial *k, int o)
{
    char what[256], got[NUMBER_TEXT], want[NUMBER_TEXT];
    const strata_tensor *t = &k->node.out[o];
    for (int64_t i = 0; i < t->count; i++) {
        if (number_same(t->dtype, k->v.out[o], k->v.expected[o], i))
            continue;
        snprintf(what, sizeof what, "output %d, element %lld is %s, should be %s", o,
                 (long long)i, number_text(got, k->v.out[o], t->dtype, i),
                 number_text(want, k->v.expected[o], t->dtype, i));
        trial_problem(k, "value-wrong", what);
        return;
    }
}

void trial_compare(struct trial *k, const strata_epilogue *e)
{
    static const strata_epilogue none = {0};
    if (k->node.out[0].count == 0) /* run was not called */
        return;
    for (int o = 0; o < k->node.node.n_out; o++)
        if (number_is_real(k->node.out[o].dtype))
            compare_reals(k, o == 0 ? e : &none, o);
        else
            compare_wholes(k, o);
}
