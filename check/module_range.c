/* SPDX-License-Identifier: Apache-2.0
 *
 * The mapping that an address belongs to, from the loader's own list.
 */
#include "check/module_range.h"

#include <link.h>
#include <string.h>

struct query {
    uintptr_t address, begin, end;
};

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    struct query *q = user;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + p->p_memsz > end ? at + p->p_memsz : end;
    }
    if (q->address < begin || q->address >= end)
        return 0;
    q->begin = begin;
    q->end = end;
    return 1;
}

bool module_range(int (*function)(const strata_run *r), const void **begin,
                  const void **end)
{
    struct query q = {0};
    memcpy(&q.address, &function, sizeof q.address);
    if (!dl_iterate_phdr(look, &q))
        return false;
    memcpy(begin, &q.begin, sizeof *begin);
    memcpy(end, &q.end, sizeof *end);
    return true;
}
