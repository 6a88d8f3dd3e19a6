/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pairs go through registers alone: planes against vectors of 4 bytes, as
 * kernels/reformat/zip.cu moves them, and pixels of a few channels, as pixel.cuh does.
 */
#include "kernels/reformat/request.h"

#define WALK_STEPS 1024  /* of a block, as in common.cuh */
#define ZIP_BLOCKS 32768 /* so that divisors are exact */

/* ---- zip ----------------------------------------------------------------------------
 */

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
    return (vectors == STRATA_FP16 && planes <= STRATA_FP16) ||
           (vectors == STRATA_INT8 && planes <= STRATA_INT8);
}

/* Whether planes of halves can be read 16 bytes a thread. */
static bool zip_wide(const struct request *r, int64_t v)
{
    const struct panel *p = &r->panel;
    return whole(p->pixel.extent, 8) && (p->channels == 1 || whole(p->src.block, 8)) &&
           aligned(r->src_data, 16) && v == 2 &&
           loops_whole(p->outer, p->n_outer, false, 8);
}

bool reformat_make_zip(union job *out, const struct request *r)
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

/* ---- pixel --------------------------------------------------------------------------
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
    switch (to) {
    case STRATA_FP32:
        return from != STRATA_INT8;
    case STRATA_FP16:
    case STRATA_BF16:
        return to == from || from == STRATA_FP32 || from == STRATA_UINT8;
    default:
        return to == from;
    }
}

bool reformat_make_pixel(union job *out, const struct request *r)
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
