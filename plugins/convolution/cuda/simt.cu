/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as a matrix product in FP32 multiply-adds, for every format and rank: rows
 * are pixels, columns filters, the depth kernel elements and channels. A block makes 128
 * x 128, a thread 8 x 8; the next piece of depth 8 waits in registers while one is used.
 * Lanes lie along what is innermost in memory: pixels in planes, else filters.
 */
#include "plugins/convolution/cuda/convolution.cuh"

enum {
    SIDE = 128,
    DEPTH = 8,
    PITCH = SIDE + 4,
    PART = 4,
    LOADS = SIDE * DEPTH / CUDA_BLOCK
};

struct simt_walk {
    int32_t c, k[WINDOW_DIMS]; /* channel and kernel element */
};

struct simt_job {
    const void *x, *residual;
    void *y;
    const void *weight; /* [depth, to whole 8][filters, to whole 128], of x's dtype */
    const float *bias;  /* or NULL */
    epilogue_args epilogue;
    uint32_t pixels, filters, stored, columns; /* columns: of weight */
    int32_t channels, pieces;                  /* pieces: of depth 8 */
    uint32_t x_shift, y_shift, sum_shift;      /* of vectors; sum: residual */
    int32_t x_channel;
    int64_t y_channel, sum_channel;
    int32_t x_step[WINDOW_DIMS], kernel[WINDOW_DIMS], stride[WINDOW_DIMS];
    int32_t dilation[WINDOW_DIMS], begin[WINDOW_DIMS], in[WINDOW_DIMS];
    int64_t y_step[WINDOW_DIMS], sum_step[WINDOW_DIMS];
    int64_t x_image, y_image, sum_image;
    divisor plane, out[WINDOW_DIMS];
};

/* Image and position of a pixel. */
static __device__ inline uint32_t simt_pixel(const simt_job &job, uint32_t pixel,
                                             int32_t (&at)[WINDOW_DIMS])
{
    const uint32_t image = divide_by(pixel, job.plane);
    uint32_t rest = pixel - image * job.plane.d;
#pragma unroll
    for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
        const uint32_t outer = divide_by(rest, job.out[d]);
        at[d] = (int32_t)(rest - outer * job.out[d].d);
        rest = outer;
    }
    return image;
}

/* A thread's part of the next piece: one pixel at every second depth, 4 filters. */
template <typename T>
struct simt_loader {
    const T *x; /* the pixel's image */
    const T *weight;
    int32_t at[WINDOW_DIMS]; /* the pixel's window */
    simt_walk walk;
    bool inside;
    float value[LOADS];
    pack<T, 4> filters;

    __device__ inline void advance(const simt_job &job, int32_t by)
    {
        walk.c += by;
        while (walk.c >= job.channels) {
            walk.c -= job.channels;
            if (++walk.k[2] < job.kernel[2])
                continue;
            walk.k[2] = 0;
            if (++walk.k[1] < job.kernel[1])
                continue;
            walk.k[1] = 0;
            walk.k[0]++;
        }
    }

    __device__ inline void start(const simt_job &job, uint32_t row, uint32_t column)
    {
        const uint32_t pixel = row + threadIdx.x % SIDE;
        inside = pixel < job.pixels;
        /* Past the last pixel: the first one's image, since what is not used is read. */
        x = (const T *)job.x + simt_pixel(job, inside ? pixel : 0, at) * job.x_image;
#pragma unroll
        for (int d = 0; d < WINDOW_DIMS; d++)
            at[d] = at[d] * job.stride[d] - job.begin[d];
        weight = (const T *)job.weight + (size_t)(threadIdx.x / 32) * job.columns +
                 column + threadIdx.x % 32 * 4;
        walk = {};
        advance(job, (int32_t)(threadIdx.x / SIDE));
    }

    __device__ inline void load(const simt_job &job)
    {
        filters = load_pack<T, 4>(weight);
        weight += (size_t)DEPTH * job.columns;
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            bool valid = inside && walk.k[0] < job.kernel[0];
            int32_t offset = (walk.c >> job.x_shift) * job.x_channel +
                             (walk.c & ((1 << job.x_shift) - 1));
#pragma unroll
            for (int d = 0; d < WINDOW_DIMS; d++) {
                const int32_t p = at[d] + walk.k[d] * job.dilation[d];
                valid = valid && (uint32_t)p < (uint32_t)job.in[d];
                offset += p * job.x_step[d];
            }
            const float read = to_float(x[valid ? offset : 0]);
            value[i] = valid ? read : 0.0f;
            advance(job, CUDA_BLOCK / SIDE);
        }
    }

    __device__ inline void store(float (*a)[PITCH], float (*b)[PITCH]) const
    {
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            a[threadIdx.x / SIDE + i * (CUDA_BLOCK / SIDE)][threadIdx.x % SIDE] =
                value[i];
        store_pack(&b[threadIdx.x / 32][threadIdx.x % 32 * 4],
                   convert_pack<float>(filters));
    }
};

