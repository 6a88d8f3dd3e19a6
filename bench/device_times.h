/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a handle's host time goes: its calls of the device, counted and timed by kind.
 * One handle at a time.
 */
#ifndef BENCH_DEVICE_TIMES_H
#define BENCH_DEVICE_TIMES_H

#include "core/handle.h"

/* Before anything was allocated through the handle. */
int device_times_watch(strata_handle *h, strata_error *err);
void device_times_reset(void);
/* A line of all kinds since the last reset and what is left of `ms`; then the slowest
 * pieces of work, named by name(user, n) for the n-th one. */
void device_times_print(const char *title, double ms,
                        const char *(*name)(const void *user, size_t n),
                        const void *user);

#endif /* BENCH_DEVICE_TIMES_H */
