/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of two dims over a plane: what plain loops and definitions of convolutions
 * inside of other layers share.
 */
#ifndef PLUGINS_COMMON_PLANE_H
#define PLUGINS_COMMON_PLANE_H

#include "plugins/common/window.h"

/* A tap of a plane's windows onto all outputs that see it inside. */
static inline void plane_slide(const struct window *w, const float *x, float *y,
                               float factor, int64_t r, int64_t s)
{
    int64_t top, bottom, left, right;
    window_valid(w, 1, r, &top, &bottom);
    window_valid(w, 2, s, &left, &right);
    const int64_t down = r * w->dilation[1] - w->begin[1];
    const int64_t across = s * w->dilation[2] - w->begin[2];
    for (int64_t h = top; h < bottom; h++)
        for (int64_t i = left; i < right; i++)
            y[h * w->out[2] + i] +=
                factor *
                x[(h * w->stride[1] + down) * w->in[2] + i * w->stride[2] + across];
}

/* A channel's share of a result. */
static inline double plane_exact(const struct window *w, const double *x,
                                 const double *weight, int64_t h, int64_t v)
{
    double sum = 0;
    for (int64_t r = 0; r < w->kernel[1]; r++)
        for (int64_t s = 0; s < w->kernel[2]; s++) {
            const int64_t a = h * w->stride[1] - w->begin[1] + r * w->dilation[1];
            const int64_t b = v * w->stride[2] - w->begin[2] + s * w->dilation[2];
            if (a >= 0 && a < w->in[1] && b >= 0 && b < w->in[2])
                sum += weight[r * w->kernel[2] + s] * x[a * w->in[2] + b];
        }
    return sum;
}

#endif /* PLUGINS_COMMON_PLANE_H */
