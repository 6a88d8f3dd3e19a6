/* SPDX-License-Identifier: Apache-2.0
 *
 * malloc of this program, in front of the C library's: it knows who asks, and can refuse.
 * The loader binds modules to it because the program comes first. Left out where a
 * sanitizer has put its own in that place.
 */
#include "check/check.h"

#include <strata/plugin.h>

/* The names of plugin.h are no macros, so the preprocessor cannot compare them. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *ptr, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_uintptr_t begin_at, end_at; /* of the module watched; end 0: none */
static atomic_uint counted, refused;      /* refused: which one, or 0 */

/* Whether this request is to be refused. */
static bool refuse_now(const void *caller)
{
    const uintptr_t at = (uintptr_t)caller;
    if (at >= atomic_load_explicit(&end_at, memory_order_relaxed) ||
        at < atomic_load_explicit(&begin_at, memory_order_relaxed))
        return false;
    if (atomic_fetch_add(&counted, 1) + 1 != atomic_load(&refused))
        return false;
    errno = ENOMEM;
    return true;
}
/* Where the loader finds them. */
#pragma GCC visibility push(default)
#define REFUSED refuse_now(__builtin_return_address(0))

void *malloc(size_t bytes)
{
    return REFUSED ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return REFUSED ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *ptr, size_t bytes)
{
    return REFUSED ? NULL : __libc_realloc(ptr, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return REFUSED ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *ptr = REFUSED ? NULL : __libc_memalign(alignment, bytes);
    if (!ptr)
        return ENOMEM;
    *out = ptr;
    return 0;
}

#pragma GCC visibility pop

static void watch(const void *begin, const void *end)
{
    atomic_store(&counted, 0);
    atomic_store(&refused, 0);
    atomic_store(&begin_at, (uintptr_t)begin);
    atomic_store(&end_at, (uintptr_t)end);
}

static void refuse(unsigned k)
{
    atomic_store(&counted, 0);
    atomic_store(&refused, k);
}

static unsigned count(void)
{
    return atomic_load(&counted);
}

static void stop(void)
{
    watch(NULL, NULL);
}

static const struct check_allocations allocations = {watch, refuse, count, stop};

__attribute__((constructor)) static void offer(void)
{
    check_allocations = &allocations;
}

#endif
