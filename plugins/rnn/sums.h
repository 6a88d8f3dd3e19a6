/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products of rows and a panel, for one width of vectors: who includes this
 * defines SUMS_WIDTH, in floats, SUMS_NAME(name), SUMS_TARGET, of functions, and
 * SUMS_WIDEN(to, from), which makes so many bytes integers: written out, as the compiler
 * would do it one by one. Wider vectors than a processor's would be taken apart into
 * numbers. A column is so many lanes of a gate.
 */
#define VECTOR SUMS_NAME(vector)
#define INTEGERS SUMS_NAME(integers)
#define PARTS (RNN_LANES / SUMS_WIDTH) /* columns of a gate */
typedef float VECTOR __attribute__((vector_size(SUMS_WIDTH * 4)));
typedef int32_t INTEGERS __attribute__((vector_size(SUMS_WIDTH * 4)));

/* Where column c of a panel is at k = i. Pairs of gates lie apart, so that what is read
 * at once is one stream. */
SUMS_TARGET ROW_INLINE int64_t SUMS_NAME(weight_at)(const int c, const int gates,
                                                    int64_t k, int64_t i)
{
    const int g = c / PARTS, width = gates - g / 2 * 2 > 1 ? 2 : 1;
    return (g / 2 * 2 * k + i * width + g % 2) * RNN_LANES + c % PARTS * SUMS_WIDTH;
}

SUMS_TARGET ROW_INLINE void SUMS_NAME(load_weight)(VECTOR *x, const void *panel,
                                                   int64_t at, const int steps)
{
    if (steps) {
        INTEGERS whole;
        SUMS_WIDEN(whole, (const int8_t *)panel + at);
        *x = __builtin_convertvector(whole, VECTOR);
    } else
        memcpy(x, (const float *)panel + at, sizeof *x);
}

/* Where column c of the sums of row m begins, and goes. */
SUMS_TARGET ROW_INLINE const float *
SUMS_NAME(start_of)(const struct rnn_sums *s, const int m, const int c, const int gates)
{
    const int g = c / PARTS;
    return (s->own && g == gates - 1 ? s->own : s->start[m] + g * RNN_LANES) +
           c % PARTS * SUMS_WIDTH;
}

SUMS_TARGET ROW_INLINE float *SUMS_NAME(place_of)(const struct rnn_sums *s, const int m,
                                                  const int c, const int gates)
{
    const int g = c / PARTS;
    return s->sum[m] + (s->own && g == gates - 1 ? gates : g) * s->gate +
           c % PARTS * SUMS_WIDTH;
}

/* Of bytes the sum is of steps, and what it goes on from is added here. */
SUMS_TARGET ROW_INLINE void SUMS_NAME(put_sum)(const struct rnn_sums *s, const int m,
                                               const int c, const int gates,
                                               const int skipped, VECTOR *sum,
                                               const int steps)
{
    VECTOR start, step;
    if (steps) {
        memcpy(&start, SUMS_NAME(start_of)(s, m, c, gates), sizeof start);
        memcpy(&step, s->step + (c + skipped * PARTS) * SUMS_WIDTH, sizeof step);
        *sum = start + *sum * step;
    }
    memcpy(SUMS_NAME(place_of)(s, m, c, gates), sum, sizeof *sum);
}

/* Rows [row, row + rows), columns [first, first + n) behind the `skipped` gates of
 * `stride`. One row alone goes along k in several streams, as a sum waits for the one
 * before it. */
SUMS_TARGET ROW_INLINE void
SUMS_NAME(sum_some)(const struct rnn_sums *s, int64_t k, const void *panel, const int row,
                    const int rows, const int gates, const int first, const int n,
                    const int skipped, const int stride, const int steps)
{
    const int streams = rows > 1 ? 1 : n > 2 ? 2 : 4, from = skipped * PARTS + first;
    const int size = steps ? 1 : 4;
    VECTOR part[RNN_ROWS][4] = {{{0}}}; /* a row or a stream each */
    const float *a[RNN_ROWS];
    int64_t i = 0;
    UNROLL for (int m = 0; m < rows; m++)
    {
        a[m] = s->a[row + m];
        UNROLL for (int c = 0; c < n && !steps; c++)
            memcpy(&part[m][c], SUMS_NAME(start_of)(s, row + m, first + c, gates),
                   sizeof(VECTOR));
    }
    for (; i + streams <= k; i += streams)
        UNROLL for (int t = 0; t < streams; t++)
        {
            VECTOR x[4];
            UNROLL for (int c = 0; c < n; c++)
            {
                const int64_t at = SUMS_NAME(weight_at)(from + c, stride, k, i + t);
                SUMS_NAME(load_weight)(&x[c], panel, at, steps);
                if (rows >= 4 && c % PARTS == 0) /* a row alone has no room for it */
                    __builtin_prefetch((const void *)((uintptr_t)panel +
                                                      (uintptr_t)((at + AHEAD) * size)));
            }
            UNROLL for (int m = 0; m < rows; m++) UNROLL for (int c = 0; c < n; c++)
                part[m + t][c] += a[m][i + t] * x[c];
        }
    for (; i < k; i++)
        UNROLL for (int c = 0; c < n; c++)
        {
            VECTOR x;
            SUMS_NAME(load_weight)
            (&x, panel, SUMS_NAME(weight_at)(from + c, stride, k, i), steps);
            part[0][c] += a[0][i] * x;
        }
    UNROLL for (int t = 1; t < streams; t++) UNROLL for (int c = 0; c < n; c++)
        part[0][c] += part[t][c];
    UNROLL for (int m = 0; m < rows; m++) UNROLL for (int c = 0; c < n; c++)
        SUMS_NAME(put_sum)(s, row + m, first + c, gates, skipped, &part[m][c], steps);
}

/* All gates but the `skipped` first of `stride`, so many rows and columns at a time as
 * registers hold. */
SUMS_TARGET ROW_INLINE void SUMS_NAME(sum_of)(const struct rnn_sums *s, int64_t k,
                                              const void *panel, const int rows,
                                              const int gates, const int skipped,
                                              const int stride, const int most,
                                              const int registers, const int steps)
{
    const int columns = gates * PARTS, some = rows < most ? rows : most;
    const int fit = registers / some, step = fit < 4 ? fit : 4;
    UNROLL for (int m = 0; m < rows; m += some)
        UNROLL for (int c = 0; c < columns; c += step)
            SUMS_NAME(sum_some)(s, k, panel, m, some, gates, c,
                                columns - c < step ? columns - c : step, skipped, stride,
                                steps);
}

SUMS_TARGET ROW_INLINE void SUMS_NAME(copy_lanes)(float *to, const float *from)
{
    UNROLL for (int c = 0; c < PARTS; c++)
    {
        VECTOR x;
        memcpy(&x, from + c * SUMS_WIDTH, sizeof x);
        memcpy(to + c * SUMS_WIDTH, &x, sizeof x);
    }
}

#undef VECTOR
#undef INTEGERS
#undef PARTS
