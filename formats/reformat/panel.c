/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of panels. A tile goes through scratch memory:
 *
 *   source --unpack--> planar rows --convert--> planar rows --pack--> vectors --> dst
 *
 * A step is left out where it has nothing to do: planar sources are read where they are,
 * planar destinations take the rows, and one transposition alone goes from memory to
 * memory; vectors that become vectors are woven instead. Pairs
 * of channels that stay together move as one wider element: to such, NC/2HW2 is planar.
 */
#include "formats/reformat/tile.h"

#define TILE_CHANNELS 256 /* at most; the pixels are then at least 16 */
#define TILE_STEP 32      /* what groups of channels are multiples of */

/* ---- transposition ------------------------------------------------------------------
 */

/* Rows of one channel each in memory or scratch, pitch in elements. */
struct rows {
    const char *data;
    int64_t pitch;
};

static int log2_size(size_t size)
{
    return __builtin_ctzll(size);
}

/* Planar rows, converted; the source is planar, so they may stay where they are. */
static struct rows read_planar(const struct reformat_job *job, const struct panel *p,
                               const struct tile *t, struct scratch *s)
{
    const int64_t size = (int64_t)job->src_size, bytes = t->pixels * size;
    const char *src = t->src + (lane_offset(&p->src, t->channel) + t->pixel) * size;
    if (same_dtype(job))
        return (struct rows){src, p->src.block};
    for (int64_t c = 0; c < t->valid; c++) {
        const char *row = src + c * p->src.block * size;
        fetch(row + bytes, bytes);
        job_convert(job, s->planar + c * t->pixels * (int64_t)job->dst_size, row,
                    t->pixels);
    }
    return (struct rows){s->planar, t->pixels};
}

/* The n channels from c of one vector of the source, as rows in scratch. */
static void read_lanes(const struct reformat_job *job, const struct panel *p,
                       const struct tile *t, int64_t c, int64_t n, struct scratch *s)
{
    const size_t size = t->convert_first ? job->dst_size : job->src_size;
    const int64_t step = p->pixel.src;
    const char *src = t->src + (t->pixel * step + lane_offset(&p->src, t->channel + c)) *
                                   (int64_t)job->src_size;
    if (t->convert_first) {
        job_convert_fetching(job, s->converted, src, step * (t->pixels - 1) + n);
        src = s->converted;
    }
    job->kernels->unpack[log2_size(size)](
        s->planar + c * t->pixels * (int64_t)size, (size_t)t->pixels, src, (size_t)step,
        (size_t)n, (size_t)t->pixels, t->convert_first ? 0 : (size_t)t->pixels);
}

static struct rows read_rows(const struct reformat_job *job, const struct panel *p,
                             const struct tile *t, struct scratch *s)
{
    if (p->src.planar)
        return read_planar(job, p, t, s);
    for (int64_t c = 0, n; c < t->valid; c += n) {
        n = lanes_together(&p->src, t->channel + c, t->valid - c);
        read_lanes(job, p, t, c, n, s);
    }
    if (t->convert_first || same_dtype(job))
        return (struct rows){s->planar, t->pixels};
    job_convert(job, s->converted, s->planar, t->valid * t->pixels); /* rows touch */
    return (struct rows){s->converted, t->pixels};
}

/* Whether tiles need no scratch: one transposition is all there is to do, and what it
 * writes stays in the caches. */
static bool is_straight(const struct reformat_job *job, const struct panel *p)
{
    return same_dtype(job) && p->src.planar != p->dst.planar && job->bytes < STREAM_BYTES;
}

/* Vectors to planes where they lie. */
static void unpack_straight(const struct reformat_job *job, const struct panel *p,
                            const struct tile *t)
{
    const int64_t size = (int64_t)job->dst_size, step = p->pixel.src;
    unpack_fn *unpack = job->kernels->unpack[log2_size(job->dst_size)];
    for (int64_t c = 0, n; c < t->valid; c += n) {
        const int64_t at = t->channel + c;
        n = lanes_together(&p->src, at, t->valid - c);
        unpack(t->dst + (lane_offset(&p->dst, at) + t->pixel) * size,
               (size_t)p->dst.block,
               t->src + (t->pixel * step + lane_offset(&p->src, at)) * size, (size_t)step,
               (size_t)n, (size_t)t->pixels, (size_t)t->pixels);
    }
}

/* Where one vector's channels go: into memory as they are packed, or to scratch. */
static char *pack_place(const struct reformat_job *job, const struct panel *p,
                        const struct tile *t, int64_t c, int64_t n, char *scratch)
{
    const int64_t size = (int64_t)job->dst_size, step = p->pixel.dst;
    if (n < PACK_WHOLE || step != n || !is_straight(job, p))
        return scratch;
    return t->dst + (t->pixel * step + lane_offset(&p->dst, t->channel + c)) * size;
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
    char *to = pack_place(job, p, t, c, n, scratch);
    pack(to, (size_t)n, src, (size_t)rows.pitch, (size_t)valid, (size_t)t->pixels,
         in_memory ? (size_t)t->pixels : 0);
    if (to == scratch)
        tile_put(job, p, t, c, n, scratch);
}

