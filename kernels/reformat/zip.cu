/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes against vectors of two or four: a thread holds four pixels of one vector in
 * registers, 16 contiguous bytes on the side of the vectors, 8 or 16 of each plane on the
 * other. Memory bounds it.
 */
#include "kernels/reformat/common.cuh"
#include "kernels/overlap.cuh"

#define THREADS 256
#define PIECES 4 /* of a thread */

/* Four pixels, from the first on, of V planes as one pack of vectors, and back. */
template <typename To, typename From, int V, int N>
static __device__ inline pack<To, 4 * V> zip(const pack<From, N> plane[V], int first)
{
    pack<To, 4 * V> y;
#pragma unroll
    for (int i = 0; i < 4 * V; i++)
        y.v[i] = convert<To>(plane[i % V].v[first + i / V]);
    return y;
}

template <typename To, typename From, int V>
static __device__ inline pack<To, 4> plane_of(const pack<From, 4 * V> &x, int lane)
{
    pack<To, 4> y;
#pragma unroll
    for (int i = 0; i < 4; i++)
        y.v[i] = convert<To>(x.v[i * V + lane]);
    return y;
}

struct zip_place {
    int64_t dst, src; /* of the vectors, and of the first plane */
    uint32_t planes;  /* that are no pads */
};

/* As in walk_to, with blocks of channels between rows and images. */
struct zip_walk {
    uint64_t image;
    place at; /* of the image */
    uint32_t block, rest, last;
};

static __device__ inline zip_walk zip_from(const reformat_zip &j)
{
    const uint64_t start = (uint64_t)blockIdx.x * (THREADS * PIECES);
    const uint64_t row = start >> 32 ? start / j.pieces.d : (uint32_t)start / j.pieces.d;
    zip_walk w;
    w.image = row >> 32 ? row / j.blocks.d : (uint32_t)row / j.blocks.d;
    w.at = loops_at(j.rows, w.image);
    w.block = (uint32_t)(row - w.image * j.blocks.d);
    w.rest = (uint32_t)(start - row * j.pieces.d);
    w.last = (uint32_t)min((uint64_t)WALK, j.n_rows * j.pieces.d - start) - 1;
    return w;
}

/* Past the end, the last piece's place. */
template <int V, int N>
static __device__ inline zip_place zip_at(const reformat_zip &j, const zip_walk &w,
                                          uint32_t i)
{
    const uint32_t at = w.rest + min(i, w.last);
    const uint32_t rows = j.pieces.d >= WALK ? at >= j.pieces.d : divide(at, j.pieces);
    const uint32_t images = divide(w.block + rows, j.blocks);
    const uint32_t block = w.block + rows - images * j.blocks.d;
    const uint32_t piece = N * (at - rows * j.pieces.d);
    place p = w.at;
    if (images > 0)
        p = j.rows.n == 1 ? place{w.at.dst + images * j.rows.dst[0],
                                  w.at.src + images * j.rows.src[0]}
                          : loops_at(j.rows, w.image + images);
    const int64_t vector = block * j.block + piece * V;
    const int64_t plane = block * (V * j.plane) + piece;
    const zip_place z = {p.dst + (j.zips ? vector : plane),
                         p.src + (j.zips ? plane : vector),
                         block + 1 == j.blocks.d ? j.last : V};
    return z;
}

/* Pieces of N pixels. A missing plane is read as the first, and dropped, so that all
 * loads go out at once. */
