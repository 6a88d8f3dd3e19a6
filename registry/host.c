/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of functions that every plugin gets, and the extensions behind it.
 */
#include "registry/host.h"

#include <pthread.h>
#include <string.h>

#include "registry/registry.h"

#define MAX_EXTENSIONS 16

struct extension {
    const char *id;
    const void *table;
};

static pthread_mutex_t extensions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct extension extensions[MAX_EXTENSIONS]; /* guarded by extensions_lock */
static size_t n_extensions;                         /* guarded by extensions_lock */

/* An entry function gets no strata_error, yet may say why it returns NULL. */
static _Thread_local strata_error *caught;

static int host_fail(strata_error *err, int code, const char *format, ...)
    PRINTF_LIKE(3, 4);
static int host_fail(strata_error *err, int code, const char *format, ...)
{
    va_list args;
    if (code == STRATA_OK) /* a failure must not look like success */
        code = STRATA_EINTERNAL;
    if (!format)
        return error_set(err ? err : caught, code, "%s", strata_status_text(code));
    va_start(args, format);
    code = error_set_va(err ? err : caught, code, format, args);
    va_end(args);
    return code;
}

static void host_log(int level, const char *format, ...) PRINTF_LIKE(2, 3);
static void host_log(int level, const char *format, ...)
{
    va_list args;
    if (!format)
        return;
    va_start(args, format);
    log_line_va(level, format, args);
    va_end(args);
}

static struct extension *find_extension(const char *id)
{
    for (size_t i = 0; i < n_extensions; i++)
        if (!strcmp(extensions[i].id, id))
            return &extensions[i];
    return NULL;
}

static const void *host_extension(const char *id)
{
    if (!id)
        return NULL;
    pthread_mutex_lock(&extensions_lock);
    const struct extension *e = find_extension(id);
    const void *table = e ? e->table : NULL;
    pthread_mutex_unlock(&extensions_lock);
    return table;
}

static const strata_host host = {
    .struct_size = sizeof(strata_host),
    .abi_major = STRATA_ABI_MAJOR,
    .abi_minor = STRATA_ABI_MINOR,
    .fail = host_fail,
    .log = host_log,
    .extension = host_extension,
};

void host_catch(strata_error *err)
{
    caught = err;
}

int registry_set_extension(const char *id, const void *table)
{
    int status = STRATA_OK;
    pthread_mutex_lock(&extensions_lock);
    struct extension *e = find_extension(id);
    if (e)
        e->table = table;
    else if (n_extensions < MAX_EXTENSIONS)
        extensions[n_extensions++] = (struct extension){id, table};
    else
        status = STRATA_EINTERNAL;
    pthread_mutex_unlock(&extensions_lock);
    return status;
}

const strata_host *registry_host(void)
{
    return &host;
}
