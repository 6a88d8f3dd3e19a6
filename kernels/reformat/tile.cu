/* SPDX-License-Identifier: Apache-2.0
 *
 * Channels by pixels, transposed through shared memory. A block takes a tile of channels
 * and pixels: it reads the source 16 bytes a thread, keeps the tile as planes of the
 * narrower dtype, waits, and writes the destination 16 bytes a thread. Each byte of global
 * memory moves once; the pitch of the planes spreads the accesses of one element over the
 * banks. Whole planes that end at odd addresses (7x7) are moved as one contiguous piece
 * of memory, whose alignment the tile copies; edges of it go by single elements.
 */
#include "kernels/reformat/tile.cuh"

#define MOST_THREADS 256

template <bool FirstIsSmaller, typename A, typename B> struct choose {
    typedef A type;
};
template <typename A, typename B> struct choose<false, A, B> {
    typedef B type;
};

template <typename T>
static __device__ inline T *side_at(void *data, const reformat_side &s, int64_t outer,
                                    uint32_t channel, uint32_t pixel)
{
    return (T *)data + outer + channel / s.vector * s.block + channel % s.vector +
           pixel * s.pixel;
}

template <typename T, typename M>
static __device__ inline tile_view<T, M> view_of(const reformat_tile &j,
                                                 const reformat_side &s)
{
    tile_view<T, M> v;
    v.pitch = j.pitch;
    v.full_channels = j.tile_channels;
    v.full_pixels = j.tile_pixels;
    v.block = s.block;
    v.pixel = s.pixel;
    v.vector = s.vector;
    v.by_pixels = j.by_pixels;
    return v;
}

/* To and from accesses, or any that the job names. */
#define NAMED -1

/* Blocks on a multiprocessor, at least. More are not always faster: between pairs and lanes
 * six measured better than five, from rows to pairs four better than six. */
static constexpr int blocks_at_once(int to, int from)
{
    return to == NAMED ? 1
           : (to == ACCESS_LANES && from >= ACCESS_PAIRS) ||
                   (from == ACCESS_LANES && to >= ACCESS_PAIRS)
               ? 6
               : 5;
}

template <typename To, typename From, int ToAccess, int FromAccess>
static __global__ void
    __launch_bounds__(MOST_THREADS, blocks_at_once(ToAccess, FromAccess))
    tile_kernel(const __grid_constant__ reformat_tile j)
{
    typedef typename choose<(sizeof(To) < sizeof(From)), To, From>::type M;
    extern __shared__ uint4 shared[];
    const int to_access = ToAccess != NAMED ? ToAccess : j.to.access;
    const int from_access = FromAccess != NAMED ? FromAccess : j.from.access;
    const uint32_t per_image = j.channel_tiles * j.pixel_tiles;
    const uint32_t image = blockIdx.x / per_image, rest = blockIdx.x - image * per_image;
    const uint32_t c = rest % j.channel_tiles * j.tile_channels;
    const uint32_t p = rest / j.channel_tiles * j.tile_pixels;
    const place outer = loops_at(j.outer, image);
    const uint32_t padded = min(j.tile_channels, j.padded - c);
    const uint32_t channels = c < j.channels ? min(padded, j.channels - c) : 0;

    tile_view<From, M> in = view_of<From, M>(j, j.from);
    tile_view<To, M> out = view_of<To, M>(j, j.to);
    in.memory = side_at<From>((void *)j.src, j.from, outer.src, c, p);
    out.memory = side_at<To>(j.dst, j.to, outer.dst, c, p);
    in.tile = out.tile = (M *)shared;
    in.origin = 0;
    if (from_access == ACCESS_PLANES)
        in.origin = misalignment(in.memory);
    else if (to_access == ACCESS_PLANES)
        in.origin = misalignment(out.memory);
    out.origin = in.origin;
    in.pixels = out.pixels = min(j.tile_pixels, j.pixels - p);
    in.channels = in.valid = out.valid = channels;
    out.channels = padded;

    move_side<From, M, true>(in, from_access);
    __syncthreads();
    move_side<To, M, false>(out, to_access);
}

