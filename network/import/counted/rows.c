/* SPDX-License-Identifier: Apache-2.0
 *
 * What is told of a value's rows, and nodes that look at all of them.
 */
#include "network/import/counted/counted.h"

#include <math.h>

#include "formats/format.h"
#include "io/weights/weights.h"

const struct counted *counted_of(const struct import *im, int value)
{
    const struct value *v = graph_value(&im->g, value);
    return v ? v->counted : NULL;
}

int counted_axis(const struct import *im, int value)
{
    const struct counted *c = counted_of(im, value);
    return c && c->rows >= 0 ? c->axis : -1;
}

bool counted_is_size(const struct import *im, int value)
{
    const struct counted *c = counted_of(im, value);
    return c && c->bounds[MOST] >= 0 && !im->g.values[value].constant;
}

void counted_tell(struct import *im, int value, int rows, int axis)
{
    struct value *v = graph_value(&im->g, value);
    if (!v)
        return;
    if (!v->counted) {
        struct counted *made = arena_get(&im->g.arena, 1, sizeof *made);
        if (!made)
            return;
        *made = (struct counted){.rows = VALUE_NONE,
                                 .bounds = {VALUE_NONE, VALUE_NONE, VALUE_NONE},
                                 .places = VALUE_NONE,
                                 .places_rows = VALUE_NONE};
        v->counted = made;
    }
    v->counted->rows = rows;
    v->counted->axis = axis;
}

void counted_give(struct import *im, struct node *n, int i, int rows, int axis)
{
    if (i < n->n_out)
        counted_tell(im, n->out[i], rows, axis);
    n->whole = true;
}

struct node *counted_add(struct import *im, const struct node *n, const char *op,
                         const int *in, int n_in)
{
    struct node *made = upgrade_add(im, n, op, in, n_in);
    if (made)
        made->whole = true;
    return made;
}

int counted_two(struct import *im, const struct node *n, const char *op, int a, int b)
{
    return upgrade_value(counted_add(im, n, op, (const int[]){a, b}, 2));
}

int counted_cast(struct import *im, const struct node *n, int value, enum onnx_type to)
{
    struct node *made = counted_add(im, n, "Cast", &value, 1);
    node_set_integer(&im->g, made, "to", to);
    return upgrade_value(made);
}

int counted_reshape(struct import *im, const struct node *n, int value, int rank,
                    const int64_t *dims)
{
    const int in[] = {value, graph_add_integers(&im->g, 1, dims, rank)};
    struct node *made = counted_add(im, n, "Reshape", in, 2);
    node_set_integer(&im->g, made, "allowzero", 1);
    return upgrade_value(made);
}

int counted_integer(struct import *im, int64_t v)
{
    return graph_add_integers(&im->g, 0, &v, 1);
}

int counted_number(struct import *im, int dtype, double v)
{
    void *data = arena_get(&im->g.arena, 1, sizeof v);
    if (!data || weights_convert(data, dtype, &v, WEIGHT_F64, 1, NULL) != STRATA_OK)
        return VALUE_NONE;
    return graph_add_constant(&im->g, "", dtype, 0, NULL, data);
}

int counted_end(struct import *im, int dtype, bool highest)
{
    if (graph_is_real(dtype))
        return counted_number(im, dtype, highest ? INFINITY : -INFINITY);
    const int64_t end = dtype == STRATA_INT64   ? (highest ? INT64_MAX : INT64_MIN)
                        : dtype == STRATA_INT32 ? (highest ? INT32_MAX : INT32_MIN)
                        : dtype == STRATA_INT8  ? (highest ? INT8_MAX : INT8_MIN)
                        : dtype == STRATA_BOOL8 ? highest
                        : highest               ? UINT8_MAX
                                                : 0;
    void *data = arena_get(&im->g.arena, 1, sizeof end);
    if (!data || weights_convert(data, dtype, &end, WEIGHT_I64, 1, NULL) != STRATA_OK)
        return VALUE_NONE;
    return graph_add_constant(&im->g, "", dtype, 0, NULL, data);
}

int counted_live(struct import *im, const struct node *n, int rows, int64_t most,
                 int axis, int rank)
{
    int64_t dims[STRATA_MAX_RANK] = {most};
    int64_t *v = arena_get(&im->g.arena, (size_t)most, sizeof *v);
    for (int64_t i = 0; v && i < most; i++)
        v[i] = i;
    for (int d = 1; d < rank - axis; d++)
        dims[d] = 1;
    const int places = graph_add_constant(&im->g, "", STRATA_INT64, rank - axis, dims, v);
    return counted_two(im, n, "Less", places, rows);
}

void counted_hide(struct import *im, struct node *n, int i, int fill)
{
    const struct counted *c = counted_of(im, n->in[i]);
    const struct value x = im->g.values[n->in[i]];
    if (!c || c->rows < 0)
        return;
    const int live = counted_live(im, n, c->rows, x.dims[c->axis], c->axis, x.rank);
    const int in[] = {live, n->in[i], fill};
    int hidden;
    if (x.dtype != STRATA_BOOL8)
        hidden = upgrade_value(counted_add(im, n, "Where", in, 3));
    else if (fill >= 0 && value_integer(&im->g.values[fill], 0))
        hidden = counted_two(im, n, "Or", n->in[i],
                             upgrade_value(counted_add(im, n, "Not", &live, 1)));
    else
        hidden = counted_two(im, n, "And", live, n->in[i]);
    node_set_input(&im->g, n, i, hidden);
}
