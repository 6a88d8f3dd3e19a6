/* SPDX-License-Identifier: Apache-2.0
 *
 * strata compare.
 *
 *   compare          two variants of a network, or two networks
 *   compare_collect  every tensor that a run makes
 *   compare_print    how far apart they are, and where first
 */
#ifndef TOOLS_COMPARE_COMPARE_H
#define TOOLS_COMPARE_COMPARE_H

#include "tools/values.h"

/* A tensor that a run made, in logical order. */
struct compare_tensor {
    const char *name;  /* the network's */
    const char *layer; /* node that made it: "conv1 + relu1" */
    const char *impl;
    int format; /* as it was made; table index */
    struct values values;
};

struct compare_side {
    char label[160]; /* what is particular to it: "cuda", "fp16" */
    struct tool_session session;
    strata_context *context;
    struct compare_tensor *tensors; /* in the order of the run */
    size_t n, capacity;
    const struct compare_side *feed; /* whose tensors its layers read; or NULL */
};

/* One run, each step waited for, and what it made; the inputs are set. With `feed`, each
 * layer reads what that side made, so that what differs is the layer's own doing. */
int compare_collect(struct compare_side *s, const struct compare_side *feed,
                    strata_error *err);
void compare_side_free(struct compare_side *s);
const struct compare_tensor *compare_find(const struct compare_side *s, const char *name);

struct compare_how {
    double tolerance; /* of the largest difference, relative to the largest value of the
                         tensor; negative: by the dtypes */
    int format;
    bool failed_only;
};
/* Table and sentences; EXIT_OK or EXIT_MISMATCH. */
int compare_print(const struct compare_side *a, const struct compare_side *b,
                  const struct compare_how *how);

#endif /* TOOLS_COMPARE_COMPARE_H */
