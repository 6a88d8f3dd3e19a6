/* SPDX-License-Identifier: Apache-2.0
 *
 * One library a process and one handle a device: creating a handle loads the library's
 * code for the device, which is slow, and a handle holds no state of a call.
 */
#include "plugins/common/cublaslt/library.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cuda_runtime_api.h>

#define TEXT_OF(x) #x
#define NAME(major) "libcublasLt.so." TEXT_OF(major)

enum { MOST_DEVICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. */
static int load_library(const strata_node *n, struct cublaslt_library *library)
{
    void *file = dlopen(NAME(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%s; add the CUDA toolkit's folder of libraries to "
                           "LD_LIBRARY_PATH",
                           dlerror());
#define FIND(name)                                                                       \
    *(void **)&library->name = dlsym(file, #name);                                       \
    if (!library->name)                                                                  \
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", dlerror());
    CUBLASLT_FUNCTIONS(FIND)
#undef FIND
    return STRATA_OK;
}

static int open_device(const strata_node *n, const struct cublaslt_library *library,
                       cublasLtHandle_t *handle)
{
    const cublasStatus_t s = library->cublasLtCreate(handle);
    return s == CUBLAS_STATUS_SUCCESS
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "opening cuBLASLt: %s",
                             library->cublasLtGetStatusString(s));
}

int cublaslt_library_get(const strata_node *n, const struct cublaslt_library **library,
                         cublasLtHandle_t *handle)
{
    static struct cublaslt_library functions;
    static cublasLtHandle_t handles[MOST_DEVICES];
    static int loaded;
    int device = 0, status = STRATA_OK;
    const cudaError_t e = cudaGetDevice(&device);
    if (e != cudaSuccess || device >= MOST_DEVICES)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "cuBLASLt needs a device: %s",
                           cudaGetErrorString(e));
    pthread_mutex_lock(&lock);
    if (!loaded)
        status = load_library(n, &functions);
    loaded = status == STRATA_OK;
    if (loaded && !handles[device])
        status = open_device(n, &functions, &handles[device]);
    *library = &functions;
    *handle = handles[device];
    pthread_mutex_unlock(&lock);
    return status;
}
