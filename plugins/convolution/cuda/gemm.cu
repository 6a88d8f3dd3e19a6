/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of the matrix product kernels: what they take, weights, the job.
 */
#include "plugins/convolution/cuda/gemm.cuh"

/* ---- what is taken --------------------------------------------------------------------
 */

/* Windows that see one plane of three dims: planes are images then. */
static int gemm_is_flat(const struct window *w)
{
    return w->kernel[0] == 1 && w->stride[0] == 1 && w->begin[0] == 0 &&
           w->in[0] == w->out[0];
}

static int gemm_fits(const struct window *w)
{
    int fits = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        fits &= window_extent(w, d) < GEMM_LIMIT && w->in[d] < GEMM_LIMIT &&
                w->stride[d] < GEMM_LIMIT && w->begin[d] < GEMM_LIMIT;
    return fits;
}

static int gemm_takes(const strata_node *n, int flat)
{
    convolution_state s;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "groups is %lld; needed is 1",
                           (long long)s.groups);
    if (stored_channels(x) % GEMM_PIECE || stored_channels(y) % GEMM_PIECE)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld and %lld channels in memory; needed are multiples of 8",
                           (long long)stored_channels(x), (long long)stored_channels(y));
    if (gemm_is_flat(&s.w) != flat)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           flat ? "takes windows in 2 spatial dims; here they have 3"
                                : "takes windows in 3 spatial dims; here they have 2");
    if (!gemm_fits(&s.w) || s.in_c * window_kernel_count(&s.w) > INT32_MAX / 2 ||
        s.out_c > INT32_MAX / 2)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes sizes, strides, pads and windows under %d",
                           GEMM_LIMIT);
    if (x->size > INT32_MAX || y->size / stored_channels(y) > INT32_MAX / 2)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "input of %lld elements; the most is 2^31 - 1",
                           (long long)x->size);
    return STRATA_OK;
}

static int gemm_may(const strata_node *n)
{
    return n->math == STRATA_MATH_TENSOR_OP
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "uses tensor cores; allow them with math = tensor_op");
}

int gemm_takes_flat(const strata_node *n)
{
    return gemm_takes(n, 1);
}

int gemm_accept(const strata_node *n)
{
    const int status = gemm_may(n);
    return status == STRATA_OK ? gemm_takes(n, 1) : status;
}

int gemm_deep_accept(const strata_node *n)
{
    const int status = gemm_may(n);
    return status == STRATA_OK ? gemm_takes(n, 0) : status;
}

/* ---- weights --------------------------------------------------------------------------
 */

struct gemm_pack_job {
    __half *packed;
    const float *weight; /* [filter][c][kernel element] */
    int64_t size, depth, stored, in_c, elements, filters;
    bool woven;
};

static __global__ void gemm_pack_kernel(gemm_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t row = i / job.depth, depth = i % job.depth, n = row % 32;
        const int64_t k = job.woven ? row - n + n % 8 / 2 * 8 + n / 8 * 2 + n % 2 : row;
        const int64_t element = depth / job.stored, c = depth % job.stored;
        const bool real = k < job.filters && element < job.elements && c < job.in_c;
        job.packed[i] = __float2half_rn(
            real ? job.weight[(k * job.in_c + c) * job.elements + element] : 0.0f);
    }
}

static int64_t gemm_stages(const strata_tensor *x, const struct window *w)
{
    return (stored_channels(x) * window_kernel_count(w) + GEMM_DEPTH - 1) / GEMM_DEPTH;
}

static int64_t gemm_rows(const convolution_state *s, const gemm_launch *launch)
{
    return launch->woven ? (s->out_c + 31) / 32 * 32 : s->out_c;
}

