/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes by tiles, as slab.cu moves floats. Vectors of channels are stored from registers,
 * 16 bytes a thread; planes by way of a copy of the tile in shared memory that leaves
 * asynchronously, a row at a time, so that threads may make it in any order and it may
 * begin at any address. Bytes bound it.
 */
#include "kernels/reformat/bytes.cuh"
#include "kernels/reformat/stages.cuh"

/* ---- from shared memory to the destination --------------------------------------- */

/* A piece of memory that begins and ends at multiples of 16 bytes. */
static __device__ inline void send_row(char *dst, const char *out, uint32_t bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
                 "r"((uint32_t)__cvta_generic_to_shared(out)), "r"(bytes)
                 : "memory");
#else
    for (uint32_t i = 0; i < bytes; i += 16)
        *(uint4 *)(dst + i) = *(const uint4 *)(out + i);
#endif
}

/* The tile's only row; what others share 16 bytes with goes by single bytes. */
static __device__ inline void send_edges(char *dst, const char *out, uint32_t bytes)
{
    const uint32_t head = min(bytes, (uint32_t)(-(uintptr_t)dst % 16));
    const uint32_t middle = (bytes - head) / 16 * 16, tail = bytes - head - middle;
    const uint32_t i = blockDim.x - 1 - threadIdx.x;
    if (threadIdx.x == 0 && middle > 0)
        send_row(dst + head, out + head, middle);
    if (i < head)
        dst[i] = out[i];
    if (i < tail)
        dst[head + middle + i] = out[head + middle + i];
}

static __device__ inline void send_tile(const reformat_slab &j, char *dst,
                                        const char *out)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (j.rows == 1)
        send_edges(dst, out, j.row_bytes);
    else
        for (uint32_t row = threadIdx.x; row < j.rows; row += blockDim.x)
            send_row(dst + row * j.to.row_step, out + row * j.row_bytes, j.row_bytes);
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}

/* Until what this thread sent has been read. */
static __device__ inline void await_sent(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

template <typename Item, int Held>
static __global__ void __launch_bounds__(REFORMAT_QUAD_THREADS, 2)
    bytes_out_kernel(const __grid_constant__ reformat_slab j)
{
    extern __shared__ uint4 shared[];
    Item items[Held];
    slab_run run = start_run(j, (char *)shared);
#pragma unroll
    for (int u = 0; u < Held; u++)
        items[u].find(j, min(threadIdx.x + u * blockDim.x, j.items - 1));
    for (uint32_t tile = 0; tile < run.tiles; tile++) {
        await_sent();
        const char *here = await_tile(j, &run, tile);
        char *dst = (char *)tile_start(j.dst, j.to, j, run.present);
        char *out = (char *)shared + STAGES * j.stage + (uintptr_t)dst % 16;
#pragma unroll
        for (int u = 0; u < Held; u++)
            if (threadIdx.x + u * blockDim.x < j.items)
                items[u].move(j, here, out);
        send_tile(j, dst, out);
        end_tile(j, &run);
    }
    await_sent();
}

/* ---- launches -------------------------------------------------------------------- */

extern "C" int reformat_launch_bytes(const struct reformat_slab *j, void *stream)
{
    static const struct {
        int form;
        void (*kernel)(const reformat_slab);
    } kernels[] = {
        {BYTES_WORDS, slab_kernel<bytes_vectors<1>, 4, REFORMAT_QUAD_THREADS, 2>},
        {BYTES_PIECES, slab_kernel<bytes_vectors<4>, 4, REFORMAT_QUAD_THREADS, 2>},
        {BYTES_GATHER, slab_kernel<bytes_gather, 4, REFORMAT_QUAD_THREADS, 2>},
        {BYTES_WEAVE, slab_kernel<bytes_weave<false>, 1, REFORMAT_QUAD_THREADS, 2>},
        {BYTES_COMB, slab_kernel<bytes_comb, 1, REFORMAT_QUAD_THREADS, 2>},
        {BYTES_BRAID, bytes_out_kernel<bytes_weave<true>, 1>},
        {BYTES_SCATTER, bytes_out_kernel<bytes_scatter, 4>},
        {BYTES_UNWEAVE, bytes_out_kernel<bytes_unweave<false>, 1>},
        {BYTES_SPREAD, bytes_out_kernel<bytes_unweave<true>, 1>},
    };
    for (const auto &k : kernels)
        if (k.form == j->form)
            return launch_tiles(j, k.kernel, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}
