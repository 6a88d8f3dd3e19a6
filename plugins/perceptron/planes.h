/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes of some channels that lie beside each other, whatever the format: their means,
 * and their product with a factor each.
 */
#ifndef PLUGINS_PERCEPTRON_PLANES_H
#define PLUGINS_PERCEPTRON_PLANES_H

#include "plugins/common/image.h"

#define PLANES_PIECE 64 /* pixels at a time */

/* Of `lanes` channels from c on of image i, of all its pixels in the order they lie. */
struct planes {
    const strata_tensor *t;
    int64_t image, channel, lanes, live;
    struct image_rows rows;
    int64_t pixels;
};

static inline struct planes planes_of(const strata_tensor *t, int64_t image,
                                      int64_t channel)
{
    struct planes s = {.t = t,
                       .image = image,
                       .channel = channel,
                       .lanes = image_lanes(t),
                       .rows = image_rows(t),
                       .pixels = image_plane(t)};
    const int64_t width = image_channels(t) - channel;
    s.lanes = s.lanes < width ? s.lanes : width;
    s.live = t->dims[1] - channel < s.lanes ? t->dims[1] - channel : s.lanes;
    return s;
}

/* Where pixel i begins, and *run pixels from there on at a distance of rows.length. */
static inline int64_t pixel_of(const struct planes *s, int64_t i, int64_t *run)
{
    const struct image_rows *r = &s->rows;
    const int64_t row = i / r->length, column = i % r->length;
    *run = r->length - column;
    return element_channel(s->t, s->image, s->channel) + row / r->n[1] * r->stride[0] +
           row % r->n[1] * r->stride[1] + column * r->step;
}

/* Pixels of a piece as they lie in `tile`, lanes of a pixel side by side. */
static inline int64_t load_piece(float *tile, const struct planes *s, int64_t i,
                                 int64_t *at)
{
    int64_t run;
    *at = pixel_of(s, i, &run);
    run = run < PLANES_PIECE ? run : PLANES_PIECE;
    if (s->lanes == 1 || s->rows.step == s->lanes)
        element_load_row(tile, s->t->data, s->t->dtype, *at,
                         s->lanes == 1 ? s->rows.step : 1, run * s->lanes);
    else
        for (int64_t k = 0; k < run; k++)
            element_load_row(tile + k * s->lanes, s->t->data, s->t->dtype,
                             *at + k * s->rows.step, 1, s->lanes);
    return run;
}

/* Sums of pieces are added to those of all, so that long planes lose little. */
static inline void take_means(const struct planes *s, float *mean)
{
    float tile[PLANES_PIECE * IMAGE_LANES], all[IMAGE_LANES] = {0};
    int64_t at;
    for (int64_t i = 0, run; i < s->pixels; i += run) {
        float sum[IMAGE_LANES] = {0};
        run = load_piece(tile, s, i, &at);
        if (s->lanes == 1)
            for (int64_t k = 0; k < run; k++)
                sum[0] += tile[k];
        else
            for (int64_t k = 0; k < run; k++)
                for (int64_t l = 0; l < s->lanes; l++)
                    sum[l] += tile[k * s->lanes + l];
        for (int64_t l = 0; l < s->lanes; l++)
            all[l] += sum[l];
    }
    for (int64_t l = 0; l < s->live; l++)
        mean[l] = all[l] / (float)s->pixels;
}

/* y: as the input lies. */
static inline void scale_planes(const struct planes *s, const strata_tensor *y,
                                const float *factor)
{
    float tile[PLANES_PIECE * IMAGE_LANES], by[IMAGE_LANES] = {0};
    int64_t at;
    memcpy(by, factor, (size_t)s->live * sizeof *by);
    for (int64_t i = 0, run; i < s->pixels; i += run) {
        run = load_piece(tile, s, i, &at);
        for (int64_t k = 0; k < run; k++)
            for (int64_t l = 0; l < s->lanes; l++)
                tile[k * s->lanes + l] *= by[l];
        if (s->lanes == 1 || s->rows.step == s->lanes)
            element_store_row(y->data, y->dtype, at, s->lanes == 1 ? s->rows.step : 1,
                              tile, run * s->lanes);
        else
            for (int64_t k = 0; k < run; k++)
                element_store_row(y->data, y->dtype, at + k * s->rows.step, 1,
                                  tile + k * s->lanes, s->lanes);
    }
}

#endif /* PLUGINS_PERCEPTRON_PLANES_H */
