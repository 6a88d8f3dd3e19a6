/* SPDX-License-Identifier: Apache-2.0
 *
 * The range of the least mean squared error, of CANDIDATES between nothing and the
 * largest magnitude. The values of a bin are taken as spread over it evenly, at POINTS.
 */
#include <math.h>

#include "calibrate/method/method.h"

enum { CANDIDATES = 256, POINTS = 4 };

/* Of a bin's values, times their number. */
static double bin_error(double begin, double width, double step, double bound)
{
    double sum = 0;
    for (int p = 0; p < POINTS; p++) {
        const double x = begin + width * (p + 0.5) / POINTS;
        const double off = x - fmin(nearbyint(x / step) * step, bound);
        sum += off * off;
    }
    return sum / POINTS;
}

static double error_of(const struct histogram *h, const struct quant_type *t, int used,
                       double bound)
{
    const double width = histogram_width(h), step = bound / t->steps;
    double sum = 0;
    for (int k = 0; k < used; k++) {
        const int64_t n = histogram_magnitude(h, k);
        if (n)
            sum += (double)n * bin_error(k * width, width, step, bound);
    }
    return sum;
}

/* The largest of those that are alike: it saturates least. */
double bound_mse(const struct histogram *h, const struct quant_type *t, double share)
{
    const double most = bound_max(h, t, share);
    const int used = histogram_used(h);
    double best = most, least = INFINITY;
    for (int i = CANDIDATES; i > 0 && most > 0; i--) {
        const double bound = most * i / CANDIDATES, error = error_of(h, t, used, bound);
        if (error < least) {
            least = error;
            best = bound;
        }
    }
    return best;
}
