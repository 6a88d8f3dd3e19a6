/* SPDX-License-Identifier: Apache-2.0
 *
 * Few channels (images) and vectors of two or four: everything in registers.
 *
 * pixel: a thread holds all channels, at most eight, of a pixel. Planes are read 2 or 4
 * bytes a thread and a warp's accesses are 64 or 128 contiguous bytes; vectors move whole.
 * zip: a thread holds four pixels of one vector: 16 contiguous bytes on the side of the
 * vectors, 8 or 16 of each plane on the other. Memory bounds both.
 */
#include "kernels/reformat_common.cuh"

#define THREADS 256
#define PIXELS 2 /* of a thread of pixel, THREADS apart */
#define PIECES 4 /* of a thread of zip, THREADS apart */
#define MOST 8   /* channels of pixel */

/* ---- pixel ----------------------------------------------------------------------------- */

template <typename T, int V>
static __device__ inline void read_channels(T x[MOST], const T *p, int64_t block,
                                            uint32_t channels)
{
#pragma unroll
    for (int c = 0; c < MOST; c += V) {
        if (c >= (int)channels)
            break;
        const pack<T, V> piece = *(const pack<T, V> *)(p + c / V * block);
#pragma unroll
        for (int i = 0; i < V; i++)
            if (c + i < (int)channels) /* pads of the source may hold anything */
                x[c + i] = piece.v[i];
    }
}

template <typename To, typename From, int V>
static __device__ inline void write_channels(To *p, const From x[MOST], int64_t block,
                                             uint32_t padded)
{
#pragma unroll
    for (int c = 0; c < MOST; c += V) {
        if (c >= (int)padded)
            break;
        pack<To, V> piece;
#pragma unroll
        for (int i = 0; i < V; i++)
            piece.v[i] = convert<To>(x[c + i]);
        *(pack<To, V> *)(p + c / V * block) = piece;
    }
}

template <typename To, typename From, int VT, int VF>
static __global__ void __launch_bounds__(THREADS) pixel_kernel(const reformat_pixel j)
{
    const uint64_t start = (uint64_t)blockIdx.x * (THREADS * PIXELS);
    const uint64_t steps = j.n_rows * j.pixels;
    const row_walk walk = walk_from(start, j.pixels);
    From x[PIXELS][MOST];
    To *to[PIXELS];
#pragma unroll
    for (int u = 0; u < PIXELS; u++) {
        const uint32_t i = u * THREADS + threadIdx.x;
        uint32_t p;
#pragma unroll
        for (int c = 0; c < MOST; c++)
            x[u][c] = zero_element<From>();
        to[u] = NULL;
        if (start + i >= steps)
            continue;
        const place at = loops_at(j.rows, walk_to(walk, i, &p));
        to[u] = (To *)j.dst + at.dst + p * j.to.pixel;
        read_channels<From, VF>(x[u], (const From *)j.src + at.src + p * j.from.pixel,
                                j.from.block, j.channels);
    }
#pragma unroll
    for (int u = 0; u < PIXELS; u++)
        if (to[u])
            write_channels<To, From, VT>(to[u], x[u], j.to.block, j.padded);
}

