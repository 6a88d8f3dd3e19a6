/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores, what a block does with 64 queries a warpgroup of
 * one head. Tiles of keys are walked from the last to the first, for the last ones are
 * those that causal masks cut. The scores of a tile are made while the outputs of the
 * tile before are summed; P, rounded, goes from the registers of one product into the
 * other. Maximum and sum of a row are kept as the tiles go by, in units of exp2.
 *
 * With a ring, warpgroup 0 asks the copy engine for tiles and the others take turns at
 * the tensor cores, so that the exponentials of one run beside the products of another.
 * Without, all tiles lie in shared memory at once, and several blocks share the units.
 */
#ifndef PLUGINS_ATTENTION_HOPPER_CUH
#define PLUGINS_ATTENTION_HOPPER_CUH

#include "plugins/attention/wgmma.cuh"

#define PANEL 64       /* elements: rows of 128 bytes in shared memory */
#define PANEL_ROW 128  /* bytes */
#define HOPPER_TILES 8 /* of keys, of a block without a ring */

/* Fast: of 16 exponentials, those made with multiplications. Odd: scores go through a
 * soft cap or a mask. */
template <typename Element_, int Dim_, int Keys_, int Groups_, int Stages_, int Blocks_,
          int Fast_ = 0, bool Odd_ = false>
struct hopper_tile {
    typedef Element_ Element;
    static const bool Ring = Stages_ > 0;
    static const int Dim = Dim_, Keys = Keys_, Groups = Groups_, Blocks = Blocks_;
    static const int Stages = Ring ? Stages_ : HOPPER_TILES, Fast = Fast_;
    static const bool Odd = Odd_;
    static const int Rows = Groups * 64, Threads = (Groups + Ring) * 128;
    static const int Panels = (Dim + PANEL - 1) / PANEL;
    static const int QBytes = Panels * Rows * PANEL_ROW;
    static const int KBytes = Panels * Keys * PANEL_ROW, StageBytes = 2 * KBytes;
    static const int Producer = Groups == 3 ? 32 : 40; /* registers, also below */
    static const int Consumer = Groups == 3 ? 160 : 232;
    static_assert(KBytes % 1024 == 0, "swizzled tiles begin at multiples of 1024");
    static_assert(Dim % 32 == 0, "whole products");
};

struct hopper_job {
    CUtensorMap q, k, v;
    struct attention_plan plan;
    const void *lengths, *mask;
    void *y;
    uint32_t tiles, heads; /* of queries; of all rows of the batch */
    uint32_t section;      /* heads whose K and V stay in L2 */
    float scale;           /* times log2(e); of odd scores without */
};

/* A block's part: queries from `row` on, tiles of keys [first, last), of which those in
 * [whole, whole_end) are seen by all its queries. */
struct hopper_part {
    int32_t batch, head, row, first, last, whole, whole_end;
    attention_reach reach;
};

/* Sections of heads one after the other; in each, the last queries of all heads first:
 * with a causal mask these take longest. */
template <class C>
static __device__ inline hopper_part hopper_part_of(const hopper_job &job, uint32_t index)
{
    const struct attention_plan &p = job.plan;
    const uint32_t section = index / (job.section * job.tiles);
    const uint32_t begin = section * job.section;
    const uint32_t heads = min(job.section, job.heads - begin);
    const uint32_t rest = index - begin * job.tiles;
    const uint32_t tile = job.tiles - 1 - rest / heads, head = begin + rest % heads;
    hopper_part part;
    part.batch = (int32_t)(head / (uint32_t)p.heads);
    part.head = (int32_t)(head % (uint32_t)p.heads);
    part.row = (int32_t)(tile * C::Rows);
    part.reach = attention_reach_at(&p, job.lengths, part.batch);
    const int64_t end_row = min((int64_t)part.row + C::Rows, p.length) - 1;
    int64_t low[2], high[2];
    attention_bounds(&p, &part.reach, part.row, &low[0], &high[0]);
    attention_bounds(&p, &part.reach, end_row, &low[1], &high[1]);
    high[0] = min(high[0], part.reach.keys); /* empty rows may lie behind all keys */
    high[1] = min(high[1], part.reach.keys);
    part.first = (int32_t)(low[0] / C::Keys);
    part.last = (int32_t)((max(high[0], high[1]) + C::Keys - 1) / C::Keys);
    part.whole = (int32_t)((low[1] + C::Keys - 1) / C::Keys);
    part.whole_end = (int32_t)(min(high[0], high[1]) / C::Keys);
    part.last = max(part.last, part.first);
    part.whole = min(max(part.whole, part.first), part.last);
    part.whole_end = min(max(part.whole_end, part.whole), part.last);
    return part;
}

