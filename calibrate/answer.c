/* SPDX-License-Identifier: Apache-2.0
 *
 * What networks answer.
 */
#include <math.h>
#include <stdlib.h>

#include "calibrate/loss.h"
#include "calibrate/watch.h"

/* The largest of the first row; the first of equal ones. */
static int64_t class_of(const float *values, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = values[i] > values[best] ? i : best;
    return best;
}

static int64_t row_size(const strata_context *c, int value)
{
    const strata_desc *d = &c->engine->execution->values[value].desc;
    const int64_t rows = d->rank > 1 ? d->dims[0] : 1;
    return rows ? strata_desc_count(d) / rows : 0;
}

static bool holds_nan(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return true;
    return false;
}

static void add_noise(struct noise *sum, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double off = (double)x[i] - (double)y[i];
        if (!isfinite(off)) /* infinite in both, as of a logarithm, is alike */
            continue;
        sum->signal += (double)x[i] * (double)x[i];
        sum->noise += off * off;
    }
}

static int hold_output(struct answers *a, const struct probe *x, const struct probe *y,
                       size_t output, int64_t label, bool *odd, strata_error *err)
{
    const struct execution *of = x->engine->execution, *other = y->engine->execution;
    const size_t at = of->n_inputs + output;
    const int value = of->bindings[at].value;
    float *floats = NULL, *found = NULL;
    int64_t n = 0, m = 0;
    int status = watch_floats(&floats, &n, x->context, value, err);
    if (status == STRATA_OK)
        status = watch_floats(&found, &m, y->context, other->bindings[at].value, err);
    if (status == STRATA_OK) {
        add_noise(&a->out, floats, found, n < m ? n : m);
        *odd = *odd || holds_nan(floats, n);
    }
    if (status == STRATA_OK && output == 0) {
        const int64_t row = row_size(x->context, value);
        const int64_t expected = class_of(floats, row), answer = class_of(found, row);
        a->same += expected == answer;
        a->right_floats += expected == label;
        a->right += answer == label;
    }
    free(floats);
    free(found);
    return status;
}

static int run_one(const struct probe *t, const struct samples *samples, size_t i,
                   strata_error *err)
{
    int status = samples->load(samples->of, t->context, i, err);
    return status == STRATA_OK ? strata_context_run(t->context, err) : status;
}

int answers_run(struct answers *a, struct probe *floats, struct probe *quantised,
                const struct samples *samples, const int64_t *labels, const char *what,
                strata_error *err)
{
    const struct execution *x = floats->engine->execution;
    int status = STRATA_OK;
    *a = (struct answers){.samples = samples->n};
    for (size_t i = 0; i < samples->n && status == STRATA_OK; i++) {
        bool odd = false;
        status = samples_step(samples, what, i, samples->n, err);
        if (status == STRATA_OK)
            status = run_one(floats, samples, i, err);
        if (status == STRATA_OK)
            status = run_one(quantised, samples, i, err);
        for (size_t k = 0; k + x->n_inputs < x->n_bindings && status == STRATA_OK; k++)
            status =
                hold_output(a, floats, quantised, k, labels ? labels[i] : -1, &odd, err);
        if (odd && a->odd++ == 0)
            a->first_odd = i;
    }
    return status;
}
