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

#define TILE_BYTES                                                                       \
    (32 * 1024)           /* of each scratch buffer: two fit L2 with what they move */
#define TILE_CHANNELS 256 /* at most; the pixels are then at least 32 */
#define TILE_STEP 32      /* what groups of channels are multiples of */
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
    bool convert_first; /* before unpacking, else after */
};

/* Rows of one channel each in memory or scratch, pitch in elements. */
struct rows {
    const char *data;
    int64_t pitch;
};

struct scratch {
    _Alignas(64) char planar[TILE_BYTES + TILE_SLACK * 4];
    _Alignas(64) char converted[TILE_BYTES + TILE_SLACK * 4];
    _Alignas(64) char packed[TILE_BYTES + TILE_SLACK * 4];
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

/* Tiles follow each other along the pixels, so each read of memory also fetches what the
 * next tile will read: a fresh short row is where the processor's own prefetch fails. */
static void fetch(const char *data, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(data + i);
}

/* Planar rows, converted; the source is planar, so they may stay where they are. */
static struct rows read_planar(const struct reformat_job *job, const struct panel *p,
                               const struct tile *t, int64_t valid, struct scratch *s)
{
    const int64_t size = (int64_t)job->src_size, bytes = t->pixels * size;
    const char *src = t->src + (lane_offset(&p->src, t->channel) + t->pixel) * size;
    if (same_dtype(job))
        return (struct rows){src, p->src.block};
    for (int64_t c = 0; c < valid; c++) {
        const char *row = src + c * p->src.block * size;
        fetch(row + bytes, bytes);
        convert(job, s->planar + c * t->pixels * (int64_t)job->dst_size, row, t->pixels);
    }
    return (struct rows){s->planar, t->pixels};
}

/* Convert contiguous elements of the source on their way into scratch. */
static void convert_fetching(const struct reformat_job *job, char *dst, const char *src,
                             int64_t n)
{
    enum { CHUNK = 1024 };
    const int64_t size = (int64_t)job->src_size;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = min64(n - i, CHUNK);
        fetch(src + (n + i) * size, m * size);
        convert(job, dst + i * (int64_t)job->dst_size, src + i * size, m);
    }
}

/* The n channels from c of one vector of the source, as rows in scratch. */
static void read_lanes(const struct reformat_job *job, const struct panel *p,
                       const struct tile *t, int64_t c, int64_t n, bool convert_first,
                       struct scratch *s)
{
    const size_t size = convert_first ? job->dst_size : job->src_size;
    const int64_t step = p->pixel.src;
    const char *src = t->src + (t->pixel * step + lane_offset(&p->src, t->channel + c)) *
                                   (int64_t)job->src_size;
    if (convert_first) {
        convert_fetching(job, s->converted, src, step * (t->pixels - 1) + n);
        src = s->converted;
    }
    job->kernels->unpack[log2_size(size)](
        s->planar + c * t->pixels * (int64_t)size, (size_t)t->pixels, src, (size_t)step,
        (size_t)n, (size_t)t->pixels, convert_first ? 0 : (size_t)t->pixels);
}

static struct rows read_rows(const struct reformat_job *job, const struct panel *p,
                             const struct tile *t, int64_t valid, struct scratch *s)
{
    if (p->src.planar)
        return read_planar(job, p, t, valid, s);
    const bool convert_first = t->convert_first;
    for (int64_t c = 0, n; c < valid; c += n) {
        n = lanes_together(&p->src, t->channel + c, valid - c);
        read_lanes(job, p, t, c, n, convert_first, s);
    }
    if (convert_first || same_dtype(job))
        return (struct rows){s->planar, t->pixels};
    convert(job, s->converted, s->planar, valid * t->pixels); /* rows touch */
    return (struct rows){s->converted, t->pixels};
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
    const struct rows rows = read_rows(job, p, t, valid, &s);
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

/* Neighbouring channels of a side, which a tile should take together. */
static int64_t lanes_wide(const struct lanes *s, int64_t padded)
{
    return s->planar ? 1 : min64(s->vector, padded);
}

/* Channels of a tile: equal groups of whole multiples of TILE_STEP. Short vectors leave
 * the choice, and few channels with long rows of pixels suit memory better. */
static int64_t tile_channels(const struct panel *p)
{
    const bool blocks = lanes_wide(&p->dst, p->padded) <= TILE_STEP &&
                        lanes_wide(&p->src, p->padded) <= TILE_STEP;
    const int64_t most = blocks ? TILE_STEP : TILE_CHANNELS;
    if (p->padded <= most)
        return p->padded;
    const int64_t groups = divide_up(p->padded, most);
    return divide_up(divide_up(p->padded, groups), TILE_STEP) * TILE_STEP;
}

/* Narrowing convert_first halves what the rest moves, if most of what it converts is
 * wanted. */
static bool converts_first(const struct reformat_job *job, const struct panel *p,
                           int64_t channels)
{
    const int64_t n = lanes_wide(&p->src, channels);
    return !p->src.planar && job->dst_size < job->src_size && p->pixel.src <= n + n / 4;
}

static int64_t tile_pixels(const struct reformat_job *job, const struct panel *p,
                           int64_t channels, bool convert_first)
{
    const bool narrow = p->src.planar || convert_first;
    const size_t size =
        narrow || job->dst_size > job->src_size ? job->dst_size : job->src_size;
    const int64_t wide =
        convert_first && p->pixel.src > channels ? p->pixel.src : channels;
    return TILE_BYTES / (int64_t)size / wide / 16 * 16;
}

void panel_drive(const struct reformat_job *job, const struct panel *p)
{
    const int64_t channels = tile_channels(p);
    const bool convert_first = converts_first(job, p, channels);
    const int64_t pixels = tile_pixels(job, p, channels, convert_first);
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
                             .pixel = i % columns * pixels,
                             .convert_first = convert_first};
            t.channels = min64(channels, p->padded - t.channel);
            t.pixels = min64(pixels, p->pixel.extent - t.pixel);
            move_tile(job, p, &t);
        }
        job->kernels->fence();
    }
}
