/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that change the type of elements.
 */
#include "network/import/map/compose.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/import/carry/carry.h"

/* Attribute `to`; ONNX_UNDEFINED and refused: nothing holds such elements. */
static enum onnx_type read_target(struct mapping *m)
{
    const int64_t type = node_integer(m->node, "to", ONNX_UNDEFINED);
    const bool known = type > ONNX_UNDEFINED && type < ONNX_TYPE_COUNT;
    if (known && onnx_type_carrier((enum onnx_type)type) >= 0)
        return (enum onnx_type)type;
    map_refuse(m, "'to' is type %s; Strata has none for it",
               known ? onnx_type_name((enum onnx_type)type) : "?");
    return ONNX_UNDEFINED;
}

/* The values of a type that has no dtype; those of UINT64 are INT64's bits. */
static void narrow_to(struct mapping *m, enum onnx_type type)
{
    const char *values = carry_values(type);
    const struct value *x = map_input(m, 0);
    const int dtype = onnx_type_carrier(type);
    int from = compose_input(m, 0);
    if (x->dtype == STRATA_FP64 && graph_is_real(dtype)) {
        map_refuse(m, "from double to %s it would be rounded twice",
                   onnx_type_name(type));
        return;
    }
    if (graph_is_real(dtype) ? !dtype_is_free(x->dtype) : x->dtype != dtype)
        from = compose_cast(m, from, dtype);
    if (values)
        compose_narrow(m, from, type);
    compose_end(m, 0, -1);
}

static void cast_to(struct mapping *m, enum onnx_type type)
{
    const struct value *x = map_input(m, 0);
    if (m->refused || !x)
        return;
    const int dtype = onnx_type_carrier(type);
    if (carry_type(x) == type || (x->dtype == dtype && !carry_values(type))) {
        map_is(m, 0, m->node->in[0]);
        return;
    }
    if (onnx_type_core(type) < 0) {
        narrow_to(m, type);
        return;
    }
    map_section(m, "Cast");
    map_in(m, 0);
    map_out(m, 0);
    section_word(m->g, m->s, "to", strata_dtype_name(dtype));
    section_flag(m->g, m->s, "saturate", node_integer(m->node, "saturate", 1) != 0);
}

static void make_cast(struct mapping *m)
{
    cast_to(m, read_target(m));
}

static void make_cast_like(struct mapping *m)
{
    const struct value *like = map_input(m, 1);
    if (like)
        cast_to(m, carry_type(like));
}

/* The same bytes: there is no layer, but a constant can be read anew. */
static void make_bit_cast(struct mapping *m)
{
    const int dtype = onnx_type_core(read_target(m));
    const struct value *x = map_constant(m, 0, "input");
    if (m->refused || !x)
        return;
    if (weight_dtype_size(weight_dtype_of(dtype)) !=
        weight_dtype_size(weight_dtype_of(x->dtype)))
        map_refuse(m, "%s and %s differ in size", strata_dtype_name(x->dtype),
                   strata_dtype_name(dtype));
    else
        map_is_constant(m, 0, dtype, x->rank, x->dims, x->data);
}

static const struct map_rule rules[] = {
    {.op = "Cast", .finish = make_cast},
    {.op = "CastLike", .finish = make_cast_like},
    {.op = "BitCast",
     .finish = make_bit_cast,
     .note = "of constants; integers of one size"},
};

const struct map_table map_cast = {"Types", rules, ARRAY_LENGTH(rules)};
