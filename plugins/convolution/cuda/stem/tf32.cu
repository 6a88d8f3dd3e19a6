/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer of FP32 on Hopper's tensor cores, as TF32.
 *
 * A pixel in shared memory is 4 floats, the 16 bytes that a row of a core matrix has as
 * wgmma reads one. A row of the image lies there as one list of pixels for each remainder
 * of the column by the stride, so that the pixels under one tap of windows side by side
 * are neighbours: a core matrix is 8 of them where they lie, and a step of depth 8 is two
 * taps. Weights are the other factor. A warpgroup makes 64 filters of one row of windows
 * at a time and walks down the image, whose rows it keeps in a ring; the warpgroups of a
 * block are at different places, so that the stores of one hide behind products of
 * others. Sums are stored from registers: a warp's accesses are whole sectors in either
 * order of results.
 *
 * Of a kernel of odd width there is a tap beside it with weights of zero: an infinite
 * pixel, or NaN, makes NaN of a window that only touches it.
 */
#include "plugins/convolution/cuda/hopper_pack.cuh"
#include "plugins/convolution/cuda/stem/float.cuh"

enum {
    WARPGROUP = 128,
    GROUPS = 3,                  /* at most, of a block */
    PIXEL = 16,                  /* bytes */
    STEP = STEM_FILTERS * 8 * 4, /* bytes of the weights of two taps */
    MOST_SHARED = 232448 - 1024
};

#define N_56 N_48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define O_56(f, d) O_48(f, d), O_2(f, d, 12)
PRODUCT_OF_ROWS(float, "k8.f32.tf32.tf32", ", 1, 1", float, "+f", 112, 56, 56, 57, 58)

struct stem_tf32_job : stem_float_job {
    int32_t pairs;         /* of taps, of a row of the kernel */
    int32_t shift;         /* 2^shift: the stride of columns, and lists of a row */
    int32_t pieces;        /* pixels of a list */
    int32_t list, row;     /* bytes */
    int32_t ring;          /* rows */
    uint32_t across, rows; /* across: tiles; rows: of all tiles */
};

/* No swizzle, core matrices of 128 bytes: to the other half of the depth, to the next 8
 * rows. */
static __device__ inline uint64_t cores_descriptor(uint32_t address, uint32_t deeper,
                                                   uint32_t next)
{
    return (uint64_t)(address >> 4 & 0x3fff) | (uint64_t)(deeper >> 4 & 0x3fff) << 16 |
           (uint64_t)(next >> 4) << 32;
}

/* Where a warpgroup is: rows of one image under one tile of columns. */
struct stem_tf32_strip {
    const float *x;
    uint32_t image;
    int32_t p, q; /* row, first column of the output */

    __device__ inline stem_tf32_strip(const stem_tf32_job &job, uint32_t row,
                                      int32_t columns)
    {
        const uint32_t tile = row / job.out_h;
        image = tile / job.across;
        p = (int32_t)(row - tile * job.out_h);
        q = (int32_t)(tile - image * job.across) * columns;
        x = job.x + (int64_t)image * job.channels * job.height * job.width;
    }
};

/* `count` rows of the image from row h on, to the ring from `slot` on. Four lanes have a
 * pixel, so that a warp writes to all banks; channels that are none become zero. */
static __device__ inline void stem_tf32_load(const stem_tf32_job &job,
                                             const stem_tf32_strip &at, uint32_t ring,
                                             int32_t h, int32_t count, int32_t slot)
{
    const int32_t first = (at.q << job.shift) - job.begin_w, mask = (1 << job.shift) - 1;
    const int32_t pixels = job.pieces << job.shift, c = threadIdx.x % 4;
    const bool real = c < job.channels;
    const float *x = at.x + (real ? (int64_t)c * job.height * job.width : 0);
    for (; count > 0; count--, h++, slot = slot + 1 < job.ring ? slot + 1 : 0) {
        const bool inside = real && (uint32_t)h < (uint32_t)job.height;
        const float *from = x + (inside ? h * job.width : 0);
        const uint32_t row = ring + slot * job.row + c * 4;
        for (int32_t i = threadIdx.x % WARPGROUP / 4; i < pixels; i += WARPGROUP / 4) {
            const bool valid = inside && (uint32_t)(first + i) < (uint32_t)job.width;
            copy_float(row + (i & mask) * job.list + (i >> job.shift) * PIXEL,
                       from + (valid ? first + i : 0), valid);
        }
    }
}

