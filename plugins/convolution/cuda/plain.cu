/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of FP32 on Hopper without tensor cores: hopper.cu's kernel with products
 * that threads make. Channels last, so that the copy engine finds the windows.
 */
#include "plugins/common/product/plain.cuh"
#include "plugins/convolution/cuda/hopper_pack.cuh"
#include "plugins/convolution/cuda/plain.cuh"

/* Parts, columns, warpgroups, stages, turns, pair, split, blocks of a multiprocessor; in
 * the order of PLAIN_EACH. */
static const product_launch *const launches[PLAIN_TACTICS] = {
    PRODUCT_PLAIN(2, 64, 2, 4, false, false, false, 1), /* 256x64 */
    PRODUCT_PLAIN(2, 64, 1, 3, false, false, false, 2), /* 128x64 */
    PRODUCT_PLAIN(2, 64, 1, 3, false, false, true, 2),  /* 128x64_split */
    PRODUCT_PLAIN(2, 32, 1, 4, false, false, true, 2),  /* 128x32_split */
    PRODUCT_PLAIN(1, 64, 1, 5, false, false, true, 2),  /* 64x64_split */
    PRODUCT_PLAIN(1, 32, 1, 8, false, false, true, 2),  /* 64x32_split */
};

int plain_accept(const strata_node *n, int tactic)
{
    convolution_state s;
    int status = gemm_takes_flat(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = hopper_window_refusal(n, s);
    if (!why)
        why =
            product_refusal(*launches[tactic], n->out[0].dims[0] * window_out_count(&s.w),
                            stored_channels(&n->out[0]));
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int plain_setup(const strata_node *n, void *state, int tactic)
{
    convolution_state *s = (convolution_state *)state;
    const product_launch &l = *launches[tactic];
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK)
        status = convolution_prepare(n, s, l.kernel, l.bytes);
    return status == STRATA_OK ? hopper_pack(n, s, false) : status;
}

int plain_run(const strata_run *r, int tactic)
{
    return hopper_launch(r, *launches[tactic]);
}
