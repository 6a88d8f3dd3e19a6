/* SPDX-License-Identifier: Apache-2.0
 *
 * A window in oneDNN's terms: spatial dims first, dilation counted from 0.
 */
#ifndef PLUGINS_COMMON_ONEDNN_WINDOW_H
#define PLUGINS_COMMON_ONEDNN_WINDOW_H

#include <oneapi/dnnl/dnnl_types.h>

#include "plugins/common/window.h"

struct onednn_window {
    dnnl_dims_t kernel, stride, dilation, begin, end;
};

static inline void onednn_window(struct onednn_window *o, const struct window *w)
{
    *o = (struct onednn_window){{0}};
    for (int d = 0; d < w->dims; d++) {
        o->kernel[d] = w->kernel[w->first + d];
        o->stride[d] = w->stride[w->first + d];
        o->dilation[d] = w->dilation[w->first + d] - 1;
        o->begin[d] = w->begin[w->first + d];
        o->end[d] = w->end[w->first + d];
    }
}

#endif /* PLUGINS_COMMON_ONEDNN_WINDOW_H */
