/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes by the VNNI of AVX-512. A number of a row is a whole number of 2^-23
 * of the row's scale, which is three digits of eight bits: an instruction multiplies four
 * of one digit by four weights, with exact sums. Weights are not made floats, and four
 * are read for each of theirs. What is rounded is a number's last digit: a sum is off by
 * at most 2^-24 of the scale times the sum of weights' sizes, which is FP32's size where
 * the row's numbers are of about one size. Rows that are uneven, and those with states
 * that are tiny for a scale of 1, are multiplied as floats.
 */
#include "plugins/rnn/host.h"

#include "plugins/common/pointwise/row.h"

#define UNROLL _Pragma("GCC unroll 16")
#define PARTS 3      /* digits of a number */
#define GATES 4      /* of the one op that has such panels */
#define MOST 8388607 /* 2^23 - 1: counts of a scale */
#define BEYOND 8     /* counts that rounding may have put a state beyond 1 */
#define FEW 131072   /* counts: where no state of 16 has more, they have too few digits */
#define DEEP 65536   /* numbers of a row; 255*127 times as much fits 32 bits */
#define SMALL 1e-30f /* scales that can be divided by, and into */
#define LARGE 1e30f
#define EVEN                                                                             \
    6 /* binary orders below a row's largest: the root mean square of the others */
#define LOST 24 /* orders below the largest of a number that has no digits left */

static int is_own_lstm(const struct rnn_plan *p)
{
    for (int d = 0; d < p->directions; d++)
        if (p->rule[d].custom)
            return 0;
    return p->op == STRATA_RNN_LSTM;
}

int rnn_may_have_digits(const struct rnn_plan *p)
{
    return is_own_lstm(p) && p->gates * p->hidden * p->hidden >= RNN_FAR &&
           p->hidden < DEEP / 2 && p->inputs < DEEP;
}

#ifdef ELEMENT_X86
#define DIGITS                                                                           \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))

int rnn_has_digits(void)
{
    return row_has_avx512() && __builtin_cpu_supports("avx512vnni");
}

/* Four numbers as their low bytes, the middle ones, the high ones and zeros. */
DIGITS static inline __m512i digits_of(__m512 counts)
{
    const __m512i order = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i most = _mm512_set1_epi32(MOST), least = _mm512_set1_epi32(-MOST);
    const __m512i n =
        _mm512_max_epi32(_mm512_min_epi32(_mm512_cvtps_epi32(counts), most), least);
    return _mm512_shuffle_epi8(_mm512_add_epi32(n, _mm512_set1_epi32(MOST + 1)), order);
}

DIGITS int rnn_digits_of_states(uint8_t *to, const float *h)
{
    const __m512 counts =
        _mm512_mul_ps(_mm512_loadu_ps(h), _mm512_set1_ps((float)MOST + 1));
    const __m512 sizes = _mm512_abs_ps(counts);
    const __m512 most = _mm512_set1_ps((float)MOST + 1 + BEYOND);
    const __mmask16 some = _mm512_cmp_ps_mask(sizes, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_storeu_si512(to, digits_of(counts));
    return _mm512_cmp_ps_mask(sizes, most, _CMP_LE_OQ) == 0xffff &&
           (!some || _mm512_cmp_ps_mask(sizes, _mm512_set1_ps(FEW), _CMP_GE_OQ));
}

static inline __mmask16 first_of(int64_t left)
{
    return (__mmask16)(left < 16 ? (1 << left) - 1 : 0xffff);
}

/* Squares of the orders that numbers but 0 are below the largest's. Their mean finds a
 * few large ones among many as well as many among few, which that of the numbers does
 * not: they are most of it. */
DIGITS static inline __m512 depths_of(__m512 v, float largest, __mmask16 *some)
{
    *some = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_OQ);
    const __m512 orders = _mm512_sub_ps(_mm512_getexp_ps(_mm512_set1_ps(largest)),
                                        _mm512_maskz_getexp_ps(*some, v));
    const __m512 below = _mm512_min_ps(orders, _mm512_set1_ps(LOST));
    return _mm512_maskz_mul_ps(*some, below, below);
}

DIGITS float rnn_digits_of_row(uint8_t *to, const float *x, int64_t n)
{
    __m512 most = _mm512_setzero_ps();
    __mmask16 odd = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 v = _mm512_maskz_loadu_ps(first_of(n - i), x + i);
        const __m512 size = _mm512_abs_ps(v);
        odd |= _mm512_cmp_ps_mask(size, _mm512_set1_ps(LARGE), _CMP_NLE_UQ);
        most = _mm512_max_ps(most, size);
    }
    const float largest = _mm512_reduce_max_ps(most);
    if (odd || (largest < SMALL && largest != 0))
        return 0;
    const float unit = largest > 0 ? largest / MOST : 1;
    __m512 depths = _mm512_setzero_ps();
    int64_t numbers = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 v = _mm512_maskz_loadu_ps(first_of(n - i), x + i);
        __mmask16 some;
        depths = _mm512_add_ps(depths, depths_of(v, largest, &some));
        numbers += __builtin_popcount(some);
        _mm512_storeu_si512(to + 4 * i,
                            digits_of(_mm512_div_ps(v, _mm512_set1_ps(unit))));
    }
    if (_mm512_reduce_add_ps(depths) > (float)(EVEN * EVEN * (numbers - 1)) && numbers)
        return 0;
    return unit;
}

