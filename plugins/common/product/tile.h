/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner loops of FP32 products on the host, one set per instruction set. A is read where
 * it lies, at any distances; B as rows of neighbouring columns, or of neighbouring k.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TILE_H
#define PLUGINS_COMMON_PRODUCT_TILE_H

#include "plugins/common/element.h"

#define TILE_VECTORS 3  /* most, of a tile's columns */
#define TILE_COLUMNS 48 /* most */
#define TILE_STREAMS 4  /* rows of B that a row's product walks at once */

struct tile_operands {
    int64_t k, a_row, a_step, b_row, c_row; /* distances in elements */
    const float *a, *b;
    float *c;
    int64_t columns;    /* of axpy: any number; rows of B in dot */
    int32_t accumulate; /* c holds a sum already */
};

typedef void (*tile_fn)(const struct tile_operands *);

/*
 * tile: c[rows][vectors] (+)= A*B, b_row from one k to the next
 * axpy: the same for few rows and any columns, B read once, c kept in the cache
 * dot:  c[rows][columns] = A*B, B's k side by side, b_row from one column to the next,
 *       a_step 1
 */
struct tile_set {
    const char *name;
    int rows, lanes; /* of a whole tile */
    tile_fn tile[2][TILE_VECTORS]; /* one row, whole tiles; 1 to 3 vectors */
    tile_fn axpy[3], dot[3];       /* of 1, 2, 4 rows */
};

#define BODY __attribute__((always_inline)) static inline
#define UNROLL _Pragma("GCC unroll 8")
#define LOAD(v, p) memcpy(&(v), (p), sizeof(v))
#define STORE(p, v) memcpy((p), &(v), sizeof(v))

#define TILE_BODIES(LANES)                                                               \
    typedef float vector##LANES __attribute__((vector_size(LANES * 4)));                 \
                                                                                         \
    BODY void tile_body##LANES(const struct tile_operands *o, const int rows,            \
                               const int vectors)                                        \
    {                                                                                    \
        vector##LANES sum[8][TILE_VECTORS] = {{{0}}};                                    \
        const float *a = o->a, *b = o->b;                                                \
        UNROLL for (int m = 0; m < rows; m++)                                            \
            UNROLL for (int v = 0; v < vectors; v++)                                     \
                if (o->accumulate)                                                       \
                    LOAD(sum[m][v], o->c + m * o->c_row + v * LANES);                    \
        for (int64_t k = 0; k < o->k; k++, a += o->a_step, b += o->b_row) {              \
            vector##LANES x[TILE_VECTORS];                                               \
            UNROLL for (int v = 0; v < vectors; v++)                                     \
                LOAD(x[v], b + v * LANES);                                               \
            UNROLL for (int m = 0; m < rows; m++)                                        \
                UNROLL for (int v = 0; v < vectors; v++)                                 \
                    sum[m][v] += a[m * o->a_row] * x[v];                                 \
        }                                                                                \
        UNROLL for (int m = 0; m < rows; m++)                                            \
            UNROLL for (int v = 0; v < vectors; v++)                                     \
                STORE(o->c + m * o->c_row + v * LANES, sum[m][v]);                       \
    }                                                                                    \
                                                                                         \
    BODY void axpy_rows##LANES(const struct tile_operands *o, const float *a,            \
                               const float *b, const int rows, const int streams)        \
    {                                                                                    \
        int64_t j = 0;                                                                   \
        for (; j + LANES <= o->columns; j += LANES) {                                    \
            vector##LANES x[TILE_STREAMS];                                               \
            UNROLL for (int s = 0; s < streams; s++)                                     \
                LOAD(x[s], b + s * o->b_row + j);                                        \
            UNROLL for (int m = 0; m < rows; m++) {                                      \
                vector##LANES sum;                                                       \
                LOAD(sum, o->c + m * o->c_row + j);                                      \
                UNROLL for (int s = 0; s < streams; s++)                                 \
                    sum += a[m * o->a_row + s * o->a_step] * x[s];                       \
                STORE(o->c + m * o->c_row + j, sum);                                     \
            }                                                                            \
        }                                                                                \
        for (; j < o->columns; j++)                                                      \
            UNROLL for (int m = 0; m < rows; m++)                                        \
                UNROLL for (int s = 0; s < streams; s++)                                 \
                    o->c[m * o->c_row + j] +=                                            \
                        a[m * o->a_row + s * o->a_step] * b[s * o->b_row + j];           \
    }                                                                                    \
                                                                                         \
    BODY void axpy_body##LANES(const struct tile_operands *o, const int rows)            \
    {                                                                                    \
        int64_t k = 0;                                                                   \
        for (int m = 0; m < rows && !o->accumulate; m++)                                 \
            memset(o->c + m * o->c_row, 0, (size_t)o->columns * sizeof *o->c);           \
        for (; k + TILE_STREAMS <= o->k; k += TILE_STREAMS)                              \
            axpy_rows##LANES(o, o->a + k * o->a_step, o->b + k * o->b_row, rows,         \
                             TILE_STREAMS);                                              \
        for (; k < o->k; k++)                                                            \
            axpy_rows##LANES(o, o->a + k * o->a_step, o->b + k * o->b_row, rows, 1);     \
    }                                                                                    \
                                                                                         \
    /* `streams` columns: each vector of A serves them all. */                          \
    BODY void dot_columns##LANES(const struct tile_operands *o, int64_t column,          \
                                 const int rows, const int streams)                      \
    {                                                                                    \
        vector##LANES sum[4][TILE_STREAMS] = {{{0}}};                                    \
        const float *b = o->b + column * o->b_row;                                       \
        int64_t k = 0;                                                                   \
        for (; k + LANES <= o->k; k += LANES) {                                          \
            vector##LANES y;                                                             \
            vector##LANES x[4];                                                          \
            UNROLL for (int m = 0; m < rows; m++)                                        \
                LOAD(x[m], o->a + m * o->a_row + k);                                     \
            UNROLL for (int s = 0; s < streams; s++) {                                   \
                LOAD(y, b + s * o->b_row + k);                                           \
                UNROLL for (int m = 0; m < rows; m++)                                    \
                    sum[m][s] += x[m] * y;                                               \
            }                                                                            \
        }                                                                                \
        UNROLL for (int m = 0; m < rows; m++)                                            \
            UNROLL for (int s = 0; s < streams; s++) {                                   \
                float total = 0;                                                         \
                for (int64_t i = k; i < o->k; i++)                                       \
                    total += o->a[m * o->a_row + i] * b[s * o->b_row + i];               \
                for (int l = 0; l < LANES; l++)                                          \
                    total += sum[m][s][l];                                               \
                o->c[m * o->c_row + column + s] = total;                                 \
            }                                                                            \
    }                                                                                    \
                                                                                         \
    BODY void dot_body##LANES(const struct tile_operands *o, const int rows)             \
    {                                                                                    \
        int64_t j = 0;                                                                   \
        for (; j + TILE_STREAMS <= o->columns; j += TILE_STREAMS)                        \
            dot_columns##LANES(o, j, rows, TILE_STREAMS);                                \
        for (; j < o->columns; j++)                                                      \
            dot_columns##LANES(o, j, rows, 1);                                           \
    }

