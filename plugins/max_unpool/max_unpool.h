/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxUnpool: the size of its output.
 */
#ifndef PLUGINS_MAX_UNPOOL_MAX_UNPOOL_H
#define PLUGINS_MAX_UNPOOL_MAX_UNPOOL_H

#include "plugins/common/window.h"

/* Along d: what max pooling by this window has made of it. */
static inline int max_unpool_output(struct window *w, int d, const strata_max_unpool *p,
                                    const strata_host *host, strata_error *err)
{
    int64_t at = p->output_size.n == 1 ? 0 : d - w->first;
    int64_t out = (w->in[d] - 1) * w->stride[d] + w->kernel[d] - w->begin[d] - w->end[d];
    w->out[d] = p->output_size.n ? p->output_size.v[at] : out;
    if (w->out[d] < 1 || w->out[d] > WINDOW_LIMIT)
        return host->fail(err, STRATA_EINVAL,
                          "the output would have %lld elements in spatial dim %d; "
                          "allowed is 1 to %d, so reduce pad or give output_size",
                          (long long)w->out[d], d - (int)w->first, (int)WINDOW_LIMIT);
    return STRATA_OK;
}

static inline int max_unpool_window(struct window *w, const strata_max_unpool *p,
                                    const strata_tensor *in, const strata_host *host,
                                    strata_error *err)
{
    struct window_attrs a = {p->kernel, p->stride, p->pad, {0}, STRATA_PAD_EXPLICIT, 0,
                             NULL};
    int status = window_read(w, &a, in, host, err);
    if (status != STRATA_OK)
        return status;
    if (p->output_size.n > 1 && p->output_size.n != w->dims)
        return host->fail(
            err, STRATA_EINVAL,
            "output_size has %lld values; an input with %d spatial dims takes 1 or %d",
            (long long)p->output_size.n, (int)w->dims, (int)w->dims);
    for (int d = w->first; d < WINDOW_DIMS; d++)
        if ((status = max_unpool_output(w, d, p, host, err)))
            return status;
    return window_product(w->out)
               ? STRATA_OK
               : host->fail(err, STRATA_EOVERFLOW,
                            "the product of the spatial dims is over 2^63 elements");
}

#endif /* PLUGINS_MAX_UNPOOL_MAX_UNPOOL_H */
