/* SPDX-License-Identifier: Apache-2.0
 *
 * The range in which the quantised values tell most of the values: least Kullback-Leibler
 * divergence, as S. Migacz described it ("8-bit inference with TensorRT", GTC 2017). Of a
 * range of N bins P are the bins, what lies beyond in the last; Q are the same bins
 * without it, those of each step sharing evenly what they have together. The zeros of a
 * ReLU would drown all else: the first bin counts as the second.
 */
#include <math.h>

#include "calibrate/method/method.h"

enum { STRIDE = 4 }; /* bins between the ranges that are tried */

static int64_t count_at(const struct histogram *h, int k)
{
    return histogram_magnitude(h, k ? k : 1);
}

/* The bins of one step, first to before end; `beyond` is added to the last bin of P. */
static double step_divergence(const struct histogram *h, int first, int end,
                              int64_t beyond, double all_p, double all_q)
{
    int64_t sum = 0;
    int filled = 0;
    double divergence = 0;
    for (int k = first; k < end; k++) {
        sum += count_at(h, k);
        filled += count_at(h, k) > 0;
    }
    for (int k = first; k < end; k++) {
        const int64_t n = count_at(h, k) + (k == end - 1 ? beyond : 0);
        const double p = (double)n / all_p;
        const double q = count_at(h, k) > 0 ? (double)sum / filled / all_q
                                            : 1e-9; /* Q cannot say it */
        if (n > 0)
            divergence += p * log(p / q);
    }
    return divergence;
}

static double divergence_of(const struct histogram *h, const struct quant_type *t, int n,
                            int64_t all, int64_t inside)
{
    const int steps = t->steps + 1; /* 0 is one */
    const int64_t beyond = all - inside;
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        const int first = s * n / steps, end = (s + 1) * n / steps;
        sum += step_divergence(h, first, end, s + 1 < steps ? 0 : beyond, (double)all,
                               (double)inside);
    }
    return sum;
}

/* The largest of those that are alike. */
double bound_entropy(const struct histogram *h, const struct quant_type *t, double share)
{
    const double most = bound_max(h, t, share);
    const int used = histogram_used(h);
    const int64_t all = h->seen - histogram_magnitude(h, 0) + histogram_magnitude(h, 1);
    int64_t inside = all;
    double best = most, least = INFINITY;
    for (int n = used; n > t->steps; n--) {
        if ((used - n) % STRIDE == 0 && inside > 0) {
            const double divergence = divergence_of(h, t, n, all, inside);
            if (divergence < least) {
                least = divergence;
                best = n * histogram_width(h);
            }
        }
        inside -= count_at(h, n - 1);
    }
    return fmin(best, most);
}
