/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the layer test: shapes of a case, then every impl, row, combination of
 * formats, and variant that the impl's flags claim, each against the FP64 reference.
 */
#include "tests/layer_harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layer_mirror.h"

#define LINES_PER_CASE 5 /* reported in full */

static const int64_t sweep_images[] = { 1, 3 };
static const int64_t sweep_sizes[] = { 1, 5, 7, 14 };
/* Ended by 0. */
static const int64_t sweep_channels[] = { 1, 2, 3, 7, 8, 9, 16, 17, 33, 0 };
static const int64_t wide_channels[] = { 1,  2,  3,  4,  7,  8,  9,  15, 16,
                                         17, 31, 32, 33, 63, 64, 65, 0 };
static const int64_t quick_channels[] = { 3, 8, 17, 0 };

struct values {
    double *in[HARNESS_INPUTS], *weight[HARNESS_WEIGHTS], *out[HARNESS_OUTPUTS];
    double *expected[HARNESS_OUTPUTS];
    double *residual;
    float *scale, *bias;
};

struct check {
    const struct layer_case *c;
    const struct harness_target *target;
    struct harness_tally *tally; /* of the impl, or NULL */
    struct harness_node node;
    struct values v;
    uint64_t seed, random;
    int turn; /* goes through activation kinds and pack on/off */
    harness_report report;
    struct harness_result result;
    const struct registry_impl *impl;
    struct harness_formats formats;
    const char *variant;
};

/* ---- values -------------------------------------------------------------------- */

/* SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* On a grid that is exact in FP16. */
static double draw(struct check *k, double low, double high)
{
    double u = (double)(next_random(&k->random) >> 11) * 0x1p-53, grid = 0x1p-6;
    while (fmax(fabs(low), fabs(high)) > 2048 * grid)
        grid *= 2;
    if (k->c->integers && grid < 1)
        grid = 1;
    return rint((low + u * (high - low)) / grid) * grid;
}

