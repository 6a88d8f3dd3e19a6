/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of three convolutions behind each other: 1x1, windows, 1x1, each with a bias and
 * an activation, and a second input, or a product of x itself (a shortcut, of which not
 * every such layer has weights), added before the last one. InvertedResidual and
 * Bottleneck are such; what is between need not be written. Here: attributes, shapes and
 * operations.
 *
 * A layer says what its stages are: it defines stages_of and is otherwise the functions
 * of these headers. Weight 2*stage is a stage's factors, the one behind it its bias.
 */
#ifndef PLUGINS_COMMON_STAGES_STAGES_H
#define PLUGINS_COMMON_STAGES_STAGES_H

#include <stdbool.h>

#include "plugins/common/activation_attrs.h"
#include "plugins/common/image.h"
#include "plugins/common/window.h"

enum { STAGE_FIRST, STAGE_WINDOWS, STAGE_LAST, STAGES, STAGE_SHORTCUT = STAGES };

struct stages {
    int64_t channels, before, behind, results; /* of x, to and from the windows, of y */
    int64_t groups;                            /* of the windows */
    bool first, last, shortcut;                /* whether these products are there */
    struct window w;
    strata_activation f[STAGES + 1]; /* kind -1: none, as the shortcut has */
};

/* The layer's own: resolved from its attributes, its input and its weights. */
static int stages_of(const strata_node *n, struct stages *s);

/* Of params: 0 is none, 1 + STRATA_RELU ... */
static inline void stages_activate(struct stages *s, const int32_t activation[STAGES],
                                   const double alpha[STAGES], const double beta[STAGES])
{
    for (int i = 0; i < STAGES; i++)
        s->f[i] = (strata_activation){activation[i] - 1, 0, alpha[i], beta[i]};
    s->f[STAGE_SHORTCUT].kind = -1;
}

/* Rows of attributes, as the layer's params struct has them: a stage's function. */
#define STAGE_ATTRS(params, stage, of)                                                   \
    ACTIVATION_ATTRS(of "_", "", offsetof(params, activation[stage]),                    \
                     offsetof(params, alpha[stage]), offsetof(params, beta[stage]),      \
                     "what is " of)

/* ---- shapes ---------------------------------------------------------------------- */

static void stages_expect(strata_tensor *expected, int stage, int64_t results,
                          int64_t depth)
{
    strata_tensor *w = &expected[2 * stage], *bias = &expected[2 * stage + 1];
    w->rank = 2;
    w->dims[0] = bias->dims[0] = results;
    w->dims[1] = depth;
    bias->rank = 1;
}

static bool stages_has_shortcuts(const strata_node *n)
{
    return n->n_weights > 2 * STAGE_SHORTCUT;
}

/* Where a shortcut may be: whether x has the size of the results. */
static bool stages_keeps_size(const struct stages *s)
{
    return s->w.out[1] == s->w.in[1] && s->w.out[2] == s->w.in[2];
}

static int stages_weight_shape(const strata_node *n, strata_tensor *expected)
{
    struct stages s;
    const int status = stages_of(n, &s);
    if (status != STRATA_OK)
        return status;
    strata_tensor *w = &expected[2 * STAGE_WINDOWS];
    if (s.first)
        stages_expect(expected, STAGE_FIRST, s.before, s.channels);
    stages_expect(expected, STAGE_WINDOWS, s.behind, s.before / s.groups);
    w->rank = 4;
    w->dims[2] = s.w.kernel[1];
    w->dims[3] = s.w.kernel[2];
    if (s.last)
        stages_expect(expected, STAGE_LAST, s.results, s.behind);
    if (stages_has_shortcuts(n) && n->n_in == 1 && stages_keeps_size(&s))
        stages_expect(expected, STAGE_SHORTCUT, s.results, s.channels);
    return STRATA_OK;
}

/* A product is there by its weight or, where that is missing, by its attribute. */
static int stages_check_product(const strata_node *n, int stage, bool there)
{
    const char *const which = stage == STAGE_FIRST ? "first" : "second";
    const bool given = n->weight[2 * stage].rank > 0;
    if (there && !given)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the number of results of the %s product is given, and its "
                           "weight is not",
                           which);
    if (!there && n->weight[2 * stage + 1].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "there is a bias of the %s product, and no such product; give "
                           "its weight, or leave the bias out",
                           which);
    return STRATA_OK;
}

static int stages_check_shortcut(const strata_node *n, const struct stages *s)
{
    if (!stages_has_shortcuts(n))
        return STRATA_OK;
    if (!s->shortcut && n->weight[2 * STAGE_SHORTCUT + 1].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "there is a bias of the shortcut, and no such product; give "
                           "its weight, or leave the bias out");
    if (s->shortcut && n->n_in > 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "a shortcut is added to the results, and so is a second "
                           "input; give one of them");
    if (s->shortcut && !stages_keeps_size(s))
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "a shortcut takes every pixel, of %lld x %lld, and the results "
            "are %lld x %lld",
            (long long)s->w.in[1], (long long)s->w.in[2], (long long)s->w.out[1],
            (long long)s->w.out[2]);
    return STRATA_OK;
}

static int stages_check_weights(const strata_node *n, const struct stages *s)
{
    int status = stages_check_product(n, STAGE_FIRST, s->first);
    if (status == STRATA_OK)
        status = stages_check_product(n, STAGE_LAST, s->last);
    return status == STRATA_OK ? stages_check_shortcut(n, s) : status;
}

static int stages_output(const strata_node *n)
{
    struct stages s;
    int status = stages_of(n, &s);
    if (status == STRATA_OK)
        status = stages_check_weights(n, &s);
    if (status != STRATA_OK)
        return status;
    strata_tensor *y = &n->out[0];
    y->rank = 4;
    y->dims[0] = n->in[0].dims[0];
    y->dims[1] = s.results;
    y->dims[2] = s.w.out[1];
    y->dims[3] = s.w.out[2];
    for (int d = 0; d < 4 && n->n_in > 1; d++)
        if (n->in[1].rank != 4 || n->in[1].dims[d] != y->dims[d])
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "the second input is added to the results, of "
                               "%lld x %lld x %lld x %lld, and has another shape",
                               (long long)y->dims[0], (long long)y->dims[1],
                               (long long)y->dims[2], (long long)y->dims[3]);
    return STRATA_OK;
}

static double stages_flops(const strata_node *n)
{
    struct stages s;
    if (stages_of(n, &s) != STRATA_OK)
        return 0;
    const double in = (double)window_in_count(&s.w), out = (double)window_out_count(&s.w);
    const double before = (double)s.before, behind = (double)s.behind;
    const double taps = (double)window_kernel_count(&s.w) * before / (double)s.groups;
    return 2 * (double)n->in[0].dims[0] *
           ((s.first ? in * before * (double)s.channels : 0) + out * behind * taps +
            (s.last ? out * behind * (double)s.results : 0) +
            (s.shortcut ? out * (double)s.channels * (double)s.results : 0));
}

#endif /* PLUGINS_COMMON_STAGES_STAGES_H */
