/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of wgmma's asynchronous work, for the files that are compiled for sm_90a.
 */
#ifndef PLUGINS_COMMON_PRODUCT_ORDER_CUH
#define PLUGINS_COMMON_PRODUCT_ORDER_CUH

static __device__ inline void multiply_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

static __device__ inline void multiply_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

/* Until at most `Pending` of the warpgroup's groups are under way. */
template <int Pending>
static __device__ inline void multiply_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(Pending) : "memory");
}

/* What this thread wrote to shared memory is to be seen by the tensor cores and the copy
 * engine. */
static __device__ inline void publish_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

#endif /* PLUGINS_COMMON_PRODUCT_ORDER_CUH */
