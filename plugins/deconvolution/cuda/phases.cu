/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of the phases' products: what they take, weights, the jobs.
 */
#include "plugins/deconvolution/cuda/phases.cuh"

/* ---- what is taken --------------------------------------------------------------------
 */

static bool phases_fit(const struct window *w)
{
    bool fits = w->kernel[0] == 1 && w->stride[0] == 1 && w->in[0] == 1 && w->out[0] == 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        fits = fits && window_extent(w, d) < GEMM_LIMIT && w->in[d] < GEMM_LIMIT &&
               w->stride[d] < GEMM_LIMIT && w->begin[d] < GEMM_LIMIT &&
               w->begin[d] > -GEMM_LIMIT;
    return fits && window_kernel_count(w) < INT32_MAX;
}

int phases_accept(const strata_node *n)
{
    convolution_state s;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    if (n->math != STRATA_MATH_TENSOR_OP)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "uses tensor cores; allow them with math = tensor_op");
    const int status = deconvolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (x->count == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the input is empty; products are of one element or more");
    if (s.groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "groups is %lld; needed is 1",
                           (long long)s.groups);
    if (stored_channels(x) % GEMM_PIECE || stored_channels(y) % GEMM_PIECE)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld and %lld channels in memory; needed are multiples of 8",
                           (long long)stored_channels(x), (long long)stored_channels(y));
    if (!phases_fit(&s.w) || s.in_c * window_kernel_count(&s.w) > INT32_MAX / 2 ||
        stored_channels(y) * window_kernel_count(&s.w) > INT32_MAX / 2)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes at most 2 spatial dims, each size, stride, pad and "
                           "window under %d",
                           GEMM_LIMIT);
    if (x->size > INT32_MAX || y->size / stored_channels(y) > INT32_MAX / 2)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "input of %lld elements; the most is 2^31 - 1",
                           (long long)x->size);
    return STRATA_OK;
}

/* Whether all phases see one kernel element each, at the same pixels. */
static bool phases_lie_aside(const struct window *w)
{
    bool aside = deconvolution_phases(w) > 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        aside = aside && w->kernel[d] == w->stride[d] && w->begin[d] == 0 &&
                w->dilation[d] == 1 && w->out[d] == w->in[d] * w->stride[d];
    return aside;
}

static int64_t phases_jobs(const struct window *w)
{
    return phases_lie_aside(w) ? 1 : deconvolution_phases(w);
}

/* ---- weights --------------------------------------------------------------------------
 */

static int64_t phase_stages(const strata_tensor *x, const deconvolution_phase *p)
{
    return (stored_channels(x) * window_kernel_count(&p->w) + GEMM_DEPTH - 1) /
           GEMM_DEPTH;
}

/* Rows of a job's packed weights: its columns, to whole 32 as they are woven. */
static int64_t phase_rows(const struct window *w, const strata_tensor *y)
{
    const int64_t sides = phases_lie_aside(w) ? deconvolution_phases(w) : 1;
    return (sides * stored_channels(y) + 31) / 32 * 32;
}

struct phase_pack_job {
    __half *packed;
    const float *weight; /* [c][filter][kernel element] */
    int64_t size, depth, stored, in_c, filters, columns, taps;
    int64_t kernel_w, own, own_w; /* own: kernel elements of the phase */
    int64_t last_h, last_w, step_h, step_w;
};

static __global__ void phase_pack_kernel(phase_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t row = i / job.depth, depth = i % job.depth, n = row % 32;
        const int64_t column = row - n + n % 8 / 2 * 8 + n / 8 * 2 + n % 2;
        const int64_t e = depth / job.stored, c = depth % job.stored;
        const int64_t k = column % job.columns, side = column / job.columns;
        /* Side by side, each has the tap of its place; last and step are 0 then. */
        const int64_t tap = side + (job.last_h - e / job.own_w * job.step_h) *
                                       job.kernel_w +
                            job.last_w - e % job.own_w * job.step_w;
        const bool real =
            k < job.filters && e < job.own && c < job.in_c && tap < job.taps;
        job.packed[i] = __float2half_rn(
            real ? job.weight[(c * job.filters + k) * job.taps + tap] : 0.0f);
    }
}

