/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixMultiply of FP16, BF16 and TF32 on Hopper's tensor cores. The sizes of tiles are
 * tactics: pairs and turns for large products, which fill the chip several times; split
 * ones for small products, whose depth the blocks of a cluster share.
 */
#include "plugins/common/product/launch.cuh"
#include "plugins/common/product/written.cuh"
#include "plugins/matrix_multiply/cuda.cuh"
#include "plugins/matrix_multiply/hopper.cuh"
#include "plugins/matrix_multiply/pack.h"

#define LEAST_TILES 16 /* of a tactic that does not share depths */

#define HALF_OF(type, ...)                                                               \
    &launch_of<product_tile<product_written_floats<type, STRATA_GELU>, __VA_ARGS__>>
#define HALVES(...) HALF_OF(__half, __VA_ARGS__), HALF_OF(__nv_bfloat16, __VA_ARGS__)
#define EVERY(...)                                                                       \
    {                                                                                    \
        HALVES(__VA_ARGS__), PRODUCT_OF(float, __VA_ARGS__)                              \
    }

/* Parts, columns, warpgroups, stages, turns, pair, split, blocks of a multiprocessor; in
 * the order of HOPPER_EACH. Results of floats take the room of some stages, and deep is
 * for what has few then. */
static const product_launch *const launches[HOPPER_TACTICS][PRODUCT_TYPES] = {
    /* 128x128_pair */
    {HALVES(2, 128, 2, 5, true, true, false, 1),
     PRODUCT_OF(float, 2, 128, 2, 3, true, true, false, 1)},
    {HALVES(1, 256, 2, 3, false, true, false, 1)}, /* 128x256_pair */
    /* 128x192_pair */
    {HALVES(1, 192, 2, 4, false, true, false, 1),
     PRODUCT_OF(float, 1, 192, 2, 3, false, true, false, 1)},
    EVERY(1, 96, 2, 5, false, false, true, 1),  /* 128x96_split */
    EVERY(1, 64, 2, 5, false, false, true, 1),  /* 128x64_split */
    EVERY(1, 64, 1, 5, false, false, true, 2),  /* 64x64_split */
    EVERY(1, 32, 1, 12, false, false, true, 1), /* 64x32_split */
    EVERY(1, 32, 1, 8, false, false, true, 2),  /* 64x32_half */
    EVERY(1, 32, 1, 8, false, false, false, 2), /* 64x32_whole */
    /* 128x128_deep */
    {NULL, NULL, PRODUCT_OF(float, 1, 128, 2, 5, false, true, false, 1)},
    {HALVES(1, 160, 2, 5, false, true, false, 1)},        /* 128x160_pair */
    {HALVES(1, 96, 2, 3, false, false, false, 2, true)},  /* 128x96_whole */
    {HALVES(1, 96, 1, 5, false, false, false, 2, true)},  /* 64x96_whole */
    {HALVES(1, 64, 1, 6, false, false, false, 2, true)}}; /* 64x64_whole */

/* ---- what it takes --------------------------------------------------------------------
 */

static int64_t tiles_of(const matrix_product &p, const product_launch &l)
{
    return (p.m + l.rows - 1) / l.rows * ((p.n + l.columns - 1) / l.columns) * p.batches;
}

/* Rows of such a matrix begin at whole 16 bytes. */
static bool is_whole(const matrix_product &p, const matrix &x, int64_t rows, int64_t row,
                     int64_t piece)
{
    return (rows <= 1 || row % piece == 0) && (p.dims == 0 || x.batch[0] % piece == 0);
}

/* piece: elements of 16 bytes. */
static const char *refusal(const matrix_product &p, bool constant, bool has_c,
                           int64_t piece)
{
    const matrix &a = p.at[PRODUCT_A], &b = p.at[PRODUCT_B];
    const matrix &c = p.at[PRODUCT_C], &d = p.at[PRODUCT_D];
    if (p.dims > 1 || p.k == 0 || p.k % piece != 0 || p.n % piece != 0)
        return "it takes depths and columns of whole 16 bytes, and batches of one "
               "distance";
    if (p.m > INT32_MAX / 2 || p.n > INT32_MAX / 2 || p.k > INT32_MAX / 2 ||
        p.batches > INT32_MAX)
        return "sides of over 2^30 are for others";
    if (p.dims > 0 && a.batch[0] == 0)
        return "products that share A are for others";
    if (a.column != 1 || !is_whole(p, a, p.m, a.row, piece))
        return "rows of A are not whole pieces of 16 bytes";
    if (!constant && (b.row != 1 || !is_whole(p, b, p.n, b.column, piece)))
        return "B lies as columns: with transpose_b it would be read in rows";
    if ((d.column != 1 && p.n > 1) || !is_whole(p, d, p.m, d.row, piece))
        return "rows of Y are not whole pieces of 16 bytes";
    if (has_c &&
        (c.column != 1 || (c.row == 0 && p.m > 1) || !is_whole(p, c, p.m, c.row, piece)))
        return "C is not a matrix of the output's size";
    return NULL;
}

