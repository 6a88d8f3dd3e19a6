/* SPDX-License-Identifier: Apache-2.0
 *
 * A pair of descriptors as the rows of the device's reformat table look at it, and what
 * their makers share.
 */
#ifndef KERNELS_REFORMAT_REQUEST_H
#define KERNELS_REFORMAT_REQUEST_H

#include "formats/reformat/kernels.h"
#include "kernels/reformat/job.h"

#define MOST_BLOCKS ((uint64_t)INT32_MAX) /* of a grid */

/* A pair, and what it looks like as runs and as a panel. dtypes are those of the kernels:
 * equal ones only move bits, so any of their size will do. */
struct request {
    const strata_desc *dst, *src;
    char *dst_data;
    const char *src_data;
    int to, from;
    int64_t to_size, from_size; /* bytes of an element */
    bool same;                  /* dtypes: only bits move */
    bool typed; /* there are kernels for the pair; of 8 bytes, only for runs */
    bool as_runs, as_panel;
    struct runs runs;
    struct panel panel;
};

static inline uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t a, int64_t step)
{
    return (a + step - 1) / step * step;
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline struct reformat_divisor divisor(uint32_t d)
{
    return (struct reformat_divisor){d,
                                     d > 1 ? (uint32_t)((UINT64_C(1) << 32) / d + 1) : 0};
}

/* Whether `n` elements are a multiple of what an access holds. */
static inline bool whole(int64_t n, int64_t elements)
{
    return n % elements == 0;
}

static inline bool aligned(const void *p, int64_t bytes)
{
    return (uintptr_t)p % (uintptr_t)bytes == 0;
}

/* Copy loops to the job; false if one is too long for 32 bits. */
static inline bool take_loops(struct reformat_loops *out, uint64_t *steps,
                              const struct loop *loops, int n)
{
    *out = (struct reformat_loops){.n = n};
    *steps = 1;
    for (int i = 0; i < n; i++) {
        if (loops[i].extent > INT32_MAX)
            return false;
        out->extent[i] = (uint32_t)loops[i].extent;
        out->dst[i] = loops[i].dst;
        out->src[i] = loops[i].src;
        *steps *= (uint64_t)loops[i].extent;
    }
    return true;
}

/* Whether every loop's stride on a side holds whole accesses of n elements. */
static inline bool loops_whole(const struct loop *loops, int n_loops, bool in_dst,
                               int64_t n)
{
    for (int i = 0; i < n_loops; i++)
        if (!whole(in_dst ? loops[i].dst : loops[i].src, n))
            return false;
    return true;
}

/* Vectors of 4 bytes with nothing between them. */
static inline bool is_pairs(const struct lanes *s, int64_t pixel, int64_t size)
{
    return !s->planar && size < 4 && s->vector * size == 4 && pixel == s->vector;
}

/* ---- kernels/reformat/request.c -------------------------------------------------------
 */

struct request reformat_describe(const strata_desc *dst, void *dst_data,
                                 const strata_desc *src, const void *src_data);
/* The pair with channels and pixels in each other's place; false where one of its sides
 * has blocks or pads. */
bool reformat_turn(struct request *out, const struct request *r);

/* ---- makers of jobs: false if the pair does not fit -----------------------------------
 */

union job {
    struct reformat_runs runs;
    struct reformat_pixel pixel;
    struct reformat_zip zip;
    struct reformat_tile tile;
    struct reformat_slab slab;
    struct reformat_any any;
};

bool reformat_make_slab(union job *j, const struct request *r);
bool reformat_make_bytes(union job *j, const struct request *r);
bool reformat_make_zip(union job *j, const struct request *r);
bool reformat_make_pixel(union job *j, const struct request *r);
bool reformat_make_tile(union job *j, const struct request *r);
bool reformat_make_tile_any(union job *j, const struct request *r);

/* How slabs are cut. */
struct slab_plan {
    int held;         /* pieces of a thread that gathers: 2 or 4 */
    int whole, parts; /* bytes of the destination, at most: whole planes of some of the
                       * channels; all channels, or parts of planes */
};

/* kernels/reformat/slab.c: false if a pair does not fit. */
bool reformat_cut_slab(struct reformat_slab *j, const struct request *r,
                       const struct slab_plan *plan);

#endif /* KERNELS_REFORMAT_REQUEST_H */
