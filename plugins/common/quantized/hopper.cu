/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of 8 bits on Hopper's tensor cores: kernels by sizes of tiles, which layers each
 * takes, setting up and running.
 */
#include "plugins/common/quantized/hopper.h"

#include <string.h>

#include "plugins/common/product/windows.cuh"
#include "plugins/common/quantized/few.h"
#include "plugins/common/quantized/hopper_pack.cuh"

#define MOST_SHALLOW 16 /* pieces of K, of one whose blocks have four tiles at a time */
#define MOST_THIN 256   /* channels that are read in pieces of 64 */

#define TILE(result, row, ...)                                                           \
    &launch_of<product_tile<quantized_bytes<result, row>, __VA_ARGS__>>

/* Of bytes, of FP16 where there is one. Parts, columns, warpgroups, stages, turns, pair,
 * split, blocks of a multiprocessor. */
static const product_launch *const launches[HOPPER_TACTICS][2] = {
    [HOPPER_128x128_pair] = {TILE(int8_t, 128, 2, 128, 2, 5, true, true, false, 1),
                             TILE(__half, 128, 2, 128, 2, 5, true, true, false, 1)},
    [HOPPER_128x256_pair] = {TILE(int8_t, 128, 1, 256, 2, 4, false, true, false, 1)},
    [HOPPER_128x192_pair] = {TILE(int8_t, 128, 1, 192, 2, 5, false, true, false, 1)},
    [HOPPER_256x128_pair] = {TILE(int8_t, 128, 2, 128, 2, 4, false, true, false, 1)},
    [HOPPER_192x128_pair] = {TILE(int8_t, 128, 1, 128, 3, 5, false, true, false, 1)},
    [HOPPER_64x128] = {TILE(int8_t, 128, 1, 128, 4, 6, true, false, false, 1),
                       TILE(__half, 128, 1, 128, 4, 5, true, false, false, 1)},
    [HOPPER_64x64] = {TILE(int8_t, 128, 1, 64, 4, 8, true, false, false, 1)},
    [HOPPER_256x64] = {TILE(int8_t, 128, 2, 64, 2, 4, false, false, false, 1)},
    [HOPPER_128x64_split] = {TILE(int8_t, 128, 1, 64, 2, 6, false, false, true, 1),
                             TILE(__half, 128, 1, 64, 2, 6, false, false, true, 1)},
    [HOPPER_64x64_split] = {TILE(int8_t, 128, 1, 64, 1, 5, false, false, true, 2),
                            TILE(__half, 128, 1, 64, 1, 5, false, false, true, 2)},
    [HOPPER_64x32_split] = {TILE(int8_t, 128, 1, 32, 1, 12, false, false, true, 1)},
    [HOPPER_64x128_thin] = {TILE(int8_t, 64, 1, 128, 4, 8, true, false, false, 1)},
    [HOPPER_64x64_thin] = {TILE(int8_t, 64, 1, 64, 4, 12, true, false, false, 1)},
    [HOPPER_256x64_thin] = {TILE(int8_t, 64, 2, 64, 2, 8, false, false, false, 1)},
    [HOPPER_256x32_thin] = {TILE(int8_t, 64, 2, 32, 2, 8, false, false, false, 1)},
};

static bool is_resident(int tactic)
{
    return tactic >= HOPPER_64x128_kept;
}

/* The last tactics, in the order of their tiles. */
static int resident_of(int tactic)
{
    return tactic - HOPPER_64x128_kept + RESIDENT_64x128;
}

/* dtype: of the results. */
static const product_launch *launch_for(int tactic, int32_t dtype,
                                        const quantized_shape &s)
{
    if (is_resident(tactic))
        return dtype == STRATA_FP16 ? NULL : resident_launch(resident_of(tactic), s);
    return launches[tactic][dtype == STRATA_FP16];
}

/* The same for launches of few blocks, or NULL. */
static const product_launch *few_for(int tactic, int32_t dtype)
{
    return dtype == STRATA_FP16 ? NULL : quantized_few_launch(tactic);
}

