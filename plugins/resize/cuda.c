/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize on CUDA. Which elements an output index is made of is worked out in setup, by
 * the same code as on the host, into tables on the device.
 */
#include <strata/layers.h>

#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "plugins/common/fill.h"
#include "plugins/common/move/move.h"
#include "plugins/resize/linear.h"
#include "plugins/resize/plan.h"
#include "plugins/resize/taps_cuda.h"

#define LINEAR_FORMATS                                                                   \
    (STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NCHW |                \
     STRATA_BF16_NHWC | STRATA_BF16_NHWC8)

/* ---- nearest --------------------------------------------------------------------- */

static int nearest_accept(const strata_node *n)
{
    const strata_resize *p = n->params;
    return p->mode == STRATA_NEAREST
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes mode nearest only");
}

static int64_t nearest_source(const strata_node *n, int d, int64_t i)
{
    const strata_resize *p = n->params;
    for (int32_t k = 0; k < resize_axes(p, n->in[0].rank); k++) {
        const struct resize_axis a = resize_axis(p, &n->in[0], &n->out[0], k);
        if (a.dim == d)
            return resize_nearest(p, &a, i);
    }
    return i;
}

static int nearest_setup(const strata_node *n, void *state)
{
    const strata_resize *p = n->params;
    uint32_t dims = 0;
    for (int32_t k = 0; k < resize_axes(p, n->in[0].rank); k++)
        dims |= 1u << resize_dim(p, n->in[0].rank, k);
    return move_make_tables(n, dims, nearest_source, state);
}

static int nearest_run(const strata_run *r)
{
    const struct move_tables *tables = r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct move_job job;
    const strata_resize *p = r->params;
    const uint64_t fill = fill_bits(y->dtype, p->extrapolation);
    move_begin(&job, y, x);
    job.fill = (uint32_t)fill;
    job.fill_upper = (uint32_t)(fill >> 32);
    for (int32_t d = 0; d < y->rank; d++)
        move_table(&job, d, y, x, tables->dim[d]);
    int status = move_launch(r, &job);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

/* ---- linear ---------------------------------------------------------------------- */

/* Pads included. */
static int64_t image_elements(const strata_tensor *t)
{
    int64_t n = (t->dims[1] + t->vector - 1) / t->vector * t->vector;
    for (int d = 2; d < t->rank; d++)
        n *= t->dims[d];
    return n;
}

/* Whether the resized dims are the spatial ones. */
static int is_spatial(const strata_resize *p, int32_t rank)
{
    uint32_t dims = 0;
    if (rank < 3 || rank > 2 + RESIZE_DIMS)
        return 0;
    for (int32_t k = 0; k < resize_axes(p, rank); k++)
        dims |= 1u << resize_dim(p, rank, k);
    return !(dims & 3);
}

static int linear_accept(const strata_node *n)
{
    const strata_resize *p = n->params;
    const int64_t from = image_elements(&n->in[0]), to = image_elements(&n->out[0]);
    const int64_t image = from > to ? from : to;
    if ((p->mode != STRATA_BILINEAR && p->mode != STRATA_RESIZE_LINEAR) || p->antialias ||
        p->coordinates == STRATA_TF_CROP_AND_RESIZE || !is_spatial(p, n->in[0].rank))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "computes linear modes of spatial dims only, without "
                           "antialias or extrapolation");
    if (image > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "an image has %lld elements; this impl takes less than 2^31",
                           (long long)image);
    return STRATA_OK;
}

/* Entries of dim d, which may keep its size. */
static void linear_entries(const strata_node *n, int d, struct resize_entry *entries)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    const int32_t stride = (int32_t)x->strides[d];
    for (int64_t i = 0; i < y->dims[d]; i++)
        entries[i] = (struct resize_entry){.low = (int32_t)i * stride,
                                           .high = (int32_t)i * stride};
    for (int32_t k = 0; k < resize_axes(p, x->rank); k++) {
        const struct resize_axis a = resize_axis(p, x, y, k);
        for (int64_t i = 0; a.dim == d && i < a.out; i++) {
            int64_t index[2];
            float weight[2];
            resize_weigh(p, &a, i, 1, index, weight);
            entries[i] = (struct resize_entry){.low = (int32_t)index[0] * stride,
                                               .high = (int32_t)index[1] * stride,
                                               .share = weight[1]};
        }
    }
}

static int linear_table(const strata_node *n, int d, const struct resize_entry **out)
{
    const strata_tensor *y = &n->out[0];
    const size_t bytes = (size_t)y->dims[d] * sizeof(struct resize_entry);
    struct resize_entry *entries = malloc(bytes);
    void *device = NULL;
    if (!entries)
        return STRATA_FAIL(n, STRATA_ENOMEM, "a table of %lld entries",
                           (long long)y->dims[d]);
    linear_entries(n, d, entries);
    int status = move_upload(n, entries, bytes, &device);
    *out = device;
    free(entries);
    return status;
}

