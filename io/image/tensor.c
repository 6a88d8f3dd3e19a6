/* SPDX-License-Identifier: Apache-2.0
 *
 * From pixels to a network's input: resize, channel order, normalisation, in one pass.
 *
 * The filter is a triangle over half-pixel centres: output coordinate i, of `scaled` made
 * of `source`, lies at c = (i + 1/2)*source/scaled, and source pixel j weighs
 *     max(0, 1 - |j + 1/2 - c|/support),
 * divided by the sum of these over the pixels there are. A support of 1 is bilinear, as
 * OpenCV's INTER_LINEAR on float images; max(1, source/scaled) is antialiased, as
 * precompute_coeffs of Pillow's Resample.c has it for Image.resize(BILINEAR). Values
 * between pixels are not rounded. Crop and letterbox first choose whole-numbered sizes,
 * to the nearest, as a resize before a cut would.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/image/image.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/checked.h"

const struct image_transform image_identity = {
    .resize = IMAGE_STRETCH,
    .channels = IMAGE_RGB,
    .scale = 1,
    .std = {1, 1, 1, 1},
};

/* Where one output coordinate reads: n source ones from `first` on, or nowhere (n 0). */
struct taps {
    int first, n;
    const double *weights;
};

/* One axis: `source` pixels are resized to `scaled`, of which `size` from `begin` on are
 * wanted; begin < 0 leaves a border. */
struct axis {
    int64_t source, scaled, size, begin;
};

/* Distance to the next pixel and the next row, bytes. */
struct plane {
    const uint8_t *pixels;
    size_t step, row;
};

static const double luma[3] = {0.299, 0.587, 0.114}; /* ITU-R BT.601 */

static int64_t scale_size(int64_t size, int64_t to, int64_t from)
{
    int64_t scaled = (size * to + from / 2) / from;
    return scaled > 0 ? scaled : 1;
}

static void set_axes(struct axis *x, struct axis *y, enum image_resize resize)
{
    x->scaled = x->size;
    y->scaled = y->size;
    if (resize == IMAGE_CROP || resize == IMAGE_LETTERBOX) {
        /* Crop follows the axis that grows more, letterbox the one that grows less. */
        bool x_grows_more = x->size * y->source > y->size * x->source;
        if (x_grows_more == (resize == IMAGE_CROP))
            y->scaled = scale_size(y->source, x->size, x->source);
        else
            x->scaled = scale_size(x->source, y->size, y->source);
    }
    x->begin = (x->scaled - x->size) / 2;
    y->begin = (y->scaled - y->size) / 2;
}

static double support_of(const struct axis *a, bool antialias)
{
    const double step = (double)a->source / (double)a->scaled;
    return antialias && step > 1 ? step : 1;
}

/* Weights that one output coordinate may have. */
static size_t most_taps(const struct axis *a, bool antialias)
{
    return (size_t)(2 * support_of(a, antialias)) + 2;
}

/* Of those that are not border. */
static size_t most_weights(const struct axis *a, bool antialias)
{
    int64_t inside = a->size < a->scaled ? a->size : a->scaled;
    return (size_t)inside * most_taps(a, antialias);
}

static void set_weights(double *weights, const struct taps *t, double centre,
                        double support)
{
    double sum = 0;
    for (int k = 0; k < t->n; k++) {
        weights[k] = fmax(0, 1 - fabs(t->first + k + 0.5 - centre) / support);
        sum += weights[k];
    }
    for (int k = 0; k < t->n; k++)
        weights[k] /= sum;
}

static void set_taps(struct taps *taps, double *weights, const struct axis *a,
                     bool antialias)
{
    const double step = (double)a->source / (double)a->scaled;
    const double support = support_of(a, antialias);
    for (int64_t i = 0; i < a->size; i++) {
        int64_t at = i + a->begin;
        taps[i] = (struct taps){0};
        if (at < 0 || at >= a->scaled)
            continue;
        const double centre = ((double)at + 0.5) * step;
        const double begin = fmax(0, floor(centre - support + 0.5));
        const double end = fmin((double)a->source, floor(centre + support + 0.5));
        taps[i] = (struct taps){(int)begin, (int)(end - begin), weights};
        set_weights(weights, &taps[i], centre, support);
        weights += taps[i].n;
    }
}

