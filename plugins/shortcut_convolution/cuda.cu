/* SPDX-License-Identifier: Apache-2.0
 *
 * ShortcutConvolution on Hopper's tensor cores, FP16 and BF16 in channels-last order: one
 * product whose depth is the windows of one tensor and the pixels of another. The sizes
 * of tiles are tactics, as Convolution's.
 */
#include "plugins/convolution/cuda/convolution.cuh"
#include "plugins/shortcut_convolution/cuda.cuh"
#include "plugins/shortcut_convolution/shape.h"

#include "plugins/common/product/tactics.h"

#define MOST_SHALLOW 24 /* pieces of K, of one whose blocks have four tiles at a time */

#define WRITTEN_OF(type, ...)                                                            \
    &launch_of<product_tile<shortcut_written<type>, __VA_ARGS__>>
#define FLOATS_OF(type, ...) &launch_of<product_tile<shortcut_floats<type>, __VA_ARGS__>>
#define WRITTEN(...)                                                                     \
    {                                                                                    \
        WRITTEN_OF(__half, __VA_ARGS__), WRITTEN_OF(__nv_bfloat16, __VA_ARGS__)          \
    }
#define FLOATS(...)                                                                      \
    {                                                                                    \
        FLOATS_OF(__half, __VA_ARGS__), FLOATS_OF(__nv_bfloat16, __VA_ARGS__)            \
    }

/* As Convolution's tiles of these names, in the order of SHORTCUT_EACH: of FP16, BF16. */
static const product_launch *const launches[SHORTCUT_TACTICS][2] = {
    WRITTEN(2, 128, 2, 5, true, true, false, 1),
    WRITTEN(1, 128, 3, 4, false, true, false, 1),
    WRITTEN(1, 256, 2, 3, false, true, false, 1),
    WRITTEN(1, 128, 4, 5, true, false, false, 1),
    WRITTEN(1, 64, 4, 8, true, false, false, 1),
    FLOATS(1, 128, 2, 4, false, false, true, 1),
    FLOATS(1, 128, 3, 3, false, false, true, 1),
    FLOATS(1, 64, 2, 5, false, false, true, 1),
    FLOATS(1, 64, 1, 5, false, false, true, 2),
};

struct shortcut_state {
    shortcut_shape s;
    void *packed; /* weights, and behind them the bias */
    int32_t multiprocessors;
};

static const product_launch &launch_for(const strata_tensor &x, int tactic)
{
    return *launches[tactic][product_type(x.dtype)];
}

/* ---- what it takes ---------------------------------------------------------------- */

static int64_t pieces_of(const strata_tensor *x, const struct window *w)
{
    return windows_pieces(stored_channels(x), PRODUCT_DEPTH) * window_kernel_count(w);
}

static const char *input_refusal(const strata_tensor *x, const struct window *w)
{
    const int64_t stored = stored_channels(x);
    const char *why = windows_refusal(w);
    if (!why && stored % 8 != 0)
        why = "it takes channels that lie as multiples of 8";
    if (!why && (x->size > INT32_MAX || stored * window_kernel_count(w) > INT32_MAX / 2))
        why = "it is for tensors of less than 2^31 elements";
    if (!why && !windows_are_rows(w) &&
        windows_pieces(stored, PRODUCT_DEPTH) * PRODUCT_DEPTH >= 2 * stored)
        why = "it takes channels in pieces of 128 bytes, of which half would be empty";
    return why;
}

static const char *refusal(const strata_node *n, const shortcut_shape &s, int tactic)
{
    const strata_tensor *y = &n->out[0];
    const int64_t pieces = pieces_of(&n->in[0], &s.w) + pieces_of(&n->in[1], &s.shortcut);
    const char *why = product_math_refusal(n);
    if (!why)
        why = input_refusal(&n->in[0], &s.w);
    if (!why)
        why = input_refusal(&n->in[1], &s.shortcut);
    if (!why && s.filters % 2 != 0)
        why = "odd numbers of filters are for others";
    if (!why && (stored_channels(y) % 8 != 0 || y->size > INT32_MAX))
        why = "it is for results of less than 2^31 elements, multiples of 8 of a pixel";
    if (!why && (tactic == SHORTCUT_64x128 || tactic == SHORTCUT_64x64) &&
        pieces > MOST_SHALLOW)
        why = "its many warps are for layers that are all storing";
    return why ? why
               : product_refusal(launch_for(n->in[0], tactic),
                                 y->dims[0] * window_out_count(&s.w), stored_channels(y));
}

static int hopper_accept(const strata_node *n, int tactic)
{
    shortcut_shape s = {};
    const int status = shortcut_resolve(n, &s);
    const char *why = status == STRATA_OK ? refusal(n, s, tactic) : NULL;
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : status;
}

/* ---- setting up ------------------------------------------------------------------- */

static const float *weight_of(const strata_node *n, int weight)
{
    return n->weight[weight].rank > 0 ? (const float *)n->weight[weight].data : NULL;
}

static shortcut_source source_of(const strata_node *n, const shortcut_shape &s, int i)
{
    const struct window *w = i ? &s.shortcut : &s.w;
    return {weight_of(n, 2 * i), weight_of(n, 2 * i + 1), i ? s.others : s.channels,
            windows_pieces(stored_channels(&n->in[i]), PRODUCT_DEPTH) * PRODUCT_DEPTH,
            window_kernel_count(w)};
}

static int64_t depth_of(const shortcut_source (&from)[2])
{
    return from[0].stored * from[0].elements + from[1].stored * from[1].elements;
}