/* The row of windows whose first row of the image is in `slot`. */
template <int N>
static __device__ inline void
stem_tf32_multiply(float (&sum)[N / 8][4], const stem_tf32_job &job, uint32_t weight,
                   uint32_t ring, int32_t slot)
{
    const uint32_t mask = (1u << job.shift) - 1, deeper = mask ? job.list : PIXEL;
    const uint32_t steps = job.kernel_h * job.pairs, taps = 2 * job.pairs;
    uint64_t a = cores_descriptor(weight, 128, 256);
    uint32_t row = ring + slot * job.row, tap = 0;
    int32_t add = 0;
    multiply_begin();
    for (uint32_t i = 0; i < steps; i++, a += STEP / 16) {
        const uint32_t at = row + (tap & mask) * job.list + (tap >> job.shift) * PIXEL;
        product<float, N>::scores(sum, a, cores_descriptor(at, deeper, 128), add);
        add = 1;
        tap += 2;
        if (tap == taps) {
            tap = 0;
            slot = slot + 1 < job.ring ? slot + 1 : 0;
            row = ring + slot * job.row;
        }
    }
    multiply_commit();
}

/* A thread's two filters, side by side, and what becomes of their sums. */
struct stem_tf32_tail {
    uint32_t filter;
    float scale[4], shift[4];

    __device__ inline stem_tf32_tail(const stem_tf32_job &job, uint32_t first)
    {
        filter = first;
        for (int i = 0; i < 2; i++) {
            convolution_affine<1> affine;
            affine.load(job.bias, job.epilogue, filter + i, job.filters);
            scale[2 * i] = scale[2 * i + 1] = affine.scale[0];
            shift[2 * i] = shift[2 * i + 1] = affine.shift[0];
        }
    }
};

/* Sums of two filters and two windows, by filter, to y and what is beside it. */
static __device__ inline void stem_tf32_store(const stem_tf32_job &job, float *y,
                                              const float (&v)[4], bool other_filter,
                                              bool other_window)
{
    if (job.filters_join) {
        *(float2 *)y = make_float2(v[0], v[2]);
        if (other_window)
            *(float2 *)(y + job.y_window) = make_float2(v[1], v[3]);
    } else if (job.windows_join) {
        *(float2 *)y = make_float2(v[0], v[1]);
        if (other_filter)
            *(float2 *)(y + job.y_filter) = make_float2(v[2], v[3]);
    } else {
        y[0] = v[0];
        if (other_window)
            y[job.y_window] = v[1];
        if (other_filter)
            y[job.y_filter] = v[2];
        if (other_window && other_filter)
            y[job.y_window + job.y_filter] = v[3];
    }
}

/* A warpgroup's windows of row p. */
template <int N>
static __device__ inline void
stem_tf32_move(const stem_tf32_job &job, const stem_tf32_tail &tail,
               const stem_tf32_strip &at, int32_t p, float (&sum)[N / 8][4])
{
    const int32_t windows = min(N, job.out_w - at.q), first = threadIdx.x % 4 * 2;
    float *y = job.y + at.image * job.y_image + tail.filter * job.y_filter +
               p * job.y_row + (at.q + first) * job.y_window;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
        stem_finish(job, sum[j], tail.scale, tail.shift);
    if (tail.filter >= job.filters)
        return;
#pragma unroll
    for (int j = 0; j < N / 8; j++, y += 8 * job.y_window)
        if (first + j * 8 < windows)
            stem_tf32_store(job, y, sum[j], tail.filter + 1 < job.filters,
                            first + j * 8 + 1 < windows);
}

/* The rows of the image under the strip's first row of windows. */
static __device__ inline void stem_tf32_fill(const stem_tf32_job &job,
                                             const stem_tf32_strip &at, uint32_t ring)
{
    stem_tf32_load(job, at, ring, at.p * job.stride_h - job.begin_h, job.kernel_h, 0);
}

