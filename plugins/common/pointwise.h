/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise arithmetic on the host: every function of the pointwise layers under one
 * number, over rows of values, and a pass over tensors that applies a few of them in
 * turn. Unary, ElementWise, Compare, Select, ParametricReLU and what fuses them share it;
 * pointwise.cuh is the same for the device.
 *
 * Values of a row are of one class: float for FP32, FP16 and BF16, double for FP64,
 * int32_t for INT32, INT8, UINT8 and BOOL8, int64_t for INT64. Narrow integers wrap when
 * they are stored, for the low bits of a sum, difference or product are right in a wider
 * type. A truth is 1 or 0.
 */
#ifndef PLUGINS_COMMON_POINTWISE_H
#define PLUGINS_COMMON_POINTWISE_H

#include <stddef.h>
#include <stdint.h>

#include <strata/layers.h>

#include "plugins/common/pointwise/operations.h"

#define POINTWISE_ROW 512   /* values of a row */
#define POINTWISE_INPUTS 8  /* tensors read */
#define POINTWISE_ROWS 12   /* those, and rows in between */
#define POINTWISE_RESULT 15 /* a step's `to`: the result */
#define POINTWISE_STEPS 16

/* Added to an op: b is one value for all. Sums, differences, products, quotients,
 * extremes, PReLU and comparisons have it, in a class that says so. */
#define POINTWISE_ONE 256

/* A class of values. apply: y may be a, b or c; b and c are read where op takes them. */
struct pointwise_class {
    size_t size; /* bytes of a value */
    void (*load)(void *row, const void *data, int32_t dtype, int64_t step, int64_t n);
    void (*store)(void *data, int32_t dtype, int64_t step, const void *row, int64_t n);
    void (*apply)(int op, const struct pointwise_constants *k, void *y, const void *a,
                  const void *b, const void *c, int64_t n);
    /* A comparison's truths as bytes; NULL: they are a row's values, and stored. */
    void (*truths)(int op, uint8_t *y, const void *a, const void *b, int64_t n);
    uint32_t native; /* mask 1 << dtype: kept in memory as in a row */
    int32_t has_one; /* takes POINTWISE_ONE */
};

extern const struct pointwise_class pointwise_float, pointwise_double, pointwise_int32,
    pointwise_int64;

/* The class of a dtype, NULL for FP8. */
const struct pointwise_class *pointwise_class_of(int32_t dtype);

/* to = op(a, b, c), each the number of a row: inputs come first. */
struct pointwise_step {
    int32_t op;
    uint8_t to, a, b, c;
    struct pointwise_constants k;
};

/* The tensors of a pass: dims of 1 stretch, and lower ranks stand for the last dims.
 * The output may lie on an input of its dtype and shape. */
struct pointwise_pass {
    const struct pointwise_class *values;
    const strata_tensor *out, *in[POINTWISE_INPUTS];
    int32_t n_in, n_steps;
    struct pointwise_step step[POINTWISE_STEPS]; /* the last one's `to` is the result */
};

void pointwise_pass_run(const struct pointwise_pass *pass);

/* A pass of one step over the inputs and weight[0] where there is one; out[0] is of the
 * first value's dtype or BOOL8. */
void pointwise_run_one(const strata_run *r, int op, const struct pointwise_constants *k,
                       const strata_tensor *values);

/* ---- shapes --------------------------------------------------------------------------
 */

/* out[0] as the broadcast of the inputs; its dtype is left alone. */
int pointwise_shape(const strata_node *n);
/* An input of lower rank whose vectors would not lie along the output's: vetoed. */
int pointwise_accept(const strata_node *n);

/* ---- references ----------------------------------------------------------------------
 */

/* out[0] by the scalar definition of op on the inputs and weight[0]. */
int pointwise_reference(const strata_node *n, const void *const *in,
                        const void *const *weight, void *const *out, int op,
                        const struct pointwise_constants *k);

/* Float formats of the host impls, and the linear ones of all dtypes with arithmetic. */
#define POINTWISE_FLOATS                                                                 \
    (STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_F32_NC8HW8 |               \
     STRATA_F32_NC16HW16 | STRATA_BF16_NCHW | STRATA_BF16_NHWC | STRATA_BF16_NHWC8)
#define POINTWISE_INTEGERS                                                               \
    (STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW)
#define POINTWISE_LINEAR_FLOATS (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)

#endif /* PLUGINS_COMMON_POINTWISE_H */
