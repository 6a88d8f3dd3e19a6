/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution by turned products: their tiles, what they take, the job.
 */
#include "plugins/common/product/turned.cuh"
#include "plugins/convolution/cuda/hopper_pack.cuh"
#include "plugins/convolution/cuda/turned.cuh"

#define MULTIPROCESSORS 132 /* of the chip; only how full tiles make it is told by it */
#define LEAST_FULL 0.6
#define LEAST_STEPS 2 /* of a block that shares a tile's depth */

struct turned_launch {
    product_launch product; /* rows: pixels; columns: channels */
    int32_t eights;         /* of pixels of a warpgroup */
};

template <class C>
static const turned_launch turned_launch_of = {
    .product =
        {
            .kernel = (const void *)turned_kernel<C>,
            .rows = C::Columns,
            .columns = C::Rows,
            .threads = C::Threads,
            .bytes = C::Bytes,
            .depth = PRODUCT_DEPTH,
            .box = C::Pair ? C::Rows / 2 : C::Rows,
            .panel = 64,
            .pair = C::Pair,
            .splits = C::Splits,
            .blocks = 1,
        },
    .eights = C::Eights,
};

#define TURNED_OF(type, ...) &turned_launch_of<turned_tile<type, __VA_ARGS__>>
#define TURNED(...)                                                                      \
    {                                                                                    \
        TURNED_OF(__half, __VA_ARGS__), TURNED_OF(__nv_bfloat16, __VA_ARGS__)            \
    }

/* Warpgroups, pixels, stages, splits, pair; in the order of TURNED_EACH. */
static const turned_launch *const launches[TURNED_TACTICS][2] = {
    TURNED(3, 144, 4, true, false), /* 192x144_split */
    TURNED(3, 176, 3, false, true), /* 192x176_pair */
    TURNED(2, 104, 5, true, false), /* 128x104_split */
    TURNED(2, 152, 4, false, true), /* 128x152_pair */
};

static const turned_launch &launch_for(int tactic, int32_t dtype)
{
    return *launches[tactic][dtype == STRATA_BF16];
}

/* ---- what it takes --------------------------------------------------------------------
 */

/* Blocks that share the depth of a tile. */
static int32_t split_of(const product_launch &l, int32_t multiprocessors, int64_t units,
                        int64_t steps)
{
    return l.splits && steps >= 2 * LEAST_STEPS && 2 * units <= multiprocessors ? 2 : 1;
}

/* Tiles, or pairs of them. */
static int64_t units_of(const product_launch &l, int64_t pixels, int64_t channels)
{
    const int64_t tiles = (pixels + l.rows - 1) / l.rows;
    return (l.pair ? (tiles + 1) / 2 : tiles) * ((channels + l.columns - 1) / l.columns);
}

static const char *size_refusal(const strata_node *n, const convolution_state &s,
                                const product_launch &l)
{
    const int64_t channels = stored_channels(&n->out[0]);
    const int64_t pixels = n->out[0].dims[0] * window_out_count(&s.w);
    const int64_t steps = hopper_pieces(&n->in[0]) * window_kernel_count(&s.w);
    const int64_t across = (channels + l.columns - 1) / l.columns;
    const int64_t units = units_of(l, pixels, channels);
    const int32_t split = split_of(l, MULTIPROCESSORS, units, steps);
    const int64_t blocks = units * (l.pair ? 2 : split);
    const int64_t waves = (blocks + MULTIPROCESSORS - 1) / MULTIPROCESSORS;
    const double work = (double)pixels / l.rows * (double)across * split;
    if (windows_are_rows(&s.w))
        return "windows that are pixels are for others";
    if (2 * across * l.columns > 3 * channels)
        return "more than a third of its tiles' channels would be empty";
    if (units > INT32_MAX / 2)
        return "so many tiles are for others";
    if (work < LEAST_FULL * (double)(waves * MULTIPROCESSORS))
        return "its tiles would leave many multiprocessors idle";
    return NULL;
}

int turned_accept(const strata_node *n, int tactic)
{
    convolution_state s;
    int status = gemm_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = product_math_refusal(n);
    if (!why)
        why = windows_refusal(&s.w);
    if (!why)
        why = hopper_refusal(n, s);
    if (!why)
        why = size_refusal(n, s, launch_for(tactic, n->in[0].dtype).product);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int turned_setup(const strata_node *n, void *state, int tactic)
{
    convolution_state *s = (convolution_state *)state;
    const product_launch &l = launch_for(tactic, n->out[0].dtype).product;
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK)
        status = convolution_prepare(n, s, l.kernel, l.bytes);
    return status == STRATA_OK ? hopper_pack(n, s) : status;
}

/* ---- running --------------------------------------------------------------------------
 */

/* The last piece of channels, if it is no whole one. */
static bool map_narrow(turned_job *job, const windows_input &x,
                       const convolution_state *s, product_launch l)
{
    const int64_t rest = x.channels % PRODUCT_DEPTH;
    const product_matrix filters = {s->packed, job->steps * (int64_t)PRODUCT_DEPTH,
                                    s->out_c,  job->steps * (int64_t)PRODUCT_DEPTH,
                                    1,         0};
    job->last = (int32_t)windows_pieces(rest ? rest : PRODUCT_DEPTH, 16);
    job->narrow = job->last == 1 ? 32 : job->last == 2 ? 64 : PRODUCT_ROW;
    if (job->narrow == PRODUCT_ROW)
        return true;
    product_job narrow = *job;
    l.depth = job->narrow / 2;
    if (!windows_map(&narrow, x, &s->w, l) ||
        !map_matrix(&job->narrow_b, filters, x.dtype, l.box, l.depth))
        return false;
    job->narrow_a = narrow.a;
    return true;
}

/* Results and addend, in boxes of 64 channels. */
static bool map_boxes(turned_job *job, int32_t dtype)
{
    const product_matrix d = {job->to, job->n, job->m, job->to_row, 1, 0};
    const product_matrix c = {job->addend, job->n, job->m, job->addend_row, 1, 0};
    return map_matrix(&job->d, d, dtype, job->box * 8, 64) &&
           (!job->addend || map_matrix(&job->c, c, dtype, job->box * 8, 64));
}

static bool fill(turned_job *job, const strata_run *r, const turned_launch &launch)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const product_launch &l = launch.product;
    const strata_tensor *x = &r->in[0];
    const windows_input input = {x->data, x->dtype, stored_channels(x), pixel_pitch(x),
                                 x->dims[0]};
    hopper_fill(job, r);
    job->units = (int32_t)units_of(l, job->m, job->n);
    job->across = divisor_of((job->n + l.columns - 1) / l.columns);
    job->split = split_of(l, s->multiprocessors, job->units, job->steps);
    job->box = launch.eights % job->split == 0 ? launch.eights / job->split : 1;
    return windows_map(job, input, &s->w, l) &&
           hopper_map_weights(job, s, x->dtype, l.box) && map_narrow(job, input, s, l) &&
           map_boxes(job, x->dtype);
}

int turned_run(const strata_run *r, int tactic)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const turned_launch &launch = launch_for(tactic, r->out[0].dtype);
    const product_launch &l = launch.product;
    turned_job job = {};
    if (!fill(&job, r, launch))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these tensors");
    const int32_t cluster = l.pair ? 2 : job.split;
    const int32_t room = s->multiprocessors / cluster;
    const int32_t blocks = job.split > 1 || job.units < room ? job.units : room;
    const cudaError_t e =
        launch_clusters(job, l, cluster, (int64_t)blocks * cluster, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel convolution turned: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
