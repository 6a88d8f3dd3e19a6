/* SPDX-License-Identifier: Apache-2.0
 *
 * Reformat kernels for AVX2 with F16C. Functions carry their target, so the file needs no
 * compiler flags and the rest of the library stays free of these instructions.
 */
#include "formats/reformat/kernels.h"

#ifdef REFORMAT_X86
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,f16c")))
#define PLAIN reformat_plain
/* Vectors in arrays stay in registers only where the loops over them are unrolled. */
#define UNROLLED _Pragma("GCC unroll 8")

/* ---- conversion, 8 elements at a time; the last 8 may repeat some ------------------ */

#define CONVERSION(name, dst_type, src_type, dst, src, n, index, body)                   \
    TARGET static void name(dst_type *dst, const src_type *src, size_t n)                \
    {                                                                                    \
        if (n < 8) {                                                                     \
            PLAIN.index(dst, src, n);                                                    \
            return;                                                                      \
        }                                                                                \
        for (size_t at = 0; at < n; at += 8) {                                           \
            const size_t i = at + 8 > n ? n - 8 : at;                                    \
            body;                                                                        \
        }                                                                                \
    }
#define TO_FLOAT(name, type, dtype, load)                                                \
    CONVERSION(name, float, void, dst, src, n, to_float[dtype], {                        \
        const type *s = (const type *)src + i;                                           \
        _mm256_storeu_ps(dst + i, load);                                                 \
    })
#define FROM_FLOAT(name, type, dtype, store)                                             \
    CONVERSION(name, void, float, dst, src, n, from_float[dtype], {                      \
        type *d = (type *)dst + i;                                                       \
        const __m256 x = _mm256_loadu_ps(src + i);                                       \
        store;                                                                           \
    })

/* Rounded to nearest even within [low, high]; NaN is 0. */
TARGET static inline __m256i round_clamped(__m256 x, float low, float high)
{
    x = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
    x = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(low)), _mm256_set1_ps(high));
    return _mm256_cvttps_epi32(
        _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* The 8 values as 16-bit integers. */
TARGET static inline __m128i narrow(__m256i v)
{
    return _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

TARGET static inline __m256i round_int32(__m256 x)
{
    const __m256 limit = _mm256_set1_ps(0x1p31f);
    const __m256i over = _mm256_castps_si256(_mm256_cmp_ps(x, limit, _CMP_GE_OQ));
    const __m256i v = round_clamped(x, -0x1p31f, 0x1p31f);
    return _mm256_xor_si256(v, over); /* 0x80000000 becomes 0x7fffffff */
}

/* The bits of BF16 in the low halves; as strata_bfloat_of_float. */
TARGET static inline __m256i round_bfloat(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i v = _mm256_blendv_epi8(_mm256_add_epi32(bits, half), quiet, nan);
    return _mm256_srli_epi32(v, 16);
}

TO_FLOAT(half_to, uint16_t, STRATA_FP16,
         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)s)))
TO_FLOAT(bfloat_to, uint16_t, STRATA_BF16,
         _mm256_castsi256_ps(_mm256_slli_epi32(
             _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)s)), 16)))
TO_FLOAT(int8_to, int8_t, STRATA_INT8,
         _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)s))))
TO_FLOAT(uint8_to, uint8_t, STRATA_UINT8,
         _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)s))))
TO_FLOAT(int32_to, int32_t, STRATA_INT32,
         _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)s)))
FROM_FLOAT(half_from, uint16_t, STRATA_FP16,
           _mm_storeu_si128((__m128i *)d, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)))
FROM_FLOAT(bfloat_from, uint16_t, STRATA_BF16, {
    const __m256i v = round_bfloat(x);
    _mm_storeu_si128((__m128i *)d, _mm_packus_epi32(_mm256_castsi256_si128(v),
                                                    _mm256_extracti128_si256(v, 1)));
})
FROM_FLOAT(int8_from, int8_t, STRATA_INT8, {
    const __m128i v = narrow(round_clamped(x, INT8_MIN, INT8_MAX));
    _mm_storel_epi64((__m128i *)d, _mm_packs_epi16(v, v));
})
FROM_FLOAT(uint8_from, uint8_t, STRATA_UINT8, {
    const __m128i v = narrow(round_clamped(x, 0, UINT8_MAX));
    _mm_storel_epi64((__m128i *)d, _mm_packus_epi16(v, v));
})
FROM_FLOAT(int32_from, int32_t, STRATA_INT32,
           _mm256_storeu_si256((__m256i *)d, round_int32(x)))

/* ---- transposition ------------------------------------------------------------------
 */

