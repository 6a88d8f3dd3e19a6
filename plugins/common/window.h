/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows that slide over the spatial dims: kernel, stride, pads and dilation as the
 * user wrote them (lists of one, per dim, or begins and ends), resolved against an input.
 * Shared by convolution and pooling impls on every device.
 */
#ifndef PLUGINS_COMMON_WINDOW_H
#define PLUGINS_COMMON_WINDOW_H

#include <strata/layers.h>

#define WINDOW_DIMS 3             /* spatial dims at most */
#define WINDOW_LIMIT INT32_MAX    /* of every size, so that products of two fit */

/* Arrays are D, H, W, right-aligned: a 2-D window has first = 1 and a D of 1 that does
 * nothing. Code for any rank loops over all three; code for the real rank takes
 * `kernel + first` and so on, `dims` of them. */
struct window {
    int32_t dims;  /* spatial dims of the tensor, 1 to 3 */
    int32_t first; /* WINDOW_DIMS - dims */
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], dilation[WINDOW_DIMS];
    int64_t begin[WINDOW_DIMS], end[WINDOW_DIMS]; /* pads */
    int64_t in[WINDOW_DIMS], out[WINDOW_DIMS];
};

struct window_attrs {
    strata_ints kernel, stride, pad, dilation;
    int32_t pad_mode, ceil_mode;
    const int64_t *default_kernel; /* for an empty kernel: one per dim, or NULL */
};

/* Rows of a layer's attributes, as its params struct has them; what_pad: what pads are. */
/* clang-format off */
#define WINDOW_ATTRS(params, kernel_doc, what_pad)                                       \
    {.name = "kernel", .type = STRATA_INTS, .offset = offsetof(params, kernel),          \
     .min = 1, .max = INT32_MAX, .doc = kernel_doc},                                     \
    {.name = "stride", .type = STRATA_INTS, .offset = offsetof(params, stride),          \
     .min = 1, .max = INT32_MAX, .doc = "step of the window; empty: 1"},                 \
    {.name = "pad", .type = STRATA_INTS, .offset = offsetof(params, pad),                \
     .min = 0, .max = INT32_MAX,                                                         \
     .doc = what_pad ": one value, one per spatial dim, or all begins and then all "     \
            "ends; empty: 0"},                                                           \
    {.name = "dilation", .type = STRATA_INTS, .offset = offsetof(params, dilation),      \
     .min = 1, .max = INT32_MAX,                                                         \
     .doc = "distance of the window's elements; empty: 1"},                              \
    {.name = "pad_mode", .type = STRATA_ENUM, .offset = offsetof(params, pad_mode),      \
     .choices = "explicit|same_upper|same_lower|valid",                                  \
     .doc = "explicit uses pad; same_* pad so that out = ceil(in/stride); valid pads "   \
            "not"}
/* clang-format on */

