/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as a matrix product that is never laid out: rows are output pixels, columns
 * filters, and the depth runs over kernel elements and, innermost, channels. FP16 in
 * channels-last order, so a row of 64 consecutive depths is made of 16-byte pieces, each
 * inside one pixel. What the tensor core kernels share: the job, copying pieces to shared
 * memory, the tail. Tiles in shared memory are rows of 128 bytes whose 16-byte pieces are
 * swizzled: piece p of row r lies at p ^ (r & 7).
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_GEMM_CUH
#define PLUGINS_CONVOLUTION_CUDA_GEMM_CUH

#include "kernels/overlap.cuh"
#include "plugins/convolution/cuda/convolution.cuh"

#define GEMM_DEPTH 64 /* of a stage, in halves: rows of 128 bytes */
#define GEMM_PIECE 8  /* halves in 16 bytes */
#define GEMM_PIECES (GEMM_DEPTH / GEMM_PIECE)
#define GEMM_ROW 128     /* bytes */
#define GEMM_LIMIT 16000 /* of sizes, strides and pads, so that indices fit 16 bits */

struct gemm_job {
    const __half *x, *weight; /* weight: [filter][depth rounded up to 64] */
    __half *y;
    const __half *residual; /* like y, or NULL */
    const float *bias;      /* or NULL */
    epilogue_args epilogue;
    uint32_t pixels, filters, stored; /* stored: channels of y in memory */
    uint32_t rows;                    /* of weight: filters, to whole 32 if woven */
    uint32_t channels;                /* of x in memory, a multiple of 8 */
    int32_t pitch_x;                  /* halves from a pixel to the next */
    uint32_t pitch_y;
    uint32_t stages;                  /* of depth 64, all of them */
    uint32_t elements;                /* of the kernel */
    int32_t kernel_w, height, width;
    int32_t stride_h, stride_w, begin_h, begin_w, dilation_h, dilation_w;
    divisor plane, out_w;
    /* Of three spatial dims; without them images are planes. */
    int32_t kernel_h, depth, stride_d, begin_d, dilation_d;
    divisor out_h;
    divisor tiles;  /* of columns */
    uint32_t split; /* blocks of a cluster, which share a tile's depth */
};

/* ---- instructions ---------------------------------------------------------------------
 */

/* 16 bytes to shared memory, past the registers and L1; zeros unless `valid`. */
static __device__ inline void copy_piece(uint32_t to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
}

static __device__ inline void copy_commit(void)
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Until at most `Pending` of this thread's groups are under way. */
template <int Pending>
static __device__ inline void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

static __device__ inline uint32_t swizzled(uint32_t row, uint32_t piece)
{
    return row * GEMM_ROW + ((piece ^ (row & 7)) << 4);
}

/* ---- loading --------------------------------------------------------------------------
 */

/* A thread copies one piece of every Step-th row of both tiles. Along the depth it walks
 * in steps of 64, keeping count of the kernel element and the channel. Deep: windows have
 * three dims. */
template <int Rows, int Columns, int Threads, bool Deep = false>
struct gemm_loader {
    static const int Step = Threads / GEMM_PIECES;
    static const int A = Rows / Step, B = Columns / Step;
    static_assert(Rows % Step == 0 && Columns % Step == 0, "whole passes");

    int32_t base[A]; /* of the row's window in x, in halves; may be negative */
    int32_t at_h[A], at_w[A], at_d[Deep ? A : 1];
    const __half *weight[B];
    bool filter[B];
    uint32_t to;                    /* of the first row, in a tile */
    int32_t channel, element, t, r, s; /* t, r, s: where `element` is in the kernel */

    __device__ inline void advance(const gemm_job &job, int32_t by)
    {
        channel += by;
        while (channel >= (int32_t)job.channels) {
            channel -= (int32_t)job.channels;
            element++;
            if (++s == job.kernel_w) {
                s = 0;
                r++;
            }
            if (Deep && r == job.kernel_h) {
                r = 0;
                t++;
            }
        }
    }