/* Rows of windows from at.p to `last`, the first of which is on its way. */
template <int N>
static __device__ inline void
stem_tf32_walk(const stem_tf32_job &job, const stem_tf32_tail &tail,
               const stem_tf32_strip &at, int32_t last, uint32_t weight, uint32_t ring)
{
    const uint32_t barrier = 1 + threadIdx.x / WARPGROUP;
    int32_t h = at.p * job.stride_h - job.begin_h + job.kernel_h, slot = 0;
    for (int32_t p = at.p; p < last; p++, h += job.stride_h) {
        float sum[N / 8][4];
        const int32_t free = slot + job.kernel_h;
        if (p + 1 < last)
            stem_tf32_load(job, at, ring, h, job.stride_h,
                           free < job.ring ? free : free - job.ring);
        copy_commit();
        copy_wait<1>();
        publish_shared();
        named_sync(barrier, WARPGROUP);
        hold(sum);
        stem_tf32_multiply<N>(sum, job, weight, ring, slot);
        multiply_wait<0>();
        hold(sum);
        named_sync(barrier, WARPGROUP); /* the row's first pixels may be overwritten */
        stem_tf32_move<N>(job, tail, at, p, sum);
        slot += job.stride_h;
        slot -= slot < job.ring ? 0 : job.ring;
    }
}

/* All warpgroups of all blocks share the rows of windows evenly, those of a block rows
 * below each other. */
