/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of few bits and floats, one to the other.
 */
#include "network/import/map/quantize.h"

#include <string.h>

#include "core/alloc.h"

static bool is_fp8(int dtype)
{
    return dtype == STRATA_E4M3 || dtype == STRATA_E5M2;
}

/* Scale and zero point of m->s. FP8 has no zero point but 0. */
static void take_scale(struct mapping *m, int scale, int zero, int64_t axis)
{
    const struct value *s = map_constant(m, scale, "scale");
    const struct value *z = zero >= 0 ? map_constant(m, zero, "zero_point") : NULL;
    if (!s || m->refused)
        return;
    if (value_count(s) != 1)
        section_integer(m->g, m->s, "axis", axis);
    section_weight(m->s, "scale", compose_input(m, scale));
    if (z && !is_fp8(z->dtype))
        section_weight(m->s, "zero", compose_input(m, zero));
    for (int64_t i = 0; z && is_fp8(z->dtype) && i < value_count(z); i++)
        if (value_real(z, i) != 0) {
            map_refuse(m, "'zero_point' of FP8 is not 0");
            return;
        }
}

int quantize_undo(struct mapping *m, int x, int scale, int zero, int64_t axis)
{
    const int y = compose_one(m, "Dequantize", x);
    take_scale(m, scale, zero, axis);
    return y;
}

int quantize_do(struct mapping *m, int x, int scale, int zero, int64_t axis)
{
    const struct value *z = zero >= 0 ? map_input(m, zero) : NULL;
    const int y = compose_one(m, "Quantize", x);
    if (z && z->dtype >= 0)
        section_word(m->g, m->s, "dtype", strata_dtype_name(z->dtype));
    take_scale(m, scale, zero, axis);
    return y;
}

static int64_t axis_of(struct mapping *m)
{
    const struct value *scale = map_input(m, 1);
    const int64_t axis = node_integer(m->node, "axis", 1);
    return scale && value_count(scale) != 1 ? map_axis(m, axis, map_input_rank(m, 0)) : 0;
}

/* The input of Quantize is a float: integers are one after a Cast. */
static int real_input(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const bool whole = x && x->dtype == STRATA_INT32;
    return whole ? compose_cast(m, compose_input(m, 0), STRATA_FP32)
                 : compose_input(m, 0);
}

/* Whether scale and zero point are computed, and not of what only the layers take. */
static bool is_computed(const struct mapping *m, int dtype)
{
    const struct value *scale = map_input(m, 1), *zero = map_input(m, 2);
    return map_input(m, 0) && scale && !is_fp8(dtype) && scale->dtype == STRATA_FP32 &&
           scale->rank <= 1 && !node_integer(m->node, "block_size", 0) &&
           !(scale->constant && (!zero || zero->constant));
}

/* Input i as FP32, along `axis` of the first where it is a list. */
static int along(struct mapping *m, int i, int64_t axis)
{
    const struct value *v = map_input(m, i);
    int64_t dims[STRATA_MAX_RANK];
    const int rank = map_input_rank(m, 0) - (int)axis;
    const int y = v->dtype == STRATA_FP32
                      ? compose_input(m, i)
                      : compose_cast(m, compose_input(m, i), STRATA_FP32);
    if (value_count(v) == 1)
        return y;
    for (int d = 0; d < rank; d++)
        dims[d] = d ? 1 : v->dims[0];
    return compose_reshape(m, y, rank, dims);
}

static int clipped(struct mapping *m, int x, double low, double high)
{
    const int y = compose_one(m, "Activation", x);
    section_word(m->g, m->s, "kind", "clip");
    section_real(m->g, m->s, "alpha", low);
    section_real(m->g, m->s, "beta", high);
    return y;
}

/* With a scale that is computed: the same, step by step. */
static void quantize_by_steps(struct mapping *m, int dtype)
{
    const int64_t axis = axis_of(m);
    const int quotient =
        compose_op(m, "ElementWise", "div", real_input(m), along(m, 1, axis));
    int y = compose_op(m, "Unary", "round", quotient, VALUE_NONE);
    if (map_input(m, 2))
        y = compose_op(m, "ElementWise", "sum", y, along(m, 2, axis));
    const bool narrow = dtype == STRATA_INT8;
    compose_cast(m, clipped(m, y, narrow ? -128 : 0, narrow ? 127 : 255), dtype);
    compose_end(m, 0, -1);
}

