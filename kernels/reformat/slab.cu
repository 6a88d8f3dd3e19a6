/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that lie in memory as long rows on both sides. A block makes several of them: it
 * copies the next ones into shared memory as they lie, asynchronously and 16 bytes at a
 * time, while it gathers the present one in the order of the destination and stores it 16
 * bytes a thread, or, where one read of shared memory holds parts of many planes, as one
 * asynchronous store. Where a thread's elements lie in a tile is the same for every tile
 * and is worked out once, into registers. Bytes bound it: each moves once, and reads are
 * under way all the time.
 */
#include "kernels/reformat/stages.cuh"

/* ---- from shared memory to the destination --------------------------------------- */

/* By the engine for bulk copies where there is one, else by all threads. */
static __device__ inline void send_out(char *dst, const char *out, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
            "r"((uint32_t)__cvta_generic_to_shared(out)), "r"(bytes)
            : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
#else
    __syncthreads();
    for (uint32_t i = threadIdx.x * 16; i < bytes; i += blockDim.x * 16)
        *(uint4 *)(dst + i) = *(const uint4 *)(out + i);
#endif
}

/* Until what was sent has been read; the others learn of it at the next barrier. */
static __device__ inline void await_out(void)
{
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/* ---- blocks ---------------------------------------------------------------------- */

/* As slab_kernel, by way of shared memory, from where a part of a tile, which is one
 * piece of memory, leaves asynchronously. */
template <typename Item, int Parts, int Blocks>
static __global__ void __launch_bounds__(REFORMAT_QUAD_THREADS, Blocks)
    slab_out_kernel(const __grid_constant__ reformat_slab j)
{
    extern __shared__ uint4 shared[];
    char *const out = (char *)shared + STAGES * j.stage;
    Item items[Parts];
    slab_run run = start_run(j, (char *)shared);
#pragma unroll
    for (int u = 0; u < Parts; u++)
        items[u].find(j, min(threadIdx.x, j.items - 1), u);
    for (uint32_t tile = 0; tile < run.tiles; tile++) {
        await_out();
        const char *here = await_tile(j, &run, tile);
        char *dst = (char *)tile_start(j.dst, j.to, j, run.present);
#pragma unroll
        for (int u = 0; u < Parts; u++) {
            if (u > 0) {
                await_out();
                __syncthreads();
            }
            if (threadIdx.x < j.items)
                items[u].move(j, here, out);
            send_out(dst + u * j.out, out, j.out);
        }
        end_tile(j, &run);
    }
    await_out();
}

/* ---- launches -------------------------------------------------------------------- */

extern "C" int reformat_launch_slab(const struct reformat_slab *j, void *stream)
{
    static const struct {
        int form, held, to, from;
        void (*kernel)(const reformat_slab);
    } kernels[] = {
#define GATHER(TO, To, FROM, From)                                                       \
    {SLAB_GATHER, 2, TO, FROM,                                                           \
     slab_kernel<slab_gather<To, From>, 2, 2 * REFORMAT_SLAB_THREADS, 5>},               \
        {SLAB_GATHER, 4, TO, FROM,                                                       \
         slab_kernel<slab_gather<To, From>, 4, 4 * REFORMAT_SLAB_THREADS, 2>},
        GATHER(STRATA_FP16, __half, STRATA_FP16, __half)
            GATHER(STRATA_FP16, __half, STRATA_FP32, float)
                GATHER(STRATA_FP32, float, STRATA_FP16, __half)
                    GATHER(STRATA_FP32, float, STRATA_FP32, float)
                        GATHER(STRATA_FP32, float, STRATA_BF16, __nv_bfloat16)
                            GATHER(STRATA_BF16, __nv_bfloat16, STRATA_FP32, float)
#undef GATHER
                                {SLAB_ZIP, 4, STRATA_FP16, STRATA_FP16,
                                 slab_kernel<slab_zip, 4, REFORMAT_QUAD_THREADS, 2>},
        {SLAB_UNZIP, 4, STRATA_FP16, STRATA_FP16,
         slab_kernel<slab_unzip, 4, REFORMAT_QUAD_THREADS, 2>},
        {SLAB_WEAVE, 1, STRATA_FP16, STRATA_FP16,
         slab_kernel<slab_weave, 1, REFORMAT_QUAD_THREADS, 2>},
        {SLAB_UNWEAVE, 1, STRATA_FP16, STRATA_FP16,
         slab_out_kernel<slab_unweave<__half, false>, 1, 2>},
        {SLAB_UNWEAVE, 2, STRATA_FP32, STRATA_FP16,
         slab_out_kernel<slab_unweave<float, false>, 2, 2>},
        {SLAB_SPREAD, 2, STRATA_FP32, STRATA_FP16,
         slab_out_kernel<slab_unweave<float, true>, 2, 2>},
    };
    for (const auto &k : kernels)
        if (k.form == j->form && k.held == j->held && k.to == j->to_type &&
            k.from == j->from_type)
            return launch_tiles(j, k.kernel, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}
