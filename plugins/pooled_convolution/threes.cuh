/* SPDX-License-Identifier: Apache-2.0
 *
 * A first layer as most networks have it: an image of up to 3 channels, windows up to
 * 7x7, maxima of 3x3 at every second result, of which one column at most is a pad.
 *
 * Two rows of two pixels, 12 halves, are an element of the image in shared memory: 8 of
 * them are 16 bytes of one plane, the 4 left are 8 bytes of another, beside those of the
 * next element. Windows side by side are core matrices in both, where they lie. Seven
 * rows are then 11 steps of a depth of 16, where steps of 4 pixels of 4 channels are 14:
 * all of three pairs of rows, and of the fourth the first plane alone, where its upper
 * row is.
 *
 * A thread has results of two neighbouring columns, so one of a maximum's three is
 * another thread's, and nothing but maxima goes through shared memory.
 */
#ifndef PLUGINS_POOLED_CONVOLUTION_THREES_CUH
#define PLUGINS_POOLED_CONVOLUTION_THREES_CUH

#include "plugins/convolution/cuda/stem/wgmma_host.cuh"
#include "plugins/pooled_convolution/walk.cuh"

enum {
    CHANNELS = 3,            /* at most */
    FULL = 3,                /* pairs of rows of which a window has both */
    WEIGHTS = 64 * 2 * PIECE /* bytes of a step's weights */
};

/* Groups of THREADS in a block: they share its weights alone. */
template <int Columns_, int Groups_>
struct three_shape : stem_shape<Columns_, 7, 2> {
    typedef stem_shape<Columns_, 7, 2> Image;
    static const int Columns = Columns_, Groups = Groups_, Maxima = Columns / 2;
    static const int Steps = 3 * FULL + 2;
    static const int Stage = Maxima * STAGE_ROW;
    static const int Group = RING * Image::Pair + Stage; /* bytes: rows and a stage */
    static const int First = Steps * WEIGHTS;            /* where groups begin */
    static const int Shared = First + Groups * Group;
};

/* ---- the image's rows -----------------------------------------------------------------
 */

static __device__ inline uint32_t joined(const stem_two<float> &a, int i,
                                         const stem_two<float> &b, int j)
{
    const __half2 both = __floats2half2_rn(a.v[i], b.v[j]);
    uint32_t word;
    memcpy(&word, &both, sizeof word);
    return word;
}

static __device__ inline uint32_t joined(const stem_two<__half> &a, int i,
                                         const stem_two<__half> &b, int j)
{
    return __byte_perm(a.v, b.v, (i ? 0x32 : 0x10) | (j ? 0x7600 : 0x5400));
}

/* A thread's two pixels of two rows, on their way. */
template <typename T>
struct three_piece {
    stem_two<T> plane[2][CHANNELS];

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
            for (int c = 0; c < CHANNELS; c++, x += size)
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

    /* Values of an element: its first row's pixels, then its second one's. */
    __device__ inline uint32_t two(int k) const
    {
        const int n = k + 1;
        return joined(plane[k / 6][k % 3], k % 6 / 3, plane[n / 6][n % 3], n % 6 / 3);
    }

    template <class S>
    __device__ inline void store(uint8_t *ring, int32_t pair) const
    {
        uint8_t *to = ring + (pair & (RING - 1)) * S::Pair + threadIdx.x * PIECE;
        if (threadIdx.x >= S::Pieces)
            return;
        const uint2 left = make_uint2(two(8), two(10));
        *(uint4 *)to = make_uint4(two(0), two(2), two(4), two(6));
        *(uint2 *)(to + S::Row) = left;
        if (threadIdx.x > 0)
            *(uint2 *)(to + S::Row - PIECE / 2) = left;
    }
};

/* All pairs of rows under rows of windows from p on. */
template <typename T, class S>
static __device__ inline void
three_fill(const stem_wgmma_job &job, const stem_strip<T> &at, uint8_t *ring, int32_t p)
{
    three_piece<T> piece[S::Pairs];
#pragma unroll
    for (int i = 0; i < S::Pairs; i++)
        piece[i].load(job, at, p + i);
#pragma unroll
    for (int i = 0; i < S::Pairs; i++)
        piece[i].template store<S>(ring, p + i);
}

