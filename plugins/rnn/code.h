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

/* Products of rows and a panel, which go on from other sums. A panel has k rows of two
 * gates x lanes, then k rows of the next two, or one. */
struct rnn_sums {
    const float *a[RNN_ROWS];     /* k numbers each */
    const float *start[RNN_ROWS]; /* gates x lanes */
    float *sum[RNN_ROWS];         /* gates x lanes, `gate` apart */
    int64_t gate;
    const float *own;  /* where the last gate of all rows begins instead, to be put a gate
                          further on; or NULL */
    const float *step; /* gates x lanes: what a panel of bytes counts; of floats NULL */
    /* With digits: those of the rows, what they count (0: there are none), and gates x
     * lanes where the high digits' sums begin. */
    const uint8_t *digits[RNN_ROWS];
    float unit[RNN_ROWS];
    const int32_t *less;
};

typedef void (*rnn_sum)(const struct rnn_sums *s, int64_t k, const void *panel);

/* Gates that are summed, of those that a panel has. */
enum rnn_span { RNN_ONE, RNN_THREE, RNN_FOUR, RNN_FIRST_TWO, RNN_LAST, RNN_SPANS };

struct rnn_code {
    rnn_sum sum[2][4][RNN_SPANS]; /* of floats, of bytes; of 1, 2, 4, 8 rows */
    /* As in cell.h, of rows of a panel, n elements with all their lanes; p is of one. */
    void (*lstm)(const struct rnn_rule *r, float *z, int64_t apart, const float *p,
                 float *c, float *h, int64_t n);
    void (*gru_gates)(const struct rnn_rule *r, float *z, int64_t apart, int64_t n);
    void (*gru)(const struct rnn_rule *r, float *z, int64_t apart, const float *after,
                const float *old, float *h, int64_t n);
    void (*simple)(const struct rnn_rule *r, float *z, float *h, int64_t n);
    /* The lanes of rows side by side, from and to their places in x. In whole vectors, as
     * what reads them next would wait for smaller stores. */
    void (*gather)(float *to, const float *x, const int64_t *place, int rows);
    void (*scatter)(float *x, const int64_t *place, const float *from, int rows);
};

const struct rnn_code *rnn_code_choose(void);

#endif /* PLUGINS_RNN_CODE_H */
