/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's own functions, for libraries that stand before them.
 */
#ifndef TESTS_CUDA_RUNTIME_H
#define TESTS_CUDA_RUNTIME_H

#include <dlfcn.h>
#include <stdlib.h>

/* Of the runtime that the process has loaded. */
static inline void *runtime(const char *name)
{
    void *library = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        abort();
    return found;
}

#endif /* TESTS_CUDA_RUNTIME_H */
