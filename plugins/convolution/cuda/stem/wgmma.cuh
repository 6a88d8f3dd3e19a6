/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer on Hopper's tensor cores, what a block does with one row of windows:
 * the image's rows into shared memory, the product, its tail.
 *
 * In shared memory a pixel is 4 halves, so two pixels, a step of the window, are 16
 * bytes, and the rows of a core matrix as wgmma reads one, 8 x 16 bytes, are the pairs of
 * 8 windows side by side where they lie: nothing is ever laid out for the product. Core
 * matrices of neighbouring pairs overlap. Weights are the other factor; they stay in
 * registers.
 *
 * A window begins on an even pixel and has the rows of its shape, so up to three taps
 * beside it and rows below it have weights of zero: there an infinite pixel, or NaN,
 * makes NaN of a window that only touches it.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_STEM_WGMMA_CUH
#define PLUGINS_CONVOLUTION_CUDA_STEM_WGMMA_CUH

#include "kernels/overlap.cuh"
#include "plugins/common/product/order.cuh"
#include "plugins/common/product/turned_moves.cuh"
#include "plugins/convolution/cuda/stem/check.cuh"

enum {
    THREADS = 128,
    STEP = 4,       /* taps of one product: a depth of 16 */
    RING = 8,       /* pairs of rows; a power of two */
    PIECE = 16,     /* bytes of two pixels */
    STAGE_ROW = 144 /* bytes of a pixel's filters, 16 of them to spread banks */
};

/* Columns windows side by side, of at most Height rows and PerRow*4 taps in each; Down
 * rows of windows at once, for as many times fewer filters, whose weights lie two rows of
 * the image lower for each: a product's depth is then that of all these rows. */
template <int Columns_, int Height_, int PerRow_, int Down_ = 1>
struct stem_shape {
    static const int Columns = Columns_, PerRow = PerRow_, Down = Down_;
    static const int Filters = FILTERS / Down;
    static const int Height = Height_ + 2 * (Down - 1);
    static const int Steps = Height * PerRow;
    static const int Pairs = (Height + 1) / 2;
    static const int Pieces = Columns + PerRow * STEP / 2 - 1; /* of a row */
    static const int Row = (Pieces + 1) * PIECE, Pair = 2 * Row;
    static const int Stage = Columns * STAGE_ROW;
    static const int Shared = RING * Pair + 2 * Stage;
    static_assert(Pieces <= THREADS && Pairs + Down <= RING, "a thread loads a piece");
};

struct stem_wgmma_job {
    const void *x; /* planes */
    __half *y;
    const uint4 *weight; /* [block of filters][step][thread] */
    const float *bias;   /* or NULL */
    epilogue_args epilogue;
    convolution_bounds bounds;
    int32_t channels, height, width, out_h, out_w;
    int32_t begin_h, begin_w;         /* begin_w: even */
    bool even;                        /* pairs of pixels are aligned */
    uint32_t filters, stored, across; /* across: tiles */
    uint32_t high, rows;              /* what blocks share: of a tile, of all */
};

/* ---- instructions ---------------------------------------------------------------------
 */

#define SUMS(c, s) c(s[0]), c(s[1]), c(s[2]), c(s[3])
#define SUMS_4(c, d) SUMS(c, d[0]), SUMS(c, d[1]), SUMS(c, d[2]), SUMS(c, d[3])
#define SUMS_6(c, d) SUMS_4(c, d), SUMS(c, d[4]), SUMS(c, d[5])
#define SUMS_8(c, d) SUMS_6(c, d), SUMS(c, d[6]), SUMS(c, d[7])
#define SUMS_10(c, d) SUMS_8(c, d), SUMS(c, d[8]), SUMS(c, d[9])
#define SUMS_14(c, d)                                                                    \
    SUMS_10(c, d), SUMS(c, d[10]), SUMS(c, d[11]), SUMS(c, d[12]), SUMS(c, d[13])
