/* SPDX-License-Identifier: Apache-2.0
 *
 * Cut a job into pieces for the threads and move each with the kernels. A panel's tile is
 * k channels by n pixels and goes through scratch memory on the stack:
 *
 *   source --unpack--> planar rows --convert--> planar rows --pack--> tile --> dst
 *
 * A step is left out where it has nothing to do: planar sources are read where they are,
 * planar destinations take the rows. What leaves is contiguous, so large results go past
 * the caches: without that each line of dst is read before it is written.
 */
#include "formats/reformat_kernels.h"

#include <string.h>

#define TILE_ELEMENTS 8192         /* 32 KiB of fp32: with its twin it fits L2 */
#define TILE_CHANNELS 256          /* at most; the pixels are then at least 32 */
#define PIECE_BYTES (64 * 1024)    /* of a run, for one thread */
#define PARALLEL_BYTES (32 * 1024) /* of dst; below it threads cost more */
#define STREAM_BYTES                                                                     \
    (8 * 1024 * 1024) /* of dst; past what the next layer finds cached                   \
                       */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static bool same_dtype(const struct reformat_job *job)
{
    return job->dst_desc->dtype == job->src_desc->dtype;
}

/* Write contiguous bytes of the result. */
static void put(const struct reformat_job *job, char *dst, const char *src, int64_t n)
{
    const size_t bytes = (size_t)n * job->dst_size;
    if (job->bytes >= STREAM_BYTES)
        job->kernels->stream(dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

static void convert(const struct reformat_job *job, char *dst, const char *src, int64_t n)
{
    reformat_convert(job->kernels, dst, job->dst_desc->dtype, src, job->src_desc->dtype,
                     (size_t)n);
}

void reformat_convert(const struct reformat_kernels *k, void *dst, int dst_dtype,
                      const void *src, int src_dtype, size_t n)
{
    enum { CHUNK = 512 };
    _Alignas(64) float middle[CHUNK];
    if (dst_dtype == src_dtype) {
        memcpy(dst, src, n * strata_dtype_size(dst_dtype));
    } else if (src_dtype == STRATA_FP32) {
        k->from_float[dst_dtype](dst, src, n);
    } else if (dst_dtype == STRATA_FP32) {
        k->to_float[src_dtype](dst, src, n);
    } else {
        for (size_t i = 0; i < n; i += CHUNK) {
            const size_t m = n - i < CHUNK ? n - i : CHUNK;
            k->to_float[src_dtype](
                middle, (const char *)src + i * strata_dtype_size(src_dtype), m);
            k->from_float[dst_dtype]((char *)dst + i * strata_dtype_size(dst_dtype),
                                     middle, m);
        }
    }
}

/* ---- runs ------------------------------------------------------------------------- */

static void move_run(const struct reformat_job *job, char *dst, const char *src,
                     int64_t n)
{
    enum { CHUNK = 2048 };
    _Alignas(64) char buffer[CHUNK * sizeof(float)];
    if (same_dtype(job)) {
        put(job, dst, src, n);
    } else if (job->bytes < STREAM_BYTES) {
        convert(job, dst, src, n);
    } else {
        for (int64_t i = 0; i < n; i += CHUNK) {
            const int64_t m = min64(n - i, CHUNK);
            convert(job, buffer, src + i * (int64_t)job->src_size, m);
            put(job, dst + i * (int64_t)job->dst_size, buffer, m);
        }
    }
}

void runs_drive(const struct reformat_job *job, const struct runs *r)
{
    const int64_t piece = PIECE_BYTES / (int64_t)job->dst_size;
    const int64_t pieces = divide_up(r->length, piece);
    const int64_t tasks = loops_steps(r->outer, r->n_outer) * pieces;
#ifdef _OPENMP
#pragma omp parallel if (job->bytes > PARALLEL_BYTES)
#endif
    {
#ifdef _OPENMP
#pragma omp for schedule(static)
#endif
        for (int64_t t = 0; t < tasks; t++) {
            const int64_t at = t % pieces * piece;
            int64_t from;
            const int64_t to = loops_seek(r->outer, r->n_outer, t / pieces, &from);
            move_run(job, job->dst + (to + at) * (int64_t)job->dst_size,
                     job->src + (from + at) * (int64_t)job->src_size,
                     min64(piece, r->length - at));
        }
        job->kernels->fence();
    }
}

/* ---- panels ----------------------------------------------------------------------- */

struct tile {
    const char *src; /* base of the outer step */
    char *dst;
    int64_t channel, channels; /* first, count; pads of dst included */
    int64_t pixel, pixels;
};

/* Rows of one channel each in memory or scratch, pitch in elements. */
struct rows {
    const char *data;
    int64_t pitch;
};

struct scratch {
    _Alignas(64) char planar[(TILE_ELEMENTS + TILE_SLACK) * 4]; /* dtype of src */
    _Alignas(64) char converted[(TILE_ELEMENTS + TILE_SLACK) * 4];
    _Alignas(64) char packed[(TILE_ELEMENTS + TILE_SLACK) * 4];
};

static int log2_size(size_t size)
{
    return size == 4 ? 2 : size == 2 ? 1 : 0;
}

static int64_t lane_offset(const struct lanes *s, int64_t c)
{
    return s->planar ? c * s->block : c / s->vector * s->block + c % s->vector;
}

/* Channels from c that lie in one vector, at most `limit`. */
static int64_t lanes_together(const struct lanes *s, int64_t c, int64_t limit)
{
    return min64(limit, s->vector - c % s->vector);
}

static struct rows read_rows(const struct reformat_job *job, const struct panel *p,
                             const struct tile *t, int64_t valid, char *scratch)
{
    const int64_t size = (int64_t)job->src_size;
    const char *src = t->src + t->pixel * p->pixel.src * size;
    if (p->src.planar)
        return (struct rows){src + lane_offset(&p->src, t->channel) * size, p->src.block};
    unpack_fn *unpack = job->kernels->unpack[log2_size(job->src_size)];
    for (int64_t c = 0, n; c < valid; c += n) {
        n = lanes_together(&p->src, t->channel + c, valid - c);
        unpack(scratch + c * t->pixels * size, (size_t)t->pixels,
               src + lane_offset(&p->src, t->channel + c) * size, (size_t)p->pixel.src,
               (size_t)n, (size_t)t->pixels, (size_t)t->pixels);
    }
    return (struct rows){scratch, t->pixels};
}

/* Tiles follow each other along the pixels, so each read of memory also fetches what the
 * next tile will read: a fresh short row is where the processor's own prefetch fails. */
static void fetch(const char *data, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(data + i);
}

static struct rows convert_rows(const struct reformat_job *job, const struct panel *p,
                                const struct tile *t, struct rows rows, int64_t valid,
                                char *scratch)
{
    const int64_t from = t->pixels * (int64_t)job->src_size;
    const int64_t to = t->pixels * (int64_t)job->dst_size;
    if (same_dtype(job))
        return rows;
    if (!p->src.planar) {
        convert(job, scratch, rows.data, valid * t->pixels); /* rows touch */
        return (struct rows){scratch, t->pixels};
    }
    for (int64_t c = 0; c < valid; c++) {
        const char *row = rows.data + c * rows.pitch * (int64_t)job->src_size;
        fetch(row + from, from);
        convert(job, scratch + c * to, row, t->pixels);
    }
    return (struct rows){scratch, t->pixels};
}

/* One vector's channels [c, c + n) of the tile, `valid` of them not pads. */
static void write_lanes(const struct reformat_job *job, const struct panel *p,
                        const struct tile *t, struct rows rows, int64_t c, int64_t n,
                        int64_t valid, char *scratch)
{
    const int64_t size = (int64_t)job->dst_size;
    const bool in_memory = p->src.planar && same_dtype(job);
    const char *src = valid > 0 ? rows.data + c * rows.pitch * size : rows.data;
    pack_fn *pack = job->kernels->pack[log2_size(job->dst_size)];
    char *dst =
        t->dst + (t->pixel * p->pixel.dst + lane_offset(&p->dst, t->channel + c)) * size;
    pack(scratch, (size_t)n, src, (size_t)rows.pitch, (size_t)valid, (size_t)t->pixels,
         in_memory ? (size_t)t->pixels : 0);
    if (p->pixel.dst == n) {
        put(job, dst, scratch, n * t->pixels);
        return;
    }
    for (int64_t i = 0; i < t->pixels; i++)
        put(job, dst + i * p->pixel.dst * size, scratch + i * n * size, n);
}

static void move_tile(const struct reformat_job *job, const struct panel *p,
                      const struct tile *t)
{
    struct scratch s;
    const int64_t size = (int64_t)job->dst_size;
    const int64_t left = p->channels - t->channel;
    const int64_t valid = left < 0 ? 0 : min64(t->channels, left);
    struct rows rows = read_rows(job, p, t, valid, s.planar);
    rows = convert_rows(job, p, t, rows, valid, s.converted);
    if (p->dst.planar) {
        for (int64_t c = 0; c < valid; c++)
            put(job, t->dst + (lane_offset(&p->dst, t->channel + c) + t->pixel) * size,
                rows.data + c * rows.pitch * size, t->pixels);
        return;
    }
    for (int64_t c = 0, n; c < t->channels; c += n) {
        const int64_t rest = c < valid ? valid - c : 0;
        n = lanes_together(&p->dst, t->channel + c, t->channels - c);
        write_lanes(job, p, t, rows, c, n, min64(rest, n), s.packed);
    }
}

/* Channels of a tile: all of them, or equal groups of whole multiples of 64. */
static int64_t tile_channels(int64_t padded)
{
    if (padded <= TILE_CHANNELS)
        return padded;
    const int64_t groups = divide_up(padded, TILE_CHANNELS);
    return divide_up(divide_up(padded, groups), 64) * 64;
}

void panel_drive(const struct reformat_job *job, const struct panel *p)
{
    const int64_t channels = tile_channels(p->padded);
    const int64_t pixels = TILE_ELEMENTS / channels / 16 * 16;
    const int64_t columns = divide_up(p->pixel.extent, pixels);
    const int64_t groups = divide_up(p->padded, channels);
    const int64_t tasks = loops_steps(p->outer, p->n_outer) * groups * columns;
#ifdef _OPENMP
#pragma omp parallel if (job->bytes > PARALLEL_BYTES)
#endif
    {
#ifdef _OPENMP
#pragma omp for schedule(static)
#endif
        for (int64_t i = 0; i < tasks; i++) {
            int64_t from;
            const int64_t to =
                loops_seek(p->outer, p->n_outer, i / columns / groups, &from);
            struct tile t = {.src = job->src + from * (int64_t)job->src_size,
                             .dst = job->dst + to * (int64_t)job->dst_size,
                             .channel = i / columns % groups * channels,
                             .pixel = i % columns * pixels};
            t.channels = min64(channels, p->padded - t.channel);
            t.pixels = min64(pixels, p->pixel.extent - t.pixel);
            move_tile(job, p, &t);
        }
        job->kernels->fence();
    }
}
