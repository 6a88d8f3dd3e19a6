/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling row by row: the input's rows under a row of windows are folded into one, in
 * memory where pads are elements too, and then its columns into the outputs. An element
 * is read once for each row of windows, and no window needs its own borders.
 */
#ifndef PLUGINS_POOLING_STRIP_H
#define PLUGINS_POOLING_STRIP_H

#include "plugins/pooling/rows.h"

#define POOLING_STRIP 256   /* outputs of a row made at once, at most */
#define POOLING_FOLDED 2048 /* elements that they see, at most */
#define POOLING_VECTOR 16   /* outputs are made in whole vectors, where there is room */

/* Outputs [first, first + n) of each row. */
struct pooling_strip {
    int64_t first, n;
    int64_t whole;              /* n in whole vectors */
    int64_t length;             /* of the folded row */
    int64_t from, to, offset;   /* inputs of a row, and where they begin in it */
    float count[POOLING_STRIP]; /* columns that an average counts */
};

POOLING_INLINE int64_t pooling_steps(int64_t distance, int64_t step)
{
    return step == 1 ? distance : (distance + step - 1) / step;
}

/* Elements first .. last - 1 of the kernel that lie in the input at output o, or before
 * `end` of it and, with_pad, in the begin pad. */
POOLING_INLINE void pooling_seen(const struct window *w, int d, int64_t o, int64_t end,
                                 int with_pad, int64_t *first, int64_t *last)
{
    const int64_t at = o * w->stride[d] - w->begin[d];
    *first = with_pad || at >= 0 ? 0 : pooling_steps(-at, w->dilation[d]);
    *last =
        end > at ? window_min(pooling_steps(end - at, w->dilation[d]), w->kernel[d]) : 0;
}

/* Positions of output o's window along d that an average counts. */
POOLING_INLINE int64_t pooling_counted(const struct pooling *pool, int d, int64_t o)
{
    const int with_pad = pool->count_include_pad;
    int64_t first, last;
    pooling_seen(&pool->w, d, o, pool->w.in[d] + (with_pad ? pool->w.end[d] : 0),
                 with_pad, &first, &last);
    return window_max(last - first, 0);
}

/* Outputs of a strip; 0: a window is too wide for one of some vectors. */
static inline int64_t pooling_strip_most(const struct window *w)
{
    const int64_t room = POOLING_FOLDED - window_extent(w, 2);
    const int64_t most = room < 0 ? 0 : room / w->stride[2] + 1;
    const int64_t least = window_min(w->out[2], POOLING_VECTOR);
    return most < least ? 0 : window_min(most, POOLING_STRIP);
}

static inline void pooling_strip_at(struct pooling_strip *s, const struct pooling *pool,
                                    int64_t first, int64_t n)
{
    const struct window *w = &pool->w;
    const int64_t stride = w->stride[2], extent = window_extent(w, 2);
    const int64_t begin = first * stride - w->begin[2];
    const int64_t end = begin + (n - 1) * stride + extent;
    s->first = first;
    s->n = n;
    s->whole = (n + POOLING_VECTOR - 1) / POOLING_VECTOR * POOLING_VECTOR;
    s->length = (s->whole - 1) * stride + extent;
    if (s->length > POOLING_FOLDED) {
        s->whole = n;
        s->length = (n - 1) * stride + extent;
    }
    s->from = window_min(window_max(begin, 0), w->in[2]);
    s->to = window_max(window_min(end, w->in[2]), s->from);
    s->offset = s->from < s->to ? s->from - begin : 0;
    for (int64_t i = 0; i < s->whole; i++)
        s->count[i] = i < n ? (float)pooling_counted(pool, 2, first + i) : 0;
}

/* ---- rows ---------------------------------------------------------------------- */

POOLING_INLINE float pooling_none(int32_t kind)
{
    return kind == STRATA_POOL_MAX ? -INFINITY : 0;
}

