/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution by AVX-512's VNNI, channels last: six pixels by 64 filters at a
 * time, in registers from the first product to the byte that is stored.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_VNNI_H
#define PLUGINS_QUANTIZED_CONVOLUTION_VNNI_H

#include "plugins/common/window.h"
#include "plugins/quantized_convolution/end.h"

/* Some words of a window. */
struct vnni_piece {
    int64_t begin, end;
    int32_t is_first, is_last;
};

/* Made in setup. The arrays are the core's memory. */
struct vnni {
    struct window w;
    int64_t channels, filters;
    /* What is read of an image: it, or a copy with pads, of UINT8. */
    int64_t extent[WINDOW_DIMS]; /* of the copy; of the image where there is none */
    int32_t copies, flip;        /* flip: 128 where the input is INT8; else 0 */
    int64_t rows, words;         /* runs of neighbours in a window, of four bytes each */
    int32_t is_small;            /* L2 holds all weights beside the rest */
    int64_t piece;               /* words whose weights L1 holds, where L2 does not */
    const int64_t *offset;       /* of each run's words from the window's first byte */
    const int8_t *packed;        /* [filters/64][row][word][vector][16 filters][4] */
    struct vnni_lanes lanes;     /* the filters in order, padded to 64 */
    struct vnni_join join;
};

int vnni_accept(const strata_node *n);
size_t vnni_workspace(const strata_node *n);
int vnni_setup(const strata_node *n, void *state);
int vnni_run(const strata_run *r);

/* ---- between the files ------------------------------------------------------------- */

enum { VNNI_PIXELS = 6 };

/* Some neighbouring output pixels, by up to 64 filters. */
struct vnni_tile {
    const struct vnni *v;
    struct vnni_outputs to;
    const uint8_t *x[VNNI_PIXELS]; /* the first byte of each pixel's window */
    int64_t pixels;
    int32_t *sums;    /* between pieces, [pixel][filter]; of 64 bytes' alignment */
    const void *next; /* what comes to L2 meanwhile, so many bytes a word */
    int64_t step;
};

/* vnni_tile.c */
void vnni_run_tile(const struct vnni_tile *t, const struct vnni_piece *piece);

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_VNNI_H */
