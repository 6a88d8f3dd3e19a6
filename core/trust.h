/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a file runs its code, so only root and the user may be able to write it.
 */
#ifndef CORE_TRUST_H
#define CORE_TRUST_H

#include <stdbool.h>

#include "core/status.h"

/* Check a file and its folder; `resolved` holds no symbolic links. `named` says that the
 * user named this very file, which then may lie in a sticky folder such as /tmp.
 * EMODULE with the command that mends it. */
int trust_check(const char *resolved, bool named, strata_error *err);

/* The same of a file that nobody named; links in its path are followed. */
int trust_path(const char *path, strata_error *err);

#endif /* CORE_TRUST_H */
