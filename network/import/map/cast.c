/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that change the type of elements.
 */
#include "network/import/map.h"

#include <string.h>

#include "core/alloc.h"
#include "io/weights/weights.h"

/* The core's dtype of attribute `to`; -1 and refused: there is none. */
static int read_target(struct mapping *m)
{
    const int64_t type = node_integer(m->node, "to", ONNX_UNDEFINED);
    const bool known = type > ONNX_UNDEFINED && type < ONNX_TYPE_COUNT;
    const int dtype = known ? onnx_type_core((enum onnx_type)type) : -1;
    if (dtype < 0)
        map_refuse(m, "'to' is type %s; Strata has none for it",
                   known ? onnx_type_name((enum onnx_type)type) : "?");
    return dtype;
}

static void cast_to(struct mapping *m, int dtype)
{
    const struct value *x = map_input(m, 0);
    if (m->refused || !x)
        return;
    if (x->dtype == dtype) {
        map_is(m, 0, m->node->in[0]);
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
        cast_to(m, like->dtype);
}

/* The same bytes: there is no layer, but a constant can be read anew. */
static void make_bit_cast(struct mapping *m)
{
    const int dtype = read_target(m);
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
    {.op = "BitCast", .finish = make_bit_cast, .note = "of constants"},
};

const struct map_table map_cast = {"Types", rules, ARRAY_LENGTH(rules)};
