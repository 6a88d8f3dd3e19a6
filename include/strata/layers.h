/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of the built-in layers (namespace core, version 1), for modules that add
 * impls to them. A field's meaning, range and default stand in `strata describe NAME`;
 * the structs only grow at the end within a layer version.
 *
 * Conventions: dim 0 is the batch, dim 1 the channels, the rest are spatial. A list
 * for spatial dims has one entry for all, or one per spatial dim; pad may also have two
 * per spatial dim, all begins first and then all ends (as in ONNX). Empty lists mean the
 * layer's default.
 */
#ifndef STRATA_LAYERS_H
#define STRATA_LAYERS_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* pad_mode of windows. SAME pads so that out = ceil(in/stride); the odd element goes to
 * the end (upper) or the begin (lower). VALID is no padding. */
enum {
    STRATA_PAD_EXPLICIT = 0,
    STRATA_PAD_SAME_UPPER = 1,
    STRATA_PAD_SAME_LOWER = 2,
    STRATA_PAD_VALID = 3
};

/* Convolution: weight (K, C/groups, kernel...), bias (K) optional. Rank 3 to 5. */
typedef struct strata_convolution {
    int64_t filters;    /* K; 0: from the weight */
    strata_ints kernel; /* empty: from the weight */
    strata_ints stride, pad, dilation;
    int32_t pad_mode;
    int32_t reserved;
    int64_t groups;
} strata_convolution;

/* FullyConnected: input flattened to (N, K); weight (M, K), bias (M) optional; output
 * (N, M, 1, 1) for rank 4 and (N, M) for rank 2. */
typedef struct strata_fully_connected {
    int64_t units;      /* M; 0: from the weight */
    int32_t transposed; /* weight is (K, M) */
    int32_t reserved;
} strata_fully_connected;

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

enum { STRATA_POOL_MAX = 0, STRATA_POOL_AVERAGE = 1, STRATA_POOL_LP = 2 };
typedef struct strata_pooling {
    int32_t kind;
    int32_t global; /* kernel is the whole plane */
    strata_ints kernel, stride, pad, dilation;
    int32_t pad_mode;
    int32_t ceil_mode;
    int32_t count_include_pad; /* average divides by the kernel's area */
    int32_t indices; /* a second output, i64: where each maximum is in the whole input */
    double p;        /* of lp: (sum |x|^p)^(1/p) */
} strata_pooling;

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

typedef struct strata_softmax {
    int64_t axis; /* negative counts from the end */
    int32_t log;  /* log-softmax */
    int32_t reserved;
} strata_softmax;

typedef struct strata_concatenation {
    int64_t axis;
} strata_concatenation;

/* Slice: out[i] = in[begin + i*step], i < (end - begin)/step rounded up. Lists over
 * `axes` (all dims when empty); negative begin and end count from the end, as in ONNX.
 * With `split` or `parts` the input is cut along `axis` into several outputs instead.
 * With `like` there is a second input, dim like[k] of which says how many elements axis k
 * has from begin (empty: 0) on; end and step are empty then. */
typedef struct strata_slice {
    strata_ints axes, begin, end, step;
    strata_ints split; /* elements of each output */
    int64_t parts;     /* outputs of equal size, the last may be shorter; 0: none */
    int64_t axis;
    strata_ints like; /* dims of the second input */
} strata_slice;

enum {
    STRATA_PADDING_CONSTANT = 0,
    STRATA_PADDING_REFLECT = 1,
    STRATA_PADDING_EDGE = 2,
    STRATA_PADDING_WRAP = 3
};
/* Padding: begin and end for each dim, or for the last dims when fewer are given;
 * negative ones take elements away. */
typedef struct strata_padding {
    int32_t mode;
    int32_t reserved;
    strata_ints begin, end;
    double value;
} strata_padding;

/* Shuffle: transpose by `first`, reshape to `shape` (0 copies a dim, -1 infers one), then
 * transpose by `second`. Empty lists skip a step. */
typedef struct strata_shuffle {
    strata_ints first, shape, second;
} strata_shuffle;

