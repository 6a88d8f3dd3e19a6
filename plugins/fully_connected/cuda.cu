/* SPDX-License-Identifier: Apache-2.0
 *
 * FullyConnected on CUDA: the impls, and kernels without tensor cores, for hopper.cu has
 * the others: y[n][m] = sum of w[m][k]*x[n][k] over an image as it lies in memory. Small
 * batches are bound by reading the weights:
 *   dot   a block reads a few rows of weights, 16 bytes a thread, and multiplies each
 * with up to eight images before it leaves the registers. Larger ones are bound by FP32
 * arithmetic: tile  a block makes a square of the product from tiles in shared memory, a
 * thread 4x4 or 8x8 of it
 */
#include "plugins/common/dense_weight.h"
#include "plugins/fully_connected/hopper.cuh"
#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"

#define DOT_BLOCK 128   /* threads */
#define DOT_IMAGES 8    /* a block multiplies a row with */
#define DOT_BATCH 32    /* images up to which weights, not arithmetic, bound a layer */
#define TILE_DEPTH 16   /* of k in shared memory */
#define TILE_THREADS 16 /* a side of the block */

struct product {
    void *y;
    const void *x, *w;
    const float *bias;             /* the layer's own, or NULL */
    int64_t images, units, inputs; /* units: logical ones */
    int64_t row;                   /* elements of y's row, pad lanes included */
    epilogue_args epilogue;
};

/* Pad units become zero. Called, not inlined: a tile stores up to 64, and each would hold
 * every kind of activation. */
template <typename T>
static __device__ __noinline__ void store_unit(const product &p, int64_t n, int64_t m,
                                               float sum)
{
    const int64_t at = n * p.row + m;
    if (n >= p.images || m >= p.row)
        return;
    if (m < p.units) {
        const float *bias = p.bias;
        const float residual =
            p.epilogue.residual ? to_float(((const T *)p.epilogue.residual)[at]) : 0.0f;
        sum = finish(bias ? sum + bias[m] : sum, (uint32_t)m, residual, p.epilogue);
    } else {
        sum = 0;
    }
    from_float((T *)p.y + at, sum);
}

/* ---- dot ------------------------------------------------------------------------- */

template <int Rows, int Images>
static __device__ inline void sum_lanes(float (&sum)[Rows][Images])
{
#pragma unroll
    for (int r = 0; r < Rows; r++)
#pragma unroll
        for (int b = 0; b < Images; b++)
#pragma unroll
            for (int lane = 16; lane > 0; lane /= 2)
                sum[r][b] += __shfl_xor_sync(0xffffffffu, sum[r][b], lane);
}

/* Rows past the end are the last one again, so that no load depends on a condition. */
template <typename T, int N, int Rows, int Images>
static __global__ void __launch_bounds__(DOT_BLOCK)
    dot_kernel(const __grid_constant__ product p)
{
    __shared__ float part[DOT_BLOCK / 32][Rows][Images];
    const int64_t first = (int64_t)blockIdx.x * Rows;
    const int64_t image = (int64_t)blockIdx.y * Images;
    const T *w[Rows], *x[Images];
    float sum[Rows][Images] = {};
#pragma unroll
    for (int r = 0; r < Rows; r++)
        w[r] = (const T *)p.w + min(first + r, p.units - 1) * p.inputs;
#pragma unroll
    for (int b = 0; b < Images; b++)
        x[b] = (const T *)p.x + min(image + b, p.images - 1) * p.inputs;
    launch_next();
    wait_for_previous();
#pragma unroll(Rows *Images <= 4 ? 4 : 1)
    for (int64_t k = (int64_t)threadIdx.x * N; k < p.inputs; k += DOT_BLOCK * N) {
        pack<T, N> a[Rows];
#pragma unroll
        for (int r = 0; r < Rows; r++)
            a[r] = *(const pack<T, N> *)(w[r] + k);
#pragma unroll
        for (int b = 0; b < Images; b++) {
            const pack<T, N> c = *(const pack<T, N> *)(x[b] + k);
#pragma unroll
            for (int i = 0; i < N; i++)
#pragma unroll
                for (int r = 0; r < Rows; r++)
                    sum[r][b] += to_float(a[r].v[i]) * to_float(c.v[i]);
        }
    }
    sum_lanes(sum);
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int b = 0; b < Images; b++)
                part[threadIdx.x / 32][r][b] = sum[r][b];
    __syncthreads();
    if (threadIdx.x < Rows * Images) {
        const int r = threadIdx.x / Images, b = threadIdx.x % Images;
        float total = 0;
        for (int i = 0; i < DOT_BLOCK / 32; i++)
            total += part[i][r][b];
        store_unit<T>(p, image + b, first + r, total);
    }
}

