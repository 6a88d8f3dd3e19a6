/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers quantising hurts: the network's answers with each of them quantised alone;
 * and, where an accuracy has to hold, which of them stay as they are.
 */
#ifndef CALIBRATE_SENSITIVITY_H
#define CALIBRATE_SENSITIVITY_H

#include "calibrate/loss.h"

/* What probes are made from: floats is a probe of the scheme's network. */
struct experiment {
    struct probe *floats;
    strata_handle *handle;
    const struct quantising *quantising; /* of all layers that may be */
    const struct samples *samples;
    const int64_t *labels; /* of each sample, or NULL */
};

/* The answers with some of the layers quantised: those of the scheme for which `keep` is
 * false. */
int experiment_answers(struct answers *out, const struct experiment *x, const bool *keep,
                       const char *what, strata_error *err);
/* The same of each layer alone; out has the network's number of layers. */
int experiment_alone(struct answers *out, const struct experiment *x, strata_error *err);

/* Layers to keep, the most sensitive first (whose noise in the outputs, quantised alone,
 * is largest), as few as let at most `lost` more samples be answered wrong: found by
 * halving, and proved by a run. keep has a place for each layer, *answers is of the
 * result. */
int experiment_choose(bool *keep, struct answers *answers, const struct experiment *x,
                      const struct answers *alone, size_t lost, strata_error *err);

#endif /* CALIBRATE_SENSITIVITY_H */
