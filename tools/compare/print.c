/* SPDX-License-Identifier: Apache-2.0
 *
 * How far two runs are apart, tensor by tensor.
 */
#include "tools/compare/compare.h"

#include <math.h>
#include <string.h>

/* Of the largest value: what rounding of sums in another order, and of a narrow float at
 * each layer, comes to. Integers and BOOL8 are held to all of their bits. */
static const double tolerances[STRATA_DTYPE_COUNT] = {
    [STRATA_FP64] = 1e-4, [STRATA_FP32] = 1e-4, [STRATA_FP16] = 2e-2,
    [STRATA_BF16] = 1e-1, [STRATA_E4M3] = 2e-1, [STRATA_E5M2] = 4e-1,
};

/* What eight bits, of one side alone, come to after some layers. */
static const double quantised_tolerance = 2e-1;

/* Factors of FP32 that are cut to TF32 have FP16's precision. */
static const double tf32_tolerance = 2e-2;

struct difference {
    const struct compare_tensor *a, *b;
    double db;             /* squares of a over those of the differences, decibels */
    double worst, largest; /* absolute difference, and value of a */
    double ratio;          /* of the two; NaN and infinity on one side alone: infinite */
    double atol;           /* with which numpy.allclose passes at rtol = tolerance */
    double tolerance;
    int64_t at;
    int dtype; /* of the two, the one held to less */
};

static int loose_dtype(const struct compare_tensor *a, const struct compare_tensor *b)
{
    const int x = format_at(a->format)->dtype, y = format_at(b->format)->dtype;
    return tolerances[y] > tolerances[x] ? y : x;
}

/* Tensors, or weights that are stored in few bits. */
static bool is_quantised(const struct compare_side *s)
{
    const strata_network *net = s->session.engine->network;
    for (size_t i = 0; i < net->n_layers; i++) {
        const struct network_layer *l = &net->layers[i];
        if (strcmp(l->type->full_name, "core::Quantize@1") == 0 ||
            (l->type->n_weights && l->weights[0].factors))
            return true;
    }
    return false;
}

/* The least tolerance of two runs, whatever the tensor's dtype; of FP32. */
struct floors {
    double any, fp32;
};

static struct floors floors_of(const struct compare_side *a, const struct compare_side *b)
{
    const bool cut = a->session.engine->execution->math == STRATA_MATH_TF32 ||
                     b->session.engine->execution->math == STRATA_MATH_TF32;
    const double any = is_quantised(a) != is_quantised(b) ? quantised_tolerance : 0;
    return (struct floors){any, cut ? fmax(any, tf32_tolerance) : any};
}

static struct difference measure(const struct compare_tensor *a,
                                 const struct compare_tensor *b, double tolerance,
                                 const struct floors *floors)
{
    struct difference d = {.a = a, .b = b, .dtype = loose_dtype(a, b)};
    double signal = 0, noise = 0;
    const double floor = d.dtype == STRATA_FP32 ? floors->fp32 : floors->any;
    d.tolerance = tolerance < 0 ? fmax(tolerances[d.dtype], floor) : tolerance;
    for (int64_t i = 0; i < a->values.count; i++) {
        const double x = values_at(&a->values, i);
        const double apart = fabs(values_apart(&a->values, i, &b->values, i));
        if (isfinite(x) && fabs(x) > d.largest)
            d.largest = fabs(x);
        signal += isfinite(x) ? x * x : 0;
        noise += apart * apart;
        if (apart > d.worst) {
            d.worst = apart;
            d.at = i;
        }
        d.atol = fmax(d.atol, apart - (isfinite(x) ? d.tolerance * fabs(x) : 0));
    }
    d.db = noise > 0 ? 10 * log10(signal / noise) : (double)INFINITY;
    d.ratio = d.worst == 0 ? 0 : d.largest > 0 ? d.worst / d.largest : INFINITY;
    return d;
}

