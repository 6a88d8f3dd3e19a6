/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of few bits, drawn.
 */
#include "check/harness/stored.h"

#include <stdlib.h>

#include "check/harness/trial.h"

#define NIBBLE_ZERO 8 /* what stands for 0 */

/* Of an index of the weight, where its factor is. */
static int64_t factor_at(const struct harness_stored *s, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < s->factor.rank; d++) {
        const int64_t i = d == s->group_along ? index[d] / s->group : index[d];
        at = at * s->factor.dims[d] + (s->factor.dims[d] == 1 ? 0 : i);
    }
    return at;
}

/* Of the same, where its byte is. */
static int64_t byte_at(const struct harness_stored *s, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < s->weight.rank; d++)
        at = at * s->weight.dims[d] +
             (d == s->along ? index[d] / HARNESS_PER_BYTE : index[d]);
    return at;
}

/* One value, put where the file has it. */
static int draw_value(struct trial *t, struct harness_stored *s, const int64_t *index)
{
    int64_t *byte = (int64_t *)s->values + byte_at(s, index);
    const uint64_t random = trial_random(t) >> 20;
    if (s->along < 0)
        return (int)(*byte = (int64_t)(random % 256) - 128);
    const int64_t value = (int64_t)(random % 16);
    *byte |= value << (index[s->along] % HARNESS_PER_BYTE * 4);
    return (int)value - NIBBLE_ZERO;
}

/* In (1/8, 1], of so few bits that products with the values are exact in BF16. */
static double draw_factor(struct trial *t, bool packed)
{
    const uint64_t random = trial_random(t) >> 20;
    return (double)(packed ? 9 + random % 8 : 16) / 16 / (double)(1 << random / 8 % 3);
}

bool stored_draw(struct trial *t, double *weight)
{
    struct harness_stored *s = &t->node.stored;
    const strata_tensor *w = &t->node.weight[0];
    const double largest = s->along < 0 ? 128 : NIBBLE_ZERO;
    int64_t index[STRATA_MAX_RANK] = {0};
    s->values = calloc((size_t)s->weight.count + 1, VALUE_SIZE);
    s->factor_values = calloc((size_t)s->factor.count + 1, VALUE_SIZE);
    if (!s->values || !s->factor_values)
        return false;
    double *factors = s->factor_values;
    for (int64_t i = 0; i < s->factor.count; i++)
        factors[i] = draw_factor(t, s->along >= 0) / largest;
    for (int64_t i = 0; i < w->count; i++) {
        const float value = (float)draw_value(t, s, index);
        weight[i] = (double)(value * (float)factors[factor_at(s, index)]);
        for (int d = w->rank - 1; d >= 0 && ++index[d] == w->dims[d]; d--)
            index[d] = 0;
    }
    return true;
}
