/* SPDX-License-Identifier: Apache-2.0
 *
 * How far two runs are apart, tensor by tensor.
 */
#include "tools/compare/compare.h"

#include <math.h>
#include <string.h>

/* Of the largest value: rounding of sums in another order, and of FP16 at each layer. */
static const double tolerance_fp32 = 1e-4, tolerance_fp16 = 2e-2;

struct difference {
    const struct compare_tensor *a, *b;
    double worst, largest; /* absolute difference, and value of a */
    double ratio;          /* of the two; NaN and infinity on one side alone: infinite */
    double atol;           /* with which numpy.allclose passes at rtol = tolerance */
    double tolerance;
    int64_t at;
};

static bool is_half(const struct compare_tensor *t)
{
    return format_at(t->format)->dtype == STRATA_FP16;
}

static struct difference measure(const struct compare_tensor *a,
                                 const struct compare_tensor *b, double tolerance)
{
    struct difference d = {.a = a, .b = b, .tolerance = tolerance};
    if (tolerance < 0)
        d.tolerance = is_half(a) || is_half(b) ? tolerance_fp16 : tolerance_fp32;
    for (int64_t i = 0; i < a->values.count; i++) {
        const double x = values_at(&a->values, i), y = values_at(&b->values, i);
        const bool same = x == y || (isnan(x) && isnan(y));
        double apart = same ? 0 : fabs(x - y);
        if (isnan(apart)) /* a number against none */
            apart = INFINITY;
        if (isfinite(x) && fabs(x) > d.largest)
            d.largest = fabs(x);
        if (apart > d.worst) {
            d.worst = apart;
            d.at = i;
        }
        d.atol = fmax(d.atol, apart - (isfinite(x) ? d.tolerance * fabs(x) : 0));
    }
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
    char where[160];
    place(where, sizeof where, d->a, d->at);
    table_cell(t, "%s", d->a->name);
    table_cell(t, "%s", d->a->impl);
    table_cell(t, "%s", format_mask_name(UINT64_C(1) << d->a->format, d->a->values.rank));
    table_cell(t, "%s", d->b->impl);
    table_cell(t, "%s", format_mask_name(UINT64_C(1) << d->b->format, d->b->values.rank));
    table_cell(t, "%.3g", d->worst);
    table_cell(t, "%.3g", d->ratio);
    table_cell(t, "%s", d->worst > 0 ? where : "");
    table_cell(t, "%.*g", values_digits(&d->a->values, 7),
               values_at(&d->a->values, d->at));
    table_cell(t, "%.*g", values_digits(&d->b->values, 7),
               values_at(&d->b->values, d->at));
    table_cell(t, "%.3g", d->atol);
    table_cell(t, "%s", fails(d) ? "FAILED" : "ok");
}

struct summary {
    size_t compared, failed, alone;
    bool seen;
    const struct compare_tensor *unlike; /* the first of a whose size is another in b */
    struct difference first;             /* that fails, in the order of a's run */
    double ratio;                        /* the largest */
    double half, full;                   /* tolerances held to; negative: none was */
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
    *(is_half(d->a) || is_half(d->b) ? &s->half : &s->full) = d->tolerance;
}

/* The least number of two digits that is not below x. */
static double round_up(double x)
{
    const double digit = pow(10, floor(log10(x)) - 1);
    return ceil(x * (1 + 1e-9) / digit) * digit;
}

/* What each tensor was held to, FP16 by a tolerance of its own unless one is given; and
 * the one that would do for all. */
static void print_verdict(const struct summary *s)
{
    if (s->failed)
        tool_print("FAILED: %zu of %zu are beyond the tolerance of ", s->failed,
                   s->compared);
    else
        tool_print("ok: all are within the tolerance of ");
    if (s->full >= 0)
        tool_print("%.2g", s->full);
    if (s->full >= 0 && s->half >= 0 && s->half != s->full)
        tool_print(", those in FP16 of ");
    if (s->half >= 0 && s->half != s->full)
        tool_print("%.2g", s->half);
    tool_print("; all pass with --tolerance=%.2g\n", round_up(s->ratio));
}

static void print_summary(const struct summary *s, const struct compare_side *a,
                          const struct compare_side *b)
{
    char where[160];
    tool_print("\n%zu tensors compared, %s against %s", s->compared, a->label, b->label);
    if (s->alone > 0)
        tool_print(
            "; %zu exist on one side alone, fused on the other (--no-fusion compares "
            "all)",
            s->alone);
    tool_print("\n");
    if (s->seen) {
        place(where, sizeof where, s->first.a, s->first.at);
        tool_print("%zu beyond the tolerance; first %s (%s against %s): %.7g and %.7g at "
               "%s, %.3g of its largest value\n",
               s->failed, s->first.a->name, s->first.a->impl, s->first.b->impl,
               values_at(&s->first.a->values, s->first.at),
               values_at(&s->first.b->values, s->first.at), where, s->first.ratio);
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
                                          "at",
                                          "A",
                                          "B",
                                          "atol that passes",
                                          "verdict"};
    struct summary s = {.half = -1, .full = -1};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0x760);
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
        struct difference d = measure(&a->tensors[i], other, how->tolerance);
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
