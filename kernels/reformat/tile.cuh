/* SPDX-License-Identifier: Apache-2.0
 *
 * How a side of channels by pixels moves between memory and a tile in shared memory, which
 * holds it as planes: by rows, whole planes, vectors of 4 bytes, lanes or elements. One
 * function an access, the same for both directions.
 */
#ifndef KERNELS_REFORMAT_TILE_CUH
#define KERNELS_REFORMAT_TILE_CUH

#include "kernels/reformat/common.cuh"

/* A block's part of one side, and the tile. `origin` is where channel 0, pixel 0 lies. */
template <typename T, typename M> struct tile_view {
    T *memory;
    M *tile;
    uint32_t origin, pitch;
    uint32_t channels, pixels; /* of this tile; channels with pads, of dst */
    uint32_t valid;            /* channels that are no pads */
    uint32_t full_channels, full_pixels;
    int64_t block, pixel;
    uint32_t vector;
    reformat_divisor by_pixels;

    static const int E = 16 / sizeof(T); /* elements of an access */
    static const int flight = sizeof(T) > 1 ? 4 : 2; /* accesses in flight */

    __device__ inline M *at(uint32_t c, uint32_t p) const
    {
        return tile + origin + c * pitch + p;
    }
};

/* Elements from the last 16-byte boundary to p. */
template <typename T> static __device__ inline uint32_t misalignment(const T *p)
{
    return (uint32_t)(((uintptr_t)p % 16) / sizeof(T));
}

/* ---- one access each way ----------------------------------------------------------------- */

/* Between a pack of a side's elements and N neighbours of the tile, moved W at a time. */
template <int W, typename T, typename M, int N>
static __device__ inline void put_row(M *tile, const pack<T, N> &x)
{
    const pack<M, N> y = convert_pack<M, T, N>(x);
#pragma unroll
    for (int i = 0; i < N; i += W) {
        pack<M, W> part;
#pragma unroll
        for (int k = 0; k < W; k++)
            part.v[k] = y.v[i + k];
        *(pack<M, W> *)(tile + i) = part;
    }
}

template <int W, typename T, typename M, int N>
static __device__ inline pack<T, N> get_row(const M *tile)
{
    pack<M, N> y;
#pragma unroll
    for (int i = 0; i < N; i += W) {
        const pack<M, W> part = *(const pack<M, W> *)(tile + i);
#pragma unroll
        for (int k = 0; k < W; k++)
            y.v[i + k] = part.v[k];
    }
    return convert_pack<T, M, N>(y);
}

/* ---- ACCESS_ROWS: a row of pixels of one channel ------------------------------------------ */

template <typename T, typename M, bool Read>
static __device__ inline void move_rows(const tile_view<T, M> &v)
{
    const int E = v.E, FLIGHT = v.flight, W = sizeof(M) < 4 ? 4 / sizeof(M) : 1;
    const uint32_t row = v.full_pixels / E;
    const uint32_t first = threadIdx.x / row, step = blockDim.x / row;
    const uint32_t p = threadIdx.x % row * E;
    if (first >= step || p >= v.pixels)
        return;
    for (uint32_t c = first; c < v.channels; c += FLIGHT * step) {
        pack<T, E> x[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; u++)
            if (c + u * step < v.channels) {
                T *memory = v.memory + (c + u * step) * v.block + p;
                M *tile = v.at(c + u * step, p);
                if (Read)
                    x[u] = load_once<T, E>(memory);
                else
                    store_once<T, E>(memory, get_row<W, T, M, E>(tile));
            }
#pragma unroll
        for (int u = 0; u < FLIGHT; u++)
            if (Read && c + u * step < v.channels)
                put_row<W, T, M, E>(v.at(c + u * step, p), x[u]);
    }
}

/* ---- ACCESS_PLANES: all planes as one contiguous piece ------------------------------------ */

template <typename T, typename M, bool Read>
static __device__ inline void move_element(T *memory, M *tile)
{
    if (Read)
        *tile = convert<M>(*memory);
    else
        *memory = convert<T>(*tile);
}

