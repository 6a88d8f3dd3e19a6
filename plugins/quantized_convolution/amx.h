/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution by AMX, channels last: windows of some pixels are gathered, one
 * after the other, and multiplied as a matrix; products are of 16 pixels by 16 filters by
 * 64 bytes of depth.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_AMX_H
#define PLUGINS_QUANTIZED_CONVOLUTION_AMX_H

#include "plugins/common/window.h"
#include "plugins/quantized_convolution/end.h"

enum {
    AMX_ROWS = 16,             /* of a tile: pixels of an input, words of weights */
    AMX_STEP = 64,             /* bytes of depth of a product */
    AMX_PIXELS = 2 * AMX_ROWS, /* of a block */
};

/* Where the pixels of a tile lie. */
enum amx_source {
    AMX_PLAIN, /* in the input: a window is a pixel */
    AMX_LINES, /* in a copy of an image with its pads: neighbouring windows overlap */
    AMX_GATHER /* in windows that were copied one after the other */
};

/* Made in setup. The arrays are the core's memory. */
struct amx {
    struct window w;
    int64_t channels, filters;
    int32_t source, is_signed;
    int64_t extent[WINDOW_DIMS]; /* of a copy */
    int64_t rows, row_steps;     /* runs of neighbours in a window, of so many steps */
    int64_t pitch;               /* bytes from a pixel's window to the next */
    int64_t out_rows, out_width; /* of an image, or all pixels as one row */
    /* Of a row for tiles: what is past `out_width` is no output. Tiles go on in the next
     * row where a copy does, else each row has its own. */
    int64_t width;
    int64_t images; /* that are run one after the other */
    int64_t chunk;  /* pixels that L2 holds beside the rest */
    int64_t weight_bytes;
    const int64_t *offset;   /* of each step from a window's first byte */
    const int8_t *packed;    /* as vnni_pack has it, a vector a block */
    struct vnni_lanes lanes; /* the filters in order, padded to 64 */
    struct vnni_join join;
};

int amx_accept(const strata_node *n);
size_t amx_workspace(const strata_node *n);
int amx_setup(const strata_node *n, void *state);
int amx_run(const strata_run *r);

/* ---- between the files ------------------------------------------------------------- */

/* All images of an input. */
struct amx_input {
    const struct amx *a;
    const uint8_t *x, *end;
    uint8_t zero; /* of pads */
};

/* Some neighbouring pixels by up to 64 filters. */
struct amx_block {
    const struct amx *a;
    struct vnni_outputs to;
    const uint8_t *x[2]; /* the first window of each tile; all windows may be read */
    int64_t first;       /* output pixel before the first row */
    int64_t row, column; /* of the first pixel */
    int pixels;          /* up to AMX_PIXELS */
    /* Lines that come to L2 meanwhile. */
    const int8_t *next;
    int64_t lines;
    int32_t *sums; /* AMX_PIXELS x 64 */
};

/* amx_gather.c */

/* Windows of pixels [first, first + pixels), `pitch` apart, and up to AMX_STEP bytes
 * more. */
void amx_gather(const struct amx_input *in, int64_t first, int64_t pixels, uint8_t *to);

/* Row `row` of the copy of an image. */
void amx_copy_row(const struct amx_input *in, int64_t image, int64_t row, uint8_t *to);

/* amx_tile.c */

/* Whether processor, system and compiler have it: asks for it, once a process. */
int amx_is_there(void);

/* Around the blocks of a thread. */
void amx_begin(void);
void amx_end(void);
void amx_run_block(const struct amx_block *b);

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_AMX_H */
