/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the device's reformat table: which pairs each takes, and its job.
 */
#include "kernels/reformat.h"

#include <string.h>

#include "kernels/reformat_request.h"

#define WALK_STEPS 1024  /* of a block, as in reformat_common.cuh */
#define ZIP_BLOCKS 32768 /* so that divisors are exact */

union job {
    struct reformat_runs runs;
    struct reformat_pixel pixel;
    struct reformat_zip zip;
    struct reformat_tile tile;
    struct reformat_slab slab;
    struct reformat_any any;
};

/* ---- the pair -------------------------------------------------------------------------
 */

/* Conversions between integers go element by element. */
static bool typed_pair(int to, int from)
{
    const bool narrow = to == STRATA_FP32 || to == STRATA_FP16 || from == STRATA_FP32 ||
                        from == STRATA_FP16;
    return to == from || (narrow && to != STRATA_INT32 && from != STRATA_INT32);
}

static int same_bits(int64_t size)
{
    return size == 4 ? STRATA_FP32 : size == 2 ? STRATA_FP16 : STRATA_INT8;
}

/* Channels of the source that lie next to each other may be read to the end of their last
 * vector. */
static void extend_lanes(struct panel *p, const strata_desc *src)
{
    const int d = src->vector_dim;
    if (d < 0 || p->src.planar || p->src.vector != p->channels ||
        src->dims[d] != p->channels ||
        (src->strides[d] != src->vector && p->channels > src->vector))
        return;
    p->src.vector = (p->channels + src->vector - 1) / src->vector * src->vector;
}

static struct request describe(const strata_desc *dst, void *dst_data,
                               const strata_desc *src, const void *src_data)
{
    struct request r = {.dst = dst,
                        .src = src,
                        .dst_data = dst_data,
                        .src_data = src_data,
                        .to = dst->dtype,
                        .from = src->dtype,
                        .to_size = (int64_t)strata_dtype_size(dst->dtype),
                        .from_size = (int64_t)strata_dtype_size(src->dtype)};
    r.typed = typed_pair(r.to, r.from);
    if (r.to == r.from)
        r.to = r.from = same_bits(r.to_size);
    r.as_runs = runs_shape(&r.runs, dst, src);
    r.as_panel = panel_shape(&r.panel, dst, src);
    if (r.as_panel)
        extend_lanes(&r.panel, src);
    return r;
}

/* ---- runs
 * --------------------------------------------------------------------------------
 */

static bool make_runs_of(struct reformat_runs *j, const struct request *r, int64_t piece)
{
    if (!r->typed || !r->as_runs ||
        !take_loops(&j->rows, &j->n_rows, r->runs.outer, r->runs.n_outer))
        return false;
    j->dst = r->dst_data;
    j->src = r->src_data;
    j->piece = (int32_t)piece;
    j->length = (uint64_t)(r->runs.length / piece);
    return divide_up(j->n_rows * j->length, 1024) <= MOST_BLOCKS;
}

static int64_t runs_piece(const struct request *r)
{
    return 16 / (r->to_size > r->from_size ? r->to_size : r->from_size);
}

static bool make_runs(union job *j, const struct request *r)
{
    const int64_t n = runs_piece(r);
    return make_runs_of(&j->runs, r, n) && j->runs.length > 0 &&
           (whole(r->runs.length, n) || r->runs.n_outer == 0) &&
           aligned(r->dst_data, n * r->to_size) &&
           aligned(r->src_data, n * r->from_size) &&
           loops_whole(r->runs.outer, r->runs.n_outer, true, n) &&
           loops_whole(r->runs.outer, r->runs.n_outer, false, n);
}

static bool make_runs_any(union job *j, const struct request *r)
{
    return make_runs_of(&j->runs, r, 1);
}

/* The end of a single run that is not a whole piece goes by elements. */
static int launch_runs(const union job *j, const struct request *r, void *stream)
{
    const int64_t done = (int64_t)j->runs.length * j->runs.piece;
    int error = reformat_launch_runs(&j->runs, r->to, r->from, stream);
    if (error != 0 || r->runs.n_outer > 0 || done == r->runs.length)
        return error;
    struct reformat_runs tail = j->runs;
    tail.dst = r->dst_data + done * r->to_size;
    tail.src = r->src_data + done * r->from_size;
    tail.piece = 1;
    tail.length = (uint64_t)(r->runs.length - done);
    return reformat_launch_runs(&tail, r->to, r->from, stream);
}