template <typename To, typename From, int V, int N>
static __global__ void __launch_bounds__(THREADS)
    zip_kernel(const __grid_constant__ reformat_zip j)
{
    wait_for_previous();
    launch_next();
    const zip_walk walk = zip_from(j);
    pack<From, N> x[PIECES][V];
    zip_place z[PIECES];
#pragma unroll
    for (int u = 0; u < PIECES; u++) {
        z[u] = zip_at<V, N>(j, walk, u * THREADS + threadIdx.x);
        const From *src = (const From *)j.src + z[u].src;
#pragma unroll
        for (int l = 0; l < V; l++)
            x[u][l] = load_once<From, N>(src + (l < (int)z[u].planes ? l * j.plane : 0));
    }
#pragma unroll
    for (int u = 0; u < PIECES; u++) {
        if (u * THREADS + threadIdx.x > walk.last)
            continue;
#pragma unroll
        for (int l = 0; l < V; l++)
#pragma unroll
            for (int i = 0; i < N; i++)
                if (l >= (int)z[u].planes)
                    x[u][l].v[i] = zero_element<From>();
#pragma unroll
        for (int i = 0; i < N; i += 4)
            store_once<To, 4 * V>((To *)j.dst + z[u].dst + i * V,
                                  zip<To, From, V, N>(x[u], i));
    }
}

template <typename To, typename From, int V>
static __global__ void __launch_bounds__(THREADS)
    unzip_kernel(const __grid_constant__ reformat_zip j)
{
    wait_for_previous();
    launch_next();
    const zip_walk walk = zip_from(j);
    pack<From, 4 * V> x[PIECES];
    zip_place z[PIECES];
#pragma unroll
    for (int u = 0; u < PIECES; u++) {
        z[u] = zip_at<V, 4>(j, walk, u * THREADS + threadIdx.x);
        x[u] = load_once<From, 4 * V>((const From *)j.src + z[u].src);
    }
#pragma unroll
    for (int u = 0; u < PIECES; u++)
#pragma unroll
        for (int l = 0; l < V; l++)
            if (u * THREADS + threadIdx.x <= walk.last && l < (int)z[u].planes)
                store_once<To, 4>((To *)j.dst + z[u].dst + l * j.plane,
                                  plane_of<To, From, V>(x[u], l));
}

static unsigned zip_blocks(const reformat_zip *j)
{
    const uint64_t pieces = j->n_rows * j->pieces.d;
    return (unsigned)((pieces + THREADS * PIECES - 1) / (THREADS * PIECES));
}

template <typename To, typename From>
static void launch_zip(const reformat_zip *j, cudaStream_t s)
{
    const int wide = sizeof(From) == 2 && sizeof(To) == 2 ? 8 : 4;
    if (j->pixels == 4)
        launch_overlapped(zip_kernel<To, From, 4 / sizeof(To), 4>, zip_blocks(j), THREADS,
                          0, s, *j);
    else
        launch_overlapped(zip_kernel<To, From, 4 / sizeof(To), wide>, zip_blocks(j),
                          THREADS, 0, s, *j);
}

template <typename To, typename From>
static void launch_unzip(const reformat_zip *j, cudaStream_t s)
{
    launch_overlapped(unzip_kernel<To, From, 4 / sizeof(From)>, zip_blocks(j), THREADS, 0,
                      s, *j);
}

extern "C" int reformat_launch_zip(const struct reformat_zip *j, int to, int from,
                                   void *stream)
{
    static const struct {
        int to, from;
        void (*zip)(const reformat_zip *j, cudaStream_t s);
        void (*unzip)(const reformat_zip *j, cudaStream_t s);
    } kernels[] = {
        {STRATA_FP16, STRATA_FP16, launch_zip<__half, __half>,
         launch_unzip<__half, __half>},
        {STRATA_FP16, STRATA_FP32, launch_zip<__half, float>, NULL},
        {STRATA_FP32, STRATA_FP16, NULL, launch_unzip<float, __half>},
        {STRATA_INT8, STRATA_INT8, launch_zip<int8_t, int8_t>,
         launch_unzip<int8_t, int8_t>},
        {STRATA_INT8, STRATA_FP32, launch_zip<int8_t, float>, NULL},
        {STRATA_FP32, STRATA_INT8, NULL, launch_unzip<float, int8_t>},
        {STRATA_INT8, STRATA_FP16, launch_zip<int8_t, __half>, NULL},
        {STRATA_FP16, STRATA_INT8, NULL, launch_unzip<__half, int8_t>},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i].to == to && kernels[i].from == from)
            (j->zips ? kernels[i].zip : kernels[i].unzip)(j, (cudaStream_t)stream);
    return cudaPeekAtLastError();
}
