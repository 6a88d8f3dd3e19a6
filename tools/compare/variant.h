/* SPDX-License-Identifier: Apache-2.0
 *
 * Options with more overrides than were given: one network in several variants.
 */
#ifndef TOOLS_COMPARE_VARIANT_H
#define TOOLS_COMPARE_VARIANT_H

#include "tools/tool.h"

/* The options given, with texts of its own; free it in every case. */
int variant_open(struct tool_options *o, const struct tool_options *given,
                 strata_error *err);
void variant_close(struct tool_options *o);
/* One more --set, or -D. */
int variant_set(struct tool_options *o, strata_error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* The same, unless it is there already. */
int variant_set_once(struct tool_options *o, strata_error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
int variant_define(struct tool_options *o, strata_error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif /* TOOLS_COMPARE_VARIANT_H */
