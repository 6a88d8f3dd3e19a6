/* SPDX-License-Identifier: Apache-2.0
 *
 * Load a module in a child process, so that one that crashes, exits or hangs does no
 * harm. For `list` and `check`; the file's code runs, so judge its trust before.
 */
#ifndef REGISTRY_PROBE_H
#define REGISTRY_PROBE_H

#include <stdbool.h>

#include "core/status.h"

#define PROBE_TIMEOUT_MS 5000

/* STRATA_OK, or EMODULE with the reason ("constructor killed by SIGSEGV", "constructor
 * called exit(3)", "no answer in 5 s", or what loading says); EIO if no child could be
 * started. reason holds the text, cut to size. A note that differs from the tables is
 * also EMODULE here. */
int registry_probe(const char *path, int timeout_ms, char *reason, size_t size);
/* Whether a process that loads the file lives on, good or bad as the module may be; if
 * not, reason says how it ended. True for a file whose note is refused: none loads it. */
bool registry_survives(const char *path, int timeout_ms, char *reason, size_t size);

#endif /* REGISTRY_PROBE_H */
