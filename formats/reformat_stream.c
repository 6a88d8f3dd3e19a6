/* SPDX-License-Identifier: Apache-2.0
 *
 * Reformat on a stream. A device with kernels of its own takes it; the host's streams are
 * handed the host's kernels as work.
 */
#include "formats/reformat.h"

#include "core/device.h"

struct reformat_payload {
    strata_desc dst, src;
    void *dst_data;
    const void *src_data;
};
_Static_assert(sizeof(struct reformat_payload) <= DEVICE_PAYLOAD, "payload too small");

static int run_reformat(void *payload, void *native, strata_error *err)
{
    const struct reformat_payload *r = payload;
    (void)native;
    return reformat(&r->dst, r->dst_data, &r->src, r->src_data, err);
}

int reformat_enqueue(strata_stream *s, const strata_desc *dst, void *dst_data,
                     const strata_desc *src, const void *src_data, strata_error *err)
{
    const struct device_ops *ops = s->device->ops;
    const struct reformat_payload r = {*dst, *src, dst_data, src_data};
    return ops->reformat ? ops->reformat(s, dst, dst_data, src, src_data, err)
                         : ops->submit(s, run_reformat, &r, sizeof r, err);
}