/* ---- zip
 * ---------------------------------------------------------------------------------
 */

/* Vectors of 4 bytes with nothing between them. */
static bool is_pairs(const struct lanes *s, int64_t pixel, int64_t size)
{
    return !s->planar && size < 4 && s->vector * size == 4 && pixel == s->vector;
}

/* The last two loops as one, where they are one on both sides. */
static int merge_last(struct loop *loops, int n)
{
    if (n < 2)
        return n;
    struct loop *outer = &loops[n - 2];
    const struct loop inner = loops[n - 1];
    if (outer->dst != inner.extent * inner.dst || outer->src != inner.extent * inner.src)
        return n;
    *outer = (struct loop){outer->extent * inner.extent, inner.dst, inner.src};
    return n - 1;
}

static bool zip_types(bool zips, int to, int from)
{
    const int vectors = zips ? to : from, planes = zips ? from : to;
    return (vectors == STRATA_FP16 && planes != STRATA_INT8 && planes != STRATA_UINT8) ||
           (vectors == STRATA_INT8 && planes != STRATA_UINT8);
}

/* Whether planes of halves can be read 16 bytes a thread. */
static bool zip_wide(const struct request *r, int64_t v)
{
    const struct panel *p = &r->panel;
    return whole(p->pixel.extent, 8) && (p->channels == 1 || whole(p->src.block, 8)) &&
           aligned(r->src_data, 16) && v == 2 &&
           loops_whole(p->outer, p->n_outer, false, 8);
}

static bool make_zip(union job *out, const struct request *r)
{
    struct reformat_zip *j = &out->zip;
    const struct panel *p = &r->panel;
    if (!r->typed || !r->as_panel)
        return false;
    const bool zips = p->src.planar;
    const struct lanes *planes = zips ? &p->src : &p->dst;
    const struct lanes *pairs = zips ? &p->dst : &p->src;
    const int64_t size = zips ? r->to_size : r->from_size;
    const int64_t plane_size = zips ? r->from_size : r->to_size;
    const void *plane_data = zips ? r->src_data : r->dst_data;
    const void *pair_data = zips ? r->dst_data : r->src_data;
    const int64_t v = 4 / size, step = zips ? p->pixel.dst : p->pixel.src;
    /* Measured: halves of many channels move faster through a tile. */
    if (zips && size == 2 && plane_size == 2 && p->channels > 8)
        return false;
    if (!planes->planar || !is_pairs(pairs, step, size) ||
        !zip_types(zips, r->to, r->from) || p->pixel.extent > INT32_MAX / 2 ||
        !whole(p->pixel.extent, 4) || !whole(planes->block, 4) ||
        !aligned(plane_data, 4 * plane_size) || !aligned(pair_data, 16) ||
        !loops_whole(p->outer, p->n_outer, !zips, 4) ||
        !loops_whole(p->outer, p->n_outer, zips, 4 * v) || p->padded > INT32_MAX)
        return false;
    if (p->channels > v && !whole(pairs->block, 4 * v))
        return false;
    const int64_t blocks = (p->channels + v - 1) / v;
    struct loop rows[REFORMAT_LOOPS];
    int n = p->n_outer;
    for (int i = 0; i < n; i++)
        rows[i] = p->outer[i];
    j->blocks = divisor((uint32_t)blocks);
    j->last = (uint32_t)(p->channels - (blocks - 1) * v);
    if (whole(p->channels, v) && blocks > 1) {
        /* Images may end where the next begins: a row then is a block of any of them. */
        rows[n++] = zips ? (struct loop){blocks, pairs->block, v * planes->block}
                         : (struct loop){blocks, v * planes->block, pairs->block};
        n = merge_last(rows, n);
        if (n == 1)
            j->blocks = divisor(1);
        else
            n = p->n_outer;
    }
    if (blocks > ZIP_BLOCKS || !take_loops(&j->rows, &j->n_rows, rows, n))
        return false;
    j->n_rows *= j->blocks.d;
    j->dst = r->dst_data;
    j->src = r->src_data;
    j->zips = zips;
    j->pixels = zips && r->from_size == 2 && r->to_size == 2 && zip_wide(r, v) ? 8 : 4;
    j->pieces = divisor((uint32_t)(p->pixel.extent / j->pixels));
    j->plane = planes->block;
    j->block = pairs->block;
    return divide_up(j->n_rows * j->pieces.d, WALK_STEPS) <= MOST_BLOCKS;
}