int gemm_setup(const strata_node *n, void *state, const gemm_launch *launch)
{
    convolution_state *s = (convolution_state *)state;
    int status = convolution_resolve(n, s);
    if (status == STRATA_OK)
        status =
            convolution_prepare(n, s, (const void *)launch->kernel,
                                launch->stages * launch->stage_bytes + launch->extra);
    if (status != STRATA_OK)
        return status;
    s->overlaps = n->sm >= 90;
    gemm_pack_job job = {};
    job.depth = gemm_stages(&n->in[0], &s->w) * GEMM_DEPTH;
    job.stored = stored_channels(&n->in[0]);
    job.in_c = s->in_c;
    job.elements = window_kernel_count(&s->w);
    job.filters = s->out_c;
    job.woven = launch->woven;
    if (__builtin_mul_overflow(job.depth, gemm_rows(s, launch), &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    return convolution_pack(n, s, job, sizeof(__half), gemm_pack_kernel);
}

/* ---- running --------------------------------------------------------------------------
 */

static gemm_job gemm_job_of(const strata_run *r, const gemm_launch *launch)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    gemm_job job = {};
    job.x = (const __half *)r->in[0].data;
    job.weight = (const __half *)s->packed;
    job.y = (__half *)r->out[0].data;
    job.epilogue = epilogue_of(r);
    job.residual = (const __half *)job.epilogue.residual;
    job.bias = convolution_bias(r);
    job.pixels = (uint32_t)(r->out[0].dims[0] * window_out_count(w));
    job.filters = (uint32_t)s->out_c;
    job.rows = (uint32_t)gemm_rows(s, launch);
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    job.channels = (uint32_t)stored_channels(&r->in[0]);
    job.pitch_x = (int32_t)pixel_pitch(&r->in[0]);
    job.pitch_y = (uint32_t)pixel_pitch(&r->out[0]);
    job.stages = (uint32_t)gemm_stages(&r->in[0], w);
    job.elements = (uint32_t)window_kernel_count(w);
    job.kernel_w = (int32_t)w->kernel[2];
    job.height = (int32_t)w->in[1];
    job.width = (int32_t)w->in[2];
    job.stride_h = (int32_t)w->stride[1];
    job.stride_w = (int32_t)w->stride[2];
    job.begin_h = (int32_t)w->begin[1];
    job.begin_w = (int32_t)w->begin[2];
    job.dilation_h = (int32_t)w->dilation[1];
    job.dilation_w = (int32_t)w->dilation[2];
    job.kernel_h = (int32_t)w->kernel[1];
    job.depth = (int32_t)w->in[0];
    job.stride_d = (int32_t)w->stride[0];
    job.begin_d = (int32_t)w->begin[0];
    job.dilation_d = (int32_t)w->dilation[0];
    job.plane = divisor_of(window_out_count(w) / (gemm_is_flat(w) ? w->out[0] : 1));
    job.out_h = divisor_of(w->out[1]);
    job.out_w = divisor_of(w->out[2]);
    return job;
}

/* How many blocks share the depth of a tile: enough to fill the device, with two stages
 * each at least. */
static uint32_t gemm_split(const convolution_state *s, const gemm_job *job,
                           uint32_t tiles, int most)
{
    uint32_t split = 1;
    while (2 * split <= (uint32_t)most && 4 * split <= job->stages &&
           2 * split * tiles <= (uint32_t)s->multiprocessors)
        split *= 2;
    return split;
}

/* Bytes: woven kernels need no more stages than there are, and more blocks then fit. */
static size_t gemm_shared(const gemm_job *job, const gemm_launch *launch)
{
    const uint32_t all = (uint32_t)launch->stages;
    const uint32_t stages = launch->woven && job->stages < all ? job->stages : all;
    return stages * (size_t)launch->stage_bytes + launch->extra;
}

int gemm_run(const strata_run *r, const gemm_launch *launch)
{
    const convolution_state *s = (const convolution_state *)r->state;
    gemm_job job = gemm_job_of(r, launch);
    const uint32_t columns = (job.stored + launch->columns - 1) / launch->columns;
    const uint32_t tiles = (job.pixels + launch->rows - 1) / launch->rows * columns;
    job.tiles = divisor_of(columns);
    job.split = gemm_split(s, &job, tiles, launch->split);
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = attributes[1].val.clusterDim.y = 1;
    attributes[1].val.clusterDim.z = job.split;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(tiles, 1, job.split);
    config.blockDim = dim3(launch->threads);
    config.dynamicSmemBytes = gemm_shared(&job, launch);
    config.stream = layer_stream(r);
    config.attrs = attributes;
    config.numAttrs = s->overlaps ? launch->split > 1 ? 2 : 1 : 0;
    void *arguments[] = {&job};
    const cudaError_t e = cudaLaunchKernelExC(&config, launch->kernel, arguments);
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel convolution: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
