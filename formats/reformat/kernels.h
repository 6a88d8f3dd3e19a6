/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of host reformat. A pair of descriptors is first brought into one of two
 * shapes (shape.c), then a driver (runs.c, panel.c) cuts it into tiles
 * for the threads and moves the tiles with the small kernels of one instruction set.
 */
#ifndef FORMATS_REFORMAT_KERNELS_H
#define FORMATS_REFORMAT_KERNELS_H

#include "formats/reformat/reformat.h"

/* Elements the kernels may write past a tile in scratch memory. */
#define TILE_SLACK 16
#define PACK_WHOLE 8 /* lanes from which they write none */

/* ---- kernels of an instruction set ------------------------------------------------ */

/*
 * pack:   dst[i*lanes + l] = l < valid ? src[l*pitch + i] : 0, for i < n, l < lanes.
 *         With fewer than PACK_WHOLE lanes up to TILE_SLACK elements past the end of dst
 *         may be written.
 * unpack: dst[l*dst_pitch + i] = src[i*pitch + l], for i < n, l < lanes. Nothing past the
 *         last element is read or written.
 * Pitches in elements. dst and src are apart. With ahead > 0 the source of `ahead` pixels
 * further is fetched into the caches on the way; those addresses need not exist.
 */
typedef void pack_fn(void *dst, size_t lanes, const void *src, size_t pitch, size_t valid,
                     size_t n, size_t ahead);
typedef void unpack_fn(void *dst, size_t dst_pitch, const void *src, size_t pitch,
                       size_t lanes, size_t n, size_t ahead);
typedef void to_float_fn(float *dst, const void *src, size_t n);
/* Rounds to nearest even; integers and FP8 saturate, NaN becomes an integer's 0; BOOL8 is
 * x != 0. */
typedef void from_float_fn(void *dst, const float *src, size_t n);

struct reformat_kernels {
    to_float_fn *to_float[STRATA_DTYPE_COUNT]; /* NULL: the plain one */
    from_float_fn *from_float[STRATA_DTYPE_COUNT];
    pack_fn *pack[4]; /* by log2 of the element's bytes */
    unpack_fn *unpack[4];
    /* Copy past the caches; fence orders such stores before the thread goes on. */
    void (*stream)(void *dst, const void *src, size_t bytes);
    void (*fence)(void);
};

extern const struct reformat_kernels reformat_plain;
pack_fn reformat_pack1_plain, reformat_pack2_plain, reformat_pack4_plain,
    reformat_pack8_plain;
unpack_fn reformat_unpack1_plain, reformat_unpack2_plain, reformat_unpack4_plain,
    reformat_unpack8_plain;
#if defined(__x86_64__)
#define REFORMAT_X86 1
extern const struct reformat_kernels reformat_avx2, reformat_avx512;
/* Shared by both. */
pack_fn reformat_pack1_avx2, reformat_pack2_avx2, reformat_pack4_avx2;
unpack_fn reformat_unpack1_avx2, reformat_unpack2_avx2, reformat_unpack4_avx2;
#endif

/* Convert contiguous elements, rounding once (convert.c). */
void reformat_convert(const struct reformat_kernels *k, void *dst, int dst_dtype,
                      const void *src, int src_dtype, size_t n);

/* ---- shapes ------------------------------------------------------------------------ */

struct loop {
    int64_t extent, dst, src; /* strides in elements */
};

/* Contiguous runs in both, under loops; dst has no pads. */
struct runs {
    struct loop outer[STRATA_MAX_RANK + 1]; /* the last varies fastest */
    int n_outer;
    int64_t length; /* elements of a run */
};

/* One side of a panel's channels: c lies at c*block when planar, else at
 * c/vector*block + c%vector. */
struct lanes {
    bool planar;
    int64_t vector, block;
};

/* Channels by pixels, under loops. On a planar side the pixels are neighbours in memory,
 * on any other the channels of a vector. */
struct panel {
    struct loop outer[STRATA_MAX_RANK + 1];
    int n_outer;
    struct loop pixel;
    int64_t channels, padded; /* padded: the channels dst has, pads included */
    struct lanes dst, src;
};

bool runs_shape(struct runs *r, const strata_desc *dst, const strata_desc *src);
bool panel_shape(struct panel *p, const strata_desc *dst, const strata_desc *src);

/* ---- drivers ------------------------------------------------------------------------
 */

struct reformat_job {
    const struct reformat_kernels *kernels;
    const strata_desc *dst_desc, *src_desc;
    char *dst;
    const char *src;
    size_t dst_size,
        src_size;  /* bytes of an element; of several where they move as one */
    int64_t bytes; /* of dst */
};

void runs_drive(const struct reformat_job *job, const struct runs *r);
void panel_drive(const struct reformat_job *job, const struct panel *p);
void generic_drive(const struct reformat_job *job);

/* Sum of the loops' strides at the index-th of all their steps. */
static inline int64_t loops_seek(const struct loop *loops, int n, int64_t index,
                                 int64_t *src)
{
    int64_t dst = 0;
    *src = 0;
    for (int i = n - 1; i >= 0; i--) {
        const int64_t at = index % loops[i].extent;
        index /= loops[i].extent;
        dst += at * loops[i].dst;
        *src += at * loops[i].src;
    }
    return dst;
}

static inline int64_t loops_steps(const struct loop *loops, int n)
{
    int64_t steps = 1; /* of a checked tensor: fits */
    for (int i = 0; i < n; i++)
        steps *= loops[i].extent;
    return steps;
}

#endif /* FORMATS_REFORMAT_KERNELS_H */
