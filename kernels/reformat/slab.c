/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs the slab kernel takes, and how it cuts them: into tiles whose rows lie on
 * 16-byte boundaries on both sides, or whose rows follow each other without a gap.
 */
#include "kernels/reformat/slab.h"

enum {
    STAGES = 3,              /* as in slab.cu */
    STAGE_BYTES = 26 * 1024, /* of a tile's room, at most */
    ZEROS = 32,              /* bytes of it that hold no tile */
    SECTOR = 32,             /* bytes */
    MOST_IMAGES = 64,        /* of a tile */
    ROW_BYTES = 64,          /* of a part of a row, at least */
    MOST_TILES = 1 << 30,
    MOST_PIXELS = 1024, /* of a tile */
    ALL_CHANNELS = 128  /* up to which a tile of pixels holds all of them */
};

struct side slab_side(const struct request *r, bool in_dst)
{
    const struct panel *p = &r->panel;
    const struct lanes *l = in_dst ? &p->dst : &p->src;
    const int64_t channels = in_dst ? p->padded : p->channels;
    struct side s = {.size = in_dst ? r->to_size : r->from_size,
                     .channels = channels,
                     .lanes = l->planar ? 1 : l->vector,
                     .block = l->block,
                     .pixel = in_dst ? p->pixel.dst : p->pixel.src,
                     .data = in_dst ? r->dst_data : r->src_data};
    s.blocks = (channels + s.lanes - 1) / s.lanes;
    if (s.blocks == 1 && in_dst)
        s.lanes = channels;
    return s;
}

/* One block may be cut, several may not. */
int64_t slab_lanes(const struct side *s, int64_t channels)
{
    return s->blocks == 1 && channels < s->channels ? channels : s->lanes;
}

static int64_t tile_blocks(const struct side *s, int64_t channels)
{
    return least(s->blocks, (channels + s->lanes - 1) / s->lanes);
}

int64_t slab_bytes(const struct side *s, const struct cut *c)
{
    return c->images * tile_blocks(s, c->channels) * slab_lanes(s, c->channels) *
           c->pixels * s->size;
}

bool slab_is_dense(const struct side *s, const struct cut *c, int64_t pixels)
{
    return s->pixel == slab_lanes(s, c->channels) &&
           (tile_blocks(s, c->channels) == 1 ||
            (c->pixels == pixels && s->block == pixels * s->lanes));
}

/* Where tiles of an image begin, from one to the next, in elements. */
static int64_t channel_step(const struct side *s, int64_t channels)
{
    return s->blocks == 1 ? channels : channels / s->lanes * s->block;
}

/* At most one loop is left around the pixels. */
static int64_t image_step(const struct request *r, bool in_dst)
{
    const struct panel *p = &r->panel;
    return p->n_outer == 0 ? 0 : in_dst ? p->outer[0].dst : p->outer[0].src;
}

/* Whether all tiles of a side begin at a multiple of n bytes. */
static bool starts_whole(const struct request *r, const struct side *s, bool in_dst,
                         const struct cut *c, int64_t n)
{
    const struct panel *p = &r->panel;
    if (!aligned(s->data, n) ||
        (c->channels < s->channels &&
         !whole(channel_step(s, c->channels) * s->size, n)) ||
        (c->pixels < p->pixel.extent &&
         (!whole(c->pixels * s->pixel * s->size, n) ||
          !whole(p->pixel.extent * s->pixel * s->size, n))))
        return false;
    return whole(image_step(r, in_dst) * c->images * s->size, n);
}

