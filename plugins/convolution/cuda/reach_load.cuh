/* SPDX-License-Identifier: Apache-2.0
 *
 * What fills a block of reach.cuh: a warp for the weights, another for the input.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_REACH_LOAD_CUH
#define PLUGINS_CONVOLUTION_CUDA_REACH_LOAD_CUH

#include "plugins/convolution/cuda/reach_block.cuh"

#if __CUDA_ARCH__ >= 900
/* A warp's way: weights, which nobody before this kernel writes, as far as there are
 * slots, before it opens what others need first when these have come; then the rest. */
template <int N, int D>
static __device__ inline void reach_load_weights(const reach_block<D> &b,
                                                 const void *weights)
{
    const int lane = (int)threadIdx.x % 32;
    const int32_t pieces = b.job.panels * REACH_ELEMENTS, slots = b.job.slots;
    const uint8_t *from =
        (const uint8_t *)weights +
        ((int64_t)(b.filter / 64) * b.job.stored + b.rank * b.job.panels) *
            (REACH_ELEMENTS * REACH_PIECE);
    const uint32_t full = b.barrier(REACH_PIECE_FULL + lane);
    const bool has = lane < slots;
    const bool joins = D > 1 && lane < REACH_GROUPS;
    if (has) {
        barrier_init(full, 1);
        barrier_init(b.barrier(REACH_PIECE_EMPTY + lane), 4);
        publish_shared();
    }
    __syncwarp(); /* one thread may open the barriers of a warp's lanes */
    if (has) {
        barrier_expect(full, REACH_PIECE);
        reach_copy(b.piece(lane), from + lane * REACH_PIECE, full);
    }
    if (joins) {
        barrier_init(b.barrier(REACH_SENT + lane), 1);
        barrier_publish();
    }
    __syncwarp();
    if (joins)
        barrier_expect(b.barrier(REACH_SENT + lane),
                       (D - 1) * reach_tile<N, D>::Own * REACH_SUMS);
    __syncwarp();
    named_arrive(REACH_OPEN, REACH_THREADS);
    if (D > 1)
        cluster_arrive();
    for (int32_t t = slots; t < pieces && lane == 0; t++) {
        const int32_t slot = t % slots;
        barrier_wait(b.barrier(REACH_PIECE_EMPTY + slot), (t / slots - 1) & 1);
        barrier_expect(b.barrier(REACH_PIECE_FULL + slot), REACH_PIECE);
        reach_copy(b.piece(slot), from + t * REACH_PIECE,
                   b.barrier(REACH_PIECE_FULL + slot));
    }
    __syncwarp();
}

/* A warp's way: the input, which waits for the kernel before and for nobody of this
 * block. */
template <int D>
static __device__ inline void reach_load_input(const reach_block<D> &b)
{
    const bool loads = threadIdx.x % 32 == 0;
    if (loads) {
        prefetch_map(&b.job.a);
        for (int p = 0; p < b.job.panels; p++)
            barrier_init(b.barrier(REACH_INPUT_FULL + p), 1);
        publish_shared();
    }
    __syncwarp();
    named_arrive(REACH_OPEN, REACH_THREADS);
    if (D > 1)
        cluster_arrive();
    if (loads) {
        wait_for_previous();
        for (int p = 0; p < b.job.panels; p++) {
            barrier_expect(b.barrier(REACH_INPUT_FULL + p), (uint32_t)b.job.box);
            copy_box(b.input(p), &b.job.a, b.barrier(REACH_INPUT_FULL + p),
                     ((int32_t)b.rank * b.job.panels + p) * 64, -1, b.top - 1, b.image);
        }
    }
    __syncwarp();
}
#endif

#endif /* PLUGINS_CONVOLUTION_CUDA_REACH_LOAD_CUH */