static int launch_zip(const union job *j, const struct request *r, void *stream)
{
    return reformat_launch_zip(&j->zip, r->to, r->from, stream);
}

/* ---- pixel
 * -------------------------------------------------------------------------------
 */

/* A side whose channels a thread moves one by one, or in vectors of two or eight halves.
 */
static bool pixel_side(struct reformat_side *out, const struct request *r, bool in_dst)
{
    const struct panel *p = &r->panel;
    const struct lanes *s = in_dst ? &p->dst : &p->src;
    const int64_t size = in_dst ? r->to_size : r->from_size, v = s->vector;
    const int64_t pixel = in_dst ? p->pixel.dst : p->pixel.src;
    const void *data = in_dst ? (const void *)r->dst_data : r->src_data;
    *out = (struct reformat_side){.vector = 1, .block = s->block, .pixel = pixel};
    if (s->planar)
        return true;
    if (size == 2 && (v == 2 || v == 8) && whole(pixel, v) && aligned(data, v * size) &&
        loops_whole(p->outer, p->n_outer, in_dst, v) &&
        (v >= p->channels || whole(s->block, v))) {
        out->vector = (int32_t)v;
        return true;
    }
    out->block = 1;
    return v >= (in_dst ? p->padded : p->channels);
}

/* Whether offsets within a block fit 32 bits. */
static bool walk_fits(const struct reformat_loops *l, uint32_t length, int64_t dst,
                      int64_t src)
{
    const int64_t rows = WALK_STEPS / length + 2;
    const int64_t a = l->n > 0 ? l->dst[0] : 0, b = l->n > 0 ? l->src[0] : 0;
    const int64_t most = INT32_MAX;
    return (l->n != 1 || (a <= most / rows && b <= most / rows)) &&
           dst <= most / length && src <= most / length;
}

/* Conversions of images and of what networks compute with. */
static bool pixel_types(int to, int from)
{
    return to == from ||
           ((to == STRATA_FP32 || to == STRATA_FP16) && from != STRATA_INT8);
}

static bool make_pixel(union job *out, const struct request *r)
{
    struct reformat_pixel *j = &out->pixel;
    const struct panel *p = &r->panel;
    if (!r->typed || !r->as_panel || !pixel_types(r->to, r->from) || p->padded > 8 ||
        p->pixel.extent > INT32_MAX / 2 || !pixel_side(&j->to, r, true) ||
        !pixel_side(&j->from, r, false) ||
        !take_loops(&j->rows, &j->n_rows, p->outer, p->n_outer))
        return false;
    j->dst = r->dst_data;
    j->src = r->src_data;
    j->pixels = divisor((uint32_t)p->pixel.extent);
    j->channels = (uint32_t)p->channels;
    j->padded = (uint32_t)p->padded;
    return divide_up(j->n_rows * j->pixels.d, WALK_STEPS) <= MOST_BLOCKS &&
           walk_fits(&j->rows, j->pixels.d, j->to.pixel, j->from.pixel);
}

static int launch_pixel(const union job *j, const struct request *r, void *stream)
{
    return reformat_launch_pixel(&j->pixel, r->to, r->from, stream);
}

/* ---- tile
 * --------------------------------------------------------------------------------
 */

enum {
    TILE_BYTES = 16 * 1024, /* of shared memory, for tiles of a plane's part */
    TILE_MOST = 26 * 1024,  /* for whole planes */
    TILE_CHANNELS = 128,    /* all of them, if not more */
    TILE_SOME = 64,         /* else */
    TILE_STEP = 16,         /* what sizes are multiples of */
    TILE_PIXELS = 512,      /* at most */
    TILE_PLANE = 1024,      /* pixels of a whole plane, at most */
    TILE_THREADS = 256,
    TILE_LEAST = 64,
    TILE_FLIGHT = 4,
};

