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
                                            : 0;
}

static inline double strata_activation_beta(const strata_activation *a)
{
    if (a->beta != STRATA_KIND_DEFAULT)
        return a->beta;
    return a->kind == STRATA_CLIP           ? STRATA_KIND_DEFAULT /* no upper bound */
           : a->kind == STRATA_SELU         ? 1.05070102214813232421875
           : a->kind == STRATA_HARD_SIGMOID ? 0.5
                                            : 0;
}

enum { STRATA_POOL_MAX = 0, STRATA_POOL_AVERAGE = 1 };
typedef struct strata_pooling {
    int32_t kind;
    int32_t global; /* kernel is the whole plane */
    strata_ints kernel, stride, pad, dilation;
    int32_t pad_mode;
    int32_t ceil_mode;
    int32_t count_include_pad; /* average divides by the kernel's area */
    int32_t reserved;
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
    STRATA_POW = 6
};
/* ElementWise: two inputs (sum, product, max and min take more), NumPy broadcasting over
 * equal ranks (dims of 1 stretch). */
typedef struct strata_elementwise {
    int32_t op;
    int32_t reserved;
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
 * With `split` or `parts` the input is cut along `axis` into several outputs instead. */
typedef struct strata_slice {
    strata_ints axes, begin, end, step;
    strata_ints split; /* elements of each output */
    int64_t parts;     /* outputs of equal size, the last may be shorter; 0: none */
    int64_t axis;
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
/* Resize of `axes` (the spatial dims when empty): to `size`, or by `scale`
 * (out = floor(in*scale)). */
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
} strata_resize;

/* Pointwise: a program that computes each element of the output from those of the inputs,
 * which broadcast. Instructions stand between ';', each an operation, its operands and
 * its numbers: "product x0 x1; clip r0 0 6; sum r1 x2". xN is input N, rN the result of
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

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_H */
