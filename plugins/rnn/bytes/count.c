/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that are whole numbers of a step, as those of a cell that was quantised: they
 * are packed as bytes, so that a step of a sequence reads a quarter of what floats are.
 * The step is found in the numbers: a network has them as floats.
 */
#include "plugins/rnn/host.h"

#define MOST 127 /* steps of a weight */

/* To the nearest whole number, of one far below 2^22; without a call for each weight. */
static float nearest(float v)
{
    const float whole = 12582912; /* 1.5*2^23 */
    volatile float sum = v + whole;
    return sum - whole;
}

static int counts_in(const float *row, int64_t k, float step)
{
    for (int64_t i = 0; i < k; i++) {
        const float n = row[i] / step;
        if (!(fabsf(n) < MOST + .5f) || nearest(n) * step != row[i])
            return 0;
    }
    return 1;
}

/* A NaN is not 0, but no larger either. */
static int is_zero(const float *row, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        if (row[i] != 0)
            return 0;
    return 1;
}

float rnn_find_step(const float *row, int64_t k, float likely)
{
    float most = 0;
    for (int64_t i = 0; i < k; i++)
        most = fabsf(row[i]) > most ? fabsf(row[i]) : most;
    if (most == 0 || !isfinite(most))
        return most == 0 && is_zero(row, k) ? 0 : -1;
    if (likely > 0 && counts_in(row, k, likely))
        return likely;
    for (int n = 1; n <= MOST; n++) {
        const float step =
            most / (float)n; /* or a neighbour, as the product was rounded */
        const float all[] = {step, nextafterf(step, 0), nextafterf(step, INFINITY)};
        for (int i = 0; i < 3; i++)
            if (all[i] > 0 && counts_in(row, k, all[i]))
                return all[i];
    }
    return -1;
}

static int all_count(const float *weight, int64_t rows, int64_t k)
{
    float step = 0;
    for (int64_t i = 0; i < rows; i++) {
        const float found = rnn_find_step(weight + i * k, k, step);
        if (found < 0)
            return 0;
        step = found > 0 ? found : step;
    }
    return 1;
}

enum rnn_packing rnn_packing_of(const strata_node *n, const struct rnn_plan *p)
{
    if (p->gates * p->hidden * p->hidden < RNN_FAR)
        return RNN_FLOATS;
    for (int i = RNN_W; i <= RNN_R; i++) {
        const strata_tensor *w = &n->weight[i];
        if (w->rank == 3 && !all_count(w->data, w->dims[0] * w->dims[1], w->dims[2]))
            return RNN_FLOATS;
    }
    return rnn_may_have_digits(p) && rnn_has_digits() ? RNN_DIGITS : RNN_BYTES;
}

int8_t rnn_count(float v, float step)
{
    return step > 0 ? (int8_t)nearest(v / step) : 0;
}
