/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution by AVX-512's VNNI, channels last: six pixels by 64 filters at a
 * time, in registers from the first product to the byte that is stored.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_VNNI_H
#define PLUGINS_QUANTIZED_CONVOLUTION_VNNI_H

#include "plugins/common/window.h"

/* Made in setup. The arrays are the core's memory. */
struct vnni {
    struct window w;
    int64_t channels, filters;
    /* What is read of an image: it, or a copy with pads, of UINT8. */
    int64_t extent[WINDOW_DIMS]; /* of the copy; of the image where there is none */
    int32_t copies, flip;        /* flip: 128 where the input is INT8; else 0 */
    int64_t rows, words;         /* runs of neighbours in a window, of four bytes each */
    const int64_t *offset;       /* of each run from the window's first byte */
    const int8_t *packed;        /* [filters/64][row][word][vector][16 filters][4] */
    const int32_t *correction;   /* of each filter, padded to 64: -zero*sum of weights */
    const float *factor, *bias;  /* as long */
    int32_t multiplies;          /* they allow quotients by products */
    float reach;                 /* no scaled sum is larger */
    int32_t is_short; /* one correction is enough for quotients by all scales */
};

int vnni_accept(const strata_node *n);
size_t vnni_workspace(const strata_node *n);
int vnni_setup(const strata_node *n, void *state);
int vnni_run(const strata_run *r);

/* ---- between the files ------------------------------------------------------------- */

enum {
    VNNI_PIXELS = 6,
    VNNI_VECTORS = 4,
    VNNI_LANES = 16,
    VNNI_FILTERS = VNNI_VECTORS * VNNI_LANES
};

/* From FP32 to whole numbers of a scale: bounds of the quotient, before the zero is
 * added.
 */
struct vnni_step {
    float scale, reciprocal, low, high;
};

/* What becomes of sums. */
struct vnni_end {
    const strata_quantized_convolution *params;
    struct vnni_step between, out; /* the last one's bounds are the activation's, too */
    float scale_addend, slope;
    int32_t zero, zero_addend, addend_flip;
    int32_t has_addend, has_between, has_slope, to_bytes;
    int32_t multiplies; /* all scales are such that quotients may be products */
    int32_t packs; /* quotients fit in 32 bits, and all that cuts them is saturation */
};

/* Some neighbouring output pixels, by up to 64 filters. */
struct vnni_tile {
    const struct vnni *v;
    const struct vnni_end *end;
    const uint8_t *x[VNNI_PIXELS]; /* the first byte of each pixel's window */
    int64_t at;                    /* first output element: pixels are `filters` apart */
    int64_t filter;                /* first one, a multiple of 64 */
    const uint8_t *addend;         /* or NULL */
    void *out;
};

/* vnni_tile.c: pixels 1 to 6. */
void vnni_run_tile(const struct vnni_tile *t, int pixels);

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_VNNI_H */
