/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses: what a class's own score says, and its weight.
 */
#include "network/import/map/compose.h"

#include <string.h>

#include "core/alloc.h"

/* What a loss is made of. */
struct loss {
    int scores, target; /* values: N x C x d1 ..., N x d1 ... */
    int mask;           /* where the target is to be ignored; VALUE_NONE: nowhere */
    int weight;         /* of each target's class; VALUE_NONE: 1 */
    int rank;           /* of the target */
    int dtype;
    int64_t dims[STRATA_MAX_RANK]; /* of the target, with a 1 behind N: rank + 1 */
};

/* Targets that are ignored become class 0 of weight 0. */
static void ignore(struct mapping *m, struct loss *l)
{
    const struct onnx_attribute *index = node_attribute(m->node, "ignore_index");
    const struct value *t = graph_value(m->g, l->target);
    const int dtype = t ? t->dtype : STRATA_INT64;
    if (!index)
        return;
    const int number = compose_number(m, dtype, (double)index->integer);
    l->mask = compose_op(m, "Compare", "equal", l->target, number);
    l->target = compose(
        m, "Select", (const int[]){l->mask, compose_number(m, dtype, 0), l->target}, 3);
}

static void weigh(struct mapping *m, struct loss *l, int weights)
{
    const int dtype = l->dtype;
    if (weights >= 0)
        l->weight = compose_two(m, "Gather", weights, l->target);
    if (l->mask >= 0)
        l->weight =
            compose(m, "Select",
                    (const int[]){l->mask, compose_number(m, dtype, 0),
                                  weights >= 0 ? l->weight : compose_number(m, dtype, 1)},
                    3);
}

/* Each target's own score, negative and weighted. */
static int take_scores(struct mapping *m, const struct loss *l)
{
    int64_t dims[STRATA_MAX_RANK] = {l->dims[0]};
    for (int d = 1; d < l->rank; d++)
        dims[d] = l->dims[d + 1];
    const int at = compose_reshape(m, l->target, l->rank + 1, l->dims);
    int y = compose_two(m, "Gather", l->scores, at);
    section_word(m->g, m->s, "mode", "elements");
    section_integer(m->g, m->s, "axis", 1);
    y = compose_reshape(m, y, l->rank, dims);
    y = compose_op(m, "Unary", "neg", y, VALUE_NONE);
    return l->weight >= 0 ? compose_op(m, "ElementWise", "product", y, l->weight) : y;
}

static void reduce(struct mapping *m, const struct loss *l, int y)
{
    const char *how = node_text(m->node, "reduction", "mean");
    const bool mean = strcmp(how, "mean") == 0;
    if (strcmp(how, "none") == 0) {
        compose_is(m, 0, y, -1, NULL);
        return;
    }
    if (!mean && strcmp(how, "sum") != 0) {
        map_refuse(m, "'reduction' = '%s' is none of none, mean and sum", how);
        return;
    }
    if (mean && l->weight < 0)
        compose_reduce(m, "mean", y, NULL, 0, false);
    else if (mean) {
        const int weights = compose_reduce(m, "sum", l->weight, NULL, 0, false);
        const int sum = compose_reduce(m, "sum", y, NULL, 0, false);
        compose_op(m, "ElementWise", "div", sum, weights);
    } else
        compose_reduce(m, "sum", y, NULL, 0, false);
    compose_end(m, 0, 0);
}

static void map_likelihood(struct mapping *m, int scores)
{
    const struct value *x = map_input(m, 0), *t = map_input(m, 1);
    struct loss l = {.scores = scores,
                     .target = compose_input(m, 1),
                     .mask = VALUE_NONE,
                     .weight = VALUE_NONE};
    if (!x || !t || x->rank < 2 || t->rank != x->rank - 1) {
        map_refuse(m, "the target has rank %d, the input %d: one more is needed",
                   t ? t->rank : 0, x ? x->rank : 0);
        return;
    }
    l.rank = t->rank;
    l.dtype = x->dtype;
    memcpy(l.dims, x->dims, sizeof l.dims);
    l.dims[1] = 1;
    ignore(m, &l);
    weigh(m, &l, compose_input(m, 2));
    reduce(m, &l, take_scores(m, &l));
}

static void map_nll(struct mapping *m)
{
    map_likelihood(m, compose_input(m, 0));
}

static void map_cross_entropy(struct mapping *m)
{
    int scores = compose_one(m, "Softmax", compose_input(m, 0));
    section_integer(m->g, m->s, "axis", 1);
    section_flag(m->g, m->s, "log", true);
    if (map_has_output(m, 1)) {
        compose_end(m, 1, -1);
        scores = m->node->out[1];
    }
    map_likelihood(m, scores);
}

static const struct map_rule rules[] = {
    {.op = "NegativeLogLikelihoodLoss", .finish = map_nll},
    {.op = "SoftmaxCrossEntropyLoss", .finish = map_cross_entropy},
};

const struct map_table map_loss = {"Losses", rules, ARRAY_LENGTH(rules)};
