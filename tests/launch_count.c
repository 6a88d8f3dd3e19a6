/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by scripts/gpu-sanitize.sh: counts the kernel launches of a program and of
 * its children in the file STRATA_LAUNCH_COUNT, so that a check which saw none cannot
 * pass. A library's own launches (cuBLAS, cuDNN) do not come by here.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNELS 8192 /* distinct ones, of all processes together */

/* The file: zeros at first. Kernels are told apart by process and handle. */
struct counts {
    atomic_uint_least64_t launches, kernels, seen[KERNELS];
};

static struct counts *open_counts(void)
{
    static struct counts *counts;
    const char *path = getenv("STRATA_LAUNCH_COUNT");
    if (counts || !path)
        return counts;
    int file = open(path, O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, sizeof *counts) != 0)
        abort(); /* a count that is lost must not look like one */
    void *map = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED)
        abort();
    return counts = map;
}

static void count(const void *kernel)
{
    struct counts *c = open_counts();
    uint_least64_t key =
        ((uint_least64_t)(uintptr_t)kernel ^ (uint_least64_t)getpid() << 40) | 1;
    if (!c)
        return;
    atomic_fetch_add(&c->launches, 1);
    for (size_t i = key / 16 % KERNELS, tries = 0; tries < KERNELS;
         i = (i + 1) % KERNELS, tries++) {
        uint_least64_t found = 0;
        if (atomic_compare_exchange_strong(&c->seen[i], &found, key))
            atomic_fetch_add(&c->kernels, 1);
        if (found == 0 || found == key)
            return;
    }
}

typedef cudaError_t launch(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);

/* What the compiler makes of <<<>>>. */
__attribute__((visibility("default"))) launch __cudaLaunchKernel;

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream)
{
    static launch *real;
    if (!real) {
        void *runtime = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
        real = runtime ? (launch *)dlsym(runtime, "__cudaLaunchKernel") : NULL;
    }
    count(kernel);
    return real ? real(kernel, grid, block, args, shared, stream)
                : cudaErrorSharedObjectSymbolNotFound;
}