POOLING_INLINE float pooling_value(int32_t kind, float p, float x)
{
    return kind == STRATA_POOL_LP ? pooling_power(x, p) : x;
}

POOLING_INLINE float pooling_join(int32_t kind, float a, float b)
{
    return kind == STRATA_POOL_MAX ? pooling_larger(a, b) : a + b;
}

#define POOLING_EACH(expression)                                                         \
    do {                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                  \
            to[i] = (expression);                                                        \
    } while (0)
#define VALUE(row) pooling_value(kind, p, row[i])
#define JOIN(a, b) pooling_join(kind, a, b)

/* One to three rows, `pitch` apart, with what is there if there are more. */
POOLING_INLINE void pooling_take(int32_t kind, float p, float *restrict to,
                                 const float *restrict x, int64_t pitch, int64_t rows,
                                 int more, int64_t n)
{
    const float *restrict y = rows > 1 ? x + pitch : x;
    const float *restrict z = rows > 2 ? y + pitch : y;
    switch (more ? rows + 3 : rows) {
    case 1:
        POOLING_EACH(VALUE(x));
        break;
    case 2:
        POOLING_EACH(JOIN(VALUE(x), VALUE(y)));
        break;
    case 3:
        POOLING_EACH(JOIN(JOIN(VALUE(x), VALUE(y)), VALUE(z)));
        break;
    case 4:
        POOLING_EACH(JOIN(to[i], VALUE(x)));
        break;
    case 5:
        POOLING_EACH(JOIN(JOIN(to[i], VALUE(x)), VALUE(y)));
        break;
    default:
        POOLING_EACH(JOIN(JOIN(JOIN(to[i], VALUE(x)), VALUE(y)), VALUE(z)));
        break;
    }
}

/* n columns of the rows that the windows of output row (d, h) see. */
POOLING_INLINE void pooling_fold_inputs(int32_t kind, float p, const struct window *w,
                                        float *to, const float *in, int64_t d, int64_t h,
                                        int64_t n)
{
    const int64_t pitch = w->dilation[1] * w->in[2];
    int64_t k[2], end[2], more = 0;
    pooling_seen(w, 0, d, w->in[0], 0, &k[0], &end[0]);
    pooling_seen(w, 1, h, w->in[1], 0, &k[1], &end[1]);
    for (int64_t a = k[0]; a < end[0]; a++)
        for (int64_t b = k[1], rows; b < end[1]; b += rows) {
            const int64_t plane = d * w->stride[0] - w->begin[0] + a * w->dilation[0];
            const int64_t row = h * w->stride[1] - w->begin[1] + b * w->dilation[1];
            rows = window_min(end[1] - b, 3);
            pooling_take(kind, p, to, in + (plane * w->in[1] + row) * w->in[2], pitch,
                         rows, more > 0, n);
            more += rows;
        }
    for (int64_t i = 0; i < n && !more; i++)
        to[i] = pooling_none(kind);
}

/* ---- columns ------------------------------------------------------------------- */

/* Windows of n outputs along the folded row x; the usual ones have loops of their own. */
POOLING_INLINE void pooling_columns(int32_t kind, const struct window *w,
                                    float *restrict to, const float *restrict x,
                                    int64_t n)
{
    const int64_t stride = w->stride[2], step = w->dilation[2], kernel = w->kernel[2];
    if (stride == 2 && kernel == 2 && step == 1)
        POOLING_EACH(JOIN(x[2 * i], x[2 * i + 1]));
    else if (stride == 2 && kernel == 3 && step == 1)
        POOLING_EACH(JOIN(JOIN(x[2 * i], x[2 * i + 1]), x[2 * i + 2]));
    else if (stride == 1 && kernel == 3)
        POOLING_EACH(JOIN(JOIN(x[i], x[i + step]), x[i + 2 * step]));
    else {
        POOLING_EACH(x[i * stride]);
        for (int64_t k = 1; k < kernel; k++) {
            const float *restrict y = x + k * step;
            if (stride == 1)
                POOLING_EACH(JOIN(to[i], y[i]));
            else if (stride == 2)
                POOLING_EACH(JOIN(to[i], y[2 * i]));
            else
                POOLING_EACH(JOIN(to[i], y[i * stride]));
        }
    }
}

