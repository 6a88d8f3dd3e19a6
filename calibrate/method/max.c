/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest magnitude.
 */
#include <math.h>

#include "calibrate/method/method.h"

double bound_max(const struct histogram *h, const struct quant_type *t, double share)
{
    (void)t;
    (void)share;
    return fmax(fabs(h->low), fabs(h->high));
}