static int32_t lanes_of(int tactic)
{
    return is_resident(tactic) ? RESIDENT_LANES : PRODUCT_LANES;
}

/* ---- what it takes --------------------------------------------------------------- */

/* Windows over pads read 0, whatever stands for it. */
static bool reads_pads(const struct window *w)
{
    bool outside = false;
    for (int d = 0; d < WINDOW_DIMS; d++)
        outside |=
            w->begin[d] > 0 ||
            (w->out[d] - 1) * w->stride[d] - w->begin[d] + window_extent(w, d) > w->in[d];
    return outside;
}

static bool is_deep(const struct window *w)
{
    return w->kernel[0] != 1 || w->stride[0] != 1 || w->begin[0] != 0 ||
           w->in[0] != w->out[0];
}

static const char *layer_refusal(const quantized_shape &s, int64_t size)
{
    if (s.groups != 1 || is_deep(&s.w))
        return "groups and windows along depth are for others";
    if (s.in_c == 0 || s.out_c == 0 || s.in_stored % 16 != 0 ||
        s.out_stored * size % 16 != 0)
        return "channels are whole pieces of 16 bytes: with nhwc16 they are padded";
    if (s.addend_stored != 0 && (size != 1 || s.addend_stored != s.out_stored))
        return "it adds bytes that lie as its own results";
    if (s.q->zero_in != 0 && reads_pads(&s.w))
        return "around the image the copy engine reads 0, which zero_in is not";
    if (s.pixels > INT32_MAX / 2 || s.in_stored > INT32_MAX / 2 ||
        s.out_stored > INT32_MAX / 2)
        return "sides of over 2^30 are for others";
    return windows_refusal(&s.w);
}

static const char *depth_refusal(const quantized_shape &s, const product_launch &l,
                                 int tactic)
{
    const int64_t pieces = windows_pieces(s.in_stored, l.depth);
    const bool turns = tactic == HOPPER_64x128 || tactic == HOPPER_64x64;
    if (is_resident(tactic))
        return resident_refusal(resident_of(tactic), s, l);
    if (l.depth < 128 && s.in_stored > MOST_THIN)
        return "pieces of 64 channels are for thin inputs";
    if (l.depth == 128 && !windows_are_rows(&s.w) && pieces * l.depth >= 2 * s.in_stored)
        return "it takes channels in pieces of 128, of which half would be empty";
    return turns && pieces * window_kernel_count(&s.w) > MOST_SHALLOW
               ? "its many warps are for layers that are all storing"
               : NULL;
}

