/* SPDX-License-Identifier: Apache-2.0
 *
 * A list that only grows: an entry is written before it can be seen.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/loading/mapped.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { MOST = 512 };

static struct mapped all[MOST];
static atomic_size_t n_all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who add */

/* Segments of the module that user->base and user->path tell of. */
static int measure(struct dl_phdr_info *info, size_t size, void *user)
{
    struct mapped *m = user;
    (void)size;
    if (info->dlpi_addr != m->base || info->dlpi_name != m->path)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        m->begin = m->end == 0 || at < m->begin ? at : m->begin;
        m->end = at + p->p_memsz > m->end ? at + p->p_memsz : m->end;
    }
    return 1;
}

void mapped_add(void *handle)
{
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return;
    struct mapped m = {.path = map->l_name, .base = map->l_addr};
    if (!dl_iterate_phdr(measure, &m) || m.end == 0)
        return;
    pthread_mutex_lock(&lock);
    const size_t n = atomic_load_explicit(&n_all, memory_order_relaxed);
    if (n < MOST && !mapped_at(m.begin)) {
        all[n] = m;
        atomic_store_explicit(&n_all, n + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
}

const struct mapped *mapped_at(uintptr_t address)
{
    const size_t n = atomic_load_explicit(&n_all, memory_order_acquire);
    for (size_t i = 0; i < n; i++)
        if (address >= all[i].begin && address < all[i].end)
            return &all[i];
    return NULL;
}
