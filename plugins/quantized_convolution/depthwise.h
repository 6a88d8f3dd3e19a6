/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution of a channel a group by AVX-512's VNNI, channels last. Four
 * neighbouring pixels of a row become words of four bytes a channel, which several
 * outputs take: two beside each other where the stride is 1, and those of the rows below.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_DEPTHWISE_H
#define PLUGINS_QUANTIZED_CONVOLUTION_DEPTHWISE_H

#include "plugins/common/window.h"
#include "plugins/quantized_convolution/end.h"

enum {
    DEPTHWISE_TAPS = 4,  /* of a word */
    DEPTHWISE_PARTS = 4, /* of 16 channels of a pixel: what a vector has room for */
    DEPTHWISE_PART = 16,
    DEPTHWISE_ROWS = 8,     /* of a kernel, at most */
    DEPTHWISE_COLUMNS = 7,  /* the same */
    DEPTHWISE_MEMORY = 256, /* vectors of words that are kept */
};

/* Made in setup. The arrays are the core's memory. Lanes, and bytes of weights, are in
 * the order of a block's words: [vector][part of a pixel, again for more pixels][4]. */
struct depthwise {
    struct window w;
    int64_t channels, blocks;
    int32_t flip;            /* 128 where the input is INT8; else 0 */
    int64_t both;            /* outputs of a word: 2, or 1 */
    int64_t words;           /* of a row of the kernel */
    const int8_t *weights;   /* [block][row][word][output of a word][vector][lane][tap] */
    struct vnni_lanes lanes; /* [block][vector][lane] */
};

/* Neighbouring channels; parts: 4, 2 or 1 of a pixel, so that a vector has 1, 2 or 4
 * pixels. The last ones begin where all are inside. */
struct depthwise_block {
    int64_t first, parts;
    uint64_t keep; /* channels that no block before has */
};

struct depthwise_block depthwise_block(int64_t channels, int64_t block);

/* Some rows of one block of an image. */
struct depthwise_strip {
    const struct depthwise *d;
    const struct vnni_end *end;
    struct depthwise_block block;
    const uint8_t *x; /* the image */
    void *out;        /* its output */
    const uint8_t *pads;
    int64_t index;          /* of the block */
    int64_t begin, end_row; /* output rows */
};

int depthwise_accept(const strata_node *n);
int depthwise_setup(const strata_node *n, void *state);
int depthwise_run(const strata_run *r);

/* depthwise_strip.c */
void depthwise_run_strip(const struct depthwise_strip *s);

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_DEPTHWISE_H */
