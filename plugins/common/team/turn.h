/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers by turns: what schedule(dynamic) does for the threads of a region, but in its
 * own memory, as team.c asks for. Nobody waits at the end.
 *
 *     int64_t next = 0;
 * #pragma omp parallel
 *     for (int64_t i; team_turn(&next, n, &i);)
 */
#ifndef PLUGINS_COMMON_TEAM_TURN_H
#define PLUGINS_COMMON_TEAM_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* The next of n numbers, which no other thread has; false: all are taken. */
static inline bool team_turn(int64_t *next, int64_t n, int64_t *i)
{
    *i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    return *i < n;
}

#endif /* PLUGINS_COMMON_TEAM_TURN_H */
