/* SPDX-License-Identifier: Apache-2.0
 *
 * `vnni` around its tiles: an image as UINT8 with its pads, so that each row of a window
 * is one run of bytes; weights in the order in which they are read; pixels among threads.
 */
#include "plugins/quantized_convolution/vnni.h"

#include <string.h>

#include "plugins/common/filters.h"
#include "plugins/common/team/threads.h"

enum { WEIGHT = STRATA_QUANTIZED_WEIGHT };
enum { SLACK = 64 }; /* bytes behind a copy: words past the last run are read */
enum { CHUNK = 8, MOST = CHUNK + CHUNK / 2 }; /* tiles of a task, about and at most */
enum { PIECE = 96 };        /* words whose weights L1 holds beside the rest */
enum { SMALL = 256 << 10 }; /* bytes of weights that L2 holds beside the rest */

#ifndef __x86_64__
void vnni_run_tile(const struct vnni_tile *t, const struct vnni_piece *piece)
{
    (void)t;
    (void)piece;
}
#endif

/* ---- resolving --------------------------------------------------------------------- */

/* Neighbouring bytes of a window: a row of its kernel, or a pixel where that is dilated.
 */
static int64_t run_bytes(const struct vnni *v)
{
    return v->w.dilation[2] == 1 ? v->w.kernel[2] * v->channels : v->channels;
}

static int64_t parts_of(int64_t all, int64_t most)
{
    return (all + most - 1) / most;
}

static int resolve(struct vnni *v, const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    int pads = 0;
    int status = filters_of_convolution(n, &p->convolution, &n->weight[WEIGHT], &v->w,
                                        &v->filters);
    if (status != STRATA_OK)
        return status;
    v->channels = n->in[0].dims[1];
    v->flip = n->in[0].dtype == STRATA_INT8 ? 128 : 0;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t last = (v->w.out[d] - 1) * v->w.stride[d] + window_extent(&v->w, d);
        v->extent[d] = window_max(window_max(v->w.in[d], last), v->w.begin[d]);
        pads |= v->w.begin[d] > 0 || last > v->w.in[d];
    }
    v->rows = window_kernel_count(&v->w) / (v->w.dilation[2] == 1 ? v->w.kernel[2] : 1);
    v->words = (run_bytes(v) + 3) / 4;
    v->copies = pads || v->flip || run_bytes(v) % 4 != 0;
    return STRATA_OK;
}

/* Bytes of an image, or of its copy. */
static int64_t plane_bytes(const struct vnni *v, const int64_t extent[WINDOW_DIMS])
{
    int64_t bytes = v->channels;
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (__builtin_mul_overflow(bytes, extent[d], &bytes))
            return INT64_MAX;
    return bytes;
}

int vnni_accept(const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    struct vnni v;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK && !vnni_is_there())
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the CPU has no AVX-512 VNNI");
    if (status == STRATA_OK && p->convolution.groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it has one group of channels");
    if (status == STRATA_OK)
        status = resolve(&v, n);
    if (status == STRATA_OK && plane_bytes(&v, v.extent) >= INT64_MAX / 2)
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "an image with its pads is too large");
    return status ? status
                  : quantized_check_depth(n, v.channels, window_kernel_count(&v.w));
}

size_t vnni_workspace(const strata_node *n)
{
    struct vnni v;
    if (resolve(&v, n) != STRATA_OK)
        return SIZE_MAX;
    return v.copies ? (size_t)plane_bytes(&v, v.extent) + SLACK : 0;
}

/* ---- setup ------------------------------------------------------------------------- */

static void find_offsets(const struct vnni *v, int64_t *offset)
{
    const struct window *w = &v->w;
    const int64_t columns = w->dilation[2] == 1 ? 1 : w->kernel[2];
    for (int64_t r = 0; r < v->rows; r++) {
        const int64_t z = r / columns / w->kernel[1] * w->dilation[0];
        const int64_t y = r / columns % w->kernel[1] * w->dilation[1];
        const int64_t x = r % columns * w->dilation[2];
        for (int64_t i = 0; i < v->words; i++)
            *offset++ = ((z * v->extent[1] + y) * v->extent[2] + x) * v->channels + i * 4;
    }
}

/* Tiles as few as can be, chunks of about CHUNK. */
static int64_t tiles_of(const struct vnni *v)
{
    return parts_of(window_out_count(&v->w), VNNI_PIXELS);
}

static int64_t chunks_of(const struct vnni *v)
{
    return window_max(1, (tiles_of(v) + CHUNK / 2) / CHUNK);
}

/* L2 gives weights as quickly as L1 does. What only one chunk reads comes from beyond it,
 * so that a piece is best in L1 while the next one comes. */
static int64_t piece_words(const struct vnni *v)
{
    const int64_t words = v->rows * v->words;
    const int64_t block = window_min(v->filters, VNNI_FILTERS) * words * 4;
    return v->is_small || (chunks_of(v) > 1 && block <= SMALL)
               ? words
               : parts_of(words, parts_of(words, PIECE));
}