TARGET static inline void transpose4(__m256 v[8])
{
    __m256 t[8];
    UNROLLED for (int i = 0; i < 8; i += 2)
    {
        t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    UNROLLED for (int i = 0; i < 8; i += 4) UNROLLED for (int j = 0; j < 2; j++)
    {
        v[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
        v[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
    }
    UNROLLED for (int i = 0; i < 4; i++)
    {
        t[i] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
    }
    UNROLLED for (int i = 0; i < 8; i++) v[i] = t[i];
}

#define TRANSPOSE2(name, vector, low, high)                                              \
    TARGET static inline void name(vector v[8])                                          \
    {                                                                                    \
        vector t[8];                                                                     \
        UNROLLED for (int i = 0; i < 4; i++)                                             \
        {                                                                                \
            t[2 * i] = low(v[i], v[i + 4]);                                              \
            t[2 * i + 1] = high(v[i], v[i + 4]);                                         \
        }                                                                                \
        UNROLLED for (int i = 0; i < 4; i++)                                             \
        {                                                                                \
            v[2 * i] = low(t[i], t[i + 4]);                                              \
            v[2 * i + 1] = high(t[i], t[i + 4]);                                         \
        }                                                                                \
        UNROLLED for (int i = 0; i < 4; i++)                                             \
        {                                                                                \
            t[2 * i] = low(v[i], v[i + 4]);                                              \
            t[2 * i + 1] = high(v[i], v[i + 4]);                                         \
        }                                                                                \
        UNROLLED for (int i = 0; i < 8; i++) v[i] = t[i];                                \
    }
TRANSPOSE2(transpose2, __m128i, _mm_unpacklo_epi16, _mm_unpackhi_epi16)
TRANSPOSE2(transpose2_twice, __m256i, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16)

/* Only the low 8 bytes of each vector count. */
TARGET static inline void transpose1(__m128i v[8])
{
    __m128i t[4], u[4];
    UNROLLED for (int i = 0; i < 4; i++) t[i] = _mm_unpacklo_epi8(v[i], v[i + 4]);
    UNROLLED for (int i = 0; i < 2; i++)
    {
        u[2 * i] = _mm_unpacklo_epi8(t[i], t[i + 2]);
        u[2 * i + 1] = _mm_unpackhi_epi8(t[i], t[i + 2]);
    }
    UNROLLED for (int i = 0; i < 2; i++)
    {
        t[2 * i] = _mm_unpacklo_epi8(u[i], u[i + 2]);
        t[2 * i + 1] = _mm_unpackhi_epi8(u[i], u[i + 2]);
    }
    UNROLLED for (int i = 0; i < 4; i++)
    {
        v[2 * i] = t[i];
        v[2 * i + 1] = _mm_unpackhi_epi64(t[i], t[i]);
    }
}

/* ---- at most 4 lanes: images and their like ------------------------------------------
 */

static inline size_t edge8(size_t at, size_t n)
{
    return at + 8 > n ? n - 8 : at;
}

/* Two transpositions of 4 x 4 side by side. */
TARGET static inline void transpose4_narrow(__m256 v[4])
{
    const __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
    const __m256 c = _mm256_unpacklo_ps(v[2], v[3]), d = _mm256_unpackhi_ps(v[2], v[3]);
    v[0] = _mm256_shuffle_ps(a, c, 0x44);
    v[1] = _mm256_shuffle_ps(a, c, 0xee);
    v[2] = _mm256_shuffle_ps(b, d, 0x44);
    v[3] = _mm256_shuffle_ps(b, d, 0xee);
}

TARGET static void pack_narrow4_avx2(float *dst, size_t lanes, const float *src,
                                     size_t pitch, size_t valid, size_t n)
{
    for (size_t at = 0; at < n; at += 8) {
        __m256 v[4];
        const size_t i = edge8(at, n);
        float *to = dst + i * lanes;
        UNROLLED for (size_t r = 0; r < 4; r++) v[r] =
            r < valid ? _mm256_loadu_ps(src + r * pitch + i) : _mm256_setzero_ps();
        transpose4_narrow(v);
        /* In this order: a store spills into later pixels. */
        UNROLLED for (size_t r = 0; r < 4; r++)
            _mm_storeu_ps(to + r * lanes, _mm256_castps256_ps128(v[r]));
        UNROLLED for (size_t r = 0; r < 4; r++)
            _mm_storeu_ps(to + (4 + r) * lanes, _mm256_extractf128_ps(v[r], 1));
    }
}

TARGET static void unpack_narrow4_avx2(float *dst, size_t dst_pitch, const float *src,
                                       size_t pitch, size_t keep, size_t n)
{
    for (size_t at = 0; at < n; at += 8) {
        __m256 v[4];
        const size_t i = edge8(at, n);
        const float *from = src + i * pitch;
        UNROLLED for (size_t r = 0; r < 4; r++) v[r] =
            _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + r * pitch)),
                                 _mm_loadu_ps(from + (4 + r) * pitch), 1);
        transpose4_narrow(v);
        UNROLLED for (size_t r = 0; r < 4; r++) if (r < keep)
            _mm256_storeu_ps(dst + r * dst_pitch + i, v[r]);
    }
}

