/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows over a plane, and memory for planes: what plain loops and definitions of
 * layers with windows share.
 */
#ifndef PLUGINS_COMMON_PLANE_H
#define PLUGINS_COMMON_PLANE_H

#include <stdbool.h>

#include "plugins/common/window.h"

/* Where element i of a block of this size lies along each dim, in the order of memory. */
static inline void plane_place(int64_t at[WINDOW_DIMS], const int64_t size[WINDOW_DIMS],
                               int64_t i)
{
    at[0] = i / size[2] / size[1];
    at[1] = i / size[2] % size[1];
    at[2] = i % size[2];
}

/* And which it is. */
static inline int64_t plane_element(const int64_t size[WINDOW_DIMS],
                                    const int64_t at[WINDOW_DIMS])
{
    return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

/* The input that a tap of output o's window sees; whether it is inside. */
static inline bool plane_source(int64_t i[WINDOW_DIMS], const struct window *w,
                                const int64_t o[WINDOW_DIMS], int64_t tap)
{
    int64_t k[WINDOW_DIMS];
    bool inside = true;
    plane_place(k, w->kernel, tap);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        i[d] = o[d] * w->stride[d] - w->begin[d] + k[d] * w->dilation[d];
        inside &= i[d] >= 0 && i[d] < w->in[d];
    }
    return inside;
}

/* Floats of n parts of memory, of as many planes of so many elements, and of all of it;
 * 0: too many. */
static inline int64_t plane_sizes(int n, const int64_t *planes, const int64_t *elements,
                                  int64_t *size)
{
    int64_t all = 0;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(planes[i], elements[i], &size[i]) ||
            __builtin_add_overflow(all, size[i], &all))
            return 0;
    return all;
}

/* Bytes of so many floats; SIZE_MAX: too many, or none. */
static inline size_t plane_bytes(int64_t floats)
{
    int64_t bytes;
    return floats < 1 || __builtin_mul_overflow(floats, (int64_t)sizeof(float), &bytes)
               ? SIZE_MAX
               : (size_t)bytes;
}

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
