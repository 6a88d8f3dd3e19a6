/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of FP16 and BF16 on Hopper's tensor cores: the copy engine finds the
 * windows, so that no thread computes an address of the input. The sizes of tiles are
 * tactics, as MatrixMultiply's.
 */
#include "plugins/convolution/cuda/hopper.cuh"

#include "plugins/convolution/cuda/hopper_pack.cuh"

#define MOST_SHALLOW 16 /* pieces of K, of one whose blocks have four tiles at a time */

/* Parts, columns, warpgroups, stages, turns, pair, split, blocks of a
 * multiprocessor; in the order of HOPPER_EACH. */
static const product_launch *const launches[HOPPER_TACTICS][2] = {
    PRODUCT_LAUNCHES(2, 128, 2, 5, true, true, false, 1),  /* 128x128_pair */
    PRODUCT_LAUNCHES(1, 256, 2, 3, false, true, false, 1), /* 128x256_pair */
    PRODUCT_LAUNCHES(1, 192, 2, 4, false, true, false, 1), /* 128x192_pair */
    PRODUCT_LAUNCHES(2, 128, 2, 3, false, true, false, 1), /* 256x128_pair */
    PRODUCT_LAUNCHES(1, 128, 3, 4, false, true, false, 1), /* 192x128_pair */
    PRODUCT_LAUNCHES(1, 128, 4, 5, true, false, false, 1), /* 64x128 */
    PRODUCT_LAUNCHES(1, 64, 4, 8, true, false, false, 1),  /* 64x64 */
    PRODUCT_LAUNCHES(2, 64, 2, 4, false, false, false, 1), /* 256x64 */
    PRODUCT_LAUNCHES(2, 32, 2, 5, false, false, false, 1), /* 256x32 */
    PRODUCT_LAUNCHES(1, 96, 2, 5, false, false, true, 1),  /* 128x96_split */
    PRODUCT_LAUNCHES(1, 64, 2, 5, false, false, true, 1),  /* 128x64_split */
    PRODUCT_LAUNCHES(1, 64, 1, 5, false, false, true, 2),  /* 64x64_split */
    PRODUCT_LAUNCHES(1, 32, 1, 12, false, false, true, 1)  /* 64x32_split */
};

/* ---- what it takes --------------------------------------------------------------------
 */

static const char *size_refusal(const strata_node *n, const convolution_state &s,
                                int tactic)
{
    const product_launch &l = *launches[tactic][0];
    if (tactic == HOPPER_64x128 || tactic == HOPPER_64x64) {
        const int64_t pieces = hopper_pieces(&n->in[0]) * window_kernel_count(&s.w);
        if (pieces > MOST_SHALLOW)
            return "its many warps are for layers that are all storing";
    }
    return product_refusal(l, n->out[0].dims[0] * window_out_count(&s.w),
                           stored_channels(&n->out[0]));
}

int hopper_accept(const strata_node *n, int tactic)
{
    convolution_state s;
    int status = gemm_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = windows_refusal(&s.w);
    if (!why)
        why = hopper_refusal(n, s);
    if (!why && !windows_are_rows(&s.w) &&
        hopper_pieces(&n->in[0]) * PRODUCT_DEPTH >= 2 * stored_channels(&n->in[0]))
        why = "it takes channels in pieces of 64, of which half would be empty";
    if (!why)
        why = size_refusal(n, s, tactic);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int hopper_setup(const strata_node *n, void *state, int tactic)
{
    convolution_state *s = (convolution_state *)state;
    const product_launch &l = *launches[tactic][n->out[0].dtype == STRATA_BF16];
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK)
        status = convolution_prepare(n, s, l.kernel, l.bytes);
    if (status != STRATA_OK)
        return status;
    return hopper_pack(n, s);
}

/* ---- running --------------------------------------------------------------------------
 */

static bool fill(product_job *job, const strata_run *r, const product_launch &l)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const int32_t dtype = r->out[0].dtype;
    const strata_tensor *x = &r->in[0];
    const windows_input input = {x->data, x->dtype, stored_channels(x), pixel_pitch(x),
                                 x->dims[0]};
    hopper_fill(job, r);
    return windows_map(job, input, &s->w, l) &&
           hopper_map_weights(job, s, dtype, l.box) && map_results(job, l, dtype, 1);
}

int hopper_run(const strata_run *r, int tactic)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const product_launch &l = *launches[tactic][r->out[0].dtype == STRATA_BF16];
    product_job job = {};
    if (!fill(&job, r, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of this input");
    const cudaError_t e = product_run(&job, l, 1, s->multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel convolution hopper: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