TARGET static void pack_narrow2_wide_avx2(uint16_t *dst, size_t lanes,
                                          const uint16_t *src, size_t pitch, size_t valid,
                                          size_t n)
{
    for (size_t at = 0; at < n; at += 8) {
        __m128i v[4], pair[4];
        const size_t i = edge8(at, n);
        UNROLLED for (size_t r = 0; r < 4; r++) v[r] =
            r < valid ? _mm_loadu_si128((const __m128i *)(src + r * pitch + i))
                      : _mm_setzero_si128();
        const __m128i a = _mm_unpacklo_epi16(v[0], v[1]);
        const __m128i b = _mm_unpacklo_epi16(v[2], v[3]);
        const __m128i c = _mm_unpackhi_epi16(v[0], v[1]);
        const __m128i d = _mm_unpackhi_epi16(v[2], v[3]);
        pair[0] = _mm_unpacklo_epi32(a, b);
        pair[1] = _mm_unpackhi_epi32(a, b);
        pair[2] = _mm_unpacklo_epi32(c, d);
        pair[3] = _mm_unpackhi_epi32(c, d);
        UNROLLED for (size_t r = 0; r < 4; r++)
        { /* in this order, as above */
            uint16_t *to = dst + (i + 2 * r) * lanes;
            _mm_storel_epi64((__m128i *)to, pair[r]);
            _mm_storel_epi64((__m128i *)(to + lanes),
                             _mm_unpackhi_epi64(pair[r], pair[r]));
        }
    }
}

TARGET static void unpack_narrow2_wide_avx2(uint16_t *dst, size_t dst_pitch,
                                            const uint16_t *src, size_t pitch,
                                            size_t keep, size_t n)
{
    for (size_t at = 0; at < n; at += 8) {
        __m128i v[8], row[4];
        const size_t i = edge8(at, n);
        UNROLLED for (size_t r = 0; r < 8; r++) v[r] =
            _mm_loadl_epi64((const __m128i *)(src + (i + r) * pitch));
        UNROLLED for (size_t r = 0; r < 4; r++) v[r] = _mm_unpacklo_epi16(v[r], v[r + 4]);
        const __m128i a = _mm_unpacklo_epi16(v[0], v[2]);
        const __m128i b = _mm_unpacklo_epi16(v[1], v[3]);
        const __m128i c = _mm_unpackhi_epi16(v[0], v[2]);
        const __m128i d = _mm_unpackhi_epi16(v[1], v[3]);
        row[0] = _mm_unpacklo_epi16(a, b);
        row[1] = _mm_unpackhi_epi16(a, b);
        row[2] = _mm_unpacklo_epi16(c, d);
        row[3] = _mm_unpackhi_epi16(c, d);
        UNROLLED for (size_t r = 0; r < 4; r++) if (r < keep)
            _mm_storeu_si128((__m128i *)(dst + r * dst_pitch + i), row[r]);
    }
}

/* ---- any lanes -------------------------------------------------------------------- */

#define NARROW
#define NAME(base) base##4_avx2
#define PLAIN_INDEX 2
#define TYPE float
#define VECTOR __m256
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define TRANSPOSE(v) transpose4(v)
#include "formats/reformat/transpose.h"
#undef NAME
#undef PLAIN_INDEX
#undef TYPE
#undef VECTOR
#undef LOAD
#undef STORE
#undef TRANSPOSE

#undef NARROW
#define NAME(base) base##1_avx2
#define PLAIN_INDEX 0
#define TYPE uint8_t
#define VECTOR __m128i
#define LOAD(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define STORE(p, v) _mm_storel_epi64((__m128i *)(void *)(p), v)
#define TRANSPOSE(v) transpose1(v)
#include "formats/reformat/transpose.h"
#undef NAME
#undef PLAIN_INDEX
#undef TYPE
#undef LOAD
#undef STORE
#undef TRANSPOSE

#define NARROW
#define NAME(base) base##2_wide_avx2
#define PLAIN_INDEX 1
#define TYPE uint16_t
#define LOAD(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v) _mm_storeu_si128((__m128i *)(void *)(p), v)
#define TRANSPOSE(v) transpose2(v)
#define DOUBLE
#define WIDE __m256i
#define LOAD_WIDE(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define LOAD_TWO(p, q)                                                                   \
    _mm256_inserti128_si256(_mm256_castsi128_si256(LOAD(p)), LOAD(q), 1)
