/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of cells with their ops' own functions, in registers of AVX-512: quotients, which
 * take its divider 16 clocks each, are reciprocals of 14 bits and one of Newton's steps.
 */
#ifndef PLUGINS_RNN_CELL_AVX512_H
#define PLUGINS_RNN_CELL_AVX512_H

#include "plugins/common/pointwise/row.h"

#define CELL_AVX512 ROW_AVX512 static inline

/* 1/x within two units in the last place; x and 1/x are normal numbers or NaN. */
CELL_AVX512 __m512 cell_reciprocal(__m512 x)
{
    const __m512 y = _mm512_rcp14_ps(x);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(x, y, _mm512_set1_ps(1)), y, y);
}

CELL_AVX512 __m512 cell_step(__m512 p, __m512 r, float term)
{
    return _mm512_fmadd_ps(p, r, _mm512_set1_ps(term));
}

/* 2^n of n + 1.5*2^23 + 127. */
CELL_AVX512 __m512 cell_power(__m512 t)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t), 23));
}

/* 1/(1 + exp(-x)); beyond 87 exp(-x) stays a normal number, and its
 * reciprocal. A NaN stays one, as min and max give their second. */
CELL_AVX512 __m512 cell_sigmoid(__m512 x)
{
    const __m512 magic = _mm512_set1_ps(0x1.8000fep23f);
    const __m512 a =
        _mm512_min_ps(_mm512_set1_ps(87), _mm512_max_ps(_mm512_set1_ps(-87), x));
    const __m512 t = _mm512_fnmadd_ps(a, _mm512_set1_ps(0x1.715476p0f), magic);
    const __m512 n = _mm512_sub_ps(t, magic);
    /* -r: in one step, as log(2) is off by 2^-29 and n is large where little depends on
     * it. */
    const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(0x1.62e43p-1f), a);
    __m512 p = _mm512_set1_ps(0x1.6a23cep-10f);
    p = cell_step(p, r, -0x1.123a2p-7f);
    p = cell_step(p, r, 0x1.5558f2p-5f);
    p = cell_step(p, r, -0x1.555492p-3f);
    p = cell_step(p, r, 0x1.fffffcp-2f);
    p = cell_step(p, r, -1);
    p = cell_step(p, r, 1);
    return cell_reciprocal(_mm512_fmadd_ps(p, cell_power(t), _mm512_set1_ps(1)));
}

/* h/(h + 1), h = (exp(2|x|) - 1)/2, which loses nothing where x is small: one way for all
 * x. From 10 on it is 1. |x| is n*log(2)/2 + r, in one step: log(2) as a float is off by
 * 2^-29, and where n is large that no longer matters. */
CELL_AVX512 __m512 cell_tanh(__m512 x)
{
    const __m512 magic = _mm512_set1_ps(0x1.8000fep23f), half = _mm512_set1_ps(0.5f);
    const __m512 a = _mm512_min_ps(_mm512_set1_ps(10), _mm512_abs_ps(x));
    const __m512 t = _mm512_fmadd_ps(a, _mm512_set1_ps(0x1.715476p1f), magic);
    const __m512 n = _mm512_sub_ps(t, magic);
    const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e43p-2f), a);
    const __m512 scale = cell_power(t);
    __m512 p = _mm512_set1_ps(0x1.6bebdcp-5f);
    p = cell_step(p, r, 0x1.122886p-3f);
    p = cell_step(p, r, 0x1.555676p-2f);
    p = cell_step(p, r, 0x1.5554aep-1f);
    p = cell_step(p, r, 0x1.fffffep-1f);
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    const __m512 h = _mm512_fmadd_ps(scale, p, _mm512_fmsub_ps(scale, half, half));
    const __m512 y =
        _mm512_mul_ps(h, cell_reciprocal(_mm512_add_ps(h, _mm512_set1_ps(1))));
    return _mm512_or_ps(y, _mm512_and_ps(x, _mm512_set1_ps(-0.f)));
}

CELL_AVX512 void cell_own_lstm(float *z, int64_t apart, float *c, float *h, int64_t n)
{
    for (int64_t i = 0; i < n; i += RNN_LANES) {
        const __m512 in = cell_sigmoid(_mm512_loadu_ps(z + RNN_I * apart + i));
        const __m512 forget = cell_sigmoid(_mm512_loadu_ps(z + RNN_F * apart + i));
        const __m512 candidate = cell_tanh(_mm512_loadu_ps(z + RNN_C * apart + i));
        const __m512 out = cell_sigmoid(_mm512_loadu_ps(z + RNN_O * apart + i));
        const __m512 cell =
            _mm512_fmadd_ps(forget, _mm512_loadu_ps(c + i), _mm512_mul_ps(in, candidate));
        _mm512_storeu_ps(c + i, cell);
        _mm512_storeu_ps(h + i, _mm512_mul_ps(out, cell_tanh(cell)));
    }
}

CELL_AVX512 void cell_own_gates(float *z, int64_t apart, int64_t n)
{
    for (int64_t i = 0; i < n; i += RNN_LANES)
        for (int gate = 0; gate < RNN_CANDIDATE; gate++) {
            float *x = z + gate * apart + i;
            _mm512_storeu_ps(x, cell_sigmoid(_mm512_loadu_ps(x)));
        }
}

CELL_AVX512 void cell_own_gru(const float *z, int64_t apart, const float *after,
                              const float *old, float *h, int64_t n)
{
    const __m512 one = _mm512_set1_ps(1);
    for (int64_t i = 0; i < n; i += RNN_LANES) {
        const __m512 update = _mm512_loadu_ps(z + RNN_UPDATE * apart + i);
        const __m512 reset = _mm512_loadu_ps(z + RNN_RESET * apart + i);
        __m512 x = _mm512_loadu_ps(z + RNN_CANDIDATE * apart + i);
        if (after)
            x = _mm512_fmadd_ps(reset, _mm512_loadu_ps(after + i), x);
        _mm512_storeu_ps(h + i, _mm512_fmadd_ps(update, _mm512_loadu_ps(old + i),
                                                _mm512_mul_ps(_mm512_sub_ps(one, update),
                                                              cell_tanh(x))));
    }
}

#endif /* PLUGINS_RNN_CELL_AVX512_H */
