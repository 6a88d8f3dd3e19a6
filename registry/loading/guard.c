/* SPDX-License-Identifier: Apache-2.0
 *
 * The guard is a handler of exit that knows which module its thread is loading.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/loading/guard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/status.h"

enum { ENDED_BY_MODULE = 2 }; /* as for any configuration that cannot be used */

static _Thread_local const char *loading;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void at_exit(void)
{
    if (!loading)
        return;
    log_line(STRATA_LOG_ERROR,
             "plugin %s: it called exit while it was loaded, which ends this process; "
             "remove it, or see `strata list --rejected`",
             loading);
    fflush(NULL);
    _exit(ENDED_BY_MODULE);
}

static void install(void)
{
    atexit(at_exit); /* without memory for it there is no guard */
}

void guard_arm(const char *path)
{
    if (path)
        pthread_once(&once, install);
    loading = path;
}

const char *guard_loading(void)
{
    return loading;
}
