/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators along some dims: reductions, extremes, running sums.
 */
#include "network/import/map.h"

#include <string.h>

#include "core/alloc.h"

static void finish_reduce(struct mapping *m)
{
    int64_t axes[STRATA_MAX_RANK];
    const int rank = map_input_rank(m, 0);
    const int n = map_integers(m, "axes", 1, axes);
    const bool keep = node_integer(m->node, "keepdims", 1) != 0;
    for (int i = 0; i < n; i++)
        axes[i] = map_axis(m, axes[i], rank);
    if (m->refused)
        return;
    if (n <= 0 && node_integer(m->node, "noop_with_empty_axes", 0)) {
        map_become(m, "Identity");
        return;
    }
    if (n > 0)
        section_integers(m->g, m->s, "axes", axes, n);
    if (!keep && (n <= 0 || n == rank))
        map_rank(m, 0, 0);
}

static void finish_extreme(struct mapping *m)
{
    if (node_integer(m->node, "select_last_index", 0))
        section_word(m->g, m->s, "ties", "last");
    if (map_input_rank(m, 0) == 1 && !node_integer(m->node, "keepdims", 1))
        map_rank(m, 0, 0);
}

/* Both outputs, though the node may have one. */
static void finish_top(struct mapping *m)
{
    while (m->s && m->s->n_out < 2 && !m->g->arena.full)
        section_out(m->g, m->s, VALUE_NONE);
}

#define REDUCE(op_, name_)                                                               \
    {                                                                                    \
        .op = op_, .layer = "Reduce", .fixed = "op=" name_, .ports = "x-",               \
        .names = "keepdims=keep_dims?", .finish = finish_reduce                          \
    }
#define EXTREME(op_, name_)                                                              \
    {                                                                                    \
        .op = op_, .layer = "ArgMax", .fixed = "op=" name_, .ports = "x",                \
        .names = "axis=axis,keepdims=keep_dims?", .finish = finish_extreme               \
    }
#define RUNNING(op_, name_)                                                              \
    {                                                                                    \
        .op = op_, .layer = "CumSum", .fixed = "op=" name_, .ports = "x-",               \
        .names = "#1=axis,axis=axis,exclusive=exclusive?,reverse=reverse?"               \
    }

static const struct map_rule rules[] = {
    REDUCE("ReduceSum", "sum"),
    REDUCE("ReduceMean", "mean"),
    REDUCE("ReduceMax", "max"),
    REDUCE("ReduceMin", "min"),
    REDUCE("ReduceProd", "prod"),
    REDUCE("ReduceL1", "l1"),
    REDUCE("ReduceL2", "l2"),
    REDUCE("ReduceSumSquare", "sum_square"),
    REDUCE("ReduceLogSum", "log_sum"),
    REDUCE("ReduceLogSumExp", "log_sum_exp"),
    EXTREME("ArgMax", "max"),
    EXTREME("ArgMin", "min"),
    {.op = "TopK",
     .layer = "TopK",
     .ports = "x-",
     .names = "#1=k,axis=axis,largest=largest?,sorted=sorted?",
     .finish = finish_top},
    RUNNING("CumSum", "sum"),
    RUNNING("CumProd", "product"),
};

const struct map_table map_reduce = {"Along dims", rules, ARRAY_LENGTH(rules)};
