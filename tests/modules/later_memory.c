/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of later_device.c, and what of the host's it has pinned.
 */
#include "tests/modules/later_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct pinned {
    struct pinned *next;
    char *from;
    size_t bytes;
} * pinned;
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

static void *take(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *block =
        aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (block)
        memset(block, 0xcd, bytes);
    return block;
}

static void put(void *user, void *block, size_t bytes)
{
    (void)user, (void)bytes;
    free(block);
}

strata_allocator later_memory(struct device *d)
{
    (void)d;
    return (strata_allocator){.alloc = take, .free = put};
}

static void *pin(void *user, size_t bytes, size_t alignment)
{
    struct pinned *p = malloc(sizeof *p);
    char *block = p ? take(user, bytes, alignment) : NULL;
    if (!block) {
        free(p);
        return NULL;
    }
    pthread_mutex_lock(&pinned_lock);
    *p = (struct pinned){pinned, block, bytes};
    pinned = p;
    pthread_mutex_unlock(&pinned_lock);
    return block;
}

static void unpin(void *user, void *block, size_t bytes)
{
    struct pinned **at = &pinned;
    pthread_mutex_lock(&pinned_lock);
    while (*at && (*at)->from != block)
        at = &(*at)->next;
    struct pinned *p = *at;
    if (p)
        *at = p->next;
    pthread_mutex_unlock(&pinned_lock);
    free(p);
    put(user, block, bytes);
}

strata_allocator later_host_memory(struct device *d)
{
    (void)d;
    return (strata_allocator){.alloc = pin, .free = unpin};
}

bool later_is_pinned(struct device *d, const void *data)
{
    (void)d;
    const uintptr_t at = (uintptr_t)data;
    pthread_mutex_lock(&pinned_lock);
    const struct pinned *p = pinned;
    while (p && (at < (uintptr_t)p->from || at >= (uintptr_t)p->from + p->bytes))
        p = p->next;
    pthread_mutex_unlock(&pinned_lock);
    return p != NULL;
}
