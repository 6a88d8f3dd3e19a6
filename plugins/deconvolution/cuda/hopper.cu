/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution of FP16 and BF16 on Hopper's tensor cores: the copy engine finds the
 * windows and stores the results. The sizes of tiles are tactics, as Convolution's.
 */
#include "plugins/deconvolution/cuda/hopper.cuh"

#include "plugins/convolution/cuda/hopper_pack.cuh"
#include "plugins/deconvolution/cuda/deconvolution.cuh"
#include "plugins/deconvolution/cuda/sides.cuh"

#define MOST_SHALLOW 16 /* pieces of K, of one whose blocks have four tiles at a time */

#define HALF_OF(type, ...) &launch_of<product_tile<sides_floats<type>, __VA_ARGS__>>
#define HALVES(...)                                                                      \
    {                                                                                    \
        HALF_OF(__half, __VA_ARGS__), HALF_OF(__nv_bfloat16, __VA_ARGS__)                \
    }

/* Parts, columns, warpgroups, stages, turns, pair, split, blocks of a multiprocessor; in
 * the order of HOPPER_EACH: of FP16, BF16. */
static const product_launch *const launches[HOPPER_TACTICS][2] = {
    HALVES(2, 128, 2, 5, true, true, false, 1),  /* 128x128_pair */
    HALVES(2, 128, 2, 3, false, true, false, 1), /* 256x128_pair */
    HALVES(1, 128, 3, 4, false, true, false, 1), /* 192x128_pair */
    HALVES(1, 256, 2, 3, false, true, false, 1), /* 128x256_pair */
    HALVES(1, 128, 4, 5, true, false, false, 1), /* 64x128 */
    HALVES(1, 64, 4, 8, true, false, false, 1),  /* 64x64 */
    HALVES(2, 64, 2, 4, false, false, false, 1), /* 256x64 */
    HALVES(2, 32, 2, 5, false, false, false, 1), /* 256x32 */
};

static const product_launch &launch_for(const strata_tensor &x, int tactic)
{
    return *launches[tactic][product_type(x.dtype)];
}

/* ---- the phases -----------------------------------------------------------------------
 */

/* The windows of all phases together, by pixels of the first. */
struct sides_shape {
    struct window w;
    int64_t count, own_h, own_w; /* phases; elements of one's window */
    int64_t first[SIDES];        /* its first element of w's */
};

/* A later phase's window begins at the same pixel or at the next one. */
static void resolve_side(sides_shape *to, const deconvolution_phase &p, int64_t i)
{
    const int64_t down = to->w.begin[1] - p.w.begin[1];
    const int64_t right = to->w.begin[2] - p.w.begin[2];
    to->first[i] = down * to->w.kernel[2] + right;
}

/* Of a layer that sides_refusal() takes. */
static sides_shape resolve_sides(const struct window *w)
{
    sides_shape s = {};
    const deconvolution_phase begin = deconvolution_phase_at(w, 0);
    s.w = begin.w;
    s.count = deconvolution_phases(w);
    s.own_h = s.w.kernel[1];
    s.own_w = s.w.kernel[2];
    const deconvolution_phase end = deconvolution_phase_at(w, s.count - 1);
    for (int d = 1; d < WINDOW_DIMS; d++)
        s.w.kernel[d] += s.w.begin[d] - end.w.begin[d];
    for (int64_t i = 0; i < s.count; i++)
        resolve_side(&s, deconvolution_phase_at(w, i), i);
    return s;
}

static const char *sides_refusal(const struct window *w)
{
    for (int d = 0; d < WINDOW_DIMS; d++) {
        if (w->dilation[d] != 1 || w->kernel[d] % w->stride[d] != 0)
            return "it takes kernels of whole strides, without dilation";
        if (w->out[d] % w->stride[d] != 0)
            return "it takes outputs of whole strides: the copy engine stores a phase's "
                   "pixels as the first one's";
    }
    return deconvolution_phases(w) > SIDES ? "it takes at most 16 phases" : NULL;
}

