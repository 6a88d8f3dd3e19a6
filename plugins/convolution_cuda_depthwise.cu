/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution, one filter a channel: bound by memory. A thread makes rows of 4
 * neighbouring pixels of a pack of channels; 3x3 windows, the usual ones, keep weights in
 * registers. Lanes lie along the channels where those are innermost, else along the row.
 */
#include "plugins/convolution_cuda.cuh"

enum { WIDE = 4, PACK = 4, MOST_ROWS = 8, UNITS_WANTED = 132 * 2048 };

struct depthwise_job {
    const void *x, *residual;
    void *y;
    const float *weight; /* [kernel element][stored channel] */
    const float *bias;   /* or NULL */
    epilogue_args epilogue;
    uint32_t units;                  /* threads with work */
    divisor packs, across, chunks;   /* how many: of channels, of pixels, of rows */
    bool innermost;                  /* channels are */
    uint32_t channels, stored, rows; /* rows: of a chunk */
    int64_t x_image, x_pack, x_row, x_step; /* strides in elements */
    int64_t y_image, y_pack, y_row, y_step;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int32_t begin_h, begin_w, height, width, out_h, out_w;
};

/* What a thread makes. */
struct depthwise_unit {
    uint32_t pack, across, chunk, image;
};

static __device__ depthwise_unit depthwise_unit_of(const depthwise_job &job, uint32_t u)
{
    depthwise_unit v;
    if (job.innermost) {
        const uint32_t pixels = divide_by(u, job.packs);
        const uint32_t rows = divide_by(pixels, job.across);
        v.pack = u - pixels * job.packs.d;
        v.across = pixels - rows * job.across.d;
        v.image = divide_by(rows, job.chunks);
        v.chunk = rows - v.image * job.chunks.d;
    } else {
        const uint32_t rows = divide_by(u, job.across);
        const uint32_t planes = divide_by(rows, job.chunks);
        v.across = u - rows * job.across.d;
        v.chunk = rows - planes * job.chunks.d;
        v.image = divide_by(planes, job.packs);
        v.pack = planes - v.image * job.packs.d;
    }
    return v;
}

/* Adds kernel row r, whose input row is x. Kernel: its width, 0: any. */
template <typename T, int V, int Kernel, int Stride>
static __device__ inline void
depthwise_add_usual(float (&sum)[WIDE][V], const depthwise_job &job, const T *x,
                    int32_t at, const float (&weight)[Kernel][V])
{
    const int Span = (WIDE - 1) * Stride + Kernel;
    pack<T, V> in[Span];
#pragma unroll
    for (int i = 0; i < Span; i++) {
        in[i] = {};
        if ((uint32_t)(at + i) < (uint32_t)job.width)
            in[i] = load_pack<T, V>(x + (at + i) * job.x_step);
    }
#pragma unroll
    for (int o = 0; o < WIDE; o++)
#pragma unroll
        for (int s = 0; s < Kernel; s++)
#pragma unroll
            for (int v = 0; v < V; v++)
                sum[o][v] =
                    fmaf(to_float(in[o * Stride + s].v[v]), weight[s][v], sum[o][v]);
}

template <typename T, int V>
static __device__ inline void depthwise_add_any(float (&sum)[WIDE][V],
                                                const depthwise_job &job, const T *x,
                                                int32_t at, const float *weight)
{
    for (int32_t s = 0; s < job.kernel_w; s++, weight += job.stored) {
        const pack<float, V> w = *(const pack<float, V> *)weight;
#pragma unroll
        for (int o = 0; o < WIDE; o++) {
            const int32_t i = at + s * job.dilation_w + o * job.stride_w;
            if ((uint32_t)i >= (uint32_t)job.width)
                continue;
            const pack<T, V> in = load_pack<T, V>(x + i * job.x_step);
#pragma unroll
            for (int v = 0; v < V; v++)
                sum[o][v] = fmaf(to_float(in.v[v]), w.v[v], sum[o][v]);
        }
    }
}

