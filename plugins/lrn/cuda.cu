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
#include "plugins/lrn/strip.cuh"

#define LRN_CHANNELS 32  /* of a thread in planes */
#define LRN_AHEAD 2      /* blocks of channels on their way behind the window */
#define FIVE_CHANNELS 64 /* the same of the usual window */
#define FIVE_AHEAD 3

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

/* The usual window, of 5 channels with beta = 0.75. Squares of two neighbours are added
 * once for both windows that have them. Three channels of 16 bytes are on their way
 * behind the window, and a thread goes through 64, lest it reads its neighbours' too. Of
 * 128x64x112x112 halves on an H200 3.5 TB/s; with 32 channels 3.3, with 8 bytes a thread
 * 3.4, with what is on its way in shared memory 2.2 to 2.9. */
template <typename T, int V>
static __global__ void __launch_bounds__(CUDA_BLOCK, 2)
    lrn_five_kernel(const __grid_constant__ lrn_job job)
{
    const int Newest = 2 + FIVE_AHEAD;
    int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i >= job.threads)
        return;
    const int64_t at = i % job.packs * V;
    i /= job.packs;
    const int first = (int)(i % job.segments) * FIVE_CHANNELS;
    const int last = min(first + FIVE_CHANNELS, job.blocks);
    const T *x = (const T *)job.x + i / job.segments * job.image + at;
    T *y = (T *)job.y + i / job.segments * job.image + at;
    const int end = min(last + 2, job.blocks);
    pack<T, V> ring[Newest + 1]; /* from the output's channel on */
    float far[V], near[V], here[V], next[V];
    /* squares of channels -2 and -1, -1 and 0, 0 and 1, and of 1, from the output's */
    pack<T, V> before[2];
#pragma unroll
    for (int k = 0; k < 2; k++)
        before[k] = lrn_load<T, V, 1>(job, x, first - 2 + k, end);
#pragma unroll
    for (int k = 0; k <= Newest; k++)
        ring[k] = lrn_load<T, V, 1>(job, x, first + k, end);
#pragma unroll
    for (int k = 0; k < V; k++) {
        const float a = to_float(before[0].v[k]), b = to_float(before[1].v[k]);
        const float c = to_float(ring[0].v[k]), d = to_float(ring[1].v[k]);
        far[k] = fmaf(a, a, b * b);
        near[k] = fmaf(b, b, c * c);
        here[k] = fmaf(c, c, d * d);
        next[k] = d * d;
    }
#pragma unroll 12 /* a multiple of both rings' lengths: nothing is moved */
    for (int b = first; b < last; b++) {
        pack<T, V> out;
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float e = to_float(ring[2].v[k]), square = e * e;
            from_float(&out.v[k], lrn_usual(to_float(ring[0].v[k]),
                                            far[k] + here[k] + square, job.l));
            far[k] = near[k];
            near[k] = here[k];
            here[k] = next[k] + square;
            next[k] = square;
        }
#pragma unroll
        for (int k = 0; k < Newest; k++)
            ring[k] = ring[k + 1];
        ring[Newest] = lrn_load<T, V, 1>(job, x, b + Newest + 1, end);
        store_once<T, V>(y + (int64_t)b * job.plane, out);
    }
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
    lrn_job job = lrn_job_of(r);
    job.packs = job.plane / V;
    job.segments = (job.blocks + FIVE_CHANNELS - 1) / FIVE_CHANNELS;
    job.threads = r->in[0].dims[0] * job.segments * job.packs;
    lrn_five_kernel<T, V>
        <<<layer_blocks(job.threads, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(job);
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
             plane % N == 0) {
        if (!lrn_strip<T, N>(r, lrn_job_of(r)))
            lrn_five<T, N>(r);
    } else if (aligned && plane % N == 0)
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
