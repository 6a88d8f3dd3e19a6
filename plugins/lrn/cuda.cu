/* SPDX-License-Identifier: Apache-2.0
 *
 * LRN on CUDA. The usual windows of 3 and 5 channels: a thread takes 16 bytes at a time.
 * In planes it goes through some channels of neighbouring pixels and keeps the rows that
 * the window still needs in registers; in channels-last order it reads the pack before
 * and the pack behind, which its neighbours read too. Other windows are read as they are
 * written. Sums are made anew for each output, so that a NaN reaches no further than its
 * window.
 */
#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/lrn/lrn.h"

#define LRN_CHANNELS 32 /* of a thread in planes */
#define LRN_AHEAD 2     /* blocks of channels on their way behind the window */
/* The same of the usual window: channels of a thread, packs side by side of a block. */
#define FIVE_CHANNELS 8
#define FIVE_SIDE 16
#define FIVE_THREADS 128

struct lrn_job {
    const void *x;
    void *y;
    lrn l;
    int64_t threads;
    int64_t plane;            /* pixels of a plane */
    int64_t packs;            /* of a plane's pixels, or of a pixel's channels */
    int64_t image;            /* elements in memory */
    int32_t channels, blocks; /* blocks: of channels in memory */
    int32_t segments;         /* of an image's blocks */
};

struct lrn_fives {
    divisor groups, spans; /* of an image's channels, of a plane's packs */
    uint32_t slots;
};

/* Of a normal number, within 2 ulps. */
static __device__ inline float root_near(float x)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* beta = 0.75. Where there is no bias, sums below 2^-126 are 0. */
static __device__ inline float lrn_usual(float x, float sum, const lrn &l)
{
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fmaf(l.factor, sum, l.bias)));
    return x * (root * root_near(root));
}

static __device__ inline float lrn_value(float x, float sum, const lrn &l)
{
    const float base = fmaf(l.factor, sum, l.bias);
    if (l.beta == 0.75f)
        return lrn_usual(x, sum, l);
    return x * (l.beta == 0.5f ? rsqrtf(base) : power(base, -l.beta));
}

/* ---- planes ---------------------------------------------------------------------------
 */

/* V pixels by L channels of block b; zeros outside of the channels and from `end` on. */
template <typename T, int V, int L>
static __device__ inline pack<T, V * L> lrn_load(const lrn_job &job, const T *x, int b,
                                                 int end)
{
    pack<T, V *L> p = {};
    if (b >= 0 && b < end)
        p = load_once<T, V * L>(x + (int64_t)b * job.plane * L);
#pragma unroll
    for (int i = 0; i < V * L && L > 1; i++)
        if (b * L + i % L >= job.channels)
            from_float(&p.v[i], 0.0f);
    return p;
}

/* Output i of the middle block; Side blocks of L channels lie before and behind it. */
template <typename T, int V, int L, int Side, int Half>
static __device__ inline float lrn_sum(const pack<T, V * L> *x, int i)
{
    float sum = 0;
#pragma unroll
    for (int k = -Half; k <= Half; k++) {
        const int c = Side * L + i % L + k;
        const float v = to_float(x[c / L].v[i / L * L + c % L]);
        sum = fmaf(v, v, sum);
    }
    return sum;
}

template <typename T, int V, int L, int Half>
static __global__ void __launch_bounds__(CUDA_BLOCK, 3)
    lrn_planes_kernel(const __grid_constant__ lrn_job job)
{
    const int Side = (Half + L - 1) / L, N = V * L, Blocks = LRN_CHANNELS / L;
    int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i >= job.threads)
        return;
    const int64_t at = i % job.packs * N;
    i /= job.packs;
    const int first = (int)(i % job.segments) * Blocks;
    const int last = min(first + Blocks, job.blocks);
    const T *x = (const T *)job.x + i / job.segments * job.image + at;
    T *y = (T *)job.y + i / job.segments * job.image + at;
    const int end = min(last + Side, job.blocks), Newest = 2 * Side + LRN_AHEAD;
    pack<T, N> ring[Newest + 1];
#pragma unroll
    for (int k = 1; k <= Newest; k++)
        ring[k] = lrn_load<T, V, L>(job, x, first - Side + k - 1, end);
