/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose indices choose elements.
 */
#include "network/import/map.h"

#include <string.h>

#include "core/alloc.h"

/* The slice that a constant scalar chooses. */
static void take_slice(struct mapping *m, int64_t axis, int64_t i, int out)
{
    const struct value *x = map_input(m, 0);
    i += i < 0 ? x->dims[axis] : 0;
    if (i < 0 || i >= x->dims[axis]) {
        map_refuse(m, "index %lld is outside of dim %lld of %lld elements", (long long)i,
                   (long long)axis, (long long)x->dims[axis]);
        return;
    }
    map_section(m, "Slice");
    map_in(m, 0);
    section_out_rank(m->g, m->s, out, x->rank == 1 ? 0 : -1);
    section_integer(m->g, m->s, "axes", axis);
    section_integer(m->g, m->s, "begin", i);
    section_integer(m->g, m->s, "end", i + 1);
}

static void gather(struct mapping *m, int64_t axis, int out, int rank)
{
    map_section(m, "Gather");
    map_in(m, 0);
    map_in(m, 1);
    section_out_rank(m->g, m->s, out, rank);
    section_integer(m->g, m->s, "axis", axis);
}

/* A scalar index drops the dim that it is of. */
static void make_gather(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *index = map_input(m, 1);
    int64_t dims[STRATA_MAX_RANK];
    int n = 0;
    if (!x || !index)
        return;
    const int64_t axis = map_axis(m, node_integer(m->node, "axis", 0), x->rank);
    if (m->refused)
        return;
    if (index->rank > 0) {
        gather(m, axis, m->node->out[0], -1);
        return;
    }
    const bool last = x->rank == 1;
    const int out = last ? m->node->out[0] : map_between(m);
    if (index->constant)
        take_slice(m, axis, value_integer(index, 0), out);
    else
        gather(m, axis, out, last ? 0 : -1);
    for (int d = 0; d < x->rank; d++)
        if (d != axis)
            dims[n++] = x->dims[d];
    if (!last && !m->refused)
        map_reshape(m, out, 0, n, dims);
}

static const struct map_rule rules[] = {
    {.op = "Gather", .finish = make_gather},
    {.op = "GatherElements",
     .layer = "Gather",
     .fixed = "mode=elements",
     .ports = "xx",
     .names = "axis=axis"},
};

const struct map_table map_index = {"Indices", rules, ARRAY_LENGTH(rules)};
