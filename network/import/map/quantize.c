/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of few bits and floats, one to the other.
 */
#include "network/import/map/quantize.h"

#include <string.h>

#include "core/alloc.h"
#include "network/import/carry/carry.h"

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

/* ---- step by step --------------------------------------------------------------------
 */

/* How a scale lies along the input: a block of `size` elements of dim `axis` has one. */
struct grid {
    int64_t axis, size; /* 0: no blocks */
    int rank;
    int64_t dims[STRATA_MAX_RANK]; /* of the input, the axis in blocks */
};

static struct grid grid_of(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *scale = map_input(m, 1);
    struct grid g = {.axis = axis_of(m), .size = node_integer(m->node, "block_size", 0)};
    if (!x || !scale || g.size == 0)
        return g;
    g.axis = map_axis(m, node_integer(m->node, "axis", 1), x->rank);
    const bool fits = x->rank < STRATA_MAX_RANK && scale->rank == x->rank && g.size > 0 &&
                      g.axis < x->rank && scale->dims[g.axis] * g.size == x->dims[g.axis];
    if (!fits) {
        map_refuse(m, "blocks of %lld do not divide dim %lld of the input",
                   (long long)g.size, (long long)g.axis);
        return g;
    }
    g.rank = x->rank + 1;
    for (int d = 0; d < g.rank; d++)
        g.dims[d] = d <= g.axis       ? scale->dims[d]
                    : d == g.axis + 1 ? g.size
                                      : x->dims[d - 1];
    return g;
}

/* Input i as FP32, along the axis of the first where it is a list, or in its blocks. */
static int along(struct mapping *m, int i, const struct grid *g)
{
    const struct value *v = map_input(m, i);
    int64_t dims[STRATA_MAX_RANK];
    if (m->refused)
        return VALUE_NONE;
    const int rank = g->size ? g->rank : map_input_rank(m, 0) - (int)g->axis;
    const int y = v->dtype == STRATA_FP32
                      ? compose_input(m, i)
                      : compose_cast(m, compose_input(m, i), STRATA_FP32);
    if (value_count(v) == 1)
        return y;
    for (int d = 0; d < rank; d++)
        dims[d] = g->size ? (d == g->axis + 1 ? 1 : g->dims[d]) : d ? 1 : v->dims[0];
    return compose_reshape(m, y, rank, dims);
}

static int in_blocks(struct mapping *m, int x, const struct grid *g)
{
    return g->size && !m->refused ? compose_reshape(m, x, g->rank, g->dims) : x;
}

/* The dims of the input again. */
static void end_blocks(struct mapping *m, int y, const struct grid *g)
{
    if (g->size && !m->refused)
        compose_reshape(m, y, map_input_rank(m, 0), map_input(m, 0)->dims);
    compose_end(m, 0, -1);
}

static int clipped(struct mapping *m, int x, double low, double high)
{
    const int y = compose_one(m, "Activation", x);
    section_word(m->g, m->s, "kind", "clip");
    section_real(m->g, m->s, "alpha", low);
    section_real(m->g, m->s, "beta", high);
    return y;
}

static int quotient_of(struct mapping *m, const struct grid *g)
{
    const int x = in_blocks(m, real_input(m), g);
    return compose_op(m, "ElementWise", "div", x, along(m, 1, g));
}

static void quantize_by_steps(struct mapping *m, enum onnx_type type)
{
    const int bits = onnx_type_bits(type), dtype = onnx_type_carrier(type);
    const bool is_signed =
        type == ONNX_INT16 || type == ONNX_INT8 || type == ONNX_INT4 || type == ONNX_INT2;
    const double half = (double)(1 << (bits - 1)), most = is_signed ? half : 2 * half;
    const struct grid g = grid_of(m);
    const int quotient = quotient_of(m, &g);
    int y = compose_op(m, "Unary", "round", quotient, VALUE_NONE);
    if (map_input(m, 2))
        y = compose_op(m, "ElementWise", "sum", y, along(m, 2, &g));
    y = compose_cast(m, clipped(m, y, is_signed ? -half : 0, most - 1), dtype);
    end_blocks(m, y, &g);
}

/* To floats that are no dtype, whose zero point is 0. */
static void quantize_to_float(struct mapping *m, enum onnx_type type)
{
    const struct value *zero = map_input(m, 2) ? map_constant(m, 2, "zero_point") : NULL;
    const struct grid g = grid_of(m);
    for (int64_t i = 0; zero && i < value_count(zero); i++)
        if (value_real(zero, i) != 0)
            map_refuse(m, "'zero_point' of a float is not 0");
    end_blocks(m, compose_narrow(m, quotient_of(m, &g), type), &g);
}

static void dequantize_by_steps(struct mapping *m)
{
    const struct grid g = grid_of(m);
    int y = compose_cast(m, in_blocks(m, compose_input(m, 0), &g), STRATA_FP32);
    if (map_input(m, 2))
        y = compose_op(m, "ElementWise", "sub", y, along(m, 2, &g));
    y = compose_op(m, "ElementWise", "product", y, along(m, 1, &g));
    end_blocks(m, y, &g);
}

/* ---- operators -----------------------------------------------------------------------
 */

/* The zero point's type, else `output_dtype`. */
static enum onnx_type target_of(struct mapping *m)
{
    const struct value *zero = map_input(m, 2);
    const int64_t wanted = node_integer(m->node, "output_dtype", 0);
    const enum onnx_type type = zero     ? carry_type(zero)
                                : wanted ? (enum onnx_type)wanted
                                         : ONNX_UINT8;
    if (onnx_type_carrier(type) < 0 || onnx_type_bits(type) > 16)
        map_refuse(m, "'output_dtype' is %s; Strata has none for it",
                   onnx_type_name(type));
    return type;
}

static void map_quantize_linear(struct mapping *m)
{
    const enum onnx_type type = target_of(m);
    const int dtype = onnx_type_carrier(type);
    const bool has_dtype = onnx_type_core(type) >= 0;
    if (m->refused)
        return;
    if (!has_dtype && graph_is_real(dtype)) {
        quantize_to_float(m, type);
        return;
    }
    if (!has_dtype || is_computed(m, dtype)) {
        quantize_by_steps(m, type);
        return;
    }
    quantize_do(m, real_input(m), 1, 2, axis_of(m));
    if (!map_input(m, 2))
        section_word(m->g, m->s, "dtype", strata_dtype_name(dtype));
    map_names(m, "block_size=block,saturate=saturate?");
    compose_end(m, 0, -1);
}

static void map_dequantize_linear(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const bool is_float = x && x->carried && graph_is_real(x->dtype);
    if (is_float || (x && is_computed(m, x->dtype))) {
        dequantize_by_steps(m);
        return;
    }
    quantize_undo(m, compose_input(m, 0), 1, 2, axis_of(m));
    map_names(m, "block_size=block");
    compose_end(m, 0, -1);
}

static void map_dynamic(struct mapping *m)
{
    map_rank(m, 1, 0);
    map_rank(m, 2, 0);
}

static const struct map_rule rules[] = {
    {.op = "QuantizeLinear",
     .finish = map_quantize_linear,
     .note = "of blocks, scales must be constant but for types that are no dtype (see "
             "above)"},
    {.op = "DequantizeLinear",
     .finish = map_dequantize_linear,
     .note = "of blocks, scales must be constant but for floats that are no dtype"},
    {.op = "DynamicQuantizeLinear",
     .layer = "DynamicQuantize",
     .ports = "x",
     .finish = map_dynamic},
};

const struct map_table map_quantize = {"Quantization", rules, ARRAY_LENGTH(rules)};