static __device__ inline void simt_fragment(float (&to)[8], const float *from, int apart)
{
    const float4 lo = *(const float4 *)from, hi = *(const float4 *)(from + apart);
    to[0] = lo.x, to[1] = lo.y, to[2] = lo.z, to[3] = lo.w;
    to[4] = hi.x, to[5] = hi.y, to[6] = hi.z, to[7] = hi.w;
}

/* Where a thread's 8 pixels and filters are: 4 from the first on, 4 `apart` from it. */
template <bool Planes>
struct simt_place {
    static const int PixelLanes = Planes ? 8 : 4, FilterLanes = 32 / PixelLanes;
    static const int PixelsApart = PixelLanes * PART, FiltersApart = FilterLanes * PART;
    uint32_t pixel, filter;

    __device__ inline simt_place()
    {
        const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const uint32_t across = SIDE / (2 * PixelsApart);
        pixel = warp % across * 2 * PixelsApart + lane % PixelLanes * PART;
        filter = warp / across * 2 * FiltersApart + lane / PixelLanes * PART;
        if (!Planes) {
            pixel = warp % across * 2 * PixelsApart + lane / FilterLanes * PART;
            filter = warp / across * 2 * FiltersApart + lane % FilterLanes * PART;
        }
    }
};

template <typename T, bool Planes>
static __device__ inline void simt_multiply(float (&sum)[8][8], const simt_job &job,
                                            const simt_place<Planes> &place, uint32_t row,
                                            uint32_t column)
{
    __shared__ __align__(16) float a[2][DEPTH][PITCH], b[2][DEPTH][PITCH];
    simt_loader<T> loader;
    loader.start(job, row, column);
    loader.load(job);
    loader.store(a[0], b[0]);
    __syncthreads();
    for (int32_t i = 0; i < job.pieces; i++) {
        const int now = i % 2;
        if (i + 1 < job.pieces)
            loader.load(job);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float p[8], f[8];
            simt_fragment(p, &a[now][k][place.pixel], place.PixelsApart);
            simt_fragment(f, &b[now][k][place.filter], place.FiltersApart);
#pragma unroll
            for (int m = 0; m < 8; m++)
#pragma unroll
                for (int n = 0; n < 8; n++)
                    sum[m][n] = fmaf(p[m], f[n], sum[m][n]);
        }
        if (i + 1 < job.pieces)
            loader.store(a[1 - now], b[1 - now]);
        __syncthreads();
    }
}

/* One pixel's 8 filters: 4 from k on, 4 from k + apart on. */
template <typename T>
static __device__ inline void simt_store(const simt_job &job, const float (&sum)[8],
                                         const convolution_affine<4> (&affine)[2],
                                         uint32_t pixel, uint32_t k, uint32_t apart)
{
    int32_t at[WINDOW_DIMS];
    const uint32_t image = simt_pixel(job, pixel, at);
    int64_t y = image * job.y_image, add = image * job.sum_image;
#pragma unroll
    for (int d = 0; d < WINDOW_DIMS; d++) {
        y += at[d] * job.y_step[d];
        add += at[d] * job.sum_step[d];
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t c = k + half * apart;
        float v[PART], residual[PART];
#pragma unroll
        for (int n = 0; n < PART; n++) {
            const int64_t from = add + ((c + n) >> job.sum_shift) * job.sum_channel +
                                 ((c + n) & ((1 << job.sum_shift) - 1));
            const bool adds = job.residual && c + n < job.filters;
            residual[n] = adds ? to_float(((const T *)job.residual)[from]) : 0.0f;
            v[n] = sum[half * PART + n];
        }
        finish_all(v, affine[half], residual, c < job.filters ? job.filters - c : 0,
                   job.epilogue.activation);
#pragma unroll
        for (int n = 0; n < PART; n++)
            if (c + n < job.stored)
                from_float((T *)job.y + y + ((c + n) >> job.y_shift) * job.y_channel +
                               ((c + n) & ((1 << job.y_shift) - 1)),
                           v[n]);
    }
}

