/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by scripts/gpu-sanitize.sh: notes what kernels a program and its children
 * load and launch, so that a check which saw none cannot pass, and those it did not see
 * can be named. A library's own launches (cuBLAS, cuDNN) do not come by here.
 *
 * The file STRATA_LAUNCH_COUNT gets the number of launches, 8 bytes; the file of that
 * name with ".kernels" a line for each kernel that a process loads ("loaded LIBRARY
 * NAME") and one at its first launch there ("launched LIBRARY NAME"). A program that
 * finds launch_count_begin and calls it has a line of its own put there, and each
 * kernel's first launch behind it told again.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/runtime.h"

#define MOST_KERNELS 16384 /* of a process */

struct kernel {
    const void *host; /* what <<<>>> names */
    cudaKernel_t handle;
    const char *name;
    bool launched;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel kernels[MOST_KERNELS];
static size_t n_kernels;
static atomic_uint_least64_t *launches;
static int lines = -1;

/* A count that is lost must not look like one: every failure here ends the program. */
static void open_files(void)
{
    char path[4096];
    const char *base = getenv("STRATA_LAUNCH_COUNT");
    if (launches || !base)
        return;
    snprintf(path, sizeof path, "%s.kernels", base);
    const int file = open(base, O_RDWR | O_CREAT, 0644);
    lines = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0 || lines < 0 || ftruncate(file, sizeof *launches) != 0)
        abort();
    launches = mmap(NULL, sizeof *launches, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (launches == MAP_FAILED)
        abort();
}

static void write_line(const char *what, const struct kernel *k)
{
    Dl_info info;
    char line[4096];
    const char *library = dladdr(k->host, &info) ? info.dli_fname : "?";
    const char *slash = strrchr(library, '/');
    const int n = snprintf(line, sizeof line, "%s %s %s\n", what,
                           slash ? slash + 1 : library, k->name);
    if (lines >= 0 && (n >= (int)sizeof line || write(lines, line, (size_t)n) != n))
        abort();
}

/* ---- what the compiler's stubs call ---------------------------------------------- */

typedef void register_function(void **, const char *, char *, const char *, int, uint3 *,
                               uint3 *, dim3 *, dim3 *, int *);
typedef cudaError_t get_kernel(cudaKernel_t *, const void *);
typedef cudaError_t launch(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);

#define VISIBLE __attribute__((visibility("default")))
VISIBLE register_function __cudaRegisterFunction;
VISIBLE get_kernel __cudaGetKernel;
typedef cudaError_t launch_extended(const cudaLaunchConfig_t *, const void *, void **);
VISIBLE launch __cudaLaunchKernel;
VISIBLE launch_extended cudaLaunchKernelExC;
typedef cudaError_t launch_cooperative(const void *, dim3, dim3, void **, size_t,
                                       cudaStream_t);
VISIBLE launch_cooperative cudaLaunchCooperativeKernel;
VISIBLE void launch_count_begin(const char *line);

void __cudaRegisterFunction(void **module, const char *host, char *device,
                            const char *name, int limit, uint3 *thread, uint3 *block,
                            dim3 *threads, dim3 *blocks, int *warp)
{
    register_function *real = (register_function *)runtime("__cudaRegisterFunction");
    real(module, host, device, name, limit, thread, block, threads, blocks, warp);
    pthread_mutex_lock(&lock);
    open_files();
    if (n_kernels == MOST_KERNELS)
        abort();
    kernels[n_kernels] = (struct kernel){.host = host, .name = name};
    write_line("loaded", &kernels[n_kernels++]);
    pthread_mutex_unlock(&lock);
}

cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host)
{
    const cudaError_t e = ((get_kernel *)runtime("__cudaGetKernel"))(handle, host);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_kernels && e == cudaSuccess; i++)
        if (kernels[i].host == host)
            kernels[i].handle = *handle;
    pthread_mutex_unlock(&lock);
    return e;
}

/* `kernel`: its handle, or what <<<>>> names. */
static void note_launch(const void *kernel)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_kernels; i++)
        if (((const void *)kernels[i].handle == kernel || kernels[i].host == kernel) &&
            !kernels[i].launched) {
            kernels[i].launched = true;
            write_line("launched", &kernels[i]);
        }
    if (launches)
        atomic_fetch_add(launches, 1);
    pthread_mutex_unlock(&lock);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream)
{
    note_launch(handle);
    return ((launch *)runtime("__cudaLaunchKernel"))(handle, grid, block, args, shared,
                                                     stream);
}

/* Clusters, and launches that overlap. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                void **args)
{
    note_launch(kernel);
    return ((launch_extended *)runtime("cudaLaunchKernelExC"))(config, kernel, args);
}

/* Blocks that wait for each other. */
cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block,
                                        void **args, size_t shared, cudaStream_t stream)
{
    note_launch(kernel);
    return ((launch_cooperative *)runtime("cudaLaunchCooperativeKernel"))(
        kernel, grid, block, args, shared, stream);
}

/* Ends with a newline. For programs that find it by its name. */
void launch_count_begin(const char *line)
{
    const ssize_t n = (ssize_t)strlen(line);
    pthread_mutex_lock(&lock);
    if (lines >= 0 && write(lines, line, (size_t)n) != n)
        abort();
    for (size_t i = 0; i < n_kernels; i++)
        kernels[i].launched = false;
    pthread_mutex_unlock(&lock);
}
