/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution, one filter a channel: bound by memory. Lanes lie along the
 * channels where those are innermost, else along the row. 3x3 and 5x5 windows have a
 * kernel of their own, which reads a row once.
 */
#include "plugins/convolution/cuda/slide.cuh"

enum { PACK = 4, MOST_CHUNKS = 64, PREPARING = 4 /* of a unit, in input rows */ };

/* ---- any window -----------------------------------------------------------------------
 */

template <typename T, int V>
static __device__ inline void depthwise_add_any(float (&sum)[DEPTHWISE_WIDE][V],
                                                const depthwise_job &job, const T *x,
                                                int32_t at, const float *weight)
{
    for (int32_t s = 0; s < job.kernel_w; s++, weight += job.stored) {
        const pack<float, V> w = *(const pack<float, V> *)weight;
#pragma unroll
        for (int o = 0; o < DEPTHWISE_WIDE; o++) {
            const int32_t i = at + s * job.dilation_w + o * job.stride_w;
            const int32_t column = min(max(i, 0), job.width - 1);
            pack<T, V> in = load_pack<T, V>(x + column * job.x_step);
            if (column != i)
                in = {};
#pragma unroll
            for (int v = 0; v < V; v++)
                sum[o][v] = fmaf(to_float(in.v[v]), w.v[v], sum[o][v]);
        }
    }
}

template <typename T, int V>
static __global__ void __launch_bounds__(DEPTHWISE_BLOCK, 4)
    depthwise_any_kernel(const __grid_constant__ depthwise_job job)
{
    const uint32_t u = blockIdx.x * DEPTHWISE_BLOCK + threadIdx.x;
    launch_next();
    if (u >= job.units)
        return;
    const depthwise_unit unit = depthwise_unit_of(job, u, V, DEPTHWISE_WIDE);
    const T *x =
        depthwise_images<T>(job) + unit.image * job.x_image + unit.pack * job.x_pack;
    const float *weight = job.weight + unit.c;
    const int64_t weight_row = (int64_t)job.kernel_w * job.stored;
    convolution_affine<V> affine;
    affine.load(job.bias, job.epilogue, unit.c, job.channels);
    for (int32_t row = unit.first_row; row < unit.end_row; row++) {
        float sum[DEPTHWISE_WIDE][V] = {};
        for (int32_t r = 0; r < job.kernel_h; r++) {
            const int32_t h = row * job.stride_h - job.begin_h + r * job.dilation_h;
            if ((uint32_t)h < (uint32_t)job.height)
                depthwise_add_any<T, V>(sum, job, x + h * job.x_row,
                                        unit.column * job.stride_w - job.begin_w,
                                        weight + r * weight_row);
        }
#pragma unroll
        for (int o = 0; o < DEPTHWISE_WIDE; o++)
#pragma unroll
            for (int v = 0; v < V; v++)
                sum[o][v] = fmaf(sum[o][v], affine.scale[v], affine.shift[v]);
        depthwise_store<T, V, DEPTHWISE_WIDE, false>(job, unit, row, sum);
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

static bool depthwise_innermost(const strata_tensor *t)
{
    return t->format & (STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_F32_NHWC |
                        STRATA_BF16_NHWC8 | STRATA_BF16_NHWC);
}

/* Channels that a thread takes, of those that lie together. */
static int depthwise_lanes(const strata_tensor *t, const struct window *w)
{
    if (!depthwise_innermost(t))
        return t->vector_dim == 1 ? t->vector : 1;
    int lanes = w->kernel[2] > 3 ? PACK / 2 : (int)PACK;
    while (stored_channels(t) % lanes)
        lanes /= 2;
    return lanes;
}

int depthwise_accept(const strata_node *n)
{
    convolution_state s;
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.in_c != 1 || s.out_c != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a group has %lld channels and %lld filters; needed is one of "
                           "each",
                           (long long)s.in_c, (long long)s.out_c);
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (window_extent(&s.w, d) > INT16_MAX || s.w.begin[d] > INT16_MAX ||
            s.w.in[d] > INT16_MAX || s.w.stride[d] > INT16_MAX ||
            (d == 0 && (n->in[0].rank > 4)))
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "takes at most 2 spatial dims, sizes up to %d", INT16_MAX);
    if (n->in[0].size > INT32_MAX || n->out[0].size > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "input of %lld elements and output of %lld; the most is "
                           "2^31 - 1",
                           (long long)n->in[0].size, (long long)n->out[0].size);
    return STRATA_OK;
}

