/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products of rows and a panel, for one width of vectors: who includes this
 * defines SUMS_WIDTH, in floats, and SUMS_NAME(name). Wider vectors than a processor's
 * would be taken apart into numbers. A column is so many lanes of a gate.
 */
#define VECTOR SUMS_NAME(vector)
#define PARTS (RNN_LANES / SUMS_WIDTH) /* columns of a gate */
typedef float VECTOR __attribute__((vector_size(SUMS_WIDTH * 4)));

/* Column c of a panel at k = i. Pairs of gates lie apart, so that what is read at once is
 * one stream. */
ROW_INLINE const float *SUMS_NAME(weight_at)(const float *panel, const int c,
                                             const int gates, int64_t k, int64_t i)
{
    const int g = c / PARTS, width = gates - g / 2 * 2 > 1 ? 2 : 1;
    return panel + (g / 2 * 2 * k + i * width + g % 2) * RNN_LANES +
           c % PARTS * SUMS_WIDTH;
}

/* Where column c of the sums of row m begins, and goes. */
ROW_INLINE const float *SUMS_NAME(start_of)(const struct rnn_sums *s, const int m,
                                            const int c, const int gates)
{
    const int g = c / PARTS;
    return (s->own && g == gates - 1 ? s->own : s->start[m] + g * RNN_LANES) +
           c % PARTS * SUMS_WIDTH;
}

ROW_INLINE float *SUMS_NAME(place_of)(const struct rnn_sums *s, const int m, const int c,
                                      const int gates)
{
    const int g = c / PARTS;
    return s->sum[m] + (s->own && g == gates - 1 ? gates : g) * s->gate +
           c % PARTS * SUMS_WIDTH;
}

/* Rows [row, row + rows), columns [first, first + n) behind the `skipped` gates of
 * `stride`. One row alone goes along k in several streams, as a sum waits for the one
 * before it. */
ROW_INLINE void SUMS_NAME(sum_some)(const struct rnn_sums *s, int64_t k,
                                    const float *panel, const int row, const int rows,
                                    const int gates, const int first, const int n,
                                    const int skipped, const int stride)
{
    const int streams = rows > 1 ? 1 : n > 2 ? 2 : 4, from = skipped * PARTS + first;
    VECTOR part[RNN_ROWS][4] = {{{0}}}; /* a row or a stream each */
    const float *a[RNN_ROWS];
    int64_t i = 0;
    UNROLL for (int m = 0; m < rows; m++)
    {
        a[m] = s->a[row + m];
        UNROLL for (int c = 0; c < n; c++)
            memcpy(&part[m][c], SUMS_NAME(start_of)(s, row + m, first + c, gates),
                   sizeof(VECTOR));
    }
    for (; i + streams <= k; i += streams)
        UNROLL for (int t = 0; t < streams; t++)
        {
            VECTOR x[4];
            UNROLL for (int c = 0; c < n; c++)
            {
                const float *at = SUMS_NAME(weight_at)(panel, from + c, stride, k, i + t);
                memcpy(&x[c], at, sizeof x[c]);
                if (rows >= 4 && c % PARTS == 0) /* a row alone has no room for it */
                    __builtin_prefetch(
                        (const void *)((uintptr_t)at + AHEAD * sizeof *at));
            }
            UNROLL for (int m = 0; m < rows; m++) UNROLL for (int c = 0; c < n; c++)
                part[m + t][c] += a[m][i + t] * x[c];
        }
    for (; i < k; i++)
        UNROLL for (int c = 0; c < n; c++)
        {
            VECTOR x;
            memcpy(&x, SUMS_NAME(weight_at)(panel, from + c, stride, k, i), sizeof x);
            part[0][c] += a[0][i] * x;
        }
    UNROLL for (int t = 1; t < streams; t++) UNROLL for (int c = 0; c < n; c++)
        part[0][c] += part[t][c];
    UNROLL for (int m = 0; m < rows; m++) UNROLL for (int c = 0; c < n; c++) memcpy(
        SUMS_NAME(place_of)(s, row + m, first + c, gates), &part[m][c], sizeof(VECTOR));
}

/* All gates but the `skipped` first of `stride`, so many rows and columns at a time as
 * registers hold. */
ROW_INLINE void SUMS_NAME(sum_of)(const struct rnn_sums *s, int64_t k, const float *panel,
                                  const int rows, const int gates, const int skipped,
                                  const int stride, const int most, const int registers)
{
    const int columns = gates * PARTS, some = rows < most ? rows : most;
    const int fit = registers / some, step = fit < 4 ? fit : 4;
    UNROLL for (int m = 0; m < rows; m += some)
        UNROLL for (int c = 0; c < columns; c += step)
            SUMS_NAME(sum_some)(s, k, panel, m, some, gates, c,
                                columns - c < step ? columns - c : step, skipped, stride);
}

ROW_INLINE void SUMS_NAME(copy_lanes)(float *to, const float *from)
{
    UNROLL for (int c = 0; c < PARTS; c++)
    {
        VECTOR x;
        memcpy(&x, from + c * SUMS_WIDTH, sizeof x);
        memcpy(to + c * SUMS_WIDTH, &x, sizeof x);
    }
}

#undef VECTOR
#undef PARTS