template <int N>
static __global__ void __launch_bounds__(GROUPS *WARPGROUP, 1)
    stem_tf32_kernel(const __grid_constant__ stem_tf32_job job)
{
    extern __shared__ __align__(128) uint8_t memory[];
    const int32_t steps = job.kernel_h * job.pairs;
    const uint32_t groups = blockDim.x / WARPGROUP, group = threadIdx.x / WARPGROUP;
    const uint32_t weight = shared_address(memory), filter = blockIdx.y * STEM_FILTERS;
    const uint32_t ring = weight + steps * STEP + group * job.ring * job.row;
    const uint4 *from =
        (const uint4 *)job.weight + (size_t)blockIdx.y * steps * STEP / 16;
    const uint64_t place = blockIdx.x * groups + group, places = gridDim.x * groups;
    uint32_t row = (uint32_t)(job.rows * place / places);
    const uint32_t end = (uint32_t)(job.rows * (place + 1) / places);
    for (int32_t i = threadIdx.x; i < steps * STEP / 16; i += blockDim.x)
        copy_piece(weight + i * 16, from + i, true);
    if (row < end)
        stem_tf32_fill(job, stem_tf32_strip(job, row, N), ring);
    copy_commit();
    const stem_tf32_tail tail(job, filter + threadIdx.x % WARPGROUP / 32 * 16 +
                                       threadIdx.x % 32 / 4 * 2);
    copy_wait<0>();
    publish_shared();
    __syncthreads();
    while (row < end) {
        const stem_tf32_strip at(job, row, N);
        const int32_t last = min(job.out_h, at.p + (int32_t)(end - row));
        stem_tf32_walk<N>(job, tail, at, last, weight, ring);
        row += (uint32_t)(last - at.p);
        if (row < end)
            stem_tf32_fill(job, stem_tf32_strip(job, row, N), ring);
        copy_commit();
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

/* How a layer is made: fewer columns are in vain, as many warpgroups as have room. */
struct stem_tf32_plan {
    void (*kernel)(const stem_tf32_job);
    int32_t columns, pairs, shift, pieces, row, ring, groups, shared;
};

static stem_tf32_plan stem_tf32_plan_of(const struct window *w)
{
    const int64_t wide = (w->out[2] + 111) / 112 * 112,
                  narrow = (w->out[2] + 63) / 64 * 64;
    stem_tf32_plan plan = {};
    plan.columns = narrow < wide ? 64 : 112;
    plan.kernel = narrow < wide ? stem_tf32_kernel<64> : stem_tf32_kernel<112>;
    plan.pairs = (int32_t)((w->kernel[2] + 1) / 2);
    plan.shift = w->stride[2] == 4 ? 2 : (int32_t)w->stride[2] - 1;
    plan.pieces = plan.columns + ((2 * plan.pairs - 1) >> plan.shift);
    plan.pieces += (12 - plan.pieces % 8) % 8; /* two lists lie in different banks */
    plan.row = (plan.pieces << plan.shift) * PIXEL;
    plan.ring = (int32_t)(w->kernel[1] + w->stride[1]);
    const int32_t weights = (int32_t)w->kernel[1] * plan.pairs * STEP;
    const int32_t room = (MOST_SHARED - weights) / (plan.ring * plan.row);
    plan.groups = weights > MOST_SHARED ? 0 : room < GROUPS ? room : GROUPS;
    plan.shared = weights + plan.groups * plan.ring * plan.row;
    return plan;
}

int stem_tf32_accept(const strata_node *n)
{
    convolution_state s;
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = product_math_refusal(n);
    if (!why)
        why = stem_float_refusal(n, s);
    if (!why && s.w.stride[2] != 1 && s.w.stride[2] != 2 && s.w.stride[2] != 4)
        why = "takes strides of 1, 2 and 4 along rows";
    if (!why && stem_tf32_plan_of(&s.w).groups < 1)
        why = "its weights and rows of the image do not fit in shared memory";
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

struct stem_tf32_pack_job {
    float *packed;       /* [block of 64 filters][step][8 rows][tap][row][channel] */
    const float *weight; /* [filter][c][kernel_h][kernel_w] */
    int32_t size, pairs, kernel_h, kernel_w, channels, filters;
};

/* Rows m and m + 8 of a warp's 16, which a thread has, are filters side by side. */
static __global__ void stem_tf32_pack_kernel(stem_tf32_pack_job job)
{
    const int32_t i = (int32_t)(blockIdx.x * CUDA_BLOCK + threadIdx.x);
    if (i >= job.size)
        return;
    const int32_t c = i % 4, m = i / 64 % 8 * 8 + i / 4 % 8, at = i / 512;
    const int32_t step = at % (job.kernel_h * job.pairs);
    const int32_t block = at / (job.kernel_h * job.pairs);
    const int32_t r = step / job.pairs, tap = step % job.pairs * 2 + i / 32 % 2;
    const int32_t filter = block * STEM_FILTERS + m / 16 * 16 + m % 8 * 2 + m / 8 % 2;
    const bool real = filter < job.filters && c < job.channels && tap < job.kernel_w;
    const int32_t from = (filter * job.channels + c) * job.kernel_h + r;
    job.packed[i] = hopper_weight(
        real ? job.weight[(int64_t)from * job.kernel_w + tap] : 0.0f, 0.0f, true);
}

int stem_tf32_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    const stem_tf32_plan plan = stem_tf32_plan_of(&s->w);
    status = convolution_prepare(n, s, (const void *)plan.kernel, MOST_SHARED);
    if (status != STRATA_OK)
        return status;
    stem_tf32_pack_job job = {};
    job.pairs = plan.pairs;
    job.kernel_h = (int32_t)s->w.kernel[1];
    job.kernel_w = (int32_t)s->w.kernel[2];
    job.channels = (int32_t)s->in_c;
    job.filters = (int32_t)s->out_c;
    job.size = (job.filters + STEM_FILTERS - 1) / STEM_FILTERS * job.kernel_h *
               job.pairs * (STEP / 4);
    return convolution_pack(n, s, job, sizeof(float), stem_tf32_pack_kernel);
}

/* ---- running --------------------------------------------------------------------------
 */

int stem_tf32_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const stem_tf32_plan plan = stem_tf32_plan_of(&s->w);
    stem_tf32_job job = {};
    stem_float_fill(&job, r, 2);
    job.pairs = plan.pairs;
    job.shift = plan.shift;
    job.pieces = plan.pieces;
    job.list = plan.pieces * PIXEL;
    job.row = plan.row;
    job.ring = plan.ring;
    job.across = (uint32_t)((job.out_w + plan.columns - 1) / plan.columns);
    job.rows = (uint32_t)r->in[0].dims[0] * job.across * (uint32_t)job.out_h;
    const uint32_t most = (uint32_t)s->multiprocessors;
    const dim3 grid(job.rows < most ? job.rows : most,
                    (job.filters + STEM_FILTERS - 1) / STEM_FILTERS);
    plan.kernel<<<grid, plan.groups * WARPGROUP, plan.shared, layer_stream(r)>>>(job);
    return layer_launched(r, "convolution stem_tf32");
}
