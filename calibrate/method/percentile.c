/* SPDX-License-Identifier: Apache-2.0
 *
 * The magnitude that a share of the values does not exceed.
 */
#include <math.h>

#include "calibrate/method/method.h"

double bound_percentile(const struct histogram *h, const struct quant_type *t,
                        double share)
{
    const double most = bound_max(h, t, share);
    const double wanted = share / 100 * (double)h->seen;
    int64_t inside = 0;
    for (int k = 0; k < HISTOGRAM_SIDE; k++) {
        inside += histogram_magnitude(h, k);
        if ((double)inside >= wanted)
            return fmin((k + 1) * histogram_width(h), most);
    }
    return most;
}