static const char *window_refusal(const strata_tensor *x, const struct window *w)
{
    const char *why = windows_refusal(w);
    for (int d = 1; d < WINDOW_DIMS && !why; d++)
        if (w->begin[d] < -WINDOWS_CORNER)
            why = "the copy engine takes outputs up to 127 pixels before the input";
    if (!why && !windows_are_rows(w) &&
        hopper_pieces(x) * hopper_depth(x->dtype) >= 2 * stored_channels(x))
        why = "it takes channels in pieces of 128 bytes, of which half would be empty";
    return why;
}

/* Columns of a phase. Where all read the same pixels, a tile may have several phases'
 * filters: of whole panels, as a panel is stored at once; without a factor, of which a
 * tile has one range. */
static int64_t side_of(const strata_node *n, const sides_shape &s,
                       const product_launch &l)
{
    const int64_t filters = n->out[0].dims[1];
    const bool scaled = n->epilogue && (n->epilogue->flags & STRATA_EPILOGUE_SCALE);
    return windows_are_rows(&s.w) && !scaled && filters % l.panel == 0
               ? filters
               : (filters + l.columns - 1) / l.columns * l.columns;
}

/* ---- what it takes --------------------------------------------------------------------
 */

static const char *size_refusal(const strata_node *n, const sides_shape &s, int tactic)
{
    const product_launch &l = launch_for(n->in[0], tactic);
    const int64_t side = side_of(n, s, l), filters = n->out[0].dims[1];
    const int64_t rows = n->out[0].dims[0] * window_out_count(&s.w);
    const int64_t pieces = hopper_pieces(&n->in[0]) * s.own_h * s.own_w;
    if ((tactic == HOPPER_64x128 || tactic == HOPPER_64x64) && pieces > MOST_SHALLOW)
        return "its many warps are for layers that are all storing";
    if (side >= 2 * filters && l.columns > 32)
        return "half of its tiles' columns would be empty";
    if (rows > INT32_MAX / 2 || side * s.count > INT32_MAX / 2)
        return "sides of over 2^30 are for others";
    return product_refusal(l, rows, side * s.count);
}

static const char *refusal(const strata_node *n, const convolution_state &s, int tactic)
{
    const char *why = sides_refusal(&s.w);
    if (!why && s.out_c % 8 != 0)
        why = "it takes filters in multiples of 8";
    if (!why && hopper_has_two_tails(n))
        why = "it takes its own bias or the epilogue's factor and bias";
    if (why)
        return why;
    const sides_shape shape = resolve_sides(&s.w);
    why = window_refusal(&n->in[0], &shape.w);
    return why ? why : size_refusal(n, shape, tactic);
}