#pragma unroll 4
    for (int b = first; b < last; b++) {
        pack<T, N> out;
#pragma unroll
        for (int k = 0; k < Newest; k++)
            ring[k] = ring[k + 1];
        ring[Newest] = lrn_load<T, V, L>(job, x, b + Side + LRN_AHEAD, end);
#pragma unroll
        for (int k = 0; k < N; k++)
            from_float(&out.v[k],
                       lrn_value(to_float(ring[Side].v[k]),
                                 lrn_sum<T, V, L, Side, Half>(ring, k), job.l));
        store_once<T, N>(y + (int64_t)b * job.plane * L, out);
    }
}

/* Two elements at once, for which there are instructions. */
static __device__ inline float2 lrn_floats(const float *x)
{
    return make_float2(x[0], x[1]);
}
static __device__ inline float2 lrn_floats(const __half *x)
{
    return __half22float2(*(const __half2 *)x);
}
static __device__ inline float2 lrn_floats(const __nv_bfloat16 *x)
{
    return __bfloat1622float2(*(const __nv_bfloat162 *)x);
}
static __device__ inline void lrn_round(float *y, float2 x)
{
    y[0] = x.x;
    y[1] = x.y;
}
static __device__ inline void lrn_round(__half *y, float2 x)
{
    *(__half2 *)y = __float22half2_rn(x);
}
static __device__ inline void lrn_round(__nv_bfloat16 *y, float2 x)
{
    *(__nv_bfloat162 *)y = __float22bfloat162_rn(x);
}

/* Pixels k and k + 1, through all channels. in: 16 bytes of each, from the second channel
 * before on. Squares of two neighbours are added once for both windows that have them. */
template <typename T>
static __device__ inline void lrn_two(uint4 (&out)[FIVE_CHANNELS],
                                      const uint4 (&in)[FIVE_CHANNELS + 4], int k,
                                      const lrn &l)
{
    float2 x[FIVE_CHANNELS + 4], pair[FIVE_CHANNELS + 3]; /* of squares */
#pragma unroll
    for (int j = 0; j < FIVE_CHANNELS + 4; j++) {
        x[j] = lrn_floats((const T *)&in[j] + k);
        if (j > 0)
            pair[j - 1] = make_float2(fmaf(x[j].x, x[j].x, x[j - 1].x * x[j - 1].x),
                                      fmaf(x[j].y, x[j].y, x[j - 1].y * x[j - 1].y));
    }
#pragma unroll
    for (int j = 0; j < FIVE_CHANNELS; j++) {
        const float2 last = x[j + 4];
        const float a = pair[j].x + fmaf(last.x, last.x, pair[j + 2].x);
        const float b = pair[j].y + fmaf(last.y, last.y, pair[j + 2].y);
        lrn_round((T *)&out[j] + k,
                  make_float2(lrn_usual(x[j + 2].x, a, l), lrn_usual(x[j + 2].y, b, l)));
    }
}

/* The usual window, of 5 channels with beta = 0.75. A thread has 16 bytes of pixels of
 * some channels and of the two before and behind them, all on their way at once; the
 * latter are others' of its block too, out of the first-level cache. Squares of two
 * neighbours are added once for both windows that have them. Of 128x64x112x112 halves on
 * an H200 3.9 TB/s; with a ring of channels in registers 3.5, with 16 channels a
 * thread 3.3, with strips of all channels that the copy engine brings 3.7. */
template <typename T, int V>
static __global__ void __launch_bounds__(FIVE_THREADS, 4)
    lrn_five_kernel(const __grid_constant__ lrn_job job,
                    const __grid_constant__ lrn_fives fives)
{
    launch_next();
    wait_for_previous();
    const uint32_t slot =
        blockIdx.x * (FIVE_THREADS / FIVE_SIDE) + threadIdx.x / FIVE_SIDE;
    const uint32_t place = divide_by(slot, fives.groups);
    const uint32_t image = divide_by(place, fives.spans);
    const int first = (int)(slot - place * fives.groups.d) * FIVE_CHANNELS;
    const int64_t at = (int64_t)(place - image * fives.spans.d) * FIVE_SIDE * V +
                       threadIdx.x % FIVE_SIDE * V;
    if (slot >= fives.slots || at >= job.plane)
        return;
    const int64_t from = image * job.image + first * job.plane + at;
    const T *x = (const T *)job.x + from - 2 * job.plane;
    uint4 in[FIVE_CHANNELS + 4]; /* from the second channel before on */
    uint4 out[FIVE_CHANNELS];
#pragma unroll
    for (int k = 0; k < FIVE_CHANNELS + 4; k++, x += job.plane) {
        in[k] = {};
        if (first + k >= 2 && first + k < job.channels + 2)
            in[k] = *(const uint4 *)x;
    }
#pragma unroll
    for (int k = 0; k < V; k += 2)
        lrn_two<T>(out, in, k, job.l);
    T *y = (T *)job.y + from;
#pragma unroll
    for (int j = 0; j < FIVE_CHANNELS; j++, y += job.plane)
        if (first + j < job.channels)
            __stcs((uint4 *)y, out[j]);
}

