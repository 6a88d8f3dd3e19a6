/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution (transposed convolution) resolved against its input, and split into
 * phases. Outputs whose positions are equal modulo the stride see the same kernel
 * elements, so a phase is a convolution of stride 1 whose outputs lie `stride` apart:
 *   y[first + q*stride] = sum over e of weight[tap(e)] * x[q - begin + e*dilation]
 * No zero is multiplied and no sum is scattered. Shared by all devices.
 */
#ifndef PLUGINS_COMMON_DECONVOLUTION_DECONVOLUTION_H
#define PLUGINS_COMMON_DECONVOLUTION_DECONVOLUTION_H

#include <string.h>

#include "plugins/common/window.h"

enum { DECONVOLUTION_WEIGHT, DECONVOLUTION_BIAS, DECONVOLUTION_FACTORS };

/* One value per spatial dim, from `least` on, from a list of none, one, or one per dim. */
static inline int deconvolution_list(int64_t out[WINDOW_DIMS], const struct window *w,
                                     strata_ints list, const char *name,
                                     const strata_host *host, strata_error *err)
{
    if (list.n > 1 && list.n != w->dims)
        return host->fail(
            err, STRATA_EINVAL,
            "%s has %lld values; an input with %d spatial dims takes 1 or %d", name,
            (long long)list.n, (int)w->dims, (int)w->dims);
    for (int d = 0; d < w->dims; d++)
        out[w->first + d] = list.n == 0 ? 0 : list.v[list.n == 1 ? 0 : d];
    return STRATA_OK;
}

static inline int64_t deconvolution_floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Output and pads along d; pads may come out negative: what they add is bias alone. */
static inline int deconvolution_output(struct window *w, int d, int64_t output_pad,
                                       int64_t output_size, int32_t pad_mode,
                                       const strata_host *host, strata_error *err)
{
    int64_t full = (w->in[d] - 1) * w->stride[d] + output_pad + window_extent(w, d);
    int same = pad_mode == STRATA_PAD_SAME_UPPER || pad_mode == STRATA_PAD_SAME_LOWER;
    if (same || output_size) {
        int64_t out = output_size ? output_size : w->in[d] * w->stride[d];
        int64_t total = full - out, low = deconvolution_floor(total, 2);
        w->begin[d] = pad_mode == STRATA_PAD_SAME_UPPER ? low : total - low;
        w->end[d] = total - w->begin[d];
    }
    w->out[d] = full - w->begin[d] - w->end[d];
    if (w->out[d] < 1 || w->out[d] > WINDOW_LIMIT)
        return host->fail(
            err, STRATA_EINVAL,
            "the output would have %lld elements in spatial dim %d: %lld inputs span "
            "%lld, pads take %lld; allowed is 1 to %d, so reduce pad or stride",
            (long long)w->out[d], d - (int)w->first, (long long)w->in[d], (long long)full,
            (long long)(w->begin[d] + w->end[d]), (int)WINDOW_LIMIT);
    return STRATA_OK;
}

/* weight: of rank 0 when it is not known yet, and then kernel must be an attribute. */
static inline int deconvolution_window(struct window *w, const strata_deconvolution *p,
                                       const strata_tensor *in,
                                       const strata_tensor *weight,
                                       const strata_host *host, strata_error *err)
{
    struct window_attrs a = {p->kernel, p->stride, p->pad, p->dilation, p->pad_mode, 0,
                             weight->rank == in->rank ? weight->dims + 2 : NULL};
    int64_t output_pad[WINDOW_DIMS] = {0}, output_size[WINDOW_DIMS] = {0};
    int status = window_read(w, &a, in, host, err);
    if (status != STRATA_OK ||
        (status = deconvolution_list(output_pad, w, p->output_pad, "output_pad", host,
                                     err)) ||
        (status = deconvolution_list(output_size, w, p->output_size, "output_size", host,
                                     err)))
        return status;
    if (p->pad.n && p->output_size.n)
        return host->fail(err, STRATA_EINVAL,
                          "pad is given although output_size computes it; remove one");
    for (int d = w->first; d < WINDOW_DIMS; d++)
        if ((status = deconvolution_output(w, d, output_pad[d], output_size[d],
                                           p->pad_mode, host, err)))
            return status;
    if (!window_product(w->in) || !window_product(w->out) || !window_product(w->kernel))
        return host->fail(err, STRATA_EOVERFLOW, "the product of the spatial dims is "
                                                 "over 2^63 elements");
    return STRATA_OK;
}

/* ---- phases ---------------------------------------------------------------------- */

struct deconvolution_phase {
    struct window w;            /* a convolution; begin may be negative */
    int64_t first[WINDOW_DIMS]; /* its output 0 in the layer's output */
    int64_t last_tap[WINDOW_DIMS], tap_step[WINDOW_DIMS]; /* tap(e) = last - e*step */
};

static inline int64_t deconvolution_phases_along(const struct window *w, int d)
{
    return window_min(w->stride[d], w->out[d]);
}

static inline int64_t deconvolution_phases(const struct window *w)
{
    int64_t n = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        n *= deconvolution_phases_along(w, d);
    return n;
}

static inline int64_t deconvolution_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Kernel element t and input i meet at output o where o + begin = i*stride + t*dilation. */
static inline void deconvolution_phase_along(struct deconvolution_phase *p,
                                             const struct window *w, int d, int64_t first)
{
    int64_t stride = w->stride[d], step = w->dilation[d], at = first + w->begin[d];
    int64_t common = deconvolution_divisor(stride, step), every = stride / common;
    int64_t tap = 0, last = window_min(every, w->kernel[d]), n;
    while (tap < last && (at - tap * step) % stride)
        tap++;
    n = tap < last ? (w->kernel[d] - 1 - tap) / every + 1 : 0;
    p->first[d] = first;
    p->tap_step[d] = every;
    p->last_tap[d] = tap + (n - 1) * every;
    p->w.in[d] = w->in[d];
    p->w.out[d] = (w->out[d] - first + stride - 1) / stride;
    p->w.kernel[d] = n;
    p->w.stride[d] = 1;
    p->w.dilation[d] = step / common;
    p->w.begin[d] = n ? (n - 1) * (step / common) - (at - tap * step) / stride : 0;
    p->w.end[d] = p->w.out[d] - 1 + window_extent(&p->w, d) - w->in[d] - p->w.begin[d];
}

/* Phase i of deconvolution_phases, the last dim fastest. A kernel of 0 elements: these
 * outputs see no input. */
static inline struct deconvolution_phase
deconvolution_phase_at(const struct window *w, int64_t i)
{
    struct deconvolution_phase p;
    memset(&p, 0, sizeof p);
    p.w.dims = w->dims;
    p.w.first = w->first;
    for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
        int64_t n = deconvolution_phases_along(w, d);
        deconvolution_phase_along(&p, w, d, i % n);
        i /= n;
    }
    return p;
}

/* Kernel element of the layer's weight that the phase's element e is. */
static inline int64_t deconvolution_tap(const struct deconvolution_phase *p,
                                        const struct window *w, int64_t e)
{
    int64_t tap = 0, step = 1;
    for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
        tap += step * (p->last_tap[d] - e % p->w.kernel[d] * p->tap_step[d]);
        step *= w->kernel[d];
        e /= p->w.kernel[d];
    }
    return tap;
}

#endif /* PLUGINS_COMMON_DECONVOLUTION_DECONVOLUTION_H */
