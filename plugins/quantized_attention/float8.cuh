/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of E4M3 on Hopper's tensor cores, what a warpgroup does with its 64 queries.
 * Q and K are read as they are, along their rows. Tensor cores want the depth along the
 * rows of both factors, so V comes turned, by a pass before, with the keys of each 16 in
 * the order in which a thread's scores become its part of P, and with a row of ones: its
 * product is the sum of the P that were rounded, so that rounding moves weight between
 * values and makes none.
 *
 * P is exp2(score - largest + FLOAT8_LIFT): E4M3 has 2^-9 to 448. The chip keeps 14 bits
 * of a sum, so a tile's outputs stay there alone and are added to the total in FP32.
 */
#ifndef PLUGINS_QUANTIZED_ATTENTION_FLOAT8_CUH
#define PLUGINS_QUANTIZED_ATTENTION_FLOAT8_CUH

#include "plugins/attention/scores.cuh"

enum {
    FLOAT8_KEYS = 128, /* of a tile */
    FLOAT8_MORE = 8,   /* rows of turned V behind a head's: ones, and zeros */
    FLOAT8_LIFT = 8    /* powers of two: the largest P is 256 */
};

/* Odd: scores go through a soft cap or a mask. */
template <int Dim_, int Groups_, int Stages_, bool Odd_ = false>
struct float8_tile {
    typedef __nv_fp8_e4m3 Element;
    static const bool Ring = true, Across = true, Odd = Odd_;
    static const int Dim = Dim_, Keys = FLOAT8_KEYS, Groups = Groups_, Stages = Stages_;
    static const int Columns = Dim + FLOAT8_MORE; /* of P*V */
    static const int Rows = Groups * 64, Threads = (Groups + 1) * 128;
    static const int Panels = 1;
    static const int QBytes = Rows * Dim, QStages = 2;
    static const int MaskBytes = Odd ? Groups * 4 * Keys * 4 : 0;
    static const int KBytes = Columns * Keys, StageBytes = 2 * KBytes;
    static const int Fixed = 2048 + MaskBytes + QStages * QBytes;
    static const int Producer = 24, Consumer = 240; /* registers of threads */
    static const bool Beside = !Odd; /* outputs are made beside the next scores */
    static_assert(Groups == 2, "registers");
    static_assert(KBytes % 1024 == 0 && Keys * Dim <= KBytes, "swizzled tiles");
    static_assert(Fixed + Stages * StageBytes <= MOST_BYTES, "tiles fit");
    static_assert(Stages * 6 * 8 <= 512, "barriers fit");

    static __device__ inline uint32_t tile_bytes(int value)
    {
        return value ? KBytes : Keys * Dim;
    }
};

/* Scales of one element each; to: divisor of outputs of E4M3. */
struct float8_job : hopper_job {
    const float *q_scale, *k_scale, *v_scale, *to_scale;
    int32_t to; /* dtype of y */
};

/* ---- products -------------------------------------------------------------------------
 */

#define N_36 N_32 ",%32,%33,%34,%35"
#define N_68 N_64 ",%64,%65,%66,%67"
#define O_36(f, d) O_32(f, d), O_1(f, d, 8)
#define O_68(f, d) O_64(f, d), O_1(f, d, 16)

/* d = a*b + (add ? d : 0) of 64 x N, a depth of 32: a in registers, the depth along the
 * rows of b. */
template <int N>
struct float8_weighted;

#define WEIGHTED(n, count, a, b, c, e, f, g)                                             \
    template <>                                                                          \
    struct float8_weighted<n> {                                                          \
        static __device__ inline void                                                    \
        multiply(float (&d)[n / 8][4], const uint32_t (&x)[4], uint64_t y, int32_t add)  \
        {                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #g ", 0;\n"                \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k32.f32.e4m3.e4m3"      \
                         " {" N_##count "}, {%" #a ", %" #b ", %" #c ", %" #e "}, %" #f  \
                                        ", p, 1, 1;\n}\n"                                \
                         : O_##count("+f", d)                                            \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y),           \
                           "r"(add));                                                    \
        }                                                                                \
    };
