/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of `amx`: sums of a block in tiles 0 to 3, pixels in 4 and 5, weights in 6
 * and 7.
 */
#include "plugins/quantized_convolution/amx.h"

#include <pthread.h>

#include "plugins/common/quantized/amx.h"

#ifdef AMX_COMPILES
#include "plugins/quantized_convolution/end_avx512.h"

#define AMX_INSIDE AMX_TARGET static inline __attribute__((always_inline))

/* ---- the processor and the system -------------------------------------------------- */

static int is_there;

static void ask(void)
{
    is_there = vnni_is_there() && amx_is_granted();
}

int amx_is_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return is_there;
}

void amx_begin(void)
{
    amx_open();
}

void amx_end(void)
{
    amx_close();
}

/* ---- products ---------------------------------------------------------------------- */

enum { LINE = VNNI_LANES * 4, TILE = AMX_ROWS * LINE }; /* bytes of weights */

/* Sums of up to two tiles of pixels by up to two of filters. */
struct product {
    const uint8_t *x[2];
    const int64_t *offset;
    const int8_t *weight;
    const int32_t *correction;
    int32_t *sums;
    int64_t pitch, pixel, steps; /* pixel: bytes of its sums */
    const int8_t *next;
    int64_t lines; /* that each step fetches */
};

/* Rows of 0 bytes' distance are the same: sums begin with what corrects them. */
AMX_INSIDE void begin(const struct product *p, int rows, int columns)
{
    const int32_t *second = p->correction + VNNI_LANES;
    _tile_loadd(0, p->correction, 0);
    if (columns > 1)
        _tile_loadd(1, second, 0);
    if (rows > 1)
        _tile_loadd(2, p->correction, 0);
    if (rows > 1 && columns > 1)
        _tile_loadd(3, second, 0);
}

#define MULTIPLY(sum, x, w)                                                              \
    do {                                                                                 \
        if (is_signed)                                                                   \
            _tile_dpbssd(sum, x, w);                                                     \
        else                                                                             \
            _tile_dpbusd(sum, x, w);                                                     \
    } while (0)

AMX_INSIDE void step(const struct product *p, int64_t offset, const int8_t *w, int rows,
                     int columns, int is_signed)
{
    _tile_loadd(4, p->x[0] + offset, p->pitch);
    _tile_loadd(6, w, LINE);
    MULTIPLY(0, 4, 6);
    if (columns > 1) {
        _tile_loadd(7, w + p->steps * TILE, LINE);
        MULTIPLY(1, 4, 7);
    }
    if (rows > 1) {
        _tile_loadd(5, p->x[1] + offset, p->pitch);
        MULTIPLY(2, 5, 6);
    }
    if (rows > 1 && columns > 1)
        MULTIPLY(3, 5, 7);
}

AMX_INSIDE void end(const struct product *p, int rows, int columns)
{
    int32_t *sums = p->sums, *lower = (int32_t *)((char *)sums + AMX_ROWS * p->pixel);
    _tile_stored(0, sums, p->pixel);
    if (columns > 1)
        _tile_stored(1, sums + VNNI_LANES, p->pixel);
    if (rows > 1)
        _tile_stored(2, lower, p->pixel);
    if (rows > 1 && columns > 1)
        _tile_stored(3, lower + VNNI_LANES, p->pixel);
}

AMX_INSIDE void multiply(const struct product *p, int rows, int columns, int is_signed)
{
    const int8_t *w = p->weight, *next = p->next;
    begin(p, rows, columns);
    for (int64_t s = 0; s < p->steps; s++, w += TILE) {
        for (int64_t i = 0; i < p->lines; i++, next += 64)
            _mm_prefetch(next, _MM_HINT_T1);
        step(p, p->offset[s], w, rows, columns, is_signed);
    }
    end(p, rows, columns);
}

#define PRODUCT(rows, columns, sign)                                                     \
    AMX_TARGET static void multiply_##rows##_##columns##_##sign(const struct product *p) \
    {                                                                                    \
        multiply(p, rows, columns, sign);                                                \
    }
#define PRODUCTS(sign)                                                                   \
    PRODUCT(1, 1, sign) PRODUCT(1, 2, sign) PRODUCT(2, 1, sign) PRODUCT(2, 2, sign)
PRODUCTS(0)
PRODUCTS(1)

#define NAMES(sign)                                                                      \
    {                                                                                    \
        {multiply_1_1_##sign, multiply_1_2_##sign},                                      \
        {                                                                                \
            multiply_2_1_##sign, multiply_2_2_##sign                                     \
        }                                                                                \
    }
typedef void product(const struct product *p);
static product *const products[2][2][2] = {NAMES(0), NAMES(1)};

/* What finishing reads and writes comes while there are products. */
static void fetch_ends(const struct amx_block *b)
{
    const int64_t size = b->to.end->to_bytes ? 1 : sizeof(float), filters = b->to.filters;
    const int64_t pixel = b->first + b->row * b->a->out_width + b->column;
    const int64_t at = pixel * filters + b->to.filter;
    for (int p = 0; p < b->pixels; p++) {
        if (b->to.addend)
            __builtin_prefetch(b->to.addend + at + p * filters, 0, 3);
        __builtin_prefetch((const char *)b->to.out + (at + p * filters) * size, 1, 3);
    }
}

/* Row by row: what is past an output row is none. */
static void finish_block(const struct amx_block *b, int vectors)
{
    const struct amx *a = b->a;
    struct vnni_outputs to = b->to;
    int64_t row = b->row, column = b->column, all;
    for (int64_t p = 0; p < b->pixels; p += all, row++, column = 0) {
        const int64_t left = b->pixels - p, outputs = a->out_width - column;
        all = window_min(left, a->width - column);
        to.at = (b->first + row * a->out_width + column) * a->filters;
        if (outputs > 0)
            vnni_finish(&to, b->sums + p * vectors * VNNI_LANES,
                        (int)window_min(left, outputs), vectors);
    }
}

void amx_run_block(const struct amx_block *b)
{
    const struct amx *a = b->a;
    const int64_t left = (a->filters - b->to.filter + VNNI_LANES - 1) / VNNI_LANES;
    const int vectors = (int)window_min(left, VNNI_VECTORS), halves = (vectors + 1) / 2;
    const int64_t steps = a->rows * a->row_steps;
    struct product p = {.x = {b->x[0], b->x[1]},
                        .offset = a->offset,
                        .weight = a->packed + b->to.filter * steps * AMX_STEP,
                        .correction = a->lanes.correction + b->to.filter,
                        .sums = b->sums,
                        .pitch = a->pitch,
                        .pixel = vectors * VNNI_LANES * 4,
                        .steps = steps,
                        .next = b->next,
                        .lines = (b->lines + halves * steps - 1) / (halves * steps)};
    fetch_ends(b);
    __asm__ volatile(""
                     :
                     :
                     : "memory"); /* GCC 12's loads of tiles do not say they read */
    for (int k = 0; k < vectors; k += 2) {
        products[a->is_signed][b->pixels > AMX_ROWS][vectors - k > 1](&p);
        p.weight += 2 * steps * TILE;
        p.correction += 2 * VNNI_LANES;
        p.sums += 2 * VNNI_LANES;
        p.next += p.lines * 64 * steps;
    }
    finish_block(b, vectors);
}
#else
int amx_is_there(void)
{
    return 0;
}

void amx_begin(void)
{
}

void amx_end(void)
{
}

void amx_run_block(const struct amx_block *b)
{
    (void)b;
}
#endif
