/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that take the place of others, where the data is not written over: each is copied
 * once, from the data or from an update.
 */
#ifndef PLUGINS_SCATTER_SELECT_H
#define PLUGINS_SCATTER_SELECT_H

#include <stdbool.h>
#include <string.h>

#include "plugins/common/dense.h"
#include "plugins/common/index.h"
#include "plugins/scatter/scatter.h"

#define SELECTED 1024 /* bytes of a row that is worth a look-up */

/* Whether each row is written once, from where it comes: long ones, of which a later
 * update replaces an earlier one. */
static inline bool scatter_selects(const strata_scatter *p, const strata_tensor *x,
                                   const strata_tensor *index)
{
    return p->mode == STRATA_SCATTER_ND && p->reduction == STRATA_SCATTER_NONE &&
           scatter_rows(x, index).row * index_size(x->dtype) >= SELECTED;
}

static inline size_t scatter_workspace(const strata_node *n)
{
    const strata_tensor *x = &n->in[0];
    return scatter_selects(n->params, x, &n->in[1])
               ? (size_t)(dense_count(x) / scatter_rows(x, &n->in[1]).row) *
                     sizeof(int64_t)
               : scatter_gather_size(n);
}

/* Rows of the data, and of the updates where one leads to a row: the last. */
static inline void select_rows(const strata_run *r, int64_t size)
{
    const struct scatter_rows s = scatter_rows(&r->in[0], &r->in[1]);
    const int64_t rows = r->in[0].count / s.row, bytes = s.row * size;
    int64_t *from = r->workspace;
    for (int64_t row = 0; row < rows; row++)
        from[row] = -1;
    for (int64_t t = 0; t < s.tuples; t++) {
        const int64_t row = scatter_target(&s, t);
        if (row >= 0)
            from[row] = t;
    }
#pragma omp parallel for schedule(static) if (r->out[0].count * size >= INDEX_PARALLEL)
    for (int64_t row = 0; row < rows; row++)
        memcpy((char *)r->out[0].data + row * bytes,
               from[row] < 0 ? (const char *)r->in[0].data + row * bytes
                             : (const char *)r->in[2].data + from[row] * bytes,
               (size_t)bytes);
}

#endif /* PLUGINS_SCATTER_SELECT_H */
