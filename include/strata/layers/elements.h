/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of one element at a time: Activation, Scale, ElementWise, Unary, Compare, Select,
 * ParametricReLU, Cast, Narrow, Gated, and Pointwise, which is a program of them.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_ELEMENTS_H
#define STRATA_LAYERS_ELEMENTS_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Activation: alpha and beta are +infinity where the network gives none. Read them
 * through strata_activation_alpha and _beta, which put the kind's own default there. */
typedef struct strata_activation {
    int32_t kind; /* STRATA_RELU ... */
    int32_t reserved;
    double alpha, beta;
} strata_activation;

#define STRATA_KIND_DEFAULT __builtin_huge_val() /* +infinity */

static inline double strata_activation_alpha(const strata_activation *a)
{
    if (a->alpha != STRATA_KIND_DEFAULT)
        return a->alpha;
    return a->kind == STRATA_LEAKY_RELU     ? 0.01
           : a->kind == STRATA_CLIP         ? -STRATA_KIND_DEFAULT /* no lower bound */
           : a->kind == STRATA_ELU          ? 1
           : a->kind == STRATA_SELU         ? 1.67326319217681884765625
           : a->kind == STRATA_HARD_SIGMOID ? 0.2
           : a->kind == STRATA_SHRINK       ? 0.5
           : a->kind >= STRATA_SWISH && a->kind <= STRATA_SCALED_TANH
               ? 1 /* swish, celu, thresholded_relu, scaled_tanh */
                                            : 0;
}

static inline double strata_activation_beta(const strata_activation *a)
{
    if (a->beta != STRATA_KIND_DEFAULT)
        return a->beta;
    return a->kind == STRATA_CLIP           ? STRATA_KIND_DEFAULT /* no upper bound */
           : a->kind == STRATA_SELU         ? 1.05070102214813232421875
           : a->kind == STRATA_HARD_SIGMOID ? 0.5
           : a->kind == STRATA_SCALED_TANH  ? 1
                                            : 0;
}

/* Scale: y = (x*scale + shift)^power; weights scale, shift, power optional, each of one
 * element (uniform), C (channel) or the shape of one image (elementwise). */
enum {
    STRATA_SCALE_AUTO = 0,
    STRATA_SCALE_UNIFORM = 1,
    STRATA_SCALE_CHANNEL = 2,
    STRATA_SCALE_ELEMENTWISE = 3
};
typedef struct strata_scale {
    int32_t mode;
    int32_t reserved;
    double scale, shift, power; /* used where the weight is absent */
} strata_scale;

enum {
    STRATA_SUM = 0,
    STRATA_SUB = 1,
    STRATA_PRODUCT = 2,
    STRATA_DIV = 3,
    STRATA_MAX = 4,
    STRATA_MIN = 5,
    STRATA_POW = 6,
    STRATA_MOD = 7,
    STRATA_AND = 8, /* of BOOL8, and the next two */
    STRATA_OR = 9,
    STRATA_XOR = 10,
    STRATA_BIT_AND = 11, /* of integers, to SHIFT_RIGHT */
    STRATA_BIT_OR = 12,
    STRATA_BIT_XOR = 13,
    STRATA_SHIFT_LEFT = 14,
    STRATA_SHIFT_RIGHT = 15,
    STRATA_MEAN = 16,
    STRATA_ELEMENTWISE_COUNT = 17
};
/* ElementWise: two inputs (sum, product, max, min and mean take more), NumPy broadcasting
 * (dims of 1 stretch, a lower rank stands for the last dims). */
typedef struct strata_elementwise {
    int32_t op;
    int32_t reserved;
    int32_t fmod; /* mod has the sign of the dividend, not of the divisor */
    int32_t reserved1;
} strata_elementwise;

/* Pointwise: a program that computes each element of the output from those of the inputs,
 * which broadcast. Instructions stand between ',', each an operation, its operands and
 * its numbers: "product x0 x1, clip r0 0 6, sum r1 x2". xN is input N, rN the result of
 * instruction N, the last result the output. Operations are the values of `op` of Unary,
 * ElementWise (of two operands) and Compare and of `kind` of Activation (with alpha and
 * beta), "select" of three, "scale" with the numbers scale, shift and power, and
 * "cast_DTYPE". Everything between is FP32, and BOOL8 where an operation gives it. */