/* What the two sides allow. */
struct tile_plan {
    int64_t size; /* bytes of an element in shared memory */
    int64_t step; /* channels of a tile are a multiple, unless all */
};

/* 16-byte accesses of a part of the planes, or of lanes; ACCESS_ANY where they do not
 * fit. */
static int tile_access(const struct request *r, bool in_dst)
{
    const struct panel *p = &r->panel;
    const struct lanes *s = in_dst ? &p->dst : &p->src;
    const int64_t size = in_dst ? r->to_size : r->from_size, n = 16 / size;
    const int64_t pixel = in_dst ? p->pixel.dst : p->pixel.src;
    const void *data = in_dst ? (const void *)r->dst_data : r->src_data;
    const bool blocks = s->planar || s->vector < p->channels;
    if (!aligned(data, 16) || !loops_whole(p->outer, p->n_outer, in_dst, n) ||
        (blocks && !whole(s->block, n)))
        return ACCESS_ANY;
    if (s->planar)
        return whole(p->pixel.extent, n) ? ACCESS_ROWS : ACCESS_ANY;
    if (is_pairs(s, pixel, size))
        return whole(p->pixel.extent, 4) ? ACCESS_PAIRS : ACCESS_ANY;
    return whole(s->vector, n) && whole(pixel, n) ? ACCESS_LANES : ACCESS_ANY;
}

/* The same for whole planes, one after the other at any alignment. */
static int plane_access(const struct request *r, bool in_dst)
{
    const struct panel *p = &r->panel;
    const struct lanes *s = in_dst ? &p->dst : &p->src;
    const int64_t size = in_dst ? r->to_size : r->from_size;
    const int64_t pixel = in_dst ? p->pixel.dst : p->pixel.src;
    const void *data = in_dst ? (const void *)r->dst_data : r->src_data;
    if (s->planar && s->block == p->pixel.extent && aligned(data, size))
        return ACCESS_PLANES;
    if (is_pairs(s, pixel, size) && aligned(data, 4) &&
        loops_whole(p->outer, p->n_outer, in_dst, s->vector) &&
        (s->vector >= p->channels || s->block == p->pixel.extent * s->vector))
        return ACCESS_PAIR_PLANES;
    return ACCESS_ANY;
}

static int64_t least_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y > 0) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static int64_t tile_step(const struct panel *p)
{
    int64_t step = TILE_STEP;
    if (!p->dst.planar && p->dst.vector < p->padded && p->dst.vector <= TILE_CHANNELS)
        step = least_multiple(step, p->dst.vector);
    if (!p->src.planar && p->src.vector < p->channels && p->src.vector <= TILE_CHANNELS)
        step = least_multiple(step, p->src.vector);
    return step;
}

/* A vector longer than any tile must hold all channels: tiles cannot cut it otherwise. */
static bool tile_cuts(const struct panel *p)
{
    return (p->dst.planar || p->dst.vector >= p->padded ||
            p->dst.vector <= TILE_CHANNELS) &&
           (p->src.planar || p->src.vector >= p->channels ||
            p->src.vector <= TILE_CHANNELS);
}

static bool size_planes(struct reformat_tile *j, const struct panel *p,
                        const struct tile_plan *t)
{
    const int64_t pixels = p->pixel.extent;
    if (pixels > TILE_PLANE)
        return false;
    const int64_t fit = (TILE_MOST - 32) / (pixels * t->size) / t->step * t->step;
    if (fit == 0)
        return false;
    const int64_t tiles = (p->padded + fit - 1) / fit;
    const int64_t channels =
        least(round_up((p->padded + tiles - 1) / tiles, t->step), p->padded);
    j->tile_channels = (uint32_t)channels;
    j->tile_pixels = j->pitch = (uint32_t)pixels;
    return true;
}

