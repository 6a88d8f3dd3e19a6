/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows one after the other, pads and all.
 */
#include "plugins/quantized_convolution/amx.h"

#include <string.h>

#ifdef __x86_64__
#include "plugins/quantized_convolution/end_avx512.h"

enum { SLACK = AMX_STEP };

/* Whole vectors: what is written past an end is written again, or slack. So much is read
 * where the input goes on; at its end by bytes. */
INSIDE uint8_t *copy(const struct amx_input *in, uint8_t *to, const uint8_t *from,
                     int64_t bytes)
{
    if (in->end - from < bytes + SLACK) {
        __builtin_memcpy(to, from, (size_t)bytes);
        return to + bytes;
    }
    for (int64_t i = 0; i < bytes; i += 64)
        _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
    return to + bytes;
}

INSIDE uint8_t *fill(const struct amx_input *in, uint8_t *to, int64_t bytes)
{
    const __m512i all = _mm512_set1_epi8((char)in->zero);
    for (int64_t i = 0; i < bytes; i += 64)
        _mm512_storeu_si512(to + i, all);
    return to + bytes;
}

/* A row of a kernel that is not inside: from column x of a row of the input. */
TARGET static uint8_t *gather_edge(const struct amx_input *in, const uint8_t *row,
                                   int64_t x, uint8_t *to)
{
    const struct window *w = &in->a->w;
    const int64_t channels = in->a->channels;
    for (int64_t k = 0; k < w->kernel[2]; k++, x += w->dilation[2])
        to = x >= 0 && x < w->in[2] ? copy(in, to, row + x * channels, channels)
                                    : fill(in, to, channels);
    return to;
}

/* The window of output pixel o of an image. */
INSIDE void gather_window(const struct amx_input *in, const uint8_t *image,
                          const int64_t o[WINDOW_DIMS], uint8_t *to)
{
    const struct amx *a = in->a;
    const struct window *w = &a->w;
    const int64_t x = o[2] * w->stride[2] - w->begin[2];
    const int64_t bytes = w->kernel[2] * a->channels;
    const int inner = w->dilation[2] == 1 && x >= 0 && x + w->kernel[2] <= w->in[2];
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        const int64_t z = o[0] * w->stride[0] - w->begin[0] + k * w->dilation[0];
        for (int64_t j = 0; j < w->kernel[1]; j++) {
            const int64_t y = o[1] * w->stride[1] - w->begin[1] + j * w->dilation[1];
            const int inside = z >= 0 && z < w->in[0] && y >= 0 && y < w->in[1];
            const uint8_t *row = image + (z * w->in[1] + y) * w->in[2] * a->channels;
            if (!inside)
                to = fill(in, to, bytes);
            else if (inner)
                to = copy(in, to, row + x * a->channels, bytes);
            else
                to = gather_edge(in, row, x, to);
        }
    }
}

TARGET void amx_gather(const struct amx_input *in, int64_t first, int64_t pixels,
                       uint8_t *to)
{
    const struct amx *a = in->a;
    const struct window *w = &a->w;
    const int64_t plane = window_out_count(w), bytes = window_in_count(w) * a->channels;
    const int64_t i = first % plane;
    const uint8_t *image = in->x + first / plane * bytes;
    int64_t o[WINDOW_DIMS] = {i / w->out[2] / w->out[1], i / w->out[2] % w->out[1],
                              i % w->out[2]};
    for (int64_t p = 0; p < pixels; p++, to += a->pitch) {
        gather_window(in, image, o, to);
        if (++o[2] < w->out[2])
            continue;
        o[2] = 0;
        if (++o[1] < w->out[1])
            continue;
        o[1] = 0;
        if (++o[0] < w->out[0])
            continue;
        o[0] = 0;
        image += bytes;
    }
}

/* Of an image's row, or of pads above and below: their columns, too. */
TARGET void amx_copy_row(const struct amx_input *in, int64_t image, int64_t row,
                         uint8_t *to)
{
    const struct amx *a = in->a;
    const struct window *w = &a->w;
    const int64_t y = row - w->begin[1], all = a->extent[2] * a->channels;
    const int64_t before = w->begin[2] * a->channels;
    const int64_t bytes = window_min(w->in[2] * a->channels, all - before);
    if (y < 0 || y >= w->in[1]) {
        memset(to, in->zero, (size_t)all);
        return;
    }
    memset(to, in->zero, (size_t)before);
    memcpy(to + before, in->x + (image * w->in[1] + y) * w->in[2] * a->channels,
           (size_t)bytes);
    memset(to + before + bytes, in->zero, (size_t)(all - before - bytes));
}
#else
void amx_copy_row(const struct amx_input *in, int64_t image, int64_t row, uint8_t *to)
{
    (void)in;
    (void)image;
    (void)row;
    (void)to;
}

void amx_gather(const struct amx_input *in, int64_t first, int64_t pixels, uint8_t *to)
{
    (void)in;
    (void)first;
    (void)pixels;
    (void)to;
}
#endif
