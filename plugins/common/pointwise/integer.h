/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of integers of INTEGER_BITS bits, included by the file of each width. Sums wrap:
 * they are made in unsigned arithmetic.
 */
#include "plugins/common/pointwise/row.h"

#if INTEGER_BITS == 32
typedef int32_t integer;
typedef uint32_t whole;
#else
typedef int64_t integer;
typedef uint64_t whole;
#endif

/* Truncated; 0 where b is 0. The least one divided by -1 is itself. */
ROW_INLINE integer divide(integer a, integer b)
{
    return b == 0 ? 0 : b == -1 ? (integer)(0 - (whole)a) : a / b;
}

ROW_INLINE integer remainder_of(integer a, integer b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

ROW_INLINE integer modulo(integer a, integer b)
{
    const integer rest = remainder_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* By squares; 1/a^-b truncated where b is negative. */
ROW_INLINE integer power(integer a, integer b)
{
    whole y = 1, square = (whole)a;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, square *= square)
        if (b & 1)
            y *= square;
    return (integer)y;
}

ROW_INLINE integer shift_left(integer a, integer b, int bits)
{
    const int past = (b < 0) | (b >= bits);
    return past ? 0 : (integer)((whole)a << (past ? 0 : b));
}

ROW_INLINE integer shift_right(integer a, integer b, int bits)
{
    const int past = (b < 0) | (b >= bits);
    return past ? 0 : a >> (past ? 0 : b);
}

ROW_INLINE void row_unary(int op, integer *y, const integer *a, int64_t n)
{
    switch (op) {
    case STRATA_UNARY_ABS: LOOP(a[i] < 0 ? (integer)(0 - (whole)a[i]) : a[i]); break;
    case STRATA_UNARY_NEG: LOOP((integer)(0 - (whole)a[i])); break;
    case STRATA_UNARY_SIGN: LOOP((integer)((a[i] > 0) - (a[i] < 0))); break;
    case STRATA_UNARY_NOT: LOOP(a[i] == 0); break;
    case STRATA_UNARY_BIT_NOT: LOOP(~a[i]); break;
    case STRATA_UNARY_IS_NAN:
    case STRATA_UNARY_IS_INF: LOOP(0); break;
    default: LOOP(a[i]); break;
    }
}

static void row_rare(int op, int bits, integer *y, const integer *a, const integer *b,
                     int64_t n)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_DIV: LOOP(divide(a[i], b[i])); break;
    case POINTWISE_ELEMENTWISE + STRATA_POW: LOOP(power(a[i], b[i])); break;
    case POINTWISE_ELEMENTWISE + STRATA_MOD: LOOP(modulo(a[i], b[i])); break;
    case POINTWISE_FMOD: LOOP(remainder_of(a[i], b[i])); break;
    case POINTWISE_ELEMENTWISE + STRATA_SHIFT_LEFT:
        LOOP(shift_left(a[i], b[i], bits));
        break;
    default: LOOP(shift_right(a[i], b[i], bits)); break;
    }
}

ROW_INLINE void integer_rows(int op, const struct pointwise_constants *k, integer *y,
                             const integer *a, const integer *b, const integer *c,
                             int64_t n)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM:
        LOOP((integer)((whole)a[i] + (whole)b[i]));
        break;
    case POINTWISE_ELEMENTWISE + STRATA_SUB:
        LOOP((integer)((whole)a[i] - (whole)b[i]));
        break;
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT:
        LOOP((integer)((whole)a[i] * (whole)b[i]));
        break;
    case POINTWISE_ELEMENTWISE + STRATA_MAX: LOOP(a[i] > b[i] ? a[i] : b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_MIN: LOOP(a[i] < b[i] ? a[i] : b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_AND:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_AND: LOOP(a[i] & b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_OR:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_OR: LOOP(a[i] | b[i]); break;
    case POINTWISE_ELEMENTWISE + STRATA_XOR:
    case POINTWISE_ELEMENTWISE + STRATA_BIT_XOR: LOOP(a[i] ^ b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL: LOOP(a[i] == b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL: LOOP(a[i] != b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS: LOOP(a[i] < b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL: LOOP(a[i] <= b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER: LOOP(a[i] > b[i]); break;
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL: LOOP(a[i] >= b[i]); break;
    case POINTWISE_SELECT: LOOP(a[i] != 0 ? b[i] : c[i]); break;
    case POINTWISE_COPY: LOOP(a[i]); break;
    default:
        if (op < POINTWISE_ELEMENTWISE)
            row_unary(op, y, a, n);
        else
            row_rare(op, k->bits, y, a, b, n);
    }
}
