/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of a layer that might be fused.
 */
#ifndef PLANNER_FUSE_NOTES_H
#define PLANNER_FUSE_NOTES_H

#include "planner/planner.h"

/* Of whether layer `into` may compute it, in place of what was said before. */
int notes_say(struct planner_fusion *f, bool possible, int into, strata_error *err,
              const char *format, ...) PRINTF_LIKE(5, 6);
/* The same unless another may compute it, or has said why not and so does this one. */
int notes_add(struct planner_fusion *f, bool possible, int into, strata_error *err,
              const char *format, ...) PRINTF_LIKE(5, 6);

#endif /* PLANNER_FUSE_NOTES_H */