template <typename T, typename M, bool Read>
static __device__ inline void move_planes(const tile_view<T, M> &v)
{
    const int E = v.E, FLIGHT = v.flight;
    const uint32_t skip = misalignment(v.memory), end = skip + v.channels * v.pixels;
    const uint32_t from = (skip + E - 1) / E * E, to = end / E * E;
    T *const memory = v.memory - skip;
    M *const tile = v.tile + v.origin - skip; /* a multiple of E from its start */
    for (uint32_t i = from + threadIdx.x * E; i < to; i += FLIGHT * E * blockDim.x) {
        pack<T, E> x[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const uint32_t k = i + u * E * blockDim.x;
            if (k >= to)
                continue;
            if (Read)
                x[u] = load_once<T, E>(memory + k);
            else
                store_once<T, E>(memory + k, get_row<E, T, M, E>(tile + k));
        }
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const uint32_t k = i + u * E * blockDim.x;
            if (Read && k < to)
                put_row<E, T, M, E>(tile + k, x[u]);
        }
    }
    /* The edges, less than an access each; the last threads have the least to do. */
    const uint32_t e = blockDim.x - 1 - threadIdx.x;
    if (e < E && skip + e < min(from, end))
        move_element<T, M, Read>(memory + skip + e, tile + skip + e);
    if (e < E && max(to, from) + e < end)
        move_element<T, M, Read>(memory + max(to, from) + e, tile + max(to, from) + e);
}

/* ---- ACCESS_PAIRS: vectors of 4 bytes, four pixels an access ------------------------------ */

template <typename T, typename M, bool Read>
static __device__ inline void move_vector(const tile_view<T, M> &v, uint32_t block,
                                          uint32_t p, T *element)
{
    const int V = 4 / sizeof(T);
#pragma unroll
    for (int l = 0; l < V; l++) {
        M *tile = v.at(block * V + l, p);
        if (Read)
            *tile = convert<M>(element[l]);
        else
            element[l] = block * V + l < v.valid ? convert<T>(*tile) : zero_element<T>();
    }
}

template <typename T, typename M, bool Read>
static __device__ inline void move_block(const tile_view<T, M> &v, uint32_t block,
                                         uint32_t p, pack<T, 16 / sizeof(T)> &x)
{
#pragma unroll
    for (int g = 0; g < 4; g++)
        move_vector<T, M, Read>(v, block, p + g, x.v + g * (4 / sizeof(T)));
}

template <typename T, typename M, bool Read>
static __device__ inline void move_pairs(const tile_view<T, M> &v)
{
    const int E = v.E, FLIGHT = v.flight, V = 4 / sizeof(T);
    const uint32_t row = v.full_pixels / 4, blocks = (v.channels + V - 1) / V;
    const uint32_t first = threadIdx.x / row, step = blockDim.x / row;
    const uint32_t p = threadIdx.x % row * 4;
    if (first >= step || p >= v.pixels)
        return;
    for (uint32_t b = first; b < blocks; b += FLIGHT * step) {
        pack<T, E> x[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const uint32_t at = b + u * step;
            if (Read && at < blocks)
                x[u] = load_once<T, E>(v.memory + at * v.block + p * V);
        }
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const uint32_t at = b + u * step;
            if (at >= blocks)
                continue;
            move_block<T, M, Read>(v, at, p, x[u]);
            if (!Read)
                store_once<T, E>(v.memory + at * v.block + p * V, x[u]);
        }
    }
}

/* Vector k of whole planes is pixel k % pixels of block k / pixels. */
template <typename T, typename M, bool Read>
static __device__ inline void move_pair(const tile_view<T, M> &v, uint32_t k, T *element)
{
    const int V = 4 / sizeof(T);
    const uint32_t b = divide(k, v.by_pixels);
    M *tile = v.tile + v.origin + k + b * (V * v.pitch - v.pixels);
#pragma unroll
    for (int l = 0; l < V; l++) {
        if (Read)
            tile[l * v.pitch] = convert<M>(element[l]);
        else
            element[l] = v.valid == v.channels || b * V + l < v.valid
                             ? convert<T>(tile[l * v.pitch])
                             : zero_element<T>();
    }
}

template <typename T, typename M, bool Read>
static __device__ inline void move_four(const tile_view<T, M> &v, uint32_t k,
                                        pack<T, 16 / sizeof(T)> &x)
{
#pragma unroll
    for (int g = 0; g < 4; g++)
        move_pair<T, M, Read>(v, k + g, x.v + g * (4 / sizeof(T)));
}

template <typename T, typename M, bool Read>
static __device__ inline void move_one_pair(const tile_view<T, M> &v, uint32_t k)
{
    const int V = 4 / sizeof(T);
    pack<T, V> x;
    if (Read)
        x = *(const pack<T, V> *)(v.memory + k * V);
    move_pair<T, M, Read>(v, k, x.v);
    if (!Read)
        *(pack<T, V> *)(v.memory + k * V) = x;
}