static int linear_setup(const strata_node *n, void *state)
{
    struct resize_job *job = state;
    int status = STRATA_OK;
    for (int d = 2; d < n->in[0].rank && status == STRATA_OK; d++)
        status = linear_table(n, d, &job->table[RESIZE_DIMS - n->in[0].rank + d]);
    return status;
}

static int linear_run(const strata_run *r)
{
    struct resize_job job = *(const struct resize_job *)r->state;
    job.x = r->in[0];
    job.y = r->out[0];
    const int status = resize_linear_start(&job, r->stream);
    return status == cudaSuccess ? STRATA_OK
                                 : STRATA_FAIL(r, STRATA_EDEVICE, "kernel resize: %s",
                                               cudaGetErrorString((cudaError_t)status));
}

/* ---- taps ------------------------------------------------------------------------ */

static int taps_accept(const strata_node *n)
{
    const strata_resize *p = n->params;
    const strata_tensor *x = &n->in[0];
    if (p->mode == STRATA_NEAREST)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes interpolation only");
    for (int32_t k = 0; x->vector > 1 && k < resize_axes(p, x->rank); k++)
        if (resize_dim(p, x->rank, k) == x->vector_dim)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "dim %d is resized and lies in vectors of %d; a format "
                               "without vectors is needed",
                               (int)x->vector_dim, (int)x->vector);
    return STRATA_OK;
}

/* Offsets and weights of one plan axis. */
static int taps_table(const strata_node *n, const struct resize_axis *a, int64_t stride,
                      struct resize_table *out)
{
    const size_t taps = (size_t)resize_taps(a), entries = taps * (size_t)a->out;
    int64_t *at = malloc(entries * sizeof *at);
    float *weight = malloc(entries * sizeof *weight);
    void *device_at = NULL, *device_weight = NULL;
    int status = STRATA_OK;
    if (!at || !weight)
        status = STRATA_FAIL(n, STRATA_ENOMEM, "a table of %zu entries", entries);
    for (int64_t i = 0; i < a->out && status == STRATA_OK; i++) {
        int64_t *of = at + (size_t)i * taps;
        const int inside =
            resize_weigh(n->params, a, i, 1, of, weight + (size_t)i * taps);
        for (size_t k = 0; k < taps; k++)
            of[k] = inside ? of[k] * stride : -1;
    }
    if (status == STRATA_OK)
        status = move_upload(n, at, entries * sizeof *at, &device_at);
    if (status == STRATA_OK)
        status = move_upload(n, weight, entries * sizeof *weight, &device_weight);
    *out = (struct resize_table){(int32_t)taps, device_at, device_weight};
    free(at);
    free(weight);
    return status;
}

static int taps_setup(const strata_node *n, void *state)
{
    struct resize_taps_job *job = state;
    int status = STRATA_OK;
    job->plan = resize_plan(n->params, &n->in[0], &n->out[0]);
    for (int32_t k = 0; k < job->plan.n && status == STRATA_OK; k++) {
        const struct resize_plan_axis *axis = &job->plan.axis[k];
        if (axis->taps >= 0)
            status = taps_table(n, &job->plan.resize[axis->taps], axis->from,
                                &job->table[axis->taps]);
    }
    return status;
}

static int taps_run(const strata_run *r)
{
    const strata_resize *p = r->params;
    struct resize_taps_job job = *(const struct resize_taps_job *)r->state;
    job.x = r->in[0].data;
    job.y = r->out[0].data;
    job.dtype = r->out[0].dtype;
    job.value = (float)p->extrapolation;
    const int status = resize_taps_start(&job, r->stream);
    if (status != cudaSuccess)
        return STRATA_FAIL(r, STRATA_EDEVICE, "kernel resize: %s",
                           cudaGetErrorString((cudaError_t)status));
    return move_clear_pads(r, &r->out[0]);
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_row nearest_rows[] = {{{MOVE_FORMATS, MOVE_FORMATS}, {STRATA_SAME}}};
static const strata_row linear_rows[] = {{{LINEAR_FORMATS, MOVE_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda_nearest",
     .rows = STRATA_ARRAY(nearest_rows),
     .state_size = sizeof(struct move_tables),
     .accept = nearest_accept,
     .setup = nearest_setup,
     .run = nearest_run},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda_bilinear",
     .rows = STRATA_ARRAY(linear_rows),
     .state_size = sizeof(struct resize_job),
     .accept = linear_accept,
     .setup = linear_setup,
     .run = linear_run},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda_taps",
     .rows = STRATA_ARRAY(linear_rows),
     .state_size = sizeof(struct resize_taps_job),
     .accept = taps_accept,
     .setup = taps_setup,
     .run = taps_run},
};

static const strata_extends resize = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Resize",
    .params_size = sizeof(strata_resize),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&resize};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Resize", extends)