enum {
    STRATA_NEAREST = 0,
    STRATA_BILINEAR = 1,
    STRATA_RESIZE_LINEAR = 2, /* the same as bilinear, which is for two dims */
    STRATA_RESIZE_CUBIC = 3
};
enum {
    STRATA_HALF_PIXEL = 0,
    STRATA_ASYMMETRIC = 1,
    STRATA_ALIGN_CORNERS = 2,
    STRATA_PYTORCH_HALF_PIXEL = 3,
    STRATA_HALF_PIXEL_SYMMETRIC = 4,
    STRATA_TF_CROP_AND_RESIZE = 5
};
enum {
    STRATA_ROUND_BY_COORDINATES = 0, /* floor if asymmetric, else prefer_floor */
    STRATA_ROUND_PREFER_FLOOR = 1,
    STRATA_ROUND_PREFER_CEIL = 2,
    STRATA_ROUND_FLOOR = 3,
    STRATA_ROUND_CEIL = 4
};
enum {
    STRATA_ASPECT_STRETCH = 0,
    STRATA_ASPECT_NOT_LARGER = 1,
    STRATA_ASPECT_NOT_SMALLER = 2
};
/* Resize of `axes` (the spatial dims when empty): to `size`, by `scale`
 * (out = floor(in*scale)), or to the dims `like` of a second input. */
typedef struct strata_resize {
    int32_t mode;
    int32_t coordinates;
    strata_ints size;
    strata_reals scale;
    strata_ints axes;
    int32_t nearest;     /* STRATA_ROUND_* */
    int32_t keep_aspect; /* STRATA_ASPECT_*, with size */
    double cubic_a;
    strata_reals roi; /* begins of all axes, then ends, 0 to 1; tf_crop_and_resize */
    double extrapolation;
    int32_t antialias;
    int32_t exclude_outside;
    strata_ints like; /* dims of the second input, one for each axis */
} strata_resize;

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

/* Identity has no parameters. Constant: weight `value` of `shape`. */
typedef struct strata_constant {
    strata_ints shape; /* empty: the weight's own */
} strata_constant;

/* Deconvolution (transposed convolution): weight (C, K/groups, kernel...), bias (K)
 * optional. Rank 3 to 5. Out = stride*(in - 1) + output_pad + (kernel - 1)*dilation + 1 -
 * pads, or output_size, which then decides the pads. */
typedef struct strata_deconvolution {
    int64_t filters;    /* K; 0: from the weight */
    strata_ints kernel; /* empty: from the weight */
    strata_ints stride, pad, dilation;
    int32_t pad_mode; /* same_*: out = in*stride */
    int32_t reserved;
    int64_t groups;
    strata_ints output_pad;  /* added at the end; empty: 0 */
    strata_ints output_size; /* empty: by the formula */
} strata_deconvolution;

/* LRN: y = x/(bias + alpha/size*sum)^beta with the sum of x^2 over the channels
 * c - (size - 1)/2 to c + size/2. Rank 3 to 5. */
typedef struct strata_lrn {
    int64_t size;
    double alpha, beta, bias;
} strata_lrn;

/* MaxUnpool: each x goes to its place of `indices`, flat in the whole output tensor of the
 * size that the window gives; all else is 0. */
typedef struct strata_max_unpool {
    strata_ints kernel, stride, pad; /* of the pooling that is undone */
    strata_ints output_size;         /* empty: by the window */
} strata_max_unpool;
/* MatrixMultiply: Y = alpha*op(A)*op(B) + beta*C + bias over the last two dims, leading
 * ones broadcast; op is transposition where asked for. A is input 0. B is input 1, or the
 * weight `b` (K x N, N x K transposed); C is input 2 and broadcasts to Y; weight `bias`
 * (N) is optional. */
typedef struct strata_matrix_multiply {
    int32_t transpose_a, transpose_b;
    double alpha, beta; /* beta 0: C is not read; whole numbers for integers */
    int64_t units;      /* N where `b` is a weight; 0: from the weight */
    int64_t weight_bits;  /* 4: a byte of `b` has two values along K; 0: as its dtype */
    int64_t weight_group; /* values along K that a factor of `b` is for; 0: all of them */
} strata_matrix_multiply;
/* Normalization: y = scale*(x - mean)/sqrt(variance + epsilon) + bias, x the sum of the
 * first input and an optional second one. layer and rms normalize the dims from `axis` on
 * (rms: mean 0), group and instance the channels of a group, or one channel, over the
 * spatial dims, batch by the weights mean and variance; lp is x/|x|, the p-norm along
 * `axis`. Outputs: y; with `sum` then x; with `statistics` (layer) then mean and
 * 1/sqrt(variance + epsilon), FP32, with 1 for the normalized dims. */