template <typename T, int N, int Rows, int Images>
static void launch_dot(const product &p, cudaStream_t stream)
{
    const dim3 grid((unsigned)((p.row + Rows - 1) / Rows),
                    (unsigned)((p.images + Images - 1) / Images));
    launch_overlapped(dot_kernel<T, N, Rows, Images>, grid, DOT_BLOCK, 0, stream, p);
}

template <typename T, int N>
static void choose_dot(const product &p, cudaStream_t stream)
{
    if (p.images == 1)
        launch_dot<T, N, 2, 1>(p, stream);
    else if (p.images == 2)
        launch_dot<T, N, 2, 2>(p, stream);
    else if (p.images <= 4)
        launch_dot<T, N, 4, 4>(p, stream);
    else
        launch_dot<T, N, 4, DOT_IMAGES>(p, stream);
}

/* ---- tile ------------------------------------------------------------------------ */

/* A side's tile: rows of the matrix by TILE_DEPTH of k, on its way through registers. */
template <typename T, int N, int Side>
struct tile_side {
    enum {
        PACKS = Side * TILE_DEPTH / N,
        THREADS = TILE_THREADS * TILE_THREADS,
        EACH = (PACKS + THREADS - 1) / THREADS
    };
    pack<T, N> held[EACH];

    __device__ inline void load(const T *matrix, int64_t first, int64_t rows,
                                int64_t inputs, int64_t k, int thread)
    {
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int i = min(thread + e * THREADS, PACKS - 1);
            const int64_t row = min(first + i / (TILE_DEPTH / N), rows - 1);
            const int64_t at = k + i % (TILE_DEPTH / N) * N;
            const bool inside = at < inputs;
            held[e] = *(const pack<T, N> *)(matrix + row * inputs + (inside ? at : 0));
            if (!inside)
                for (int v = 0; v < N; v++)
                    from_float(&held[e].v[v], 0.0f);
        }
    }

    __device__ inline void store(float (*tile)[Side + 4], int thread) const
    {
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int i = thread + e * THREADS;
            if (i < PACKS)
#pragma unroll
                for (int v = 0; v < N; v++)
                    tile[i % (TILE_DEPTH / N) * N + v][i / (TILE_DEPTH / N)] =
                        to_float(held[e].v[v]);
        }
    }
};

/* A thread's Micro values of a tile's row of k, in groups of four beside each other. */
template <int Micro>
static __device__ inline void take_values(float (&v)[Micro], const float *row, int thread)
{
#pragma unroll
    for (int g = 0; g < Micro / 4; g++) {
        const float4 f = *(const float4 *)(row + g * 4 * TILE_THREADS + thread * 4);
        v[g * 4] = f.x;
        v[g * 4 + 1] = f.y;
        v[g * 4 + 2] = f.z;
        v[g * 4 + 3] = f.w;
    }
}

