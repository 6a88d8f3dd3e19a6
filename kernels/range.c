/* SPDX-License-Identifier: Apache-2.0
 *
 * Named ranges for NVIDIA's tools: NVTX, which finds the tool at run time and costs a
 * branch where there is none.
 */
#include "kernels/device.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* functions from dlsym */
#include <nvtx3/nvToolsExt.h>
#pragma GCC diagnostic pop

static nvtxDomainHandle_t domain(void)
{
    static nvtxDomainHandle_t made; /* a race makes it twice, which NVTX allows */
    nvtxDomainHandle_t d = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
    if (!d) {
        d = nvtxDomainCreateA("strata");
        __atomic_store_n(&made, d, __ATOMIC_RELEASE);
    }
    return d;
}

void cuda_range_begin(const char *name)
{
    const nvtxEventAttributes_t event = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message = {.ascii = name},
    };
    nvtxDomainRangePushEx(domain(), &event);
}

void cuda_range_end(void)
{
    nvtxDomainRangePop(domain());
}

#endif
