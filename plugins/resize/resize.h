/* SPDX-License-Identifier: Apache-2.0
 *
 * What Resize's impls share: which input elements an output index is made of, and their
 * weights, per dim, in FP64. Dims are independent of each other.
 */
#ifndef PLUGINS_RESIZE_RESIZE_H
#define PLUGINS_RESIZE_RESIZE_H

#include <math.h>

#include <strata/layers.h>

#include "plugins/common/element.h"

#define RESIZE_AXES 3 /* that interpolation takes at most */

/* One resized dim. */
struct resize_axis {
    int32_t dim;
    int64_t in, out;
    double scale;      /* out per in, as the network gives it */
    double length;     /* of the output as coordinates count it: in*scale, or the size */
    double begin, end; /* roi, in shares of the input */
    double shrink;     /* stretches the filter: below 1 where it smooths */
    double support;    /* of the filter, in input elements to each side */
};

/* Resized dims of a tensor of this rank. */
static inline int32_t resize_axes(const strata_resize *p, int32_t rank)
{
    return p->axes.n ? (int32_t)p->axes.n : rank - 2;
}

/* Dim of the k-th resized axis; the lists are known to be right. */
static inline int32_t resize_dim(const strata_resize *p, int32_t rank, int32_t k)
{
    const int64_t d = !p->axes.n         ? 2 + k
                      : p->axes.v[k] < 0 ? p->axes.v[k] + rank
                                         : p->axes.v[k];
    return (int32_t)d & (STRATA_MAX_RANK - 1);
}

/* Dim of the second input that the k-th axis is as long as; -1: it has none such. */
static inline int32_t resize_like(const strata_resize *p, const strata_tensor *like,
                                  int32_t k)
{
    const int64_t d = p->like.v[k] < 0 ? p->like.v[k] + like->rank : p->like.v[k];
    return d < 0 || d >= like->rank ? -1 : (int32_t)d;
}

/* The size that the k-th axis is given. `in` are the inputs. */
static inline int64_t resize_size(const strata_resize *p, const strata_tensor *in,
                                  int32_t k)
{
    return p->like.n ? in[1].dims[resize_like(p, &in[1], k)]
                     : p->size.v[p->size.n == 1 ? 0 : k];
}

/* Factor of the k-th axis. */
static inline double resize_scale(const strata_resize *p, const strata_tensor *in,
                                  int32_t k)
{
    const int32_t axes = resize_axes(p, in->rank);
    double best = 0;
    if (p->scale.n)
        return p->scale.v[p->scale.n == 1 ? 0 : k];
    for (int32_t a = 0; a < axes; a++) {
        const double from = (double)in->dims[resize_dim(p, in->rank, a)];
        const double factor = (double)resize_size(p, in, a) / from;
        const int better = p->keep_aspect == STRATA_ASPECT_NOT_LARGER    ? factor < best
                           : p->keep_aspect == STRATA_ASPECT_NOT_SMALLER ? factor > best
                                                                         : a == k;
        if (a == 0 || better)
            best = factor;
    }
    return best;
}

/* Elements that the k-th axis gets. */
static inline double resize_length(const strata_resize *p, const strata_tensor *in,
                                   int32_t k)
{
    const double from = (double)in->dims[resize_dim(p, in->rank, k)];
    if (p->scale.n)
        return floor(from * resize_scale(p, in, k));
    if (p->keep_aspect != STRATA_ASPECT_STRETCH)
        return floor(from * resize_scale(p, in, k) + 0.5);
    return (double)resize_size(p, in, k);
}

static inline int resize_smooths(const strata_resize *p)
{
    return p->antialias && p->mode != STRATA_NEAREST;
}

/* `in` are the inputs, y is the output. */
static inline struct resize_axis resize_axis(const strata_resize *p,
                                             const strata_tensor *in,
                                             const strata_tensor *y, int32_t k)
{
    const int32_t axes = resize_axes(p, in->rank);
    struct resize_axis a = {.dim = resize_dim(p, in->rank, k), .end = 1, .shrink = 1};
    a.in = in->dims[a.dim];
    a.out = y->dims[a.dim];
    a.scale = resize_scale(p, in, k);
    a.length = !p->scale.n && p->keep_aspect == STRATA_ASPECT_STRETCH
                   ? (double)a.out
                   : (double)a.in * a.scale;
    if (p->roi.n) {
        a.begin = p->roi.v[k];
        a.end = p->roi.v[axes + k];
    }
    if (resize_smooths(p) && a.scale < 1)
        a.shrink = a.scale;
    a.support = (p->mode == STRATA_RESIZE_CUBIC ? 2 : 1) / a.shrink;
    return a;
}

