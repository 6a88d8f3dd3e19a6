/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms: against counting value by value, whatever the order, the pieces and the
 * threads.
 */
#include "calibrate/histogram.h"

#include <criterion/criterion.h>
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static void seed(void)
{
    state = (uint64_t)time(NULL);
}

/* Of any size from 2^-40 to 2^40, some of them 0, -0, NaN or infinite. */
static float odd_value(void)
{
    static const float odd[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY};
    if (draw() % 11 == 0)
        return odd[draw() % 5];
    const float sign = draw() % 2 ? 1.0f : -1.0f;
    return sign * ldexpf((float)(draw() % 65536) / 65536, (int)(draw() % 81) - 40);
}

static float *values(int64_t n, float (*value)(void))
{
    float *v = malloc((size_t)n * sizeof *v);
    cr_assert(v);
    for (int64_t i = 0; i < n; i++)
        v[i] = value();
    return v;
}

/* One pass for each bin's bounds, with the exponent found first. */
static void count_plainly(struct histogram *h, const float *v, int64_t n)
{
    double most = 0;
    memset(h, 0, sizeof *h);
    h->exponent = HISTOGRAM_LEAST;
    for (int64_t i = 0; i < n; i++)
        most = isfinite(v[i]) ? fmax(most, fabs((double)v[i])) : most;
    while (most > 0 && !(most < ldexp(1, h->exponent)))
        h->exponent++;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            h->odd++;
            continue;
        }
        const double x = v[i];
        h->low = h->seen ? fmin(h->low, x) : x;
        h->high = h->seen ? fmax(h->high, x) : x;
        h->seen++;
        int at = HISTOGRAM_SIDE;
        at += (int)floor(x / ldexp(1, h->exponent) * HISTOGRAM_SIDE);
        h->bins[at]++;
    }
    h->low += 0.0;
    h->high += 0.0;
}

static void expect_same(const struct histogram *a, const struct histogram *b)
{
    cr_expect_eq(a->exponent, b->exponent, "exponents %d and %d", a->exponent,
                 b->exponent);
    cr_expect(a->low == b->low && a->high == b->high, "%g to %g, and %g to %g", a->low,
              a->high, b->low, b->high);
    cr_expect(a->seen == b->seen && a->odd == b->odd);
    cr_expect(memcmp(a->bins, b->bins, sizeof a->bins) == 0, "the bins differ");
}

Test(histogram, is_what_counting_value_by_value_gives)
{
    seed();
    for (int round = 0; round < 40; round++) {
        const int64_t n = draw() % 3001;
        struct histogram h, plain;
        float *v = values(n, odd_value);
        histogram_open(&h);
        for (int64_t at = 0, step; at < n; at += step) {
            step = 1 + draw() % 700;
            step = step < n - at ? step : n - at;
            histogram_add(&h, v + at, step);
        }
        count_plainly(&plain, v, n);
        expect_same(&h, &plain);
        free(v);
    }
}

#ifdef _OPENMP
Test(histogram, is_the_same_from_one_thread_and_from_many)
{
    enum { COUNT = 1 << 19 };
    seed();
    const int before = omp_get_max_threads();
    float *v = values(COUNT + 7, odd_value);
    struct histogram one, many;
    histogram_open(&one);
    histogram_open(&many);
    omp_set_num_threads(1);
    histogram_add(&one, v, COUNT + 7);
    omp_set_num_threads(5);
    histogram_add(&many, v, COUNT + 7);
    omp_set_num_threads(before);
    cr_expect_eq(memcmp(&one, &many, sizeof one), 0, "not bit for bit");
    count_plainly(&many, v, COUNT + 7);
    expect_same(&one, &many);
    free(v);
}
#endif

Test(histogram, merges_in_any_order_to_that_of_all_values)
{
    seed();
    for (int round = 0; round < 20; round++) {
        struct histogram part[3], all, ab, ba;
        histogram_open(&all);
        histogram_open(&ab);
        histogram_open(&ba);
        for (int k = 0; k < 3; k++) {
            const int64_t n = draw() % 500;
            float *v = values(n, odd_value);
            histogram_open(&part[k]);
            histogram_add(&part[k], v, n);
            histogram_add(&all, v, n);
            free(v);
        }
        for (int k = 0; k < 3; k++) {
            histogram_merge(&ab, &part[k]);
            histogram_merge(&ba, &part[2 - k]);
        }
        expect_same(&ab, &all);
        expect_same(&ba, &all);
    }
}

Test(histogram, reaches_from_the_least_float_to_the_largest)
{
    const float v[] = {1e-45f, -1e-45f, 3.4028234e38f, -3.4028234e38f, 0.0f};
    struct histogram h;
    histogram_open(&h);
    histogram_add(&h, v, 5);
    cr_expect_eq(h.exponent, HISTOGRAM_MOST);
    cr_expect_eq(h.seen, 5);
    cr_expect_eq(h.bins[HISTOGRAM_SIDE], 2, "0 and the least above it");
    cr_expect_eq(h.bins[HISTOGRAM_SIDE - 1], 1, "the least below it");
    cr_expect_eq(h.bins[0], 1);
    cr_expect_eq(h.bins[2 * HISTOGRAM_SIDE - 1], 1);
    cr_expect_eq(histogram_magnitude(&h, 0), 3);
    cr_expect_eq(histogram_used(&h), HISTOGRAM_SIDE);
}

Test(histogram, of_nothing_and_of_zeros_is_empty)
{
    const float zeros[] = {0.0f, -0.0f, 0.0f}, nan = NAN;
    struct histogram h;
    histogram_open(&h);
    histogram_add(&h, &nan, 1);
    cr_expect(h.seen == 0 && h.odd == 1 && histogram_used(&h) == 0);
    cr_expect(histogram_beyond(&h, 1) == 0);
    histogram_add(&h, zeros, 3);
    cr_expect(h.seen == 3 && h.low == 0 && h.high == 0 && !signbit(h.low));
    cr_expect_eq(histogram_beyond(&h, 0), 0);
}

Test(histogram, tells_the_share_beyond_a_magnitude)
{
    /* Eight values of 1 to 8: bins of 16/2048. */
    const float v[] = {1, -2, 3, -4, 5, -6, 7, -8};
    struct histogram h;
    histogram_open(&h);
    histogram_add(&h, v, 8);
    cr_expect_eq(h.exponent, 4);
    cr_expect_float_eq(histogram_beyond(&h, 6.5), 0.25, 1e-12);
    cr_expect_float_eq(histogram_beyond(&h, 8), 0, 1e-12);
    cr_expect_float_eq(histogram_beyond(&h, 0.5), 1, 1e-12);
}
