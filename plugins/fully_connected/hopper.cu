/* SPDX-License-Identifier: Apache-2.0
 *
 * FullyConnected of FP16, BF16 and TF32 on Hopper's tensor cores. Rows of the product are
 * images as they lie in memory, pad lanes and all, columns are units: few tiles of deep
 * products, so that the blocks of a cluster share a tile's depth.
 */
#include "plugins/fully_connected/hopper.cuh"

#include "plugins/common/dense_weight.h"
#include "plugins/common/product/launch.cuh"

/* Parts, columns, warpgroups, stages, turns, pair, split, blocks of a multiprocessor; in
 * the order of HOPPER_EACH. */
static const product_launch *const launches[HOPPER_TACTICS][PRODUCT_TYPES] = {
    PRODUCT_EVERY(1, 32, 1, 8, false, false, true, 2),    /* 64x32_half */
    PRODUCT_EVERY(1, 64, 1, 5, false, false, true, 2),    /* 64x64_split */
    PRODUCT_EVERY(1, 64, 2, 5, false, false, true, 1),    /* 128x64_split */
    {PRODUCT_HALVES(2, 128, 2, 5, true, true, false, 1)}, /* 128x128_pair */
};

/* ---- what it takes --------------------------------------------------------------------
 */

/* Sides of the product; depth and units with pad lanes. */
struct sides {
    int64_t images, depth, units;
};

static sides sides_of(const strata_tensor *x, const strata_tensor *y)
{
    return {x->dims[0], dense_image_size(x), dense_image_size(y)};
}

/* The layer's own bias and the epilogue's would have to be joined. */
static bool has_two_tails(const strata_node *n)
{
    const strata_epilogue *e = n->epilogue;
    return e && (e->flags & (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS)) &&
           n->weight[1].rank > 0;
}

static const char *refusal(const strata_node *n, const product_launch *l)
{
    const sides s = sides_of(&n->in[0], &n->out[0]);
    const int64_t piece = 16 / tensor_map_size(n->in[0].dtype);
    if (!l)
        return "its tiles are for other types";
    if (s.depth % piece != 0 || s.units % piece != 0)
        return "it takes images and results of whole 16 bytes";
    if (s.images > INT32_MAX / 2 || s.depth > INT32_MAX / 2 || s.units > INT32_MAX / 2)
        return "sides of over 2^30 are for others";
    if (has_two_tails(n))
        return "it takes its own bias or the epilogue's factor and bias";
    return product_refusal(*l, s.images, s.units);
}

int hopper_accept(const strata_node *n, int tactic)
{
    const char *why = product_math_refusal(n);
    if (!why)
        why = refusal(n, launches[tactic][product_type(n->in[0].dtype)]);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

int hopper_setup(const strata_node *n, void *state, int tactic)
{
    const strata_fully_connected *params = (const strata_fully_connected *)n->params;
    hopper_state *s = (hopper_state *)state;
    void *packed = NULL;
    int device = 0;
    cudaError_t e = product_prepare(*launches[tactic][product_type(n->in[0].dtype)]);
    if (e == cudaSuccess)
        e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&s->multiprocessors, cudaDevAttrMultiProcessorCount,
                                   device);
    if (e != cudaSuccess)
        return STRATA_FAIL(n, STRATA_EDEVICE, "preparing a kernel: %s (%s)",
                           cudaGetErrorString(e), cudaGetErrorName(e));
    const int status = dense_weight_pack(n, params->transposed, &packed);
    s->weight = packed;
    return status;
}

/* ---- running --------------------------------------------------------------------------
 */

static bool fill(product_job *job, const strata_run *r, const product_launch &l)
{
    const hopper_state *state = (const hopper_state *)r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0], *bias = &r->weight[1];
    const sides s = sides_of(x, y);
    const epilogue_args e = epilogue_of(r);
    const product_matrix rows = {x->data, s.depth, s.images, s.depth, 1, 0};
    const product_matrix columns = {state->weight, s.depth, s.units, s.depth, 1, 0};
    job->m = (int32_t)s.images;
    job->n = (int32_t)s.units;
    job->real = (int32_t)y->dims[1];
    job->steps = (int32_t)((s.depth + l.depth - 1) / l.depth);
    job->b_early = 1;
    job->scale = e.scale;
    job->bias = e.bias ? e.bias : bias->rank > 0 ? (const float *)bias->data : NULL;
    job->addend = e.residual;
    job->to = y->data;
    job->to_row = s.units;
    job->addend_row = e.residual ? r->epilogue->residual->strides[0] : 0;
    job->alpha = job->beta = 1;
    job->activation = e.activation;
    return map_matrix(&job->a, rows, x->dtype, l.rows, l.depth) &&
           map_matrix(&job->b, columns, x->dtype, l.box, l.depth) &&
           map_results(job, l, y->dtype, 1);
}

int hopper_run(const strata_run *r, int tactic)
{
    const hopper_state *s = (const hopper_state *)r->state;
    const product_launch &l = *launches[tactic][product_type(r->out[0].dtype)];
    product_job job = {};
    if (r->in[0].dims[0] == 0)
        return STRATA_OK;
    if (!fill(&job, r, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of these operands");
    const cudaError_t e = product_run(&job, l, 1, s->multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel fully_connected hopper: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}
