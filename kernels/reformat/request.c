/* SPDX-License-Identifier: Apache-2.0
 *
 * A pair of descriptors as the rows of the device's reformat table look at it.
 */
#include "kernels/reformat/request.h"

/* Kernels of their own have the floats of networks, one with another and with bytes; all
 * other conversions go element by element. */
static bool typed_pair(int to, int from)
{
    const unsigned floats = 1u << STRATA_FP32 | 1u << STRATA_FP16 | 1u << STRATA_BF16;
    const unsigned all = floats | 1u << STRATA_INT8 | 1u << STRATA_UINT8;
    return (floats >> to & 1 && all >> from & 1) || (all >> to & 1 && floats >> from & 1);
}

static int same_bits(int64_t size)
{
    return size == 8   ? STRATA_FP64
           : size == 4 ? STRATA_FP32
           : size == 2 ? STRATA_FP16
                       : STRATA_INT8;
}

/* Channels of the source that lie next to each other may be read to the end of their last
 * vector. */
static void extend_lanes(struct panel *p, const strata_desc *src)
{
    const int d = src->vector_dim;
    if (d < 0 || p->src.planar || p->src.vector != p->channels ||
        src->dims[d] != p->channels ||
        (src->strides[d] != src->vector && p->channels > src->vector))
        return;
    p->src.vector = (p->channels + src->vector - 1) / src->vector * src->vector;
}

struct request reformat_describe(const strata_desc *dst, void *dst_data,
                                 const strata_desc *src, const void *src_data)
{
    struct request r = {.dst = dst,
                        .src = src,
                        .dst_data = dst_data,
                        .src_data = src_data,
                        .to = dst->dtype,
                        .from = src->dtype,
                        .to_size = (int64_t)strata_dtype_size(dst->dtype),
                        .from_size = (int64_t)strata_dtype_size(src->dtype)};
    r.same = r.to == r.from;
    r.typed = r.same ? r.to_size < 8 : typed_pair(r.to, r.from);
    if (r.same)
        r.to = r.from = same_bits(r.to_size);
    r.as_runs = runs_shape(&r.runs, dst, src);
    r.as_panel = panel_shape(&r.panel, dst, src);
    if (r.as_panel)
        extend_lanes(&r.panel, src);
    return r;
}

bool reformat_turn(struct request *out, const struct request *r)
{
    const struct panel *p = &r->panel;
    struct panel *q = &out->panel;
    if (p->dst.planar == p->src.planar || p->padded != p->channels ||
        (p->dst.planar ? p->src.vector : p->dst.vector) < p->channels)
        return false;
    *out = *r;
    q->channels = q->padded = p->pixel.extent;
    q->pixel = (struct loop){p->channels, p->dst.planar ? p->dst.block : 1,
                             p->src.planar ? p->src.block : 1};
    q->dst = (struct lanes){!p->dst.planar, q->channels, p->pixel.dst};
    q->src = (struct lanes){!p->src.planar, q->channels, p->pixel.src};
    extend_lanes(q, r->src);
    return true;
}