/* ---- the product ----------------------------------------------------------------------
 */

#define MULTIPLY_SHARED(n, names, a, b, add)                                             \
    "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.f16.f16 {" names "}, " a ", " b       \
    ", " add ", 1, 1, 0, 0;\n"

/* As with weights in registers. */
#define DEFINE_SHARED(n, columns, a, b)                                                  \
    template <bool Add>                                                                  \
    static __device__ inline void multiply(float(&d)[n][4], uint64_t x, uint64_t y)      \
    {                                                                                    \
        if constexpr (Add)                                                               \
            asm volatile(MULTIPLY_SHARED(columns, NAMES_##n, a, b, "1")                  \
                         : SUMS_##n("+f", d)                                             \
                         : "l"(x), "l"(y));                                              \
        else                                                                             \
            asm volatile(MULTIPLY_SHARED(columns, NAMES_##n, a, b, "0")                  \
                         : SUMS_##n("=f", d)                                             \
                         : "l"(x), "l"(y));                                              \
    }
DEFINE_SHARED(8, "64", "%32", "%33")
DEFINE_SHARED(14, "112", "%56", "%57")

/* A descriptor's upper half is how far apart groups of 8 rows are, its lower one how far
 * the halves of the depth are and the address, to which steps are added. */
static __device__ inline uint32_t lower(uint32_t address, uint32_t apart)
{
    return address / PIECE | apart / PIECE << 16;
}

static __device__ inline uint64_t descriptor(uint32_t lower, uint32_t groups)
{
    return (uint64_t)(groups / PIECE) << 32 | lower;
}

/* Element of a step's weights. */
static __device__ inline __half three_weight(const stem_wgmma_pack_job &job,
                                             int32_t filter, int32_t step, int32_t depth)
{
    const int32_t i = depth % 8, two = step % 3 * 2 + depth / 8;
    const int32_t element = step % 3 < 2 ? two : depth / 8 * 2 + i / 4;
    const int32_t k = step % 3 < 2 ? i : 8 + i % 4, c = k % CHANNELS;
    const int32_t row = step / 3 * 2 + k / 6, tap = element * 2 + k / 3 % 2 - job.shift;
    const bool real = filter < job.filters && c < job.channels && row < job.kernel_h &&
                      tap >= 0 && tap < job.kernel_w;
    const int32_t from = (filter * job.channels + c) * job.kernel_h + row;
    return __float2half_rn(real ? job.weight[from * job.kernel_w + tap] : 0.0f);
}

static __global__ void three_pack_kernel(stem_wgmma_pack_job job)
{
    const int32_t i = (int32_t)(blockIdx.x * CUDA_BLOCK + threadIdx.x);
    if (i >= job.size)
        return;
    const int32_t step = i / (8 * THREADS) % job.steps;
    const int32_t block = i / (8 * THREADS * job.steps);
    const int32_t m = i / 128 % 8 * 8 + i / 8 % 8, depth = i / 64 % 2 * 8 + i % 8;
    job.packed[i] = three_weight(job, block * FILTERS + m, step, depth);
}

/* The block's weights. */
template <class S>
static __device__ inline void three_take(uint8_t *memory, const uint4 *from)
{
    uint4 *to = (uint4 *)memory + threadIdx.x;
    from += blockIdx.y * S::Steps * THREADS + threadIdx.x;
#pragma unroll
    for (int i = 0; i < S::Steps; i += S::Groups)
        if (i + threadIdx.y < S::Steps)
            to[(i + threadIdx.y) * THREADS] = __ldg(from + (i + threadIdx.y) * THREADS);
    publish_shared();
    __syncthreads();
}

/* Threads of a group wait for each other; groups go on at their own pace. */
static __device__ inline void group_sync(void)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(threadIdx.y + 1), "n"((int)THREADS)
                 : "memory");
}

/* Row p of windows: of each pair of rows two steps of the first plane, two elements each,
 * and one of the second, in which every other element has its neighbour's. */