#define NAMES_4 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_6 NAMES_4 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define NAMES_8 NAMES_6 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_10 NAMES_8 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define NAMES_14                                                                         \
    NAMES_10 ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "  \
             "%54, %55"
#define MULTIPLY(n, names, a, b, add)                                                    \
    "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.f16.f16 {" names "}, " a ", " b       \
    ", " add ", 1, 1, 0;\n"

/* d = a*b, or d += a*b: 64 filters x 8*N windows, a depth of 16. */
#define DEFINE_MULTIPLY(n, columns, a, b)                                                \
    template <bool Add>                                                                  \
    static __device__ inline void multiply(float(&d)[n][4], const uint4 &x, uint64_t y)  \
    {                                                                                    \
        if constexpr (Add)                                                               \
            asm volatile(MULTIPLY(columns, NAMES_##n, a, b, "1")                         \
                         : SUMS_##n("+f", d)                                             \
                         : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "l"(y));              \
        else                                                                             \
            asm volatile(MULTIPLY(columns, NAMES_##n, a, b, "0")                         \
                         : SUMS_##n("=f", d)                                             \
                         : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "l"(y));              \
    }
DEFINE_MULTIPLY(4, "32", "{%16, %17, %18, %19}", "%20")
DEFINE_MULTIPLY(6, "48", "{%24, %25, %26, %27}", "%28")
DEFINE_MULTIPLY(8, "64", "{%32, %33, %34, %35}", "%36")
DEFINE_MULTIPLY(10, "80", "{%40, %41, %42, %43}", "%44")
DEFINE_MULTIPLY(14, "112", "{%56, %57, %58, %59}", "%60")

/* No swizzle: the second half of the depth lies 16 bytes on, the next 8 windows 128. */
static __device__ inline uint64_t windows_descriptor(uint32_t address)
{
    return (uint64_t)(address >> 4 & 0x3fff) | UINT64_C(1) << 16 | UINT64_C(8) << 32;
}

/* ---- the image's rows -----------------------------------------------------------------
 */

/* Where a block is: the rows of one image under one tile of columns. Made once the kernel
 * before has ended: loads through x cannot be moved before it. */
template <typename T>
struct stem_strip {
    const T *x;     /* the thread's first pixel in row 0 of plane 0 */
    int32_t column; /* that pixel */
    uint32_t image;
    int32_t p, q; /* row, first column of the output */

    __device__ inline stem_strip(const stem_wgmma_job &job, uint32_t image_, int32_t p_,
                                 int32_t q_)
        : column(2 * (q_ + (int32_t)threadIdx.x) - job.begin_w), image(image_), p(p_),
          q(q_)
    {
        x = (const T *)job.x + (int64_t)image * job.channels * job.height * job.width +
            column;
        asm volatile("" : "+l"(x));
    }
};

/* Two pixels of a plane as they were loaded: anything done to them would wait for them.
 * Those of `Even` rows come in one access; of others two halves are joined at once. */
template <typename T>
struct stem_two;

template <>
struct stem_two<float> {
    float v[2];

    template <bool Even>
    __device__ inline void load(const float *x, bool first, bool second)
    {
        if constexpr (Even) {
            const pack<float, 2> both = load_pack_if<float, 2>(x, first);
            v[0] = both.v[0], v[1] = both.v[1];
        } else {
            v[0] = load_pack_if<float, 1>(x, first).v[0];
            v[1] = load_pack_if<float, 1>(x + 1, second).v[0];
        }
    }

    __device__ inline __half2 halves(void) const
    {
        return __floats2half2_rn(v[0], v[1]);
    }
};

template <>
struct stem_two<__half> {
    uint32_t v;

    template <bool Even>
    __device__ inline void load(const __half *x, bool first, bool second)
    {
        uint16_t low, high;
        if constexpr (Even) {
            load_if(v, x, first);
        } else {
            load_if(low, x, first);
            load_if(high, x + 1, second);
            v = (uint32_t)high << 16 | low;
        }
    }

    __device__ inline __half2 halves(void) const
    {
        __half2 both;
        memcpy(&both, &v, sizeof both);
        return both;
    }
};

/* A thread's two pixels of two rows, on their way. */
template <typename T>
struct stem_piece {
    stem_two<T> plane[2][4];

    /* Zeros outside of the image. */
    template <bool Even>
    __device__ inline void load_as(const stem_wgmma_job &job, const stem_strip<T> &at,
                                   int32_t pair)
    {
        const int32_t size = job.height * job.width;
        const bool first = (uint32_t)at.column < (uint32_t)job.width;
        const bool second = (uint32_t)(at.column + 1) < (uint32_t)job.width;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t h = 2 * pair + r - job.begin_h;
            const int32_t planes = (uint32_t)h < (uint32_t)job.height ? job.channels : 0;
            const T *x = at.x + h * job.width;
#pragma unroll
            for (int c = 0; c < 4; c++, x += size)
                plane[r][c].template load<Even>(x, c < planes && first,
                                                c < planes && second);
        }
    }

    __device__ inline void load(const stem_wgmma_job &job, const stem_strip<T> &at,
                                int32_t pair)
    {
        if (job.even)
            load_as<true>(job, at, pair);
        else
            load_as<false>(job, at, pair);
    }

    template <class S>
    __device__ inline void store(uint8_t *ring, int32_t pair) const
    {
        uint8_t *to = ring + (pair & (RING - 1)) * S::Pair + threadIdx.x * PIECE;
        if (threadIdx.x >= S::Pieces)
            return;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            pack<__half, 8> v;
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const __half2 both = plane[r][c].halves();
                v.v[c] = __low2half(both);
                v.v[4 + c] = __high2half(both);
            }
            store_pack((__half *)(to + r * S::Row), v);
        }
    }
};