template <typename T, bool Planes>
static __global__ void __launch_bounds__(CUDA_BLOCK, 2)
    simt_kernel(const __grid_constant__ simt_job job)
{
    const simt_place<Planes> place;
    const uint32_t across = job.columns / SIDE;
    const uint32_t row = blockIdx.x / across * SIDE, column = blockIdx.x % across * SIDE;
    const uint32_t k = column + place.filter;
    float sum[8][8] = {};
    simt_multiply<T, Planes>(sum, job, place, row, column);
    convolution_affine<4> affine[2];
    affine[0].load(job.bias, job.epilogue, k, job.filters);
    affine[1].load(job.bias, job.epilogue, k + place.FiltersApart, job.filters);
#pragma unroll
    for (int m = 0; m < 8; m++) {
        const uint32_t pixel =
            row + place.pixel + m / PART * place.PixelsApart + m % PART;
        if (pixel < job.pixels)
            simt_store<T>(job, sum[m], affine, pixel, k, place.FiltersApart);
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

static int64_t simt_pieces(const convolution_state *s)
{
    return (s->in_c * window_kernel_count(&s->w) + DEPTH - 1) / DEPTH;
}

static int64_t simt_columns(const convolution_state *s)
{
    return (s->out_c + SIDE - 1) / SIDE * SIDE;
}

int simt_accept(const strata_node *n)
{
    convolution_state s;
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "groups is %lld; needed is 1",
                           (long long)s.groups);
    bool fits = s.out_c <= INT32_MAX / 2 && simt_pieces(&s) < INT32_MAX / DEPTH &&
                n->in[0].size <= INT32_MAX &&
                n->out[0].dims[0] * window_out_count(&s.w) <= INT32_MAX / 2;
    for (int d = 0; d < WINDOW_DIMS; d++)
        fits = fits && window_extent(&s.w, d) < INT32_MAX / 4 &&
               s.w.begin[d] < INT32_MAX / 4 && s.w.out[d] * s.w.stride[d] < INT32_MAX / 2;
    return fits ? STRATA_OK
                : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                              "over 2^31 input elements, 2^30 pixels or filters, or a "
                              "window over 2^29");
}

struct simt_pack_job {
    void *packed;
    const float *weight; /* [filter][c][kernel element] */
    int64_t size, columns, filters, channels, elements;
};

template <typename T>
static __global__ void simt_pack_kernel(simt_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t k = i % job.columns, depth = i / job.columns;
        const int64_t element = depth / job.channels, c = depth % job.channels;
        from_float((T *)job.packed + i,
                   k < job.filters && element < job.elements
                       ? job.weight[(k * job.channels + c) * job.elements + element]
                       : 0.0f);
    }
}

int simt_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    simt_pack_job job = {};
    int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    job.columns = simt_columns(s);
    job.filters = s->out_c;
    job.channels = s->in_c;
    job.elements = window_kernel_count(&s->w);
    if (__builtin_mul_overflow(job.columns, simt_pieces(s) * DEPTH, &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    layer_float(n->in[0].dtype, [&](auto t) {
        status = convolution_pack(n, s, job, sizeof t, simt_pack_kernel<decltype(t)>);
    });
    return status;
}

/* ---- running --------------------------------------------------------------------------
 */

static void simt_strides(simt_job *job, const strata_run *r)
{
    const window_tensor x = window_tensor_of(&r->in[0]);
    const window_tensor y = window_tensor_of(&r->out[0]);
    const bool sums = r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL;
    const window_tensor sum =
        window_tensor_of(sums ? r->epilogue->residual : &r->out[0]);
    job->x = x.data;
    job->x_image = x.image;
    job->x_channel = (int32_t)x.channel;
    job->x_shift = x.shift;
    job->y = y.data;
    job->y_image = y.image;
    job->y_channel = y.channel;
    job->y_shift = y.shift;
    job->residual = sums ? sum.data : NULL;
    job->sum_image = sum.image;
    job->sum_channel = sum.channel;
    job->sum_shift = sum.shift;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        job->x_step[d] = (int32_t)x.step[d];
        job->y_step[d] = y.step[d];
        job->sum_step[d] = sum.step[d];
    }
}

static simt_job simt_job_of(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    simt_job job = {};
    simt_strides(&job, r);
    job.weight = s->packed;
    job.bias = convolution_bias(r);
    job.epilogue = epilogue_of(r);
    job.pixels = (uint32_t)(r->out[0].dims[0] * window_out_count(w));
    job.filters = (uint32_t)s->out_c;
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    job.columns = (uint32_t)simt_columns(s);
    job.channels = (int32_t)s->in_c;
    job.pieces = (int32_t)simt_pieces(s);
    job.plane = divisor_of(window_out_count(w));
    for (int d = 0; d < WINDOW_DIMS; d++) {
        job.kernel[d] = (int32_t)w->kernel[d];
        job.stride[d] = (int32_t)w->stride[d];
        job.dilation[d] = (int32_t)w->dilation[d];
        job.begin[d] = (int32_t)w->begin[d];
        job.in[d] = (int32_t)w->in[d];
        job.out[d] = divisor_of(w->out[d]);
    }
    return job;
}

int simt_run(const strata_run *r)
{
    const simt_job job = simt_job_of(r);
    const unsigned blocks = (job.pixels + SIDE - 1) / SIDE * (job.columns / SIDE);
    const bool planes = r->out[0].format & (STRATA_F32_NCHW | STRATA_F16_NCHW |
                                            STRATA_F16_NC2HW2 | STRATA_BF16_NCHW);
    layer_float(r->out[0].dtype, [&](auto t) {
        const auto kernel =
            planes ? simt_kernel<decltype(t), true> : simt_kernel<decltype(t), false>;
        kernel<<<blocks, CUDA_BLOCK, 0, layer_stream(r)>>>(job);
    });
    return layer_launched(r, "convolution simt");
}
