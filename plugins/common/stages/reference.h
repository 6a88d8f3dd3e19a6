/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of stages by their definition, in FP64.
 */
#ifndef PLUGINS_COMMON_STAGES_REFERENCE_H
#define PLUGINS_COMMON_STAGES_REFERENCE_H

#include <stdlib.h>

#include "plugins/common/dense.h"
#include "plugins/common/plane.h"
#include "plugins/common/stages/stages.h"

static double stages_exact(const struct stages *s, int stage, double x)
{
    const strata_activation *f = &s->f[stage];
    return f->kind >= 0 ? element_activate_exact(f->kind, x, strata_activation_alpha(f),
                                                 strata_activation_beta(f))
                        : x;
}

static void stages_exact_product(const struct stages *s, int stage,
                                 const double *const *weight, const double *x, double *y,
                                 int64_t depth, int64_t results, int64_t n,
                                 const double *addend)
{
    const double *w = weight[2 * stage], *bias = weight[2 * stage + 1];
    for (int64_t k = 0; k < results; k++)
        for (int64_t i = 0; i < n; i++) {
            double sum = bias ? bias[k] : 0;
            for (int64_t c = 0; c < depth; c++)
                sum += w[k * depth + c] * x[c * n + i];
            y[k * n + i] = stages_exact(s, stage, sum + (addend ? addend[k * n + i] : 0));
        }
}

static void stages_exact_convolution(const struct stages *s, const double *const *weight,
                                     const double *x, double *y)
{
    const struct window *w = &s->w;
    const double *factors = weight[2 * STAGE_WINDOWS];
    const double *bias = weight[2 * STAGE_WINDOWS + 1];
    const int64_t in = window_in_count(w), out = window_out_count(w);
    const int64_t depth = s->before / s->groups, taps = window_kernel_count(w);
    for (int64_t c = 0; c < s->behind; c++)
        for (int64_t i = 0; i < out; i++) {
            const int64_t first = c / (s->behind / s->groups) * depth;
            double sum = bias ? bias[c] : 0;
            for (int64_t k = 0; k < depth; k++)
                sum +=
                    plane_exact(w, x + (first + k) * in, factors + (c * depth + k) * taps,
                                i / w->out[2], i % w->out[2]);
            y[c * out + i] = stages_exact(s, STAGE_WINDOWS, sum);
        }
}

static void stages_exact_image(const strata_node *n, const struct stages *s,
                               const double *const *weight, const double *x,
                               const double *addend, double *between, double *convolved,
                               double *y)
{
    const int64_t in = window_in_count(&s->w), out = window_out_count(&s->w);
    const double *own = x;
    if (s->first) {
        stages_exact_product(s, STAGE_FIRST, weight, x, between, s->channels, s->before,
                             in, NULL);
        dense_hold(n, between, s->before * in);
        x = between;
    }
    stages_exact_convolution(s, weight, x, s->last ? convolved : y);
    if (!s->last)
        return;
    dense_hold(n, convolved, s->behind * out);
    if (s->shortcut) {
        stages_exact_product(s, STAGE_SHORTCUT, weight, own, y, s->channels, s->results,
                             out, NULL);
        addend = y;
    }
    stages_exact_product(s, STAGE_LAST, weight, convolved, y, s->behind, s->results, out,
                         addend);
}

static int stages_reference(const strata_node *n, const double *const *in,
                            const double *const *weight, double *const *out)
{
    struct stages s;
    const int status = stages_of(n, &s);
    if (status != STRATA_OK)
        return status;
    const int64_t plane = window_in_count(&s.w), results = window_out_count(&s.w);
    double *between = calloc((size_t)s.before, (size_t)plane * sizeof *between);
    double *convolved = calloc((size_t)s.behind, (size_t)results * sizeof *convolved);
    for (int64_t i = 0; i < n->in[0].dims[0] && between && convolved; i++)
        stages_exact_image(n, &s, weight, in[0] + i * s.channels * plane,
                           n->n_in > 1 ? in[1] + i * s.results * results : NULL, between,
                           convolved, out[0] + i * s.results * results);
    const bool had_memory = between && convolved;
    free(between);
    free(convolved);
    return had_memory ? STRATA_OK
                      : STRATA_FAIL(n, STRATA_ENOMEM, "no memory for what is between");
}

static const strata_reference stages_exactly = {sizeof stages_exactly, STRATA_HELD_WITHIN,
                                                stages_reference};

static const void *stages_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &stages_exactly : NULL;
}

#endif /* PLUGINS_COMMON_STAGES_REFERENCE_H */