int hopper_accept(const strata_node *n, int tactic)
{
    convolution_state s;
    int status = phases_accept(n);
    if (status == STRATA_OK)
        status = deconvolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = refusal(n, s, tactic);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

/* ---- setting up -----------------------------------------------------------------------
 */

template <typename T>
static int pack_as(const strata_node *n, sides_state *state, const sides_shape &s)
{
    sides_pack_job<T> job = {};
    const struct window &w = state->w;
    job.stored = hopper_pieces(&n->in[0]) * hopper_depth(n->in[0].dtype);
    job.in_c = state->in_c;
    job.filters = state->out_c;
    job.side = state->side;
    job.taps = window_kernel_count(&w);
    job.own = s.own_h * s.own_w;
    job.own_w = s.own_w;
    job.step_h = w.stride[1] * w.kernel[2];
    job.step_w = w.stride[2];
    for (int64_t i = 0; i < s.count; i++) {
        const deconvolution_phase p = deconvolution_phase_at(&w, i);
        job.last[i] = deconvolution_tap(&p, &w, 0);
    }
    if (__builtin_mul_overflow(job.stored * job.own, job.side * s.count, &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    return convolution_pack(n, state, job, sizeof(T), sides_pack_kernel<T>);
}

int hopper_setup(const strata_node *n, void *state, int tactic)
{
    sides_state *to = (sides_state *)state;
    const product_launch &l = launch_for(n->in[0], tactic);
    int status = deconvolution_resolve(n, to);
    if (status == STRATA_OK)
        status = convolution_prepare(n, to, l.kernel, l.bytes);
    if (status != STRATA_OK)
        return status;
    const sides_shape s = resolve_sides(&to->w);
    to->side = side_of(n, s, l);
    return n->in[0].dtype == STRATA_FP16 ? pack_as<__half>(n, to, s)
                                         : pack_as<__nv_bfloat16>(n, to, s);
}

/* ---- running --------------------------------------------------------------------------
 */

static void fill(sides_job *job, const strata_run *r, const sides_shape &s)
{
    const sides_state *state = (const sides_state *)r->state;
    const epilogue_args e = epilogue_of(r);
    job->filters = (int32_t)state->out_c;
    job->m = (int32_t)(r->out[0].dims[0] * window_out_count(&s.w));
    job->n = (int32_t)(state->side * s.count);
    job->real = e.scale ? job->filters : job->n; /* no pad is stored */
    job->steps = (int32_t)(hopper_pieces(&r->in[0]) * s.own_h * s.own_w);
    job->b_early = 1;
    job->scale = e.scale;
    job->bias = e.bias ? e.bias : convolution_bias(r);
    job->alpha = job->beta = 1;
    job->activation = e.activation;
    job->side = divisor_of(state->side);
    job->own_w = divisor_of(s.own_w);
    for (int64_t i = 0; i < s.count; i++)
        job->first[i] = (int32_t)s.first[i];
}

/* The pixels of y that are phase i's, as many as the first's: windows that begin outside
 * the map are no pixels to store but an illegal instruction. */
static bool map_side(CUtensorMap *map, const strata_run *r, const product_launch &l,
                     int64_t i)
{
    const struct window *w = &((const sides_state *)r->state)->w;
    const strata_tensor *y = &r->out[0];
    const deconvolution_phase p = deconvolution_phase_at(w, i);
    const int64_t pitch = pixel_pitch(y), line = pitch * w->out[2];
    tensor_map_window to = {};
    to.channels = (uint64_t)y->dims[1];
    to.width = (uint64_t)p.w.out[2];
    to.height = (uint64_t)p.w.out[1];
    to.images = (uint64_t)y->dims[0];
    to.pitch = pitch * w->stride[2];
    to.line = line * w->stride[1];
    to.image = line * w->out[1];
    to.across = (int)p.w.out[2];
    to.down = (int)p.w.out[1];
    to.stride_h = to.stride_w = 1;
    to.depth = l.panel;
    const int64_t at = p.first[1] * line + p.first[2] * pitch;
    return tensor_map_windows(
        map, (const uint8_t *)y->data + at * tensor_map_size(y->dtype), y->dtype, to, 64);
}

static bool map_all(sides_job *job, const strata_run *r, const sides_shape &s,
                    const product_launch &l)
{
    const sides_state *state = (const sides_state *)r->state;
    const strata_tensor *x = &r->in[0];
    const windows_input input = {x->data, x->dtype, stored_channels(x), pixel_pitch(x),
                                 x->dims[0]};
    const int64_t depth = job->steps * (int64_t)l.depth;
    const product_matrix columns = {state->packed, depth, job->n, depth, 1, 0};
    bool made = windows_map(job, input, &s.w, l) &&
                map_matrix(&job->b, columns, x->dtype, l.box, l.depth);
    for (int64_t i = 0; i < s.count && made; i++)
        made = map_side(&job->y[i], r, l, i);
    job->d = job->y[0];
    return made;
}

int hopper_run(const strata_run *r, int tactic)
{
    const sides_state *state = (const sides_state *)r->state;
    const product_launch &l = launch_for(r->in[0], tactic);
    const sides_shape s = resolve_sides(&state->w);
    sides_job job = {};
    fill(&job, r, s);
    if (job.m == 0)
        return STRATA_OK;
    if (!map_all(&job, r, s, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these tensors");
    const cudaError_t e =
        product_run(&job, l, 1, state->multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel deconvolution hopper: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
