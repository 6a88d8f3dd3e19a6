/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products of bytes, in 32 bits, exact. AVX2 multiplies pairs of 16 bits: its
 * products of bytes saturate. AVX-512's VNNI multiplies UINT8 by INT8, four at a time;
 * AMX 16 rows by 16 columns of 64.
 */
#include "plugins/dynamic_product/product.h"

#include <pthread.h>

#include "plugins/common/pointwise/row.h"
#include "plugins/common/quantized/amx.h"

#ifdef ELEMENT_X86
#include <immintrin.h>
#endif

#define ARRAY_OF(...) ((dynamic_tile_fn *const[]){__VA_ARGS__})

/* ---- rows of x, and what becomes of sums ------------------------------------------- */

#define STAGE(name, target, type)                                                        \
    target static uint32_t stage_##name(void *to, const uint8_t *x, int64_t n,           \
                                        int64_t padded)                                  \
    {                                                                                    \
        type *restrict y = to;                                                           \
        uint32_t sum = 0;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i] = x[i];                                                                 \
            sum += x[i];                                                                 \
        }                                                                                \
        for (int64_t i = n; i < padded; i++)                                             \
            y[i] = 0;                                                                    \
        return sum;                                                                      \
    }

/* Sums wrap, as those of ONNX do; each operation in FP32 is rounded. */
ROW_INLINE void finish_row(float *restrict y, const int32_t *restrict sums,
                           const struct dynamic_columns *c, const struct dynamic_end *e,
                           const float *residual, int64_t n)
{
    const struct dynamic_columns l = *c;
    const struct dynamic_end d = *e;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t whole =
            (uint32_t)sums[i] - d.zero * (uint32_t)l.sum[i] - d.sum * (uint32_t)l.zero[i];
        y[i] = (float)(int32_t)whole * (d.scale * l.factor[i]) + l.bias[i];
    }
    for (int64_t i = 0; i < n && residual; i++)
        y[i] += residual[i];
}

#define FINISH(name, target)                                                             \
    target static void finish_##name(                                                    \
        float *y, const int32_t *sums, const struct dynamic_columns *c,                  \
        const struct dynamic_end *e, const float *residual, int64_t n)                   \
    {                                                                                    \
        finish_row(y, sums, c, e, residual, n);                                          \
    }

/* ---- plain C, in the order of VNNI ------------------------------------------------- */

enum { GROUP = 4 };

static void tile_plain(const struct dynamic_tile *t)
{
    const uint8_t *x = (const uint8_t *)t->x;
    for (int c = 0; c < DYNAMIC_COLUMNS; c++)
        t->sums[c] = 0;
    for (int64_t s = 0; s < t->steps; s++)
        for (int c = 0; c < DYNAMIC_COLUMNS; c++)
            for (int g = 0; g < GROUP; g++)
                t->sums[c] +=
                    x[s * GROUP + g] * t->w[(s * DYNAMIC_COLUMNS + c) * GROUP + g];
}

STAGE(bytes, , uint8_t)
FINISH(plain, )

static const struct dynamic_kernel plain = {
    .group = GROUP,
    .columns = DYNAMIC_COLUMNS,
    .rows = 1,
    .size = 1,
    .whole = 1,
    .parallel = 1 << 14,
    .tiles = ARRAY_OF(tile_plain),
    .stage = stage_bytes,
    .finish = finish_plain,
};

#ifdef ELEMENT_X86

/* ---- AVX2 -------------------------------------------------------------------------- */

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX2_INLINE AVX2 static inline __attribute__((always_inline))
enum { PAIR = 2, PAIR_COLUMNS = 16, PAIR_VECTORS = 2, PAIR_ROWS = 6 };

AVX2_INLINE void tile_pairs(const struct dynamic_tile *t, int rows)
{
    const int8_t *w = t->w;
    __m256i sum[PAIR_ROWS][PAIR_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int64_t s = 0; s < t->steps; s++, w += PAIR * PAIR_COLUMNS) {
        const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
        const __m256i high =
            _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + PAIR_COLUMNS)));
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int32_t pair;
            __builtin_memcpy(&pair, t->x + r * t->row + s * (int64_t)sizeof pair,
                             sizeof pair);
            const __m256i x = _mm256_set1_epi32(pair);
            sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(x, low));
            sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(x, high));
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int k = 0; k < PAIR_VECTORS; k++)
            _mm256_storeu_si256((__m256i *)(t->sums + r * PAIR_COLUMNS + k * 8),
                                sum[r][k]);
}

#define PAIRS(rows)                                                                      \
    AVX2 static void pairs_##rows(const struct dynamic_tile *t)                          \
    {                                                                                    \
        tile_pairs(t, rows);                                                             \
    }
PAIRS(1)
PAIRS(2)
PAIRS(3)
PAIRS(4)
PAIRS(5)
PAIRS(6)
STAGE(pairs, AVX2, int16_t)
FINISH(avx2, AVX2)

static const struct dynamic_kernel avx2 = {
    .group = PAIR,
    .columns = PAIR_COLUMNS,
    .rows = PAIR_ROWS,
    .size = 2,
    .whole = 1,
    .parallel = 1 << 17,
    .tiles = ARRAY_OF(pairs_1, pairs_2, pairs_3, pairs_4, pairs_5, pairs_6),
    .stage = stage_pairs,
    .finish = finish_avx2,
};

/* ---- AVX-512 VNNI ------------------------------------------------------------------ */

#define VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define VNNI_INLINE VNNI static inline __attribute__((always_inline))
enum { VNNI_LANES = 16, VNNI_VECTORS = 2, VNNI_ROWS = 12, VNNI_PARALLEL = 1 << 19 };

