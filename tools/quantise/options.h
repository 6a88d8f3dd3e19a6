/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of `strata quantise`.
 */
#ifndef TOOLS_QUANTISE_OPTIONS_H
#define TOOLS_QUANTISE_OPTIONS_H

#include "calibrate/method/method.h"
#include "calibrate/scheme.h"
#include "tools/tool.h"

struct quantise_options {
    const struct tool_command *command; /* for messages */
    struct tool_options common;
    const char *output;
    const char **data, **keep;
    size_t n_data, n_keep, data_capacity, keep_capacity;
    const struct quant_type *to;
    const struct range_method *method;
    double share, budget; /* percent; budget < 0: none */
    int64_t samples;      /* to collect from; 0: all */
    const char *ranges, *save_ranges, *collected, *labels;
    bool sensitivity, weights_only, no_bias, float_first, method_given, share_given;
    struct weight_form form; /* of weights_only; bits 0: not given */
};
/* An exit code; after EXIT_OK the network is at argv[optind], unless help was asked for.
 */
int quantise_read_options(struct quantise_options *o, const struct tool_command *command,
                          int argc, char **argv);
void quantise_free_options(struct quantise_options *o);

#endif /* TOOLS_QUANTISE_OPTIONS_H */