/* Rows of 16-byte pieces on 16-byte boundaries, or one row at any. */
static bool lay_side(struct reformat_slab_side *out, const struct request *r,
                     const struct side *s, bool in_dst, const struct cut *c)
{
    const int64_t pixels = r->panel.pixel.extent, lanes = slab_lanes(s, c->channels);
    const int64_t bytes = slab_bytes(s, c);
    const bool by_block = s->pixel == lanes;
    int64_t row = (by_block ? c->pixels : 1) * lanes * s->size;
    int64_t step = (by_block ? s->block : s->pixel) * s->size;
    if (slab_is_dense(s, c, pixels)) {
        row = bytes;
        step = 0;
    } else if (c->images > 1 || (!by_block && tile_blocks(s, c->channels) > 1) ||
               !whole(row, 16) || !whole(step, 16) || step > INT32_MAX / (bytes / row)) {
        return false;
    }
    *out = (struct reformat_slab_side){
        .lanes = divisor((uint32_t)lanes),
        .blocks = divisor((uint32_t)tile_blocks(s, c->channels)),
        .row = divisor((uint32_t)divide_up((uint64_t)row, 16)),
        .pieces = (uint32_t)divide_up((uint64_t)bytes, 16),
        .row_step = step,
        .pixel_step = s->pixel * s->size,
        .image_step = image_step(r, in_dst) * c->images * s->size,
        .tile_step = channel_step(s, c->channels) * s->size,
    };
    return !in_dst || (step == 0 && c->any_start) ||
           (whole(bytes, 16) && starts_whole(r, s, true, c, 16));
}

static const char *end_of(const struct request *r, const struct side *s)
{
    const struct panel *p = &r->panel;
    int64_t last = (s->blocks - 1) * s->block + p->pixel.extent * s->pixel;
    if (p->n_outer > 0)
        last += (p->outer[0].extent - 1) * p->outer[0].src;
    return s->data + last * s->size;
}

/* ---- cuts -----------------------------------------------------------------------------
 */

bool slab_images_join(const struct request *r, const struct side *to,
                      const struct side *from, const struct cut *c)
{
    const struct panel *p = &r->panel;
    return p->n_outer == 1 && p->outer[0].dst * to->size == slab_bytes(to, c) &&
           p->outer[0].src * from->size == slab_bytes(from, c) &&
           slab_is_dense(to, c, p->pixel.extent) &&
           slab_is_dense(from, c, p->pixel.extent);
}

bool slab_fits(const struct side *to, const struct side *from, const struct cut *c,
               int64_t most)
{
    return slab_bytes(to, c) <= most &&
           slab_bytes(from, c) + c->spare + 16 + 128 + ZEROS <= STAGE_BYTES;
}

/* From a pixel's channels to the next one's, or from a channel's pixels, in bytes. */
static int64_t pitch(const struct side *s, const struct cut *c)
{
    const int64_t lanes = slab_lanes(s, c->channels);
    return (tile_blocks(s, c->channels) > 1 ? c->pixels : 1) * lanes * s->size;
}

/* Vectors of exactly two. */
static bool is_pairs_side(const struct side *s)
{
    return s->lanes == 2 && s->pixel == 2;
}

/* What threads make of halves, four pixels at a time. Lanes leave as whole lines of 128
 * bytes: what begins and ends within sectors is slower than gathering. */
static int form_of(const struct reformat_slab *j, const struct request *r,
                   const struct side *to, const struct side *from, const struct cut *c)
{
    const struct panel *p = &r->panel;
    const bool all = c->images == 1 && c->pixels == p->pixel.extent;
    if (j->end || r->from != STRATA_FP16 || p->dst.planar == p->src.planar ||
        !whole(p->pixel.extent, 4) || !whole(c->pixels, 4))
        return SLAB_GATHER;
    if (p->src.planar && to->size == 2)
        return is_pairs_side(to) ? SLAB_ZIP
               : all && to->blocks == 1 && whole(slab_lanes(to, c->channels), 64)
                   ? SLAB_WEAVE
                   : SLAB_GATHER;
    if (p->dst.planar && to->size == 2 && is_pairs_side(from))
        return SLAB_UNZIP;
    if (!p->dst.planar || !all || j->to.row_step != 0 || !whole(c->channels, 16))
        return SLAB_GATHER;
    return is_pairs_side(from) ? SLAB_SPREAD
           : from->blocks == 1 && slab_lanes(from, c->channels) == c->channels
               ? SLAB_UNWEAVE
               : SLAB_GATHER;
}

