/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types as the harness stores and reads them. The conversions are its own: a
 * checker shares nothing with what it checks.
 *
 * Values of a tensor are dense, in row-major order: an array of double where its dtype is
 * a float, of int64_t where it is an integer or BOOL8, as in "strata.reference/2".
 */
#ifndef CHECK_HARNESS_NUMBER_H
#define CHECK_HARNESS_NUMBER_H

#include <stdbool.h>

#include <strata/plugin.h>

#define VALUE_SIZE 8 /* bytes of a value of either class */

/* Whether values are doubles. */
bool number_is_real(int32_t dtype);
/* FP32, FP16 and BF16: any of them may stand for another, as `precision` has it. */
bool number_is_any(int32_t dtype);
/* Whether a tensor of a dtype may lie in memory as `stored`: `exact` as in
 * strata_tensor. */
bool number_may_be(int32_t dtype, bool exact, int32_t stored);
/* The largest number of a float; the limits of an integer. */
double number_largest(int32_t dtype);
int64_t number_lowest(int32_t dtype);
int64_t number_highest(int32_t dtype);

/* Element `at` of memory. A float is rounded to the nearest, beyond the largest to
 * infinity, or NaN where there is none; an integer is held to its type's limits. */
void number_store(void *data, int32_t dtype, int64_t at, const void *values, int64_t i);
void number_load(void *values, int64_t i, const void *data, int32_t dtype, int64_t at);
/* A value as it is stored in a dtype. */
double number_round(int32_t dtype, double x);
/* How far that may move a number: FP8 rounds each by so much that a bound of the largest
 * would hold nothing; of others 0. */
double number_rounding(int32_t dtype, double x);
/* Whether a dtype of the values' class holds value i as it is. */
bool number_keeps(int32_t dtype, const void *values, int64_t i);

/* Value i of either class, as a double. */
double number_of(const void *values, int32_t dtype, int64_t i);
/* The same value in the other class: doubles for "strata.reference/1", and back. */
void number_to_reals(double *out, const void *values, int32_t dtype, int64_t n);
void number_from_reals(void *values, int32_t dtype, const double *in, int64_t n);
/* Whether values i are equal: their bits, or both NaN. */
bool number_same(int32_t dtype, const void *a, const void *b, int64_t i);
/* As text, for messages. */
#define NUMBER_TEXT 32
const char *number_text(char text[NUMBER_TEXT], const void *values, int32_t dtype,
                        int64_t i);

#endif /* CHECK_HARNESS_NUMBER_H */