template <typename T, typename M, bool Read>
static __device__ inline void move_pair_planes(const tile_view<T, M> &v)
{
    const int E = v.E, FLIGHT = v.flight, V = 4 / sizeof(T);
    const uint32_t ahead = misalignment(v.memory) / V, skip = ahead > 0 ? 4 - ahead : 0;
    const uint32_t end = (v.channels + V - 1) / V * v.pixels;
    const uint32_t from = min(skip, end), to = from + (end - from) / 4 * 4;
    for (uint32_t i = from + threadIdx.x * 4; i < to; i += FLIGHT * 4 * blockDim.x) {
        pack<T, E> x[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const uint32_t k = i + u * 4 * blockDim.x;
            if (Read && k < to)
                x[u] = load_once<T, E>(v.memory + k * V);
        }
#pragma unroll
        for (int u = 0; u < FLIGHT; u++) {
            const uint32_t k = i + u * 4 * blockDim.x;
            if (k >= to)
                continue;
            move_four<T, M, Read>(v, k, x[u]);
            if (!Read)
                store_once<T, E>(v.memory + k * V, x[u]);
        }
    }
    const uint32_t e = blockDim.x - 1 - threadIdx.x;
    if (e < from)
        move_one_pair<T, M, Read>(v, e);
    if (e < end - to)
        move_one_pair<T, M, Read>(v, to + e);
}

/* ---- ACCESS_LANES: neighbouring channels of one pixel ------------------------------------- */

template <typename T, typename M>
static __device__ inline pack<T, 16 / sizeof(T)> gather_lanes(const tile_view<T, M> &v,
                                                              uint32_t c, uint32_t p)
{
    pack<T, 16 / sizeof(T)> x;
    const bool whole = c + v.E <= v.valid;
#pragma unroll
    for (int e = 0; e < v.E; e++)
        x.v[e] = whole || c + e < v.valid ? convert<T>(*v.at(c + e, p)) : zero_element<T>();
    return x;
}

template <typename T, typename M>
static __device__ inline void scatter_lanes(const tile_view<T, M> &v, uint32_t c,
                                            uint32_t p,
                                            const pack<T, 16 / sizeof(T)> &x)
{
#pragma unroll
    for (int e = 0; e < v.E; e++)
        *v.at(c + e, p) = convert<M>(x.v[e]);
}

template <typename T, typename M, bool Read>
static __device__ inline void move_lanes(const tile_view<T, M> &v)
{
    const int E = v.E, FLIGHT = v.flight;
    const uint32_t lanes = min(v.vector, (v.full_channels + E - 1) / E * E);
    const uint32_t row = lanes / E;
    const uint32_t first = threadIdx.x / row, step = blockDim.x / row;
    const uint32_t lane = threadIdx.x % row * E;
    if (first >= step)
        return;
    T *memory = v.memory + lane;
    for (uint32_t c = lane; c < v.channels; c += lanes, memory += v.block)
        for (uint32_t p = first; p < v.pixels; p += FLIGHT * step) {
            pack<T, E> x[FLIGHT];
#pragma unroll
            for (int u = 0; u < FLIGHT; u++) {
                const uint32_t at = p + u * step;
                if (at >= v.pixels)
                    continue;
                if (Read)
                    x[u] = load_once<T, E>(memory + at * v.pixel);
                else
                    store_once<T, E>(memory + at * v.pixel, gather_lanes<T, M>(v, c, at));
            }
#pragma unroll
            for (int u = 0; u < FLIGHT; u++)
                if (Read && p + u * step < v.pixels)
                    scatter_lanes<T, M>(v, c, p + u * step, x[u]);
        }
}

/* ---- ACCESS_ANY: one element, in the order of memory -------------------------------------- */

template <typename T, typename M, bool Read>
static __device__ inline void move_any(const tile_view<T, M> &v)
{
    const uint32_t lanes = min(v.vector, v.full_channels);
    const uint32_t blocks = (v.channels + lanes - 1) / lanes;
    const uint32_t count = blocks * v.pixels * lanes;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        const uint32_t lane = i % lanes, rest = i / lanes;
        const uint32_t b = rest / v.pixels, p = rest - b * v.pixels;
        T *memory = v.memory + b * v.block + p * v.pixel + lane;
        if (b * lanes + lane >= v.channels)
            continue;
        M *tile = v.at(b * lanes + lane, p);
        if (Read || b * lanes + lane < v.valid)
            move_element<T, M, Read>(memory, tile);
        else
            *memory = zero_element<T>();
    }
}

/* ---- any of them ------------------------------------------------------------------------- */

template <typename T, typename M, bool Read>
static __device__ inline void move_side(const tile_view<T, M> &v, int access)
{
    switch (access) {
    case ACCESS_ROWS:
        return move_rows<T, M, Read>(v);
    case ACCESS_PLANES:
        return move_planes<T, M, Read>(v);
    case ACCESS_PAIRS:
        return move_pairs<T, M, Read>(v);
    case ACCESS_PAIR_PLANES:
        return move_pair_planes<T, M, Read>(v);
    case ACCESS_LANES:
        return move_lanes<T, M, Read>(v);
    default:
        return move_any<T, M, Read>(v);
    }
}

#endif /* KERNELS_REFORMAT_TILE_CUH */
