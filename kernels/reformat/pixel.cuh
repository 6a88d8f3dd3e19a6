/* SPDX-License-Identifier: Apache-2.0
 *
 * Few channels (images): a thread holds all of a pixel's, at most eight, in registers.
 * Planes are read 2 or 4 bytes a thread and a warp's accesses are 64 or 128 contiguous
 * bytes; vectors move whole. Memory bounds it. Halves into halves, which have most
 * kernels, are compiled in a file of their own.
 */
#ifndef KERNELS_REFORMAT_PIXEL_CUH
#define KERNELS_REFORMAT_PIXEL_CUH

#include "kernels/reformat/common.cuh"
#include "kernels/overlap.cuh"

#define THREADS 256
#define PIXELS 4 /* of a thread, THREADS apart; at most WALK steps a block */

/* Most channels, in accesses of V. Addresses past the last channel repeat it, so that all
 * loads go out at once; what they bring is dropped. */
template <typename T, int Most, int V>
static __device__ inline void read_channels(T x[Most], const T *p, int64_t block,
                                            uint32_t channels)
{
    const int last = (int)(channels - 1) / V;
    pack<T, V> piece[(Most + V - 1) / V];
#pragma unroll
    for (int b = 0; b < (Most + V - 1) / V; b++)
        piece[b] = *(const pack<T, V> *)(p + min(b, last) * block);
#pragma unroll
    for (int c = 0; c < Most; c++)
        x[c] = piece[c / V].v[c % V];
}

/* Pads, of the source too, become zero. */
template <typename To, typename From, int Most, int V>
static __device__ inline void write_channels(To *p, const From x[Most], int64_t block,
                                             uint32_t channels, uint32_t padded)
{
#pragma unroll
    for (int c = 0; c < 8; c += V) {
        pack<To, V> piece;
        if (c >= (int)padded)
            break;
#pragma unroll
        for (int i = 0; i < V; i++)
            piece.v[i] = c + i < Most && c + i < (int)channels
                             ? convert<To>(x[c + i < Most ? c + i : 0])
                             : zero_element<To>();
        *(pack<To, V> *)(p + c / V * block) = piece;
    }
}

template <typename To, typename From, int Most, int VT, int VF>
static __global__ void __launch_bounds__(THREADS)
    pixel_kernel(const __grid_constant__ reformat_pixel j)
{
    wait_for_previous();
    launch_next();
    const uint64_t start = (uint64_t)blockIdx.x * (THREADS * PIXELS);
    const row_walk walk = walk_from(j.rows, start, j.n_rows, j.pixels.d);
    From x[PIXELS][Most];
    To *to[PIXELS];
#pragma unroll
    for (int u = 0; u < PIXELS; u++) {
        const uint32_t i = min(u * THREADS + threadIdx.x, walk.last);
        const place at = walk_to(walk, j.rows, j.pixels, i, (uint32_t)j.to.pixel,
                                 (uint32_t)j.from.pixel);
        to[u] = (To *)j.dst + at.dst;
        read_channels<From, Most, VF>(x[u], (const From *)j.src + at.src, j.from.block,
                                      j.channels);
    }
#pragma unroll
    for (int u = 0; u < PIXELS; u++)
        if (u * THREADS + threadIdx.x <= walk.last)
            write_channels<To, From, Most, VT>(to[u], x[u], j.to.block, j.channels,
                                               j.padded);
}

template <typename To, typename From, int VT, int VF>
static void launch_pixel_of(const reformat_pixel *j, cudaStream_t s)
{
    const uint64_t steps = j->n_rows * j->pixels.d;
    const unsigned blocks =
        (unsigned)((steps + THREADS * PIXELS - 1) / (THREADS * PIXELS));
    if (j->padded <= 3 || j->channels <= 3)
        launch_overlapped(pixel_kernel<To, From, 3, VT, VF>, blocks, THREADS, 0, s, *j);
    else if (j->channels <= 4)
        launch_overlapped(pixel_kernel<To, From, 4, VT, VF>, blocks, THREADS, 0, s, *j);
    else
        launch_overlapped(pixel_kernel<To, From, 8, VT, VF>, blocks, THREADS, 0, s, *j);
}

/* Vectors exist for 16-bit elements (2 and 8); all else is moved by single elements. */
template <typename To, typename From, int VT>
static void launch_pixel_from(const reformat_pixel *j, cudaStream_t s)
{
    if (sizeof(From) == 2 && j->from.vector == 2)
        launch_pixel_of<To, From, VT, sizeof(From) == 2 ? 2 : 1>(j, s);
    else if (sizeof(From) == 2 && j->from.vector == 8)
        launch_pixel_of<To, From, VT, sizeof(From) == 2 ? 8 : 1>(j, s);
    else
        launch_pixel_of<To, From, VT, 1>(j, s);
}

template <typename To, typename From>
static void launch_pixel(const reformat_pixel *j, cudaStream_t s)
{
    if (sizeof(To) == 2 && j->to.vector == 2)
        launch_pixel_from<To, From, sizeof(To) == 2 ? 2 : 1>(j, s);
    else if (sizeof(To) == 2 && j->to.vector == 8)
        launch_pixel_from<To, From, sizeof(To) == 2 ? 8 : 1>(j, s);
    else
        launch_pixel_from<To, From, 1>(j, s);
}

void reformat_launch_pixel_halves(const reformat_pixel *j, cudaStream_t s);

#endif /* KERNELS_REFORMAT_PIXEL_CUH */