enum {
    STRATA_NORMALIZATION_LAYER = 0,
    STRATA_NORMALIZATION_RMS = 1,
    STRATA_NORMALIZATION_GROUP = 2,
    STRATA_NORMALIZATION_INSTANCE = 3,
    STRATA_NORMALIZATION_BATCH = 4,
    STRATA_NORMALIZATION_LP = 5
};
typedef struct strata_normalization {
    int32_t kind;
    int32_t sum;        /* give the sum of both inputs */
    int32_t statistics; /* give mean and inverse deviation */
    int32_t reserved;
    int64_t axis; /* negative counts from the end */
    int64_t groups;
    int64_t p;
    double epsilon;
} strata_normalization;

/* Reduce over `axes` (all when empty). Empty sets: sums 0, prod 1, max the least and min
 * the greatest of the dtype, mean NaN (integers: 0), log_sum and log_sum_exp -infinity.
 * Integers gather in 64 bits and wrap; their mean truncates. */
enum {
    STRATA_REDUCE_SUM = 0,
    STRATA_REDUCE_MEAN = 1,
    STRATA_REDUCE_MAX = 2,
    STRATA_REDUCE_MIN = 3,
    STRATA_REDUCE_PROD = 4,
    STRATA_REDUCE_L1 = 5,
    STRATA_REDUCE_L2 = 6,
    STRATA_REDUCE_SUM_SQUARE = 7,
    STRATA_REDUCE_LOG_SUM = 8,
    STRATA_REDUCE_LOG_SUM_EXP = 9
};
typedef struct strata_reduce {
    int32_t op;
    int32_t keep_dims; /* reduced dims stay as dims of 1 */
    strata_ints axes;  /* in any order; negative counts from the end */
} strata_reduce;

/* ArgMax: index of the largest (smallest) element along `axis`. NaN is largest and
 * smallest, -0 equals 0. */
enum { STRATA_ARG_MAX = 0, STRATA_ARG_MIN = 1 };
enum { STRATA_TIES_FIRST = 0, STRATA_TIES_LAST = 1 };
enum { STRATA_INDEX_I64 = 0, STRATA_INDEX_I32 = 1 };
typedef struct strata_arg_max {
    int32_t op;
    int32_t keep_dims;
    int32_t ties;  /* which index of equal elements */
    int32_t index; /* dtype of the output */
    int64_t axis;  /* negative counts from the end */
} strata_arg_max;

/* TopK: the k largest (smallest) elements along `axis`, in order, and their indices (i64).
 * NaN is larger than infinity; of equal elements the lower index comes first. */
typedef struct strata_top_k {
    int64_t k;
    int64_t axis; /* negative counts from the end */
    int32_t largest;
    int32_t sorted; /* ours are always in order */
} strata_top_k;

/* CumSum: y[i] = x[0] + ... + x[i] along `axis`; exclusive: to x[i - 1], beginning with 0;
 * reverse: from the end. product: the same with *, and 1. */
enum { STRATA_CUM_SUM = 0, STRATA_CUM_PRODUCT = 1 };
typedef struct strata_cum_sum {
    int32_t op;
    int32_t exclusive;
    int32_t reverse;
    int32_t reserved;
    int64_t axis; /* negative counts from the end */
} strata_cum_sum;
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

/* Projection: rows of x times a constant matrix, `b` (K x N, or N x K transposed), and
 * `bias` (N). normalized: each row is divided by its root mean square first, whose square
 * epsilon is added to, and multiplied by `scale` (K). gated: y = f(a)*b of the halves a
 * and b of the result, N/2 each. heads: the result, batch x sequence x heads*dim, goes
 * through a RotaryEmbedding without caches; input 1 has the positions, as that's. */
