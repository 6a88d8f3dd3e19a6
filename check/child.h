/* SPDX-License-Identifier: Apache-2.0
 *
 * Code of unknown manners in a process of its own.
 */
#ifndef CHECK_CHILD_H
#define CHECK_CHILD_H

#include <stdbool.h>

#include "core/status.h"

#define CHILD_TEXT 2000 /* bytes kept of what a child wrote */

struct child_end {
    bool timed_out;
    int signal; /* that killed it, or 0 */
    int code;   /* exit code */
    double seconds;
    char out[CHILD_TEXT], errors[CHILD_TEXT]; /* heads of its two streams */
};

struct check_fork;

/* Run body(user) in a child, which then exits with 0; kill it, and all it started, after
 * limit_ms. `told`, or NULL, hears of the fork. EIO if no child could be started. */
int child_run(void (*body)(void *user), void *user, const struct check_fork *told,
              int limit_ms, struct child_end *end, strata_error *err);
/* Seconds on a clock that only goes forward. */
double child_now(void);
/* Memory that a child shares with its parent, zeroed; NULL: none. */
void *child_memory(size_t bytes);
void child_memory_free(void *memory, size_t bytes);

#endif /* CHECK_CHILD_H */
