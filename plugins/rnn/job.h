/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of the host impl: where its rows lie, and what its parts do.
 */
#ifndef PLUGINS_RNN_JOB_H
#define PLUGINS_RNN_JOB_H

#include "plugins/rnn/host.h"

/* Rows of the workspace, in floats. */
struct rnn_room {
    float *x;          /* T x B x I, where the input is not FP32 */
    float *sums;       /* T x D x panels x B x gates x lanes: of the inputs, and biases */
    float *between[2]; /* T x B x D*H: outputs of layers, in turns */
    float *h[2], *c, *reset; /* D x B x units; h in turns of steps */
    int64_t *length;         /* B */
    /* With digits, 4 bytes a number: those of x_rows of the input at once, up to lanes,
     * and what they count; of h, and the last step that began with a state beyond them,
     * D x B, both in turns as h is. */
    int64_t x_rows;
    float *x_digits, *x_unit, *h_digits[2];
    int64_t *beyond[2];
};

struct rnn_job {
    const strata_run *r;
    struct rnn_plan p;
    const struct rnn_code *code;
    const struct rnn_host *host;
    struct rnn_room room;
    int64_t panels, units; /* units: with those of whole panels */
    /* Of the layer at hand. */
    int layer;
    struct rnn_packed line[2];
    const float *x;
    int64_t x_step, x_row, depth;
};

/* Numbers of a row of the input with digits. */
static inline int64_t rnn_whole_lanes(int64_t n)
{
    return (n + RNN_LANES - 1) / RNN_LANES * RNN_LANES;
}

/* Place of the gates of a row of a panel in room.sums. */
static inline int64_t rnn_sums_place(const struct rnn_job *j, int64_t t, int64_t row,
                                     int direction, int64_t panel)
{
    const int64_t line = (t * j->p.directions + direction) * j->panels + panel;
    return (line * j->p.batch + row) * j->p.gates * RNN_LANES;
}

/* Multiply-adds of a step's products. */
static inline double rnn_step_work(const struct rnn_job *j, int64_t depth)
{
    return (double)(j->p.directions * j->p.gates * j->units) * (double)j->p.batch *
           (double)depth;
}

/* input.c */
void rnn_sum_inputs(const struct rnn_job *j);
/* So many of those rows of a depth whose digits are made at once. */
int64_t rnn_rows_at_once(int64_t rows, int64_t depth);
void rnn_walk_steps(const struct rnn_job *j); /* steps.c */

#endif /* PLUGINS_RNN_JOB_H */
