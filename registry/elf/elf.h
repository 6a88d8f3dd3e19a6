/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the dynamic loader can work through a shared object. It checks next to nothing
 * itself: a table that leads out of the file kills the process inside dlopen.
 */
#ifndef REGISTRY_ELF_ELF_H
#define REGISTRY_ELF_ELF_H

#include <elf.h>
#include <stdbool.h>

#include "core/status.h"

/* The bytes of a file in memory (fd < 0), or behind a descriptor. */
struct elf_source {
    const unsigned char *bytes;
    int fd;
    uint64_t size;
    int *failed; /* with fd: gets errno of a read that failed */
};

/* False where [at, at + n) is not in the file, or cannot be read. */
bool elf_read(const struct elf_source *s, uint64_t at, void *out, size_t n);

/* Check section headers, and all that the dynamic section leads the loader to: strings,
 * symbols, hash, versions, relocations, initialisers. The header and the n segments were
 * judged before: they lie in the file. EMODULE names the table that is damaged. */
int elf_check(const struct elf_source *s, const Elf64_Ehdr *header,
              const Elf64_Phdr *segments, size_t n, strata_error *err);

#endif /* REGISTRY_ELF_ELF_H */
