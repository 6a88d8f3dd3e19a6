/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_MODULE_RANGE_H
#define CHECK_MODULE_RANGE_H

#include <stdbool.h>

#include <strata/plugin.h>

/* Where the module that holds a function is mapped. */
bool module_range(int (*function)(const strata_run *r), const void **begin,
                  const void **end);

#endif /* CHECK_MODULE_RANGE_H */