/* Input coordinate of output index i, inside or outside the input. */
static inline double resize_coordinate(const strata_resize *p,
                                       const struct resize_axis *a, int64_t i)
{
    const double at = (double)i, last = (double)(a->in - 1), half = 0.5;
    switch (p->coordinates) {
    case STRATA_ASYMMETRIC:
        return at / a->scale;
    case STRATA_ALIGN_CORNERS:
        return a->length == 1 ? 0 : at * last / (a->length - 1);
    case STRATA_PYTORCH_HALF_PIXEL:
        return a->out == 1 ? 0 : (at + half) / a->scale - half;
    case STRATA_HALF_PIXEL_SYMMETRIC:
        return (double)a->in / 2 * (1 - (double)a->out / a->length) +
               (at + half) / a->scale - half;
    case STRATA_TF_CROP_AND_RESIZE:
        return a->begin * last +
               (a->length == 1 ? (a->end - a->begin) * last / 2
                               : at * (a->end - a->begin) * last / (a->length - 1));
    default:
        return (at + half) / a->scale - half;
    }
}

/* Whether a coordinate gives the extrapolation value. */
static inline int resize_outside(const strata_resize *p, const struct resize_axis *a,
                                 double at)
{
    return p->coordinates == STRATA_TF_CROP_AND_RESIZE &&
           !(at >= 0 && at <= (double)(a->in - 1));
}

/* Input index for mode nearest, or -1 for the extrapolation value. Rounding is that of an
 * FP32 coordinate, whose ties are ONNX's. */
static inline int64_t resize_nearest(const strata_resize *p, const struct resize_axis *a,
                                     int64_t i)
{
    const double exact = resize_coordinate(p, a, i), at = (double)(float)exact;
    const int32_t by = p->nearest                            ? p->nearest
                       : p->coordinates == STRATA_ASYMMETRIC ? STRATA_ROUND_FLOOR
                                                             : STRATA_ROUND_PREFER_FLOOR;
    const double index = by == STRATA_ROUND_FLOOR         ? floor(at)
                         : by == STRATA_ROUND_CEIL        ? ceil(at)
                         : by == STRATA_ROUND_PREFER_CEIL ? floor(at + 0.5)
                                                          : ceil(at - 0.5);
    return resize_outside(p, a, exact)
               ? -1
               : (int64_t)element_clamp(index, 0, (double)(a->in - 1));
}

/* ---- interpolation --------------------------------------------------------------- */

/* Neighbours of an output index, those without a share included. */
static inline int64_t resize_taps(const struct resize_axis *a)
{
    return (int64_t)ceil(2 * a->support);
}

/* The filter at distance t, in its own unit. */
static inline double resize_filter(const strata_resize *p, double t)
{
    const double c = p->cubic_a;
    t = fabs(t);
    if (p->mode != STRATA_RESIZE_CUBIC)
        return t < 1 ? 1 - t : 0;
    return t <= 1  ? ((c + 2) * t - (c + 3)) * t * t + 1
           : t < 2 ? ((c * t - 5 * c) * t + 8 * c) * t - 4 * c
                   : 0;
}

static inline double resize_share(const strata_resize *p, const struct resize_axis *a,
                                  double at, int64_t j)
{
    return p->exclude_outside && (j < 0 || j >= a->in)
               ? 0
               : resize_filter(p, ((double)j - at) * a->shrink);
}

/* The taps of output index i: clamped indices, rising, and weights; of taps on one index
 * the first has all the weight. 0 if the output is the extrapolation value. The arrays
 * have resize_taps entries, `step` apart. */
static inline int resize_weigh(const strata_resize *p, const struct resize_axis *a,
                               int64_t i, int64_t step, int64_t *index, float *weight)
{
    const double at = resize_coordinate(p, a, i);
    const int64_t taps = resize_taps(a), first = (int64_t)floor(at - a->support) + 1;
    double sum = 0, carried = 0;
    for (int64_t k = 0; k < taps; k++)
        sum += resize_share(p, a, at, first + k);
    if ((!p->exclude_outside && !resize_smooths(p)) || sum == 0)
        sum = 1;
    for (int64_t k = taps - 1; k >= 0; k--) {
        const int64_t j = first + k;
        index[k * step] = j < 0 ? 0 : j >= a->in ? a->in - 1 : j;
        carried += resize_share(p, a, at, j) / sum;
        const int shared =
            k > 0 && (j <= 0 || j - 1 >= a->in - 1); /* with the tap before */
        weight[k * step] = shared ? 0 : (float)carried;
        carried = shared ? carried : 0;
    }
    return !resize_outside(p, a, at);
}

#endif /* PLUGINS_RESIZE_RESIZE_H */
