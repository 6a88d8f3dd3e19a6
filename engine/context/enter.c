/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may be inside a context: one call of the application at a time. What that would
 * only wait for it computes itself where it can: waking another thread takes longer than
 * many layers do.
 */
#include "core/arguments.h"
#include "core/team.h"
#include "engine/context/context.h"

int context_enter(strata_context *c, const char *function, strata_error *err)
{
    int status = arguments_check(err, function,
                                 (const struct argument[]){{"context", c}, {NULL, NULL}});
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

void context_visit(strata_context *c, int threads)
{
    const struct device_ops *ops = c->handle->device->ops;
    if (c->visits > 0 || (ops->stream_visit &&
                          ops->stream_visit(c->stream, threads, c->engine->wait)))
        c->visits++;
    if (c->visits == 1)
        c->threads_before = threads_set(0);
}

void context_end_visit(strata_context *c)
{
    if (c->visits == 0 || --c->visits > 0)
        return;
    threads_set(c->threads_before);
    c->handle->device->ops->stream_visit(c->stream, 0, 0);
}