typedef struct strata_projection {
    strata_matrix_multiply product; /* transpose_b and units alone */
    int32_t normalized, gated;
    int32_t kind; /* f: of an activation, STRATA_RELU ... */
    int32_t interleaved;
    double epsilon;
    double alpha, beta; /* of f; +infinity: the kind's own */
    int64_t heads;      /* 0: nothing turns */
    int64_t turned;     /* heads that turn, the first ones; 0: all */
    double base;
} strata_projection;
enum { STRATA_PROJECTION_B, STRATA_PROJECTION_BIAS, STRATA_PROJECTION_SCALE };

/* Perceptron: up to three products by constants, each with a bias and an activation, of
 * rows of x, or of the means of its planes (N x C). Weight i is units x depth, or turned
 * depth x units. `end`: the last result as it is, its softmax, or as factors of the
 * channels of x, whose means were taken: y = x*factor. The result of means has dims of 1
 * for those of the planes where keep_dims, else it is N x units. */
typedef struct strata_perceptron_product {
    int64_t units;      /* 0: from the weight; of the second and third: or no product */
    int32_t transposed; /* weight is depth x units */
    int32_t activation; /* 0: none; 1 + STRATA_RELU ... */
    double alpha, beta; /* of it; +infinity: the kind's own */
} strata_perceptron_product;
enum { STRATA_PERCEPTRON_PLAIN, STRATA_PERCEPTRON_SOFTMAX, STRATA_PERCEPTRON_FACTORS };
enum { STRATA_PERCEPTRON_PRODUCTS = 3 };
typedef struct strata_perceptron {
    strata_perceptron_product product[STRATA_PERCEPTRON_PRODUCTS];
    int32_t mean, end;
    int32_t keep_dims;
    int32_t reserved;
} strata_perceptron; /* weights: weight1, bias1, weight2, bias2, weight3, bias3 */

/* InvertedResidual: a 1x1 convolution (or none), a depthwise one, a 1x1 one (or none),
 * each with a bias and an activation; the last result has a second input added before
 * its activation. A product is there where it has results or a weight. */
enum { STRATA_INVERTED_EXPANDED, STRATA_INVERTED_CONVOLVED, STRATA_INVERTED_PROJECTED,
       STRATA_INVERTED_STAGES };
typedef struct strata_inverted_residual {
    strata_convolution depthwise; /* its windows alone */
    int64_t expanded, projected;  /* results of the products; 0: of the weights */
    int32_t activation[STRATA_INVERTED_STAGES]; /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha[STRATA_INVERTED_STAGES], beta[STRATA_INVERTED_STAGES]; /* of these;
                                                     +infinity: the kind's own */
} strata_inverted_residual;
enum { STRATA_INVERTED_EXPAND, STRATA_INVERTED_EXPAND_BIAS, STRATA_INVERTED_DEPTHWISE,
       STRATA_INVERTED_DEPTHWISE_BIAS, STRATA_INVERTED_PROJECT,
       STRATA_INVERTED_PROJECT_BIAS, STRATA_INVERTED_WEIGHTS };

/* Bottleneck: a 1x1 convolution, one with windows of all its channels, and a 1x1 one, each
 * with a bias and an activation; the last result has a second input added before its
 * activation. Weights: reduce (reduced x channels), windows (convolved x reduced x kernel),
 * project (projected x convolved), and a bias behind each. */
enum { STRATA_BOTTLENECK_REDUCED, STRATA_BOTTLENECK_CONVOLVED,
       STRATA_BOTTLENECK_PROJECTED, STRATA_BOTTLENECK_STAGES };
typedef struct strata_bottleneck {
    strata_convolution windows;            /* their kernel, stride, pads and dilation alone */
    int64_t reduced, convolved, projected; /* results; 0: of the weights */
    int32_t activation[STRATA_BOTTLENECK_STAGES]; /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha[STRATA_BOTTLENECK_STAGES], beta[STRATA_BOTTLENECK_STAGES]; /* of these;
                                                     +infinity: the kind's own */
} strata_bottleneck;
enum { STRATA_BOTTLENECK_REDUCE, STRATA_BOTTLENECK_REDUCE_BIAS, STRATA_BOTTLENECK_WINDOWS,
       STRATA_BOTTLENECK_WINDOWS_BIAS, STRATA_BOTTLENECK_PROJECT,
       STRATA_BOTTLENECK_PROJECT_BIAS, STRATA_BOTTLENECK_WEIGHTS };

