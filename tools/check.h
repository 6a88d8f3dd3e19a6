/* SPDX-License-Identifier: Apache-2.0
 *
 * How `strata check` writes what it found.
 */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include "check/check.h"

enum check_style { CHECK_TEXT, CHECK_TAP, CHECK_JSON };

struct check_output {
    enum check_style style;
    const struct check_options *options;
    int number; /* of the last test */
};

void check_output_begin(struct check_output *o);
/* A check_listener with a struct check_output as user. */
void check_output_result(const struct check_result *r, void *user);
void check_output_end(const struct check_output *o, const struct check_summary *s,
                      bool complete);

#endif /* TOOLS_CHECK_H */