template <typename To, typename From, int VT, int VF>
static void launch_pixel_of(const reformat_pixel *j, cudaStream_t s)
{
    const uint64_t steps = j->n_rows * j->pixels;
    const unsigned blocks = (unsigned)((steps + THREADS * PIXELS - 1) / (THREADS * PIXELS));
    pixel_kernel<To, From, VT, VF><<<blocks, THREADS, 0, s>>>(*j);
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

extern "C" int reformat_launch_pixel(const struct reformat_pixel *j, int to, int from,
                                     void *stream)
{
#define LAUNCH(TO, To, FROM, From)  \
    if (to == (TO) && from == (FROM)) \
        launch_pixel<To, From>(j, (cudaStream_t)stream);
    REFORMAT_TYPED(LAUNCH)
#undef LAUNCH
    return cudaPeekAtLastError();
}

/* ---- zip ------------------------------------------------------------------------------- */

/* Four pixels of V planes as one pack of vectors, and back. */
template <typename To, typename From, int V>
static __device__ inline pack<To, 4 * V> zip(const pack<From, 4> plane[V])
{
    pack<To, 4 * V> y;
#pragma unroll
    for (int i = 0; i < 4 * V; i++)
        y.v[i] = convert<To>(plane[i % V].v[i / V]);
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
    int64_t dst, src; /* of the vectors' block and of its first plane, or the reverse */
    uint32_t planes;  /* that are no pads; 0: past the end */
};

template <int V>
static __device__ inline zip_place zip_at(const reformat_zip &j, const row_walk &walk,
                                          uint64_t start, uint32_t i)
{
    zip_place z = {0, 0, 0};
    uint32_t piece;
    const uint64_t row = walk_to(walk, i, &piece);
    if (row >= j.n_rows)
        return z;
    const uint64_t outer =
        row >> 32 ? row / j.blocks : (uint32_t)row / j.blocks;
    const uint32_t block = (uint32_t)(row - outer * j.blocks);
    const place p = loops_at(j.rows, outer);
    const int64_t plane = (int64_t)block * V * j.plane + 4 * (int64_t)piece;
    const int64_t vector = (int64_t)block * j.block + 4 * V * (int64_t)piece;
    z.dst = p.dst + (j.zips ? vector : plane);
    z.src = p.src + (j.zips ? plane : vector);
    z.planes = min((uint32_t)V, j.channels - block * V);
    return z;
}

template <typename To, typename From, int V>
static __global__ void __launch_bounds__(THREADS) zip_kernel(const reformat_zip j)
{
    const uint64_t start = (uint64_t)blockIdx.x * (THREADS * PIECES);
    const row_walk walk = walk_from(start, j.pixels / 4);
    pack<From, 4> x[PIECES][V];
    zip_place z[PIECES];
#pragma unroll
    for (int u = 0; u < PIECES; u++) {
        z[u] = zip_at<V>(j, walk, start, u * THREADS + threadIdx.x);
#pragma unroll
        for (int l = 0; l < V; l++) {
            x[u][l] = {};
            if (l < (int)z[u].planes)
                x[u][l] =
                    load_once<From, 4>((const From *)j.src + z[u].src + l * j.plane);
        }
    }
#pragma unroll
    for (int u = 0; u < PIECES; u++)
        if (z[u].planes > 0)
            store_once<To, 4 * V>((To *)j.dst + z[u].dst, zip<To, From, V>(x[u]));
}

template <typename To, typename From, int V>
static __global__ void __launch_bounds__(THREADS) unzip_kernel(const reformat_zip j)
{
    const uint64_t start = (uint64_t)blockIdx.x * (THREADS * PIECES);
    const row_walk walk = walk_from(start, j.pixels / 4);
    pack<From, 4 * V> x[PIECES];
    zip_place z[PIECES];
#pragma unroll
    for (int u = 0; u < PIECES; u++) {
        z[u] = zip_at<V>(j, walk, start, u * THREADS + threadIdx.x);
        if (z[u].planes > 0)
            x[u] = load_once<From, 4 * V>((const From *)j.src + z[u].src);
    }
#pragma unroll
    for (int u = 0; u < PIECES; u++)
#pragma unroll
        for (int l = 0; l < V; l++)
            if (l < (int)z[u].planes)
                store_once<To, 4>((To *)j.dst + z[u].dst + l * j.plane,
                                  plane_of<To, From, V>(x[u], l));
}

static unsigned zip_blocks(const reformat_zip *j)
{
    const uint64_t pieces = j->n_rows * (j->pixels / 4);
    return (unsigned)((pieces + THREADS * PIECES - 1) / (THREADS * PIECES));
}

template <typename To, typename From>
static void launch_zip(const reformat_zip *j, cudaStream_t s)
{
    zip_kernel<To, From, 4 / sizeof(To)><<<zip_blocks(j), THREADS, 0, s>>>(*j);
}

template <typename To, typename From>
static void launch_unzip(const reformat_zip *j, cudaStream_t s)
{
    unzip_kernel<To, From, 4 / sizeof(From)><<<zip_blocks(j), THREADS, 0, s>>>(*j);
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
