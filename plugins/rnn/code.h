/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN's arithmetic on the host in the vectors of the processor at hand: sums of products,
 * and cells, of a panel of units.
 */
#ifndef PLUGINS_RNN_CODE_H
#define PLUGINS_RNN_CODE_H

#include "plugins/rnn/rnn.h"

#define RNN_LANES 16 /* units of a panel */
#define RNN_ROWS 8   /* most rows of one call, a power of 2 */

/* sum[rows][gates][lanes] = a*panel. A panel has k rows of two gates x lanes, then k rows
 * of the next two, or one. */
typedef void (*rnn_sum)(float *sum, const float *const *a, int64_t k, const float *panel);

/* Gates that are summed, of those that a panel has. */
enum rnn_span { RNN_ONE, RNN_THREE, RNN_FOUR, RNN_FIRST_TWO, RNN_LAST, RNN_SPANS };

struct rnn_code {
    rnn_sum sum[4][RNN_SPANS]; /* of 1, 2, 4, 8 rows */
    /* As in cell.h, of one row of a panel; gates are RNN_LANES apart. */
    void (*lstm)(const struct rnn_rule *r, float *z, const float *p, float *c, float *h);
    void (*gru_gates)(const struct rnn_rule *r, float *z);
    void (*gru)(const struct rnn_rule *r, float *z, const float *after, const float *old,
                float *h);
    void (*simple)(const struct rnn_rule *r, float *z, float *h);
};

const struct rnn_code *rnn_code_choose(void);

#endif /* PLUGINS_RNN_CODE_H */
