/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of FP16, BF16 and TF32 on Hopper's tensor cores: the copy engine finds the
 * windows, so that no thread computes an address of the input. The sizes of tiles are
 * tactics, as MatrixMultiply's.
 */
#include "plugins/convolution/cuda/hopper.cuh"

#include "plugins/common/product/written.cuh"
#include "plugins/convolution/cuda/hopper_pack.cuh"

#define MOST_SHALLOW 16 /* pieces of K, of one whose blocks have four tiles at a time */

/* Tiles that share no depth have their results written out; the code of others is longer
 * than a kernel that runs for some microseconds has time to fetch. */
#define HALF_OF(type, ...)                                                               \
    &launch_of<product_tile<product_written_floats<type, STRATA_CLIP>, __VA_ARGS__>>
#define HALVES(...) HALF_OF(__half, __VA_ARGS__), HALF_OF(__nv_bfloat16, __VA_ARGS__)
#define EVERY(...)                                                                       \
    {                                                                                    \
        HALVES(__VA_ARGS__), PRODUCT_OF(float, __VA_ARGS__)                              \
    }

/* Parts, columns, warpgroups, stages, turns, pair, split, blocks of a multiprocessor; in
 * the order of HOPPER_EACH. Results of floats take the room of some stages, and deep is
 * for what has few then. */
static const product_launch *const launches[HOPPER_TACTICS][PRODUCT_TYPES] = {
    {HALVES(2, 128, 2, 5, true, true, false, 1)},  /* 128x128_pair */
    {HALVES(1, 256, 2, 3, false, true, false, 1)}, /* 128x256_pair */
    {HALVES(1, 192, 2, 4, false, true, false, 1)}, /* 128x192_pair */
    {HALVES(2, 128, 2, 3, false, true, false, 1)}, /* 256x128_pair */
    /* 192x128_pair */
    {HALVES(1, 128, 3, 4, false, true, false, 1),
     PRODUCT_OF(float, 1, 128, 3, 3, false, true, false, 1)},
    {HALVES(1, 128, 4, 5, true, false, false, 1)},      /* 64x128 */
    EVERY(1, 64, 4, 8, true, false, false, 1),          /* 64x64 */
    EVERY(2, 64, 2, 4, false, false, false, 1),         /* 256x64 */
    EVERY(2, 32, 2, 5, false, false, false, 1),         /* 256x32 */
    PRODUCT_EVERY(1, 96, 2, 5, false, false, true, 1),  /* 128x96_split */
    PRODUCT_EVERY(1, 64, 2, 5, false, false, true, 1),  /* 128x64_split */
    PRODUCT_EVERY(1, 64, 1, 5, false, false, true, 2),  /* 64x64_split */
    PRODUCT_EVERY(1, 32, 1, 12, false, false, true, 1), /* 64x32_split */
    /* 128x128_deep */
    {NULL, NULL, PRODUCT_OF(float, 1, 128, 2, 5, false, true, false, 1)},
    PRODUCT_EVERY(1, 128, 2, 4, false, false, true, 1), /* 128x128_split */
    PRODUCT_EVERY(1, 128, 3, 3, false, false, true, 1), /* 192x128_split */
};

/* ---- what it takes --------------------------------------------------------------------
 */

static const char *size_refusal(const strata_node *n, const convolution_state &s,
                                int tactic)
{
    const product_launch *l = launches[tactic][product_type(n->in[0].dtype)];
    if (!l)
        return "its tiles are for other types";
    if (tactic == HOPPER_64x128 || tactic == HOPPER_64x64) {
        const int64_t pieces = hopper_pieces(&n->in[0]) * window_kernel_count(&s.w);
        if (pieces > MOST_SHALLOW)
            return "its many warps are for layers that are all storing";
    }
    return product_refusal(*l, n->out[0].dims[0] * window_out_count(&s.w),
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
    const char *why = product_math_refusal(n);
    if (!why)
        why = hopper_window_refusal(n, s);
    if (!why)
        why = size_refusal(n, s, tactic);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int hopper_setup(const strata_node *n, void *state, int tactic)
{
    convolution_state *s = (convolution_state *)state;
    const product_launch &l = *launches[tactic][product_type(n->out[0].dtype)];
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK)
        status = convolution_prepare(n, s, l.kernel, l.bytes);
    if (status != STRATA_OK)
        return status;
    return hopper_pack(n, s);
}

/* ---- running --------------------------------------------------------------------------
 */

int hopper_run(const strata_run *r, int tactic)
{
    return hopper_launch(r, *launches[tactic][product_type(r->out[0].dtype)]);
}