/* Quantize and Dequantize: weights scale and zero (optional) have one element, or the
 * length of dim `axis`, or that divided by `block` in a tensor of the input's rank. */
typedef struct strata_quantize {
    int64_t axis, block; /* block 0: none */
    int32_t dtype;       /* Quantize: 0 UINT8, 1 INT8, 2 E4M3, 3 E5M2 */
    int32_t saturate;    /* Quantize to FP8 */
} strata_quantize;
typedef strata_quantize strata_dequantize;

/* What layers that compute in 8 bits share. Their input is INT8 or UINT8 and stands for
 * (x - zero_in)*scale_in, weight 0 is INT8, weight 1 the bias, and three weights of FP32
 * say how they scale: weight_scale (one, or one an output channel), scale_in and
 * scale_out (one each; scale_out where `to` is an integer). Sums are exact, in 32 bits:
 *   y = activation((sum of (x - zero_in)*weight)*(scale_in*weight_scale[k]) + bias[k])
 * in FP32, each operation rounded, none contracted. To an integer:
 *   sat(round(y/scale_out) + zero_out), a true division, ties to even; NaN is 0.
 * QuantizedProduct also takes E4M3 by E4M3, to FP32 or E4M3: sums are FP32's, whose order
 * and rounding are the impl's, zeros are 0, and y/scale_out saturates; a NaN stays one. */
typedef struct strata_quantized {
    int64_t zero_in, zero_out;
    int32_t to;         /* 0 FP32, 1 INT8, 2 UINT8, 3 E4M3 */
    int32_t activation; /* 0: none; 1 + STRATA_RELU to STRATA_CLIP */
    double alpha, beta; /* of the activation, with no default of its kind */
} strata_quantized;
enum { STRATA_QUANTIZED_WEIGHT, STRATA_QUANTIZED_BIAS, STRATA_QUANTIZED_FACTORS,
       STRATA_QUANTIZED_SCALE_IN, STRATA_QUANTIZED_SCALE_OUT, STRATA_QUANTIZED_WEIGHTS };

/* Convolution in 8 bits. A second input, of 8 bits and the output's shape, is added before
 * the activation, which then takes
 *   y + (b - zero_addend)*scale_addend
 * or, where y is rounded to `between` first and read back,
 *   r = sat(round(y/scale_between) + zero_between)
 *   (r - zero_between)*scale_between + (b - zero_addend)*scale_addend. */
typedef struct strata_quantized_convolution {
    strata_convolution convolution;
    strata_quantized quantized;
    int64_t zero_addend, zero_between;
    int32_t between; /* 0 none, 1 INT8, 2 UINT8; with a second input alone */
    int32_t reserved;
} strata_quantized_convolution;
enum { STRATA_QUANTIZED_SCALE_ADDEND = STRATA_QUANTIZED_WEIGHTS,
       STRATA_QUANTIZED_SCALE_BETWEEN, STRATA_QUANTIZED_CONVOLUTION_WEIGHTS };

/* Deconvolution in 8 bits: weight_scale is one, or one an output channel. */
typedef struct strata_quantized_deconvolution {
    strata_deconvolution deconvolution;
    strata_quantized quantized;
} strata_quantized_deconvolution;

/* MatrixMultiply by a constant in 8 bits: input ... x M x K, weight K x N or N x K. */
typedef struct strata_quantized_product {
    int64_t units;      /* N; 0: from the weight */
    int32_t transposed; /* weight is N x K */
    int32_t reserved;
    strata_quantized quantized;
} strata_quantized_product;

/* QuantizedSum: y = activation((a - zero_a)*scale_a + (b - zero_b)*scale_b) in FP32, then
 * as above; inputs of one shape, weights scale_a, scale_b, scale_out (one each). zero_in
 * is zero_a. */
