/* SPDX-License-Identifier: Apache-2.0
 *
 * What making a session and running it share.
 */
#ifndef CHECK_HARNESS_SESSION_PRIVATE_H
#define CHECK_HARNESS_SESSION_PRIVATE_H

#include "check/harness/session.h"

bool session_block(struct session *s, struct block *b, size_t bytes,
                   enum mirror_kind kind);
/* What a plugin is given. */
void *session_address(const struct block *b);
/* A tensor as the host sees its block. */
strata_tensor session_view(const strata_tensor *t, const struct block *b);
/* Every block a plugin may see, for what is done to all of them. */
typedef int (*session_visit)(struct session *s, struct block *b, const char *what,
                             int index);
int session_each_block(struct session *s, session_visit visit);

#endif /* CHECK_HARNESS_SESSION_PRIVATE_H */