/* Input elements one window spans. */
static inline int64_t window_extent(const struct window *w, int d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

static inline int64_t window_kernel_count(const struct window *w)
{
    return w->kernel[0] * w->kernel[1] * w->kernel[2];
}

static inline int64_t window_in_count(const struct window *w)
{
    return w->in[0] * w->in[1] * w->in[2];
}

static inline int64_t window_out_count(const struct window *w)
{
    return w->out[0] * w->out[1] * w->out[2];
}

static inline int64_t window_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t window_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Outputs [*lo, *hi) along d whose kernel element k lies inside the input. */
static inline void window_valid(const struct window *w, int d, int64_t k, int64_t *lo,
                                int64_t *hi)
{
    int64_t shift = w->begin[d] - k * w->dilation[d]; /* input index = o*stride - shift */
    int64_t stride = w->stride[d], last = w->in[d] - 1 + shift;
    *lo = shift > 0 ? (shift + stride - 1) / stride : 0;
    *hi = last < 0 ? 0 : window_min(last / stride + 1, w->out[d]);
    *lo = window_min(*lo, *hi);
}

/* The first kernel element from k on that some output sees inside the input along d; the
 * kernel's size if there is none. */
static inline int64_t window_next(const struct window *w, int d, int64_t k)
{
    int64_t stride = w->stride[d], step = w->dilation[d];
    while (k < w->kernel[d]) {
        int64_t shift = w->begin[d] - k * step; /* input index = o*stride - shift */
        int64_t o = shift > 0 ? (shift + stride - 1) / stride : 0;
        if (o < w->out[d] && o * stride - shift < w->in[d])
            return k;
        if (o == 0)
            break; /* later elements are farther beyond the input */
        o = window_min(o, w->out[d]) - 1;
        k += (shift - o * stride + step - 1) / step;
    }
    return w->kernel[d];
}

/* Sum of (a*i + b)/m, rounded down, over i in [0, n), modulo 2^64; all below 2^31 but b,
 * below 2^32. */
static inline uint64_t window_floor_sum(uint64_t n, uint64_t m, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    for (;;) {
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        a %= m;
        b %= m;
        uint64_t top = a * n + b, last = m;
        if (top < m)
            return sum;
        n = top / m;
        b = top % m;
        m = a;
        a = last;
    }
}

/* Whether an output that begins in the pads steps over the whole input along d. */
static inline int window_steps_over(const struct window *w, int d)
{
    int64_t step = w->dilation[d], stride = w->stride[d], in = w->in[d];
    int64_t n = window_min((w->begin[d] + stride - 1) / stride, w->out[d]);
    uint64_t first = (uint64_t)((step - w->begin[d] % step) % step);
    if (step <= in || n == 0)
        return 0;
    /* n first indices modulo step: how many are `in` or more */
    return window_floor_sum((uint64_t)n, (uint64_t)step, (uint64_t)stride,
                            first + (uint64_t)(step - in)) !=
           window_floor_sum((uint64_t)n, (uint64_t)step, (uint64_t)stride, first);
}

/* Whether some output sees pads alone; max pooling gives minus infinity there. The first
 * one begins farthest before the input, the last one farthest behind. */
static inline int window_has_empty(const struct window *w)
{
    for (int d = 0; d < WINDOW_DIMS; d++)
        if ((w->begin[d] + w->dilation[d] - 1) / w->dilation[d] >= w->kernel[d] ||
            (w->out[d] - 1) * w->stride[d] - w->begin[d] >= w->in[d] ||
            window_steps_over(w, d))
            return 1;
    return 0;
}

/* One value per spatial dim from a list of none (value `def`), one, or one per dim. */
static inline int window_list(int64_t out[WINDOW_DIMS], const struct window *w,
                              strata_ints list, int64_t def, const char *name,
                              const strata_host *host, strata_error *err)
{
    if (list.n > 1 && list.n != w->dims)
        return host->fail(
            err, STRATA_EINVAL,
            "%s has %lld values; an input with %d spatial dims takes 1 or %d", name,
            (long long)list.n, (int)w->dims, (int)w->dims);
    for (int d = 0; d < w->dims; d++) {
        int64_t v = list.n == 0 ? def : list.v[list.n == 1 ? 0 : d];
        if (v < 1 || v > WINDOW_LIMIT)
            return host->fail(err, STRATA_EINVAL, "%s is %lld; allowed is 1 to %d", name,
                              (long long)v, (int)WINDOW_LIMIT);
        out[w->first + d] = v;
    }
    return STRATA_OK;
}

static inline int window_pads(struct window *w, const struct window_attrs *a,
                              const strata_host *host, strata_error *err)
{
    int64_t n = a->pad.n;
    if (n > 0 && a->pad_mode != STRATA_PAD_EXPLICIT)
        return host->fail(err, STRATA_EINVAL,
                          "pad is given although pad_mode computes it; remove one");
    if (n > 1 && n != w->dims && n != 2 * w->dims)
        return host->fail(err, STRATA_EINVAL,
                          "pad has %lld values; an input with %d spatial dims takes 1, "
                          "%d, or %d (begins, then ends)",
                          (long long)n, (int)w->dims, (int)w->dims, 2 * (int)w->dims);
    for (int d = 0; d < w->dims && n > 0; d++) {
        int64_t begin = a->pad.v[n == 1 ? 0 : d];
        int64_t end = n == 2 * w->dims ? a->pad.v[w->dims + d] : begin;
        if (begin < 0 || end < 0 || begin > WINDOW_LIMIT || end > WINDOW_LIMIT)
            return host->fail(
                err, STRATA_EINVAL, "pad %lld is outside 0 to %d",
                (long long)(begin < 0 || begin > WINDOW_LIMIT ? begin : end),
                (int)WINDOW_LIMIT);
        w->begin[w->first + d] = begin;
        w->end[w->first + d] = end;
    }
    return STRATA_OK;
}

/* Pads so that out = ceil(in/stride). */
static inline void window_same(struct window *w, int d, int32_t pad_mode)
{
    int64_t out = (w->in[d] + w->stride[d] - 1) / w->stride[d];
    int64_t total =
        window_max((out - 1) * w->stride[d] + window_extent(w, d) - w->in[d], 0);
    w->begin[d] = pad_mode == STRATA_PAD_SAME_UPPER ? total / 2 : total - total / 2;
    w->end[d] = total - w->begin[d];
}

static inline int window_output(struct window *w, int d, int32_t ceil_mode,
                                const strata_host *host, strata_error *err)
{
    int64_t extent = window_extent(w, d);
    int64_t room = w->in[d] + w->begin[d] + w->end[d] - extent;
    if (room < 0)
        return host->fail(err, STRATA_EINVAL,
                          "the window spans %lld elements, the padded input has %lld in "
                          "spatial dim %d; enlarge pad or reduce kernel or dilation",
                          (long long)extent, (long long)(room + extent),
                          d - (int)w->first);
    w->out[d] = (room + (ceil_mode ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
    if (ceil_mode && (w->out[d] - 1) * w->stride[d] >= w->in[d] + w->begin[d])
        w->out[d]--; /* the last window must start in the input or before it */
    return STRATA_OK;
}

static inline int window_product(const int64_t v[WINDOW_DIMS])
{
    int64_t plane, volume;
    return !__builtin_mul_overflow(v[0], v[1], &plane) &&
           !__builtin_mul_overflow(plane, v[2], &volume);
}

/* The attributes' lists against an input of rank 3 to 5; out stays 1. Fails with a message
 * that says what does not fit. */
static inline int window_read(struct window *w, const struct window_attrs *a,
                              const strata_tensor *in, const strata_host *host,
                              strata_error *err)
{
    int status;
    if (in->rank < 3 || in->rank > 5)
        return host->fail(err, STRATA_EINVAL, "input has rank %d; allowed is 3 to 5",
                          (int)in->rank);
    w->dims = in->rank - 2;
    w->first = WINDOW_DIMS - w->dims;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        w->kernel[d] = w->stride[d] = w->dilation[d] = w->in[d] = w->out[d] = 1;
        w->begin[d] = w->end[d] = 0;
    }
    for (int d = 0; d < w->dims; d++) {
        w->in[w->first + d] = in->dims[2 + d];
        if (in->dims[2 + d] < 0 || in->dims[2 + d] > WINDOW_LIMIT)
            return host->fail(err, STRATA_EOVERFLOW,
                              "spatial dim %d is %lld; limit is %d", d,
                              (long long)in->dims[2 + d], (int)WINDOW_LIMIT);
    }
    strata_ints kernel = a->kernel;
    if (kernel.n == 0 && a->default_kernel) {
        kernel.v = a->default_kernel;
        kernel.n = w->dims;
    }
    if (kernel.n == 0)
        return host->fail(err, STRATA_EINVAL,
                          "kernel is not given, such as kernel = 3x3");
    if ((status = window_list(w->kernel, w, kernel, 1, "kernel", host, err)) ||
        (status = window_list(w->stride, w, a->stride, 1, "stride", host, err)) ||
        (status = window_list(w->dilation, w, a->dilation, 1, "dilation", host, err)))
        return status;
    return window_pads(w, a, host, err);
}

/* The same, and the output's size. */
static inline int window_resolve(struct window *w, const struct window_attrs *a,
                                 const strata_tensor *in, const strata_host *host,
                                 strata_error *err)
{
    int status = window_read(w, a, in, host, err);
    if (status != STRATA_OK)
        return status;
    for (int d = w->first; d < WINDOW_DIMS; d++) {
        if (a->pad_mode == STRATA_PAD_SAME_UPPER || a->pad_mode == STRATA_PAD_SAME_LOWER)
            window_same(w, d, a->pad_mode);
        if ((status = window_output(w, d, a->ceil_mode, host, err)))
            return status;
    }
    if (!window_product(w->in) || !window_product(w->out) || !window_product(w->kernel))
        return host->fail(err, STRATA_EOVERFLOW, "the product of the spatial dims is "
                                                 "over 2^63 elements");
    return STRATA_OK;
}

/* weight: of rank 0 when it is not known yet, and then kernel must be an attribute. */
static inline int window_of_convolution(struct window *w, const strata_convolution *p,
                                        const strata_tensor *in,
                                        const strata_tensor *weight,
                                        const strata_host *host, strata_error *err)
{
    struct window_attrs a = {p->kernel, p->stride, p->pad, p->dilation, p->pad_mode, 0,
                             weight->rank == in->rank ? weight->dims + 2 : NULL};
    return window_resolve(w, &a, in, host, err);
}

static inline int window_of_pooling(struct window *w, const strata_pooling *p,
                                    const strata_tensor *in, const strata_host *host,
                                    strata_error *err)
{
    struct window_attrs a = {p->kernel,   p->stride,    p->pad, p->dilation,
                             p->pad_mode, p->ceil_mode, NULL};
    if (p->global) {
        if (p->kernel.n || p->stride.n || p->pad.n || p->dilation.n)
            return host->fail(err, STRATA_EINVAL,
                              "global pooling takes the whole plane; remove kernel, "
                              "stride, pad and dilation");
        a.default_kernel = in->dims + 2;
        a.pad_mode = STRATA_PAD_VALID;
    }
    return window_resolve(w, &a, in, host, err);
}

#endif /* PLUGINS_COMMON_WINDOW_H */
