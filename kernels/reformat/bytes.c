/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs of bytes go by slabs (bytes.cu), and how they are cut: into tiles whose
 * rows are long on both sides.
 */
#include "kernels/reformat/slab.h"

enum {
    IMAGES_BYTES = 14 * 1024, /* of the destination's tile, of several whole images */
    PLANES_BYTES = 8 * 1024,  /* of planes that are written byte by byte */
    WHOLE_BYTES = 26 * 1024,  /* of whole planes */
    PART_BYTES = 16 * 1024,   /* of parts of them */
    MOST_IMAGES = 64,         /* of a tile */
    MOST_PIXELS = 1024,       /* of a part */
    LEAST_PIXELS = 16,
    MOST_PARTS = 40, /* ways to cut pixels */
    ACCESS = 64,     /* bytes of memory that are read or written together */
    LONG_ROW = 1024, /* bytes that are worth an asynchronous store */
    SECTOR = 32,     /* bytes */
    HELD = 4,        /* pieces of a thread */
};

/* ---- vectors as elements -------------------------------------------------------------
 */

/* Whether a side's vectors hold whole elements of n bytes. */
static bool has_vectors(const struct request *r, const struct side *s, bool in_dst,
                        int64_t n)
{
    const struct panel *p = &r->panel;
    return !(in_dst ? p->dst.planar : p->src.planar) && whole(s->lanes | s->pixel, n) &&
           (s->blocks == 1 || whole(s->block, n)) && aligned(s->data, n) &&
           loops_whole(p->outer, p->n_outer, in_dst, n);
}

/* Where both sides have vectors of n bytes, these are what is moved, the last of them
 * partly pads. */
static bool widen(struct request *r, int64_t n)
{
    struct panel *p = &r->panel;
    struct loop *l = p->outer;
    const struct side to = slab_side(r, true), from = slab_side(r, false);
    if (!has_vectors(r, &to, true, n) || !has_vectors(r, &from, false, n))
        return false;
    for (int i = 0; i < p->n_outer; i++)
        l[i] = (struct loop){l[i].extent, l[i].dst / n, l[i].src / n};
    p->pixel = (struct loop){p->pixel.extent, p->pixel.dst / n, p->pixel.src / n};
    p->channels = (p->channels + n - 1) / n;
    p->padded = to.channels / n;
    p->dst = (struct lanes){to.lanes == n, to.lanes / n, to.block / n};
    p->src = (struct lanes){from.lanes == n, from.lanes / n, from.block / n};
    r->to_size = r->from_size = n;
    return true;
}

/* Of the last element, whose first `valid` bytes are no pads; 0: all. */
static void lay_tail(struct reformat_slab *j, int64_t valid)
{
    for (int64_t w = 0; w < 4; w++) {
        const int64_t bytes =
            valid == 0 ? 4 : least(4, valid > 4 * w ? valid - 4 * w : 0);
        j->tail[w] = bytes == 4 ? UINT32_MAX : (UINT32_C(1) << bytes * 8) - 1;
    }
}

/* ---- items ---------------------------------------------------------------------------
 */

/* Whether there are items for any cut: vectors that hold whole words. */
static bool has_items(const struct request *r, const struct side *to,
                      const struct side *from)
{
    const struct panel *p = &r->panel;
    return to->size > 1 || (p->dst.planar != p->src.planar &&
                            whole(p->src.planar ? to->lanes : from->lanes, 4));
}

/* Whether planes hold whole words, of any tile that is not cut through one. */
static bool has_words(const struct request *r, const struct side *s, bool in_dst)
{
    const struct panel *p = &r->panel;
    return whole(p->pixel.extent, 4) && (s->blocks == 1 || whole(s->block, 4)) &&
           aligned(s->data, 4) && loops_whole(p->outer, p->n_outer, in_dst, 4);
}

/* Bytes of a tile that lie together. */
static int64_t row_of(const struct request *r, const struct side *s, const struct cut *c)
{
    const int64_t lanes = slab_lanes(s, c->channels);
    return slab_is_dense(s, c, r->panel.pixel.extent)
               ? slab_bytes(s, c)
               : (s->pixel == lanes ? c->pixels : 1) * lanes * s->size;
}

static int form_of(const struct reformat_slab *j, const struct request *r,
                   const struct side *to, const struct side *from, const struct cut *c)
{
    const int64_t to_lanes = slab_lanes(to, c->channels);
    const int64_t from_lanes = slab_lanes(from, c->channels);
    const bool quads = !j->end && c->images == 1 && whole(c->pixels, 4) &&
                       has_words(r, r->panel.src.planar ? from : to, r->panel.dst.planar);
    if (to->size > 1)
        return to->size == 4 ? BYTES_WORDS : BYTES_PIECES;
    if (r->panel.src.planar)
        return !quads || !whole(to_lanes, 16) || j->channels < 16 ? BYTES_GATHER
               : whole(to_lanes, 64)                              ? BYTES_WEAVE
               : row_of(r, to, c) >= LONG_ROW                     ? BYTES_BRAID
               : whole(to_lanes, SECTOR)                          ? BYTES_WEAVE
                                                                  : BYTES_GATHER;
    if (quads && whole(from_lanes, 16))
        return j->to.row_step != 0 && whole(c->pixels, 16) ? BYTES_COMB : BYTES_UNWEAVE;
    if (quads && from_lanes == 4)
        return BYTES_SPREAD;
    return !j->end || loops_whole(r->panel.outer, r->panel.n_outer, false, 4)
               ? BYTES_SCATTER
               : -1;
}

