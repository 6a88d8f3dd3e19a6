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
};

size_t rnn_host_workspace(const strata_node *n);
int rnn_host_setup(const strata_node *n, void *state);
int rnn_host_run(const strata_run *r);

/* Where the weights of a line, one direction of one layer, lie: panel after panel. Input
 * and recurrent are as code.h has them, the others rows of lanes. */
struct rnn_packed {
    const float *input, *recurrent;
    const float *bias; /* gates + 1 rows; the last: gru's, that the reset applies to */
    const float *peephole; /* 3 rows */
};
/* pack.c */
int64_t rnn_panels(const struct rnn_plan *p);
int rnn_pack(const strata_node *n, float **packed);
struct rnn_packed rnn_packed_line(const struct rnn_plan *p, const float *packed,
                                  int layer, int direction);

#endif /* PLUGINS_RNN_HOST_H */
