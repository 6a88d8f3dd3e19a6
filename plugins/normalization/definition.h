/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition, in FP64. The variance is of centred values, in a second look.
 */
#ifndef PLUGINS_NORMALIZATION_DEFINITION_H
#define PLUGINS_NORMALIZATION_DEFINITION_H

#include "plugins/common/dense.h"
#include "plugins/normalization/normalization.h"

/* Elements that share mean and deviation: `runs` stretches of `length`, `stride` between
 * elements. */
struct norm_set {
    int64_t sets, length, stride;
};

static struct norm_set norm_sets(const strata_node *n)
{
    const strata_normalization *p = n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = norm_axis(p, x->rank);
    struct norm_set s = {1, 1, 1};
    if (norm_by_rows(p)) {
        s.length = norm_span(x, axis, x->rank);
    } else if (p->kind == STRATA_NORMALIZATION_LP) {
        s.length = x->dims[axis];
        s.stride = norm_span(x, axis + 1, x->rank);
    } else {
        s.length = norm_span(x, 2, x->rank) * x->dims[1] / norm_groups(p, x);
    }
    s.sets = s.length ? dense_count(x) / s.length : 0;
    return s;
}

/* Mean and 1/deviation of the elements from x on; lp: 0 and 1/norm. */
static void norm_measure(const strata_normalization *p, const double *x, int64_t n,
                         int64_t stride, double *mean, double *factor)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n && p->kind != STRATA_NORMALIZATION_RMS; i++)
        sum += p->kind == STRATA_NORMALIZATION_LP ? pow(fabs(x[i * stride]), (double)p->p)
                                                  : x[i * stride];
    if (p->kind == STRATA_NORMALIZATION_LP) {
        *mean = 0;
        *factor = sum == 0 ? 0 : pow(sum, -1 / (double)p->p);
        return;
    }
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (x[i * stride] - *mean) * (x[i * stride] - *mean);
    *factor = 1 / sqrt(square / (double)n + p->epsilon);
}

/* Element i of a set that begins at `first`. */
static double norm_value(const strata_node *n, const double *const *weight, double x,
                         int64_t at, double mean, double factor)
{
    const strata_normalization *p = n->params;
    const strata_tensor *t = &n->in[0];
    const int64_t inner = norm_by_rows(p) ? norm_span(t, norm_axis(p, t->rank), t->rank)
                                          : norm_span(t, 2, t->rank);
    const int64_t k = norm_by_rows(p) || p->kind == STRATA_NORMALIZATION_LP
                          ? at % inner
                          : at / inner % t->dims[1];
    if (p->kind == STRATA_NORMALIZATION_BATCH) {
        mean = weight[NORM_MEAN] ? weight[NORM_MEAN][k] : 0;
        factor =
            1 / sqrt((weight[NORM_VARIANCE] ? weight[NORM_VARIANCE][k] : 1) + p->epsilon);
    }
    const double y = (x - mean) * factor;
    return (weight[NORM_SCALE] ? weight[NORM_SCALE][k] : 1) * y +
           (weight[NORM_BIAS] ? weight[NORM_BIAS][k] : 0);
}

/* x is what is normalized, and may be y. */
static void norm_define(const strata_node *n, const double *x,
                        const double *const *weight, double *y, double *means,
                        double *factors)
{
    const strata_normalization *p = n->params;
    const struct norm_set s = norm_sets(n);
    for (int64_t set = 0; set < s.sets; set++) {
        const int64_t first = set / s.stride * s.stride * s.length + set % s.stride;
        double mean = 0, factor = 1;
        if (p->kind != STRATA_NORMALIZATION_BATCH)
            norm_measure(p, x + first, s.length, s.stride, &mean, &factor);
        for (int64_t i = 0; i < s.length; i++) {
            const int64_t at = first + i * s.stride;
            y[at] = norm_value(n, weight, x[at], at, mean, factor);
        }
        if (means) {
            means[set] = mean;
            factors[set] = factor;
        }
    }
}

static int norm_reference(const strata_node *n, const void *const *in,
                          const void *const *weight, void *const *out)
{
    const strata_normalization *p = n->params;
    const int64_t count = dense_count(&n->in[0]);
    const double *x = in[0], *residual = n->n_in > 1 ? in[1] : NULL; /* or absent */
    const double *w[NORM_WEIGHTS];
    const int at = norm_mean_output(p);
    double *y = out[0];
    for (int k = 0; k < NORM_WEIGHTS; k++)
        w[k] = weight[k];
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] + (residual ? residual[i] : 0);
    if (p->sum)
        memcpy(out[1], y, (size_t)count * sizeof *y);
    norm_define(n, y, w, y, at < 0 ? NULL : out[at], at < 0 ? NULL : out[at + 1]);
    return STRATA_OK;
}

#endif /* PLUGINS_NORMALIZATION_DEFINITION_H */