template <typename T>
static int pack_weights(const strata_node *n, shortcut_state *to)
{
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    shortcut_pack_job<T> job = {};
    int64_t size, bytes;
    job.filters = to->s.filters;
    for (int i = 0; i < 2; i++)
        job.from[i] = source_of(n, to->s, i);
    job.depth = depth_of(job.from);
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " to keep packed weights");
    if (__builtin_mul_overflow(job.depth * (int64_t)sizeof(T), job.filters, &size) ||
        __builtin_add_overflow(size, job.filters * (int64_t)sizeof(float), &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    const int status = host->alloc(n, (size_t)bytes, &to->packed);
    if (status != STRATA_OK)
        return status;
    job.packed = (T *)to->packed;
    job.bias = (float *)((uint8_t *)to->packed + size);
    shortcut_pack_kernel<T><<<layer_blocks(job.depth * job.filters, CUDA_BLOCK),
                              CUDA_BLOCK, 0, (cudaStream_t)n->stream>>>(job);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

static int hopper_setup(const strata_node *n, void *state, int tactic)
{
    shortcut_state *to = (shortcut_state *)state;
    int device, status = shortcut_resolve(n, &to->s);
    if (status != STRATA_OK)
        return status;
    cudaError_t e = product_prepare(launch_for(n->in[0], tactic));
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&to->multiprocessors, cudaDevAttrMultiProcessorCount,
                                   device);
    if (e != cudaSuccess)
        return STRATA_FAIL(n, STRATA_EDEVICE, "asking for shared memory: %s (%s)",
                           cudaGetErrorString(e), cudaGetErrorName(e));
    return n->in[0].dtype == STRATA_FP16 ? pack_weights<__half>(n, to)
                                         : pack_weights<__nv_bfloat16>(n, to);
}

/* ---- running ---------------------------------------------------------------------- */

static windows_input input_of(const strata_tensor *x)
{
    return {x->data, x->dtype, stored_channels(x), pixel_pitch(x), x->dims[0]};
}

static void fill(shortcut_job *job, const strata_run *r)
{
    const shortcut_state *state = (const shortcut_state *)r->state;
    const strata_shortcut_convolution *p = (const strata_shortcut_convolution *)r->params;
    const strata_activation f = {p->activation - 1, 0, p->alpha, p->beta};
    const strata_tensor *y = &r->out[0];
    job->m = (int32_t)(y->dims[0] * window_out_count(&state->s.w));
    job->n = (int32_t)stored_channels(y);
    job->real = (int32_t)state->s.filters;
    job->own = (int32_t)pieces_of(&r->in[0], &state->s.w);
    job->steps = job->own + (int32_t)pieces_of(&r->in[1], &state->s.shortcut);
    job->b_early = 1;
    job->bias = (const float *)((const __half *)state->packed +
                                (int64_t)job->steps * PRODUCT_DEPTH * job->real);
    job->to = y->data;
    job->to_row = pixel_pitch(y);
    job->alpha = job->beta = 1;
    job->activation.kind = f.kind;
    job->activation.alpha = f.kind < 0 ? 0 : (float)strata_activation_alpha(&f);
    job->activation.beta = f.kind < 0 ? 0 : (float)strata_activation_beta(&f);
}

static bool map_all(shortcut_job *job, const strata_run *r, const product_launch &l)
{
    const shortcut_state *state = (const shortcut_state *)r->state;
    const int32_t dtype = r->out[0].dtype;
    const int64_t depth = (int64_t)job->steps * PRODUCT_DEPTH;
    const product_matrix filters = {state->packed, depth, state->s.filters, depth, 1, 0};
    product_job other = {};
    other.m = job->m;
    if (!windows_map(job, input_of(&r->in[0]), &state->s.w, l) ||
        !windows_map(&other, input_of(&r->in[1]), &state->s.shortcut, l))
        return false;
    job->other = other.a;
    job->other_window = other.window;
    return map_matrix(&job->b, filters, dtype, l.box, l.depth) &&
           map_results(job, l, dtype, 1);
}

static int hopper_run(const strata_run *r, int tactic)
{
    const shortcut_state *state = (const shortcut_state *)r->state;
    const product_launch &l = launch_for(r->in[0], tactic);
    shortcut_job job = {};
    fill(&job, r);
    if (job.m == 0)
        return STRATA_OK;
    if (!map_all(&job, r, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these tensors");
    const cudaError_t e =
        product_run(&job, l, 1, state->multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel shortcut convolution: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- the impls -------------------------------------------------------------------- */

#define SHORTCUT_CALLBACKS(name) PRODUCT_CALLBACKS(hopper, SHORTCUT_, name)
SHORTCUT_EACH(SHORTCUT_CALLBACKS)

static const strata_row rows[] = {
    {{STRATA_F16_NHWC8}, {STRATA_SAME}},
    {{STRATA_BF16_NHWC8}, {STRATA_SAME}},
};

#define SHORTCUT_IMPL(name_)                                                             \
    {.id = 1 + SHORTCUT_##name_,                                                         \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,             \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .name = "hopper_" #name_,                                                           \
     .rows = STRATA_ARRAY(rows),                                                         \
     .efficiency = 0.5,                                                                  \
     .state_size = sizeof(shortcut_state),                                               \
     .accept = hopper_##name_##_accept,                                                  \
     .setup = hopper_##name_##_setup,                                                    \
     .run = hopper_##name_##_run},

static const strata_impl impls[] = {SHORTCUT_EACH(SHORTCUT_IMPL)};

static const strata_extends shortcut_convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::ShortcutConvolution",
    .params_size = sizeof(strata_shortcut_convolution),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&shortcut_convolution};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::ShortcutConvolution", extends)
