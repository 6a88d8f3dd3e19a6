/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that need a GPU: without one they skip by name, or fail where
 * STRATA_REQUIRE_DEVICE=1 says that there must be one.
 */
#ifndef TESTS_CUDA_DEVICE_H
#define TESTS_CUDA_DEVICE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/handle.h"

static inline strata_handle *need_cuda(void)
{
    strata_handle *h = NULL;
    strata_error err = {0};
    if (strata_create(&h, "cuda:0", &err) == STRATA_OK)
        return h;
    const char *required = getenv("STRATA_REQUIRE_DEVICE");
    if (required && strcmp(required, "1") == 0)
        cr_assert(0, "a device is required: %s", err.message);
    cr_skip_test("no CUDA device");
    return NULL;
}

#endif /* TESTS_CUDA_DEVICE_H */