static double sample(const struct plane *p, struct taps y, struct taps x)
{
    double sum = 0;
    for (int i = 0; i < y.n; i++) {
        const uint8_t *at =
            p->pixels + (size_t)(y.first + i) * p->row + (size_t)x.first * p->step;
        double row = 0;
        for (int k = 0; k < x.n; k++, at += p->step)
            row += x.weights[k] * *at;
        sum += y.weights[i] * row;
    }
    return sum;
}

/* Output channel c as a sum of the image's: `n` planes from `first` on, weighted. */
struct source {
    int first, n;
    double weights[3];
};

static struct source channel_source(const struct image *im, int channels, int c,
                                    enum image_channels order)
{
    if (im->channels == 1)
        return (struct source){0, 1, {1}};
    if (channels == 1 || order == IMAGE_GRAY)
        return (struct source){0, 3, {luma[0], luma[1], luma[2]}};
    return (struct source){order == IMAGE_BGR ? 2 - c : c, 1, {1}};
}

static double pixel(const struct image *im, const struct source *s, struct taps y,
                    struct taps x)
{
    double sum = 0;
    size_t step = (size_t)im->channels;
    for (int k = 0; k < s->n; k++) {
        struct plane p = {im->pixels + s->first + k, step, step * (size_t)im->width};
        sum += s->weights[k] * sample(&p, y, x);
    }
    return sum;
}

static int check(int channels, int height, int width, const struct image *im,
                 const struct image_transform *t, strata_error *err)
{
    int64_t count;
    const int64_t dims[] = {channels, height, width, (int64_t)sizeof(float)};
    if (channels != 1 && channels != 3)
        return error_set(err, STRATA_EINVAL,
                         "an image cannot fill %d channels; the input needs 1 or 3",
                         channels);
    if (height < 1 || width < 1 || !checked_product(dims, 4, &count))
        return error_set(err, STRATA_EINVAL, "an image cannot fill %d x %d pixels", width,
                         height);
    if (!im->pixels || (im->channels != 1 && im->channels != 3))
        return error_set(err, STRATA_EINVAL, "an image of 1 or 3 channels is needed");
    if (t->resize == IMAGE_EXACT && (im->width != width || im->height != height))
        return error_set(err, STRATA_EINVAL,
                         "image is %d x %d pixels, the input needs %d x %d exactly; set "
                         "resize to stretch, crop or letterbox",
                         im->width, im->height, width, height);
    if (!isfinite(t->scale) || !isfinite(t->fill))
        return error_set(err, STRATA_EINVAL, "scale %g and fill %g; both must be finite",
                         t->scale, t->fill);
    for (int c = 0; c < channels; c++)
        if (!(fabs(t->std[c]) > 0) || !isfinite(t->std[c]) || !isfinite(t->mean[c]))
            return error_set(err, STRATA_EINVAL,
                             "channel %d: mean %g and std %g; both must be finite and "
                             "std not 0",
                             c, t->mean[c], t->std[c]);
    return STRATA_OK;
}

int image_to_tensor(float *dst, int channels, int height, int width,
                    const struct image *im, const struct image_transform *t,
                    strata_error *err)
{
    struct axis x = {.source = im->width, .size = width};
    struct axis y = {.source = im->height, .size = height};
    int status = check(channels, height, width, im, t, err);
    if (status != STRATA_OK)
        return status;
    size_t n = (size_t)width + (size_t)height;
    set_axes(&x, &y, t->resize);
    size_t n_x = most_weights(&x, t->antialias), n_y = most_weights(&y, t->antialias);
    struct taps *taps = zalloc(n, sizeof *taps, "resize", err);
    double *weights = zalloc(n_x + n_y, sizeof *weights, "resize", err);
    if (!taps || !weights) {
        status = STRATA_ENOMEM;
        goto done;
    }
    set_taps(taps, weights, &x, t->antialias);
    set_taps(taps + width, weights + n_x, &y, t->antialias);
    for (int c = 0; c < channels; c++) {
        struct source s = channel_source(im, channels, c, t->channels);
        for (int i = 0; i < height; i++)
            for (int j = 0; j < width; j++) {
                struct taps row = taps[width + i], column = taps[j];
                bool inside = row.n > 0 && column.n > 0;
                double value = inside ? pixel(im, &s, row, column) : t->fill;
                *dst++ = (float)((value * t->scale - t->mean[c]) / t->std[c]);
            }
    }
done:
    free(taps);
    free(weights);
    return status;
}
