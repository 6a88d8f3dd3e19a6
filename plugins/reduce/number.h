/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of numbers that Reduce gathers on the host: FP32 for FP32, FP16 and BF16,
 * FP64, and 64-bit integers, which wrap. Each has the same few functions over arrays.
 */
#ifndef PLUGINS_REDUCE_NUMBER_H
#define PLUGINS_REDUCE_NUMBER_H

#include <float.h>

#include "plugins/common/reduce/reduce.h"
#include "plugins/common/reduce/plan.h"

#define REDUCE_STRETCH GATHER_STRETCH /* elements that are converted at once */

struct reduce_number {
    size_t size; /* bytes */
    /* n elements of the input from `at`: its own memory, or `buffer` */
    const void *(*load)(const strata_tensor *t, int64_t at, int64_t n, void *buffer);
    void (*start)(enum gather g, int32_t dtype, void *a, int64_t n);
    /* n elements, whole rows of `lanes`, each into its lane of a; shift: of each lane */
    void (*lanes)(enum gather g, void *a, const void *x, void *shift, int64_t lanes,
                  int64_t n);
    /* Where exp(x - shift) was gathered: b of another shift joins a */
    void (*join)(enum gather g, void *a, void *shift, const void *b, const void *other,
                 int64_t n);
    /* Maxima become shifts: finite ones as they are, others 0 */
    void (*shift)(void *a, int64_t n);
    void (*finish)(int32_t op, void *a, const void *shift, int64_t terms, int64_t n);
    void (*store)(const strata_tensor *t, int64_t at, int64_t step, const void *a,
                  int64_t n);
};

/* ---- FP32 ------------------------------------------------------------------------- */

static const void *float_load(const strata_tensor *t, int64_t at, int64_t n, void *buffer)
{
    return gather_load(t, at, n, buffer);
}

static void float_start(enum gather g, int32_t dtype, void *a, int64_t n)
{
    (void)dtype;
    for (int64_t i = 0; i < n; i++)
        ((float *)a)[i] = gather_start(g);
}

static void float_lanes(enum gather g, void *a, const void *x, void *shift, int64_t lanes,
                        int64_t n)
{
    gather_lanes(gather_choose(), g, a, x, shift, lanes, n);
}

static void float_store(const strata_tensor *t, int64_t at, int64_t step, const void *a,
                        int64_t n)
{
    element_store_row(t->data, t->dtype, at, step, a, n);
}

/* ---- FP64 ------------------------------------------------------------------------- */

static const void *double_load(const strata_tensor *t, int64_t at, int64_t n,
                               void *buffer)
{
    (void)n;
    (void)buffer;
    return (const double *)t->data + at;
}

static void double_start(enum gather g, int32_t dtype, void *a, int64_t n)
{
    (void)dtype;
    for (int64_t i = 0; i < n; i++)
        ((double *)a)[i] = (double)gather_start(g);
}

static double double_step(enum gather g, double a, double x, double shift)
{
    switch (g) {
    case GATHER_ABS:
        return a + fabs(x);
    case GATHER_SQUARE:
        return a + x * x;
    case GATHER_EXP:
        return a + exp(x - shift);
    case GATHER_MAX:
        return x > a || x != x ? x : a;
    case GATHER_MIN:
        return x < a || x != x ? x : a;
    default:
        return a + x;
    }
}

static void double_lanes(enum gather g, void *a, const void *x, void *shift,
                         int64_t lanes, int64_t n)
{
    double *to = a;
    const double *from = x, *shifts = shift;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = lanes == 1 ? 0 : i % lanes;
        to[k] = double_step(g, to[k], from[i], shifts ? shifts[k] : 0);
    }
}

static void double_store(const strata_tensor *t, int64_t at, int64_t step, const void *a,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((double *)t->data)[at + i * step] = ((const double *)a)[i];
}

/* ---- both floats ------------------------------------------------------------------- */

/* What is divided, rooted or logged at the end; in FP64, as it is once per output. */
static double reduce_finish(int32_t op, double a, double shift, int64_t terms)
{
    switch (op) {
    case STRATA_REDUCE_MEAN:
        return a / (double)terms;
    case STRATA_REDUCE_L2:
        return sqrt(a);
    case STRATA_REDUCE_LOG_SUM:
        return log(a);
    case STRATA_REDUCE_LOG_SUM_EXP:
        return shift + log(a);
    default:
        return a;
    }
}