#define STORE_WIDE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define LOW(v) _mm256_castsi256_si128(v)
#define HIGH(v) _mm256_extracti128_si256(v, 1)
#define TRANSPOSE_WIDE(v) transpose2_twice(v)
static pack_fn reformat_pack2_wide_avx2;
static unpack_fn reformat_unpack2_wide_avx2;
#include "formats/reformat/transpose.h"

/* Pairs (NC/2HW2) have a way of their own. */
TARGET void reformat_pack2_avx2(void *dst, size_t lanes, const void *src, size_t pitch,
                                size_t valid, size_t n, size_t ahead)
{
    if (lanes != 2 || valid == 0 || n < 16) {
        reformat_pack2_wide_avx2(dst, lanes, src, pitch, valid, n, ahead);
        return;
    }
    const uint16_t *a = src, *b = valid == 2 ? a + pitch : a;
    const __m256i keep = _mm256_set1_epi8(valid == 2 ? -1 : 0);
    for (size_t at = 0; at < n; at += 16) {
        const size_t i = at + 16 > n ? n - 16 : at;
        __builtin_prefetch(a + i + ahead);
        __builtin_prefetch(b + i + ahead);
        const __m256i x = _mm256_loadu_si256((const __m256i *)(a + i));
        const __m256i y =
            _mm256_and_si256(keep, _mm256_loadu_si256((const __m256i *)(b + i)));
        const __m256i low = _mm256_unpacklo_epi16(x, y);
        const __m256i high = _mm256_unpackhi_epi16(x, y);
        __m256i *to = (__m256i *)((uint16_t *)dst + 2 * i);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
}

TARGET void reformat_unpack2_avx2(void *dst, size_t dst_pitch, const void *src,
                                  size_t pitch, size_t lanes, size_t n, size_t ahead)
{
    if (lanes != 2 || pitch != 2 || n < 16) {
        reformat_unpack2_wide_avx2(dst, dst_pitch, src, pitch, lanes, n, ahead);
        return;
    }
    const __m256i split =
        _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5,
                         8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    uint16_t *a = dst, *b = a + dst_pitch;
    for (size_t at = 0; at < n; at += 16) {
        const size_t i = at + 16 > n ? n - 16 : at;
        const __m256i *from = (const __m256i *)((const uint16_t *)src + 2 * i);
        __builtin_prefetch((const uint16_t *)from + 2 * ahead);
        __m256i x = _mm256_shuffle_epi8(_mm256_loadu_si256(from), split);
        __m256i y = _mm256_shuffle_epi8(_mm256_loadu_si256(from + 1), split);
        x = _mm256_permute4x64_epi64(x, 0xd8);
        y = _mm256_permute4x64_epi64(y, 0xd8);
        _mm256_storeu_si256((__m256i *)(a + i), _mm256_permute2x128_si256(x, y, 0x20));
        _mm256_storeu_si256((__m256i *)(b + i), _mm256_permute2x128_si256(x, y, 0x31));
    }
}

/* ---- streaming ----------------------------------------------------------------------
 */

TARGET static void stream_avx2(void *dst, const void *src, size_t bytes)
{
    char *d = dst;
    const char *s = src;
    size_t head = -(uintptr_t)d & 31;
    if (head > bytes)
        head = bytes;
    memcpy(d, s, head);
    for (bytes -= head, d += head, s += head; bytes >= 32; bytes -= 32, d += 32, s += 32)
        _mm256_stream_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
    memcpy(d, s, bytes);
}

static void fence_avx2(void)
{
    _mm_sfence();
}

const struct reformat_kernels reformat_avx2 = {
    .to_float = {[STRATA_FP16] = half_to,
                 [STRATA_BF16] = bfloat_to,
                 [STRATA_INT8] = int8_to,
                 [STRATA_UINT8] = uint8_to,
                 [STRATA_INT32] = int32_to},
    .from_float = {[STRATA_FP16] = half_from,
                   [STRATA_BF16] = bfloat_from,
                   [STRATA_INT8] = int8_from,
                   [STRATA_UINT8] = uint8_from,
                   [STRATA_INT32] = int32_from},
    .pack = {reformat_pack1_avx2, reformat_pack2_avx2, reformat_pack4_avx2,
             reformat_pack8_plain},
    .unpack = {reformat_unpack1_avx2, reformat_unpack2_avx2, reformat_unpack4_avx2,
               reformat_unpack8_plain},
    .stream = stream_avx2,
    .fence = fence_avx2,
};

#endif /* REFORMAT_X86 */
