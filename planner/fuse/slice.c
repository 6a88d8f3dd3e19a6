/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a tensor that is part of another lies in it in a format: as one piece, or at the
 * larger one's strides.
 */
#include "planner/record.h"

#include <string.h>

#include <strata/layers.h>

#define PITCH_ALIGNMENT 16 /* bytes */

static int join_axis(const struct planner *planner, const struct network_layer *join)
{
    const strata_concatenation *p = join->params;
    int rank = planner->network->tensors[join->outputs[0]].rank;
    return (int)(p->axis < 0 ? p->axis + rank : p->axis);
}

/* Whether data and all strides that are not the tensor's own keep to what
 * STRATA_PITCHED_IN says. */
static bool is_aligned(const strata_desc *slice, const strata_desc *own, int64_t begin)
{
    const int64_t size = (int64_t)strata_dtype_size(own->dtype);
    for (int d = 0; d < own->rank; d++)
        if (slice->strides[d] != own->strides[d] && own->dims[d] > 1 &&
            slice->strides[d] * size % PITCH_ALIGNMENT)
            return false;
    return begin % PITCH_ALIGNMENT == 0;
}

/* Plans on record from before know no pitch. */
static bool knows_pitch(const struct planner *planner)
{
    return !planner->record || planner->record->pitched;
}

/* Nor, later, ranges along rows. */
static bool knows_rows(const struct planner *planner)
{
    return !planner->record || planner->record->rows;
}

struct planner_slice planner_find_slice(const struct planner *planner, int whole,
                                        int part, int dim, int64_t begin, int format)
{
    strata_desc all, own, slice;
    struct planner_slice s = {.begin = -1, .why = "has no such format"};
    if (planner_desc(&all, planner->network, whole, format, NULL) != STRATA_OK ||
        planner_desc(&own, planner->network, part, format, NULL) != STRATA_OK)
        return s;
    slice = all;
    memcpy(slice.dims, own.dims, sizeof slice.dims);
    const bool vectors = dim == all.vector_dim;
    const bool whole_vectors =
        !vectors || (begin % all.vector == 0 && (own.dims[dim] % all.vector == 0 ||
                                                 begin + own.dims[dim] == all.dims[dim]));
    const bool one = strata_desc_equal(&slice, &own);
    const int64_t at = (vectors ? begin / all.vector : begin) * all.strides[dim] *
                       (int64_t)strata_dtype_size(all.dtype);
    s.why = !one && own.dims[0] > 1 ? "is not one piece of it at a batch above 1"
            : !one                  ? "is not one piece of it"
            : !whole_vectors        ? "does not begin and end with a vector"
            : at % TENSOR_ALIGNMENT ? "does not begin at a multiple of 256 bytes"
                                    : NULL;
    s.pitched = s.why && whole_vectors && own.rank > 1 &&
                (dim == 1 || (all.strides[dim] == 1 && knows_rows(planner))) &&
                knows_pitch(planner) && is_aligned(&slice, &own, at);
    s.rows = s.pitched && dim != 1;
    s.begin = s.pitched || !s.why ? at : -1;
    return s;
}

struct planner_slice planner_find_part(const struct planner *planner,
                                       const struct planner_node *join, int port,
                                       int format)
{
    int axis = join_axis(planner, join->layer);
    int64_t begin = 0;
    for (int i = 0; i < port; i++)
        begin += planner->network->tensors[join->in[i]].dims[axis];
    struct planner_slice s =
        planner_find_slice(planner, join->out[0], join->in[port], axis, begin, format);
    if (s.rows) /* nobody says that he writes so */
        s = (struct planner_slice){.begin = -1, .why = s.why};
    return s;
}
