/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of a panel: some channels by some pixels, moved by one thread through scratch
 * memory on its stack.
 */
#ifndef FORMATS_REFORMAT_TILE_H
#define FORMATS_REFORMAT_TILE_H

#include "formats/reformat/kernels.h"

#include <string.h>

#define TILE_BYTES (32 * 1024)     /* of each scratch buffer: all fit L2 */
#define PARALLEL_BYTES (32 * 1024) /* of dst; below it threads cost more */
/* Of dst: results past it are not in the caches when the next layer reads them, and
 * storing past the caches spares reading each line before it is written. */
#define STREAM_BYTES (8 * 1024 * 1024)

struct tile {
    const char *src; /* base of the outer step */
    char *dst;
    int64_t channel, channels; /* first, count; pads of dst included */
    int64_t valid;             /* channels that are no pads */
    int64_t pixel, pixels;
    bool convert_first; /* before unpacking, else after */
};

struct scratch {
    _Alignas(64) char planar[TILE_BYTES + TILE_SLACK * 8];
    _Alignas(64) char converted[TILE_BYTES + TILE_SLACK * 8];
    _Alignas(64) char packed[TILE_BYTES + TILE_SLACK * 8];
};

/* tile.c */
/* Write n contiguous elements of the result; large results go past the caches. */
void job_put(const struct reformat_job *job, char *dst, const char *src, int64_t n);
/* Convert n contiguous elements. */
void job_convert(const struct reformat_job *job, char *dst, const char *src, int64_t n);
/* The same out of memory: fetches the n elements that follow, the next tile's. */
void job_convert_fetching(const struct reformat_job *job, char *dst, const char *src,
                          int64_t n);

/* The tile's n channels from c, packed by pixels, into one vector of dst. */
void tile_put(const struct reformat_job *job, const struct panel *p, const struct tile *t,
              int64_t c, int64_t n, const char *packed);

/* weave.c */
/* Whether a panel is woven: both sides have channels together, in runs worth copying. */
bool weave_fits(const struct reformat_job *job, const struct panel *p, int64_t channels);
void weave_tile(const struct reformat_job *job, const struct panel *p,
                const struct tile *t);

static inline int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static inline bool same_dtype(const struct reformat_job *job)
{
    return job->dst_desc->dtype == job->src_desc->dtype;
}

static inline int64_t lane_offset(const struct lanes *s, int64_t c)
{
    return s->planar ? c * s->block : c / s->vector * s->block + c % s->vector;
}

/* Channels from c that lie in one vector, at most `limit`. */
static inline int64_t lanes_together(const struct lanes *s, int64_t c, int64_t limit)
{
    return min64(limit, s->vector - c % s->vector);
}

/* Neighbouring channels of a side, which a tile should take together. */
static inline int64_t lanes_wide(const struct lanes *s, int64_t channels)
{
    return s->planar ? 1 : min64(s->vector, channels);
}

/* Tiles follow each other along the pixels, so each read of memory also fetches what the
 * next tile will read: a fresh short row is where the processor's own prefetch fails. */
static inline void fetch(const char *data, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(data + i);
}

#endif /* FORMATS_REFORMAT_TILE_H */
