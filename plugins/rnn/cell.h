/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of each op for n units of a row, from the sums of their gates: written once
 * for the definition and for the host impl. Who includes it defines CELL_REAL,
 * CELL_FUNCTION (the linkage) and, before,
 *     CELL_FUNCTION void cell_activate(const strata_activation *f, CELL_REAL *x, int64_t
 * n) Gates are rows, in ONNX's order and `apart` elements from each other, and are
 * overwritten. h is none of the other arguments.
 */
#ifndef PLUGINS_RNN_CELL_H
#define PLUGINS_RNN_CELL_H

#include "plugins/rnn/rnn.h"

CELL_FUNCTION void cell_gate(const struct rnn_rule *r, int function, CELL_REAL *x,
                             int64_t n)
{
    const CELL_REAL clip = (CELL_REAL)r->clip;
    for (int64_t i = 0; i < n && r->clips; i++)
        x[i] = x[i] < -clip ? -clip : x[i] > clip ? clip : x[i];
    cell_activate(&r->function[function], x, n);
}

/* z += p*c */
CELL_FUNCTION void cell_peep(CELL_REAL *z, const CELL_REAL *p, const CELL_REAL *c,
                             int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        z[i] += p[i] * c[i];
}

/* c, the cell, moves on. p: rows for i, o and f, p_apart from each other; or NULL. */
CELL_FUNCTION void cell_lstm(const struct rnn_rule *r, CELL_REAL *z, int64_t apart,
                             const CELL_REAL *p, int64_t p_apart, CELL_REAL *c,
                             CELL_REAL *h, int64_t n)
{
    CELL_REAL *in = z + RNN_I * apart, *out = z + RNN_O * apart;
    CELL_REAL *forget = z + RNN_F * apart, *candidate = z + RNN_C * apart;
    if (p) {
        cell_peep(in, p + RNN_I * p_apart, c, n);
        cell_peep(forget, p + RNN_F * p_apart, c, n);
    }
    cell_gate(r, 0, in, n);
    if (r->coupled)
        for (int64_t i = 0; i < n; i++)
            forget[i] = 1 - in[i];
    else
        cell_gate(r, 0, forget, n);
    cell_gate(r, 1, candidate, n);
    for (int64_t i = 0; i < n; i++)
        h[i] = c[i] = forget[i] * c[i] + in[i] * candidate[i];
    if (p)
        cell_peep(out, p + RNN_O * p_apart, c, n);
    cell_gate(r, 0, out, n);
    cell_gate(r, 2, h, n);
    for (int64_t i = 0; i < n; i++)
        h[i] *= out[i];
}

/* The update and the reset. */
CELL_FUNCTION void cell_gru_gates(const struct rnn_rule *r, CELL_REAL *z, int64_t apart,
                                  int64_t n)
{
    cell_gate(r, 0, z + RNN_UPDATE * apart, n);
    cell_gate(r, 0, z + RNN_RESET * apart, n);
}

/* After cell_gru_gates. after: what the reset is applied to, where it comes behind the
 * product; NULL: the candidate's sum has all. */
CELL_FUNCTION void cell_gru(const struct rnn_rule *r, CELL_REAL *z, int64_t apart,
                            const CELL_REAL *after, const CELL_REAL *old, CELL_REAL *h,
                            int64_t n)
{
    const CELL_REAL *update = z + RNN_UPDATE * apart, *reset = z + RNN_RESET * apart;
    CELL_REAL *candidate = z + RNN_CANDIDATE * apart;
    for (int64_t i = 0; i < n && after; i++)
        candidate[i] += reset[i] * after[i];
    cell_gate(r, 1, candidate, n);
    for (int64_t i = 0; i < n; i++)
        h[i] = (1 - update[i]) * candidate[i] + update[i] * old[i];
}

CELL_FUNCTION void cell_simple(const struct rnn_rule *r, CELL_REAL *z, CELL_REAL *h,
                               int64_t n)
{
    cell_gate(r, 0, z, n);
    for (int64_t i = 0; i < n; i++)
        h[i] = z[i];
}

#endif /* PLUGINS_RNN_CELL_H */
