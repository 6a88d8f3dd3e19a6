/* SPDX-License-Identifier: Apache-2.0
 *
 * What a window sees of the input along a dim, and which nodes the impls take (averages
 * of bytes, maxima of floats), on every device.
 */
#ifndef PLUGINS_QUANTIZED_POOLING_AVERAGE_H
#define PLUGINS_QUANTIZED_POOLING_AVERAGE_H

#include "plugins/common/quantized/quantized.h"
#include "plugins/common/window.h"

#ifdef __CUDACC__
#define AVERAGE_BOTH static __host__ __device__ inline
#else
#define AVERAGE_BOTH static inline
#endif

enum { SCALE_IN, SCALE_OUT };
enum { AVERAGE_MOST = 1 << 23 }; /* elements of a window: 32 bits hold fewer bytes' sum */

struct average {
    struct window w;
    int32_t with_pads;
};

struct average_span {
    int64_t first, n; /* input positions inside, `dilation` apart */
    int64_t counted;  /* positions that divide the sum */
};

static inline int pooling_of_floats(int32_t dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16 || dtype == STRATA_BF16;
}

AVERAGE_BOTH int64_t average_steps(int64_t room, int64_t step)
{
    return room <= 0 ? 0 : step == 1 ? room : (room + step - 1) / step;
}

AVERAGE_BOTH struct average_span average_span(const struct average *a, int d, int64_t o)
{
    const struct window *w = &a->w;
    const int64_t at = o * w->stride[d] - w->begin[d], step = w->dilation[d];
    const int64_t from = average_steps(-at, step), kernel = w->kernel[d];
    int64_t to = average_steps(w->in[d] - at, step);
    int64_t whole = average_steps(w->in[d] + w->end[d] - at, step);
    to = to < kernel ? to : kernel;
    whole = whole < kernel ? whole : kernel;
    struct average_span s;
    s.first = at + from * step;
    s.n = to > from ? to - from : 0;
    s.counted = a->with_pads ? whole : s.n;
    return s;
}

static inline int average_resolve(struct average *a, const strata_node *n)
{
    const strata_quantized_pooling *p = (const strata_quantized_pooling *)n->params;
    a->with_pads = p->pooling.count_include_pad;
    return window_of_pooling(&a->w, &p->pooling, &n->in[0], n->host, n->err);
}

static inline int average_accept(const strata_node *n)
{
    const strata_quantized_pooling *p = (const strata_quantized_pooling *)n->params;
    struct average a;
    if (pooling_of_floats(n->in[0].dtype))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the input is of floats");
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = average_resolve(&a, n);
    if (status != STRATA_OK)
        return status;
    int64_t depth = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (__builtin_mul_overflow(depth, a.w.kernel[d], &depth) || depth >= AVERAGE_MOST)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "a window has %d elements or more, whose sum may not fit "
                               "in 32 bits",
                               AVERAGE_MOST);
    return STRATA_OK;
}

/* Of maxima of floats. */
static inline int maxima_accept(const strata_node *n)
{
    const strata_quantized_pooling *p = (const strata_quantized_pooling *)n->params;
    struct average a;
    if (!pooling_of_floats(n->in[0].dtype))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the input is of integers");
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = average_resolve(&a, n);
    if (status == STRATA_OK && window_has_empty(&a.w))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "a window sees pads alone");
    if (status == STRATA_OK && (n->out[0].size >= INT32_MAX || n->out[0].count == 0))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the output is empty, or has 2^31 elements or more");
    return status;
}

static inline int average_setup(const strata_node *n, void *state)
{
    return average_resolve((struct average *)state, n);
}

#endif /* PLUGINS_QUANTIZED_POOLING_AVERAGE_H */
