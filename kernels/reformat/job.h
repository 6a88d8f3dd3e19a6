/* SPDX-License-Identifier: Apache-2.0
 *
 * What the C side of reformat hands to its kernels, by value: the pair's shape, brought
 * into one of five forms by kernels/reformat/reformat.c, with all choices of sizes made.
 * Offsets and strides are 64-bit and in elements; counts inside one block fit 32 bits.
 */
#ifndef KERNELS_REFORMAT_JOB_H
#define KERNELS_REFORMAT_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REFORMAT_LOOPS (STRATA_MAX_RANK + 1)

/* Loops around the work of a block or a row, the last fastest. */
struct reformat_loops {
    int32_t n;
    uint32_t extent[REFORMAT_LOOPS];
    int64_t dst[REFORMAT_LOOPS], src[REFORMAT_LOOPS];
};

/* x / d for x*d < 2^32, as a multiplication. */
struct reformat_divisor {
    uint32_t d, magic;
};

/* Same order on both sides: rows of `length` elements. */
struct reformat_runs {
    void *dst;
    const void *src;
    struct reformat_loops rows;
    uint64_t n_rows, length; /* length in pieces of `piece` elements */
    int32_t piece;           /* 1, or a vector's worth of the wider side */
};

/* One side of channels by pixels: channel c of pixel p lies at
 * c/vector*block + c%vector + p*pixel. */
struct reformat_side {
    int32_t access; /* enum reformat_access, of the tile form */
    int32_t vector;
    int64_t block, pixel;
};

/* One thread holds all channels, at most eight, of a pixel. */
struct reformat_pixel {
    void *dst;
    const void *src;
    struct reformat_loops rows; /* around the pixels */
    uint64_t n_rows;
    struct reformat_divisor pixels; /* of a row */
    uint32_t channels, padded;      /* padded: of dst, pads included */
    struct reformat_side to, from;
};

/* Planes against vectors of a few channels: a thread holds one vector of four pixels. */
struct reformat_zip {
    void *dst;
    const void *src;
    struct reformat_loops rows;     /* around the blocks of an image */
    uint64_t n_rows;                /* blocks included */
    struct reformat_divisor pieces; /* of a row */
    int32_t pixels;                 /* of a piece: four, or eight halves */
    struct reformat_divisor blocks; /* of channels, of an image */
    uint32_t last;                  /* planes in the last one */
    int64_t plane, block;           /* strides of planes, of blocks of vectors */
    int32_t zips;                   /* planes are the source */
};

/* How a side moves between memory and the tile in shared memory. */
enum reformat_access {
    ACCESS_ROWS,        /* planes: 16 bytes of a channel's pixels */
    ACCESS_PLANES,      /* whole planes, one after the other, at any alignment */
    ACCESS_PAIRS,       /* vectors of 4 bytes: 16 bytes are four pixels */
    ACCESS_PAIR_PLANES, /* whole planes of such vectors, at any alignment */
    ACCESS_LANES,       /* 16 bytes of a pixel's channels */
    ACCESS_ANY          /* one element */
};

struct reformat_tile {
    void *dst;
    const void *src;
    struct reformat_loops outer;
    uint32_t pixels, channels, padded;
    uint32_t tile_pixels, tile_channels; /* of a full tile */
    uint32_t pixel_tiles, channel_tiles;
    uint32_t pitch;                    /* of a channel in shared memory, elements */
    struct reformat_divisor by_pixels; /* by tile_pixels, of whole planes */
    uint64_t tiles;
    uint32_t threads, shared; /* of a block; bytes */
    struct reformat_side to, from;
};

/* One side of a slab: `lanes` channels beside each other, then pixels, then blocks of
 * channels, then images; in memory as rows of pieces. Strides in bytes. */
struct reformat_slab_side {
    struct reformat_divisor lanes, blocks; /* of an image's tile */
    struct reformat_divisor row;           /* pieces of a row */
    uint32_t pieces;                       /* of a tile */
    int64_t row_step, pixel_step, tile_step, image_step;
};

/* Of a block at most: where threads gather, for each piece that they hold; else. */
#define REFORMAT_SLAB_THREADS 128
#define REFORMAT_QUAD_THREADS 512