/* Sums of exp(x - shift) of two shifts. One of nothing but -infinity has no shift to say,
 * and one that is infinite or NaN is that by any. */
static void reduce_join_powers(double *sum, double *shift, double other, double by)
{
    if (other == 0)
        return;
    if (*sum == 0) {
        *sum = other;
        *shift = by;
    } else if (!isfinite(*sum) || !isfinite(other)) {
        *sum += other;
    } else {
        const double most = *shift > by ? *shift : by;
        *sum = *sum * exp(*shift - most) + other * exp(by - most);
        *shift = most;
    }
}

#define REDUCE_FLOAT(type, name)                                                         \
    static void name##_join(enum gather g, void *a, void *shift, const void *b,          \
                            const void *other, int64_t n)                                \
    {                                                                                    \
        type *to = a, *at = shift;                                                       \
        const type *from = b, *by = other;                                               \
        for (int64_t i = 0; i < n; i++)                                                  \
            if (g == GATHER_EXP) {                                                       \
                double sum = (double)to[i], own = (double)at[i];                         \
                reduce_join_powers(&sum, &own, (double)from[i], (double)by[i]);          \
                to[i] = (type)sum;                                                       \
                at[i] = (type)own;                                                       \
            } else {                                                                     \
                to[i] = (type)double_step(g >= GATHER_MAX ? g : GATHER_SUM,              \
                                          (double)to[i], (double)from[i], 0);            \
            }                                                                            \
    }                                                                                    \
    static void name##_shift(void *a, int64_t n)                                         \
    {                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                  \
            if (!isfinite(((type *)a)[i]))                                               \
                ((type *)a)[i] = 0;                                                      \
    }                                                                                    \
    static void name##_finish(int32_t op, void *a, const void *shift, int64_t terms,     \
                              int64_t n)                                                 \
    {                                                                                    \
        type *to = a;                                                                    \
        const type *by = shift;                                                          \
        for (int64_t i = 0; i < n; i++)                                                  \
            to[i] =                                                                      \
                (type)reduce_finish(op, (double)to[i], by ? (double)by[i] : 0, terms);   \
    }                                                                                    \
    static const struct reduce_number name##_number = {                                  \
        sizeof(type), name##_load,  name##_start,  name##_lanes,                         \
        name##_join,  name##_shift, name##_finish, name##_store};

REDUCE_FLOAT(float, float)
REDUCE_FLOAT(double, double)

/* ---- integers ---------------------------------------------------------------------- */

#define INTEGER_LOAD(type)                                                               \
    for (int64_t i = 0; i < n; i++)                                                      \
    x[i] = ((const type *)t->data)[at + i]

static const void *integer_load(const strata_tensor *t, int64_t at, int64_t n,
                                void *buffer)
{
    int64_t *x = buffer;
    switch (t->dtype) {
    case STRATA_INT8:
        INTEGER_LOAD(int8_t);
        return x;
    case STRATA_INT32:
        INTEGER_LOAD(int32_t);
        return x;
    case STRATA_INT64:
        return (const int64_t *)t->data + at;
    default:
        INTEGER_LOAD(uint8_t);
        return x;
    }
}

/* The least and greatest of a dtype are the extremes of nothing. */
static void integer_start(enum gather g, int32_t dtype, void *a, int64_t n)
{
    static const int64_t least[STRATA_DTYPE_COUNT] = {
        [STRATA_INT8] = INT8_MIN, [STRATA_INT32] = INT32_MIN, [STRATA_INT64] = INT64_MIN};
    static const int64_t most[STRATA_DTYPE_COUNT] = {[STRATA_INT8] = INT8_MAX,
                                                     [STRATA_UINT8] = UINT8_MAX,
                                                     [STRATA_INT32] = INT32_MAX,
                                                     [STRATA_INT64] = INT64_MAX,
                                                     [STRATA_BOOL8] = 1};
    const int64_t start = g == GATHER_PRODUCT ? 1
                          : g == GATHER_MAX   ? least[dtype]
                          : g == GATHER_MIN   ? most[dtype]
                                              : 0;
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)a)[i] = start;
}