/* A gate's sum of a row, from those of its digits. */
DIGITS ROW_INLINE void put_sum(const struct rnn_sums *s, int m, int g, __m512i low,
                               __m512i middle, __m512i high)
{
    const __m512 step = _mm512_mul_ps(_mm512_loadu_ps(s->step + g * RNN_LANES),
                                      _mm512_set1_ps(s->unit[m]));
    const __m512 lower = _mm512_fmadd_ps(_mm512_cvtepi32_ps(middle), _mm512_set1_ps(256),
                                         _mm512_cvtepi32_ps(low));
    const __m512 sum =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(65536), lower);
    _mm512_storeu_ps(
        s->sum[m] + g * s->gate,
        _mm512_fmadd_ps(sum, step, _mm512_loadu_ps(s->start[m] + g * RNN_LANES)));
}

/* Rows m to m + rows, at most two: with the weights, as many as registers hold. Sums go
 * through memory at the end: else the compiler keeps copies there all along. */
DIGITS ROW_INLINE void sum_rows(const struct rnn_sums *s, const int m, const int rows,
                                int64_t k, const int8_t *panel)
{
    __m512i sums[2][GATES][PARTS], out[2][GATES][PARTS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int g = 0; g < GATES; g++)
    {
        sums[r][g][0] = sums[r][g][1] = _mm512_setzero_si512();
        sums[r][g][2] = _mm512_loadu_si512(s->less + g * RNN_LANES);
    }
    for (int64_t i = 0; i < k; i += 4, panel += GATES * RNN_LANES * 4) {
        __m512i w[GATES];
        UNROLL for (int g = 0; g < GATES; g++) w[g] =
            _mm512_loadu_si512(panel + g * RNN_LANES * 4);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int d = 0; d < PARTS; d++)
        {
            int32_t four;
            memcpy(&four, s->digits[m + r] + 4 * i + 4 * d, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            UNROLL for (int g = 0; g < GATES; g++) sums[r][g][d] =
                _mm512_dpbusd_epi32(sums[r][g][d], x, w[g]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int g = 0; g < GATES; g++)
        UNROLL for (int d = 0; d < PARTS; d++)
            _mm512_store_si512(&out[r][g][d], sums[r][g][d]);
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < GATES; g++)
            put_sum(s, m + r, g, out[r][g][0], out[r][g][1], out[r][g][2]);
}

DIGITS static void sum_one(const struct rnn_sums *s, int m, int64_t k,
                           const int8_t *panel)
{
    sum_rows(s, m, 1, k, panel);
}

DIGITS static void sum_two(const struct rnn_sums *s, int m, int64_t k,
                           const int8_t *panel)
{
    sum_rows(s, m, 2, k, panel);
}

/* Of a row that has no digits. */
DIGITS static void sum_floats(const struct rnn_sums *s, int row, int64_t k,
                              const int8_t *panel)
{
    __m512 part[4][GATES] = {{{0}}};
    for (int64_t i = 0; i < k; i += 4, panel += GATES * RNN_LANES * 4)
        UNROLL for (int t = 0; t < 4; t++)
        {
            const __m512 x = _mm512_set1_ps(i + t < k ? s->a[row][i + t] : 0);
            UNROLL for (int g = 0; g < GATES; g++)
            {
                const __m512i w = _mm512_slli_epi32(
                    _mm512_loadu_si512(panel + g * RNN_LANES * 4), 24 - 8 * (unsigned)t);
                part[t][g] = _mm512_fmadd_ps(
                    x, _mm512_cvtepi32_ps(_mm512_srai_epi32(w, 24)), part[t][g]);
            }
        }
    UNROLL for (int g = 0; g < GATES; g++)
    {
        const __m512 sum = _mm512_add_ps(_mm512_add_ps(part[0][g], part[1][g]),
                                         _mm512_add_ps(part[2][g], part[3][g]));
        _mm512_storeu_ps(s->sum[row] + g * s->gate,
                         _mm512_fmadd_ps(sum, _mm512_loadu_ps(s->step + g * RNN_LANES),
                                         _mm512_loadu_ps(s->start[row] + g * RNN_LANES)));
    }
}

DIGITS void rnn_sum_digits(const struct rnn_sums *s, int rows, int64_t k,
                           const void *panel)
{
    for (int m = 0; m < rows; m++)
        if (s->unit[m] == 0) {
            sum_floats(s, m, k, panel);
        } else if (m + 1 < rows && s->unit[m + 1] != 0) {
            sum_two(s, m, k, panel);
            m++;
        } else {
            sum_one(s, m, k, panel);
        }
}
#else
int rnn_has_digits(void)
{
    return 0;
}

int rnn_digits_of_states(uint8_t *to, const float *h)
{
    (void)to, (void)h;
    return 0;
}

float rnn_digits_of_row(uint8_t *to, const float *x, int64_t n)
{
    (void)to, (void)x, (void)n;
    return 0;
}

void rnn_sum_digits(const struct rnn_sums *s, int rows, int64_t k, const void *panel)
{
    (void)s, (void)rows, (void)k, (void)panel;
}
#endif
