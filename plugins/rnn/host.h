/* SPDX-License-Identifier: Apache-2.0
 *
 * The host impl: weights are packed by panels of units, the input products of all steps
 * are one, and a team of threads goes through the steps, a range of panels each.
 */
#ifndef PLUGINS_RNN_HOST_H
#define PLUGINS_RNN_HOST_H

#include "plugins/rnn/code.h"

struct rnn_host {
    float *packed; /* the core's memory */
    int bytes;     /* matrices are whole numbers of a step */
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
    const float *bias;    /* gates + 1 rows; the last: gru's, that the reset applies to */
    const float *peephole; /* 3 rows */
};
/* pack.c */
int64_t rnn_panels(const struct rnn_plan *p);
int rnn_pack(const strata_node *n, struct rnn_host *host);
struct rnn_packed rnn_packed_line(const struct rnn_plan *p, const struct rnn_host *host,
                                  int layer, int direction);
/* bytes.c: whether that is worth it, and every weight a whole number of a step of its
 * row, at most 127. */
int rnn_packs_bytes(const strata_node *n, const struct rnn_plan *p);
/* The step of a row of k numbers, tried first: `likely`; 0 of zeros, -1: none. */
float rnn_find_step(const float *row, int64_t k, float likely);
int8_t rnn_count(float v, float step);

#endif /* PLUGINS_RNN_HOST_H */