/* ---- channels last --------------------------------------------------------------------
 */

template <typename T, int N, int Half>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    lrn_last_kernel(const __grid_constant__ lrn_job job)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < job.threads;
         i += step) {
        const int c = (int)(i % job.packs) * N;
        float v[3 * N];
        pack<T, N> out;
#pragma unroll
        for (int k = 0; k < 3; k++) {
            const int from = c + (k - 1) * N;
            const bool inside = from >= 0 && from < job.channels;
            const pack<T, N> p = ((const pack<T, N> *)job.x)[inside ? i + k - 1 : i];
#pragma unroll
            for (int j = 0; j < N; j++)
                v[k * N + j] = inside && from + j < job.channels ? to_float(p.v[j]) : 0;
        }
#pragma unroll
        for (int k = 0; k < N; k++) {
            float sum = 0;
#pragma unroll
            for (int j = -Half; j <= Half; j++)
                sum = fmaf(v[N + k + j], v[N + k + j], sum);
            from_float(&out.v[k],
                       c + k < job.channels ? lrn_value(v[N + k], sum, job.l) : 0.0f);
        }
        store_once<T, N>((T *)job.y + i * N, out);
    }
}

/* ---- any window, in any format --------------------------------------------------------
 */

/* Element (n, c, pixel): n*image + c/vector*channel + c%vector + pixel*step. */
struct lrn_plain_job {
    lrn_job job;
    int64_t channel, step;
    uint32_t vector, stored;
    bool last;
};

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    lrn_plain_kernel(const __grid_constant__ lrn_plain_job p)
{
    const lrn_job &job = p.job;
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < job.threads;
         i += step) {
        const int64_t stored = p.stored;
        const int64_t pixel = p.last ? i / stored % job.plane : i % job.plane;
        const int64_t c = p.last ? i % stored : i / job.plane % stored;
        const int64_t base = i / stored / job.plane * job.image + pixel * p.step;
        const T *x = (const T *)job.x + base;
        const int64_t at = c / p.vector * p.channel + c % p.vector;
        const int64_t from = max(c - job.l.before, (int64_t)0);
        const int64_t to = min(c + job.l.after + 1, (int64_t)job.channels);
        float sum = 0;
        for (int64_t k = from; k < to; k++) {
            const float v = to_float(x[k / p.vector * p.channel + k % p.vector]);
            sum = fmaf(v, v, sum);
        }
        from_float((T *)job.y + base + at,
                   c < job.channels ? lrn_value(to_float(x[at]), sum, job.l) : 0.0f);
    }
}

/* ---- on the host ----------------------------------------------------------------------
 */

static bool lrn_is_last(const strata_tensor *t)
{
    return t->vector == 8 || (t->vector <= 1 && t->strides[1] == 1 && t->dims[1] > 1);
}

static int64_t lrn_plane(const strata_tensor *t)
{
    int64_t plane = 1;
    for (int d = 2; d < t->rank; d++)
        plane *= t->dims[d];
    return plane;
}

static lrn_job lrn_job_of(const strata_run *r)
{
    const strata_tensor *x = &r->in[0];
    const int64_t vector = x->vector > 1 ? x->vector : 1;
    lrn_job job = {};
    job.x = x->data;
    job.y = r->out[0].data;
    job.l = *(const lrn *)r->state;
    job.plane = lrn_plane(x);
    job.channels = (int32_t)x->dims[1];
    job.blocks = (int32_t)((x->dims[1] + vector - 1) / vector);
    job.image = job.blocks * vector * job.plane;
    return job;
}