template <class S, int N>
static __device__ inline void three_multiply(float (&sum)[N][4], uint32_t memory,
                                             uint32_t ring, int32_t p)
{
    const uint32_t weights = lower(memory, 8 * PIECE);
    const uint32_t first = lower(ring, PIECE);
    const uint32_t second = lower(ring + S::Row, 2 * PIECE);
    multiply_begin();
#pragma unroll
    for (int s = 0; s < S::Steps; s++) {
        const uint32_t pair = ((p + s / 3) & (RING - 1)) * (S::Pair / PIECE);
        const uint64_t factor = descriptor(weights + s * (WEIGHTS / PIECE), 16 * PIECE);
        const uint64_t windows =
            descriptor(s % 3 < 2 ? first + s % 3 * 2 + pair : second + pair, 8 * PIECE);
        if (s == 0)
            multiply<false>(sum, factor, windows);
        else
            multiply<true>(sum, factor, windows);
    }
    multiply_commit();
}

/* ---- maxima ---------------------------------------------------------------------------
 */

static __device__ inline uint32_t larger(uint32_t a, uint32_t b)
{
    __half2 x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = __hmax2_nan(x, y);
    memcpy(&a, &x, sizeof a);
    return a;
}

/* A thread's share of a row, rounded: of each 8 columns an even and the odd one behind
 * it, of two filters each, 8 apart. */
template <int N>
struct three_row {
    uint32_t v[N][2];

    three_row(void) = default;

    __device__ inline three_row(const stem_tail &tail, float (&sum)[N][4])
    {
        tail.shifted(sum);
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const __half2 both = __floats2half2_rn(sum[j][i], sum[j][2 + i]);
                memcpy(&v[j][i], &both, sizeof both);
            }
    }

    __device__ inline void clear(void)
    {
#pragma unroll
        for (int j = 0; j < N; j++)
            v[j][0] = v[j][1] = NONE;
    }

    __device__ inline void add(const three_row &row)
    {
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                v[j][i] = larger(v[j][i], row.v[j][i]);
    }

    /* Columns from `end` on are none. */
    __device__ inline void cut(int32_t end)
    {
        end -= threadIdx.x % 4 * 2;
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                v[j][i] = 8 * j + i < end ? v[j][i] : NONE;
    }

    /* The largest of each two columns and the one before, or behind: 4 maxima of 8. */
    template <bool Before>
    __device__ inline void across(uint32_t (&most)[N]) const
    {
        const uint32_t lane = threadIdx.x % 4, far = Before ? 3 : 0;
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int next = Before ? j - 1 : j + 1, side = Before;
            const uint32_t other = next < 0 || next >= N ? NONE : v[next][side];
            const uint32_t mine = lane == far ? other : v[j][side];
            const uint32_t third =
                __shfl_sync(0xffffffff, mine, (lane + (Before ? 3 : 1)) % 4, 4);
            most[j] = larger(larger(v[j][0], v[j][1]), third);
        }
    }
};

/* Maxima to `stage`, channels last: row 8*i + k%2*4 + k/2 of a stage is of what a matrix
 * of 8 x 8 has in row k. */
template <int N>
static __device__ inline void three_stage(uint32_t stage, const stem_tail &tail,
                                          const uint32_t (&most)[N])
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t mask = (tail.mask[0] & 0xffff) | (tail.mask[1] & 0xffff0000);
    uint32_t v[N];
    stage += (lane / 16 * 8 + lane % 2 * 4 + lane % 8 / 2) * STAGE_ROW +
             (warp * 2 + lane / 8 % 2) * PIECE;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        const uint32_t a = tail.bounded(most[j]) & mask;
        const uint32_t b = tail.bounded(most[j + 1]) & mask;
        v[j] = __byte_perm(a, b, 0x5410);
        v[j + 1] = __byte_perm(a, b, 0x7632);
    }
#pragma unroll
    for (int j = 0; j + 4 <= N; j += 4) {
        const uint32_t four[4] = {v[j], v[j + 1], v[j + 2], v[j + 3]};
        store_turned(stage + j * 4 * STAGE_ROW, four);
    }
    if (N % 4) {
        const uint32_t two[2] = {v[N - 2], v[N - 1]};
        store_turned(stage + (N - 2) * 4 * STAGE_ROW, two);
    }
}

/* ---- a block's way down one tile ------------------------------------------------------
 */