template <typename To, typename From, int ToAccess, int FromAccess>
static bool launch_if(const reformat_tile *j, cudaStream_t s)
{
    if (j->to.access != ToAccess || j->from.access != FromAccess)
        return false;
    tile_kernel<To, From, ToAccess, FromAccess>
        <<<(unsigned)j->tiles, j->threads, j->shared, s>>>(*j);
    return true;
}

/* Between planes and lanes: kernels of their own for floats. */
template <typename To, typename From>
static bool launch_float(const reformat_tile *j, cudaStream_t s)
{
    return launch_if<To, From, ACCESS_LANES, ACCESS_ROWS>(j, s) ||
           launch_if<To, From, ACCESS_ROWS, ACCESS_LANES>(j, s) ||
           launch_if<To, From, ACCESS_LANES, ACCESS_PLANES>(j, s) ||
           launch_if<To, From, ACCESS_PLANES, ACCESS_LANES>(j, s);
}

/* And between pairs, which are halves, and the others. */
template <typename To, typename From>
static bool launch_special(const reformat_tile *, cudaStream_t)
{
    return false;
}
template <>
bool launch_special<float, float>(const reformat_tile *j, cudaStream_t s)
{
    return launch_float<float, float>(j, s);
}
template <>
bool launch_special<float, __half>(const reformat_tile *j, cudaStream_t s)
{
    return launch_float<float, __half>(j, s) ||
           launch_if<float, __half, ACCESS_PLANES, ACCESS_PAIR_PLANES>(j, s);
}
template <>
bool launch_special<__half, float>(const reformat_tile *j, cudaStream_t s)
{
    return launch_float<__half, float>(j, s) ||
           launch_if<__half, float, ACCESS_PAIR_PLANES, ACCESS_PLANES>(j, s);
}
template <>
bool launch_special<float, __nv_bfloat16>(const reformat_tile *j, cudaStream_t s)
{
    return launch_float<float, __nv_bfloat16>(j, s);
}
template <>
bool launch_special<__nv_bfloat16, float>(const reformat_tile *j, cudaStream_t s)
{
    return launch_float<__nv_bfloat16, float>(j, s);
}
template <>
bool launch_special<__half, __half>(const reformat_tile *j, cudaStream_t s)
{
    return launch_float<__half, __half>(j, s) ||
           launch_if<__half, __half, ACCESS_PLANES, ACCESS_PAIR_PLANES>(j, s) ||
           launch_if<__half, __half, ACCESS_PAIR_PLANES, ACCESS_PLANES>(j, s) ||
           launch_if<__half, __half, ACCESS_LANES, ACCESS_PAIRS>(j, s) ||
           launch_if<__half, __half, ACCESS_PAIRS, ACCESS_LANES>(j, s) ||
           launch_if<__half, __half, ACCESS_LANES, ACCESS_PAIR_PLANES>(j, s) ||
           launch_if<__half, __half, ACCESS_PAIR_PLANES, ACCESS_LANES>(j, s);
}

template <typename To, typename From>
static void launch(const reformat_tile *j, cudaStream_t s)
{
    if (!launch_special<To, From>(j, s))
        tile_kernel<To, From, NAMED, NAMED>
            <<<(unsigned)j->tiles, j->threads, j->shared, s>>>(*j);
}

extern "C" int reformat_launch_tile(const struct reformat_tile *j, int to, int from,
                                    void *stream)
{
#define LAUNCH(TO, To, FROM, From)  \
    if (to == (TO) && from == (FROM)) \
        launch<To, From>(j, (cudaStream_t)stream);
    REFORMAT_TYPED(LAUNCH)
#undef LAUNCH
    return cudaPeekAtLastError();
}
