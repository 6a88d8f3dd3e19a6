/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the code of loaded modules lies, for who may neither wait nor allocate: the
 * loader can be asked only under its lock.
 */
#ifndef REGISTRY_LOADING_MAPPED_H
#define REGISTRY_LOADING_MAPPED_H

#include <stdint.h>

struct mapped {
    const char *path; /* the loader's, kept as long as the process lives */
    uintptr_t base;   /* what addresses in the file are relative to */
    uintptr_t begin, end;
};

/* What dlopen gave, never to be closed. Modules past the 512th are not kept. */
void mapped_add(void *handle);
/* The module whose code is at an address, or NULL; may be called in a signal handler. */
const struct mapped *mapped_at(uintptr_t address);

#endif /* REGISTRY_LOADING_MAPPED_H */
