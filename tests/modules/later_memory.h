/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of later_device.c: the device's has 0xcd in it, the host's is noted as pinned.
 */
#ifndef TESTS_MODULES_LATER_MEMORY_H
#define TESTS_MODULES_LATER_MEMORY_H

#include "core/device.h"

strata_allocator later_memory(struct device *d);
strata_allocator later_host_memory(struct device *d);
/* Whether data lies in memory of later_host_memory; from any thread. */
bool later_is_pinned(struct device *d, const void *data);

#endif /* TESTS_MODULES_LATER_MEMORY_H */
