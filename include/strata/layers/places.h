/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that say where elements are, and compute none: Concatenation, Slice, Padding,
 * Shuffle, Constant, Expand, Triangle, Gather, Embedding, Scatter, ReverseSequence, Shape.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_PLACES_H
#define STRATA_LAYERS_PLACES_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Identity has no parameters. Constant: weight `value` of `shape`. */
typedef struct strata_constant {
    strata_ints shape; /* empty: the weight's own */
} strata_constant;

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

enum { STRATA_SHAPE_I64 = 0, STRATA_SHAPE_I32 = 1 };
/* Shape: dims of the input as numbers, one dim of them. */
typedef struct strata_shape {
    strata_ints axes; /* which; empty: all */
    int32_t to;       /* STRATA_SHAPE_* */
    int32_t reserved;
} strata_shape;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_PLACES_H */