static void transpose_tile(const struct reformat_job *job, const struct panel *p,
                           const struct tile *t)
{
    struct scratch s;
    if (p->dst.planar && is_straight(job, p)) {
        unpack_straight(job, p, t);
        return;
    }
    const int64_t size = (int64_t)job->dst_size;
    const struct rows rows = read_rows(job, p, t, &s);
    if (p->dst.planar) {
        for (int64_t c = 0; c < t->valid; c++)
            job_put(job,
                    t->dst + (lane_offset(&p->dst, t->channel + c) + t->pixel) * size,
                    rows.data + c * rows.pitch * size, t->pixels);
        return;
    }
    for (int64_t c = 0, n; c < t->channels; c += n) {
        const int64_t rest = c < t->valid ? t->valid - c : 0;
        n = lanes_together(&p->dst, t->channel + c, t->channels - c);
        write_lanes(job, p, t, rows, c, n, min64(rest, n), s.packed);
    }
}

/* ---- wider elements ------------------------------------------------------------------
 */

static bool side_pairs(const struct lanes *s, int64_t channels, int64_t pixel)
{
    const bool blocks = s->vector < channels;
    return !s->planar && s->vector % 2 == 0 && (!blocks || s->block % 2 == 0) &&
           pixel % 2 == 0 && (s->vector > 2 || pixel == 2);
}

/* Whether two channels may move as one element of twice the size. */
static bool panel_pairs(const struct reformat_job *job, const struct panel *p)
{
    bool even = same_dtype(job) && job->dst_size < 4 && p->channels % 2 == 0 &&
                side_pairs(&p->dst, p->padded, p->pixel.dst) &&
                side_pairs(&p->src, p->channels, p->pixel.src);
    for (int i = 0; i < p->n_outer; i++)
        even = even && p->outer[i].dst % 2 == 0 && p->outer[i].src % 2 == 0;
    return even;
}

static struct lanes halved(struct lanes s)
{
    return (struct lanes){s.vector == 2, s.vector / 2, s.block / 2};
}

static void panel_halve(struct reformat_job *job, struct panel *p)
{
    job->dst_size = job->src_size *= 2;
    p->channels /= 2;
    p->padded /= 2;
    p->pixel.dst /= 2;
    p->pixel.src /= 2;
    p->dst = halved(p->dst);
    p->src = halved(p->src);
    for (int i = 0; i < p->n_outer; i++) {
        p->outer[i].dst /= 2;
        p->outer[i].src /= 2;
    }
}

/* ---- tiling ------------------------------------------------------------------------ */

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

/* Narrowing first halves what the rest moves, if most of what it converts is wanted. */
static bool converts_first(const struct reformat_job *job, const struct panel *p,
                           int64_t channels)
{
    const int64_t n = lanes_wide(&p->src, channels);
    return !p->src.planar && job->dst_size < job->src_size && p->pixel.src <= n + n / 4;
}

/* Elements of the source at one pixel, as they are when vectors are converted whole. */
static int64_t vectors_step(const struct panel *p, int64_t channels)
{
    const int64_t v = p->src.vector;
    const bool even = channels >= p->padded || v >= p->channels || channels % v == 0;
    return (divide_up(channels, min64(v, channels)) + !even) * p->pixel.src;
}

/* As many as a scratch buffer takes, in its largest use; whole lines of memory. */
static int64_t tile_pixels(const struct reformat_job *job, const struct panel *p,
                           int64_t channels, bool woven, bool convert_first)
{
    const bool dst_only = woven || p->src.planar || convert_first;
    const size_t size =
        dst_only || job->dst_size > job->src_size ? job->dst_size : job->src_size;
    int64_t wide = channels;
    if (woven || convert_first)
        wide = vectors_step(p, channels) > wide ? vectors_step(p, channels) : wide;
    const int64_t pixels = TILE_BYTES / (int64_t)size / wide;
    return pixels < 16 ? pixels : pixels / 16 * 16;
}

static void drive(const struct reformat_job *job, const struct panel *p)
{
    const int64_t channels = tile_channels(p);
    const bool woven = weave_fits(job, p, channels);
    const bool convert_first = converts_first(job, p, channels);
    const int64_t pixels = tile_pixels(job, p, channels, woven, convert_first);
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
            if (t.channel < p->channels)
                t.valid = min64(t.channels, p->channels - t.channel);
            (woven ? weave_tile : transpose_tile)(job, p, &t);
        }
        job->kernels->fence();
    }
}

void panel_drive(const struct reformat_job *job, const struct panel *p)
{
    struct reformat_job wider = *job;
    struct panel fewer = *p;
    while (panel_pairs(&wider, &fewer))
        panel_halve(&wider, &fewer);
    drive(&wider, &fewer);
}