VNNI_INLINE void tile_fours(const struct dynamic_tile *t, int rows)
{
    const int8_t *w = t->w;
    __m512i sum[VNNI_ROWS][VNNI_VECTORS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    for (int64_t s = 0; s < t->steps; s++, w += GROUP * DYNAMIC_COLUMNS) {
        const __m512i low = _mm512_loadu_si512(w);
        const __m512i high = _mm512_loadu_si512(w + GROUP * VNNI_LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            int32_t four;
            __builtin_memcpy(&four, t->x + r * t->row + s * (int64_t)sizeof four,
                             sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], x, low);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], x, high);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int k = 0; k < VNNI_VECTORS; k++)
            _mm512_storeu_si512(t->sums + r * DYNAMIC_COLUMNS + k * VNNI_LANES,
                                sum[r][k]);
}

#define FOURS(rows)                                                                      \
    VNNI static void fours_##rows(const struct dynamic_tile *t)                          \
    {                                                                                    \
        tile_fours(t, rows);                                                             \
    }
FOURS(1)
FOURS(2)
FOURS(3)
FOURS(4)
FOURS(5)
FOURS(6)
FOURS(7)
FOURS(8)
FOURS(9)
FOURS(10)
FOURS(11)
FOURS(12)
STAGE(fours, VNNI, uint8_t)
FINISH(vnni, VNNI)

static const struct dynamic_kernel vnni = {
    .group = GROUP,
    .columns = DYNAMIC_COLUMNS,
    .rows = VNNI_ROWS,
    .size = 1,
    .whole = 1,
    .parallel = VNNI_PARALLEL,
    .tiles = ARRAY_OF(fours_1, fours_2, fours_3, fours_4, fours_5, fours_6, fours_7,
                      fours_8, fours_9, fours_10, fours_11, fours_12),
    .stage = stage_fours,
    .finish = finish_vnni,
};

/* ---- AMX --------------------------------------------------------------------------- */

#ifdef AMX_COMPILES
enum { AMX_ROWS = 16, AMX_STEPS = 16, AMX_FEW = 5 };

/* Sums of up to two tiles of 16 rows in tiles 0 to 3. */
AMX_TARGET static inline __attribute__((always_inline)) void
tile_blocks(const struct dynamic_tile *t, int blocks)
{
    enum { LINE = GROUP * DYNAMIC_COLUMNS, SUMS = DYNAMIC_COLUMNS * sizeof(int32_t) };
    const char *x = t->x;
    const int8_t *w = t->w;
    int32_t *lower = t->sums + AMX_ROWS * DYNAMIC_COLUMNS;
    __asm__ volatile(""
                     :
                     :
                     : "memory"); /* GCC 12's loads of tiles do not say they read */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < t->steps; s += AMX_STEPS) {
        _tile_loadd(4, x, t->row);
        _tile_loadd(6, w, LINE);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, w + GROUP * VNNI_LANES, LINE);
        _tile_dpbusd(1, 4, 7);
        if (blocks > 1) {
            _tile_loadd(5, x + AMX_ROWS * t->row, t->row);
            _tile_dpbusd(2, 5, 6);
            _tile_dpbusd(3, 5, 7);
        }
        x += AMX_STEPS * GROUP;
        w += AMX_STEPS * LINE;
    }
    _tile_stored(0, t->sums, SUMS);
    _tile_stored(1, t->sums + VNNI_LANES, SUMS);
    if (blocks > 1) {
        _tile_stored(2, lower, SUMS);
        _tile_stored(3, lower + VNNI_LANES, SUMS);
    }
}

AMX_TARGET static void block_1(const struct dynamic_tile *t)
{
    tile_blocks(t, 1);
}

AMX_TARGET static void block_2(const struct dynamic_tile *t)
{
    tile_blocks(t, 2);
}

static void open_tiles(void)
{
    amx_open();
}

static void close_tiles(void)
{
    amx_close();
}

#define FOUR(f) f, f, f, f
/* Few rows leave tiles empty: they are VNNI's, by themselves and as the last ones. */
static const struct dynamic_kernel amx = {
    .group = GROUP,
    .columns = DYNAMIC_COLUMNS,
    .rows = 2 * AMX_ROWS,
    .size = 1,
    .whole = AMX_STEPS,
    .beyond = AMX_ROWS - 1,
    .few = AMX_FEW,
    .parallel = 1 << 21,
    .parallel_few = VNNI_PARALLEL,
    .tiles = ARRAY_OF(fours_1, fours_2, fours_3, fours_4, FOUR(block_1), FOUR(block_1),
                      FOUR(block_1), FOUR(block_2), FOUR(block_2), FOUR(block_2),
                      FOUR(block_2)),
    .open = open_tiles,
    .close = close_tiles,
    .stage = stage_fours,
    .finish = finish_vnni,
};

static int has_tiles;

static void ask(void)
{
    has_tiles = amx_is_granted();
}

/* Asked once: what a workspace was sized for is what runs in it. */
static int tiles_are_granted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return has_tiles;
}
#endif

#endif /* ELEMENT_X86 */

const struct dynamic_kernel *dynamic_kernel(void)
{
#ifdef ELEMENT_X86
    const int has_vnni = row_has_avx512() && __builtin_cpu_supports("avx512vnni");
#ifdef AMX_COMPILES
    if (has_vnni && tiles_are_granted())
        return &amx;
#endif
    if (has_vnni)
        return &vnni;
    if (element_has_f16c())
        return &avx2;
#endif
    return &plain;
}
