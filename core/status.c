/* SPDX-License-Identifier: Apache-2.0
 *
 * Status texts, messages in a strata_error, the process-wide logger, did-you-mean.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "core/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static const char *const status_texts[] = {
    [STRATA_OK] = "success",
    [STRATA_EINVAL] = "invalid argument",
    [STRATA_ENOMEM] = "out of memory",
    [STRATA_EOVERFLOW] = "size overflow",
    [STRATA_EIO] = "input/output error",
    [STRATA_ENOTFOUND] = "not found",
    [STRATA_EPARSE] = "malformed file",
    [STRATA_EUNSUPPORTED] = "not supported here",
    [STRATA_EBUSY] = "object is in use",
    [STRATA_EMODULE] = "plugin refused",
    [STRATA_EPLAN] = "no plan satisfies the constraints",
    [STRATA_EDEVICE] = "device error",
    [STRATA_EDEVICELOST] = "device lost",
    [STRATA_EMISMATCH] = "mismatch",
    [STRATA_EINTERNAL] = "internal error",
};

static const char *const level_names[] = {
    [STRATA_LOG_ERROR] = "error",
    [STRATA_LOG_WARNING] = "warning",
    [STRATA_LOG_INFO] = "info",
    [STRATA_LOG_DEBUG] = "debug",
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static strata_log_fn log_fn; /* guarded by log_lock */
static void *log_user;       /* guarded by log_lock */
static atomic_int log_limit = STRATA_LOG_WARNING;

const char *strata_version(void)
{
    return PACKAGE_VERSION;
}

int strata_version_number(void)
{
    return STRATA_VERSION_NUMBER;
}

const char *strata_status_text(int status)
{
    if (status < 0 || (size_t)status >= ARRAY_LENGTH(status_texts))
        return "unknown status";
    return status_texts[status];
}

void error_clear(strata_error *err)
{
    if (!err)
        return;
    err->status = STRATA_OK;
    err->length = 0;
    err->message[0] = '\0';
}

/* What does not fit is left out from the end of a line, which is said. */
static const char left_out[] = "\n(the rest is left out)";

static bool is_cut(const strata_error *err)
{
    const size_t n = sizeof left_out - 1;
    return err->length >= n && strcmp(err->message + err->length - n, left_out) == 0;
}

static void cut(strata_error *err, size_t n)
{
    const size_t room = sizeof err->message - sizeof left_out;
    const char *line = memrchr(err->message, '\n', n < room ? n : room);
    n = line ? (size_t)(line - err->message) : n < room ? n : room;
    memcpy(err->message + n, left_out, sizeof left_out);
    err->length = (uint32_t)(n + sizeof left_out - 1);
}

/* Names in messages come from files: what a terminal would obey is taken out here. */
static void append_va(strata_error *err, const char *format, va_list args)
{
    const size_t room = sizeof err->message - err->length;
    char *text = err->message + err->length;
    if (is_cut(err))
        return;
    int n = vsnprintf(text, room, format, args);
    if (n <= 0)
        return;
    err->length += (uint32_t)text_clean(text, strlen(text), true);
    if ((size_t)n >= room)
        cut(err, err->length);
}

int error_set_va(strata_error *err, int code, const char *format, va_list args)
{
    if (!err || err->status != STRATA_OK)
        return code;
    error_clear(err);
    err->status = code;
    append_va(err, format, args);
    return code;
}

int error_set(strata_error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set_va(err, code, format, args);
    va_end(args);
    return code;
}

void error_append(strata_error *err, const char *format, ...)
{
    va_list args;
    if (!err)
        return;
    va_start(args, format);
    append_va(err, format, args);
    va_end(args);
}

void error_prefix(strata_error *err, const char *format, ...)
{
    char prefix[512];
    va_list args;
    if (!err || err->status == STRATA_OK)
        return;
    va_start(args, format);
    int written = vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    if (written < 0)
        return;
    const size_t n = text_clean(prefix, strlen(prefix), true);
    const size_t room = sizeof err->message - 3 - n;
    const bool fits = err->length <= room;
    const size_t kept = fits ? err->length : room;
    memmove(err->message + n + 2, err->message, kept);
    memcpy(err->message, prefix, n);
    memcpy(err->message + n, ": ", 2);
    err->length = (uint32_t)(kept + n + 2);
    err->message[err->length] = '\0';
    if (!fits)
        cut(err, err->length);
}

bool error_has_place(const strata_error *err)
{
    const char *text = err ? err->message : "";
    const char *end = strstr(text, ": error: "), *line = strchr(text, '\n');
    if (!end || (line && line < end))
        return false;
    if (strncmp(text, "--set ", 6) == 0 || strncmp(text, "-D ", 3) == 0)
        return true;
    const char *at = end;
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at < end && at > text + 1 && at[-1] == ':';
}

int error_no_memory(strata_error *err, size_t bytes, const char *what)
{
    if (bytes == 0)
        return error_set(err, STRATA_ENOMEM, "out of memory for %s", what);
    return error_set(err, STRATA_ENOMEM, "out of memory: %zu bytes for %s", bytes, what);
}

int status_of_errno(int number, int otherwise)
{
    const bool system = number == EIO || number == EMFILE || number == ENFILE;
    return number == ENOMEM ? STRATA_ENOMEM : system ? STRATA_EIO : otherwise;
}

int error_errno(strata_error *err, int code, const char *format, ...)
{
    int saved = errno;
    va_list args;
    if (!err || err->status != STRATA_OK)
        return code;
    va_start(args, format);
    error_set_va(err, code, format, args);
    va_end(args);
    error_append(err, ": %s", strerror(saved));
    return code;
}

void strata_set_logger(strata_log_fn fn, void *user, int level)
{
    pthread_mutex_lock(&log_lock);
    log_fn = fn;
    log_user = user;
    pthread_mutex_unlock(&log_lock);
    atomic_store_explicit(&log_limit, level, memory_order_relaxed);
}

int log_level(void)
{
    return atomic_load_explicit(&log_limit, memory_order_relaxed);
}

void log_line_va(int level, const char *format, va_list args)
{
    char text[2048];
    if (level > log_level() || level < 0 || (size_t)level >= ARRAY_LENGTH(level_names))
        return;
    vsnprintf(text, sizeof text, format, args);
    text_clean(text, strlen(text), true);
    pthread_mutex_lock(&log_lock);
    if (log_fn)
        log_fn(log_user, level, text);
    else
        fprintf(stderr, "strata: %s: %s\n", level_names[level], text);
    pthread_mutex_unlock(&log_lock);
}

void log_line(int level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_line_va(level, format, args);
    va_end(args);
}

/* Insertions, deletions, changes and swaps of neighbours (optimal string alignment).
 * Words longer than the rows never match. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][65];
    size_t n = strlen(a), m = strlen(b);
    if (n > 64 || m > 64)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        const size_t *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t least = above[j - 1] + (a[i - 1] != b[j - 1]);
            least = above[j] + 1 < least ? above[j] + 1 : least;
            least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < least)
                least = before[j - 2] + 1;
            row[j] = least;
        }
    }
    return rows[n % 3][m];
}

const char *suggest(const char *word, const char *const *names, size_t n)
{
    size_t length = strlen(word);
    size_t limit = length / 3 < 1 ? 1 : length / 3 < 2 ? length / 3 : 2;
    size_t best = limit + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(word, names[i]);
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