/* The block's part of a round; some have none in the last. With a causal mask every other
 * round goes backwards, so that all blocks get as much. */
static __device__ inline uint32_t hopper_index(const hopper_job &job, uint32_t round)
{
    const bool back = job.plan.causal && round % 2;
    return round * gridDim.x + (back ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

/* ---- shared memory --------------------------------------------------------------------
 */

/* Addresses. The barriers are in front of the tiles: full and empty of Q, then full and
 * empty ones of K, then of V, for each stage. */
template <class C>
struct hopper_memory {
    uint32_t barriers, q, stages;

    __device__ inline hopper_memory(uint8_t *memory)
    {
        barriers = (shared_address(memory) + 1023) / 1024 * 1024;
        q = barriers + 1024;
        stages = q + C::QBytes;
    }
    __device__ inline uint32_t full(int value, int stage) const
    {
        return barriers + 16 + (value * 2 * C::Stages + stage) * 8;
    }
    __device__ inline uint32_t empty(int value, int stage) const
    {
        return full(value, stage) + C::Stages * 8;
    }
    __device__ inline uint32_t tile(int value, int stage) const
    {
        return stages + stage * C::StageBytes + value * C::KBytes;
    }
    __device__ inline void init(void) const
    {
        barrier_init(barriers, 1);
        barrier_init(barriers + 8, C::Groups * 4);
        for (int value = 0; value < 2; value++)
            for (int s = 0; s < C::Stages; s++) {
                barrier_init(full(value, s), 1);
                barrier_init(empty(value, s), C::Groups * 4);
            }
        barrier_publish();
    }
};

/* A place in the ring; parity of the round. */
template <class C>
struct hopper_stage {
    int at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(void)
    {
        if (++at == C::Stages) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* ---- the producer ---------------------------------------------------------------------
 */

template <class C>
static __device__ inline void load_queries(const hopper_job &job, const hopper_part &part,
                                           const hopper_memory<C> &memory)
{
    barrier_expect(memory.barriers, C::QBytes);
    for (int p = 0; p < C::Panels; p++)
        copy_box(memory.q + p * C::Rows * PANEL_ROW, &job.q, memory.barriers, p * PANEL,
                 part.row, part.head, part.batch);
}

/* Tile of K (value 0) or V (value 1). */
template <class C>
static __device__ inline void load_tile(const hopper_job &job, const hopper_part &part,
                                        const hopper_memory<C> &memory, int value,
                                        int stage, int32_t tile)
{
    const uint32_t barrier = memory.full(value, stage), to = memory.tile(value, stage);
    const int32_t head = part.head / (int32_t)job.plan.group;
    barrier_expect(barrier, C::KBytes);
    for (int p = 0; p < C::Panels; p++)
        copy_box(to + p * C::Keys * PANEL_ROW, value ? &job.v : &job.k, barrier,
                 p * PANEL, tile * C::Keys, head, part.batch);
}

/* Asks for what the consumers will need, part after part. */
template <class C>
struct hopper_producer {
    const hopper_job &job;
    const hopper_memory<C> &memory;
    hopper_stage<C> k, v;
    uint32_t parity = 1; /* of Q */

    __device__ inline hopper_producer(const hopper_job &job,
                                      const hopper_memory<C> &memory)
        : job(job), memory(memory)
    {
    }

    __device__ inline void load(const hopper_part &part, int value,
                                hopper_stage<C> &stage, int32_t tile)
    {
        if (C::Ring)
            barrier_wait(memory.empty(value, stage.at), stage.parity ^ 1);
        load_tile(job, part, memory, value, stage.at, tile);
        stage.advance();
    }

    __device__ inline void run(const hopper_part &part)
    {
        const int n = part.last - part.first;
        if (n > 0)
            load(part, 0, k, part.last - 1);
        if (C::Ring)
            barrier_wait(memory.barriers + 8, parity);
        parity ^= 1;
        load_queries(job, part, memory);
        for (int i = 1; i <= n; i++) {
            if (i < n)
                load(part, 0, k, part.last - 1 - i);
            load(part, 1, v, part.last - i);
        }
    }
};

/* ---- rows of scores -------------------------------------------------------------------
 */

/* A thread's two rows, 8 apart: its queries' keys [low, low + span), maximum and sum. */
struct hopper_rows {
    float largest[2], sum[2];
    int32_t low[2];
    uint32_t span[2];
};

/* 2^x for x <= 0 within 1e-4, without the unit that makes exponentials: the fraction in
 * [-0.5, 0.5] by a polynomial, the rest into the exponent. */
static __device__ inline float exp2_multiplied(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: rounds to whole numbers */
    x = fmaxf(x, -126.0f);
    const float t = x + magic, f = x - (t - magic);
    float y = fmaf(f, 0.0555041087f, 0.2402264791f);
    y = fmaf(f, y, 0.6931471806f);
    y = fmaf(f, y, 1.0f);
    return __int_as_float(__float_as_int(y) + (__float_as_int(t) << 23));
}

static __device__ inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

static __device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Scores to exponentials, in place; `shrink`: what earlier sums are to be multiplied by.
 * column: of the thread's first score. Rows that see nothing yet have exponentials of 0.
 */
template <class C, bool Masked>
static __device__ inline void softmax_tile(float (&s)[C::Keys / 8][4], hopper_rows &rows,
                                           float (&shrink)[2], float scale,
                                           int32_t column)
{
    const int N = C::Keys / 8;
    float part[2][2] = {};
    if (Masked) {
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if ((uint32_t)(column + j * 8 + e % 2 - rows.low[e / 2]) >=
                    rows.span[e / 2])
                    s[j][e] = -INFINITY;
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
        for (int j = 1; j < N; j++)
            most = fmaxf(most, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
        most = fmaxf(rows.largest[r], quad_max(most));
        const float base = most == -INFINITY ? 0 : most * scale;
        shrink[r] = exp2_near(fmaf(rows.largest[r], scale, -base));
        rows.largest[r] = most;
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float x = fmaf(s[j][2 * r + e], scale, -base);
                const float y =
                    (j * 2 + e) % 16 < C::Fast ? exp2_multiplied(x) : exp2_near(x);
                s[j][2 * r + e] = y;
                part[r][e] += y;
            }
        rows.sum[r] = fmaf(rows.sum[r], shrink[r], part[r][0] + part[r][1]);
    }
}

/* An element of a mask of any dtype as what it adds. */
static __device__ inline float mask_addend(const uint8_t *at, int32_t dtype)
{
    if (dtype == STRATA_BOOL8)
        return *at ? 0 : -INFINITY;
    if (dtype == STRATA_FP32)
        return *(const float *)at;
    return dtype == STRATA_FP16 ? to_float(*(const __half *)at)
                                : to_float(*(const __nv_bfloat16 *)at);
}

/* Odd scores of a tile: to units of exp2, within the rows' bounds. row, column: of the
 * thread's first score. Not unrolled over what is not an index of scores: it is long. */
template <int N>
static __device__ inline void finish_odd(float (&s)[N][4], const hopper_job &job,
                                         const hopper_rows &rows, int32_t batch,
                                         int32_t head, int32_t row, int32_t column)
{
    const struct attention_mask &m = job.plan.mask;
    const float cap = (float)job.plan.softcap, twice = 2 * LOG2_E * job.scale / cap;
    const int32_t size = m.dtype == STRATA_BOOL8  ? 1
                         : m.dtype == STRATA_FP32 ? 4
                                                  : 2; /* bytes */
    const int32_t open = job.mask ? (int32_t)min(m.keys, (int64_t)INT32_MAX) : INT32_MAX;
    const uint8_t *at[2];
    float by = job.scale * LOG2_E;
#pragma unroll
    for (int r = 0; r < 2; r++)
        at[r] = (const uint8_t *)job.mask + (batch * m.batch + head * m.head +
                                             (row + r * 8) * m.row + column * m.key) *
                                                size;
    if (cap > 0) { /* tanh(x) is 1 - 2/(e^2x + 1) */
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[j][e] = 1 - 2 * reciprocal_near(exp2_near(twice * s[j][e]) + 1);
        by = cap * LOG2_E;
    }
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int r = e / 2;
            const int32_t key = column + j * 8 + e % 2;
            float add = -INFINITY;
            if ((uint32_t)(key - rows.low[r]) < rows.span[r] && key < open)
                add = job.mask
                          ? mask_addend(at[r] + (j * 8 + e % 2) * m.key * size, m.dtype)
                          : 0;
            s[j][e] = add == -INFINITY ? add : fmaf(s[j][e], by, add * LOG2_E);
        }
}

static __device__ inline uint32_t two_of(__half, float a, float b)
{
    const __half2 y = __floats2half2_rn(a, b);
    return *(const uint32_t *)&y;
}

static __device__ inline uint32_t two_of(__nv_bfloat16, float a, float b)
{
    const __nv_bfloat162 y = __floats2bfloat162_rn(a, b);
    return *(const uint32_t *)&y;
}

/* Two neighbours of the sums, 8 columns each, are a factor of a depth of 16. */
template <class C>
static __device__ inline void round_tile(uint32_t (&p)[C::Keys / 16][4],
                                         const float (&s)[C::Keys / 8][4])
{
#pragma unroll
    for (int j = 0; j < C::Keys / 8; j++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            p[j / 2][j % 2 * 2 + r] =
                two_of(typename C::Element(), s[j][2 * r], s[j][2 * r + 1]);
}

/* ---- products -------------------------------------------------------------------------
 */

/* q, k: addresses of the warpgroup's rows and of the tile. */
template <class C>
static __device__ inline void multiply_scores(float (&s)[C::Keys / 8][4], uint32_t q,
                                              uint32_t k)
{
    const uint64_t a = panel_descriptor(q, 16), b = panel_descriptor(k, 16);
    multiply_begin();
#pragma unroll
    for (int d = 0; d < C::Dim; d += 16) {
        const int panel = d / PANEL, in = d % PANEL * 2;
        product<typename C::Element, C::Keys>::scores(
            s, a + (panel * C::Rows * PANEL_ROW + in) / 16,
            b + (panel * C::Keys * PANEL_ROW + in) / 16, d > 0);
    }
    multiply_commit();
}

template <class C>
static __device__ inline void multiply_outputs(float (&o)[C::Dim / 8][4],
                                               const uint32_t (&p)[C::Keys / 16][4],
                                               uint32_t v)
{
    const uint64_t b = panel_descriptor(v, C::Keys * PANEL_ROW);
    multiply_begin();
#pragma unroll
    for (int j = 0; j < C::Keys / 16; j++)
        product<typename C::Element, C::Dim>::outputs(o, p[j],
                                                      b + j * (16 * PANEL_ROW / 16));
    multiply_commit();
}

#endif /* PLUGINS_ATTENTION_HOPPER_CUH */
