/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may be inside a context: one call of the application at a time.
 */
#include "engine/context/context.h"

int context_enter(strata_context *c, strata_error *err)
{
    error_clear(err);
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