static double *draw_values(struct check *k, const strata_tensor *t, double low,
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

static bool make_values(struct check *k)
{
    const struct layer_case *c = k->c;
    const struct harness_node *n = &k->node;
    bool ranged = c->low != 0 || c->high != 0, done = true;
    bool weighted = c->weight_low != 0 || c->weight_high != 0;
    for (int i = 0; i < n->node.n_in; i++)
        done &= (k->v.in[i] = draw_values(k, &n->in[i], ranged ? c->low : -2,
                                          ranged ? c->high : 2)) != NULL;
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

static void free_values(struct values *v)
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

/* ---- messages ------------------------------------------------------------------ */

static void shape_text(char *text, size_t size, const strata_tensor *t)
{
    int used = 0;
    for (int d = 0; d < t->rank && used >= 0 && (size_t)used < size; d++)
        used += snprintf(text + used, size - (size_t)used, "%s%lld", d ? "x" : "",
                         (long long)t->dims[d]);
}

static void complain(struct check *k, const char *what)
{
    char line[1024], shape[96] = "", in[64] = "-", out[64] = "-";
    if (k->tally)
        k->tally->failures++;
    if (k->result.failures++ >= LINES_PER_CASE)
        return;
    shape_text(shape, sizeof shape, &k->node.in[0]);
    snprintf(in, sizeof in, "%s", format_mask_name(k->formats.in[0], 4));
    snprintf(out, sizeof out, "%s", format_mask_name(k->formats.out[0], 4));
    snprintf(line, sizeof line,
             "%s {%s} impl %s%s, %s -> %s, input %s, %s, seed %llu: %s", k->c->layer,
             k->c->attrs ? k->c->attrs : "", k->impl ? k->impl->impl.name : "-",
             k->node.node.math == STRATA_MATH_TENSOR_OP ? " (tensor_op)" : "", in, out,
             shape, k->variant ? k->variant : "shape", (unsigned long long)k->seed, what);
    k->report(line);
}

/* ---- the definition, with the epilogue applied --------------------------------- */

/* y in FP64; the kinds as plugin.h defines them. */
static double activate(const strata_epilogue *e, double x)
{
    double a = e->alpha, b = e->beta, softplus = log1p(exp(-fabs(x))) + fmax(x, 0);
    switch (e->activation) {
    case STRATA_RELU: return fmax(x, 0);
    case STRATA_LEAKY_RELU: return x > 0 ? x : a * x;
    case STRATA_RELU6: return fmin(fmax(x, 0), 6);
    case STRATA_CLIP: return fmin(fmax(x, a), b);
    case STRATA_SIGMOID: return 1 / (1 + exp(-x));
    case STRATA_TANH: return tanh(x);
    case STRATA_ELU: return x > 0 ? x : a * (exp(x) - 1);
    case STRATA_SELU: return b * (x > 0 ? x : a * (exp(x) - 1));
    case STRATA_SOFTPLUS: return softplus;
    case STRATA_SOFTSIGN: return x / (1 + fabs(x));
    case STRATA_GELU: return x * 0.5 * (1 + erf(x / sqrt(2)));
    case STRATA_SILU: return x / (1 + exp(-x));
    case STRATA_HARD_SIGMOID: return fmin(fmax(a * x + b, 0), 1);
    case STRATA_HARD_SWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    default: return x * tanh(softplus);
    }
}

static double with_epilogue(const struct check *k, const strata_epilogue *e, double x,
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
static double accumulation(const struct check *k)
{
    double (*flops)(const strata_node *) = k->node.layer->layer.flops;
    double each = flops ? flops(&k->node.node) / 2 / (double)k->node.out[0].count : 1;
    return each > 1 ? each : 1;
}

static double bound(const struct check *k, int32_t dtype, double largest)
{
    double factor = k->c->tolerance > 0 ? k->c->tolerance : 1;
    double relative = 1e-5 * sqrt(accumulation(k));
    if (dtype == STRATA_FP16 && relative < 2e-3)
        relative = 2e-3;
    if (dtype != STRATA_FP32 && dtype != STRATA_FP16)
        return 0.5 + 1e-3 * factor; /* integers: the nearest one */
    return factor * relative * (largest > 1e-2 ? largest : 1e-2);
}

static bool agrees(double got, double want, double allowed, int32_t dtype)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (dtype == STRATA_FP16 && fabs(want) > 65504 && isinf(got))
        return (got > 0) == (want > 0);
    return got == want || fabs(got - want) <= allowed;
}

static void compare_output(struct check *k, const strata_epilogue *e, int o)
{
    char what[256];
    const strata_tensor *t = &k->node.out[o];
    const double *got = k->v.out[o], *expected = k->v.expected[o];
    int32_t dtype = format_at(__builtin_ctzll(k->formats.out[o]))->dtype;
    double largest = 0, worst = -1;
    int64_t at = -1;
    for (int64_t i = 0; i < t->count; i++) {
        double want = with_epilogue(k, e, expected[i], i);
        largest = isfinite(want) && fabs(want) > largest ? fabs(want) : largest;
    }
    double allowed = bound(k, dtype, largest);
    for (int64_t i = 0; i < t->count; i++) {
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
    complain(k, what);
}

static void compare(struct check *k, const strata_epilogue *e)
{
    for (int o = 0; o < k->node.node.n_out; o++)
        compare_output(k, e, o);
}

/* ---- variants of one combination ----------------------------------------------- */

static int run_impl(struct check *k, int row, const strata_epilogue *e)
{
    return harness_run(&k->node, k->impl, row, &k->formats,
                       (const double *const *)k->v.in, (const double *const *)k->v.weight,
                       e, k->v.out);
}

static void run_variant(struct check *k, int row, const char *variant,
                        const strata_epilogue *e)
{
    static const strata_epilogue none = { 0 };
    struct harness_node *n = &k->node;
    k->variant = variant;
    n->no_pack = k->turn++ % 4 == 3;
    int status = run_impl(k, row, e);
    if (n->no_pack && status == STRATA_EUNSUPPORTED && n->err.length > 0) {
        n->no_pack = false; /* an impl may need the extension, if it says so */
        status = run_impl(k, row, e);
    }
    k->result.vetoed += n->vetoed;
    if (k->tally)
        k->tally->vetoed += n->vetoed;
    if (n->vetoed && n->err.status == STRATA_OK)
        complain(k, "accept refused without a message");
    if (n->vetoed)
        return;
    k->result.runs++;
    if (k->tally)
        k->tally->runs++;
    if (status == STRATA_OK)
        compare(k, e ? e : &none);
    else
        complain(k, n->err.message);
}

/* The kind that is next in turn among those the impl takes, with usual parameters. */
static void choose_activation(struct check *k, strata_epilogue *e)
{
    static const double alpha[STRATA_ACTIVATION_COUNT] = {
        [STRATA_LEAKY_RELU] = 0.1,       [STRATA_CLIP] = -0.5, [STRATA_ELU] = 0.75,
        [STRATA_SELU] = 1.6732632423543, [STRATA_HARD_SIGMOID] = 0.2,
    };
    static const double beta[STRATA_ACTIVATION_COUNT] = {
        [STRATA_CLIP] = 1.5, [STRATA_SELU] = 1.0507009873555, [STRATA_HARD_SIGMOID] = 0.5,
    };
    int32_t kind = k->turn % STRATA_ACTIVATION_COUNT;
    for (int i = 0; i < STRATA_ACTIVATION_COUNT; i++)
        if (!(k->impl->impl.activations >> kind & 1))
            kind = (kind + 1) % STRATA_ACTIVATION_COUNT;
    e->activation = kind;
    e->alpha = alpha[kind];
    e->beta = beta[kind];
}

/* All declared tails at once, then each alone (only for given shapes: it is slow). */
static void run_epilogues(struct check *k, int row)
{
    int32_t declared = k->impl->impl.epilogues;
    strata_tensor residual = k->node.out[0];
    residual.data = k->v.residual;
    for (int32_t flags = k->c->sweep ? 16 : 1; flags <= 16; flags *= 2) {
        strata_epilogue e = { .flags = flags == 16 ? declared : flags,
                              .scale = k->v.scale,
                              .bias = k->v.bias,
                              .residual = &residual };
        char name[64];
        if ((e.flags & declared) != e.flags || e.flags == 0)
            continue;
        choose_activation(k, &e);
        snprintf(name, sizeof name, "epilogue %d activation %d", e.flags, e.activation);
        run_variant(k, row, name, &e);
    }
}

static bool may_lie_in_place(const struct check *k)
{
    return k->impl->impl.flags & STRATA_INPLACE_OK && k->node.node.n_in > 0 &&
           k->formats.in[0] == k->formats.out[0] &&
           k->node.in[0].count == k->node.out[0].count;
}

static void run_variants(struct check *k, int row)
{
    struct harness_node *n = &k->node;
    int32_t flags = k->impl->impl.flags;
    run_variant(k, row, "dense", NULL);
    if (n->vetoed)
        return;
    if (flags & (STRATA_STRIDED_IN | STRATA_STRIDED_OUT)) {
        n->pitched_in = flags & STRATA_STRIDED_IN;
        n->pitched_out = flags & STRATA_STRIDED_OUT;
        run_variant(k, row, "pitched", NULL);
        n->pitched_in = n->pitched_out = false;
    }
    if (may_lie_in_place(k)) {
        n->in_place = true;
        run_variant(k, row, "in place", NULL);
        n->in_place = false;
    }
    run_epilogues(k, row);
}

/* On the host, math modes are one. Elsewhere given shapes run in both; a sweep runs each
 * in turn, and in the other one where accept refuses that. */
static void run_combination(struct check *k, int row)
{
    strata_node *node = &k->node.node;
    int first = k->target->mirror ? k->turn++ % 2 : STRATA_MATH_DEFAULT;
    node->math = first;
    run_variants(k, row);
    if (k->target->mirror && (k->node.vetoed || !k->c->sweep)) {
        node->math = first == STRATA_MATH_DEFAULT ? STRATA_MATH_TENSOR_OP
                                                  : STRATA_MATH_DEFAULT;
        run_variants(k, row);
    }
}

/* Whether every port's format exists at its rank and keeps the input values exactly. */
static bool combination_fits(const struct check *k)
{
    for (int i = 0; i < k->node.node.n_in; i++) {
        if (k->formats.in[i] == 0)
            return false;
        const struct format *f = format_at(__builtin_ctzll(k->formats.in[i]));
        if (!f || (k->node.in[i].rank < 2 && (f->vector > 1 || f->order != ORDER_LINEAR)))
            return false;
        for (int64_t e = 0; e < k->node.in[i].count; e++)
            if (tensor_round(f->dtype, k->v.in[i][e]) != k->v.in[i][e])
                return false;
    }
    for (int i = 0; i < k->node.node.n_out; i++) {
        const struct format *f =
            k->formats.out[i] ? format_at(__builtin_ctzll(k->formats.out[i])) : NULL;
        if (!f ||
            (k->node.out[i].rank < 2 && (f->vector > 1 || f->order != ORDER_LINEAR)))
            return false;
    }
    return true;
}

static bool chosen(const struct check *k, const struct registry_impl *impl)
{
    const char *name = k->target->impl;
    return impl->impl.device == k->node.node.device &&
           (impl->impl.min_sm <= k->node.node.sm || impl->impl.min_sm == 0) &&
           (impl->impl.max_sm >= k->node.node.sm || impl->impl.max_sm == 0) &&
           (!name || strcmp(name, impl->impl.name) == 0);
}

static void run_impls(struct check *k)
{
    const struct registry_layer *layer = k->node.layer;
    const struct harness_node *n = &k->node;
    for (size_t i = 0; i < layer->n_impls; i++) {
        k->impl = &layer->impls[i];
        if (!chosen(k, k->impl))
            continue;
        k->tally = k->target->tally ? &k->target->tally[i] : NULL;
        for (uint32_t r = 0; r < k->impl->impl.rows.n; r++)
            for (int64_t at = 0;
                 harness_combination(&k->formats, &k->impl->rows[r], n->node.n_in,
                                     n->node.n_out, at);
                 at++)
                if (combination_fits(k))
                    run_combination(k, (int)r);
    }
    k->impl = NULL;
    k->tally = NULL;
}

/* The device that instances are of. */
static void aim(struct check *k)
{
    struct mirror *m = k->target->mirror;
    k->node.mirror = m;
    if (!m)
        return;
    k->node.node.device = m->handle->properties.kind;
    k->node.node.sm = m->handle->properties.sm;
}

/* ---- shapes of a case ---------------------------------------------------------- */

/* text with "$C" replaced. */
static void substitute(char *out, size_t size, const char *text, int64_t channels)
{
    size_t used = 0;
    for (; text && *text && used + 24 < size; text++)
        if (text[0] == '$' && text[1] == 'C') {
            used += (size_t)snprintf(out + used, size - used, "%lld",
                                     (long long)channels);
            text++;
        } else {
            out[used++] = *text;
        }
    out[used] = '\0';
}

static void check_shape(struct check *k, const struct harness_shape *in, int n_in)
{
    char attrs[512];
    struct harness_node *n = &k->node;
    substitute(attrs, sizeof attrs, k->c->attrs, in[0].rank > 1 ? in[0].dims[1] : 1);
    memset(&k->formats, 0, sizeof k->formats);
    k->variant = NULL;
    int status = harness_open(n, k->node.layer, attrs, in, n_in, k->c->weight,
                              k->c->absent);
    if (status != STRATA_OK) {
        k->result.refused++;
        if (n->err.message[0] == '\0')
            complain(k, "refused without a message");
        else if (!k->c->refused && !k->c->sweep)
            complain(k, n->err.message);
    } else if (k->c->refused) {
        complain(k, "accepted although it should be refused");
    } else if (!make_values(k)) {
        complain(k, "out of memory");
    } else if (harness_reference(n, (const double *const *)k->v.in,
                                 (const double *const *)k->v.weight,
                                 k->v.expected) != STRATA_OK) {
        complain(k, n->err.message);
    } else {
        aim(k);
        run_impls(k);
    }
    free_values(&k->v);
    harness_close(n);
}

static void check_sweep(struct check *k)
{
    struct harness_shape in[HARNESS_INPUTS];
    const int64_t *channels = k->target->wide    ? wide_channels
                              : k->target->quick ? quick_channels
                                                 : sweep_channels;
    int n_in = k->c->n_in > 0 ? k->c->n_in : 1;
    for (size_t n = 0; n < ARRAY_LENGTH(sweep_images); n++)
        for (size_t c = 0; channels[c] > 0; c++)
            for (size_t s = 0; s < ARRAY_LENGTH(sweep_sizes); s++) {
                for (int i = 0; i < n_in; i++) {
                    in[i] = (struct harness_shape){ k->c->sweep, { 0 } };
                    in[i].dims[0] = sweep_images[n];
                    in[i].dims[1] = channels[c];
                    for (int d = 2; d < k->c->sweep;
                         d++) /* rows are not as long as high */
                        in[i].dims[d] = sweep_sizes[(s + (size_t)d) %
                                                    ARRAY_LENGTH(sweep_sizes)];
                }
                check_shape(k, in, n_in);
            }
}

struct harness_result harness_check_on(const struct harness_target *target,
                                       const struct registry_layer *layer,
                                       const struct layer_case *c, uint64_t seed,
                                       harness_report report)
{
    struct check k = { .c = c, .target = target, .seed = seed, .random = seed,
                       .report = report, .turn = (int)(seed % 64) };
    k.node.layer = layer;
    if (c->sweep)
        check_sweep(&k);
    else
        check_shape(&k, c->in, c->n_in < 0 ? 0 : c->n_in > 0 ? c->n_in : 1);
    if (k.result.runs == 0 && !c->refused && !target->impl)
        complain(&k, "no impl ran on any shape of this case");
    return k.result;
}

struct harness_result harness_check(const struct registry_layer *layer,
                                    const struct layer_case *c, uint64_t seed,
                                    harness_report report)
{
    static const struct harness_target host = { 0 };
    return harness_check_on(&host, layer, c, seed, report);
}