int quantized_hopper_accept(const strata_node *n, const quantized_shape *s, int tactic)
{
    const product_launch *l = launch_for(tactic, n->out[0].dtype, *s);
    int status = quantized_accept(n, s->q);
    if (status == STRATA_OK)
        status = quantized_check_depth(n, s->in_c, window_kernel_count(&s->w));
    if (status != STRATA_OK)
        return status;
    const char *why = l ? layer_refusal(*s, n->out[0].dtype == STRATA_FP16 ? 2 : 1)
                        : "it writes bytes, and patches are of up to 64 channels";
    if (!why)
        why = depth_refusal(*s, *l, tactic);
    if (!why)
        why = product_refusal(*l, s->pixels, s->out_stored);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int quantized_hopper_setup(const strata_node *n, const quantized_shape *s,
                           const strata_quantized_convolution *joined,
                           quantized_hopper_state *state, int tactic)
{
    const product_launch &l = *launch_for(tactic, n->out[0].dtype, *s);
    const product_launch *few = few_for(tactic, n->out[0].dtype);
    int device = 0;
    state->shape = *s;
    state->shape.q = NULL; /* a run brings its own */
    cudaError_t e = product_prepare(l);
    if (e == cudaSuccess && few)
        e = product_prepare(*few);
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&state->multiprocessors,
                                   cudaDevAttrMultiProcessorCount, device);
    return e == cudaSuccess
               ? quantized_pack_columns(n, *s, joined, state, l.depth, lanes_of(tactic))
               : STRATA_FAIL(n, STRATA_EDEVICE, "preparing a kernel: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- running --------------------------------------------------------------------- */

static void fill_addend(quantized_product_job *job, const strata_run *r,
                        const strata_quantized_convolution *p)
{
    job->addend = r->in[1].data;
    job->addend_row = job->to_row;
    job->addend_unsigned = r->in[1].dtype == STRATA_UINT8;
    job->scale_addend = (const float *)r->weight[STRATA_QUANTIZED_SCALE_ADDEND].data;
    job->scale_between = (const float *)r->weight[STRATA_QUANTIZED_SCALE_BETWEEN].data;
    job->zero_addend = (int32_t)p->zero_addend;
    job->zero_between = (int32_t)p->zero_between;
    job->between = p->between;
}

static bool fill(resident_job *job, const strata_run *r,
                 const quantized_hopper_state &state, const strata_quantized *q,
                 const product_launch &l, int tactic)
{
    const quantized_shape &s = state.shape;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t taps = window_kernel_count(&s.w);
    const int64_t depth = windows_pieces(s.in_stored, l.depth) * taps * l.depth;
    const windows_input input = {x->data, x->dtype, s.in_stored, s.in_stored,
                                 job->m / window_out_count(&s.w)};
    const product_matrix filters = {
        state.weight, depth, quantized_rows(s, lanes_of(tactic)), depth, 1, 0};
    job->n = (int32_t)s.out_stored;
    job->real = (int32_t)s.out_c;
    /* What the layer before wrote last is in L2 still, where all has no room. */
    job->backwards = !job->addend && s.in_stored > job->n;
    job->steps = (int32_t)(depth / l.depth);
    job->b_early = 1;
    job->scale = state.factor;
    job->bias = state.bias;
    job->offset = state.offset;
    memcpy(&job->quick, state.quick, sizeof job->quick); /* the first of it */
    job->quick_scale = state.quick_scale;
    job->quick_bias = state.quick_scale + state.columns;
    job->to = y->data;
    job->activate = quantized_activation_of(q);
    job->scale_out = (const float *)r->weight[STRATA_QUANTIZED_SCALE_OUT].data;
    job->zero_out = (int32_t)q->zero_out;
    job->is_unsigned = x->dtype == STRATA_UINT8;
    job->to_unsigned = y->dtype == STRATA_UINT8;
    return (is_resident(tactic) ? resident_map(job, resident_of(tactic), input, &s.w, l)
                                : windows_map(job, input, &s.w, l)) &&
           map_matrix(&job->b, filters, STRATA_INT8, l.box, l.depth) &&
           map_results(job, l, y->dtype, 1);
}

/* A job but its tiles. */
static cudaError_t launch(resident_job *job, const strata_run *r,
                          const quantized_hopper_state &state, const product_launch &l,
                          int tactic)
{
    const cudaStream_t stream = layer_stream(r);
    const product_launch *few = few_for(tactic, r->out[0].dtype);
    if (is_resident(tactic))
        return resident_run(job, resident_of(tactic), &state.shape.w, l,
                            state.multiprocessors, stream);
    return few && quantized_is_few(*job, l, state)
               ? quantized_few_run(*job, *few, state, stream)
               : product_run(job, l, 1, state.multiprocessors, stream);
}

int quantized_hopper_run(const strata_run *r, const strata_quantized *q,
                         const strata_quantized_convolution *joined, int64_t pixels,
                         int tactic)
{
    const quantized_hopper_state &state = *(const quantized_hopper_state *)r->state;
    const product_launch &l = *launch_for(tactic, r->out[0].dtype, state.shape);
    resident_job job = {};
    job.m = (int32_t)pixels;
    job.to_row = state.shape.out_stored;
    if (pixels == 0)
        return STRATA_OK;
    if (joined && r->n_in > 1)
        fill_addend(&job, r, joined);
    if (!fill(&job, r, state, q, l, tactic))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these operands");
    const cudaError_t e = launch(&job, r, state, l, tactic);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "kernel quantized: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}
