/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a tensor that is part of another lies in it, if it is one piece of it in a
 * format.
 */
#include "planner/planner.h"

#include <string.h>

#include <strata/layers.h>

static int join_axis(const struct planner *planner, const struct network_layer *join)
{
    const strata_concatenation *p = join->params;
    int rank = planner->network->tensors[join->outputs[0]].rank;
    return (int)(p->axis < 0 ? p->axis + rank : p->axis);
}

int64_t planner_slice_begin(const struct planner *planner, int whole, int part, int dim,
                            int64_t begin, int format, const char **why)
{
    strata_desc all, own, slice;
    const char *unused, **reason = why ? why : &unused;
    if (planner_desc(&all, planner->network, whole, format, NULL) != STRATA_OK ||
        planner_desc(&own, planner->network, part, format, NULL) != STRATA_OK)
        return -1;
    slice = all;
    memcpy(slice.dims, own.dims, sizeof slice.dims);
    *reason = own.dims[0] > 1 ? "is not one piece of it at a batch above 1"
                              : "is not one piece of it";
    if (!strata_desc_equal(&slice, &own))
        return -1;
    *reason = "does not begin and end with a vector";
    bool vectors = dim == all.vector_dim;
    if (vectors && (begin % all.vector != 0 || (own.dims[dim] % all.vector != 0 &&
                                                begin + own.dims[dim] != all.dims[dim])))
        return -1;
    *reason = "does not begin at a multiple of 256 bytes";
    begin = (vectors ? begin / all.vector : begin) * all.strides[dim] *
            (int64_t)strata_dtype_size(all.dtype);
    return begin % TENSOR_ALIGNMENT ? -1 : begin;
}

int64_t planner_part_begin(const struct planner *planner, const struct planner_node *join,
                           int port, int format, const char **why)
{
    int axis = join_axis(planner, join->layer);
    int64_t begin = 0;
    for (int i = 0; i < port; i++)
        begin += planner->network->tensors[join->in[i]].dims[axis];
    return planner_slice_begin(planner, join->out[0], join->in[port], axis, begin, format,
                               why);
}