int depthwise_narrow_accept(const strata_node *n)
{
    convolution_state s;
    int status = depthwise_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK || depthwise_lanes(&n->in[0], &s.w) == PACK)
        return status;
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                       "is for windows up to 3 and channels that lie together by %d",
                       PACK);
}

struct depthwise_pack_job {
    float *packed;
    const float *weight; /* [channel][kernel element] */
    int64_t size, stored, channels, elements;
};

static __global__ void depthwise_pack_kernel(depthwise_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t element = i / job.stored, c = i % job.stored;
        job.packed[i] = c < job.channels ? job.weight[c * job.elements + element] : 0.0f;
    }
}

int depthwise_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    const cudaError_t e = convolution_count_multiprocessors(s);
    if (e != cudaSuccess)
        return STRATA_FAIL(n, STRATA_EDEVICE, "multiprocessors: %s (%s)",
                           cudaGetErrorString(e), cudaGetErrorName(e));
    depthwise_pack_job job = {};
    job.stored = stored_channels(&n->in[0]);
    job.channels = n->in[0].dims[1];
    job.elements = window_kernel_count(&s->w);
    if (__builtin_mul_overflow(job.stored, job.elements, &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    return convolution_pack(n, s, job, sizeof(float), depthwise_pack_kernel);
}

/* ---- running --------------------------------------------------------------------------
 */

static void depthwise_window(depthwise_job *job, const struct window *w)
{
    job->kernel_h = (int32_t)w->kernel[1];
    job->kernel_w = (int32_t)w->kernel[2];
    job->stride_h = (int32_t)w->stride[1];
    job->stride_w = (int32_t)w->stride[2];
    job->dilation_h = (int32_t)w->dilation[1];
    job->dilation_w = (int32_t)w->dilation[2];
    job->begin_h = (int32_t)w->begin[1];
    job->begin_w = (int32_t)w->begin[2];
    job->height = (int32_t)w->in[1];
    job->width = (int32_t)w->in[2];
    job->out_h = (int32_t)w->out[1];
    job->out_w = (int32_t)w->out[2];
}

static depthwise_job depthwise_job_of(const strata_run *r, int lanes)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const window_tensor x = window_tensor_of(&r->in[0]);
    const window_tensor y = window_tensor_of(&r->out[0]);
    depthwise_job job = {};
    depthwise_window(&job, &s->w);
    job.x = x.data;
    job.y = y.data;
    job.epilogue = epilogue_of(r);
    job.residual = job.epilogue.residual;
    job.weight = (const float *)s->packed;
    job.bounds = convolution_bounds_of(job.epilogue);
    job.bias = convolution_bias(r);
    job.channels = (uint32_t)r->in[0].dims[1];
    job.stored = (uint32_t)stored_channels(&r->in[0]);
    job.innermost = depthwise_innermost(&r->in[0]);
    job.x_image = x.image;
    job.x_pack = job.innermost ? lanes : x.channel;
    job.x_row = (int32_t)x.step[1];
    job.x_step = (int32_t)x.step[2];
    job.y_image = y.image;
    job.y_pack = job.innermost ? lanes : y.channel;
    job.y_row = (int32_t)y.step[1];
    job.y_step = (int32_t)y.step[2];
    return job;
}

/* The rows of a unit: units fill the device some whole times, and each reads the rows of
 * its first window besides its own. */
static void depthwise_divide(depthwise_job *job, int64_t images, int lanes, int wide,
                             int64_t resident)
{
    const int64_t packs = job->stored / lanes, across = (job->out_w + wide - 1) / wide;
    const int64_t most = job->out_h < MOST_CHUNKS ? job->out_h : (int64_t)MOST_CHUNKS;
    int64_t least = INT64_MAX;
    job->packs = divisor_of(packs);
    job->across = divisor_of(across);
    for (int64_t wanted = 1; wanted <= most; wanted++) {
        const int64_t rows = (job->out_h + wanted - 1) / wanted;
        const int64_t chunks = (job->out_h + rows - 1) / rows;
        const int64_t units = images * packs * across * chunks;
        const int64_t time = (units + resident - 1) / resident *
                             (rows * job->stride_h + job->kernel_h + PREPARING);
        if (time >= least)
            continue;
        least = time;
        job->rows = (uint32_t)rows;
        job->chunks = divisor_of(chunks);
        job->units = (uint32_t)units;
    }
}