typedef struct strata_quantized_sum {
    strata_quantized quantized;
    int64_t zero_b;
} strata_quantized_sum;

/* QuantizedPooling: averages of bytes, or maxima of floats. The sum of (x - zero_in) is
 * exact in 32 bits, then y = activation(sum*scale_in/counted) in FP32, each operation
 * rounded; or y = activation(maximum). Then as above. Weights scale_in (without
 * effect on floats) and scale_out, one each. */
typedef struct strata_quantized_pooling {
    strata_pooling pooling;
    strata_quantized quantized;
} strata_quantized_pooling;

/* Expand: the broadcast of x and `shape`; or x repeated, a number for each dim. */
typedef struct strata_expand {
    strata_ints shape, repeats;
} strata_expand;

/* Triangle: x on and above (upper) or below diagonal k of the last two dims, else 0. */
typedef struct strata_triangle {
    int32_t upper;
    int32_t reserved;
    int64_t k; /* above the main diagonal where positive */
} strata_triangle;
enum { STRATA_GATHER_SLICES = 0, STRATA_GATHER_ELEMENTS = 1, STRATA_GATHER_ND = 2 };
/* Gather: input data, then indices (i32, i64), negative ones from the end; what lies
 * outside gives zeros. */
typedef struct strata_gather {
    int32_t mode;
    int32_t reserved;
    int64_t axis;       /* of slices and elements; negative counts from the end */
    int64_t batch_dims; /* leading dims that data and indices share */
} strata_gather;

/* Embedding: input indices; weight `table` (rows, columns...), FP32, FP16 or BF16. */
typedef struct strata_embedding {
    int64_t rows, columns; /* 0: from the weight */
} strata_embedding;

enum { STRATA_SCATTER_ELEMENTS = 0, STRATA_SCATTER_ND = 1 };
enum {
    STRATA_SCATTER_NONE = 0, /* the update itself; the last one where several meet */
    STRATA_SCATTER_ADD = 1,
    STRATA_SCATTER_MUL = 2,
    STRATA_SCATTER_MAX = 3,
    STRATA_SCATTER_MIN = 4
};
/* Scatter: inputs data, indices (i32, i64), updates; the output is the data with the
 * updates at their indices. */
typedef struct strata_scatter {
    int32_t mode;
    int32_t reduction;
    int64_t axis; /* of elements; negative counts from the end */
} strata_scatter;

/* ReverseSequence: inputs data, lengths (i32, i64) of the batch. */
typedef struct strata_reverse_sequence {
    int64_t batch_axis, time_axis;
} strata_reverse_sequence;

enum { STRATA_GRID_LINEAR = 0, STRATA_GRID_NEAREST = 1, STRATA_GRID_CUBIC = 2 };
enum { STRATA_GRID_ZEROS = 0, STRATA_GRID_BORDER = 1, STRATA_GRID_REFLECTION = 2 };
/* GridSample: input data (N, C, spatial), then grid (N, spatial of the output, dims), from
 * -1 to 1, the last dim of the data first. */
typedef struct strata_grid_sample {
    int32_t mode;
    int32_t padding;
    int32_t align_corners;
    int32_t reserved;
} strata_grid_sample;

enum { STRATA_ROI_AVERAGE = 0, STRATA_ROI_MAX = 1 };
enum { STRATA_ROI_HALF_PIXEL = 0, STRATA_ROI_OUTPUT_HALF_PIXEL = 1 };
/* RoiAlign: inputs data (N, C, H, W), regions (R, 4: x1 y1 x2 y2), and the image of each
 * (R; i32, i64). */
typedef struct strata_roi_align {
    strata_ints size; /* of the output, one for both dims or one each */
    int32_t mode;
    int32_t coordinates;
    int64_t sampling; /* points of a bin per dim; 0: as many as it has elements */
    double scale;     /* from coordinates of regions to elements */
} strata_roi_align;

enum { STRATA_BOX_CORNERS = 0, STRATA_BOX_CENTER = 1 };
/* NonMaxSuppression: inputs boxes (B, S, 4) and scores (B, C, S); outputs indices (M, 3:
 * image, class, box; M = B*C*min(max_output, S), unused rows -1) and their count (1). */