static int64_t own_filter(const void *user, int64_t lane)
{
    const struct vnni *v = user;
    return lane < v->filters ? lane : -1;
}

int vnni_setup(const strata_node *n, void *state)
{
    struct vnni *v = state;
    void *offset, *packed;
    int status = resolve(v, n);
    if (status != STRATA_OK)
        return status;
    const size_t filters =
        (size_t)(v->filters + VNNI_FILTERS - 1) / VNNI_FILTERS * (size_t)VNNI_FILTERS;
    const size_t words = (size_t)(v->rows * v->words); /* fewer than 65,536 */
    if ((status = vnni_allocate(n, words, sizeof *v->offset, &offset)) ||
        (status = vnni_allocate(n, filters, words * 4, &packed)) ||
        (status = vnni_make_lanes(n, filters, v->channels * window_kernel_count(&v->w),
                                  v->flip, own_filter, v, &v->lanes)))
        return status;
    find_offsets(v, offset);
    vnni_pack(&(struct vnni_packing){v->filters, v->channels, window_kernel_count(&v->w),
                                     v->rows, v->words, VNNI_VECTORS},
              n->weight[WEIGHT].data, packed);
    v->offset = offset;
    v->packed = packed;
    v->join = vnni_find_join(n);
    v->is_small = filters * words * 4 <= SMALL;
    v->piece = piece_words(v);
    return STRATA_OK;
}

/* ---- running ----------------------------------------------------------------------- */

/* A row of the copy: its pads and, where it is one of the image's, that. */
static void copy_row(const struct vnni *v, uint8_t *to, const uint8_t *from, uint8_t zero)
{
    const int64_t before = v->w.begin[2] * v->channels, all = v->extent[2] * v->channels;
    const int64_t bytes = from ? window_min(v->w.in[2] * v->channels, all - before) : 0;
    const uint8_t flip = (uint8_t)v->flip;
    memset(to, zero, (size_t)(from ? before : all));
    for (int64_t i = 0; i < bytes; i++)
        to[before + i] = from[i] ^ flip;
    if (from && all > before + bytes)
        memset(to + before + bytes, zero, (size_t)(all - before - bytes));
}

static void copy_image(const struct vnni *v, uint8_t *to, const uint8_t *from,
                       uint8_t zero)
{
    const struct window *w = &v->w;
    const int64_t bytes = v->extent[2] * v->channels;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < v->extent[0] * v->extent[1]; i++) {
        const int64_t z = i / v->extent[1] - w->begin[0];
        const int64_t y = i % v->extent[1] - w->begin[1];
        const int inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
        copy_row(v, to + i * bytes,
                 inside ? from + (z * w->in[1] + y) * w->in[2] * v->channels : NULL,
                 zero);
    }
}

/* An output pixel: its column, the others of its plane's rows as one number, and the
 * first byte of its window. */
struct cursor {
    int64_t column, row;
    const uint8_t *at;
};

static const uint8_t *window_row(const struct vnni *v, const uint8_t *x, int64_t row)
{
    const struct window *w = &v->w;
    const int64_t o0 = row / w->out[1], o1 = row % w->out[1];
    return x + (o0 * w->stride[0] * v->extent[1] + o1 * w->stride[1]) * v->extent[2] *
                   v->channels;
}

static struct cursor cursor_at(const struct vnni *v, const uint8_t *x, int64_t pixel)
{
    const int64_t column = pixel % v->w.out[2], row = pixel / v->w.out[2];
    return (struct cursor){column, row,
                           window_row(v, x, row) + column * v->w.stride[2] * v->channels};
}

/* Divisions are for the ends of rows. */
static void advance(struct cursor *c, const struct vnni *v, const uint8_t *x)
{
    c->at += v->w.stride[2] * v->channels;
    if (++c->column < v->w.out[2])
        return;
    c->column = 0;
    c->at = window_row(v, x, ++c->row);
}

/* So many parts, as equal as can be: the first ones have one more. */
struct split {
    int64_t each, more;
};

static struct split split_of(int64_t all, int64_t parts)
{
    return (struct split){all / parts, all % parts};
}

static int64_t part(struct split s, int64_t i)
{
    return s.each * i + window_min(s.more, i);
}

/* An image: its pixels in tiles, those in chunks. */
struct plane {
    struct vnni_tile tile; /* of the first pixel */
    const uint8_t *x;
    struct split pixels, tiles;
};

/* Neighbouring tiles, which go through a piece of the window before the next one, so that
 * its weights are read from L1. */
struct chunk {
    int64_t index, tiles;
    struct vnni_tile tile[MOST];
    _Alignas(64) int32_t sums[MOST][VNNI_PIXELS * VNNI_FILTERS];
};

