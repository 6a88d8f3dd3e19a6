/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN as it is defined, in FP64.
 */
#ifndef PLUGINS_RNN_DEFINITION_H
#define PLUGINS_RNN_DEFINITION_H

#include "plugins/rnn/rnn.h"

/* Tensors are dense arrays of double (lengths: int64_t), NULL where absent. */
struct rnn_doubles {
    const double *x, *h0, *c0, *w, *u, *r, *b, *p;
    const int64_t *lengths;
    double *y, *hn, *cn;
};

/* Elements of working memory; -1: overflow. */
int64_t rnn_definition_memory(const struct rnn_plan *p);
void rnn_definition(const struct rnn_plan *p, const struct rnn_doubles *v,
                    double *memory);

#endif /* PLUGINS_RNN_DEFINITION_H */
