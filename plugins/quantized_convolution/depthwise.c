/* SPDX-License-Identifier: Apache-2.0
 *
 * `depthwise` around its strips: blocks of channels, weights in their order, rows among
 * threads.
 */
#include "plugins/quantized_convolution/depthwise.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "plugins/common/filters.h"

enum { LEAST_ROWS = 4 }; /* of a task: the first ones' words are made for it alone */

#ifndef __x86_64__
void depthwise_run_strip(const struct depthwise_strip *s)
{
    (void)s;
}
#endif

/* ---- blocks ------------------------------------------------------------------------ */

/* The largest of 64, 32 and 16 that fits: of all blocks but the last. */
static int64_t usual_width(int64_t channels)
{
    return channels >= 64 ? 64 : channels >= 32 ? 32 : 16;
}

static int64_t block_count(int64_t channels)
{
    const int64_t usual = usual_width(channels);
    return channels / usual + (channels % usual > 0);
}

struct depthwise_block depthwise_block(int64_t channels, int64_t block)
{
    const int64_t usual = usual_width(channels), begin = block * usual;
    const int64_t left = window_min(channels - begin, usual);
    const int64_t width = left == usual ? usual : left > 32 ? 64 : left > 16 ? 32 : 16;
    const int64_t first = window_min(begin, channels - width);
    return (struct depthwise_block){
        .first = first,
        .parts = width / DEPTHWISE_PART,
        .keep = ~UINT64_C(0) << (begin - first),
    };
}

/* ---- resolving --------------------------------------------------------------------- */

static int resolve(struct depthwise *d, const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    int64_t filters;
    int status = filters_of_convolution(
        n, &p->convolution, &n->weight[STRATA_QUANTIZED_WEIGHT], &d->w, &filters);
    if (status != STRATA_OK)
        return status;
    const struct window *w = &d->w;
    d->channels = n->in[0].dims[1];
    if (p->convolution.groups != d->channels || filters != d->channels)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "it has a channel and a filter a group");
    if (w->dims > 2 || w->dilation[1] != 1 || w->dilation[2] != 1 ||
        w->kernel[1] > DEPTHWISE_ROWS || w->kernel[2] > DEPTHWISE_COLUMNS)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "kernels are of two dims, at most %dx%d and not dilated",
                           DEPTHWISE_ROWS, DEPTHWISE_COLUMNS);
    d->flip = n->in[0].dtype == STRATA_INT8 ? 128 : 0;
    d->both = w->stride[2] == 1 ? 2 : 1;
    d->words = (w->kernel[2] + d->both - 1 + DEPTHWISE_TAPS - 1) / DEPTHWISE_TAPS;
    d->blocks = block_count(d->channels);
    return STRATA_OK;
}

int depthwise_accept(const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    struct depthwise d;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK && !vnni_is_there())
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the CPU has no AVX-512 VNNI");
    if (status == STRATA_OK && n->n_in > 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it has one input");
    if (status == STRATA_OK && n->in[0].dims[1] < DEPTHWISE_PART)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it has %d channels or more",
                           DEPTHWISE_PART);
    return status ? status : resolve(&d, n);
}

/* ---- setup ------------------------------------------------------------------------- */

/* The channel of a block's lane: a vector has four of each part. */
static int64_t channel_of(const struct depthwise_block *b, int64_t lane)
{
    const int64_t vector = lane / VNNI_LANES, part = lane / 4 % DEPTHWISE_PARTS;
    return b->first + part % b->parts * DEPTHWISE_PART + vector * 4 + lane % 4;
}

static int64_t lane_channel(const void *user, int64_t lane)
{
    const struct depthwise *d = user;
    const int64_t lanes = VNNI_VECTORS * VNNI_LANES;
    const struct depthwise_block b = depthwise_block(d->channels, lane / lanes);
    return channel_of(&b, lane % lanes);
}

/* Of output o of a word, whose window begins o columns behind the word's first. */
static int8_t tap_of(const struct depthwise *d, const int8_t *weight, int64_t channel,
                     int64_t row, int64_t column, int64_t o)
{
    const int64_t width = d->w.kernel[2], at = column - o;
    return at < 0 || at >= width ? 0
                                 : weight[(channel * d->w.kernel[1] + row) * width + at];
}

static void pack(const struct depthwise *d, const int8_t *weight, int8_t *to)
{
    enum { LANES = VNNI_VECTORS * VNNI_LANES };
    for (int64_t block = 0; block < d->blocks; block++) {
        const struct depthwise_block b = depthwise_block(d->channels, block);
        for (int64_t i = 0; i < d->w.kernel[1] * d->words * d->both * LANES; i++) {
            const int64_t lane = i % LANES, o = i / LANES % d->both;
            const int64_t word = i / LANES / d->both;
            for (int64_t tap = 0; tap < DEPTHWISE_TAPS; tap++)
                *to++ = tap_of(d, weight, channel_of(&b, lane), word / d->words,
                               word % d->words * DEPTHWISE_TAPS + tap, o);
        }
    }
}

int depthwise_setup(const strata_node *n, void *state)
{
    struct depthwise *d = state;
    void *weights;
    int status = resolve(d, n);
    if (status != STRATA_OK)
        return status;
    const size_t lanes = (size_t)d->blocks * VNNI_VECTORS * VNNI_LANES; /* of channels */
    const int64_t taps = d->w.kernel[1] * d->words * d->both * DEPTHWISE_TAPS;
    if ((status = vnni_allocate(n, lanes, (size_t)taps, &weights)) ||
        (status = vnni_make_lanes(n, lanes, window_kernel_count(&d->w), d->flip,
                                  lane_channel, d, &d->lanes)))
        return status;
    pack(d, n->weight[STRATA_QUANTIZED_WEIGHT].data, weights);
    d->weights = weights;
    return STRATA_OK;
}

/* ---- running ----------------------------------------------------------------------- */

static int64_t threads_most(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Rows of a task: few tasks, but several for each thread. */
static int64_t rows_of(const struct depthwise *d, int64_t images)
{
    const int64_t parts = images * d->blocks, tasks = 4 * threads_most();
    const int64_t bands = window_max(1, tasks / window_max(parts, 1));
    const int64_t rows = (d->w.out[1] + bands - 1) / bands;
    return window_max(rows, window_min(LEAST_ROWS, d->w.out[1]));
}

int depthwise_run(const strata_run *r)
{
    const struct depthwise *d = r->state;
    const strata_quantized_convolution *p = r->params;
    const struct vnni_end end = vnni_end_of(r, &d->lanes);
    const int64_t images = r->in[0].dims[0], rows = rows_of(d, images);
    const int64_t bands = (d->w.out[1] + rows - 1) / rows;
    const int64_t in = window_in_count(&d->w) * d->channels;
    const int64_t out = window_out_count(&d->w) * d->channels;
    const int64_t size = end.to_bytes ? 1 : sizeof(float);
    uint8_t pads[64];
    memset(pads, (int)p->quantized.zero_in, sizeof pads);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < images * bands * d->blocks; i++) {
        const int64_t image = i / bands / d->blocks, band = i / d->blocks % bands;
        const struct depthwise_strip s = {
            .d = d,
            .end = &end,
            .block = depthwise_block(d->channels, i % d->blocks),
            .x = (const uint8_t *)r->in[0].data + image * in,
            .out = (char *)r->out[0].data + image * out * size,
            .pads = pads,
            .index = i % d->blocks,
            .begin = band * rows,
            .end_row = window_min(band * rows + rows, d->w.out[1]),
        };
        depthwise_run_strip(&s);
    }
    return STRATA_OK;
}