template <typename T, int V>
static __device__ inline void depthwise_store(const depthwise_job &job, int64_t at,
                                              const convolution_affine<V> &affine,
                                              const float (&sum)[V], uint32_t c)
{
    float v[V], residual[V] = {};
    pack<T, V> y;
    if (job.residual) {
        y = load_pack<T, V>((const T *)job.residual + at);
#pragma unroll
        for (int i = 0; i < V; i++)
            residual[i] = to_float(y.v[i]);
    }
#pragma unroll
    for (int i = 0; i < V; i++)
        v[i] = sum[i];
    finish_all(v, affine, residual, c < job.channels ? job.channels - c : 0,
               job.epilogue.activation);
#pragma unroll
    for (int i = 0; i < V; i++)
        from_float(&y.v[i], v[i]);
    store_pack((T *)job.y + at, y);
}

/* Kernel x Kernel windows of stride Stride; Kernel 0: any window. */
template <typename T, int V, int Kernel, int Stride>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    depthwise_kernel(const __grid_constant__ depthwise_job job)
{
    const uint32_t u = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (u >= job.units)
        return;
    const int K = Kernel ? Kernel : 1;
    const depthwise_unit unit = depthwise_unit_of(job, u);
    const uint32_t c = unit.pack * V;
    const T *x = (const T *)job.x + unit.image * job.x_image + unit.pack * job.x_pack;
    const int32_t first = (int32_t)unit.across * WIDE;
    const int32_t at_w = first * job.stride_w - job.begin_w;
    const int32_t end = min((int32_t)((unit.chunk + 1) * job.rows), job.out_h);
    float weight[K][K][V];
    if (Kernel) {
#pragma unroll
        for (int k = 0; k < K * K; k++) {
            const pack<float, V> w =
                *(const pack<float, V> *)(job.weight + k * job.stored + c);
#pragma unroll
            for (int v = 0; v < V; v++)
                weight[k / K][k % K][v] = w.v[v];
        }
    }
    convolution_affine<V> affine;
    affine.load(job.bias, job.epilogue, c, job.channels);
    for (int32_t row = (int32_t)(unit.chunk * job.rows); row < end; row++) {
        float sum[WIDE][V] = {};
        const int32_t at_h = row * job.stride_h - job.begin_h;
        if (Kernel) {
#pragma unroll
            for (int r = 0; r < K; r++)
                if ((uint32_t)(at_h + r) < (uint32_t)job.height)
                    depthwise_add_usual<T, V, K, Stride>(
                        sum, job, x + (at_h + r) * job.x_row, at_w, weight[r]);
        } else {
            for (int32_t r = 0; r < job.kernel_h; r++) {
                const int32_t h = at_h + r * job.dilation_h;
                if ((uint32_t)h < (uint32_t)job.height)
                    depthwise_add_any<T, V>(
                        sum, job, x + h * job.x_row, at_w,
                        job.weight + (int64_t)r * job.kernel_w * job.stored + c);
            }
        }
        const int64_t y = unit.image * job.y_image + unit.pack * job.y_pack +
                          row * job.y_row + first * job.y_step;
#pragma unroll
        for (int o = 0; o < WIDE; o++)
            if (first + o < job.out_w)
                depthwise_store<T, V>(job, y + o * job.y_step, affine, sum[o], c);
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

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
    if (n->out[0].size > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "output of %lld elements; the most is 2^31 - 1",
                           (long long)n->out[0].size);
    return STRATA_OK;
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
    depthwise_pack_job job = {};
    job.stored = stored_channels(&n->in[0]);
    job.channels = n->in[0].dims[1];
    job.elements = window_kernel_count(&s->w);
    if (__builtin_mul_overflow(job.stored, job.elements, &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    status = convolution_reserve(n, s, job.size, sizeof(float));
    if (status != STRATA_OK)
        return status;
    job.packed = (float *)s->packed;
    job.weight = (const float *)n->weight[CONVOLUTION_WEIGHT].data;
    depthwise_pack_kernel<<<layer_blocks(job.size, CUDA_BLOCK), CUDA_BLOCK, 0,
                            (cudaStream_t)n->stream>>>(job);
    return convolution_packed(n);
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

static bool depthwise_innermost(const strata_tensor *t)
{
    return t->format & (STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_F32_NHWC);
}

/* Channels that a thread takes: of those that lie together, at most PACK. */
static int depthwise_lanes(const strata_tensor *t)
{
    if (depthwise_innermost(t))
        return stored_channels(t) % PACK == 0 ? PACK : 1;
    return t->vector_dim == 1 ? t->vector : 1;
}

static depthwise_job depthwise_job_of(const strata_run *r, int lanes)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const convolution_tensor x = convolution_tensor_of(&r->in[0]);
    const convolution_tensor y = convolution_tensor_of(&r->out[0]);
    depthwise_job job = {};
    depthwise_window(&job, &s->w);
    job.x = x.data;
    job.y = y.data;
    job.epilogue = epilogue_of(r);
    job.residual = job.epilogue.residual;
    job.weight = (const float *)s->packed;
    job.bias = convolution_bias(r);
    job.channels = (uint32_t)r->in[0].dims[1];
    job.stored = (uint32_t)stored_channels(&r->in[0]);
    job.innermost = depthwise_innermost(&r->in[0]);
    job.x_image = x.image;
    job.x_pack = job.innermost ? lanes : x.channel;
    job.x_row = x.step[1];
    job.x_step = x.step[2];
    job.y_image = y.image;
    job.y_pack = job.innermost ? lanes : y.channel;
    job.y_row = y.step[1];
    job.y_step = y.step[2];
    return job;
}

/* As many rows a thread as leave enough threads to fill a device. */
static void depthwise_divide(depthwise_job *job, int64_t images, int lanes)
{
    const int64_t packs = job->stored / lanes;
    const int64_t across = (job->out_w + WIDE - 1) / WIDE;
    int64_t rows = images * packs * across * job->out_h / UNITS_WANTED;
    rows = rows < 1 ? 1 : rows > MOST_ROWS ? (int64_t)MOST_ROWS : rows;
    const int64_t chunks = (job->out_h + rows - 1) / rows;
    job->rows = (uint32_t)rows;
    job->packs = divisor_of(packs);
    job->across = divisor_of(across);
    job->chunks = divisor_of(chunks);
    job->units = (uint32_t)(images * packs * across * chunks);
}

template <typename T, int V>
static void depthwise_launch(const strata_run *r, const depthwise_job &job)
{
    const unsigned blocks = layer_blocks(job.units, CUDA_BLOCK);
    const cudaStream_t stream = layer_stream(r);
    const bool usual = job.kernel_h == 3 && job.kernel_w == 3 && job.dilation_h == 1 &&
                       job.dilation_w == 1 && job.stride_h == job.stride_w;
    if (usual && job.stride_w == 1)
        depthwise_kernel<T, V, 3, 1><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
    else if (usual && job.stride_w == 2)
        depthwise_kernel<T, V, 3, 2><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
    else
        depthwise_kernel<T, V, 0, 1><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
}

int depthwise_run(const strata_run *r)
{
    const int lanes = depthwise_lanes(&r->in[0]);
    depthwise_job job = depthwise_job_of(r, lanes);
    depthwise_divide(&job, r->in[0].dims[0], lanes);
    if (r->in[0].dtype == STRATA_FP32 && lanes == 4)
        depthwise_launch<float, 4>(r, job);
    else if (r->in[0].dtype == STRATA_FP32)
        depthwise_launch<float, 1>(r, job);
    else if (lanes == 4)
        depthwise_launch<__half, 4>(r, job);
    else if (lanes == 2)
        depthwise_launch<__half, 2>(r, job);
    else
        depthwise_launch<__half, 1>(r, job);
    return layer_launched(r, "convolution depthwise");
}