/* Wraps, in unsigned arithmetic. */
static int64_t integer_step(enum gather g, int64_t a, int64_t x)
{
    const uint64_t left = (uint64_t)a, right = (uint64_t)x;
    switch (g) {
    case GATHER_ABS:
        return (int64_t)(left + (x < 0 ? 0 - right : right));
    case GATHER_SQUARE:
        return (int64_t)(left + right * right);
    case GATHER_PRODUCT:
        return (int64_t)(left * right);
    case GATHER_MAX:
        return x > a ? x : a;
    case GATHER_MIN:
        return x < a ? x : a;
    default:
        return (int64_t)(left + right);
    }
}

/* One lane gathers in a register. */
#define INTEGER_EACH(g)                                                                  \
    if (lanes == 1) {                                                                    \
        int64_t one = to[0];                                                             \
        for (int64_t i = 0; i < n; i++)                                                  \
            one = integer_step(g, one, from[i]);                                         \
        to[0] = one;                                                                     \
        break;                                                                           \
    }                                                                                    \
    for (int64_t row = 0; row < n; row += lanes, from += lanes)                          \
        for (int64_t k = 0; k < lanes; k++)                                              \
            to[k] = integer_step(g, to[k], from[k]);                                     \
    break

static void integer_lanes(enum gather g, void *a, const void *x, void *shift,
                          int64_t lanes, int64_t n)
{
    int64_t *to = a;
    const int64_t *from = x;
    (void)shift;
    switch (g) {
    case GATHER_ABS:
        INTEGER_EACH(GATHER_ABS);
    case GATHER_SQUARE:
        INTEGER_EACH(GATHER_SQUARE);
    case GATHER_PRODUCT:
        INTEGER_EACH(GATHER_PRODUCT);
    case GATHER_MAX:
        INTEGER_EACH(GATHER_MAX);
    case GATHER_MIN:
        INTEGER_EACH(GATHER_MIN);
    default:
        INTEGER_EACH(GATHER_SUM);
    }
}

static void integer_join(enum gather g, void *a, void *shift, const void *b,
                         const void *other, int64_t n)
{
    (void)shift;
    (void)other;
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)a)[i] = integer_step(g >= GATHER_PRODUCT ? g : GATHER_SUM,
                                         ((int64_t *)a)[i], ((const int64_t *)b)[i]);
}

static void integer_shift(void *a, int64_t n)
{
    (void)a;
    (void)n;
}

/* The mean of nothing is 0. */
static void integer_finish(int32_t op, void *a, const void *shift, int64_t terms,
                           int64_t n)
{
    (void)shift;
    for (int64_t i = 0; i < n && op == STRATA_REDUCE_MEAN; i++)
        ((int64_t *)a)[i] = terms ? ((int64_t *)a)[i] / terms : 0;
}

static void integer_store(const strata_tensor *t, int64_t at, int64_t step, const void *a,
                          int64_t n)
{
    for (int64_t i = 0; i < n; i++, at += step) {
        const int64_t x = ((const int64_t *)a)[i];
        switch (t->dtype) {
        case STRATA_INT8:
            ((int8_t *)t->data)[at] = (int8_t)(uint8_t)x;
            break;
        case STRATA_INT32:
            ((int32_t *)t->data)[at] = (int32_t)(uint32_t)x;
            break;
        case STRATA_INT64:
            ((int64_t *)t->data)[at] = x;
            break;
        default:
            ((uint8_t *)t->data)[at] = (uint8_t)x;
            break;
        }
    }
}

static const struct reduce_number integer_number = {
    sizeof(int64_t), integer_load,  integer_start,  integer_lanes,
    integer_join,    integer_shift, integer_finish, integer_store};

static const struct reduce_number *reduce_number_of(int32_t dtype)
{
    switch (dtype) {
    case STRATA_FP64:
        return &double_number;
    case STRATA_INT8:
    case STRATA_UINT8:
    case STRATA_INT32:
    case STRATA_INT64:
    case STRATA_BOOL8:
        return &integer_number;
    default:
        return &float_number;
    }
}

#endif /* PLUGINS_REDUCE_NUMBER_H */
