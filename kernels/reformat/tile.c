/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs the tile kernel takes, and how large their tiles are.
 */
#include "kernels/reformat/request.h"

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

/* As few as keep all their reads in flight at once: small blocks, many of them. */
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
        planes
            ? tile_threads((int64_t)j->tile_channels * j->tile_pixels * r->from_size / 16)
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

bool reformat_make_tile(union job *j, const struct request *r)
{
    struct request other;
    return make_tile_of(j, r) || (reformat_turn(&other, r) && make_tile_of(j, &other));
}

/* The side that allows wide accesses of parts of planes keeps them. */
bool reformat_make_tile_any(union job *j, const struct request *r)
{
    return takes_tile(r) && make_tile_with(&j->tile, r, tile_access(r, true),
                                           tile_access(r, false), false);
}
