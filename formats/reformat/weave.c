/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles whose channels lie together on both sides (NHWC to NC/8HW8, NC/16HW16 to NHWC8):
 * the source's vectors are converted (or copied) as they are, then each pixel's runs of
 * channels are copied into the vectors of the destination.
 */
#include "formats/reformat/tile.h"

#define RUN_LEAST 16 /* bytes: one vector register */

bool weave_fits(const struct reformat_job *job, const struct panel *p, int64_t channels)
{
    const int64_t from = lanes_wide(&p->src, min64(channels, p->channels));
    const int64_t to = lanes_wide(&p->dst, min64(channels, p->channels));
    const int64_t step = p->pixel.src;
    return !p->src.planar && !p->dst.planar &&
           min64(from, to) * (int64_t)job->dst_size >= RUN_LEAST && step >= from &&
           step <= from + from / 4;
}

/* n runs of `bytes`; steps in bytes. */
static inline void copy_fixed(char *dst, int64_t dst_step, const char *src,
                              int64_t src_step, size_t bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + i * dst_step, src + i * src_step, bytes);
}

static void copy_runs(char *dst, int64_t dst_step, const char *src, int64_t src_step,
                      size_t bytes, int64_t n)
{
    switch (bytes) { /* the common ones without a call each */
    case 16:
        copy_fixed(dst, dst_step, src, src_step, 16, n);
        return;
    case 32:
        copy_fixed(dst, dst_step, src, src_step, 32, n);
        return;
    case 64:
        copy_fixed(dst, dst_step, src, src_step, 64, n);
        return;
    default:
        break;
    }
    if (bytes < RUN_LEAST) {
        copy_fixed(dst, dst_step, src, src_step, bytes, n);
        return;
    }
    const size_t last = bytes - RUN_LEAST; /* may repeat a part of the one before */
    for (int64_t i = 0; i < n; i++) {
        for (size_t at = 0; at < last; at += RUN_LEAST)
            memcpy(dst + i * dst_step + at, src + i * src_step + at, RUN_LEAST);
        memcpy(dst + i * dst_step + last, src + i * src_step + last, RUN_LEAST);
    }
}

/* Where the source vector of channel c begins in scratch, in elements. */
static int64_t staged_at(const struct panel *p, const struct tile *t, int64_t c)
{
    const int64_t v = p->src.vector;
    return ((t->channel + c) / v - t->channel / v) * p->pixel.src * t->pixels;
}

static void stage_vectors(const struct reformat_job *job, const struct panel *p,
                          const struct tile *t, char *scratch)
{
    for (int64_t c = 0, n; c < t->valid; c += n) {
        n = lanes_together(&p->src, t->channel + c, t->valid - c);
        const int64_t at = t->pixel * p->pixel.src + lane_offset(&p->src, t->channel + c);
        job_convert_fetching(job, scratch + staged_at(p, t, c) * (int64_t)job->dst_size,
                             t->src + at * (int64_t)job->src_size,
                             p->pixel.src * (t->pixels - 1) + n);
    }
}

/* The tile's channels [c, c + n) of one dst vector, from one or more of the source. */
static void weave(const struct reformat_job *job, const struct panel *p,
                  const struct tile *t, int64_t c, int64_t n, struct scratch *s)
{
    const int64_t size = (int64_t)job->dst_size, end = min64(c + n, t->valid);
    if (end < c + n)
        memset(s->packed, 0, (size_t)(n * t->pixels * size));
    for (int64_t at = c, m; at < end; at += m) {
        m = lanes_together(&p->src, t->channel + at, end - at);
        const int64_t before = (t->channel + at) % p->src.vector; /* in its vector */
        const char *src = s->converted + (staged_at(p, t, at) + min64(before, at)) * size;
        copy_runs(s->packed + (at - c) * size, n * size, src, p->pixel.src * size,
                  (size_t)(m * size), t->pixels);
    }
    tile_put(job, p, t, c, n, s->packed);
}

void weave_tile(const struct reformat_job *job, const struct panel *p,
                const struct tile *t)
{
    struct scratch s;
    stage_vectors(job, p, t, s.converted);
    for (int64_t c = 0, n; c < t->channels; c += n) {
        n = lanes_together(&p->dst, t->channel + c, t->channels - c);
        weave(job, p, t, c, n, &s);
    }
}
