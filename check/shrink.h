/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest shape that still breaks a rule.
 */
#ifndef CHECK_SHRINK_H
#define CHECK_SHRINK_H

#include "check/check.h"

/* Whether a shape breaks the same rule; it then replaces *f by what it found. */
typedef bool (*shrink_try)(const char *shapes, struct check_finding *f, void *user);

/* Make the dims of f's shapes smaller one by one, in at most `tries` attempts. */
void shrink_finding(struct check_finding *f, int tries, shrink_try attempt, void *user);

#endif /* CHECK_SHRINK_H */