/* All pairs of rows under rows of windows from p on. */
template <typename T, class S>
static __device__ inline void stem_fill(const stem_wgmma_job &job,
                                        const stem_strip<T> &at, uint8_t *ring, int32_t p)
{
    stem_piece<T> piece[S::Pairs];
#pragma unroll
    for (int i = 0; i < S::Pairs; i++)
        piece[i].load(job, at, p + i);
#pragma unroll
    for (int i = 0; i < S::Pairs; i++)
        piece[i].template store<S>(ring, p + i);
}

/* The block's weights, a thread's share: they were there before the kernel before. */
template <class S>
static __device__ inline void stem_take(uint4 (&weight)[S::Steps], const uint4 *from)
{
    from += blockIdx.y * S::Steps * THREADS + threadIdx.x;
#pragma unroll
    for (int s = 0; s < S::Steps; s++)
        weight[s] = __ldg(from + s * THREADS);
}

/* ---- the product and its tail ---------------------------------------------------------
 */

/* Row p of windows, or a part of it: a group of the warpgroup's. */
template <class S, int N>
static __device__ inline void stem_multiply(float (&sum)[N][4],
                                            const uint4 (&weight)[S::Steps],
                                            uint32_t ring, int32_t p)
{
    multiply_begin();
#pragma unroll
    for (int s = 0; s < S::Steps; s++) {
        const int r = s / S::PerRow, quad = s % S::PerRow;
        const uint64_t windows =
            windows_descriptor(ring + ((p + r / 2) & (RING - 1)) * S::Pair +
                               r % 2 * S::Row + quad * (STEP / 2 * PIECE));
        if (s == 0)
            multiply<false>(sum, weight[s], windows);
        else
            multiply<true>(sum, weight[s], windows);
    }
    multiply_commit();
}

/* Until at most `Pending` groups are under way; nothing that reads the sums moves before.
 */
template <int Pending, int N>
static __device__ inline void stem_wait(float (&sum)[N][4])
{
    multiply_wait<Pending>();
#pragma unroll
    for (int j = 0; j < N; j++)
        asm volatile("" : SUMS("+f", sum[j]));
}