/* Items of a tile, and how many of them a thread holds. */
static bool lay_items(struct reformat_slab *j, const struct request *r,
                      const struct side *to, const struct side *from, const struct cut *c,
                      const struct slab_plan *plan)
{
    j->form = form_of(j, r, to, from, c);
    const uint32_t quads = (uint32_t)c->pixels / 4, eights = (uint32_t)c->channels / 8;
    uint32_t threads, most = REFORMAT_QUAD_THREADS;
    j->quads = divisor(quads);
    j->eights = divisor(eights);
    j->stride =
        (uint32_t)(j->form == SLAB_WEAVE ? j->to.pixel_step : c->pixels * to->size);
    j->out = 0;
    if (j->form >= SLAB_UNWEAVE) { /* floats in two parts: their tile would take 50 KB */
        j->held = (int32_t)to->size / 2;
        j->items = threads = quads * eights / (uint32_t)j->held;
        j->out = (uint32_t)(slab_bytes(to, c) / j->held);
    } else {
        j->held = j->form == SLAB_GATHER ? plan->held : j->form == SLAB_WEAVE ? 1 : 4;
        j->items = j->form == SLAB_WEAVE ? quads * eights : j->to.pieces;
        threads = (uint32_t)divide_up(j->items, (uint64_t)j->held);
        if (j->form == SLAB_GATHER)
            most = (uint32_t)j->held * REFORMAT_SLAB_THREADS;
    }
    j->threads = (threads + 31) / 32 * 32;
    return j->threads <= most;
}

bool slab_lay_cut(struct reformat_slab *j, const struct request *r, const struct side *to,
                  const struct side *from, const struct cut *c)
{
    const struct panel *p = &r->panel;
    const bool all = c->channels == p->padded;
    if (!lay_side(&j->to, r, to, true, c) || !lay_side(&j->from, r, from, false, c))
        return false;
    const bool steps =
        starts_whole(r, from, false, c, 16) && whole(slab_bytes(from, c), 16);
    if (!steps && (!slab_is_dense(from, c, p->pixel.extent) || !aligned(from->data, 16)))
        return false;
    const int64_t images = p->n_outer == 0 ? 1 : p->outer[0].extent / c->images;
    j->end = steps ? NULL : end_of(r, from);
    j->bytes = (uint32_t)slab_bytes(from, c);
    j->ahead = j->from.row_step != 0 && j->from.row.d * 16 < 256 ? 256 : 128;
    j->spread[0] = 7;
    j->spread[1] = whole(pitch(from, c), 32) ? 7 : 0;
    j->stage = (uint32_t)round_up(j->bytes + c->spare + (steps ? 0 : 16), 128) + 128;
    j->pixels = divisor((uint32_t)c->pixels);
    j->last_pixel = (uint32_t)(p->pixel.extent - c->pixels);
    j->pixel_tiles = (uint32_t)divide_up((uint64_t)p->pixel.extent, (uint64_t)c->pixels);
    j->channel_tiles = all ? 1 : (uint32_t)(p->channels / c->channels);
    j->channels = (uint32_t)(all ? p->channels : c->channels);
    if (images > MOST_TILES / j->pixel_tiles / j->channel_tiles)
        return false;
    j->tiles = (uint32_t)images * j->pixel_tiles * j->channel_tiles;
    return true;
}

static bool make_cut(struct reformat_slab *j, const struct request *r,
                     const struct side *to, const struct side *from, const struct cut *c,
                     const struct slab_plan *plan)
{
    return slab_lay_cut(j, r, to, from, c) && lay_items(j, r, to, from, c, plan);
}

/* As many images as fit and divide all of them. */
static bool cut_images(struct reformat_slab *j, const struct request *r,
                       const struct side *to, const struct side *from, struct cut c,
                       int64_t most, const struct slab_plan *plan)
{
    const bool join = slab_images_join(r, to, from, &c);
    for (c.images = join ? MOST_IMAGES : 1; c.images > 0; c.images--)
        if ((c.images == 1 || r->panel.outer[0].extent % c.images == 0) &&
            slab_fits(to, from, &c, most) && make_cut(j, r, to, from, &c, plan))
            return true;
    return false;
}

bool slab_on_sectors(const struct side *s)
{
    return s->blocks == 1 || whole(s->block * s->size, SECTOR);
}

/* Some of the pixels. */
static bool cut_pixels(struct reformat_slab *j, const struct request *r,
                       const struct side *to, const struct side *from, struct cut c,
                       int64_t most, const struct slab_plan *plan)
{
    for (c.pixels = MOST_PIXELS; c.pixels >= 16; c.pixels /= 2)
        if (c.pixels < r->panel.pixel.extent && slab_on_sectors(to) &&
            slab_on_sectors(from) &&
            c.pixels * least(to->size, from->size) >= ROW_BYTES &&
            slab_fits(to, from, &c, most) && make_cut(j, r, to, from, &c, plan))
            return true;
    return false;
}

