/* SPDX-License-Identifier: Apache-2.0
 *
 * One list a process of what was compiled, by source and architecture. A lock is held
 * while one is compiled, so that two threads do not compile the same.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "plugins/pointwise/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvrtc.h>

#define MAJOR (CUDART_VERSION / 1000) /* of the toolkit that this is built with */

#define FUNCTIONS(_)                                                                     \
    _(nvrtcCompileProgram)                                                               \
    _(nvrtcCreateProgram)                                                                \
    _(nvrtcDestroyProgram)                                                               \
    _(nvrtcGetCUBIN)                                                                     \
    _(nvrtcGetCUBINSize)                                                                 \
    _(nvrtcGetErrorString)                                                               \
    _(nvrtcGetProgramLog)                                                                \
    _(nvrtcGetProgramLogSize)

struct nvrtc {
    void *file;
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

struct compiled {
    struct compiled *next;
    cudaLibrary_t library;
    int32_t sm;
    char source[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the library, with the lock held ---------------------------------------------- */

/* By the name with the major, then without. folder: with its slash, or empty. */
static void *open_in(const char *folder, int length)
{
    char path[4096];
    void *file = NULL;
    if (snprintf(path, sizeof path, "%.*slibnvrtc.so.%d", length, folder, MAJOR) <
        (int)sizeof path)
        file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file &&
        snprintf(path, sizeof path, "%.*slibnvrtc.so", length, folder) < (int)sizeof path)
        file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return file;
}

/* On the loader's path, then in the folder that cudart was loaded from. */
static void *open_library(void)
{
    Dl_info cudart;
    void *file = open_in("", 0);
    const char *slash = NULL;
    if (!file && dladdr((const void *)(uintptr_t)&cudaGetDevice, &cudart))
        slash = strrchr(cudart.dli_fname, '/');
    return slash ? open_in(cudart.dli_fname, (int)(slash + 1 - cudart.dli_fname)) : file;
}

static int find_functions(const strata_node *n, struct nvrtc *library)
{
    if (!library->file)
        library->file = open_library();
    if (!library->file)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "libnvrtc.so.%d, by which programs are compiled, is neither "
                           "on the loader's path nor beside libcudart; install NVRTC "
                           "(nvidia-cuda-nvrtc), or add its folder to LD_LIBRARY_PATH",
                           MAJOR);
#define FIND(name)                                                                       \
    *(void **)&library->name = dlsym(library->file, #name);                              \
    if (!library->name)                                                                  \
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "libnvrtc: %s", dlerror());
    FUNCTIONS(FIND)
#undef FIND
    return STRATA_OK;
}

static int get_library(const strata_node *n, const struct nvrtc **out)
{
    static struct nvrtc library;
    static int found;
    const int status = found ? STRATA_OK : find_functions(n, &library);
    found = status == STRATA_OK;
    *out = &library;
    return status;
}

/* ---- compiling ------------------------------------------------------------------- */

static int compile_fails(const strata_node *n, const struct nvrtc *rtc,
                         nvrtcProgram program, const char *what, nvrtcResult result)
{
    char log[512] = "";
    size_t size = 0;
    if (rtc->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size < sizeof log)
        rtc->nvrtcGetProgramLog(program, log);
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "libnvrtc, %s for sm_%d: %s %s", what,
                       (int)n->sm, rtc->nvrtcGetErrorString(result), log);
}

/* *out is the caller's to free. */
static int compile(const strata_node *n, const struct nvrtc *rtc, const char *source,
                   void **out)
{
    char arch[32];
    const char *const options[] = {"--std=c++17", "--disable-warnings", arch};
    nvrtcProgram program = NULL;
    const char *what = "a program";
    size_t size = 0;
    int status = STRATA_OK;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", (int)n->sm);
    nvrtcResult r =
        rtc->nvrtcCreateProgram(&program, source, "pointwise.cu", 0, NULL, NULL);
    if (r == NVRTC_SUCCESS)
        what = "compiling", r = rtc->nvrtcCompileProgram(program, 3, options);
    if (r == NVRTC_SUCCESS)
        what = "the result", r = rtc->nvrtcGetCUBINSize(program, &size);
    if (r == NVRTC_SUCCESS && !(*out = malloc(size)))
        status = STRATA_FAIL(n, STRATA_ENOMEM, "%zu bytes of a compiled program", size);
    else if (r == NVRTC_SUCCESS)
        r = rtc->nvrtcGetCUBIN(program, *out);
    if (r != NVRTC_SUCCESS)
        status = compile_fails(n, rtc, program, what, r);
    if (program)
        rtc->nvrtcDestroyProgram(&program);
    return status;
}

/* The error is taken away, or the next launch would be blamed for it. */
static int call_fails(const strata_node *n, const char *what, cudaError_t e)
{
    cudaGetLastError();
    return STRATA_FAIL(n, STRATA_EDEVICE, "%s: %s (%s)", what, cudaGetErrorString(e),
                       cudaGetErrorName(e));
}

static int load(const strata_node *n, const struct nvrtc *rtc, struct compiled *c)
{
    void *binary = NULL;
    int status = compile(n, rtc, c->source, &binary);
    cudaError_t e = cudaSuccess;
    if (status == STRATA_OK)
        e = cudaLibraryLoadData(&c->library, binary, NULL, NULL, 0, NULL, NULL, 0);
    if (e != cudaSuccess)
        status = call_fails(n, "loading a compiled program", e);
    free(binary);
    return status;
}

/* With the lock held. */
static int find_compiled(const strata_node *n, const struct nvrtc *rtc,
                         const char *source, struct compiled **out)
{
    static struct compiled *all;
    const size_t size = strlen(source) + 1;
    for (*out = all; *out; *out = (*out)->next)
        if ((*out)->sm == n->sm && strcmp((*out)->source, source) == 0)
            return STRATA_OK;
    struct compiled *c = calloc(1, sizeof *c + size);
    if (!c)
        return STRATA_FAIL(n, STRATA_ENOMEM, "%zu bytes of a program's source", size);
    c->sm = n->sm;
    memcpy(c->source, source, size);
    const int status = load(n, rtc, c);
    if (status != STRATA_OK) {
        free(c);
        return status;
    }
    c->next = all;
    *out = all = c;
    return STRATA_OK;
}

int nvrtc_check(const strata_node *n)
{
    const struct nvrtc *rtc;
    pthread_mutex_lock(&lock);
    const int status = get_library(n, &rtc);
    pthread_mutex_unlock(&lock);
    return status;
}

int nvrtc_kernel(const strata_node *n, const char *source, const char *name,
                 cudaKernel_t *kernel)
{
    const struct nvrtc *rtc;
    struct compiled *c = NULL;
    struct cudaFuncAttributes loaded;
    pthread_mutex_lock(&lock);
    int status = get_library(n, &rtc);
    if (status == STRATA_OK)
        status = find_compiled(n, rtc, source, &c);
    pthread_mutex_unlock(&lock);
    if (status != STRATA_OK)
        return status;
    cudaError_t e = cudaLibraryGetKernel(kernel, c->library, name);
    if (e == cudaSuccess) /* loads it, which a captured launch must not */
        e = cudaFuncGetAttributes(&loaded, (const void *)*kernel);
    return e == cudaSuccess ? STRATA_OK : call_fails(n, name, e);
}
