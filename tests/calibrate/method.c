/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods on histograms whose answer is known on paper, and by a plain search.
 */
#include "calibrate/method/method.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* Bins of 1/2048: values of [0, 1). */
static struct histogram unit(void)
{
    struct histogram h;
    histogram_open(&h);
    h.exponent = 0;
    return h;
}

/* n values in the middle of the k-th bin above 0. */
static void put(struct histogram *h, int k, int64_t n)
{
    const double x = (k + 0.5) / HISTOGRAM_SIDE;
    h->low = h->seen ? fmin(h->low, x) : x;
    h->high = fmax(h->high, x);
    h->seen += n;
    h->bins[HISTOGRAM_SIDE + k] += n;
}

Test(method, names_are_those_of_the_table)
{
    cr_expect_eq(range_methods_count, 4);
    for (size_t i = 0; i < range_methods_count; i++)
        cr_expect_eq(range_method_find(range_methods[i].name), &range_methods[i]);
    cr_expect_null(range_method_find("kl"));
    cr_expect_null(range_method_find(""));
}

Test(method, max_is_the_largest_magnitude_of_either_sign)
{
    const float v[] = {0.25f, -3.5f, 3.25f};
    struct histogram h;
    histogram_open(&h);
    histogram_add(&h, v, 3);
    cr_expect_eq(bound_max(&h, &quant_int8, 0), 3.5);
}

Test(method, percentile_ends_with_the_bin_that_completes_the_share)
{
    struct histogram h = unit();
    for (int k = 0; k < 1000; k++)
        put(&h, k, 1);
    cr_expect_eq(bound_percentile(&h, &quant_int8, 99), 990.0 / HISTOGRAM_SIDE);
    cr_expect_eq(bound_percentile(&h, &quant_int8, 50), 500.0 / HISTOGRAM_SIDE);
    cr_expect_eq(bound_percentile(&h, &quant_int8, 0.1), 1.0 / HISTOGRAM_SIDE);
    cr_expect_eq(bound_percentile(&h, &quant_int8, 100), 999.5 / HISTOGRAM_SIDE,
                 "no more than the largest value");
}

Test(method, percentile_counts_both_signs)
{
    struct histogram h = unit();
    for (int k = 0; k < 10; k++) {
        put(&h, k, 5);
        h.bins[HISTOGRAM_SIDE - 1 - k] += 5; /* mirrored */
        h.seen += 5;
    }
    h.high = 0.5;
    cr_expect_eq(bound_percentile(&h, &quant_int8, 70), 7.0 / HISTOGRAM_SIDE);
}

/* Evenly spread values: cutting off d of them saves d/(6*127^2) and costs d^3/3, so that
 * the best d is 1/(127 sqrt 6) = 0.0032. */
Test(method, mse_of_evenly_spread_values_cuts_off_less_than_a_step)
{
    struct histogram h = unit();
    for (int k = 0; k < HISTOGRAM_SIDE; k++)
        put(&h, k, 3);
    const double cut = h.high - bound_mse(&h, &quant_int8, 0);
    cr_expect(cut >= 0 && cut < 1.0 / 127, "%g", cut);
}

/* A share p of the values at 1, the others evenly below b: a bound T between costs
 * T^2/(12*127^2) for each of them and (1 - T)^2 for the share. The sum is least where
 * T(1 - p)/(12*127^2) = p(1 - T). */
Test(method, mse_weighs_rounding_against_saturation)
{
    const double n = 12 * 127.0 * 127.0;
    const struct {
        int64_t below, at; /* values in each of the first 512 bins, and at the end */
    } cases[] = {{1000, 1}, {1000, 2}, {4000, 1}};
    for (size_t i = 0; i < 3; i++) {
        struct histogram h = unit();
        for (int k = 0; k < 512; k++)
            put(&h, k, cases[i].below);
        put(&h, HISTOGRAM_SIDE - 1, cases[i].at);
        const double p = (double)cases[i].at / (double)h.seen;
        const double paper = fmax(p * n / (1 - p + p * n), 0.25);
        const double found = bound_mse(&h, &quant_int8, 0);
        cr_expect(fabs(found - paper) < 0.02, "case %zu: %g, on paper %g", i, found,
                  paper);
    }
}

/* 128 bins, alternately full and nearly empty, and a value far away: steps as wide as a
 * bin say all but that value; wider ones lose the alternation. */
Test(method, entropy_leaves_a_lone_value_out)
{
    struct histogram h = unit();
    for (int k = 0; k < 128; k++)
        put(&h, k, k % 2 ? 1 : 100000);
    put(&h, 2047, 1);
    const double bound = bound_entropy(&h, &quant_int8, 0) * HISTOGRAM_SIDE;
    cr_expect(bound >= 128 && bound < 136, "%g bins", bound);
    cr_expect_eq(bound_max(&h, &quant_int8, 0) * HISTOGRAM_SIDE, 2047.5);
}

/* Where bins of a step are alike, no range says more than the whole. */
Test(method, entropy_keeps_what_has_no_tail)
{
    struct histogram h = unit();
    for (int k = 0; k < 1024; k++)
        put(&h, k, 7);
    cr_expect_eq(bound_entropy(&h, &quant_int8, 0) * HISTOGRAM_SIDE, 1023.5);
}

Test(method, no_method_exceeds_the_largest_or_fails_on_little)
{
    uint64_t state = (uint64_t)time(NULL);
    for (int round = 0; round < 20; round++) {
        struct histogram h;
        float v[50];
        const int n = round < 3 ? round : 50;
        for (int i = 0; i < 50; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            v[i] = round == 2 ? 0 : (float)(int32_t)(state >> 32) * 1e-6f;
        }
        histogram_open(&h);
        histogram_add(&h, v, n);
        for (size_t m = 0; m < range_methods_count; m++) {
            const double b = range_methods[m].bound(&h, &quant_int8, RANGE_SHARE);
            const double most = bound_max(&h, &quant_int8, 0);
            cr_expect(b >= 0 && b <= most && (b > 0 || most == 0), "%s of %d values: %g",
                      range_methods[m].name, n, b);
            cr_expect(quant_scale(&quant_int8, b) > 0);
        }
    }
}

Test(method, a_scale_puts_the_largest_at_the_last_step)
{
    cr_expect_eq(quant_scale(&quant_int8, 254), 2);
    cr_expect_eq(quant_scale(&quant_int8, 0), 1, "of zeros any is right");
    cr_expect_gt((float)quant_scale(&quant_int8, 1e-45), 0, "FP32 has no smaller one");
}