static bool size_parts(struct reformat_tile *j, const struct panel *p,
                       const struct tile_plan *t)
{
    const int64_t room = TILE_BYTES / t->size;
    int64_t channels =
        p->padded <= TILE_CHANNELS ? p->padded : round_up(TILE_SOME, t->step);
    const int64_t plane = round_up(p->pixel.extent, TILE_STEP);
    int64_t pixels = least(room / channels / TILE_STEP * TILE_STEP, TILE_PIXELS);
    if (channels * plane * t->size <= TILE_MOST && plane <= TILE_PIXELS)
        pixels = plane;
    if (pixels < TILE_STEP)
        return false;
    const int64_t tiles = (int64_t)divide_up((uint64_t)p->pixel.extent, (uint64_t)pixels);
    pixels = round_up((p->pixel.extent + tiles - 1) / tiles, TILE_STEP);
    const int64_t fit = least(p->padded, room / pixels / t->step * t->step);
    if (channels < fit) /* few pixels: take more channels */
        channels = fit;
    j->tile_channels = (uint32_t)channels;
    j->tile_pixels = (uint32_t)pixels;
    j->pitch = (uint32_t)(pixels + 4 / t->size); /* an odd number of banks */
    return true;
}

/* As few as keep all their accesses in flight at once: small blocks, many of them. */
static uint32_t tile_threads(int64_t accesses)
{
    const int64_t threads = round_up((accesses + TILE_FLIGHT - 1) / TILE_FLIGHT, 32);
    return (uint32_t)(threads < TILE_LEAST ? TILE_LEAST : least(threads, TILE_THREADS));
}

static struct reformat_side tile_side(const struct request *r, bool in_dst, int access)
{
    const struct panel *p = &r->panel;
    const struct lanes *s = in_dst ? &p->dst : &p->src;
    return (struct reformat_side){
        .access = access,
        .vector = s->planar ? 1 : (int32_t)s->vector,
        .block = s->block,
        .pixel = in_dst ? p->pixel.dst : p->pixel.src,
    };
}

/* Threads that one row of a side's accesses takes; a block has at least that many. */
static int64_t side_threads(const struct reformat_tile *j, const struct reformat_side *s,
                            int64_t size)
{
    const int64_t n = 16 / size;
    if (s->access == ACCESS_ROWS)
        return j->tile_pixels / n;
    if (s->access == ACCESS_PAIRS)
        return j->tile_pixels / 4;
    return s->access == ACCESS_LANES ? least(s->vector, round_up(j->tile_channels, n)) / n
                                     : 1;
}

static bool make_tile_with(struct reformat_tile *j, const struct request *r, int to,
                           int from, bool planes)
{
    const struct panel *p = &r->panel;
    const int64_t most = r->to_size > r->from_size ? r->to_size : r->from_size;
    const struct tile_plan t = {.size = r->to_size + r->from_size - most,
                                .step = tile_step(p)};
    uint64_t images;
    if (!(planes ? size_planes(j, p, &t) : size_parts(j, p, &t)) ||
        !take_loops(&j->outer, &images, p->outer, p->n_outer))
        return false;
    j->dst = r->dst_data;
    j->src = r->src_data;
    j->to = tile_side(r, true, to);
    j->from = tile_side(r, false, from);
    j->pixels = (uint32_t)p->pixel.extent;
    j->channels = (uint32_t)p->channels;
    j->padded = (uint32_t)p->padded;
    j->pixel_tiles = (uint32_t)divide_up(j->pixels, j->tile_pixels);
    j->channel_tiles = (uint32_t)divide_up(j->padded, j->tile_channels);
    j->tiles = images * j->pixel_tiles * j->channel_tiles;
    j->by_pixels = divisor(j->tile_pixels);
    j->threads =
        planes ? tile_threads((int64_t)j->tile_channels * j->tile_pixels * most / 16)
               : TILE_THREADS;
    const int64_t a = side_threads(j, &j->to, r->to_size);
    const int64_t b = side_threads(j, &j->from, r->from_size);
    const int64_t rows_threads = round_up(a > b ? a : b, 32);
    if (rows_threads > TILE_THREADS)
        return false;
    if (rows_threads > j->threads)
        j->threads = (uint32_t)rows_threads;
    /* Lanes are read in whole accesses, past the last channel, and planes as they lie. */
    const int64_t rows = round_up(j->tile_channels, TILE_STEP);
    j->shared = (uint32_t)round_up((rows * j->pitch + 16) * t.size, 16);
    return j->tiles <= MOST_BLOCKS && j->shared <= 48 * 1024;
}

static bool takes_tile(const struct request *r)
{
    const struct panel *p = &r->panel;
    return r->typed && r->as_panel && tile_cuts(p) && p->pixel.extent <= INT32_MAX / 2 &&
           p->padded <= INT32_MAX / 2 && !(p->dst.planar && p->src.planar);
}