template <typename T, int N, int Micro>
static __global__ void __launch_bounds__(TILE_THREADS *TILE_THREADS)
    tile_kernel(const __grid_constant__ product p)
{
    const int side = TILE_THREADS * Micro;
    __shared__ __align__(16) float xs[TILE_DEPTH][side + 4], ws[TILE_DEPTH][side + 4];
    const int thread = threadIdx.x, tm = thread % TILE_THREADS,
              tn = thread / TILE_THREADS;
    const int64_t m = (int64_t)blockIdx.x * side, n = (int64_t)blockIdx.y * side;
    tile_side<T, N, TILE_THREADS * Micro> x, w;
    float sum[Micro][Micro] = {};
    x.load((const T *)p.x, n, p.images, p.inputs, 0, thread);
    w.load((const T *)p.w, m, p.units, p.inputs, 0, thread);
    for (int64_t k = 0; k < p.inputs; k += TILE_DEPTH) {
        x.store(xs, thread);
        w.store(ws, thread);
        __syncthreads();
        if (k + TILE_DEPTH < p.inputs) {
            x.load((const T *)p.x, n, p.images, p.inputs, k + TILE_DEPTH, thread);
            w.load((const T *)p.w, m, p.units, p.inputs, k + TILE_DEPTH, thread);
        }
#pragma unroll
        for (int d = 0; d < TILE_DEPTH; d++) {
            float a[Micro], b[Micro];
            take_values(a, xs[d], tn);
            take_values(b, ws[d], tm);
#pragma unroll
            for (int i = 0; i < Micro; i++)
#pragma unroll
                for (int j = 0; j < Micro; j++)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < Micro; i++)
#pragma unroll
        for (int j = 0; j < Micro; j++)
            store_unit<T>(p, n + i / 4 * 4 * TILE_THREADS + tn * 4 + i % 4,
                          m + j / 4 * 4 * TILE_THREADS + tm * 4 + j % 4, sum[i][j]);
}

template <typename T, int N, int Micro>
static void launch_tile(const product &p, cudaStream_t stream)
{
    const int side = TILE_THREADS * Micro;
    const dim3 grid((unsigned)((p.row + side - 1) / side),
                    (unsigned)((p.images + side - 1) / side));
    tile_kernel<T, N, Micro><<<grid, TILE_THREADS * TILE_THREADS, 0, stream>>>(p);
}

/* Large tiles where they still make enough blocks. */
template <typename T, int N>
static void choose_tile(const product &p, cudaStream_t stream)
{
    if ((p.row / 128) * (p.images / 128) >= 128)
        launch_tile<T, N, 8>(p, stream);
    else
        launch_tile<T, N, 4>(p, stream);
}

template <typename T, int N>
static void choose(const product &p, cudaStream_t stream)
{
    if (p.images <= DOT_BATCH)
        choose_dot<T, N>(p, stream);
    else
        choose_tile<T, N>(p, stream);
}

template <typename T>
static void launch(const product &p, cudaStream_t stream)
{
    const int whole = 16 / (int)sizeof(T);
    if (p.inputs % whole == 0)
        choose<T, whole>(p, stream);
    else
        choose<T, 1>(p, stream);
}

/* ---- the layer ------------------------------------------------------------------- */

/* Grids have at most 65535 blocks in y. */
static int fully_connected_accept(const strata_node *n)
{
    const int64_t most = (int64_t)65535 * TILE_THREADS * 4;
    if (n->out[0].dims[0] > most || dense_image_size(&n->out[0]) > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld images of %lld units: this impl takes %lld of 2^31 - 1",
                           (long long)n->out[0].dims[0], (long long)n->out[0].dims[1],
                           (long long)most);
    return STRATA_OK;
}

struct state {
    const void *weight; /* packed */
};

static int fully_connected_setup(const strata_node *n, void *state_)
{
    const strata_fully_connected *p = (const strata_fully_connected *)n->params;
    state *s = (state *)state_;
    void *packed = NULL;
    int status = dense_weight_pack(n, p->transposed, &packed);
    s->weight = packed;
    return status;
}

static int fully_connected_run(const strata_run *r)
{
    const state *s = (const state *)r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    product p = {};
    p.y = y->data;
    p.x = x->data;
    p.w = s->weight;
    p.bias = r->weight[1].rank > 0 ? (const float *)r->weight[1].data : NULL;
    p.images = x->dims[0];
    p.units = y->dims[1];
    p.inputs = dense_image_size(x);
    p.row = dense_image_size(y);
    p.epilogue = epilogue_of(r);
    layer_float(y->dtype, [&](auto t) { launch<decltype(t)>(p, layer_stream(r)); });
    return layer_launched(r, "fully_connected");
}

HOPPER_EACH(HOPPER_CALLBACKS)

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

#define HOPPER_FIRST 2 /* id */
#define EPILOGUES                                                                        \
    (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS | STRATA_EPILOGUE_RESIDUAL |           \
     STRATA_EPILOGUE_ACTIVATION)

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .epilogues = EPILOGUES,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .efficiency = 0.02, /* of halves: their peak is that of tensor cores */
     .state_size = sizeof(state),
     .accept = fully_connected_accept,
     .setup = fully_connected_setup,
     .run = fully_connected_run},
#define HOPPER_IMPL(name_)                                                               \
    {.id = HOPPER_FIRST + HOPPER_##name_,                                                \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_WEIGHT_PACKED | STRATA_PITCHED_RESIDUAL,                            \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .epilogues = EPILOGUES,                                                             \
     .name = "hopper_" #name_,                                                           \
     .rows = STRATA_ARRAY(rows),                                                         \
     .activations = CUDA_ALL_ACTIVATIONS,                                                \
     .efficiency = 0.7,                                                                  \
     .state_size = sizeof(hopper_state),                                                 \
     .accept = hopper_##name_##_accept,                                                  \
     .setup = hopper_##name_##_setup,                                                    \
     .run = hopper_##name_##_run},
    HOPPER_EACH(HOPPER_IMPL)};

static const strata_extends fully_connected = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::FullyConnected",
    .params_size = sizeof(strata_fully_connected),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&fully_connected};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::FullyConnected", extends)