typedef struct strata_pointwise {
    strata_string program;
} strata_pointwise;

enum {
    STRATA_UNARY_ABS = 0,
    STRATA_UNARY_NEG = 1,
    STRATA_UNARY_EXP = 2,
    STRATA_UNARY_LOG = 3,
    STRATA_UNARY_SQRT = 4,
    STRATA_UNARY_RECIPROCAL = 5,
    STRATA_UNARY_SIGN = 6, /* of NaN NaN, of a zero itself */
    STRATA_UNARY_FLOOR = 7,
    STRATA_UNARY_CEIL = 8,
    STRATA_UNARY_ROUND = 9, /* halves to the even one */
    STRATA_UNARY_SIN = 10,
    STRATA_UNARY_COS = 11,
    STRATA_UNARY_TAN = 12,
    STRATA_UNARY_ASIN = 13,
    STRATA_UNARY_ACOS = 14,
    STRATA_UNARY_ATAN = 15,
    STRATA_UNARY_SINH = 16,
    STRATA_UNARY_COSH = 17,
    STRATA_UNARY_TANH = 18,
    STRATA_UNARY_ASINH = 19,
    STRATA_UNARY_ACOSH = 20,
    STRATA_UNARY_ATANH = 21,
    STRATA_UNARY_ERF = 22,
    STRATA_UNARY_NOT = 23,     /* of BOOL8 */
    STRATA_UNARY_BIT_NOT = 24, /* of integers */
    STRATA_UNARY_IS_NAN = 25,  /* gives BOOL8 */
    STRATA_UNARY_IS_INF = 26,  /* gives BOOL8 */
    STRATA_UNARY_COUNT = 27
};
/* Unary: y = op(x). */
typedef struct strata_unary {
    int32_t op;
    int32_t negative, positive; /* infinities that is_inf counts */
    int32_t reserved;
} strata_unary;

enum {
    STRATA_COMPARE_EQUAL = 0,
    STRATA_COMPARE_NOT_EQUAL = 1,
    STRATA_COMPARE_LESS = 2,
    STRATA_COMPARE_LESS_EQUAL = 3,
    STRATA_COMPARE_GREATER = 4,
    STRATA_COMPARE_GREATER_EQUAL = 5
};
/* Compare: y = a op b as BOOL8, with the broadcast of ElementWise. */
typedef struct strata_compare {
    int32_t op;
    int32_t reserved;
} strata_compare;

/* Select has no parameters: y = x0 ? x1 : x2, with the broadcast of ElementWise.
 * ParametricReLU has none: y = x < 0 ? x*slope : x, its weight broadcast likewise. */

/* Cast: `to` counts the choices of the attribute, which are the dtypes in order. */
typedef struct strata_cast {
    int32_t to;       /* STRATA_FP32 ... */
    int32_t saturate; /* FP8: the largest in place of infinity and NaN */
} strata_cast;

/* The types that Narrow knows: none is a dtype. */
enum {
    STRATA_NARROW_INT16 = 0,
    STRATA_NARROW_UINT16 = 1,
    STRATA_NARROW_UINT32 = 2,
    STRATA_NARROW_INT4 = 3,
    STRATA_NARROW_UINT4 = 4,
    STRATA_NARROW_INT2 = 5,
    STRATA_NARROW_UINT2 = 6,
    STRATA_NARROW_E4M3FNUZ = 7,
    STRATA_NARROW_E5M2FNUZ = 8,
    STRATA_NARROW_E8M0 = 9,
    STRATA_NARROW_E2M1 = 10
};
enum { STRATA_NARROW_UP = 0, STRATA_NARROW_DOWN = 1, STRATA_NARROW_NEAREST = 2 };
/* Narrow: x with the values of a type, in x's dtype. */
typedef struct strata_narrow {
    int32_t values;   /* STRATA_NARROW_INT16 ... */
    int32_t saturate; /* floats that have NaN: the largest in place of it */
    int32_t round;    /* STRATA_NARROW_UP ..., of E8M0 */
    int32_t reserved;
} strata_narrow;

/* Gated: y = f(a)*b, a and b the halves of x along axis. */
typedef struct strata_gated {
    int32_t kind; /* of an activation: STRATA_RELU ... */
    int32_t reserved;
    int64_t axis;
    double alpha, beta; /* +infinity: the kind's own */
} strata_gated;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_ELEMENTS_H */