static phase_pack_job phase_pack_job_of(const strata_node *n, const convolution_state *s,
                                        const deconvolution_phase *p)
{
    phase_pack_job job = {};
    job.weight = (const float *)n->weight[DECONVOLUTION_WEIGHT].data;
    job.depth = phase_stages(&n->in[0], p) * GEMM_DEPTH;
    job.size = job.depth * phase_rows(&s->w, &n->out[0]);
    job.stored = stored_channels(&n->in[0]);
    job.in_c = s->in_c;
    job.filters = s->out_c;
    job.columns = stored_channels(&n->out[0]);
    job.taps = window_kernel_count(&s->w);
    job.kernel_w = s->w.kernel[2];
    job.own = window_kernel_count(&p->w);
    job.own_w = p->w.kernel[2];
    job.last_h = p->last_tap[1];
    job.last_w = p->last_tap[2];
    job.step_h = p->tap_step[1];
    job.step_w = p->tap_step[2];
    return job;
}

static int phases_pack(const strata_node *n, const convolution_state *s)
{
    __half *packed = (__half *)s->packed;
    for (int64_t i = 0; i < phases_jobs(&s->w); i++) {
        const deconvolution_phase p = deconvolution_phase_at(&s->w, i);
        phase_pack_job job = phase_pack_job_of(n, s, &p);
        job.packed = packed;
        packed += job.size;
        if (job.size > 0)
            phase_pack_kernel<<<layer_blocks(job.size, CUDA_BLOCK), CUDA_BLOCK, 0,
                                (cudaStream_t)n->stream>>>(job);
    }
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

int phases_setup(const strata_node *n, void *state, const gemm_launch *launch)
{
    convolution_state *s = (convolution_state *)state;
    int64_t size = 0, rows;
    int status = deconvolution_resolve(n, s);
    if (status == STRATA_OK)
        status = convolution_prepare(n, s, launch->kernel,
                                     launch->stages * launch->stage_bytes +
                                         launch->extra);
    if (status != STRATA_OK)
        return status;
    s->overlaps = n->sm >= 90;
    for (int64_t i = 0; i < phases_jobs(&s->w); i++) {
        const deconvolution_phase p = deconvolution_phase_at(&s->w, i);
        if (__builtin_mul_overflow(phase_stages(&n->in[0], &p) * GEMM_DEPTH,
                                   phase_rows(&s->w, &n->out[0]), &rows) ||
            __builtin_add_overflow(size, rows, &size))
            return STRATA_FAIL(n, STRATA_EOVERFLOW,
                               "packed weights do not fit in memory");
    }
    if ((status = convolution_reserve(n, s, size ? size : 1, sizeof(__half))) !=
        STRATA_OK)
        return status;
    return phases_pack(n, s);
}

/* ---- running --------------------------------------------------------------------------
 */

/* Job i, whose weights begin at `packed`; where they end. */
static const __half *phase_job_of(phase_job *job, const strata_run *r, int64_t i,
                                  const __half *packed, const gemm_launch *launch)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const bool aside = phases_lie_aside(&s->w);
    const deconvolution_phase p = deconvolution_phase_at(&s->w, i);
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    job->x = (const __half *)x->data;
    job->weight = packed;
    job->y = (__half *)y->data;
    job->epilogue = epilogue_of(r);
    job->residual = (const __half *)job->epilogue.residual;
    job->bias = convolution_bias(r);
    job->pixels = (uint32_t)(y->dims[0] * window_out_count(&p.w));
    job->filters = (uint32_t)s->out_c;
    job->rows = (uint32_t)phase_rows(&s->w, y);
    job->stored = (uint32_t)stored_channels(y);
    job->channels = (uint32_t)stored_channels(x);
    job->pitch_x = (int32_t)job->channels;
    job->pitch_y = job->stored;
    job->stages = (uint32_t)phase_stages(x, &p);
    job->elements = (uint32_t)window_kernel_count(&p.w);
    job->kernel_w = (int32_t)p.w.kernel[2];
    job->height = (int32_t)s->w.in[1];
    job->width = (int32_t)s->w.in[2];
    job->stride_h = job->stride_w = 1;
    job->begin_h = (int32_t)p.w.begin[1];
    job->begin_w = (int32_t)p.w.begin[2];
    job->dilation_h = (int32_t)p.w.dilation[1];
    job->dilation_w = (int32_t)p.w.dilation[2];
    job->plane = divisor_of(window_out_count(&p.w));
    job->out_w = divisor_of(p.w.out[2]);
    job->split = 1;
    job->columns = job->stored * (uint32_t)(aside ? deconvolution_phases(&s->w) : 1);
    job->channels_of = divisor_of(job->stored);
    job->across = divisor_of(aside ? s->w.stride[2] : 1);
    job->y_height = (int32_t)s->w.out[1];
    job->y_width = (int32_t)s->w.out[2];
    job->step_h = (int32_t)s->w.stride[1];
    job->step_w = (int32_t)s->w.stride[2];
    job->first_h = (int32_t)p.first[1];
    job->first_w = (int32_t)p.first[2];
    const uint32_t tiles = (job->columns + launch->columns - 1) / launch->columns;
    job->tiles = divisor_of(tiles);
    job->blocks = (job->pixels + launch->rows - 1) / launch->rows * tiles;
    return packed + (size_t)job->stages * GEMM_DEPTH * job->rows;
}

