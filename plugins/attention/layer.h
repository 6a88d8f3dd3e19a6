/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of Attention's host module have of each other.
 */
#ifndef PLUGINS_ATTENTION_LAYER_H
#define PLUGINS_ATTENTION_LAYER_H

#include "plugins/attention/attention.h"

int attention_reference_run(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out);

/* Any dtype, any option, a query at a time, in FP64. */
size_t attention_exact_workspace(const strata_node *n);
int attention_exact_run(const strata_run *r);

/* FP32, FP16 and BF16 without scores: tiles of queries by tiles of keys. */
size_t attention_tiled_workspace(const strata_node *n);
int attention_tiled_run(const strata_run *r);

/* The same for few queries a head: a head's keys are split over threads. */
int attention_split_accept(const strata_node *n);
size_t attention_split_workspace(const strata_node *n);
int attention_split_run(const strata_run *r);

#endif /* PLUGINS_ATTENTION_LAYER_H */
