/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of layers that might be fused. What was known before a plan is kept, so
 * that what another plan does with them can be noted in its place.
 */
#include "planner/fuse/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static int say(struct planner_fusion *f, bool possible, int into, strata_error *err,
               const char *format, va_list list)
{
    char text[400];
    vsnprintf(text, sizeof text, format, list);
    free(f->reason);
    f->possible = possible;
    f->into = into;
    return (f->reason = duplicate(text, err)) ? STRATA_OK : STRATA_ENOMEM;
}

int notes_say(struct planner_fusion *f, bool possible, int into, strata_error *err,
              const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int status = say(f, possible, into, err, format, list);
    va_end(list);
    return status;
}

int notes_add(struct planner_fusion *f, bool possible, int into, strata_error *err,
              const char *format, ...)
{
    va_list list;
    if (f->possible || (f->reason && !possible))
        return STRATA_OK;
    va_start(list, format);
    const int status = say(f, possible, into, err, format, list);
    va_end(list);
    return status;
}

/* ---- as they were ------------------------------------------------------------------ */

static int copy(struct planner_fusion *to, const struct planner_fusion *from, size_t n,
                strata_error *err)
{
    for (size_t i = 0; i < n; i++) {
        free(to[i].reason);
        to[i] = from[i];
        to[i].reason = NULL;
        if (from[i].reason && !(to[i].reason = duplicate(from[i].reason, err)))
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

int planner_unnote_fusions(struct planner *planner, strata_error *err)
{
    const size_t n = planner->n_fusions;
    if (planner->unnoted)
        return copy(planner->fusions, planner->unnoted, n, err);
    planner->unnoted = zalloc(n, sizeof *planner->unnoted, "fusions", err);
    return planner->unnoted ? copy(planner->unnoted, planner->fusions, n, err)
                            : STRATA_ENOMEM;
}

void planner_free_fusions(struct planner *planner)
{
    for (size_t i = 0; i < planner->n_fusions; i++) {
        if (planner->fusions)
            free(planner->fusions[i].reason);
        if (planner->unnoted)
            free(planner->unnoted[i].reason);
    }
    free(planner->fusions);
    free(planner->unnoted);
}
