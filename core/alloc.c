/* SPDX-License-Identifier: Apache-2.0
 *
 * The counting allocator front and the library's own small allocations.
 */
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/checked.h"

enum { HUGE_PAGE = 2 << 20 };

/* Making small pages one by one takes longer than filling them. The huge ones lie within
 * the block, so it grows by nothing. */
static void wish_huge_pages(void *block, size_t bytes)
{
    const uintptr_t from =
        ((uintptr_t)block + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    const uintptr_t to = ((uintptr_t)block + bytes) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (block && to > from)
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
}

static void *host_alloc(void *user, size_t bytes, size_t alignment)
{
    size_t rounded;
    (void)user;
    alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : alignment; /* only its end is small */
    if (!checked_size_add(bytes, alignment - 1, &rounded))
        return NULL;
    void *block = aligned_alloc(alignment, rounded / alignment * alignment);
    wish_huge_pages(block, bytes);
    return block;
}

static void host_free(void *user, void *ptr, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(ptr);
}

strata_allocator host_memory(void)
{
    return (strata_allocator){.alloc = host_alloc, .free = host_free};
}

int allocator_init(struct allocator *a, strata_allocator callbacks, strata_error *err)
{
    memset(a, 0, sizeof *a);
    a->callbacks = callbacks;
    if (pthread_mutex_init(&a->lock, NULL) != 0)
        return error_set(err, STRATA_ENOMEM, "cannot create the allocator's lock");
    return STRATA_OK;
}

void allocator_destroy(struct allocator *a)
{
    pthread_mutex_destroy(&a->lock);
}

/* Called with the lock held. */
static void tell_observer(struct allocator *a, const void *ptr, size_t bytes,
                          const char *what)
{
    const strata_memory_event event = {ptr, bytes, what, a->stats.current_bytes};
    if (a->observer)
        a->observer(a->observer_user, &event);
}

static void count_block(struct allocator *a, const void *ptr, size_t bytes,
                        const char *what)
{
    pthread_mutex_lock(&a->lock);
    if (ptr) {
        a->stats.allocations++;
        a->stats.current_blocks++;
        a->stats.total_bytes += bytes;
        a->stats.current_bytes += bytes;
        if (a->stats.peak_bytes < a->stats.current_bytes)
            a->stats.peak_bytes = a->stats.current_bytes;
        tell_observer(a, ptr, bytes, what);
    } else {
        a->stats.failures++;
    }
    pthread_mutex_unlock(&a->lock);
}

static void note_free_bytes(struct allocator *a, strata_error *err)
{
    const uint64_t bytes = a->free_bytes(a->device);
    if (bytes > 0)
        error_append(err,
                     "; the device has %llu bytes free: use a smaller batch, or free "
                     "memory of other programs",
                     (unsigned long long)bytes);
}

void *allocator_get(struct allocator *a, size_t bytes, const char *what,
                    strata_error *err)
{
    void *ptr =
        a->callbacks.alloc(a->callbacks.user, bytes ? bytes : 1, TENSOR_ALIGNMENT);
    count_block(a, ptr, bytes, what);
    if (!ptr) {
        error_no_memory(err, bytes, what);
        if (a->free_bytes)
            note_free_bytes(a, err);
    }
    return ptr;
}

void allocator_put(struct allocator *a, void *ptr, size_t bytes)
{
    if (!ptr)
        return;
    a->callbacks.free(a->callbacks.user, ptr, bytes ? bytes : 1);
    pthread_mutex_lock(&a->lock);
    a->stats.current_blocks--;
    a->stats.current_bytes -= bytes;
    tell_observer(a, ptr, bytes, NULL);
    pthread_mutex_unlock(&a->lock);
}

void allocator_observe(struct allocator *a, strata_memory_fn fn, void *user)
{
    pthread_mutex_lock(&a->lock);
    a->observer = fn;
    a->observer_user = user;
    pthread_mutex_unlock(&a->lock);
}

void allocator_stats(struct allocator *a, strata_memory_stats *out)
{
    pthread_mutex_lock(&a->lock);
    *out = a->stats;
    pthread_mutex_unlock(&a->lock);
}

void *zalloc(size_t n, size_t size, const char *what, strata_error *err)
{
    void *ptr = calloc(n ? n : 1, size);
    if (!ptr) {
        size_t bytes;
        error_no_memory(err, checked_size_mul(n, size, &bytes) ? bytes : SIZE_MAX, what);
    }
    return ptr;
}

char *duplicate(const char *text, strata_error *err)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (!copy) {
        error_no_memory(err, size, "a string");
        return NULL;
    }
    return memcpy(copy, text, size);
}

int grow(void *array, size_t *capacity, size_t n, size_t size, strata_error *err)
{
    void *old, *bigger;
    size_t room = *capacity ? *capacity : 8, bytes;
    if (n < *capacity)
        return STRATA_OK;
    while (room <= n)
        if (!checked_size_mul(room, 2, &room))
            return error_no_memory(err, SIZE_MAX, "a list");
    if (!checked_size_mul(room, size, &bytes))
        return error_no_memory(err, SIZE_MAX, "a list");
    memcpy(&old, array, sizeof old);
    bigger = realloc(old, bytes);
    if (!bigger)
        return error_no_memory(err, bytes, "a list");
    memset((char *)bigger + *capacity * size, 0, (room - *capacity) * size);
    memcpy(array, &bigger, sizeof bigger);
    *capacity = room;
    return STRATA_OK;
}
