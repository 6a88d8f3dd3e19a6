/* SPDX-License-Identifier: Apache-2.0
 *
 * A failing allocation says so, other calls fail for no known reason; neither is one that
 * loses the device. What cannot be left undone (waiting, ending a capture) is done first.
 */
#include "tests/cuda/fault.h"

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/cuda/runtime.h"

static atomic_bool armed;
static atomic_long calls, failing;
static atomic_int pending; /* as the runtime keeps a failure for the next who asks */
static const char *_Atomic name_of_last = "";

void cuda_fault_arm(long at)
{
    atomic_store(&calls, 0);
    atomic_store(&failing, at);
    atomic_store(&pending, cudaSuccess);
    atomic_store(&armed, true);
}

long cuda_fault_disarm(void)
{
    atomic_store(&armed, false);
    atomic_store(&pending, cudaSuccess);
    return atomic_load(&calls);
}

const char *cuda_fault_name(void)
{
    return atomic_load(&name_of_last);
}

static bool fails(const char *name, cudaError_t as)
{
    if (!atomic_load(&armed) || atomic_fetch_add(&calls, 1) + 1 != atomic_load(&failing))
        return false;
    atomic_store(&name_of_last, name);
    atomic_store(&pending, as);
    return true;
}

#define VISIBLE __attribute__((visibility("default")))
#define REAL(name, parameters)                                                           \
    static cudaError_t(*_Atomic real) parameters;                                        \
    if (!real)                                                                           \
    real = (cudaError_t(*) parameters)runtime(#name)

/* name: fails without having done anything. */
#define FAULT(name, as, parameters, arguments)                                           \
    VISIBLE cudaError_t name parameters;                                                 \
    cudaError_t name parameters                                                          \
    {                                                                                    \
        REAL(name, parameters);                                                          \
        return fails(#name, as) ? (as) : real arguments;                                 \
    }

/* name: fails although it has done its work. */
#define LATE_FAULT(name, parameters, arguments)                                          \
    VISIBLE cudaError_t name parameters;                                                 \
    cudaError_t name parameters                                                          \
    {                                                                                    \
        REAL(name, parameters);                                                          \
        const cudaError_t e = real arguments;                                            \
        return e == cudaSuccess && fails(#name, cudaErrorUnknown) ? cudaErrorUnknown     \
                                                                  : e;                   \
    }

#define MEMORY cudaErrorMemoryAllocation
#define OTHER cudaErrorUnknown

FAULT(cudaMalloc, MEMORY, (void **out, size_t n), (out, n))
FAULT(cudaMallocFromPoolAsync, MEMORY,
      (void **out, size_t n, cudaMemPool_t pool, cudaStream_t s), (out, n, pool, s))
FAULT(cudaHostAlloc, MEMORY, (void **out, size_t n, unsigned flags), (out, n, flags))
FAULT(cudaMemcpyAsync, OTHER,
      (void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s),
      (to, from, n, kind, s))
FAULT(cudaMemsetAsync, OTHER, (void *to, int byte, size_t n, cudaStream_t s),
      (to, byte, n, s))
FAULT(cudaEventCreate, OTHER, (cudaEvent_t * out), (out))
FAULT(cudaEventRecord, OTHER, (cudaEvent_t e, cudaStream_t s), (e, s))
FAULT(cudaEventElapsedTime, OTHER, (float *ms, cudaEvent_t from, cudaEvent_t to),
      (ms, from, to))
FAULT(cudaStreamCreate, OTHER, (cudaStream_t * out), (out))
FAULT(cudaStreamCreateWithFlags, OTHER, (cudaStream_t * out, unsigned flags),
      (out, flags))
FAULT(cudaStreamWaitEvent, OTHER, (cudaStream_t s, cudaEvent_t e, unsigned flags),
      (s, e, flags))
FAULT(cudaStreamBeginCapture, OTHER, (cudaStream_t s, enum cudaStreamCaptureMode mode),
      (s, mode))
FAULT(cudaGraphInstantiate, OTHER,
      (cudaGraphExec_t * out, cudaGraph_t g, unsigned long long flags), (out, g, flags))
FAULT(cudaGraphUpload, OTHER, (cudaGraphExec_t g, cudaStream_t s), (g, s))
FAULT(cudaGraphLaunch, OTHER, (cudaGraphExec_t g, cudaStream_t s), (g, s))
FAULT(cudaFuncSetAttribute, OTHER,
      (const void *kernel, enum cudaFuncAttribute which, int value),
      (kernel, which, value))
FAULT(cudaLaunchKernelExC, OTHER,
      (const cudaLaunchConfig_t *how, const void *kernel, void **args),
      (how, kernel, args))
FAULT(cudaMemPoolCreate, OTHER, (cudaMemPool_t * out, const struct cudaMemPoolProps *how),
      (out, how))
FAULT(cudaSetDevice, OTHER, (int device), (device))
FAULT(__cudaLaunchKernel, OTHER,
      (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
       cudaStream_t s),
      (kernel, grid, block, args, shared, s))
LATE_FAULT(cudaStreamSynchronize, (cudaStream_t s), (s))
LATE_FAULT(cudaEventSynchronize, (cudaEvent_t event), (event))

/* The graph of a capture that failed is nobody's. */
VISIBLE cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    REAL(cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *));
    const cudaError_t e = real(s, out);
    if (e != cudaSuccess || !fails("cudaStreamEndCapture", OTHER))
        return e;
    ((cudaError_t(*)(cudaGraph_t))runtime("cudaGraphDestroy"))(*out);
    *out = NULL;
    return OTHER;
}

VISIBLE cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaPeekAtLastError(void)
{
    REAL(cudaPeekAtLastError, (void));
    const int e = atomic_load(&pending);
    return e != cudaSuccess ? (cudaError_t)e : real();
}

VISIBLE cudaError_t cudaGetLastError(void);
cudaError_t cudaGetLastError(void)
{
    REAL(cudaGetLastError, (void));
    const int e = atomic_exchange(&pending, cudaSuccess);
    return e != cudaSuccess ? (cudaError_t)e : real();
}
