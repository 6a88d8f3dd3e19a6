/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores, a tile of scores: its products, masks and
 * exponentials.
 */
#ifndef PLUGINS_ATTENTION_SCORES_CUH
#define PLUGINS_ATTENTION_SCORES_CUH

#include "plugins/attention/hopper.cuh"

#include "plugins/common/product/pair.cuh"

/* ---- rows of scores -------------------------------------------------------------------
 */

/* A thread's two rows, 8 apart: its queries' keys [low, low + span), maximum and sum. */
struct hopper_rows {
    float largest[2], sum[2];
    int32_t low[2];
    uint32_t span[2];
};

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

#define EXPONENT_FAR 0x1p27f

/* A score's exponent, of 2: times `scale`, less `base`. */
struct score_exponent {
    float scale, base;

    __device__ inline float operator()(float score) const
    {
        return fmaf(score, scale, -base);
    }
};

/* Whether exponents of scores up to `largest` need exponent_below; where nothing was seen
 * yet, they do. */
static __device__ inline bool is_far(float largest, float scale)
{
    return !(fabsf(largest * scale) < EXPONENT_FAR);
}

/* Exponents of scores up to `largest`, which is not far. The base is rounded, and so all
 * of a row's exponentials in a tile are off by one factor, of up to 2^4. */
static __device__ inline score_exponent exponent_near(float largest, float scale)
{
    return {scale, largest * scale};
}

/* Exponents of scores up to `largest`. Far scores that differ do so by exponents of 8 or
 * more: a scale rounded up to a power of 2, of which the base is exact, makes up to 16 of
 * 8. Where nothing was seen yet, exponentials are 0. */
static __device__ inline score_exponent exponent_below(float largest, float scale)
{
    const float up = __int_as_float((__float_as_int(scale) + 0x7fffff) & 0x7f800000);
    score_exponent e = exponent_near(largest, scale);
    if (is_far(largest, scale)) {
        e.scale = up;
        e.base = largest == -INFINITY ? 0 : largest * up;
    }
    return e;
}

/* What a row's sums by an earlier maximum are to be multiplied by. */
static __device__ inline float shrink_to(float largest, float before, float scale)
{
    return exp2_near((before - (largest == -INFINITY ? 0 : largest)) * scale);
}

/* The greater of row r's maximum and a tile's; what earlier sums are to be multiplied by.
 */
template <int N>
static __device__ inline float find_row_largest(const float (&s)[N][4], hopper_rows &rows,
                                                int r, float scale)
{
    float most = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
    for (int j = 1; j < N; j++)
        most = fmaxf(most, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
    most = fmaxf(rows.largest[r], quad_max(most));
    const float shrink = shrink_to(most, rows.largest[r], scale);
    rows.largest[r] = most;
    return shrink;
}

/* The same of both rows. */
template <class C>
static __device__ inline void find_largest(const float (&s)[C::Keys / 8][4],
                                           hopper_rows &rows, float (&shrink)[2],
                                           float scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++)
        shrink[r] = find_row_largest(s, rows, r, scale);
}

/* No row sees keys without its bounds. column: of the thread's first score. */
template <int N>
static __device__ inline void close_unseen(float (&s)[N][4], const hopper_rows &rows,
                                           int32_t column)
{
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            if ((uint32_t)(column + j * 8 + e % 2 - rows.low[e / 2]) >= rows.span[e / 2])
                s[j][e] = -INFINITY;
}

/* Scores to exponentials, in place; `shrink`: what earlier sums are to be multiplied by.
 * column: of the thread's first score. */
template <class C, bool Masked>
static __device__ inline void softmax_tile(float (&s)[C::Keys / 8][4], hopper_rows &rows,
                                           float (&shrink)[2], float scale,
                                           int32_t column)
{
    const int N = C::Keys / 8;
    if (Masked)
        close_unseen(s, rows, column);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        shrink[r] = find_row_largest(s, rows, r, scale);
        const score_exponent exponent = exponent_below(rows.largest[r], scale);
        float part[2] = {};
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float y = exp2_near(exponent(s[j][2 * r + e]));
                s[j][2 * r + e] = y;
                part[e] += y;
            }
        rows.sum[r] = fmaf(rows.sum[r], shrink[r], part[0] + part[1]);
    }
}

#define SUM_LIMIT 16384.0f /* of a thread's exponentials of a row: FP16 holds each */

/* The same of exponents that are given, rounded, with the thread's sums. */
template <class C>
static __device__ inline void
exponentials(uint32_t (&p)[C::Keys / 16][4], float (&sum)[2],
             const float (&s)[C::Keys / 8][4], const score_exponent (&exponent)[2])
{
    float part[2][2];
#pragma unroll
    for (int j = 0; j < C::Keys / 8; j++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float y[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                y[e] = exp2_near(exponent[r](s[j][2 * r + e]));
                part[r][e] = j > 0 ? part[r][e] + y[e] : y[e];
            }
            p[j / 2][j % 2 * 2 + r] = pack_two(typename C::Element(), y[0], y[1]);
        }
    sum[0] = part[0][0] + part[0][1];
    sum[1] = part[1][0] + part[1][1];
}

template <int N>
static __device__ inline void scale_rows(float (&x)[N][4], const float (&by)[2])
{
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            x[j][e] *= by[e / 2];
}

/* By instructions that ptxas leaves behind the products before; of an assignment it makes
 * registers shared with those, and then runs products one by one (C7513). */
template <int N>
static __device__ inline void copy_words(uint32_t (&to)[N][4],
                                         const uint32_t (&from)[N][4])
{
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            asm volatile("mov.b32 %0, %1;\n"
                         : "=r"(to[j][e])
                         : "r"(from[j][e])
                         : "memory");
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

/* Odd scores of a tile, times `scale`: to units of exp2, within the rows' bounds. row,
 * column: of the thread's first score; shared: the tile's mask_row, or 0. */
template <int N>
static __device__ inline void finish_odd(float (&s)[N][4], const hopper_job &job,
                                         const hopper_part &part, const hopper_rows &rows,
                                         float scale, int32_t row, int32_t column,
                                         uint32_t shared)
{
    const struct attention_mask &m = job.plan.mask;
    const float cap = (float)job.plan.softcap, twice = 2 * LOG2_E * scale / cap;
    const int32_t size = mask_bytes(m);
    const int32_t open = job.mask ? (int32_t)min(m.keys, (int64_t)part.keys) : part.keys;
    const uint8_t *at =
        (const uint8_t *)job.mask +
        (part.batch * m.batch + part.head * m.head + row * m.row + column * m.key) * size;
    const float by = (cap > 0 ? cap : scale) * LOG2_E;
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

#endif /* PLUGINS_ATTENTION_SCORES_CUH */