template <class S>
struct three_way {
    const pooled_job &job;
    const stem_tail &tail;
    const pooled_result<S> &result;
    uint8_t *stage;                        /* of a row of maxima */
    typename pooled_result<S>::Element *y; /* the thread's first piece of the next one */
    int32_t count, skip;   /* maxima of a row, behind the thread's; before them */
    int32_t columns;       /* of results that there are */
    int32_t whole, before; /* the last rows of the next maxima, of those before */
    bool ready;            /* a row of maxima is to be written */
    three_row<S::Columns / 8> most;

    __device__ inline three_way(const pooled_job &job_, const pooled_row &at,
                                const stem_tail &tail_, const pooled_result<S> &result_,
                                uint8_t *ring, uint32_t filter)
        : job(job_), tail(tail_), result(result_), stage(ring + RING * S::Pair),
          skip(at.w - at.q / 2), columns(job.stem.out_w - at.q), before(-2), ready(false)
    {
        const int32_t piece = threadIdx.x % 8, first = threadIdx.x / 8;
        const bool none = filter + piece * 8 >= job.stem.stored;
        whole = min(at.h * 2 + 3 - job.begin_h, job.stem.out_h) - 1;
        count = none ? 0 : min(job.across, job.wide - at.w) - first;
        y = (typename pooled_result<S>::Element *)job.stem.y + filter + piece * 8 +
            (((size_t)at.image * job.stem.high + at.h) * job.wide + at.w + first) *
                job.pitch;
        most.clear();
    }

    /* Row p, which begins the next maxima where it ends one. The stage may be still read
     * if the row before ended one, too. */
    __device__ inline void keep(float (&sum)[S::Columns / 8][4], int32_t p)
    {
        three_row<S::Columns / 8> row(tail, sum);
        if (job.cut && columns < S::Columns)
            row.cut(columns);
        most.add(row);
        if (p != whole)
            return;
        if (before == p - 1)
            group_sync();
        uint32_t all[S::Columns / 8];
        if (job.begin_w)
            most.template across<true>(all);
        else
            most.template across<false>(all);
        three_stage(shared_address(stage), tail, all);
        most = row;
        before = p;
        whole = min(p + 2, job.stem.out_h - 1);
        ready = true;
    }

    /* Behind a barrier; but the first, a tile begins a maximum early. */
    __device__ inline void write(void)
    {
        if (!ready)
            return;
        const uint8_t *from =
            stage + (threadIdx.x / 8 + skip) * STAGE_ROW + threadIdx.x % 8 * PIECE;
        const size_t next = (size_t)job.pitch * (THREADS / 8);
#pragma unroll
        for (int i = 0; i < (S::Maxima + 15) / 16; i++)
            if (i * 16 < count)
                result.put(y + i * next, *(const uint4 *)(from + i * 16 * STAGE_ROW));
        y += (size_t)job.wide * job.pitch;
        ready = false;
    }
};

/* Rows of maxima from at.h to `last` of one tile. */
template <typename T, class S>
static __device__ inline void three_walk(const pooled_job &job, const pooled_row &at,
                                         int32_t last, const stem_tail &tail,
                                         const pooled_result<S> &result, uint8_t *memory,
                                         uint8_t *ring, uint32_t filter)
{
    const stem_wgmma_job &stem = job.stem;
    const stem_strip<T> strip(stem, at.image, max(at.h * 2 - job.begin_h, 0), at.q);
    const int32_t end = min((last - 1) * 2 + 3 - job.begin_h, stem.out_h);
    three_way<S> way(job, at, tail, result, ring, filter);
    three_piece<T> next;
    three_fill<T, S>(stem, strip, ring, strip.p);
    next.load(stem, strip, strip.p + S::Pairs);
    publish_shared();
    group_sync();
    for (int32_t p = strip.p; p < end; p++) {
        float sum[S::Columns / 8][4];
        three_multiply<S>(sum, shared_address(memory), shared_address(ring), p);
        next.template store<S>(ring, p + S::Pairs);
        publish_shared();
        next.load(stem, strip, p + S::Pairs + 1);
        way.write();
        stem_wait<0>(sum);
        way.keep(sum, p);
        group_sync();
    }
    way.write();
}

#endif /* PLUGINS_POOLED_CONVOLUTION_THREES_CUH */