static uint32_t items_of(const struct reformat_slab *j, const struct side *to,
                         const struct cut *c)
{
    const uint64_t quads = (uint64_t)c->pixels / 4;
    switch (j->form) {
    case BYTES_WEAVE:
    case BYTES_BRAID:
        return (uint32_t)(quads * (uint64_t)least(c->channels, to->channels) / 16);
    case BYTES_COMB:
        return (uint32_t)((uint64_t)c->pixels / 16 * divide_up(j->channels, 4));
    case BYTES_UNWEAVE:
    case BYTES_SPREAD:
        return (uint32_t)(quads * divide_up(j->channels, 16));
    case BYTES_SCATTER:
        return j->from.pieces;
    default:
        return j->to.pieces;
    }
}

static bool lay_items(struct reformat_slab *j, const struct request *r,
                      const struct side *to, const struct side *from, const struct cut *c)
{
    const int64_t bytes = slab_bytes(to, c);
    j->form = form_of(j, r, to, from, c);
    if (j->form < 0)
        return false;
    j->held = j->form <= BYTES_GATHER || j->form == BYTES_SCATTER ? HELD : 1;
    j->items = items_of(j, to, c);
    j->threads = ((uint32_t)divide_up(j->items, (uint64_t)j->held) + 31) / 32 * 32;
    j->quads = divisor((uint32_t)c->pixels / 4);
    j->eights =
        divisor(j->form == BYTES_COMB ? (uint32_t)c->pixels / 16 : j->to.lanes.d / 16);
    j->stride = j->form == BYTES_WEAVE   ? (uint32_t)j->to.pixel_step
                : j->form == BYTES_BRAID ? j->to.lanes.d
                                         : (uint32_t)c->pixels;
    j->rows = j->to.row_step == 0 ? 1 : j->to.pieces / j->to.row.d;
    j->row_bytes = (uint32_t)bytes / j->rows;
    j->out = j->form >= BYTES_BRAID ? (uint32_t)round_up(bytes + 16, 16) : 0;
    if (j->form == BYTES_GATHER)
        j->spread[0] = j->spread[1] = 0;
    return j->threads <= REFORMAT_QUAD_THREADS;
}

/* ---- cuts ----------------------------------------------------------------------------
 */

static bool make_cut(struct reformat_slab *j, const struct request *r,
                     const struct side *to, const struct side *from, struct cut c)
{
    c.any_start = r->panel.dst.planar && to->size == 1;
    c.spare = r->panel.src.planar && to->size == 1 ? 3 * c.pixels : 0;
    return slab_fits(to, from, &c, WHOLE_BYTES) && slab_lay_cut(j, r, to, from, &c) &&
           lay_items(j, r, to, from, &c);
}

/* Whether a part's rows are long, and no other part's sectors. */
static bool part_fits(const struct request *r, const struct side *s, const struct cut *c,
                      int64_t row)
{
    return row_of(r, s, c) >= row && whole(c->pixels * s->pixel * s->size, SECTOR);
}

/* Small tiles, so that there are many: bytes of planes take longest. */
static int64_t small_tile(const struct request *r, const struct side *to)
{
    return r->panel.dst.planar && to->size == 1 && !whole(r->panel.pixel.extent, 4)
               ? PLANES_BYTES
               : IMAGES_BYTES;
}

/* On pieces: what is scattered is read 16 bytes at a time, not in words at any place. */
static bool cut_images(struct reformat_slab *j, const struct request *r,
                       const struct side *to, const struct side *from, int64_t most,
                       bool on_pieces)
{
    struct cut c = {.channels = r->panel.padded, .pixels = r->panel.pixel.extent};
    if (!slab_images_join(r, to, from, &(struct cut){c.channels, c.pixels, 1, 0, false}))
        return false;
    for (c.images = MOST_IMAGES; c.images > 0; c.images--)
        if (r->panel.outer[0].extent % c.images == 0 && slab_bytes(to, &c) <= most &&
            make_cut(j, r, to, from, c) &&
            !(on_pieces && j->end && j->form == BYTES_SCATTER))
            return true;
    return false;
}

/* How many pixels parts may have, the most first: as few parts as that makes, as long as
 * each other, on whole accesses of memory. */
struct parts {
    int64_t pixels[MOST_PARTS];
    int n;
};

