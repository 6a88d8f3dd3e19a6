/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms of a tensor's values.
 */
#include "calibrate/histogram.h"

#include <math.h>
#include <string.h>

#define SHARED_FROM (1 << 16) /* values that are worth several threads */

void histogram_open(struct histogram *h)
{
    memset(h, 0, sizeof *h);
    h->exponent = HISTOGRAM_LEAST;
}

double histogram_width(const struct histogram *h)
{
    return ldexp(1.0 / HISTOGRAM_SIDE, h->exponent);
}

/* 2^`by` bins become one; the middle, where 0 is, stays. */
static void widen(struct histogram *h, int exponent)
{
    const int by = exponent - h->exponent;
    const int shift = by < 13 ? by : 13; /* at 2^12 all of a side are in one */
    int64_t bins[2 * HISTOGRAM_SIDE] = {0};
    for (int i = 0; i < 2 * HISTOGRAM_SIDE && h->seen; i++) {
        const int k = i - HISTOGRAM_SIDE; /* below 0: rounded down */
        bins[(k >= 0 ? k >> shift : -((-k - 1) >> shift) - 1) + HISTOGRAM_SIDE] +=
            h->bins[i];
    }
    memcpy(h->bins, bins, sizeof bins);
    h->exponent = exponent;
}

static void reach(struct histogram *h, double magnitude)
{
    int exponent;
    frexp(magnitude, &exponent); /* magnitude < 2^exponent */
    if (magnitude > 0 && exponent > h->exponent)
        widen(h, exponent);
}

static void stretch(struct histogram *h, double low, double high, int64_t n)
{
    h->low = h->seen == 0 || low < h->low ? low : h->low;
    h->high = h->seen == 0 || high > h->high ? high : h->high;
    h->seen += n;
}

/* The bounds first, so that the bins need not widen value by value. */
static void add_some(struct histogram *h, const float *values, int64_t n)
{
    double low = INFINITY, high = -INFINITY;
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)values[i] + 0.0; /* no -0 */
        if (!isfinite(x))
            continue;
        finite++;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    h->odd += n - finite;
    if (finite == 0)
        return;
    reach(h, fmax(fabs(low), fabs(high)));
    stretch(h, low, high, finite);
    const double scale = ldexp(HISTOGRAM_SIDE, -h->exponent);
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            h->bins[(int)floor((double)values[i] * scale) + HISTOGRAM_SIDE]++;
}

void histogram_add(struct histogram *h, const float *values, int64_t n)
{
    if (n < SHARED_FROM) {
        add_some(h, values, n);
        return;
    }
    const int64_t pieces = n / (SHARED_FROM / 2);
#pragma omp parallel
    {
        struct histogram own;
        histogram_open(&own);
#pragma omp for nowait
        for (int64_t p = 0; p < pieces; p++) {
            const int64_t begin = n / pieces * p;
            const int64_t end = p + 1 < pieces ? begin + n / pieces : n;
            add_some(&own, values + begin, end - begin);
        }
#pragma omp critical(strata_histogram)
        histogram_merge(h, &own);
    }
}

void histogram_merge(struct histogram *h, const struct histogram *other)
{
    struct histogram wide;
    h->odd += other->odd;
    if (other->seen == 0)
        return;
    if (other->exponent > h->exponent)
        widen(h, other->exponent);
    if (other->exponent < h->exponent) {
        wide = *other;
        widen(&wide, h->exponent);
        other = &wide;
    }
    stretch(h, other->low, other->high, other->seen);
    for (int i = 0; i < 2 * HISTOGRAM_SIDE; i++)
        h->bins[i] += other->bins[i];
}

int64_t histogram_magnitude(const struct histogram *h, int k)
{
    return h->bins[HISTOGRAM_SIDE + k] + h->bins[HISTOGRAM_SIDE - 1 - k];
}

double histogram_beyond(const struct histogram *h, double magnitude)
{
    const double at = magnitude / histogram_width(h);
    int64_t beyond = 0;
    for (int k = HISTOGRAM_SIDE - 1; k > at; k--)
        beyond += histogram_magnitude(h, k);
    return h->seen ? (double)beyond / (double)h->seen : 0;
}

int histogram_used(const struct histogram *h)
{
    int n = HISTOGRAM_SIDE;
    while (n > 0 && histogram_magnitude(h, n - 1) == 0)
        n--;
    return n;
}
