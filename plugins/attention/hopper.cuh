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

#include "plugins/attention/job.cuh"
#include "plugins/common/product/pair.cuh"
#include "plugins/common/product/wgmma.cuh"

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
    static const int QBytes = Panels * Rows * PANEL_ROW, QStages = Ring ? 2 : 1;
    static const int MaskBytes =
        Odd ? Groups * 4 * Keys * 4 : 0; /* 4: warps, of a float */
    static const int KBytes = Panels * Keys * PANEL_ROW, StageBytes = 2 * KBytes;
    static const int Producer = Groups == 3 ? 32
                                : Odd       ? 24
                                            : 40; /* registers, also below */
    static const int Consumer = Groups == 3 ? 160 : Odd ? 240 : 232;
    static_assert(KBytes % 1024 == 0, "swizzled tiles begin at multiples of 1024");
    static_assert(Dim % 32 == 0, "whole products");
    static_assert(!Odd || Keys == 128, "a lane loads 4 elements of a mask");
    static_assert(Stages * 6 * 8 <= 512, "barriers fit");
};

struct hopper_job {
    CUtensorMap q, k, v;
    struct attention_plan plan;
    const void *lengths, *mask;
    void *y;
    uint32_t tiles, heads; /* of queries; of all rows of the batch */
    uint32_t section;      /* heads whose K and V stay in L2 */
    int32_t left, right;   /* keys a query sees beside its place */
    float scale;           /* times log2(e); of odd scores without */
};

#define HOPPER_FAR (1 << 29) /* no place is that far from the others' */

/* A block's part: queries from `row` on, tiles of keys [first, last), of which those in
 * [whole, whole_end) are seen by all its queries. There are `keys`; query i is at place
 * i + offset. */
struct hopper_part {
    int32_t batch, head, row, first, last, whole, whole_end, keys, offset;
};

/* The keys [*begin, *end) that query i sees, as attention_bounds has it. */
static __device__ inline void hopper_bounds(const hopper_job &job,
                                            const hopper_part &part, int32_t i,
                                            int32_t *begin, int32_t *end)
{
    const int32_t place = i + part.offset;
    *begin = min(max(place - job.left, 0), part.keys);
    *end = max(min(place + job.right + 1, part.keys), *begin);
}

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
    const attention_reach reach = attention_reach_at(&p, job.lengths, part.batch);
    part.keys = (int32_t)reach.keys;
    part.offset =
        (int32_t)max(-(int64_t)HOPPER_FAR, min((int64_t)HOPPER_FAR, reach.offset));
    int32_t low[2], high[2];
    hopper_bounds(job, part, part.row, &low[0], &high[0]);
    hopper_bounds(job, part, min(part.row + C::Rows, (int32_t)p.length) - 1, &low[1],
                  &high[1]);
    part.first = low[0] / C::Keys;
    part.last = max((max(high[0], high[1]) + C::Keys - 1) / C::Keys, part.first);
    part.whole = min(max((low[1] + C::Keys - 1) / C::Keys, part.first), part.last);
    part.whole_end = min(max(min(high[0], high[1]) / C::Keys, part.whole), part.last);
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

/* Addresses. In front of the tiles are the barriers, full and empty ones of each stage of
 * Q, K and V, the parts that Q's stages belong to, and the masks of a warp's tile. */
template <class C>
struct hopper_memory {
    uint32_t barriers, masks, q, stages;
    hopper_part *parts;

    __device__ inline hopper_memory(uint8_t *memory)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        barriers = shared_address(memory) + lost;
        parts = (hopper_part *)(memory + lost + 512);
        masks = barriers + 1024;
        q = masks + C::MaskBytes;
        stages = q + C::QStages * C::QBytes;
    }
    __device__ inline uint32_t full(int value, int stage) const
    {
        return barriers + ((value + 1) * 2 * C::Stages + stage) * 8;
    }
    __device__ inline uint32_t empty(int value, int stage) const
    {
        return full(value, stage) + C::Stages * 8;
    }
    __device__ inline uint32_t q_full(int stage) const
    {
        return full(-1, stage);
    }
    __device__ inline uint32_t q_empty(int stage) const
    {
        return empty(-1, stage);
    }
    __device__ inline uint32_t tile(int value, int stage) const
    {
        return stages + stage * C::StageBytes + value * C::KBytes;
    }
    __device__ inline void init(void) const
    {
        for (int value = -1; value < 2; value++)
            for (int s = 0; s < C::Stages; s++) {
                barrier_init(full(value, s), 1);
                barrier_init(empty(value, s), C::Groups * 4);
            }
        barrier_publish();
    }
};