bool slab_cuts_channels(const struct request *r, const struct side *to,
                        const struct side *from, int64_t channels)
{
    const struct panel *p = &r->panel;
    return p->channels == p->padded && p->channels > channels &&
           whole(p->channels, channels) &&
           (to->blocks == 1 || whole(channels, to->lanes)) &&
           (from->blocks == 1 || whole(channels, from->lanes));
}

/* The first of these cuts that fits: whole planes of all channels, then of some; parts of
 * planes of all channels, then of some. */
static bool cut(struct reformat_slab *j, const struct request *r, const struct side *to,
                const struct side *from, const struct slab_plan *plan)
{
    static const int64_t some[] = {64, 32, 16};
    const struct panel *p = &r->panel;
    struct cut c = {p->padded, p->pixel.extent, 1, 0, false};
    if (cut_images(j, r, to, from, c, plan->parts, plan))
        return true;
    for (int i = 0; i < 3; i++) {
        c.channels = some[i];
        if (slab_cuts_channels(r, to, from, c.channels) &&
            cut_images(j, r, to, from, c, plan->whole, plan))
            return true;
    }
    c.channels = p->padded;
    if (p->padded <= ALL_CHANNELS && cut_pixels(j, r, to, from, c, plan->parts, plan))
        return true;
    for (int i = 0; i < 3; i++) {
        c.channels = some[i];
        if (slab_cuts_channels(r, to, from, c.channels) &&
            cut_pixels(j, r, to, from, c, plan->parts, plan))
            return true;
    }
    return false;
}

/* Vectors of halves on both sides, no half of a pair a pad, are moved as words. */
static void widen(struct request *r)
{
    struct panel *p = &r->panel;
    struct loop *l = p->outer;
    if (r->to_size != 2 || r->from_size != 2 || p->dst.planar || p->src.planar ||
        !whole(p->dst.vector | p->src.vector | p->channels | p->padded, 2) ||
        (p->dst.vector < p->padded && !whole(p->dst.block, 2)) ||
        (p->src.vector < p->channels && !whole(p->src.block, 2)) ||
        !whole(p->pixel.dst | p->pixel.src, 2) || !loops_whole(l, p->n_outer, true, 2) ||
        !loops_whole(l, p->n_outer, false, 2) || !aligned(r->dst_data, 4) ||
        !aligned(r->src_data, 4))
        return;
    for (int i = 0; i < p->n_outer; i++)
        l[i] = (struct loop){l[i].extent, l[i].dst / 2, l[i].src / 2};
    p->pixel = (struct loop){p->pixel.extent, p->pixel.dst / 2, p->pixel.src / 2};
    p->channels /= 2;
    p->padded /= 2;
    p->dst = (struct lanes){p->dst.vector == 2, p->dst.vector / 2, p->dst.block / 2};
    p->src = (struct lanes){p->src.vector == 2, p->src.vector / 2, p->src.block / 2};
    r->to_size = r->from_size = 4;
    r->to = r->from = STRATA_FP32;
}

/* BF16 is gathered, to and from FP32. */
static bool has_kernels(const struct request *r)
{
    const bool floats = r->to <= STRATA_FP16 && r->from <= STRATA_FP16;
    return floats || (r->to == STRATA_BF16 && r->from == STRATA_FP32) ||
           (r->to == STRATA_FP32 && r->from == STRATA_BF16);
}

bool reformat_cut_slab(struct reformat_slab *j, const struct request *request,
                       const struct slab_plan *plan)
{
    struct request r = *request;
    if (!has_kernels(&r) || !r.as_panel || r.panel.n_outer > 1 ||
        (r.panel.dst.planar && r.panel.src.planar) ||
        r.panel.pixel.extent > INT32_MAX / 2)
        return false;
    widen(&r);
    const struct side to = slab_side(&r, true), from = slab_side(&r, false);
    *j = (struct reformat_slab){
        .dst = r.dst_data,
        .src = r.src_data,
        .to_type = r.to,
        .from_type = r.from,
    };
    return aligned(r.dst_data, to.size) && aligned(r.src_data, from.size) &&
           cut(j, &r, &to, &from, plan);
}
