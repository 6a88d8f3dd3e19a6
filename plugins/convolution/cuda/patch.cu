/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of patch.cuh: what it takes, weights, the job.
 */
#include "plugins/convolution/cuda/patch.cuh"

#include "plugins/convolution/cuda/hopper_pack.cuh"

#define MOST_COLUMN_TILES 4
#define MOST_BOX 256       /* pixels a side */
#define MOST_SHARED 232448 /* bytes of a block */

struct patch_launch {
    const void *kernel;
    int32_t columns, panel, threads, groups, extra, weights, depth;
};

template <class C>
static const patch_launch patch_launch_of = {
    .kernel = (const void *)patch_kernel<C>,
    .columns = C::Columns,
    .panel = C::Panel,
    .threads = C::Threads,
    .groups = C::Groups,
    .extra = C::Extra,
    .weights = C::WeightBytes,
    .depth = C::Depth,
};

#define PATCH_OF(type, columns) &patch_launch_of<patch_tile<type, columns>>
#define PATCH_EVERY(columns)                                                             \
    {                                                                                    \
        PATCH_OF(__half, columns), PATCH_OF(__nv_bfloat16, columns),                     \
            PATCH_OF(float, columns)                                                     \
    }

/* By tactic: 64 filters, 32. */
static const patch_launch *const launches[2][PRODUCT_TYPES] = {PATCH_EVERY(64),
                                                               PATCH_EVERY(32)};

static int64_t side_of(const struct window *w, int d)
{
    return PATCH_SIDE + window_extent(w, d) - 1;
}

/* Bytes of a patch of one piece of channels, to whole 1024. */
static int64_t stage_of(const struct window *w)
{
    return (side_of(w, 1) * side_of(w, 2) * PRODUCT_ROW + 1023) / 1024 * 1024;
}

/* Of a warpgroup's ring; 0 where there is no room. */
static int64_t stages_of(const patch_launch &l, const struct window *w, int64_t pieces)
{
    const int64_t weights = pieces * window_kernel_count(w) * l.weights;
    const int64_t room = MOST_SHARED - l.extra - weights, most = PATCH_STAGES / l.groups;
    const int64_t stages = room < 0 ? 0 : room / (stage_of(w) * l.groups);
    return stages < most ? stages : most;
}

static const char *refusal(const strata_node *n, const convolution_state &s,
                           const patch_launch &l)
{
    const struct window *w = &s.w;
    const int64_t tiles = (stored_channels(&n->out[0]) + l.columns - 1) / l.columns;
    if (w->stride[1] != 1 || w->stride[2] != 1)
        return "patches are for strides of 1";
    if (w->kernel[1] * w->kernel[2] == 1)
        return "a kernel of one element needs no patch";
    if (side_of(w, 1) > MOST_BOX || side_of(w, 2) > MOST_BOX)
        return "a patch is at most 256 pixels a side";
    if (stages_of(l, w, hopper_pieces(&n->in[0])) < 1)
        return "its weights and a patch for each warpgroup do not fit in shared memory";
    return tiles > MOST_COLUMN_TILES ? "so many filters are for others" : NULL;
}

static int patch_accept(const strata_node *n, int tactic)
{
    convolution_state s;
    int status = gemm_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = product_math_refusal(n);
    if (!why)
        why = refusal(n, s, *launches[tactic][product_type(n->in[0].dtype)]);
    if (!why)
        why = hopper_refusal(n, s);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

static int patch_setup(const strata_node *n, void *state, int tactic)
{
    convolution_state *s = (convolution_state *)state;
    const patch_launch &l = *launches[tactic][product_type(n->out[0].dtype)];
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK)
        status = convolution_prepare(n, s, l.kernel, MOST_SHARED);
    return status == STRATA_OK ? hopper_pack(n, s) : status;
}

/* Boxes of `columns` channels of images in channels-last order. */
static bool map_images(CUtensorMap *map, const void *data, int32_t dtype, int64_t images,
                       int64_t height, int64_t width, int64_t channels, int64_t pitch,
                       int64_t box_height, int64_t box_width, int32_t columns)
{
    const uint64_t dims[4] = {(uint64_t)channels, (uint64_t)width, (uint64_t)height,
                              (uint64_t)images};
    const int64_t strides[3] = {pitch, pitch * width, pitch * width * height};
    const uint32_t box[4] = {(uint32_t)columns, (uint32_t)box_width, (uint32_t)box_height,
                             1};
    return tensor_map_boxes(map, data, dtype, 4, dims, strides, box,
                            strides[2] * images * tensor_map_size(dtype));
}

