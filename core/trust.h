/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a file runs its code, so only root and the user may be able to write it.
 */
#ifndef CORE_TRUST_H
#define CORE_TRUST_H

#include <limits.h>
#include <stdbool.h>

#include "core/status.h"

/* Check a file and every folder above it; `resolved` holds no symbolic links. `named`
 * says that the user named this very file, which then may lie in a sticky folder such as
 * /tmp. Afterwards only root and the user can make the path lead to another file, so that
 * it may be opened by it, any number of times. EMODULE with the command that mends it. */
int trust_check(const char *resolved, bool named, strata_error *err);

/* The same of a file that nobody named. Links in its path are followed; `resolved` is the
 * path that was judged and the one to open. */
int trust_path(const char *path, char resolved[PATH_MAX], strata_error *err);

#endif /* CORE_TRUST_H */