static void dequantize_by_steps(struct mapping *m)
{
    const int64_t axis = axis_of(m);
    int y = compose_cast(m, compose_input(m, 0), STRATA_FP32);
    if (map_input(m, 2))
        y = compose_op(m, "ElementWise", "sub", y, along(m, 2, axis));
    compose_op(m, "ElementWise", "product", y, along(m, 1, axis));
    compose_end(m, 0, -1);
}

static void map_quantize_linear(struct mapping *m)
{
    const int64_t wanted = node_integer(m->node, "output_dtype", 0);
    const struct value *zero = map_input(m, 2);
    const int dtype = zero ? zero->dtype : STRATA_UINT8;
    if (!wanted && is_computed(m, dtype)) {
        quantize_by_steps(m, dtype);
        return;
    }
    quantize_do(m, real_input(m), 1, 2, axis_of(m));
    if (!map_input(m, 2) && wanted) {
        const int to = onnx_type_core((enum onnx_type)wanted);
        if (to < 0)
            map_refuse(m, "'output_dtype' is %s; Strata has none for it",
                       onnx_type_name((enum onnx_type)wanted));
        else
            section_word(m->g, m->s, "dtype", strata_dtype_name(to));
    }
    map_names(m, "block_size=block,saturate=saturate?");
    compose_end(m, 0, -1);
}

static void map_dequantize_linear(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (x && is_computed(m, x->dtype)) {
        dequantize_by_steps(m);
        return;
    }
    quantize_undo(m, compose_input(m, 0), 1, 2, axis_of(m));
    map_names(m, "block_size=block");
    compose_end(m, 0, -1);
}

/* An operation with a number. */
static int with_number(struct mapping *m, const char *op, int x, double v)
{
    return compose_op(m, "ElementWise", op, x, compose_number(m, STRATA_FP32, v));
}

/* Rounded, and in [0, 255]. */
static int to_byte(struct mapping *m, int x)
{
    return compose_op(m, "Unary", "round", clipped(m, x, 0, 255), VALUE_NONE);
}

/* From the range of the values, in which 0 is. */
static void map_dynamic(struct mapping *m)
{
    const int x = compose_input(m, 0);
    const int high =
        with_number(m, "max", compose_reduce(m, "max", x, NULL, 0, false), 0);
    const int low = with_number(m, "min", compose_reduce(m, "min", x, NULL, 0, false), 0);
    const int range = compose_op(m, "ElementWise", "sub", high, low);
    int scale = with_number(m, "div", range, 255);
    if (map_has_output(m, 1)) {
        compose_end(m, 1, 0);
        scale = compose_input(m, 0) >= 0 ? m->node->out[1] : VALUE_NONE;
    }
    const int share = compose_op(m, "ElementWise", "div", low, scale);
    const int zero = to_byte(m, compose_op(m, "Unary", "neg", share, VALUE_NONE));
    const int whole = compose_op(
        m, "Unary", "round", compose_op(m, "ElementWise", "div", x, scale), VALUE_NONE);
    const int y = to_byte(m, compose_op(m, "ElementWise", "sum", whole, zero));
    compose_cast(m, y, STRATA_UINT8);
    compose_end(m, 0, -1);
    if (map_has_output(m, 2)) {
        compose_cast(m, zero, STRATA_UINT8);
        compose_end(m, 2, 0);
    }
}

static const struct map_rule rules[] = {
    {.op = "QuantizeLinear",
     .finish = map_quantize_linear,
     .note = "to uint8, int8, float8e4m3fn, float8e5m2; scales of blocks are constant"},
    {.op = "DequantizeLinear",
     .finish = map_dequantize_linear,
     .note = "of uint8, int8, int32, float8e4m3fn, float8e5m2; scales of blocks are "
             "constant"},
    {.op = "DynamicQuantizeLinear", .finish = map_dynamic},
};

const struct map_table map_quantize = {"Quantization", rules, ARRAY_LENGTH(rules)};