static inline float pooling_root(float p, double sum)
{
    return (float)(p == 2 ? sqrt(sum) : p == 1 ? sum : pow(sum, 1 / (double)p));
}

/* What is made of sums, in whole vectors; rows: those that an average counts. */
POOLING_INLINE void pooling_finish(int32_t kind, float p, const struct pooling_strip *s,
                                   float *to, float rows)
{
    const int64_t n = s->whole;
    const float *count = s->count;
    if (kind == STRATA_POOL_AVERAGE)
        POOLING_EACH(rows * count[i] > 0 ? to[i] / (rows * count[i]) : 0);
    else if (kind == STRATA_POOL_LP && p == 2)
        POOLING_EACH(sqrtf(to[i]));
    else if (kind == STRATA_POOL_LP)
        for (int64_t i = 0; i < n; i++)
            to[i] = pooling_root(p, (double)to[i]);
}

#undef JOIN
#undef VALUE
#undef POOLING_EACH

/* ---- a plane ------------------------------------------------------------------- */

/* A strip of all rows of a plane; pads are never written again. */
POOLING_INLINE void pooling_strip_of(int32_t kind, float p, const struct pooling *pool,
                                     const struct pooling_strip *s, float *out,
                                     const float *in)
{
    const struct window *w = &pool->w;
    float folded[POOLING_FOLDED], sums[POOLING_STRIP];
    for (int64_t i = 0; i < s->length; i++)
        folded[i] = pooling_none(kind);
    out += s->first;
    for (int64_t d = 0; d < w->out[0]; d++) {
        const int64_t planes =
            kind == STRATA_POOL_AVERAGE ? pooling_counted(pool, 0, d) : 0;
        for (int64_t h = 0; h < w->out[1]; h++, out += w->out[2]) {
            const int64_t rows =
                kind == STRATA_POOL_AVERAGE ? planes * pooling_counted(pool, 1, h) : 0;
            pooling_fold_inputs(kind, p, w, folded + s->offset, in + s->from, d, h,
                                s->to - s->from);
            pooling_columns(kind, w, sums, folded, s->whole);
            pooling_finish(kind, p, s, sums, (float)rows);
            memcpy(out, sums, (size_t)s->n * sizeof *out);
        }
    }
}

POOLING_INLINE void pooling_strip_any(const struct pooling *pool,
                                      const struct pooling_strip *s, float *out,
                                      const float *in)
{
    if (pool->kind == STRATA_POOL_MAX)
        pooling_strip_of(STRATA_POOL_MAX, 0, pool, s, out, in);
    else if (pool->kind == STRATA_POOL_AVERAGE)
        pooling_strip_of(STRATA_POOL_AVERAGE, 0, pool, s, out, in);
    else if (pool->p == 2)
        pooling_strip_of(STRATA_POOL_LP, 2, pool, s, out, in);
    else
        pooling_strip_of(STRATA_POOL_LP, pool->p, pool, s, out, in);
}

typedef void pooling_run_strip(const struct pooling *pool, const struct pooling_strip *s,
                               float *out, const float *in);

#define POOLING_STRIPS(name, target)                                                     \
    target static void pooling_strip_##name(const struct pooling *pool,                  \
                                            const struct pooling_strip *s, float *out,   \
                                            const float *in)                             \
    {                                                                                    \
        pooling_strip_any(pool, s, out, in);                                             \
    }

POOLING_STRIPS(plain, )
#ifdef ELEMENT_X86
POOLING_STRIPS(avx2, __attribute__((target("avx2,fma"))))
POOLING_STRIPS(avx512, ROW_AVX512)
#endif

#endif /* PLUGINS_POOLING_STRIP_H */