/* Blocks that the device holds at a time, at most one a tile. Each comes by all the jobs,
 * which are not equally deep. */
static cudaError_t count_blocks(const convolution_state *s, const gemm_launch *launch,
                                size_t shared, const phase_jobs *jobs, uint32_t *blocks)
{
    int each = 0;
    const cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &each, launch->kernel, launch->threads, shared);
    uint32_t all = (uint32_t)((each > 0 ? each : 1) * s->multiprocessors);
    while (deconvolution_divisor(all, jobs->n.d) > 1)
        all--;
    *blocks = jobs->blocks < all ? jobs->blocks : all;
    return e;
}

/* Some phases in one launch; they need no more stages than the deepest has. */
static cudaError_t phases_launch_all(const strata_run *r, phase_jobs *jobs, uint32_t n,
                                     const gemm_launch *launch)
{
    const convolution_state *s = (const convolution_state *)r->state;
    uint32_t blocks = 0, stages = 0;
    for (uint32_t i = 0; i < n; i++) {
        blocks = jobs->at[i].blocks > blocks ? jobs->at[i].blocks : blocks;
        stages = jobs->at[i].stages > stages ? jobs->at[i].stages : stages;
    }
    stages = stages < (uint32_t)launch->stages ? stages : (uint32_t)launch->stages;
    jobs->n = divisor_of(n);
    jobs->blocks = blocks * n;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(launch->threads);
    config.dynamicSmemBytes = stages * (size_t)launch->stage_bytes + launch->extra;
    config.stream = layer_stream(r);
    config.attrs = &attribute;
    config.numAttrs = s->overlaps ? 1 : 0;
    const cudaError_t e = count_blocks(s, launch, config.dynamicSmemBytes, jobs,
                                       &config.gridDim.x);
    if (e != cudaSuccess)
        return e;
    void *arguments[] = {jobs};
    return cudaLaunchKernelExC(&config, launch->kernel, arguments);
}

int phases_run(const strata_run *r, const gemm_launch *launch)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const __half *packed = (const __half *)s->packed;
    const int64_t all = phases_jobs(&s->w);
    cudaError_t e = cudaSuccess;
    for (int64_t i = 0; i < all && e == cudaSuccess; i += PHASES) {
        phase_jobs jobs = {};
        uint32_t n = 0;
        for (; n < PHASES && i + n < all; n++)
            packed = phase_job_of(&jobs.at[n], r, i + n, packed, launch);
        e = phases_launch_all(r, &jobs, n, launch);
    }
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel deconvolution: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
