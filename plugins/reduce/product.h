/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of floats on the host: in FP64 with an exponent beside each, so that a part
 * which leaves the range before the whole comes back does no harm. Without it one lane's
 * infinity times another's 0 is a NaN.
 */
#ifndef PLUGINS_REDUCE_PRODUCT_H
#define PLUGINS_REDUCE_PRODUCT_H

#include "plugins/reduce/number.h"

/* Two such numbers multiply within FP64's range. */
static inline bool product_near(double x)
{
    return fabs(x) >= 0x1p-500 && fabs(x) <= 0x1p+500;
}

/* x's fraction; its exponent joins the one given. 0, infinities and NaNs have none. */
static double product_split(double x, int64_t *exponent)
{
    int own = 0;
    if (x == 0 || !isfinite(x))
        return x;
    x = frexp(x, &own);
    *exponent += own;
    return x;
}

static inline void product_step(double *a, int64_t *exponent, double x)
{
    if (!product_near(x))
        x = product_split(x, exponent);
    *a *= x;
    if (!product_near(*a))
        *a = product_split(*a, exponent);
}

/* What the range does not hold becomes an infinity or 0, as of one rounding. */
static double product_close(double a, int64_t exponent)
{
    const int64_t most = 4096; /* beyond any FP64 */
    return ldexp(a, (int)(exponent > most ? most : exponent < -most ? -most : exponent));
}

/* ---- as a kind of number: exponents lie where others have shifts ------------------ */

static const void *product_load(const strata_tensor *t, int64_t at, int64_t n,
                                void *buffer)
{
    float floats[REDUCE_STRETCH];
    double *to = buffer;
    if (t->dtype == STRATA_FP64)
        return (const double *)t->data + at;
    const float *x = gather_load(t, at, n, floats);
    for (int64_t i = 0; i < n; i++)
        to[i] = (double)x[i];
    return to;
}

static void product_start(enum gather g, int32_t dtype, void *a, int64_t n)
{
    (void)g;
    (void)dtype;
    for (int64_t i = 0; i < n; i++)
        ((double *)a)[i] = 1;
}

static void product_lanes(enum gather g, void *a, const void *x, void *exponent,
                          int64_t lanes, int64_t n)
{
    const double *from = x;
    (void)g;
    for (int64_t row = 0; row < n; row += lanes, from += lanes)
        for (int64_t k = 0; k < lanes; k++)
            product_step((double *)a + k, (int64_t *)exponent + k, from[k]);
}

static void product_join(enum gather g, void *a, void *exponent, const void *b,
                         const void *other, int64_t n)
{
    (void)g;
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)exponent)[i] += ((const int64_t *)other)[i];
        product_step((double *)a + i, (int64_t *)exponent + i, ((const double *)b)[i]);
    }
}

static void product_finish(int32_t op, void *a, const void *exponent, int64_t terms,
                           int64_t n)
{
    (void)op;
    (void)terms;
    for (int64_t i = 0; i < n; i++)
        ((double *)a)[i] =
            product_close(((double *)a)[i], ((const int64_t *)exponent)[i]);
}

static void product_store(const strata_tensor *t, int64_t at, int64_t step, const void *a,
                          int64_t n)
{
    if (t->dtype == STRATA_FP64)
        double_store(t, at, step, a, n);
    else
        for (int64_t i = 0; i < n; i++)
            element_store(t->data, t->dtype, at + i * step,
                          (float)((const double *)a)[i]);
}

static const struct reduce_number product_number = {
    sizeof(double), product_load, product_start,  product_lanes,
    product_join,   NULL,         product_finish, product_store};

#endif
