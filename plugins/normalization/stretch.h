/* SPDX-License-Identifier: Apache-2.0
 *
 * What is normalized, read and written in stretches of FP32: the first input with the
 * second one added, and results behind an activation.
 */
#ifndef PLUGINS_NORMALIZATION_STRETCH_H
#define PLUGINS_NORMALIZATION_STRETCH_H

#include <stdbool.h>

#include "plugins/common/activate.h"
#include "plugins/common/reduce/reduce.h"
#include "plugins/common/walk.h"
#include "plugins/normalization/normalization.h"

struct norm_call {
    const strata_run *run;
    const strata_normalization *params;
    const struct gather_code *code;
    const strata_tensor *residual; /* NULL: none */
    const strata_tensor *sum;      /* to be written, NULL: not */
};

static struct norm_call norm_call_of(const strata_run *r)
{
    struct norm_call c = {.run = r, .params = r->params, .code = gather_choose()};
    c.residual = r->n_in > 1 && r->in[1].rank > 0 ? &r->in[1] : NULL;
    c.sum = c.params->sum ? &r->out[norm_sum_output(c.params)] : NULL;
    return c;
}

/* n <= GATHER_STRETCH elements of what is normalized; buffer holds two such. */
static const float *norm_load(const struct norm_call *c, int64_t at, int64_t n,
                              float *buffer)
{
    const float *x = gather_load(&c->run->in[0], at, n, buffer);
    if (!c->residual)
        return x;
    const float *residual = gather_load(c->residual, at, n, buffer + GATHER_STRETCH);
    for (int64_t i = 0; i < n; i++)
        buffer[i] = x[i] + residual[i];
    return buffer;
}

/* The same, on the first look: the sum is written. */
static const float *norm_first_load(const struct norm_call *c, int64_t at, int64_t n,
                                    float *buffer)
{
    const float *x = norm_load(c, at, n, buffer);
    if (c->sum)
        element_store_row(c->sum->data, c->sum->dtype, at, 1, x, n);
    return x;
}

/* Where n results go before norm_store, which may be their place. */
static float *norm_target(const struct norm_call *c, int64_t at, float *buffer)
{
    const strata_tensor *y = &c->run->out[0];
    return y->dtype == STRATA_FP32 ? (float *)y->data + at : buffer;
}

static void norm_store(const struct norm_call *c, int64_t at, int64_t n, float *y,
                       const float *buffer)
{
    const strata_epilogue *e = c->run->epilogue;
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        activate_row(e->activation, e->alpha, e->beta, y, n);
    walk_stored(&c->run->out[0], at, 1, y, buffer, n);
}

/* Elements of a stretch that begins at element j of n. */
static int64_t norm_part(int64_t j, int64_t n)
{
    return n - j < GATHER_STRETCH ? n - j : GATHER_STRETCH;
}

static float norm_inverse(const strata_normalization *p, double square, int64_t n)
{
    return (float)(1 / sqrt(square / (double)n + p->epsilon));
}

#endif /* PLUGINS_NORMALIZATION_STRETCH_H */
