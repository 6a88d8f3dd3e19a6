/* SPDX-License-Identifier: Apache-2.0
 *
 * One by one, or by the permutations of AVX-512 VBMI: the table is four vectors, two of
 * which a permutation reads by seven bits, and the eighth bit chooses.
 */
#include "plugins/quantized_pointwise/table.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static void plain(uint8_t *y, const uint8_t *x, int64_t n, const uint8_t *table)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

#ifdef __x86_64__
enum { LANES = 64 };

#define TABLE_VBMI __attribute__((target("avx512f,avx512bw,avx512vbmi")))

TABLE_VBMI static void permute(uint8_t *y, const uint8_t *x, int64_t n,
                               const uint8_t *table)
{
    __m512i part[TABLE_BYTES / LANES];
    for (int i = 0; i < TABLE_BYTES / LANES; i++)
        part[i] = _mm512_loadu_si512(table + i * LANES);
    for (int64_t i = 0; i < n; i += LANES) {
        const __mmask64 m = n - i < LANES ? (UINT64_C(1) << (n - i)) - 1 : ~UINT64_C(0);
        const __m512i at = _mm512_maskz_loadu_epi8(m, x + i);
        const __m512i low = _mm512_permutex2var_epi8(part[0], at, part[1]);
        const __m512i high = _mm512_permutex2var_epi8(part[2], at, part[3]);
        _mm512_mask_storeu_epi8(
            y + i, m, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
    }
}
#endif

void table_look_up(uint8_t *y, const uint8_t *x, int64_t n,
                   const uint8_t table[TABLE_BYTES])
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi")) {
        permute(y, x, n, table);
        return;
    }
#endif
    plain(y, x, n, table);
}
