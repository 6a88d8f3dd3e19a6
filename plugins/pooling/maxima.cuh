/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima of bytes over the common square windows: sixteen channels a thread, four at once
 * in an instruction.
 */
#ifndef PLUGINS_POOLING_MAXIMA_CUH
#define PLUGINS_POOLING_MAXIMA_CUH

#include "plugins/common/window.h"

struct maxima_rule;
struct maxima {
    struct window w;
    const struct maxima_rule *rule;
};

/* Of bytes whose channels lie in whole pieces of 16, a window that this has, and no
 * output that sees pads alone. */
int maxima_accept(const strata_node *n);
int maxima_setup(const strata_node *n, void *state);
int maxima_run(const strata_run *r);

#endif /* PLUGINS_POOLING_MAXIMA_CUH */
