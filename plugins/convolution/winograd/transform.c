/* SPDX-License-Identifier: Apache-2.0
 *
 * B'dB of input tiles, and A'mA of products: a unit of channels of a pixel is a vector,
 * so that tensors are read and written where they lie. NaN stays in the outputs whose
 * windows have it.
 */
#include "plugins/convolution/winograd/transform.h"

#include "plugins/common/activate.h"

#define SIDE 4 /* of a transformed tile */

/* First output of a tile. */
struct place {
    int64_t image, row, column;
};

static struct place place_of(const struct winograd_job *j, int64_t tile)
{
    return (struct place){.image = tile / (j->down * j->across),
                          .row = tile / j->across % j->down * WINOGRAD_STEP,
                          .column = tile % j->across * WINOGRAD_STEP};
}

/* Channel c, the first of a unit, in a pixel. */
static int64_t channel_at(const strata_tensor *t, int64_t c)
{
    return t->vector == 8    ? c / 8 * t->strides[1]
           : t->vector == 16 ? c / 16 * t->strides[1] + c % 16
                             : c;
}

/* Of a unit from c on, channels that are in memory: blocks have all of it. */
static int64_t held(const strata_tensor *t, int64_t c)
{
    return t->vector >= WINOGRAD_UNIT ? WINOGRAD_UNIT
                                      : window_min(WINOGRAD_UNIT, t->dims[1] - c);
}

/* ---- tiles of the input ---------------------------------------------------------- */

typedef float eight __attribute__((vector_size(WINOGRAD_UNIT * 4)));

/* B'dB of 4x4 pixels, a unit of channels each. */
BODY void transform_pixels(const float *x, int64_t row, int64_t pixel, float *v,
                           int64_t spot)
{
    eight d[SIDE][SIDE], a[SIDE], y;
    UNROLL for (int c = 0; c < SIDE; c++)
    {
        UNROLL for (int r = 0; r < SIDE; r++) LOAD(a[r], x + r * row + c * pixel);
        d[0][c] = a[0] - a[2];
        d[1][c] = a[1] + a[2];
        d[2][c] = a[2] - a[1];
        d[3][c] = a[1] - a[3];
    }
    UNROLL for (int r = 0; r < SIDE; r++, v += SIDE * spot)
    {
        y = d[r][0] - d[r][2];
        STORE(v, y);
        y = d[r][1] + d[r][2];
        STORE(v + spot, y);
        y = d[r][2] - d[r][1];
        STORE(v + 2 * spot, y);
        y = d[r][1] - d[r][3];
        STORE(v + 3 * spot, y);
    }
}

/* Pixels from (top, left) on, zeros where there are none; x: a unit of an image. */
static void gather(const strata_tensor *t, const float *x, int64_t top, int64_t left,
                   int64_t n, float patch[SIDE][SIDE][WINOGRAD_UNIT])
{
    memset(patch, 0, WINOGRAD_SPOTS * WINOGRAD_UNIT * sizeof(float));
    for (int64_t r = 0; r < SIDE; r++)
        for (int64_t c = 0; c < SIDE; c++)
            if (top + r >= 0 && top + r < t->dims[2] && left + c >= 0 &&
                left + c < t->dims[3])
                memcpy(patch[r][c],
                       x + (top + r) * t->strides[2] + (left + c) * t->strides[3],
                       (size_t)n * sizeof *x);
}

BODY void transform_tile(const struct winograd_job *j, const struct winograd_block *b,
                         int64_t tile)
{
    const strata_tensor *t = j->in;
    const struct place p = place_of(j, tile);
    const int64_t top = p.row - j->s->w.begin[1], left = p.column - j->s->w.begin[2];
    const bool inside =
        top >= 0 && left >= 0 && top + SIDE <= t->dims[2] && left + SIDE <= t->dims[3];
    const float *image = (const float *)t->data + p.image * t->strides[0];
    float *v = b->v + (tile - b->first) * winograd_depth(j->s);
    for (int64_t c = 0; c < j->s->channels; c += WINOGRAD_UNIT) {
        float patch[SIDE][SIDE][WINOGRAD_UNIT];
        const float *x = image + channel_at(t, c);
        if (inside && held(t, c) == WINOGRAD_UNIT) {
            transform_pixels(x + top * t->strides[2] + left * t->strides[3],
                             t->strides[2], t->strides[3], v + c, b->spot);
        } else {
            gather(t, x, top, left, held(t, c), patch);
            transform_pixels(patch[0][0], SIDE * WINOGRAD_UNIT, WINOGRAD_UNIT, v + c,
                             b->spot);
        }
    }
}

/* ---- outputs --------------------------------------------------------------------- */

