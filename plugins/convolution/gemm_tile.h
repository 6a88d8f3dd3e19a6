/* SPDX-License-Identifier: Apache-2.0
 *
 * Register tiles of a matrix product, C[m][j] (+)= sum over k of A[k][m]*B[k][j]: the
 * inner loop of the host impls, one row per instruction set, best first. A tile is
 * `rows` of C by one to three vectors; all of it stays in registers over k.
 */
#ifndef PLUGINS_CONVOLUTION_GEMM_TILE_H
#define PLUGINS_CONVOLUTION_GEMM_TILE_H

#include "plugins/common/element.h"

#define GEMM_MAX_ROWS 8
#define GEMM_MAX_COLUMNS 48
#define GEMM_DEPTH 128 /* k per call, so that a block of B stays in the L1 cache */

/* a: k blocks of `rows` floats; b: k rows, ldb floats apart; c: ldc floats apart. */
typedef void (*gemm_tile_fn)(int64_t k, const float *a, const float *b, int64_t ldb,
                             float *c, int64_t ldc, int accumulate);

struct gemm_tile {
    const char *name;
    int rows, vector;      /* of C; floats in a vector */
    gemm_tile_fn tile[3];  /* 1 to 3 vectors wide */
};

#define GEMM_UNROLL _Pragma("GCC unroll 8")

#define GEMM_TILE(NAME, TARGET, TYPE, WIDTH, ROWS, VECTORS, ZERO, LOAD, STORE, SPREAD,  \
                  MULTIPLY_ADD)                                                        \
    TARGET static void NAME(int64_t k, const float *a, const float *b, int64_t ldb,    \
                            float *c, int64_t ldc, int accumulate)                     \
    {                                                                                  \
        TYPE sum[ROWS][VECTORS];                                                       \
        GEMM_UNROLL                                                                    \
        for (int m = 0; m < ROWS; m++)                                                 \
            GEMM_UNROLL                                                                \
            for (int v = 0; v < VECTORS; v++)                                          \
                sum[m][v] = accumulate ? LOAD(c + m * ldc + v * WIDTH) : ZERO;         \
        for (int64_t p = 0; p < k; p++, a += ROWS, b += ldb) {                         \
            TYPE x[VECTORS];                                                           \
            GEMM_UNROLL                                                                \
            for (int v = 0; v < VECTORS; v++)                                          \
                x[v] = LOAD(b + v * WIDTH);                                            \
            GEMM_UNROLL                                                                \
            for (int m = 0; m < ROWS; m++) {                                           \
                TYPE factor = SPREAD(a[m]);                                            \
                GEMM_UNROLL                                                            \
                for (int v = 0; v < VECTORS; v++)                                      \
                    sum[m][v] = MULTIPLY_ADD(factor, x[v], sum[m][v]);                 \
            }                                                                          \
        }                                                                              \
        GEMM_UNROLL                                                                    \
        for (int m = 0; m < ROWS; m++)                                                 \
            GEMM_UNROLL                                                                \
            for (int v = 0; v < VECTORS; v++)                                          \
                STORE(c + m * ldc + v * WIDTH, sum[m][v]);                             \
    }

#define GEMM_TILES(NAME, ...)              \
    GEMM_TILES_(NAME##_1, 1, __VA_ARGS__)  \
    GEMM_TILES_(NAME##_2, 2, __VA_ARGS__)  \
    GEMM_TILES_(NAME##_3, 3, __VA_ARGS__)
#define GEMM_TILES_(NAME, VECTORS, TARGET, TYPE, WIDTH, ROWS, ...) \
    GEMM_TILE(NAME, TARGET, TYPE, WIDTH, ROWS, VECTORS, __VA_ARGS__)

#ifdef ELEMENT_X86
GEMM_TILES(gemm_avx512, __attribute__((target("avx512f"))), __m512, 16, 8,
           _mm512_setzero_ps(), _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps,
           _mm512_fmadd_ps)
GEMM_TILES(gemm_avx2, __attribute__((target("avx2,fma"))), __m256, 8, 4,
           _mm256_setzero_ps(), _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps,
           _mm256_fmadd_ps)
#endif

/* GCC's vector type: SSE, NEON or plain code, as the compiler's target has it. */
typedef float gemm_vector __attribute__((vector_size(16)));

static inline gemm_vector gemm_load(const float *p)
{
    gemm_vector v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void gemm_store(float *p, gemm_vector v)
{
    memcpy(p, &v, sizeof v);
}

#define GEMM_SPREAD(x) ((gemm_vector){(x), (x), (x), (x)})
#define GEMM_MULTIPLY_ADD(a, b, c) ((c) + (a) * (b))
GEMM_TILES(gemm_plain, , gemm_vector, 4, 4, GEMM_SPREAD(0.0f), gemm_load, gemm_store,
           GEMM_SPREAD, GEMM_MULTIPLY_ADD)

static const struct gemm_tile gemm_tiles[] = {
#ifdef ELEMENT_X86
    {"avx512", 8, 16, {gemm_avx512_1, gemm_avx512_2, gemm_avx512_3}},
    {"avx2", 4, 8, {gemm_avx2_1, gemm_avx2_2, gemm_avx2_3}},
#endif
    {"plain", 4, 4, {gemm_plain_1, gemm_plain_2, gemm_plain_3}},
};

/* The best row for this CPU. */
static inline const struct gemm_tile *gemm_choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? &gemm_tiles[0]
           : element_has_f16c()              ? &gemm_tiles[1]
                                             : &gemm_tiles[2];
#else
    return &gemm_tiles[0];
#endif
}

#endif /* PLUGINS_CONVOLUTION_GEMM_TILE_H */