/* A place in a ring of N stages; parity of the round. */
template <int N>
struct hopper_stage {
    int at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(void)
    {
        if (++at == N) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* ---- the producer ---------------------------------------------------------------------
 */

/* Asks for what the consumers will need, part after part. */
template <class C>
struct hopper_producer {
    const hopper_job &job;
    const hopper_memory<C> &memory;
    hopper_stage<C::QStages> q;
    hopper_stage<C::Stages> k, v;

    __device__ inline hopper_producer(const hopper_job &job,
                                      const hopper_memory<C> &memory)
        : job(job), memory(memory)
    {
    }

    __device__ inline void load_queries(const hopper_part &part)
    {
        const uint32_t barrier = memory.q_full(q.at);
        if (C::Ring)
            barrier_wait(memory.q_empty(q.at), q.parity ^ 1);
        memory.parts[q.at] = part;
        barrier_expect(barrier, C::QBytes);
        for (int p = 0; p < C::Panels; p++)
            copy_box(memory.q + q.at * C::QBytes + p * C::Rows * PANEL_ROW, &job.q,
                     barrier, p * PANEL, part.row, part.head, part.batch);
        q.advance();
    }

    /* Tile of K (value 0) or V (value 1). */
    __device__ inline void load_tile(const hopper_part &part, int value,
                                     hopper_stage<C::Stages> &stage, int32_t tile)
    {
        const uint32_t barrier = memory.full(value, stage.at),
                       to = memory.tile(value, stage.at);
        const int32_t head = part.head / (int32_t)job.plan.group;
        if (C::Ring)
            barrier_wait(memory.empty(value, stage.at), stage.parity ^ 1);
        barrier_expect(barrier, C::KBytes);
        for (int p = 0; p < C::Panels; p++)
            copy_box(to + p * C::Keys * PANEL_ROW, value ? &job.v : &job.k, barrier,
                     p * PANEL, tile * C::Keys, head, part.batch);
        stage.advance();
    }

    __device__ inline void run(const hopper_part &part)
    {
        const int n = part.last - part.first;
        load_queries(part);
        for (int i = 0; i <= n; i++) {
            if (i < n)
                load_tile(part, 0, k, part.last - 1 - i);
            if (i > 0)
                load_tile(part, 1, v, part.last - i);
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

static __device__ inline int32_t mask_bytes(const struct attention_mask &m)
{
    return m.dtype == STRATA_BOOL8 ? 1 : m.dtype == STRATA_FP32 ? 4 : 2;
}

/* A mask that is the same for all queries: each lane loads 4 of a tile's 128 elements
 * while there is time, and the warp shares them through shared memory. */
struct mask_row {
    float4 four;

    __device__ inline void load(const hopper_job &job, const hopper_part &part,
                                int32_t tile)
    {
        const struct attention_mask &m = job.plan.mask;
        const int32_t key = tile * 128 + (int32_t)(threadIdx.x % 32) * 4,
                      size = mask_bytes(m);
        const int32_t open = (int32_t)min(m.keys, (int64_t)part.keys);
        const uint8_t *at =
            (const uint8_t *)job.mask +
            (part.batch * m.batch + part.head * m.head + key * m.key) * size;
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = key + i < open ? mask_addend(at + i * m.key * size, m.dtype) * LOG2_E
                                  : -INFINITY;
        four = make_float4(v[0], v[1], v[2], v[3]);
    }

    __device__ inline void share(uint32_t to) const
    {
        __syncwarp();
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(to + threadIdx.x %
                                                                                 32 * 16),
                     "f"(four.x), "f"(four.y), "f"(four.z), "f"(four.w)
                     : "memory");
        __syncwarp();
    }
};

/* Odd scores of a tile: to units of exp2, within the rows' bounds. row, column: of the
 * thread's first score; shared: the tile's mask_row, or 0. */
template <int N>
static __device__ inline void finish_odd(float (&s)[N][4], const hopper_job &job,
                                         const hopper_part &part, const hopper_rows &rows,
                                         int32_t row, int32_t column, uint32_t shared)
{
    const struct attention_mask &m = job.plan.mask;
    const float cap = (float)job.plan.softcap, twice = 2 * LOG2_E * job.scale / cap;
    const int32_t size = mask_bytes(m);
    const int32_t open = job.mask ? (int32_t)min(m.keys, (int64_t)part.keys) : part.keys;
    const uint8_t *at =
        (const uint8_t *)job.mask +
        (part.batch * m.batch + part.head * m.head + row * m.row + column * m.key) * size;
    const float by = (cap > 0 ? cap : job.scale) * LOG2_E;
    if (cap > 0) { /* tanh(x) is 1 - 2/(e^2x + 1) */
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[j][e] = 1 - 2 * reciprocal_near(exp2_near(twice * s[j][e]) + 1);
    }
#pragma unroll
    for (int j = 0; j < N; j++) {
        float add[4] = {0, 0, 0, 0};
        if (shared) {
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n"
                         : "=f"(add[0]), "=f"(add[1])
                         : "r"(shared + (j * 8 + threadIdx.x % 4 * 2) * 4)
                         : "memory");
            add[2] = add[0];
            add[3] = add[1];
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int32_t key = column + j * 8 + e % 2;
            if ((uint32_t)(key - rows.low[e / 2]) >= rows.span[e / 2] || key >= open)
                add[e] = -INFINITY;
            else if (job.mask && !shared)
                add[e] =
                    mask_addend(at + (e / 2 * 8 * m.row + (j * 8 + e % 2) * m.key) * size,
                                m.dtype) *
                    LOG2_E;
            s[j][e] = add[e] == -INFINITY ? add[e] : fmaf(s[j][e], by, add[e]);
        }
    }
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
                pack_two(typename C::Element(), s[j][2 * r], s[j][2 * r + 1]);
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