static bool map_operands(patch_job *job, const strata_run *r, const patch_launch &l)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t images = x->dims[0] * w->in[0];
    return hopper_map_weights(job, s, y->dtype, l.columns) &&
           map_images(&job->a, x->data, x->dtype, images, w->in[1], w->in[2],
                      stored_channels(x), pixel_pitch(x), side_of(w, 1), side_of(w, 2),
                      l.depth) &&
           map_images(&job->d, job->to, y->dtype, images, w->out[1], w->out[2], job->n,
                      job->to_row, PATCH_SIDE, PATCH_SIDE, l.panel) &&
           (!job->addend ||
            map_images(&job->c, job->addend, y->dtype, images, w->out[1], w->out[2],
                       job->n, job->addend_row, PATCH_SIDE, PATCH_SIDE, l.panel));
}

static bool fill(patch_job *job, const strata_run *r, const patch_launch &l)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    const int64_t across = (w->out[2] + PATCH_SIDE - 1) / PATCH_SIDE;
    const int64_t down = (w->out[1] + PATCH_SIDE - 1) / PATCH_SIDE;
    const int64_t channels = stored_channels(&r->in[0]);
    hopper_fill(job, r);
    job->across = divisor_of(across);
    job->patches = divisor_of(across * down);
    job->units = (int32_t)(across * down * r->in[0].dims[0] * w->in[0]);
    job->column_tiles = (job->n + l.columns - 1) / l.columns;
    job->pieces = (int32_t)hopper_pieces(&r->in[0]);
    job->kernel_h = (int32_t)w->kernel[1];
    job->kernel_w = (int32_t)w->kernel[2];
    job->last = (int32_t)windows_pieces(channels - (job->pieces - 1) * l.depth,
                                        l.depth * PRODUCT_STEP / PRODUCT_ROW);
    job->begin_h = (int32_t)w->begin[1];
    job->begin_w = (int32_t)w->begin[2];
    job->group = (int32_t)side_of(w, 2) * PRODUCT_ROW;
    job->step_h = (int32_t)w->dilation[1] * job->group;
    job->step_w = (int32_t)w->dilation[2] * PRODUCT_ROW;
    job->box = (int32_t)side_of(w, 1) * job->group;
    job->stage = (int32_t)stage_of(w);
    job->stages = (int32_t)stages_of(l, w, job->pieces);
    return map_operands(job, r, l);
}

static int patch_run(const strata_run *r, int tactic)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const patch_launch &l = *launches[tactic][product_type(r->out[0].dtype)];
    patch_job job = {};
    if (!fill(&job, r, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these tensors");
    const int32_t room = s->multiprocessors / job.column_tiles;
    const int32_t blocks = (job.units < room ? job.units : room) * job.column_tiles;
    cudaLaunchAttribute overlap = {};
    cudaLaunchConfig_t config = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)l.threads);
    config.dynamicSmemBytes =
        (size_t)(l.extra + job.steps * l.weights + l.groups * job.stages * job.stage);
    config.stream = layer_stream(r);
    config.attrs = &overlap;
    config.numAttrs = 1;
    void *arguments[] = {&job};
    const cudaError_t e = cudaLaunchKernelExC(&config, l.kernel, arguments);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel convolution patch: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

#define PATCH_TACTIC(columns, tactic)                                                    \
    int patch_##columns##_accept(const strata_node *n)                                   \
    {                                                                                    \
        return patch_accept(n, tactic);                                                  \
    }                                                                                    \
    int patch_##columns##_setup(const strata_node *n, void *state)                       \
    {                                                                                    \
        return patch_setup(n, state, tactic);                                            \
    }                                                                                    \
    int patch_##columns##_run(const strata_run *r)                                       \
    {                                                                                    \
        return patch_run(r, tactic);                                                     \
    }
PATCH_TACTIC(64, 0)
PATCH_TACTIC(32, 1)