/* What a thread makes at a time. */
enum reformat_slab_form {
    SLAB_GATHER,  /* 16 bytes, element by element */
    SLAB_ZIP,     /* four pixels of two planes of halves, as pairs */
    SLAB_UNZIP,   /* eight pixels of planes, out of pairs of halves */
    SLAB_WEAVE,   /* four pixels of eight planes of halves, as lanes */
    SLAB_UNWEAVE, /* four pixels of eight lanes of halves, as planes, by way of a copy of
                   * the destination's tile in shared memory */
    SLAB_SPREAD,  /* four pixels of four pairs of halves, likewise */
    /* bytes, kernels/reformat/bytes.cu */
    BYTES_WORDS,   /* 16 bytes, of vectors of four channels on both sides */
    BYTES_PIECES,  /* 16 bytes, of vectors of sixteen */
    BYTES_GATHER,  /* 16 bytes of vectors of four or more, byte by byte out of planes */
    BYTES_WEAVE,   /* four pixels of sixteen planes, as lanes */
    BYTES_COMB,    /* sixteen pixels of four lanes, as planes */
    BYTES_BRAID,   /* as BYTES_WEAVE, by way of a copy of the destination's tile in shared
                    * memory, where it has long rows */
    BYTES_SCATTER, /* planes out of 16 bytes of vectors, byte by byte, likewise */
    BYTES_UNWEAVE, /* four pixels of sixteen lanes, as planes, likewise */
    BYTES_SPREAD,  /* four pixels of four vectors of four, likewise */
};

/* Tiles of channels by pixels by images that come into shared memory as they lie and
 * leave in the order of the destination: a thread's pieces are at the same place in each.
 */
struct reformat_slab {
    void *dst;
    const void *src;
    uint32_t run;                     /* tiles of a block */
    struct reformat_divisor pixels;   /* of a tile */
    uint32_t channels;                /* of a tile that are no pads */
    uint32_t pixel_tiles, last_pixel; /* the last tile starts there */
    uint32_t channel_tiles;
    uint32_t tiles;
    uint32_t bytes;             /* of a tile of the source */
    const void *end;            /* of a source at any alignment, else NULL */
    int32_t to_type, from_type; /* of the kernel */
    int32_t form;               /* enum reformat_slab_form */
    uint32_t items;             /* of what threads make, in a tile */
    int32_t held;               /* items of a thread: 1, 2 or 4 */
    uint32_t threads, stage;    /* of a block; bytes of a tile's room */
    uint32_t out;               /* bytes that the last two store at a time: of one of
                                 * `held` parts of a tile; else 0 */
    uint32_t spread[2];         /* masks that keep neighbours off one bank */
    uint32_t ahead;             /* bytes that the L2 cache fetches at least: 128 or 256 */
    struct reformat_divisor quads, eights; /* of a plane's pixels, of a pixel's lanes */
    uint32_t stride; /* bytes from one plane or pixel of an item to the next */
    struct reformat_slab_side to, from;
    /* of bytes */
    uint32_t rows, row_bytes; /* of a copy of the destination's tile */
    uint32_t tail[4];         /* masks of the last element, which may be partly pads */
};

struct reformat_any {
    void *dst;
    const void *src;
    strata_desc dst_desc, src_desc;
    uint64_t count; /* pads of dst included */
};

/* Launch on a cudaStream_t; dtypes are a pair of the typed table (reformat_typed), or any
 * for `any`. The result is a cudaError_t. In the .cu files. */
int reformat_launch_runs(const struct reformat_runs *j, int to, int from, void *stream);
int reformat_launch_pixel(const struct reformat_pixel *j, int to, int from, void *stream);
int reformat_launch_zip(const struct reformat_zip *j, int to, int from, void *stream);
int reformat_launch_tile(const struct reformat_tile *j, int to, int from, void *stream);
int reformat_launch_slab(const struct reformat_slab *j, void *stream);
int reformat_launch_bytes(const struct reformat_slab *j, void *stream);
int reformat_launch_any(const struct reformat_any *j, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_REFORMAT_JOB_H */