/* Where neither side has blocks or pads, channels and pixels may change places. */
static bool turned(struct request *out, const struct request *r)
{
    const struct panel *p = &r->panel;
    struct panel *q = &out->panel;
    if (p->dst.planar == p->src.planar || p->padded != p->channels ||
        (p->dst.planar ? p->src.vector : p->dst.vector) < p->channels)
        return false;
    *out = *r;
    q->channels = q->padded = p->pixel.extent;
    q->pixel = (struct loop){p->channels, p->dst.planar ? p->dst.block : 1,
                             p->src.planar ? p->src.block : 1};
    q->dst = (struct lanes){!p->dst.planar, q->channels, p->pixel.dst};
    q->src = (struct lanes){!p->src.planar, q->channels, p->pixel.src};
    extend_lanes(q, r->src);
    return true;
}

static bool make_tile_of(union job *j, const struct request *r)
{
    if (!takes_tile(r))
        return false;
    int to = tile_access(r, true), from = tile_access(r, false);
    if (to != ACCESS_ANY && from != ACCESS_ANY)
        return make_tile_with(&j->tile, r, to, from, false);
    if (to == ACCESS_ANY)
        to = plane_access(r, true);
    if (from == ACCESS_ANY)
        from = plane_access(r, false);
    return to != ACCESS_ANY && from != ACCESS_ANY &&
           make_tile_with(&j->tile, r, to, from, true);
}

static bool make_tile(union job *j, const struct request *r)
{
    struct request other;
    return make_tile_of(j, r) || (turned(&other, r) && make_tile_of(j, &other));
}

/* The side that allows wide accesses of parts of planes keeps them. */
static bool make_tile_any(union job *j, const struct request *r)
{
    return takes_tile(r) && make_tile_with(&j->tile, r, tile_access(r, true),
                                           tile_access(r, false), false);
}

static int launch_tile(const union job *j, const struct request *r, void *stream)
{
    return reformat_launch_tile(&j->tile, r->to, r->from, stream);
}

/* ---- slab
 * --------------------------------------------------------------------------------
 */

enum order { PLANES, BLOCKS, LANES }; /* of channels in memory */

static enum order order_of(const strata_desc *d)
{
    if (d->rank > 1 && d->strides[1] == (d->vector_dim == 1 ? d->vector : 1))
        return LANES;
    return d->vector > 1 ? BLOCKS : PLANES;
}

/* Where it measured faster than the rows below (docs/performance.md). Those have the edge
 * on planes of whole 16-byte pieces, and where many channels leave as planes of halves.
 */
static bool slab_wins(const struct request *r)
{
    const enum order to = order_of(r->dst), from = order_of(r->src);
    const bool few = r->dst->rank > 1 && r->dst->dims[1] <= 8;
    int64_t pixels = 1;
    for (int d = 2; d < r->dst->rank; d++)
        pixels *= r->dst->dims[d];
    if (few && from == PLANES && to == LANES)
        return false;
    if (whole(pixels, 8))
        return few ? to != PLANES || (r->to_size == 2 && from == LANES)
                   : to != PLANES && from != LANES;
    return few || to != PLANES || r->to_size != 2;
}

static bool make_slab_as(union job *j, const struct request *r, struct slab_plan plan)
{
    struct request other;
    if (r->dst->rank > 1 && r->dst->dims[1] <= 8) {
        plan.pieces = 2;
        plan.plane_threads = plan.part_threads = 256;
    }
    return reformat_make_slab(&j->slab, r, &plan) ||
           (turned(&other, r) && reformat_make_slab(&j->slab, &other, &plan));
}

#define SLAB_PLAN .pieces = 4, .plane_threads = 512, .part_threads = 256, .rounds = 20

static bool make_slab(union job *j, const struct request *r)
{
    return slab_wins(r) && make_slab_as(j, r, (struct slab_plan){SLAB_PLAN});
}

#define SLAB_VARIANT(name, ...)                                                          \
    static bool make_slab_##name(union job *j, const struct request *r)                  \
    {                                                                                    \
        return make_slab_as(j, r, (struct slab_plan){__VA_ARGS__});                      \
    }