WEIGHTED(72, 36, 36, 37, 38, 39, 40, 41)
WEIGHTED(136, 68, 68, 69, 70, 71, 72, 73)

/* ---- a tile ---------------------------------------------------------------------------
 */

static __device__ inline uint32_t float8_pair(float x, float y)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(x, y), __NV_SATFINITE, __NV_E4M3);
}

/* Scores of two neighbouring eights are a thread's four of a depth of 16: by this order
 * turned V goes, too. */
template <class C>
static __device__ inline void float8_exponentials(uint32_t (&p)[C::Keys / 32][4],
                                                  const float (&s)[C::Keys / 8][4],
                                                  const hopper_rows &rows, float scale)
{
    score_exponent exponent[2];
    for (int r = 0; r < 2; r++) {
        exponent[r] = exponent_below(rows.largest[r], scale);
        exponent[r].base -= FLOAT8_LIFT;
    }
#pragma unroll
    for (int m = 0; m < C::Keys / 16; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float y[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                y[e] = exp2_near(exponent[r](s[2 * m + e / 2][2 * r + e % 2]));
            p[m / 2][m % 2 * 2 + r] = float8_pair(y[0], y[1]) | float8_pair(y[2], y[3])
                                                                    << 16;
        }
}

template <class C>
static __device__ inline void float8_scores(float (&s)[C::Keys / 8][4], uint32_t q,
                                            uint32_t k)
{
    const uint64_t a = rows_descriptor<C::Dim>(q), b = rows_descriptor<C::Dim>(k);
    multiply_begin();
#pragma unroll
    for (int d = 0; d < C::Dim; d += 32)
        product<__nv_fp8_e4m3, C::Keys>::scores(s, a + d / 16, b + d / 16, d > 0);
    multiply_commit();
}

template <class C>
static __device__ inline void float8_outputs(float (&o)[C::Columns / 8][4],
                                             const uint32_t (&p)[C::Keys / 32][4],
                                             uint32_t v)
{
    const uint64_t b = rows_descriptor<C::Keys>(v);
    multiply_begin();
#pragma unroll
    for (int i = 0; i < C::Keys / 32; i++)
        float8_weighted<C::Columns>::multiply(o, p[i], b + i * 2, i > 0);
    multiply_commit();
}

/* ---- storing --------------------------------------------------------------------------
 */

/* Sixteen columns of a row, of which a thread has x[0], x[1] of the first eight and x[2],
 * x[3] of the others: neighbours swap halves, so that each stores four that lie side by
 * side; lanes of odd numbers those of the second eight. */
template <typename T>
static __device__ inline void float8_put(T *to, const float (&x)[4], bool real)
{
    const bool odd = threadIdx.x % 2;
    const int place = odd * 8 + threadIdx.x % 4 / 2 * 4;
    uint32_t words[2];
    if constexpr (sizeof(T) == 1) {
        const uint32_t mine = float8_pair(x[0], x[1]), other = float8_pair(x[2], x[3]);
        const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? mine : other, 1);
        words[0] = odd ? got | other << 16 : mine | got << 16;
        if (real)
            *(uint32_t *)(to + place) = words[0];
    } else {
        const uint32_t mine = pack_two(T(), x[0], x[1]),
                       other = pack_two(T(), x[2], x[3]);
        const uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? mine : other, 1);
        words[0] = odd ? got : mine;
        words[1] = odd ? other : got;
        if (real)
            *(uint2 *)(to + place) = make_uint2(words[0], words[1]);
    }
}

static __device__ inline void float8_put(float *to, const float (&x)[4], bool real)
{
    const int place = threadIdx.x % 4 * 2;
    if (!real)
        return;
    *(float2 *)(to + place) = make_float2(x[0], x[1]);
    *(float2 *)(to + place + 8) = make_float2(x[2], x[3]);
}

/* ---- a warpgroup ----------------------------------------------------------------------
 */

