/* SPDX-License-Identifier: Apache-2.0
 *
 * The host impl: weights are packed by panels of units, the input products of all steps
 * are one, and a team of threads goes through the steps, a range of panels each.
 */
#ifndef PLUGINS_RNN_HOST_H
#define PLUGINS_RNN_HOST_H

#include "plugins/rnn/code.h"

#define RNN_FAR (64 << 10) /* floats of R, from which on bytes are faster */

/* What matrices are packed as: of bytes they are whole numbers of a step, and with digits
 * four numbers of a row lie together. */
enum rnn_packing { RNN_FLOATS, RNN_BYTES, RNN_DIGITS };

struct rnn_host {
    float *packed; /* the core's memory */
    enum rnn_packing packing;
};

size_t rnn_host_workspace(const strata_node *n);
int rnn_host_setup(const strata_node *n, void *state);
int rnn_host_run(const strata_run *r);

/* Where the weights of a line, one direction of one layer, lie: panel after panel. Input
 * and recurrent are as code.h has them, the others rows of lanes. */
struct rnn_packed {
    const void *input, *recurrent;
    size_t input_panel, recurrent_panel; /* bytes */
    const float *step[2]; /* of input and recurrent, gates rows; NULL: these are floats */
    const int32_t *less[2]; /* as step, with digits: -128 times sums of weights */
    const float *bias; /* gates + 1 rows; the last: gru's, that the reset applies to */
    const float *peephole; /* 3 rows */
};
/* pack.c */
int64_t rnn_panels(const struct rnn_plan *p);
int rnn_pack(const strata_node *n, struct rnn_host *host);
struct rnn_packed rnn_packed_line(const struct rnn_plan *p, const struct rnn_host *host,
                                  int layer, int direction);
/* bytes/count.c: bytes where that is worth it, and every weight a whole number of a step
 * of its row, at most 127. */
enum rnn_packing rnn_packing_of(const strata_node *n, const struct rnn_plan *p);
/* The step of a row of k numbers, tried first: `likely`; 0 of zeros, -1: none. */
float rnn_find_step(const float *row, int64_t k, float likely);
int8_t rnn_count(float v, float step);
/* bytes/digits.c */
int rnn_may_have_digits(const struct rnn_plan *p); /* but for weights and processor */
int rnn_has_digits(void);                          /* of the processor */
/* 16 states, of scale 1; whether they have digits: they are at most 1, and all 0 or some
 * at least 2^-6. */
int rnn_digits_of_states(uint8_t *to, const float *h);
/* Of n numbers, up to a multiple of 16; what they count, or 0: they have none, as some is
 * no number, or too many are far smaller than the largest. */
float rnn_digits_of_row(uint8_t *to, const float *x, int64_t n);
void rnn_sum_digits(const struct rnn_sums *s, int rows, int64_t k, const void *panel);

#endif /* PLUGINS_RNN_HOST_H */