static struct parts parts_of(const struct side *to, const struct side *from,
                             int64_t pixels)
{
    const int64_t step = ACCESS / to->size;
    struct parts p = {.n = 0};
    if (!slab_on_sectors(to) || !slab_on_sectors(from))
        return p;
    int64_t most = MOST_PIXELS;
    while (most >= LEAST_PIXELS && p.n < MOST_PARTS) {
        const int64_t parts = (pixels + most - 1) / most;
        const int64_t n = round_up((pixels + parts - 1) / parts, step);
        const int64_t twice = (pixels + n - 1) / n * n - pixels; /* the last part's */
        if (n < pixels && twice <= pixels / 16 && (p.n == 0 || p.pixels[p.n - 1] > n))
            p.pixels[p.n++] = n;
        most -= most / 8 > step ? most / 8 : step;
    }
    return p;
}

static bool cut_pixels(struct reformat_slab *j, const struct request *r,
                       const struct side *to, const struct side *from, struct cut c,
                       const struct parts *parts, int64_t row)
{
    for (int i = 0; i < parts->n; i++) {
        c.pixels = parts->pixels[i];
        if (part_fits(r, to, &c, row) && part_fits(r, from, &c, row) &&
            slab_bytes(to, &c) <= PART_BYTES && make_cut(j, r, to, from, c))
            return true;
    }
    return false;
}

/* All channels, or some of them: of whole planes, or of parts. */
static bool cut_rows(struct reformat_slab *j, const struct request *r,
                     const struct side *to, const struct side *from,
                     const struct parts *parts, int64_t row, int64_t whole_bytes)
{
    static const int64_t some[] = {0, 256, 128, 64, 32, 16};
    const struct panel *p = &r->panel;
    const bool tail = j->tail[3] != UINT32_MAX;
    for (int i = 0; i < 6; i++) {
        const int64_t channels = some[i] / to->size;
        struct cut c = {.channels = channels > 0 ? channels : p->padded,
                        .pixels = p->pixel.extent,
                        .images = 1};
        if (i > 0 &&
            (tail || channels == 0 || !slab_cuts_channels(r, to, from, channels)))
            continue;
        if ((slab_bytes(to, &c) <= whole_bytes && row_of(r, to, &c) >= row &&
             row_of(r, from, &c) >= row && make_cut(j, r, to, from, c)) ||
            cut_pixels(j, r, to, from, c, parts, row))
            return true;
    }
    return false;
}

/* The longest rows that there are, in small tiles if that can be: two large ones do not
 * keep a multiprocessor busy, but where 16 bytes move as one. */
static bool cut(struct reformat_slab *j, const struct request *r, const struct side *to,
                const struct side *from)
{
    static const int64_t rows[] = {448, 192, 128, 64, 32};
    const struct parts parts = parts_of(to, from, r->panel.pixel.extent);
    const int64_t small = small_tile(r, to);
    bool cut = cut_images(j, r, to, from, small, true) ||
               cut_images(j, r, to, from, IMAGES_BYTES, true) ||
               cut_images(j, r, to, from, small, false) ||
               cut_rows(j, r, to, from, &parts, rows[0], small);
    for (int i = 1; i < 5 && !cut; i++)
        cut = cut_rows(j, r, to, from, &parts, rows[i],
                       to->size == 16 ? WHOLE_BYTES : small);
    for (int i = 1; i < 5 && !cut; i++)
        cut = cut_rows(j, r, to, from, &parts, rows[i], WHOLE_BYTES);
    return cut;
}

/* ---- which pairs ---------------------------------------------------------------------
 */

/* Where it measured faster than the rows below (docs/log/reformat.md): `zip` has the edge
 * between planes and vectors of four, `pixel` where planes of few channels are written.
 */
static bool wins(const struct request *r)
{
    const enum order to = slab_order(r->dst), from = slab_order(r->src);
    const int64_t pixels = slab_pixels(r->dst);
    const bool few = r->dst->dims[1] <= 8;
    if (to != PLANES && from != PLANES)
        return true;
    if (to == PLANES)
        return r->src->vector == 4 ? !whole(pixels, 16) : !few;
    return r->dst->vector != 4 || !whole(pixels, 16) || few;
}

/* Whether the sides are what the formats say: without pads pixels may stand for
 * channels. */
static bool is_natural(const struct request *r)
{
    return r->panel.dst.planar == (slab_order(r->dst) == PLANES) &&
           r->panel.src.planar == (slab_order(r->src) == PLANES);
}

bool reformat_make_bytes(union job *out, const struct request *request)
{
    struct request r = *request;
    struct reformat_slab *j = &out->slab;
    if (!r.same || r.to_size != 1 || !r.as_panel || r.dst->rank < 2 || !wins(&r))
        return false;
    if (!is_natural(&r) && !(reformat_turn(&r, request) && is_natural(&r)))
        return false;
    if (r.panel.n_outer > 1 || (r.panel.dst.planar && r.panel.src.planar) ||
        r.panel.pixel.extent > INT32_MAX / 2)
        return false;
    const int64_t channels = r.panel.channels;
    const int64_t n = widen(&r, 16) ? 16 : widen(&r, 4) ? 4 : 1;
    const struct side to = slab_side(&r, true), from = slab_side(&r, false);
    *j = (struct reformat_slab){
        .dst = r.dst_data, .src = r.src_data, .to_type = r.to, .from_type = r.from};
    lay_tail(j, channels % n);
    return has_items(&r, &to, &from) && cut(j, &r, &to, &from);
}