/* A'mA, scaled and shifted, of a unit of filters: y has four pixels, `pixel` apart. */
BODY void collect_pixels(const float *m, int64_t spot, const float *scale,
                         const float *shift, float *y, int64_t pixel)
{
    eight d[WINOGRAD_STEP][SIDE], a[SIDE], factor, addend, x;
    LOAD(factor, scale);
    LOAD(addend, shift);
    UNROLL for (int c = 0; c < SIDE; c++)
    {
        UNROLL for (int r = 0; r < SIDE; r++) LOAD(a[r], m + (r * SIDE + c) * spot);
        d[0][c] = a[0] + a[1] + a[2];
        d[1][c] = a[1] - a[2] - a[3];
    }
    UNROLL for (int r = 0; r < WINOGRAD_STEP; r++, y += WINOGRAD_STEP * pixel)
    {
        x = (d[r][0] + d[r][1] + d[r][2]) * factor + addend;
        STORE(y, x);
        x = (d[r][1] - d[r][2] - d[r][3]) * factor + addend;
        STORE(y + pixel, x);
    }
}

/* Output i of a tile in t; NULL: there is none. */
static float *pixel_of(const strata_tensor *t, const struct place *p, int i)
{
    const int64_t row = p->row + i / WINOGRAD_STEP,
                  column = p->column + i % WINOGRAD_STEP;
    if (row >= t->dims[2] || column >= t->dims[3])
        return NULL;
    return (float *)t->data + p->image * t->strides[0] + row * t->strides[2] +
           column * t->strides[3];
}

BODY void add_residual(const strata_tensor *t, const struct winograd_panel *p,
                       const struct place *at, float *y)
{
    for (int i = 0; i < WINOGRAD_STEP * WINOGRAD_STEP; i++, y += p->columns) {
        const float *x = pixel_of(t, at, i);
        for (int64_t c = 0; x && c < p->columns && p->filter + c < t->dims[1];
             c += WINOGRAD_UNIT) {
            const float *from = x + channel_at(t, p->filter + c);
            const int64_t n = held(t, p->filter + c);
            for (int64_t k = 0; k < n; k++)
                y[c + k] += from[k];
        }
    }
}

BODY void store(const strata_tensor *t, const struct winograd_panel *p,
                const struct place *at, const float *y)
{
    for (int i = 0; i < WINOGRAD_STEP * WINOGRAD_STEP; i++, y += p->columns) {
        float *x = pixel_of(t, at, i);
        for (int64_t c = 0; x && c < p->columns && p->filter + c < t->dims[1];
             c += WINOGRAD_UNIT) {
            float *to = x + channel_at(t, p->filter + c);
            const int64_t n = held(t, p->filter + c);
            if (n == WINOGRAD_UNIT)
                memcpy(to, y + c, WINOGRAD_UNIT * sizeof *y);
            else
                memcpy(to, y + c, (size_t)n * sizeof *y);
        }
    }
}

BODY void collect_tile(const struct winograd_job *j, const struct winograd_panel *p,
                       const struct winograd_products *m, int64_t tile)
{
    float y[WINOGRAD_STEP * WINOGRAD_STEP * TILE_COLUMNS];
    const struct place at = place_of(j, tile);
    const strata_epilogue *e = j->epilogue;
    const float *from = m->m + (tile - m->first) * p->columns;
    for (int64_t c = 0; c < p->columns; c += WINOGRAD_UNIT)
        collect_pixels(from + c, m->spot, p->scale + c, p->shift + c, y + c, p->columns);
    if (j->residual)
        add_residual(j->residual, p, &at, y);
    if (e->flags & STRATA_EPILOGUE_ACTIVATION)
        activate_row(e->activation, e->alpha, e->beta, y,
                     WINOGRAD_STEP * WINOGRAD_STEP * p->columns);
    store(j->out, p, &at, y);
}

/* ---- one set of transforms per instruction set ------------------------------------- */

#define KERNELS(NAME, TARGET)                                                            \
    TARGET static void NAME##_transform(const struct winograd_job *j,                    \
                                        const struct winograd_block *b, int64_t tile)    \
    {                                                                                    \
        transform_tile(j, b, tile);                                                      \
    }                                                                                    \
    TARGET static void NAME##_collect(const struct winograd_job *j,                      \
                                      const struct winograd_panel *p,                    \
                                      const struct winograd_products *m, int64_t tile)   \
    {                                                                                    \
        collect_tile(j, p, m, tile);                                                     \
    }                                                                                    \
    static const struct winograd_kernels NAME##_kernels = {NAME##_transform,             \
                                                           NAME##_collect};

KERNELS(plain, )
#ifdef ELEMENT_X86
KERNELS(avx2, __attribute__((target("avx2,fma"))))
#endif

const struct winograd_kernels *winograd_kernels(void)
{
#ifdef ELEMENT_X86
    return element_has_f16c() ? &avx2_kernels : &plain_kernels;
#else
    return &plain_kernels;
#endif
}
