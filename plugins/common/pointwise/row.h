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

#define EACH(expression)                                                                 \
    {                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                  \
            row[i] = (expression);                                                       \
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
    }

/* T_apply, from T_rows. */
#ifdef ELEMENT_X86
#define ROW_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define ROW_APPLY(T)                                                                     \
    ROW_TARGET(T, avx512, ROW_AVX512)                                                    \
    ROW_TARGET(T, avx2, __attribute__((target("avx2,fma"))))                             \
    ROW_TARGET(T, plain, )                                                               \
    static void T##_apply(int op, const struct pointwise_constants *k, void *y,          \
                          const void *a, const void *b, const void *c, int64_t n)        \
    {                                                                                    \
        if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))    \
            T##_avx512(op, k, y, a, b, c, n);                                            \
        else if (element_has_f16c())                                                     \
            T##_avx2(op, k, y, a, b, c, n);                                              \
        else                                                                             \
            T##_plain(op, k, y, a, b, c, n);                                             \
    }
#else
#define ROW_APPLY(T) ROW_TARGET(T, apply, )
#endif

#endif /* PLUGINS_COMMON_POINTWISE_ROW_H */
