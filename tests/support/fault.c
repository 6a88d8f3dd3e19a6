/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrappers of what can fail. Blocks are kept in a set: memory of the C library that the
 * library frees is none of ours.
 */
#include "tests/support/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SET_SIZE = 1 << 20 };

static atomic_int armed = -1; /* a kind */
static atomic_long calls, failing;
static atomic_bool lasts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the set */
static uintptr_t set[SET_SIZE];
static long blocks;

/* ---- control ------------------------------------------------------------------------
 */

static bool fails(enum fault_kind kind)
{
    if (atomic_load(&armed) != (int)kind)
        return false;
    const long k = atomic_fetch_add(&calls, 1) + 1, at = atomic_load(&failing);
    return at > 0 && (k == at || (k > at && atomic_load(&lasts)));
}

void fault_arm(enum fault_kind kind, long at, bool lasting)
{
    atomic_store(&calls, 0);
    atomic_store(&failing, at);
    atomic_store(&lasts, lasting);
    atomic_store(&armed, (int)kind);
}

long fault_disarm(void)
{
    atomic_store(&armed, -1);
    return atomic_load(&calls);
}

long fault_blocks(void)
{
    pthread_mutex_lock(&lock);
    const long n = blocks;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- the set: open addressing, entries moved back when one is taken out --------------
 */

static size_t home(uintptr_t p)
{
    return (size_t)(p * UINT64_C(0x9e3779b97f4a7c15) >> 44);
}

static void *keep(void *ptr)
{
    if (!ptr)
        return NULL;
    pthread_mutex_lock(&lock);
    size_t i = home((uintptr_t)ptr);
    while (set[i])
        i = (i + 1) % SET_SIZE;
    set[i] = (uintptr_t)ptr;
    blocks++;
    pthread_mutex_unlock(&lock);
    return ptr;
}

static void drop(void *ptr)
{
    pthread_mutex_lock(&lock);
    size_t i = home((uintptr_t)ptr);
    while (set[i] && set[i] != (uintptr_t)ptr)
        i = (i + 1) % SET_SIZE;
    if (set[i] && ptr) {
        blocks--;
        set[i] = 0;
        for (size_t k = (i + 1) % SET_SIZE; set[k]; k = (k + 1) % SET_SIZE) {
            const size_t want = home(set[k]);
            if ((k - want) % SET_SIZE >= (k - i) % SET_SIZE) {
                set[i] = set[k];
                set[k] = 0;
                i = k;
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- memory ---------------------------------------------------------------------------
 */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : keep(__real_malloc(size));
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : keep(__real_calloc(n, size));
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : keep(__real_aligned_alloc(alignment, size));
}

void *__real_realloc(void *ptr, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_realloc(void *ptr, size_t size)
{
    if (fails(FAULT_MEMORY))
        return NULL;
    drop(ptr);
    return keep(__real_realloc(ptr, size));
}

char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n)
{
    return fails(FAULT_MEMORY) ? NULL : keep(__real_strndup(text, n));
}

int __real_vasprintf(char **text, const char *format, va_list args);
int __wrap_vasprintf(char **text, const char *format, va_list args);
int __wrap_vasprintf(char **text, const char *format, va_list args)
{
    if (fails(FAULT_MEMORY)) {
        *text = NULL;
        return -1;
    }
    const int n = __real_vasprintf(text, format, args);
    if (n >= 0)
        keep(*text);
    return n;
}

int __wrap_asprintf(char **text, const char *format, ...);
int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = __wrap_vasprintf(text, format, args);
    va_end(args);
    return n;
}

char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved)
{
    errno = ENOMEM;
    if (!resolved && fails(FAULT_MEMORY))
        return NULL;
    char *made = __real_realpath(path, resolved);
    return resolved ? made : keep(made);
}

void __real_free(void *ptr);
void __wrap_free(void *ptr);
void __wrap_free(void *ptr)
{
    const int before = errno;
    drop(ptr);
    __real_free(ptr);
    errno = before;
}

FILE *__real_fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions);
FILE *__wrap_fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions);
FILE *__wrap_fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions)
{
    errno = ENOMEM;
    return fails(FAULT_MEMORY) ? NULL : __real_fopencookie(cookie, mode, functions);
}

static atomic_bool json_fails;

static void *json_memory(size_t size)
{
    return atomic_load(&json_fails) && fails(FAULT_MEMORY) ? NULL
                                                           : keep(__real_malloc(size));
}

void fault_json(bool on)
{
    json_set_alloc_funcs(json_memory, __wrap_free);
    atomic_store(&json_fails, on);
}

/* ---- files ----------------------------------------------------------------------------
 */

static bool fails_io(void)
{
    errno = EIO;
    return fails(FAULT_IO);
}

#define MODE_OF(flags, mode)                                                             \
    do {                                                                                 \
        va_list list;                                                                    \
        va_start(list, flags);                                                           \
        mode = (flags)&O_CREAT ? va_arg(list, unsigned) : 0;                             \
        va_end(list);                                                                    \
    } while (0)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    unsigned mode;
    MODE_OF(flags, mode);
    return fails_io() ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...)
{
    unsigned mode;
    MODE_OF(flags, mode);
    return fails_io() ? -1 : __real_openat(folder, path, flags, mode);
}

/* How much of a transfer is done, or -1. */
static ssize_t transfer(size_t n)
{
    if (fails_io())
        return -1;
    errno = EINTR;
    if (fails(FAULT_INTERRUPTED))
        return -1;
    return n > 1 && fails(FAULT_SHORT) ? 1 : (ssize_t)n;
}

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
    const ssize_t some = transfer(n);
    return some < 0 ? some : __real_read(fd, to, (size_t)some);
}

ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
    const ssize_t some = transfer(n);
    return some < 0 ? some : __real_pread(fd, to, (size_t)some, at);
}

ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    const ssize_t some = transfer(n);
    return some < 0 ? some : __real_write(fd, from, (size_t)some);
}

/* As on Linux: the descriptor is gone either way. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    const int result = __real_close(fd);
    return fails_io() ? -1 : result;
}

#define PLAIN_FAULT(name, parameters, arguments)                                         \
    int __real_##name parameters;                                                        \
    int __wrap_##name parameters;                                                        \
    int __wrap_##name parameters                                                         \
    {                                                                                    \
        return fails_io() ? -1 : __real_##name arguments;                                \
    }

PLAIN_FAULT(fstat, (int fd, struct stat *out), (fd, out))
PLAIN_FAULT(stat, (const char *path, struct stat *out), (path, out))
PLAIN_FAULT(lstat, (const char *path, struct stat *out), (path, out))
PLAIN_FAULT(fsync, (int fd), (fd))
PLAIN_FAULT(rename, (const char *from, const char *to), (from, to))