template <class C>
struct float8_consumer {
    typedef float Sums[C::Columns / 8][4];
    typedef float Scores[C::Keys / 8][4];
    typedef uint32_t Weights[C::Keys / 32][4];

    const float8_job &job;
    const hopper_memory<C> &memory;
    const int group;
    const float scale; /* of scores */
    uint32_t q;        /* address of its rows */
    hopper_part part;
    hopper_rows rows;
    float shrink[2]; /* from the sums' unit to that of the tile under way */
    hopper_stage<C::QStages> queries;
    hopper_stage<C::Stages> k, v;

    __device__ inline float8_consumer(const float8_job &job,
                                      const hopper_memory<C> &memory, int group)
        : job(job), memory(memory), group(group),
          scale(job.scale * __ldg(job.q_scale) * __ldg(job.k_scale))
    {
    }

    __device__ inline int32_t first_row(void) const
    {
        return part.row + group * 64 +
               (int32_t)(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4);
    }

    __device__ inline void start_rows(void)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t row = first_row() + r * 8;
            int32_t begin, end;
            hopper_bounds(job, part, row, &begin, &end);
            rows.low[r] = begin;
            rows.span[r] = row < job.plan.length ? (uint32_t)(end - begin) : 0;
            rows.largest[r] = row < job.plan.length ? -INFINITY : 0;
        }
    }

    /* Warpgroups issue their products one after the other, round and round. */
    __device__ inline void await_turn(void) const
    {
        named_sync(1 + group, 256);
    }
    __device__ inline void pass_turn(void) const
    {
        named_arrive(1 + (group + 1) % C::Groups, 256);
    }

    __device__ inline void await(int value, const hopper_stage<C::Stages> &stage) const
    {
        barrier_wait(memory.full(value, stage.at), stage.parity);
    }
    __device__ inline void release(int value, hopper_stage<C::Stages> &stage) const
    {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(memory.empty(value, stage.at));
        stage.advance();
    }

    /* Whether a mask is the same for all queries. */
    __device__ inline bool masks_rows(void) const
    {
        return C::Odd && job.mask && job.plan.mask.row == 0;
    }

    /* Scores to P; by: what earlier sums are to be multiplied by. */
    template <bool Masked>
    __device__ inline void softmax(Weights &p, Scores &s, float (&by)[2], int32_t tile,
                                   const mask_row &mask)
    {
        const int32_t column = tile * C::Keys + (int32_t)(threadIdx.x % 4 * 2);
        if (C::Odd) {
            const uint32_t shared =
                memory.masks + (group * 4 + threadIdx.x % 128 / 32) * C::Keys * 4;
            if (masks_rows())
                mask.share(shared);
            finish_odd(s, job, part, rows, scale, first_row(), column,
                       masks_rows() ? shared : 0);
        } else if (Masked)
            close_unseen(s, rows, column);
        find_largest<C>(s, rows, by, C::Odd ? 1 : scale);
        float8_exponentials<C>(p, s, rows, C::Odd ? 1 : scale);
    }

    /* The tile's outputs are there: the sums become those before, in its unit, and it. */
    __device__ inline void add(Sums &o, Sums &fresh)
    {
        multiply_wait<0>();
        hold(fresh);
        release(1, v);
#pragma unroll
        for (int j = 0; j < C::Columns / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                o[j][e] = fmaf(o[j][e], shrink[e / 2], fresh[j][e]);
    }

    /* The scores of a tile, and beside them the outputs of the one before. */
    template <bool Masked>
    __device__ inline void step(Sums &o, const Weights &p, Weights &next, int32_t tile)
    {
        Sums fresh;
        Scores s;
        float by[2];
        await(0, k);
        await_turn();
        hold(s);
        float8_scores<C>(s, q, memory.tile(0, k.at));
        await(1, v);
        hold(fresh);
        float8_outputs<C>(fresh, p, memory.tile(1, v.at));
        pass_turn();
        multiply_wait<1>();
        hold(s);
        release(0, k);
        softmax<Masked>(next, s, by, tile, mask_row());
        add(o, fresh);
        shrink[0] = by[0];
        shrink[1] = by[1];
    }

    /* Tiles from `tile` down to `last`. P lies in two arrays in turns, for the product
     * still reads one. */
    template <bool Masked>
    __device__ inline void walk_down(Sums &o, Weights &p, int32_t &tile, int32_t last)
    {
        Weights other;
        for (; tile > last; tile -= 2) {
            step<Masked>(o, p, other, tile);
            step<Masked>(o, other, p, tile - 1);
        }
        if (tile == last) {
            step<Masked>(o, p, other, tile);
            copy_words(p, other);
            tile--;
        }
    }

    /* The scores of the tile that k is at, with nothing beside them. */
    __device__ inline void score(Scores &s)
    {
        await(0, k);
        hold(s);
        float8_scores<C>(s, q, memory.tile(0, k.at));
        multiply_wait<0>();
        hold(s);
        release(0, k);
    }

    __device__ inline void weigh(Sums &o, const Weights &p)
    {
        Sums fresh;
        await(1, v);
        hold(fresh);
        float8_outputs<C>(fresh, p, memory.tile(1, v.at));
        add(o, fresh);
    }

    __device__ inline void start(Weights &p, int32_t tile)
    {
        Scores s;
        mask_row mask;
        if (masks_rows())
            mask.load(job, part, tile);
        score(s);
        softmax<true>(p, s, shrink, tile, mask);
    }

    /* Sums of all tiles; there is at least one. Odd scores leave no registers for the
     * outputs beside them. */
    __device__ inline void walk(Sums &o)
    {
        Weights p;
        int32_t tile = part.last - 1;
        start(p, tile--);
        if constexpr (!C::Beside)
            for (; tile >= part.first; tile--) {
                weigh(o, p);
                start(p, tile);
            }
        else {
            walk_down<true>(o, p, tile, part.whole_end);
            walk_down<false>(o, p, tile, part.whole);
            walk_down<true>(o, p, tile, part.first);
        }
        weigh(o, p);
    }

    /* Means of rows; the column of ones is lane 0's of four. */
    template <typename T>
    __device__ inline void store_as(const Sums &o) const
    {
        const attention_view &y = job.plan.y;
        const float unit =
            __ldg(job.v_scale) / (sizeof(T) == 1 ? __ldg(job.to_scale) : 1);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int32_t row = first_row() + r * 8;
            const float sum =
                __shfl_sync(0xffffffffu, o[C::Dim / 8][2 * r], threadIdx.x % 32 & ~3);
            const float by = sum == 0 ? 0 : unit / sum; /* 0: all keys are masked */
            T *to = (T *)job.y + part.batch * y.batch + part.head * y.head + row * y.row;
#pragma unroll
            for (int j = 0; j < C::Dim / 8; j += 2) {
                const float x[4] = {o[j][2 * r] * by, o[j][2 * r + 1] * by,
                                    o[j + 1][2 * r] * by, o[j + 1][2 * r + 1] * by};
                float8_put(to + j * 8, x,
                           row < job.plan.length && j * 8 < job.plan.v_dim);
            }
        }
    }

    __device__ inline void store(const Sums &o) const
    {
        if (job.to == STRATA_FP16)
            store_as<__half>(o);
        else if (job.to == STRATA_BF16)
            store_as<__nv_bfloat16>(o);
        else if (job.to == STRATA_FP32)
            store_as<float>(o);
        else
            store_as<__nv_fp8_e4m3>(o);
    }

    /* The next part, if there is one. */
    __device__ inline bool run(void)
    {
        Sums o = {};
        barrier_wait(memory.q_full(queries.at), queries.parity);
        part = memory.parts[queries.at];
        if (part.batch < 0)
            return false;
        q = memory.q + queries.at * C::QBytes + group * 64 * C::Dim;
        start_rows();
        if (part.first < part.last)
            walk(o);
        barrier_arrive(memory.q_empty(queries.at));
        queries.advance();
        store(o);
        return true;
    }
};

#endif /* PLUGINS_QUANTIZED_ATTENTION_FLOAT8_CUH */