template <typename T, int V, int A, int K, int S>
static void depthwise_launch_slide(const strata_run *r, depthwise_job &job)
{
    typedef slide<T, V, A, K, S> shape;
    const convolution_state *s = (const convolution_state *)r->state;
    depthwise_divide(&job, r->in[0].dims[0], V, shape::Wide,
                     (int64_t)s->multiprocessors * shape::Blocks * DEPTHWISE_BLOCK);
    launch_overlapped(depthwise_slide_kernel<T, V, A, K, S>,
                      layer_blocks(job.units, DEPTHWISE_BLOCK), DEPTHWISE_BLOCK, 0,
                      layer_stream(r), job);
}

/* False where the window is not a usual one. */
template <typename T, int V, int A>
static bool depthwise_launch_usual(const strata_run *r, depthwise_job &job)
{
    const bool even = job.kernel_h == job.kernel_w && job.stride_h == job.stride_w &&
                      job.dilation_h == 1 && job.dilation_w == 1;
    const int kind = even && job.stride_w <= 2 ? job.kernel_w * 10 + job.stride_w : 0;
    if (kind == 31)
        depthwise_launch_slide<T, V, A, 3, 1>(r, job);
    else if (kind == 32)
        depthwise_launch_slide<T, V, A, 3, 2>(r, job);
    if constexpr (V < PACK) { /* else there are not enough registers */
        if (kind == 51)
            depthwise_launch_slide<T, V, A, 5, 1>(r, job);
        else if (kind == 52)
            depthwise_launch_slide<T, V, A, 5, 2>(r, job);
        return kind == 31 || kind == 32 || kind == 51 || kind == 52;
    }
    return kind == 31 || kind == 32;
}

template <typename T, int V>
static void depthwise_launch(const strata_run *r, depthwise_job &job)
{
    const convolution_state *s = (const convolution_state *)r->state;
    if (depthwise_launch_usual<T, V, 1>(r, job))
        return;
    depthwise_divide(&job, r->in[0].dims[0], V, DEPTHWISE_WIDE,
                     (int64_t)s->multiprocessors * 4 * DEPTHWISE_BLOCK);
    launch_overlapped(depthwise_any_kernel<T, V>,
                      layer_blocks(job.units, DEPTHWISE_BLOCK), DEPTHWISE_BLOCK, 0,
                      layer_stream(r), job);
}

/* In planes: whether rows are whole groups of A pixels, and windows centred. */
static bool depthwise_groups(const depthwise_job &job, int a)
{
    return !job.innermost && job.begin_w == job.kernel_w / 2 && job.width % a == 0 &&
           job.out_w % a == 0 && job.out_w * job.stride_w == job.width;
}

template <typename T, int V, int A>
static bool depthwise_launch_groups(const strata_run *r, depthwise_job &job)
{
    return depthwise_groups(job, A) && depthwise_launch_usual<T, V, A>(r, job);
}

/* Pairs of channels are FP16's alone; planes go by as many pixels as 16 bytes hold. */
template <typename T>
static void depthwise_launch_lanes(const strata_run *r, depthwise_job &job, int lanes)
{
    if (lanes == PACK) {
        depthwise_launch<T, PACK>(r, job);
        return;
    }
    if constexpr (sizeof(T) == 2)
        if (lanes == 2 ? depthwise_launch_groups<T, 2, 4>(r, job)
                       : depthwise_launch_groups<T, 1, 8>(r, job))
            return;
    if (lanes == 2)
        depthwise_launch<T, 2>(r, job);
    else if (!depthwise_launch_groups<T, 1, 4>(r, job))
        depthwise_launch<T, 1>(r, job);
}

static int depthwise_run_lanes(const strata_run *r, int lanes)
{
    depthwise_job job = depthwise_job_of(r, lanes);
    layer_float(r->in[0].dtype,
                [&](auto t) { depthwise_launch_lanes<decltype(t)>(r, job, lanes); });
    return layer_launched(r, "convolution depthwise");
}

int depthwise_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    return depthwise_run_lanes(r, depthwise_lanes(&r->in[0], &s->w));
}

/* Fewer channels a thread, more threads. */
int depthwise_narrow_run(const strata_run *r)
{
    return depthwise_run_lanes(r, PACK / 2);
}