typedef struct strata_non_max_suppression {
    int64_t max_output; /* of a class of an image */
    double iou, score;
    int32_t box; /* corners y1 x1 y2 x2, or center x y width height */
    int32_t reserved;
} strata_non_max_suppression;

/*
 * Attention: y = softmax(softcap(scale*Q*K^T) + mask)*V over the keys that a query sees.
 * Inputs q, k, v, mask, past_k, past_v, lengths (i32 or i64, batch); all but q may be
 * absent. Without k and v, q is packed: batch x sequence x (heads + 2*kv_heads)*dim, the
 * heads of Q, K and V behind each other. Outputs y; with `present` or `cache` then
 * present_k and present_v; with `scores` then those, batch x heads x queries x keys.
 *
 * Without `cache` the keys are those of past_k and behind them those of k, and lengths
 * says how many of them each row of the batch has. With `cache`, past_k and past_v are
 * caches, batch x kv_heads x room x dim, of which each row has taken its lengths' first
 * positions; k and v are written behind them, and present_k and present_v are the caches
 * after that. What would lie outside the room is dropped.
 *
 * Query i is at place i + offset: of the taken positions of a cache, else of lengths less
 * the queries, else of the past, else 0. It sees the keys at places from its own less
 * window_left to its own plus window_right, and with `causal` none behind its own. One
 * that sees no key gives zeros.
 */
enum {
    STRATA_SCORES_NONE = 0,
    STRATA_SCORES_RAW = 1, /* scale*Q*K^T */
    STRATA_SCORES_SOFTCAP = 2,
    STRATA_SCORES_MASKED = 3, /* -infinity where a query does not see a key */
    STRATA_SCORES_SOFTMAX = 4
};
typedef struct strata_attention {
    int64_t heads, kv_heads; /* of 3-D inputs, batch x sequence x heads*dim; kv_heads 0: as
                                heads. heads 0: 4-D, batch x heads x sequence x dim */
    double scale;            /* 0: 1/sqrt(dim) */
    double softcap;          /* c*tanh(score/c); 0: none */
    int64_t window_left, window_right; /* -1: no bound */
    int32_t causal;
    int32_t scores;  /* STRATA_SCORES_* */
    int32_t cache;   /* past_k and past_v are caches */
    int32_t present; /* give present_k and present_v; always with cache */
} strata_attention;

/* SelfAttention: rows of x (batch x sequence x K) times a constant matrix, `b` (K x N, or
 * N x K transposed), with `bias` (N), are queries, keys and values side by side, and go
 * through an Attention with `heads`, without mask, past and lengths. */
typedef struct strata_self_attention {
    strata_matrix_multiply product; /* transpose_b and units alone */
    strata_attention attention;     /* all but cache, present and scores */
} strata_self_attention;
enum { STRATA_SELF_ATTENTION_B, STRATA_SELF_ATTENTION_BIAS };

/* Attention of E4M3: inputs q, k, v, mask and lengths as Attention's, q, k and v times the
 * weights scale_q, scale_k and scale_v, also the parts of a packed q. Weights of the
 * softmax may be rounded to E4M3, in steps of a power of two by their row's largest. Of
 * `attention` cache, present and scores are 0. To E4M3: y/scale_out, which saturates. */
typedef struct strata_quantized_attention {
    strata_attention attention;
    int32_t to; /* 0 FP32, 1 E4M3 */
    int32_t reserved;
} strata_quantized_attention;
enum { STRATA_QUANTIZED_SCALE_Q, STRATA_QUANTIZED_SCALE_K, STRATA_QUANTIZED_SCALE_V,
       STRATA_QUANTIZED_SCALE_Y, STRATA_QUANTIZED_ATTENTION_WEIGHTS };

/*
 * RotaryEmbedding: pairs (a, b) of the leading elements of each head turned by the angle
 * position*base^(-2*i/dims) of pair i: (a*cos - b*sin, a*sin + b*cos). Inputs x, positions
 * (i32 or i64: batch x sequence, or batch: of the first of each row, the others follow;
 * absent: from 0), cos and sin (absent, or positions x dims/2, or with positions absent
 * batch x sequence x dims/2); or the first kind of caches as weights cos and sin. A
 * position outside the caches gives zeros.
 */