/* "[0, 12, 3]" */
static void place(char *text, size_t size, const struct compare_tensor *t, int64_t at)
{
    int64_t index[STRATA_MAX_RANK] = {0};
    size_t used = 0;
    for (int d = t->values.rank; d-- > 0; at /= t->values.dims[d] ? t->values.dims[d] : 1)
        index[d] = t->values.dims[d] ? at % t->values.dims[d] : 0;
    for (int d = 0; d < t->values.rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? ", " : "[",
                                 (long long)index[d]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static bool fails(const struct difference *d)
{
    return !(d->ratio <= d->tolerance);
}

static void add_row(struct table *t, const struct difference *d)
{
    char where[160], text[VALUES_TEXT];
    place(where, sizeof where, d->a, d->at);
    table_cell(t, "%s", d->a->name);
    table_cell(t, "%s", d->a->impl);
    table_cell(t, "%s", format_mask_name(UINT64_C(1) << d->a->format, d->a->values.rank));
    table_cell(t, "%s", d->b->impl);
    table_cell(t, "%s", format_mask_name(UINT64_C(1) << d->b->format, d->b->values.rank));
    table_cell(t, "%.3g", d->worst);
    table_cell(t, "%.3g", d->ratio);
    table_cell(t, "%.1f", d->db);
    table_cell(t, "%s", d->worst > 0 ? where : "");
    table_cell(t, "%s", values_text(text, &d->a->values, d->at, 7));
    table_cell(t, "%s", values_text(text, &d->b->values, d->at, 7));
    table_cell(t, "%.3g", d->atol);
    table_cell(t, "%s", fails(d) ? "FAILED" : "ok");
}

struct summary {
    size_t compared, failed, alone;
    bool seen;
    const struct compare_tensor *unlike; /* the first of a whose size is another in b */
    struct difference first;             /* that fails, in the order of a's run */
    double ratio;                        /* the largest */
    double held[STRATA_DTYPE_COUNT];     /* tolerances; negative: none was */
};

static void add_difference(struct summary *s, const struct difference *d)
{
    s->compared++;
    s->failed += fails(d);
    if (fails(d) && !s->seen) {
        s->first = *d;
        s->seen = true;
    }
    s->ratio = d->ratio > s->ratio ? d->ratio : s->ratio;
    s->held[d->dtype] = d->tolerance;
}

/* The least number of two digits that is not below x. */
static double round_up(double x)
{
    const double digit = pow(10, floor(log10(x)) - 1);
    return ceil(x * (1 + 1e-9) / digit) * digit;
}

/* ", those in FP16 of 0.02": what differs from what was said before. */
static void print_held(const struct summary *s)
{
    static const struct {
        int dtype;
        const char *who;
    } order[] = {{STRATA_FP32, "FP32"}, {STRATA_FP64, "FP64"}, {STRATA_FP16, "FP16"},
                 {STRATA_BF16, "BF16"}, {STRATA_E4M3, "E4M3"}, {STRATA_E5M2, "E5M2"},
                 {STRATA_INT8, "int8"}, {STRATA_UINT8, "u8"},  {STRATA_INT32, "i32"},
                 {STRATA_INT64, "i64"}, {STRATA_BOOL8, "bool"}};
    double said = -1;
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
        const double held = s->held[order[i].dtype];
        if (held < 0 || held == said)
            continue;
        if (said >= 0)
            tool_print(", those in %s of ", order[i].who);
        tool_print("%.2g", held);
        said = held;
    }
}

/* What each tensor was held to, narrow floats by a tolerance of their own unless one is
 * given; and the one that would do for all. */
static void print_verdict(const struct summary *s)
{
    if (s->failed)
        tool_print("FAILED: %zu of %zu are beyond the tolerance of ", s->failed,
                   s->compared);
    else
        tool_print("ok: all are within the tolerance of ");
    print_held(s);
    tool_print("; all pass with --tolerance=%.2g\n", round_up(s->ratio));
}

static bool fuses(const struct compare_side *s)
{
    return s->session.engine->network->build.fusion;
}

static void print_summary(const struct summary *s, const struct compare_side *a,
                          const struct compare_side *b)
{
    char where[160], x[VALUES_TEXT], y[VALUES_TEXT];
    tool_print("\n%zu tensors compared, %s against %s", s->compared, a->label, b->label);
    if (s->alone > 0)
        tool_print("; %zu exist on one side alone%s", s->alone,
                   fuses(a) || fuses(b)
                       ? ", perhaps fused on the other (--no-fusion compares those)"
                       : "");
    tool_print("\n");
    if (s->seen) {
        place(where, sizeof where, s->first.a, s->first.at);
        tool_print("%zu beyond the tolerance; first %s (%s against %s): %s and %s at "
                   "%s, %.3g of its largest value\n",
                   s->failed, s->first.a->name, s->first.a->impl, s->first.b->impl,
                   values_text(x, &s->first.a->values, s->first.at, 7),
                   values_text(y, &s->first.b->values, s->first.at, 7), where,
                   s->first.ratio);
    }
    if (s->compared == 0 || s->unlike)
        puts("FAILED: the networks differ");
    else if (s->ratio == 0)
        puts("ok: alike, value for value");
    else if (isfinite(s->ratio))
        print_verdict(s);
    else
        tool_print("FAILED: no tolerance passes, as a value is not finite on one side\n");
}

/* Networks that are not two ways to run one. */
static int incomparable(const struct summary *s, const struct compare_side *a,
                        const struct compare_side *b)
{
    const struct compare_tensor *t = s->unlike;
    if (t)
        tool_error(
            "tensor '%s' has %lld elements in %s, %lld in %s; give the same network "
            "twice",
            t->name, (long long)t->values.count, a->label,
            (long long)compare_find(b, t->name)->values.count, b->label);
    else
        tool_error("no tensor of %s has the name of one of %s; nothing is compared",
                   a->label, b->label);
    return EXIT_MISMATCH;
}

int compare_print(const struct compare_side *a, const struct compare_side *b,
                  const struct compare_how *how)
{
    static const char *const columns[] = {"tensor",
                                          "impl A",
                                          "format A",
                                          "impl B",
                                          "format B",
                                          "largest difference",
                                          "of largest value",
                                          "dB",
                                          "at",
                                          "A",
                                          "B",
                                          "atol that passes",
                                          "verdict"};
    struct summary s = {.compared = 0};
    struct table t;
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        s.held[i] = -1;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0xEE0);
    const struct floors floors = floors_of(a, b);
    for (size_t i = 0; i < a->n; i++) {
        const struct compare_tensor *other = compare_find(b, a->tensors[i].name);
        if (!other) {
            s.alone++;
            continue;
        }
        if (other->values.count != a->tensors[i].values.count) {
            s.unlike = s.unlike ? s.unlike : &a->tensors[i];
            continue;
        }
        struct difference d = measure(&a->tensors[i], other, how->tolerance, &floors);
        add_difference(&s, &d);
        if (!how->failed_only || fails(&d))
            add_row(&t, &d);
    }
    for (size_t i = 0; i < b->n; i++)
        s.alone += !compare_find(a, b->tensors[i].name);
    table_print(&t, how->format, stdout);
    table_close(&t);
    if (how->format == TABLE_TEXT || how->format == TABLE_MARKDOWN)
        print_summary(&s, a, b);
    if (s.compared == 0 || s.unlike)
        return incomparable(&s, a, b);
    return s.failed ? EXIT_MISMATCH : EXIT_OK;
}
