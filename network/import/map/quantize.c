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

static void map_quantize_linear(struct mapping *m)
{
    const int64_t wanted = node_integer(m->node, "output_dtype", 0);
    quantize_do(m, real_input(m), 1, 2, axis_of(m));
    if (!map_input(m, 2) && wanted) {
        const int dtype = onnx_type_core((enum onnx_type)wanted);
        if (dtype < 0)
            map_refuse(m, "'output_dtype' is %s; Strata has none for it",
                       onnx_type_name((enum onnx_type)wanted));
        else
            section_word(m->g, m->s, "dtype", strata_dtype_name(dtype));
    }
    map_names(m, "block_size=block,saturate=saturate?");
    compose_end(m, 0, -1);
}

static void map_dequantize_linear(struct mapping *m)
{
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
    const int y = compose_one(m, "Activation", x);
    section_word(m->g, m->s, "kind", "clip");
    section_integer(m->g, m->s, "alpha", 0);
    section_integer(m->g, m->s, "beta", 255);
    return compose_op(m, "Unary", "round", y, VALUE_NONE);
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
     .note = "constant scale and zero point; to uint8, int8, float8e4m3fn, float8e5m2"},
    {.op = "DequantizeLinear",
     .finish = map_dequantize_linear,
     .note = "constant scale and zero point; of uint8, int8, int32, float8e4m3fn, "
             "float8e5m2"},
    {.op = "DynamicQuantizeLinear", .finish = map_dynamic},
};

const struct map_table map_quantize = {"Quantization", rules, ARRAY_LENGTH(rules)};
