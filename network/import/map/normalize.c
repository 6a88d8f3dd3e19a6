/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizations, and what makes shares of a line: softmax and hardmax.
 */
#include "network/import/map/compose.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* ---- batch normalization --------------------------------------------------------------
 */

/* old·momentum + new·(1 − momentum), new of dims 1 x C x 1 ..., as output i. */
static void keep_average(struct mapping *m, int i, int old, int now)
{
    const double momentum = node_real(m->node, "momentum", 0.9);
    const int64_t channels = map_input(m, 0)->dims[1];
    if (!map_has_output(m, i))
        return;
    now = compose_reshape(m, now, 1, &channels);
    now = compose_op(m, "ElementWise", "product", now,
                     compose_number(m, STRATA_FP32, 1 - momentum));
    old = compose_op(m, "ElementWise", "product", compose_input(m, old),
                     compose_number(m, STRATA_FP32, momentum));
    compose_op(m, "ElementWise", "sum", now, old);
    compose_end(m, i, -1);
}

/* As in training: by mean and variance of the batch itself. */
static void map_batch_statistics(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    int64_t axes[STRATA_MAX_RANK] = {0};
    if (!x || x->rank < 2 || !map_constant(m, 1, "scale") || !map_constant(m, 2, "B"))
        return;
    for (int d = 2; d < x->rank; d++)
        axes[d - 1] = d;
    const int n = x->rank - 1;
    const int mean = compose_reduce(m, "mean", compose_input(m, 0), axes, n, true);
    const int rest = compose_op(m, "ElementWise", "sub", compose_input(m, 0), mean);
    const int square = compose_op(m, "ElementWise", "product", rest, rest);
    const int variance = compose_reduce(m, "mean", square, axes, n, true);
    const int sum =
        compose_op(m, "ElementWise", "sum", variance,
                   compose_number(m, x->dtype, node_real(m->node, "epsilon", 1e-5)));
    const int root = compose_op(m, "Unary", "sqrt", sum, VALUE_NONE);
    compose_one(m, "Scale", compose_op(m, "ElementWise", "div", rest, root));
    section_word(m->g, m->s, "mode", "channel");
    section_weight(m->s, "scale", compose_input(m, 1));
    section_weight(m->s, "shift", compose_input(m, 2));
    compose_end(m, 0, -1);
    keep_average(m, 1, 3, mean);
    keep_average(m, 2, 4, variance);
}

/* A factor and an addend a channel, computed in FP64 and rounded once. */
static void map_batch(struct mapping *m)
{
    static const char *const names[] = {"scale", "B", "input_mean", "input_var"};
    const double epsilon = node_real(m->node, "epsilon", 1e-5);
    double *v[4] = {0};
    if (node_integer(m->node, "training_mode", 0)) {
        map_batch_statistics(m);
        return;
    }
    const struct value *first = map_constant(m, 1, names[0]);
    for (int i = 0; i < 4; i++) {
        const struct value *c = map_constant(m, i + 1, names[i]);
        v[i] = compose_values(m, c);
        if (c && first && value_count(c) != value_count(first))
            map_refuse(m, "'%s' has %lld numbers, 'scale' has %lld", names[i],
                       (long long)value_count(c), (long long)value_count(first));
    }
    if (m->refused || !v[0] || !v[1] || !v[2] || !v[3])
        return;
    const int64_t n = value_count(first);
    for (int64_t i = 0; i < n; i++) {
        v[0][i] /= sqrt(v[3][i] + epsilon);
        v[1][i] -= v[2][i] * v[0][i];
    }
    map_section(m, "Scale");
    map_in(m, 0);
    map_out(m, 0);
    section_word(m->g, m->s, "mode", "channel");
    section_weight(m->s, "scale", compose_reals(m, 1, &n, v[0]));
    section_weight(m->s, "shift", compose_reals(m, 1, &n, v[1]));
}

/* ---- weights of the normalized dims ---------------------------------------------------
 */

/* A weight of other dims as one that has all of them, right-aligned. */
static int stretch(struct mapping *m, int value, const int64_t *dims, int rank)
{
    const struct value *w = graph_value(m->g, value);
    const double *from = compose_values(m, w);
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    double *to = compose_room(m, sizeof *to, dims, rank);
    for (int64_t i = 0; from && to && i < n; i++) {
        int64_t at = 0, step = 1, rest = i;
        for (int d = rank - 1, k = w->rank - 1; d >= 0; rest /= dims[d], d--, k--) {
            if (k < 0)
                continue;
            at += w->dims[k] == 1 ? 0 : rest % dims[d] * step;
            step *= w->dims[k];
        }
        to[i] = from[at];
    }
    return from && to ? compose_reals(m, rank, dims, to) : VALUE_NONE;
}

static bool stretches(const struct value *w, const int64_t *dims, int rank)
{
    int64_t extra = 1;
    for (int k = 0; k < w->rank; k++) {
        const int d = rank - w->rank + k;
        if (d < 0)
            extra *= w->dims[k];
        else if (w->dims[k] != 1 && w->dims[k] != dims[d])
            return false;
    }
    return extra == 1;
}