template <typename T>
static void lrn_plain(const strata_run *r)
{
    const strata_tensor *x = &r->in[0];
    lrn_plain_job p = {};
    p.job = lrn_job_of(r);
    p.vector = x->vector > 1 ? (uint32_t)x->vector : 1;
    p.stored = (uint32_t)p.job.blocks * p.vector;
    p.last = lrn_is_last(x);
    p.channel = p.last ? p.vector : p.job.plane * p.vector;
    p.step = p.last ? p.stored : p.vector;
    p.job.threads = x->dims[0] * p.job.image;
    lrn_plain_kernel<T>
        <<<layer_blocks(p.job.threads, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(p);
}

template <typename T, int V, int L, int Half>
static void lrn_planes(const strata_run *r)
{
    lrn_job job = lrn_job_of(r);
    job.packs = job.plane / V;
    job.segments = (job.blocks + LRN_CHANNELS / L - 1) / (LRN_CHANNELS / L);
    job.threads = r->in[0].dims[0] * job.segments * job.packs;
    lrn_planes_kernel<T, V, L, Half>
        <<<layer_blocks(job.threads, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(job);
}

template <typename T, int V>
static void lrn_five(const strata_run *r)
{
    const lrn_job job = lrn_job_of(r);
    const int64_t groups = (job.channels + FIVE_CHANNELS - 1) / FIVE_CHANNELS;
    const int64_t spans = (job.plane / V + FIVE_SIDE - 1) / FIVE_SIDE;
    const int64_t slots = r->in[0].dims[0] * groups * spans;
    const lrn_fives fives = {divisor_of(groups), divisor_of(spans), (uint32_t)slots};
    launch_overlapped(lrn_five_kernel<T, V>,
                      layer_blocks(slots, FIVE_THREADS / FIVE_SIDE), FIVE_THREADS, 0,
                      layer_stream(r), job, fives);
}

template <typename T, int Half>
static void lrn_last(const strata_run *r)
{
    const int N = 16 / (int)sizeof(T);
    lrn_job job = lrn_job_of(r);
    job.packs = job.image / job.plane / N;
    job.threads = r->in[0].dims[0] * job.plane * job.packs;
    lrn_last_kernel<T, N, Half>
        <<<layer_blocks(job.threads, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(job);
}

template <typename T, int Half>
static void lrn_window(const strata_run *r)
{
    const int N = 16 / (int)sizeof(T);
    const strata_tensor *x = &r->in[0];
    const bool aligned = ((uintptr_t)x->data | (uintptr_t)r->out[0].data) % 16 == 0;
    const int64_t plane = lrn_plane(x), stored = lrn_job_of(r).image / plane;
    if (lrn_is_last(x) && aligned && stored % N == 0)
        lrn_last<T, Half>(r);
    else if (lrn_is_last(x))
        lrn_plain<T>(r);
    else if (x->vector == 2 && aligned && plane % 4 == 0)
        lrn_planes<__half, 4, 2, Half>(r); /* of FP16 alone */
    else if (x->vector == 2)
        lrn_planes<__half, 1, 2, Half>(r);
    else if (Half == 2 && ((const lrn *)r->state)->beta == 0.75f && aligned &&
             plane % N == 0)
        lrn_five<T, N>(r);
    else if (aligned && plane % N == 0)
        lrn_planes<T, N, 1, Half>(r);
    else
        lrn_planes<T, 1, 1, Half>(r);
}

template <typename T>
static void lrn_launch(const strata_run *r)
{
    const lrn *l = (const lrn *)r->state;
    if (l->before == 1 && l->after == 1)
        lrn_window<T, 1>(r);
    else if (l->before == 2 && l->after == 2)
        lrn_window<T, 2>(r);
    else
        lrn_plain<T>(r);
}

static int lrn_setup(const strata_node *n, void *state)
{
    *(lrn *)state = lrn_of((const strata_lrn *)n->params);
    return STRATA_OK;
}

static int lrn_run(const strata_run *r)
{
    layer_float(r->out[0].dtype, [&](auto t) { lrn_launch<decltype(t)>(r); });
    return layer_launched(r, "lrn");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(lrn),
     .setup = lrn_setup,
     .run = lrn_run,
     .bandwidth = 0.85},
};

static const strata_extends lrn_extends = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::LRN",
    .params_size = sizeof(strata_lrn),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&lrn_extends};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::LRN", extends)