/* The first of a thread's filters, of the block's. */
template <class S>
static __device__ inline uint32_t stem_filter(void)
{
    return (threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4) % S::Filters;
}

/* What becomes of a thread's sums: of two filters, 8 apart. */
struct stem_tail {
    float scale[2], shift[2];
    bool real[2];
    uint32_t mask[2];  /* of two values; a pad's zeros make NaN of infinite pixels */
    __half2 low, high; /* rounding keeps order, so halves may be bounded, two at once */

    __device__ inline stem_tail(const stem_wgmma_job &job, uint32_t filter)
    {
        for (int i = 0; i < 2; i++) {
            convolution_affine<1> affine;
            affine.load(job.bias, job.epilogue, filter + i * 8, job.filters);
            scale[i] = affine.scale[0];
            shift[i] = affine.shift[0];
            real[i] = filter + i * 8 < job.filters;
            mask[i] = real[i] ? ~0u : 0;
        }
        low = __float2half2_rn(job.bounds.low);
        high = __float2half2_rn(job.bounds.high);
    }

    template <int N>
    __device__ inline void shifted(float (&sum)[N][4]) const
    {
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[j][i] = fmaf(sum[j][i], scale[i / 2], shift[i / 2]);
    }

    template <int N>
    __device__ inline void finish(const stem_wgmma_job &job, float (&sum)[N][4]) const
    {
        shifted(sum);
        if (job.bounds.plain)
            return;
#pragma unroll
        for (int j = 0; j < N; j++) {
            activate_all(sum[j], job.epilogue.activation);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[j][i] = real[i / 2] ? sum[j][i] : 0;
        }
    }

    __device__ inline uint32_t rounded(float a, float b) const
    {
        return bounded(__floats2half2_rn(a, b));
    }

    __device__ inline uint32_t bounded(uint32_t x) const
    {
        __half2 both;
        memcpy(&both, &x, sizeof both);
        return bounded(both);
    }

    __device__ inline uint32_t bounded(__half2 x) const
    {
        const __half2 y = __hmin2_nan(__hmax2_nan(x, low), high);
        uint32_t word;
        memcpy(&word, &y, sizeof word);
        return word;
    }
};

/* The warp's 16 filters of a part's windows: a row of `stage` is a window. */
template <int N>
static __device__ inline void stem_stage(uint32_t stage, const stem_tail &tail,
                                         const float (&sum)[N][4])
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    stage += (lane / 16 * 8 + lane % 8) * STAGE_ROW + (warp * 2 + lane / 8 % 2) * PIECE;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *two = &sum[j + i / 2][i % 2 * 2];
            v[i] = tail.rounded(two[0], two[1]) & tail.mask[i % 2];
        }
        store_turned(stage + j * 8 * STAGE_ROW, v);
    }
}

/* To `y`, of the first row's first window and the block's first filter: so many windows
 * of each of `down` rows. */
template <class S>
static __device__ inline void stem_write(const stem_wgmma_job &job, const uint8_t *stage,
                                         __half *y, int32_t windows, int32_t down,
                                         uint32_t filters)
{
    const uint32_t place = threadIdx.x % 8, first = threadIdx.x / 8;
    const uint32_t row = place / (8 / S::Down), piece = place % (8 / S::Down);
    uint4 v[S::Columns / 16];
    if (piece * 8 >= filters || (int32_t)row >= down)
        windows = 0;
    y += ((size_t)row * job.out_w + first) * job.stored + piece * 8;
#pragma unroll
    for (int i = 0; i < S::Columns / 16; i++) /* all at once, wanted or not */
        v[i] = *(const uint4 *)(stage + (first + i * 16) * STAGE_ROW + place * PIECE);
#pragma unroll
    for (int i = 0; i < S::Columns / 16; i++)
        if ((int32_t)first + i * 16 < windows)
            *(uint4 *)(y + i * 16 * (size_t)job.stored) = v[i];
}

#endif /* PLUGINS_CONVOLUTION_CUDA_STEM_WGMMA_CUH */
