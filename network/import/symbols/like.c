/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors whose dims are as long as something that differs with sizes.
 */
#include <string.h>

#include "network/import/symbols/compare.h"

bool compare_has_extent(const struct comparison *c, size_t i, int port, int d,
                        const int64_t *extent)
{
    for (int p = 0; p < c->n; p++) {
        const struct import *im = c->im[p];
        const int at = port < 0 ? im->g.inputs[i] : im->sections[i]->out[port];
        const struct value *v = graph_value(&im->g, at);
        if (!v || d < 0 || d >= v->rank || v->dims[d] != extent[p])
            return false;
    }
    return true;
}

/* Dims of one tensor, each the first that is as long. */
static bool find_dims(const struct comparison *c, size_t i, int port,
                      int64_t (*extents)[POINTS], int n, int64_t *dims)
{
    for (int k = 0; k < n; k++) {
        int d = 0;
        while (d < STRATA_MAX_RANK && !compare_has_extent(c, i, port, d, extents[k]))
            d++;
        if (d == STRATA_MAX_RANK)
            return false;
        dims[k] = d;
    }
    return true;
}

int compare_like(const struct comparison *c, size_t before, int64_t (*extents)[POINTS],
                 int n, int64_t *dims)
{
    const struct import *im = c->im[0];
    for (size_t i = 0; i < im->g.n_inputs; i++)
        if (find_dims(c, i, -1, extents, n, dims))
            return im->g.inputs[i];
    for (size_t i = 0; i < before; i++)
        for (int port = 0; port < im->sections[i]->n_out; port++)
            if (strcmp(im->sections[i]->type, "Constant") != 0 &&
                find_dims(c, i, port, extents, n, dims))
                return im->sections[i]->out[port];
    return VALUE_NONE;
}