SLAB_VARIANT(plain, SLAB_PLAN)
SLAB_VARIANT(128, SLAB_PLAN, .ahead = 128)
SLAB_VARIANT(256, SLAB_PLAN, .ahead = 256)
SLAB_VARIANT(stay, SLAB_PLAN, .ahead = 256, .stays = true)
SLAB_VARIANT(few, .pieces = 4, .plane_threads = 256, .part_threads = 256, .rounds = 20,
             .ahead = 256)
SLAB_VARIANT(fewer, .pieces = 4, .plane_threads = 128, .part_threads = 256, .rounds = 20,
             .ahead = 256)
SLAB_VARIANT(run, .pieces = 4, .plane_threads = 512, .part_threads = 256, .rounds = 6,
             .ahead = 256)
SLAB_VARIANT(more, .pieces = 4, .plane_threads = 512, .part_threads = 320, .rounds = 20,
             .ahead = 256)

static int launch_slab(const union job *j, const struct request *r, void *stream)
{
    (void)r;
    return reformat_launch_slab(&j->slab, stream);
}

/* ---- any
 * ---------------------------------------------------------------------------------
 */

static bool make_any(union job *j, const struct request *r)
{
    uint64_t count = 1;
    for (int d = 0; d < r->dst->rank; d++) {
        const uint64_t n = (uint64_t)r->dst->dims[d], v = (uint64_t)r->dst->vector;
        count *= d == r->dst->vector_dim ? divide_up(n, v) * v : n;
    }
    j->any = (struct reformat_any){.dst = r->dst_data,
                                   .src = r->src_data,
                                   .dst_desc = *r->dst,
                                   .src_desc = *r->src,
                                   .count = count};
    return true;
}

static int launch_any(const union job *j, const struct request *r, void *stream)
{
    (void)r;
    return reformat_launch_any(&j->any, stream);
}

/* ---- the table
 * ---------------------------------------------------------------------------
 */

static const struct row {
    const char *name;
    bool (*make)(union job *j, const struct request *r); /* false: does not fit */
    int (*launch)(const union job *j, const struct request *r, void *stream);
} rows[] = {
    /* best first; the first that fits wins */
    {"runs", make_runs, launch_runs},
    {"slab", make_slab, launch_slab},
    {"zip", make_zip, launch_zip},
    {"pixel", make_pixel, launch_pixel},
    {"tile", make_tile, launch_tile},
    {"runs_any", make_runs_any, launch_runs},
    {"tile_any", make_tile_any, launch_tile},
    {"any", make_any, launch_any},
    {"slab_plain", make_slab_plain, launch_slab},
    {"slab_128", make_slab_128, launch_slab},
    {"slab_256", make_slab_256, launch_slab},
    {"slab_stay", make_slab_stay, launch_slab},
    {"slab_few", make_slab_few, launch_slab},
    {"slab_fewer", make_slab_fewer, launch_slab},
    {"slab_run", make_slab_run, launch_slab},
    {"slab_more", make_slab_more, launch_slab},
};

size_t reformat_cuda_rows(void)
{
    return ARRAY_LENGTH(rows);
}

const char *reformat_cuda_row_name(size_t row)
{
    return row < ARRAY_LENGTH(rows) ? rows[row].name : NULL;
}

size_t reformat_cuda_choose(const strata_desc *dst, const void *dst_data,
                            const strata_desc *src, const void *src_data)
{
    const struct request r = describe(dst, (void *)(uintptr_t)dst_data, src, src_data);
    union job j;
    size_t row = 0;
    while (!rows[row].make(&j, &r))
        row++; /* the last one takes all */
    return row;
}

int reformat_cuda_row(size_t row, const strata_desc *dst, void *dst_data,
                      const strata_desc *src, const void *src_data, void *stream,
                      int *cuda, strata_error *err)
{
    const struct request r = describe(dst, dst_data, src, src_data);
    union job j;
    if (row >= ARRAY_LENGTH(rows) || !rows[row].make(&j, &r))
        return error_set(err, STRATA_EUNSUPPORTED,
                         "reformat: row %zu (%s) of the device's table does not take "
                         "this pair of descriptors; use the row that is chosen for it",
                         row, row < ARRAY_LENGTH(rows) ? rows[row].name : "none");
    *cuda = rows[row].launch(&j, &r, stream);
    return STRATA_OK;
}
