/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms of the tensors that a scheme makes int8, over runs on samples; and the
 * ranges that a method chooses from them.
 */
#ifndef CALIBRATE_COLLECT_H
#define CALIBRATE_COLLECT_H

#include "calibrate/method/method.h"
#include "calibrate/probe.h"

struct collection {
    const struct scheme *scheme;
    struct histogram **tensors; /* of each of the network: of those that become int8 */
    size_t done;                /* samples, from the first */
};

int collection_open(struct collection *c, const struct scheme *s, strata_error *err);
void collection_free(struct collection *c);
/* From where it was left, up to the n-th. */
int collection_run(struct collection *c, strata_context *context,
                   const struct samples *samples, size_t n, strata_error *err);

/* Tensors that share a scale get the range of all their values together. EINVAL names a
 * tensor that held no number, or none that is finite. */
int collection_ranges(struct ranges *out, const struct collection *c,
                      const struct range_method *method, const struct quant_type *type,
                      double share, strata_error *err);
/* Of each tensor of the network the share of its values beyond its range, malloc'ed. */
int collection_saturated(double **out, const struct collection *c,
                         const struct ranges *ranges, strata_error *err);

/* A table that was edited: tensors that share a scale get the widest of their ranges.
 * ENOTFOUND names one that is missing. */
int ranges_share(struct ranges *r, const struct scheme *s, strata_error *err);

#endif /* CALIBRATE_COLLECT_H */