static void find_tiles(struct chunk *c, const struct plane *image, int64_t index)
{
    const struct vnni *v = image->tile.v;
    const int64_t first = part(image->tiles, index);
    int64_t begin = part(image->pixels, first);
    struct cursor at = cursor_at(v, image->x, begin);
    c->index = index;
    c->tiles = part(image->tiles, index + 1) - first;
    for (int64_t i = 0; i < c->tiles; i++) {
        struct vnni_tile *t = &c->tile[i];
        *t = image->tile;
        t->pixels = part(image->pixels, first + i + 1) - begin;
        t->to.at += begin * v->filters;
        t->sums = c->sums[v->piece < v->rows * v->words ? i : 0];
        begin += t->pixels;
        for (int64_t p = 0; p < t->pixels; p++, advance(&at, v, image->x))
            t->x[p] = at.at;
        t->next = at.at;
        t->step = v->copies ? 0 : t->pixels * v->w.stride[2] * 4;
    }
}

/* Where L2 holds all weights: one tile after the other, of all filters [first, end). */
static void run_tiles(struct chunk *c, const struct vnni *v, int64_t first, int64_t end)
{
    const struct vnni_piece all = {0, v->rows * v->words, 1, 1};
    for (int64_t i = 0; i < c->tiles; i++)
        for (c->tile[i].to.filter = first; c->tile[i].to.filter < end;
             c->tile[i].to.filter += VNNI_FILTERS)
            vnni_run_tile(&c->tile[i], &all);
}

/* Else: all tiles by a piece of 64 filters' weights, while the next piece comes. */
static void run_pieces(struct chunk *c, const struct vnni *v, int64_t filter)
{
    const int64_t words = v->rows * v->words;
    const int64_t left = parts_of(v->filters - filter, VNNI_LANES);
    const int64_t word = window_min(left, VNNI_VECTORS) * VNNI_LANES * 4;
    const int8_t *next = v->packed + filter * words * 4;
    for (int64_t begin = 0; begin < words; begin += v->piece) {
        const struct vnni_piece piece = {begin, window_min(begin + v->piece, words),
                                         begin == 0, begin + v->piece >= words};
        const int64_t all = piece.end - begin, step = parts_of(word, c->tiles);
        next += all * word;
        for (int64_t i = 0; i < c->tiles; i++) {
            struct vnni_tile *t = &c->tile[i];
            t->to.filter = filter;
            t->next = next + all * step * i;
            t->step = step;
            vnni_run_tile(t, &piece);
        }
    }
}

/* Where L2 holds all weights, neighbouring tasks have the same pixels, and there are no
 * more tasks than keep all threads busy; else they have the same filters. */
static void run_image(const struct vnni_tile *tile, const uint8_t *x)
{
    const struct vnni *v = tile->v;
    const int64_t tiles = tiles_of(v), chunks = chunks_of(v);
    const int64_t blocks = parts_of(v->filters, VNNI_FILTERS);
    const int64_t groups =
        v->is_small ? window_min(blocks, parts_of(2 * team_most(), chunks)) : blocks;
    const struct split group = split_of(blocks, groups);
    const struct plane image = {*tile, x, split_of(window_out_count(&v->w), tiles),
                                split_of(tiles, chunks)};
#pragma omp parallel
    {
        struct chunk c;
        c.index = -1;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < groups * chunks; i++) {
            const int64_t chunk = v->is_small ? i / groups : i % chunks;
            const int64_t g = v->is_small ? i % groups : i / chunks;
            const int64_t first = part(group, g) * VNNI_FILTERS;
            if (c.index != chunk)
                find_tiles(&c, &image, chunk);
            if (v->is_small)
                run_tiles(&c, v, first,
                          window_min(part(group, g + 1) * VNNI_FILTERS, v->filters));
            else
                run_pieces(&c, v, first);
        }
    }
}

int vnni_run(const strata_run *r)
{
    const struct vnni *v = r->state;
    const strata_quantized_convolution *p = r->params;
    const struct vnni_end end = vnni_end_of(r, &v->lanes);
    const int64_t image = plane_bytes(v, v->w.in);
    struct vnni_tile tile = {.v = v,
                             .to = {.end = &end,
                                    .lanes = &v->lanes,
                                    .join = &v->join,
                                    .filters = v->filters,
                                    .addend = r->n_in > 1 ? r->in[1].data : NULL,
                                    .out = r->out[0].data}};
    for (int64_t i = 0; i < r->in[0].dims[0]; i++) {
        const uint8_t *x = (const uint8_t *)r->in[0].data + i * image;
        if (v->copies) {
            copy_image(v, r->workspace, x, (uint8_t)(p->quantized.zero_in + v->flip));
            x = r->workspace;
        }
        tile.to.at = i * window_out_count(&v->w) * v->filters;
        run_image(&tile, x);
    }
    return STRATA_OK;
}
