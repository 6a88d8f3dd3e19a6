/* SPDX-License-Identifier: Apache-2.0
 *
 * How the rows of a class are written: loops, and one compilation of them for each kind
 * of vectors, chosen when they run.
 */
#ifndef PLUGINS_COMMON_POINTWISE_ROW_H
#define PLUGINS_COMMON_POINTWISE_ROW_H

#include "plugins/common/element.h"
#include "plugins/common/pointwise.h"

#define ROW_INLINE static inline __attribute__((always_inline))

/* y may be one of the arguments, at the same place: no iteration reads what another
 * wrote. */
#define LOOP(expression)                                                                 \
    do {                                                                                 \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = (expression);        \
    } while (0)

/* Steps of 1 and 0 (one value for all) apart, so that they become vector code. */
#define EACH(type, expression)                                                           \
    {                                                                                    \
        const type *from = data;                                                         \
        if (step == 1)                                                                   \
            for (int64_t i = 0; i < n; i++) {                                            \
                const type x = from[i];                                                  \
                row[i] = (expression);                                                   \
            }                                                                            \
        else if (step == 0 && n > 0) {                                                   \
            const type x = from[0];                                                      \
            const __typeof__(*row) value = (expression);                                 \
            for (int64_t i = 0; i < n; i++)                                              \
                row[i] = value;                                                          \
        } else                                                                           \
            for (int64_t i = 0; i < n; i++) {                                            \
                const type x = from[i * step];                                           \
                row[i] = (expression);                                                   \
            }                                                                            \
    }
#define STORE_EACH(type, expression)                                                     \
    {                                                                                    \
        type *out = data;                                                                \
        if (step == 1)                                                                   \
            for (int64_t i = 0; i < n; i++)                                              \
                out[i] = (type)(expression);                                             \
        else                                                                             \
            for (int64_t i = 0; i < n; i++)                                              \
                out[i * step] = (type)(expression);                                      \
    }

#define ROW_TARGET(T, kind, target)                                                      \
    target static void T##_##kind(int op, const struct pointwise_constants *k, void *y,  \
                                  const void *a, const void *b, const void *c,           \
                                  int64_t n)                                             \
    {                                                                                    \
        T##_rows(op, k, y, a, b, c, n);                                                  \
    }                                                                                    \
    target static void T##_load_##kind(void *row, const void *data, int32_t dtype,       \
                                       int64_t step, int64_t n)                          \
    {                                                                                    \
        T##_load_row(row, data, dtype, step, n);                                         \
    }                                                                                    \
    target static void T##_store_##kind(void *data, int32_t dtype, int64_t step,         \
                                        const void *row, int64_t n)                      \
    {                                                                                    \
        T##_store_row(data, dtype, step, row, n);                                        \
    }

/* The best of the tables NAME_avx512, NAME_avx2 and NAME_plain that this processor runs. */
#ifdef ELEMENT_X86
#define ROW_BEST(name)                                                                   \
    (row_has_avx512()     ? &name##_avx512                                               \
     : element_has_f16c() ? &name##_avx2                                                 \
                          : &name##_plain)
#else
#define ROW_BEST(name) (&name##_plain)
#endif

/* T_apply, T_load and T_store, from T_rows, T_load_row and T_store_row. */
#ifdef ELEMENT_X86
static inline int row_has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#define ROW_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define ROW_CHOOSE(T, avx512, avx2, plain, ...)                                          \
    {                                                                                    \
        if (row_has_avx512())                                                            \
            T##_##avx512(__VA_ARGS__);                                                   \
        else if (element_has_f16c())                                                     \
            T##_##avx2(__VA_ARGS__);                                                     \
        else                                                                             \
            T##_##plain(__VA_ARGS__);                                                    \
    }
#define ROW_FUNCTIONS(T)                                                                 \
    ROW_TARGET(T, avx512, ROW_AVX512)                                                    \
    ROW_TARGET(T, avx2, __attribute__((target("avx2,fma"))))                             \
    ROW_TARGET(T, plain, )                                                               \
    static void T##_apply(int op, const struct pointwise_constants *k, void *y,          \
                          const void *a, const void *b, const void *c, int64_t n)        \
        ROW_CHOOSE(T, avx512, avx2, plain, op, k, y, a, b, c, n) static void T##_load(   \
            void *row, const void *data, int32_t dtype, int64_t step, int64_t n)         \
            ROW_CHOOSE(T, load_avx512, load_avx2, load_plain, row, data, dtype, step,    \
                       n) static void T##_store(void *data, int32_t dtype, int64_t step, \
                                                const void *row, int64_t n)              \
                ROW_CHOOSE(T, store_avx512, store_avx2, store_plain, data, dtype, step,  \
                           row, n)
#else
#define ROW_FUNCTIONS(T)                                                                 \
    ROW_TARGET(T, plain, )                                                               \
    enum { T##_is_plain = 1 };
#define float_apply float_plain
#define float_load float_load_plain
#define float_store float_store_plain
#define integer_apply integer_plain
#define integer_load integer_load_plain
#define integer_store integer_store_plain
#endif

#endif /* PLUGINS_COMMON_POINTWISE_ROW_H */
