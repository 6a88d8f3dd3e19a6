/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that `strata quantise` writes beside the network that it is told to write.
 */
#ifndef TOOLS_QUANTISE_OUTPUTS_H
#define TOOLS_QUANTISE_OUTPUTS_H

#include "tools/quantise/options.h"

struct outputs {
    char *weights, *labels; /* owned */
    bool has_labels;        /* they are written, too */
};
/* EINVAL: one of the files is read, too, or written twice. */
int outputs_find(struct outputs *out, const struct quantise_options *o,
                 const struct tool_session *s, strata_error *err);
void outputs_free(struct outputs *out);

#endif /* TOOLS_QUANTISE_OUTPUTS_H */