typedef struct strata_rotary_embedding {
    int64_t heads; /* of 3-D x, batch x sequence x heads*dim; 0: 4-D, as Attention's */
    int64_t dims;  /* elements that turn; 0: all */
    double base;   /* where no caches are given */
    int32_t interleaved; /* pairs are neighbours; else one of either half */
    int32_t reserved;
    int64_t turned; /* heads that turn, the first ones; 0: all. The others stay */
} strata_rotary_embedding;
enum { STRATA_RNN_LSTM = 0, STRATA_RNN_GRU = 1, STRATA_RNN_TANH = 2, STRATA_RNN_RELU = 3 };
enum { STRATA_RNN_FORWARD = 0, STRATA_RNN_REVERSE = 1, STRATA_RNN_BIDIRECTIONAL = 2 };
enum { STRATA_RNN_LINEAR = 0, STRATA_RNN_SKIP = 1 };
enum { STRATA_RNN_SEQUENCE = 0, STRATA_RNN_BATCH = 1 };
/* RNN: L layers of D directions; G gates a unit in ONNX's order (lstm i o f c, gru z r h).
 * Inputs x (T, B, I), lengths (B; i32), h0 and c0 (L*D, B, H), all but x optional; weights
 * w (D, G*H, I) but with SKIP, u ((L-1)*D, G*H, D*H), r (L*D, G*H, H), b (L*D, 2*G*H: of w
 * or u, then of r) and p (L*D, 3*H: i o f), the last two optional; outputs y, hn and, of
 * lstm, cn. */
typedef struct strata_rnn {
    int64_t hidden; /* H; 0: from the weight r */
    int64_t layers;
    double clip; /* bounds what activations take */
    strata_string activations;         /* names, of a direction or of both; empty: op's */
    strata_reals activation_alpha, activation_beta; /* one each, or empty: their own */
    int32_t op, direction, input_mode, layout;
    int32_t reset_after; /* gru: the reset is applied behind the product */
    int32_t coupled;     /* lstm: f = 1 - i */
    int32_t split_directions; /* y is (T, D, B, H), else (T, B, D*H) */
    int32_t reserved;
} strata_rnn;

enum { STRATA_SHAPE_I64 = 0, STRATA_SHAPE_I32 = 1 };
/* Shape: dims of the input as numbers, one dim of them. */
typedef struct strata_shape {
    strata_ints axes; /* which; empty: all */
    int32_t to;       /* STRATA_SHAPE_* */
    int32_t reserved;
} strata_shape;

/* ShortcutConvolution: a convolution to whose results a product (1x1) of a second input is
 * added, before an activation. Each has a bias or none. */
typedef struct strata_shortcut_convolution {
    strata_convolution convolution; /* filters, kernel, stride, pads and dilation alone */
    strata_ints shortcut_stride;    /* between the pixels taken of the second input */
    int32_t activation;             /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha, beta; /* of the activation; +infinity: the kind's own */
} strata_shortcut_convolution;
enum { STRATA_SHORTCUT_CONVOLUTION_WEIGHT, STRATA_SHORTCUT_CONVOLUTION_BIAS,
       STRATA_SHORTCUT_CONVOLUTION_SHORTCUT, STRATA_SHORTCUT_CONVOLUTION_SHORTCUT_BIAS,
       STRATA_SHORTCUT_CONVOLUTION_WEIGHTS };

/* PooledConvolution: a convolution with a bias, an activation, and the maxima of windows
 * of that, which may be rounded to 8 bits. Weights are Convolution's, and a scale_out. */
typedef struct strata_pooled_convolution {
    strata_convolution convolution;
    strata_pooling pooling; /* kernel, stride, pads, dilation and ceil_mode alone */
    int32_t activation;     /* 0: none; 1 + STRATA_RELU ... */
    int32_t to;             /* 0: a float; 1: int8; 2: u8 */
    double alpha, beta;     /* of the activation; +infinity: the kind's own */
    int64_t zero_out;       /* what stands for 0 in integers */
} strata_pooled_convolution;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_H */