/* Large tactics fill a good part of the chip; split ones are for what does not. */
static const char *size_refusal(const matrix_product &p, const product_launch *l)
{
    if (!l)
        return "its tiles are for other types";
    const int64_t tiles = tiles_of(p, *l);
    if (tiles > INT32_MAX)
        return "so many tiles are for others";
    if (!l->splits)
        return tiles < LEAST_TILES ? "its tiles would leave most multiprocessors idle"
                                   : NULL;
    return tiles > 1024 ? "its tiles are for smaller products" : NULL;
}

int hopper_accept(const strata_node *n, int tactic)
{
    const strata_matrix_multiply *params = (const strata_matrix_multiply *)n->params;
    const matrix_product p =
        matrix_product_of(params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    const bool has_c = matrix_has_c(params, n->n_in, n->in);
    const strata_epilogue *e = n->epilogue;
    const int32_t dtype = n->in[0].dtype;
    const char *why = product_math_refusal(n);
    if (!why)
        why = refusal(p, matrix_is_constant(n->n_in, n->in), has_c,
                      16 / tensor_map_size(dtype));
    if (!why && has_c && e && (e->flags & STRATA_EPILOGUE_RESIDUAL))
        why = "it adds C or a residual, not both";
    if (!why)
        why = size_refusal(p, launches[tactic][product_type(dtype)]);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int hopper_setup(const strata_node *n, void *state, int tactic)
{
    const product_launch *l = launches[tactic][product_type(n->out[0].dtype)];
    const int status = gemv_setup(n, state);
    if (status != STRATA_OK)
        return status;
    const cudaError_t e = product_prepare(*l);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "preparing a kernel: %s",
                                          cudaGetErrorString(e));
}

/* ---- running --------------------------------------------------------------------------
 */

static bool fill(product_job *job, const matrix_job &j, const product_launch &l,
                 int32_t dtype)
{
    const matrix_product &p = j.p;
    const matrix &a = p.at[PRODUCT_A], &b = p.at[PRODUCT_B], &d = p.at[PRODUCT_D];
    const matrix &addend = p.at[j.epilogue.residual ? PRODUCT_RESIDUAL : PRODUCT_C];
    const bool batched = p.dims > 0;
    job->m = (int32_t)p.m;
    job->n = (int32_t)p.n;
    job->steps = (int32_t)((p.k + l.depth - 1) / l.depth);
    job->real = job->n;
    job->b_batches = batched && b.batch[0] != 0;
    job->b_early = j.constant_b;
    job->bias = j.bias;
    job->addend = j.epilogue.residual ? j.epilogue.residual : j.c;
    job->to = j.d;
    job->to_row = d.row;
    job->to_batch = batched ? d.batch[0] : 0;
    job->addend_row = addend.row;
    job->addend_batch = batched ? addend.batch[0] : 0;
    job->alpha = j.alpha;
    job->beta = j.epilogue.residual ? 1 : j.beta;
    job->activation = j.epilogue.activation;
    const product_matrix rows = {j.a,   p.k,       p.m,
                                 a.row, p.batches, batched ? a.batch[0] : 0};
    const product_matrix columns = {j.b,
                                    p.k,
                                    p.n,
                                    b.column,
                                    job->b_batches ? p.batches : 1,
                                    batched ? b.batch[0] : 0};
    return map_matrix(&job->a, rows, dtype, l.rows, l.depth) &&
           map_matrix(&job->b, columns, dtype, l.box, l.depth) &&
           map_results(job, l, dtype, p.batches);
}

int hopper_run(const strata_run *r, int tactic)
{
    const gemv_state &s = *(const gemv_state *)r->state;
    const int32_t dtype = r->out[0].dtype;
    const product_launch &l = *launches[tactic][product_type(dtype)];
    const matrix_job j = matrix_job_of(r, s.weight);
    product_job job = {};
    if (j.p.m == 0 || j.p.n == 0 || j.p.batches == 0)
        return STRATA_OK;
    if (!fill(&job, j, l, dtype))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these operands");
    const cudaError_t e =
        product_run(&job, l, j.p.batches, s.multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel matrix_multiply hopper: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
