/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may be inside a context: one call of the application at a time.
 */
#include "core/arguments.h"
#include "engine/context/context.h"

int context_enter(strata_context *c, const char *function, strata_error *err)
{
    int status = arguments_check(
        err, function, (const struct argument[]){{"context", c}, {NULL, NULL}});
    if (status != STRATA_OK)
        return status;
    if (!atomic_flag_test_and_set_explicit(&c->busy, memory_order_acquire))
        return STRATA_OK;
    return error_set(err, STRATA_EBUSY,
                     "context is in use by another thread; make one context a thread");
}

int context_leave(strata_context *c, int status)
{
    atomic_flag_clear_explicit(&c->busy, memory_order_release);
    return status;
}