    __device__ inline void start(const gemm_job &job, uint32_t row, uint32_t column,
                                 uint32_t first)
    {
        const uint32_t mine = threadIdx.x / GEMM_PIECES,
                       piece = threadIdx.x % GEMM_PIECES;
        to = swizzled(mine, piece);
        channel = element = t = r = s = 0;
        advance(job, (int32_t)(first * GEMM_DEPTH + piece * GEMM_PIECE));
#pragma unroll
        for (int i = 0; i < A; i++) {
            const uint32_t pixel = row + mine + i * Step;
            const uint32_t image = divide_by(pixel, job.plane);
            const uint32_t rest = pixel - image * job.plane.d;
            uint32_t p = divide_by(rest, job.out_w);
            const uint32_t q = rest - p * job.out_w.d;
            int32_t plane = (int32_t)image;
            if (Deep) {
                const uint32_t o = divide_by(p, job.out_h);
                p -= o * job.out_h.d;
                at_d[Deep ? i : 0] = (int32_t)o * job.stride_d - job.begin_d;
                plane = plane * job.depth + at_d[Deep ? i : 0];
            }
            at_h[i] = (int32_t)p * job.stride_h - job.begin_h;
            at_w[i] = (int32_t)q * job.stride_w - job.begin_w;
            base[i] = ((plane * job.height + at_h[i]) * job.width + at_w[i]) *
                      job.pitch_x;
            if (pixel >= job.pixels)
                at_h[i] = -(1 << 30);
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            const uint32_t k = column + mine + i * Step;
            filter[i] = k < job.rows;
            weight[i] = job.weight +
                        (filter[i] ? k : 0) * (size_t)job.stages * GEMM_DEPTH +
                        first * GEMM_DEPTH + piece * GEMM_PIECE;
        }
    }

    /* Copies the next stage; a and b: the tiles' addresses. */
    __device__ inline void copy_a(const gemm_job &job, uint32_t a)
    {
        const int32_t h = r * job.dilation_h, w = s * job.dilation_w;
        const int32_t d = Deep ? t * job.dilation_d : 0;
        const int32_t offset =
            ((d * job.height + h) * job.width + w) * job.pitch_x + channel;
        const bool deep = element < (int32_t)job.elements;
#pragma unroll
        for (int i = 0; i < A; i++) {
            const bool valid =
                deep && (uint32_t)(at_h[i] + h) < (uint32_t)job.height &&
                (uint32_t)(at_w[i] + w) < (uint32_t)job.width &&
                (!Deep || (uint32_t)(at_d[Deep ? i : 0] + d) < (uint32_t)job.depth);
            copy_piece(a + to + i * (Step * GEMM_ROW),
                       job.x + (valid ? base[i] + offset : 0), valid);
        }
        advance(job, GEMM_DEPTH);
    }

    __device__ inline void copy_b(uint32_t b)
    {
#pragma unroll
        for (int i = 0; i < B; i++) {
            copy_piece(b + to + i * (Step * GEMM_ROW), weight[i], filter[i]);
            weight[i] += GEMM_DEPTH;
        }
    }
};

/* ---- the tail -------------------------------------------------------------------------
 */

/* Where the product's pixel and column lie in y: as they are, unless a job derived from
 * this one knows better. */
static __device__ inline uint32_t gemm_columns(const gemm_job &job)
{
    return job.stored;
}
static __device__ inline uint32_t gemm_channel(const gemm_job &, uint32_t column)
{
    return column;
}
static __device__ inline size_t gemm_row(const gemm_job &, uint32_t pixel, uint32_t)
{
    return pixel;
}

/* 8 channels of one pixel, from FP32 sums. */
template <class Job>
static __device__ inline void
gemm_store(const Job &job, const convolution_affine<8> &affine,
           const pack<__half, 8> &residual, const float (&sum)[8], uint32_t pixel,
           uint32_t column)
{
    const uint32_t channel = gemm_channel(job, column);
    float v[8], add[8];
    pack<__half, 8> y;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        v[i] = sum[i];
        add[i] = to_float(residual.v[i]);
    }
    finish_all(v, affine, add, job.filters - channel, job.epilogue.activation);
#pragma unroll
    for (int i = 0; i < 8; i++)
        y.v[i] = __float2half_rn(v[i]);
    store_pack(job.y + gemm_row(job, pixel, column) * job.pitch_y + channel, y);
}

/* What is to be added there; 0 without a residual. Outside the tensor: something. */
template <class Job>
static __device__ inline pack<__half, 8> gemm_residual(const Job &job, uint32_t pixel,
                                                       uint32_t column)
{
    if (!job.residual)
        return {};
    column = column < gemm_columns(job) ? column : 0;
    return load_pack<__half, 8>(job.residual +
                                gemm_row(job, min(pixel, job.pixels - 1), column) *
                                    job.stored +
                                gemm_channel(job, column));
}

/* A warp's 16 rows of FP32 sums lie in its own part of shared memory, `Pitch` floats a
 * row; stores them. row, column: of the first; affine: of the lane's channels. */
