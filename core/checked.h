/* SPDX-License-Identifier: Apache-2.0
 *
 * All arithmetic on sizes, offsets and counts that come from outside goes through these:
 * each returns false, and leaves *out alone, when the result does not fit or an operand
 * is negative.
 */
#ifndef CORE_CHECKED_H
#define CORE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool checked_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool checked_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

/* a*b + c */
static inline bool checked_mul_add(int64_t a, int64_t b, int64_t c, int64_t *out)
{
    int64_t product;
    return checked_mul(a, b, &product) && checked_add(product, c, out);
}

/* a rounded up to a multiple of m > 0. */
static inline bool checked_round_up(int64_t a, int64_t m, int64_t *out)
{
    int64_t sum;
    if (m <= 0 || !checked_add(a, m - 1, &sum))
        return false;
    *out = sum / m * m;
    return true;
}

/* Product of n dims; 1 for n = 0. */
static inline bool checked_product(const int64_t *dims, int n, int64_t *out)
{
    int64_t product = 1;
    for (int i = 0; i < n; i++)
        if (!checked_mul(product, dims[i], &product))
            return false;
    *out = product;
    return true;
}

static inline bool checked_size_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool checked_size_mul(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

#endif /* CORE_CHECKED_H */