/* The layer takes one number for each normalized element; ONNX one that stretches. */
static void finish_rows(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (!x)
        return;
    const int axis = (int)map_axis(m, node_integer(m->node, "axis", -1), x->rank);
    const int rank = x->rank - axis;
    section_integer(m->g, m->s, "axis", axis == x->rank - 1 ? -1 : axis);
    for (int k = 0; m->s && !m->refused && k < m->s->n_weights; k++) {
        const struct value *w = graph_value(m->g, m->s->weights[k].value);
        const bool same = w->rank == rank && memcmp(w->dims, x->dims + axis,
                                                    sizeof *w->dims * (size_t)rank) == 0;
        if (!stretches(w, x->dims + axis, rank))
            map_refuse(m, "'%s' does not stretch to the normalized dims",
                       m->s->weights[k].name);
        else if (!same)
            m->s->weights[k].value =
                stretch(m, m->s->weights[k].value, x->dims + axis, rank);
    }
}

static void finish_layer(struct mapping *m)
{
    if (map_has_output(m, 1) || map_has_output(m, 2))
        section_flag(m->g, m->s, "statistics", true);
    else if (m->s)
        m->s->n_out = 1;
    finish_rows(m);
}

/* Over any dims: those go last, are one row, and go back. The addend to the deviation
 * only keeps from dividing by 0, and so does its square inside of the root. */
static void map_mean_variance(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    int64_t axes[STRATA_MAX_RANK] = {0, 2, 3}, perm[STRATA_MAX_RANK];
    int64_t back[STRATA_MAX_RANK];
    const int64_t given = node_integers(m->node, "axes", axes, STRATA_MAX_RANK);
    const int n = given < 0 ? 3 : (int)given;
    bool row[STRATA_MAX_RANK] = {false};
    int k = 0;
    if (!x || n > STRATA_MAX_RANK)
        return;
    for (int i = 0; i < n; i++)
        row[map_axis(m, axes[i], x->rank)] = true;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < x->rank; d++)
            if (row[d] == (pass == 1))
                perm[k++] = d;
    for (int d = 0; d < x->rank; d++)
        back[perm[d]] = d;
    int y = compose_transpose(m, compose_input(m, 0), x->rank, perm, 0, NULL);
    y = compose_one(m, "Normalization", y);
    section_integer(m->g, m->s, "axis", -n);
    section_real(m->g, m->s, "epsilon", 1e-18);
    compose_is(m, 0, compose_transpose(m, y, x->rank, back, 0, NULL), -1, NULL);
}

/* ---- shares of a line -----------------------------------------------------------------
 */

static void finish_softmax(struct mapping *m)
{
    const int rank = map_input_rank(m, 0);
    section_integer(m->g, m->s, "axis",
                    map_axis(m, node_integer(m->node, "axis", -1), rank));
}

/* 1 where the index is that of the first largest element, else 0. */
static void map_hardmax(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (!x)
        return;
    const int64_t axis = map_axis(m, node_integer(m->node, "axis", -1), x->rank);
    const int64_t n = x->rank ? x->dims[axis] : 1;
    int64_t dims[STRATA_MAX_RANK] = {1}, *iota = compose_room(m, sizeof *iota, &n, 1);
    const int dtype = x->dtype, rank = x->rank - (int)axis;
    for (int64_t i = 0; iota && i < n; i++)
        iota[i] = i;
    for (int d = 0; d < rank; d++)
        dims[d] = d == 0 ? n : 1;
    const int at = compose_one(m, "ArgMax", compose_input(m, 0));
    section_integer(m->g, m->s, "axis", axis);
    const int places =
        graph_add_constant(m->g, "", STRATA_INT64, x->rank ? rank : 1, dims, iota);
    compose_cast(m, compose_op(m, "Compare", "equal", at, places), dtype);
    compose_end(m, 0, -1);
}

static const struct map_rule rules[] = {
    {.op = "BatchNormalization",
     .finish = map_batch,
     .note = "constant scale and B; constant mean and var but in training mode"},
    {.op = "InstanceNormalization",
     .layer = "Normalization",
     .fixed = "kind=instance",
     .ports = "xww",
     .names = "epsilon=epsilon",
     .note = "computed scale and B are layers behind it"},
    {.op = "GroupNormalization",
     .layer = "Normalization",
     .fixed = "kind=group",
     .ports = "xww",
     .names = "num_groups=groups,epsilon=epsilon",
     .note = "computed scale and bias are layers behind it"},
    {.op = "LayerNormalization",
     .layer = "Normalization",
     .fixed = "kind=layer",
     .ports = "xww",
     .names = "epsilon=epsilon",
     .finish = finish_layer,
     .note = "the normalized value is not rounded before constant Scale and B"},
    {.op = "RMSNormalization",
     .layer = "Normalization",
     .fixed = "kind=rms",
     .ports = "xw",
     .names = "epsilon=epsilon",
     .finish = finish_rows,
     .note = "a computed scale is a layer behind it"},
    {.op = "LpNormalization",
     .layer = "Normalization",
     .fixed = "kind=lp",
     .ports = "x",
     .names = "axis=axis,p=p"},
    {.op = "MeanVarianceNormalization", .finish = map_mean_variance},
    {.op = "LRN",
     .layer = "LRN",
     .ports = "x",
     .names = "size=size,alpha=alpha,beta=beta,bias=bias"},
    {.op = "Softmax", .layer = "Softmax", .ports = "x", .finish = finish_softmax},
    {.op = "LogSoftmax",
     .layer = "Softmax",
     .fixed = "log=yes",
     .ports = "x",
     .finish = finish_softmax},
    {.op = "Hardmax", .finish = map_hardmax},
};

const struct map_table map_normalize = {"Normalization", rules, ARRAY_LENGTH(rules)};