template <int Columns, int Pitch, class Job>
static __device__ inline void
gemm_store_rows(const Job &job, const convolution_affine<8> &affine,
                const float *staged, uint32_t row, uint32_t column)
{
    const uint32_t lane = threadIdx.x % 32, c = lane % (Columns / 8) * 8;
#pragma unroll
    for (uint32_t r = lane / (Columns / 8); r < 16; r += 256 / Columns) {
        const float4 lo = *(const float4 *)(staged + r * Pitch + c);
        const float4 hi = *(const float4 *)(staged + r * Pitch + c + 4);
        const float sum[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        if (row + r < job.pixels && column + c < gemm_columns(job))
            gemm_store(job, affine, gemm_residual(job, row + r, column + c), sum, row + r,
                       column + c);
    }
}

/* Of the 8 channels that a lane stores, where a warp stores `Columns` from `column` on.
 */
template <int Columns, class Job>
static __device__ inline convolution_affine<8> gemm_affine_of(const Job &job,
                                                              uint32_t column)
{
    convolution_affine<8> affine;
    column += threadIdx.x % (Columns / 8) * 8;
    affine.load(job.bias, job.epilogue, gemm_channel(job, column), job.filters);
    return affine;
}

/* A warp's fragments (16 rows x Columns, as mma and wgmma leave them) through shared
 * memory into y. affine: gemm_affine_of the columns. */
template <int Columns, class Job>
static __device__ inline void gemm_tail(const Job &job,
                                        const convolution_affine<8> &affine,
                                        const float (&sum)[Columns / 8][4],
                                        float *staging, uint32_t row, uint32_t column)
{
    const int Pitch = Columns + 8;
    const uint32_t lane = threadIdx.x % 32;
    float *to = staging + lane / 4 * Pitch + lane % 4 * 2;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < Columns / 8; n++) {
        *(float2 *)(to + n * 8) = make_float2(sum[n][0], sum[n][1]);
        *(float2 *)(to + 8 * Pitch + n * 8) = make_float2(sum[n][2], sum[n][3]);
    }
    __syncwarp();
    gemm_store_rows<Columns, Pitch>(job, affine, staging, row, column);
}

/* A warp's sums straight into y, where the rows of weight are woven: of 32 together, row
 * 8*i + n holds filter n/2*8 + i*2 + n%2, so that a lane has 8 neighbouring ones.
 * RowStep: from 16 rows to the next. */
template <int M, int Columns, int RowStep, class Job>
static __device__ inline void gemm_woven_tail(const Job &job,
                                              const float (&sum)[M][Columns / 8][4],
                                              uint32_t row, uint32_t column)
{
    /* Sites: a lane's places, 2*M rows of each 32 columns. */
    const int Rows = 2 * M, Sites = Columns / 32 * Rows, Ahead = Sites < 8 ? Sites : 8;
    const uint32_t lane = threadIdx.x % 32;
    row += lane / 4;
    column += lane % 4 * 8;
    convolution_affine<8> affine;
#pragma unroll
    for (int first = 0; first < Sites; first += Ahead) {
        pack<__half, 8> residual[Ahead];
#pragma unroll
        for (int i = 0; i < Ahead; i++) {
            const int part = (first + i) / Rows, m = (first + i) % Rows;
            residual[i] =
                gemm_residual(job, row + m / 2 * RowStep + m % 2 * 8, column + part * 32);
        }
#pragma unroll
        for (int i = 0; i < Ahead; i++) {
            const int part = (first + i) / Rows, m = (first + i) % Rows;
            const uint32_t pixel = row + m / 2 * RowStep + m % 2 * 8;
            const uint32_t c = column + part * 32;
            if (m == 0)
                affine.load(job.bias, job.epilogue, gemm_channel(job, c), job.filters);
            float v[8];
#pragma unroll
            for (int k = 0; k < 8; k++)
                v[k] = sum[m / 2][part * 4 + k / 2][m % 2 * 2 + k % 2];
            if (pixel < job.pixels && c < gemm_columns(job))
                gemm_store(job, affine, residual[i], v, pixel, c);
        }
    }
}

/* ---- host -----------------------------------------------------------------------------
 */

/* How a kernel is launched: blocks that each make a tile of rows x columns, at most
 * `split` of them each a part of the depth. */
struct gemm_launch {
    const void *kernel;
    int rows, columns, threads;
    int stages, stage_bytes, extra; /* of shared memory; extra: bytes besides stages */
    int split;
    bool woven; /* the rows of weight; then shallow layers take fewer stages */
};
int gemm_setup(const strata_node *n, void *state, const gemm_launch *launch);
int gemm_run(const strata_run *r, const gemm_launch *launch);

#define GEMM_TACTIC(name, ...)                                                           \
    int name##_setup(const strata_node *n, void *state)                                  \
    {                                                                                    \
        return gemm_setup(n, state, &__VA_ARGS__);                                       \
    }                                                                                    \
    int name##_run(const strata_run *r)                                                  \
    {                                                                                    \
        return gemm_run(r, &__VA_ARGS__);                                                \
    }

#endif /* PLUGINS_CONVOLUTION_CUDA_GEMM_CUH */