TILE_BODIES(4)
TILE_BODIES(8)
TILE_BODIES(16)

#define TILE_FUNCTION(NAME, TARGET, CALL)                                                \
    TARGET static void NAME(const struct tile_operands *o)                               \
    {                                                                                    \
        CALL;                                                                            \
    }
#define TILE_SET(NAME, TARGET, LANES, ROWS)                                              \
    TILE_FUNCTION(NAME##_tile_1_1, TARGET, tile_body##LANES(o, 1, 1))                    \
    TILE_FUNCTION(NAME##_tile_1_2, TARGET, tile_body##LANES(o, 1, 2))                    \
    TILE_FUNCTION(NAME##_tile_1_3, TARGET, tile_body##LANES(o, 1, 3))                    \
    TILE_FUNCTION(NAME##_tile_1, TARGET, tile_body##LANES(o, ROWS, 1))                   \
    TILE_FUNCTION(NAME##_tile_2, TARGET, tile_body##LANES(o, ROWS, 2))                   \
    TILE_FUNCTION(NAME##_tile_3, TARGET, tile_body##LANES(o, ROWS, 3))                   \
    TILE_FUNCTION(NAME##_axpy_1, TARGET, axpy_body##LANES(o, 1))                         \
    TILE_FUNCTION(NAME##_axpy_2, TARGET, axpy_body##LANES(o, 2))                         \
    TILE_FUNCTION(NAME##_axpy_4, TARGET, axpy_body##LANES(o, 4))                         \
    TILE_FUNCTION(NAME##_dot_1, TARGET, dot_body##LANES(o, 1))                           \
    TILE_FUNCTION(NAME##_dot_2, TARGET, dot_body##LANES(o, 2))                           \
    TILE_FUNCTION(NAME##_dot_4, TARGET, dot_body##LANES(o, 4))
#define TILE_ENTRY(NAME, LANES, ROWS)                                                    \
    {                                                                                    \
        #NAME, ROWS, LANES,                                                              \
            {{NAME##_tile_1_1, NAME##_tile_1_2, NAME##_tile_1_3},                        \
             {NAME##_tile_1, NAME##_tile_2, NAME##_tile_3}},                             \
            {NAME##_axpy_1, NAME##_axpy_2, NAME##_axpy_4},                               \
        {                                                                                \
            NAME##_dot_1, NAME##_dot_2, NAME##_dot_4                                     \
        }                                                                                \
    }

TILE_SET(plain, , 4, 4)
#ifdef ELEMENT_X86
TILE_SET(avx2, __attribute__((target("avx2,fma"))), 8, 4)
TILE_SET(avx512, __attribute__((target("avx512f"))), 16, 8)
#endif

static const struct tile_set tile_sets[] = {
    TILE_ENTRY(plain, 4, 4),
#ifdef ELEMENT_X86
    TILE_ENTRY(avx2, 8, 4),
    TILE_ENTRY(avx512, 16, 8),
#endif
};

/* The best set for this CPU. */
static inline const struct tile_set *tile_choose(void)
{
#ifdef ELEMENT_X86
    return __builtin_cpu_supports("avx512f") ? &tile_sets[2]
           : element_has_f16c()              ? &tile_sets[1]
                                             : &tile_sets[0];
#else
    return &tile_sets[0];
#endif
}

#endif /* PLUGINS_COMMON_PRODUCT_TILE_H */
