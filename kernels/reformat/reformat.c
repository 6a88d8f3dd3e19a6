/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the device's reformat table: which pairs each takes, and its job.
 */
#include "kernels/reformat/reformat.h"

#include <string.h>

#include "kernels/reformat/request.h"

/* ---- runs ----------------------------------------------------------------------------
 */

static bool make_runs_of(struct reformat_runs *j, const struct request *r, int64_t piece)
{
    if (!(r->typed || r->same) || !r->as_runs ||
        !take_loops(&j->rows, &j->n_rows, r->runs.outer, r->runs.n_outer))
        return false;
    j->dst = r->dst_data;
    j->src = r->src_data;
    j->piece = (int32_t)piece;
    j->length = (uint64_t)(r->runs.length / piece);
    return divide_up(j->n_rows * j->length, 1024) <= MOST_BLOCKS;
}

static int64_t runs_piece(const struct request *r)
{
    return 16 / (r->to_size > r->from_size ? r->to_size : r->from_size);
}

static bool make_runs(union job *j, const struct request *r)
{
    const int64_t n = runs_piece(r);
    return make_runs_of(&j->runs, r, n) && j->runs.length > 0 &&
           (whole(r->runs.length, n) || r->runs.n_outer == 0) &&
           aligned(r->dst_data, n * r->to_size) &&
           aligned(r->src_data, n * r->from_size) &&
           loops_whole(r->runs.outer, r->runs.n_outer, true, n) &&
           loops_whole(r->runs.outer, r->runs.n_outer, false, n);
}

static bool make_runs_any(union job *j, const struct request *r)
{
    return make_runs_of(&j->runs, r, 1);
}

/* The end of a single run that is not a whole piece goes by elements. */
static int launch_runs(const union job *j, const struct request *r, void *stream)
{
    const int64_t done = (int64_t)j->runs.length * j->runs.piece;
    int error = reformat_launch_runs(&j->runs, r->to, r->from, stream);
    if (error != 0 || r->runs.n_outer > 0 || done == r->runs.length)
        return error;
    struct reformat_runs tail = j->runs;
    tail.dst = r->dst_data + done * r->to_size;
    tail.src = r->src_data + done * r->from_size;
    tail.piece = 1;
    tail.length = (uint64_t)(r->runs.length - done);
    return reformat_launch_runs(&tail, r->to, r->from, stream);
}

/* ---- launches ------------------------------------------------------------------------
 */

static int launch_zip(const union job *j, const struct request *r, void *stream)
{
    return reformat_launch_zip(&j->zip, r->to, r->from, stream);
}

static int launch_pixel(const union job *j, const struct request *r, void *stream)
{
    return reformat_launch_pixel(&j->pixel, r->to, r->from, stream);
}

static int launch_tile(const union job *j, const struct request *r, void *stream)
{
    return reformat_launch_tile(&j->tile, r->to, r->from, stream);
}

static int launch_slab(const union job *j, const struct request *r, void *stream)
{
    (void)r;
    return reformat_launch_slab(&j->slab, stream);
}

static int launch_bytes(const union job *j, const struct request *r, void *stream)
{
    (void)r;
    return reformat_launch_bytes(&j->slab, stream);
}

/* ---- any -----------------------------------------------------------------------------
 */

static bool make_any(union job *j, const struct request *r)
{
    uint64_t count = 1;
    for (int d = 0; d < r->dst->rank; d++) {
        const uint64_t n = (uint64_t)r->dst->dims[d], v = (uint64_t)r->dst->vector;
        count *= d == r->dst->vector_dim ? divide_up(n, v) * v : n;
    }
    j->any = (struct reformat_any){.dst = r->dst_data,
                                   .src = r->src_data,
                                   .dst_desc = *r->dst,
                                   .src_desc = *r->src,
                                   .count = count};
    return true;
}

static int launch_any(const union job *j, const struct request *r, void *stream)
{
    (void)r;
    return reformat_launch_any(&j->any, stream);
}

/* ---- the table -----------------------------------------------------------------------
 */

static const struct row {
    const char *name;
    bool (*make)(union job *j, const struct request *r); /* false: does not fit */
    int (*launch)(const union job *j, const struct request *r, void *stream);
} rows[] = {
    /* best first; the first that fits wins */
    {"runs", make_runs, launch_runs},
    {"slab", reformat_make_slab, launch_slab},
    {"bytes", reformat_make_bytes, launch_bytes},
    {"zip", reformat_make_zip, launch_zip},
    {"pixel", reformat_make_pixel, launch_pixel},
    {"tile", reformat_make_tile, launch_tile},
    {"runs_any", make_runs_any, launch_runs},
    {"tile_any", reformat_make_tile_any, launch_tile},
    {"any", make_any, launch_any},
};

size_t reformat_cuda_rows(void)
{
    return ARRAY_LENGTH(rows);
}

const char *reformat_cuda_row_name(size_t row)
{
    return row < ARRAY_LENGTH(rows) ? rows[row].name : NULL;
}

size_t reformat_cuda_choose(const strata_desc *dst, const void *dst_data,
                            const strata_desc *src, const void *src_data)
{
    const struct request r =
        reformat_describe(dst, (void *)(uintptr_t)dst_data, src, src_data);
    union job j;
    size_t row = 0;
    while (!rows[row].make(&j, &r))
        row++; /* the last one takes all */
    return row;
}

int reformat_cuda_row(size_t row, const strata_desc *dst, void *dst_data,
                      const strata_desc *src, const void *src_data, void *stream,
                      int *cuda, strata_error *err)
{
    const struct request r = reformat_describe(dst, dst_data, src, src_data);
    union job j;
    if (row >= ARRAY_LENGTH(rows) || !rows[row].make(&j, &r))
        return error_set(err, STRATA_EUNSUPPORTED,
                         "reformat: row %zu (%s) of the device's table does not take "
                         "this pair of descriptors; use the row that is chosen for it",
                         row, row < ARRAY_LENGTH(rows) ? rows[row].name : "none");
    *cuda = rows[row].launch(&j, &r, stream);
    return STRATA_OK;
}
