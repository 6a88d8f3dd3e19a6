/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize on CUDA. Which elements an output index is made of is worked out in setup, by
 * the same code as on the host, into tables on the device.
 */
#include <strata/layers.h>

#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "plugins/common/move/move.h"
#include "plugins/resize/linear.h"
#include "plugins/resize/resize.h"

#define LINEAR_FORMATS (STRATA_FOUR | STRATA_F32_NHWC | STRATA_F16_NHWC)

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
    return resize_nearest(n->params, &n->in[0], &n->out[0], d, i);
}

static int nearest_setup(const strata_node *n, void *state)
{
    const uint32_t spatial = ((1u << n->in[0].rank) - 1) & ~3u;
    return move_make_tables(n, spatial, nearest_source, state);
}

static int nearest_run(const strata_run *r)
{
    const struct move_tables *tables = r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct move_job job;
    move_begin(&job, y, x);
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

static int linear_accept(const strata_node *n)
{
    const strata_resize *p = n->params;
    const int64_t from = image_elements(&n->in[0]), to = image_elements(&n->out[0]);
    const int64_t image = from > to ? from : to;
    if (p->mode != STRATA_BILINEAR)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "computes mode bilinear only");
    if (image > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "an image has %lld elements; this impl takes less than 2^31",
                           (long long)image);
    return STRATA_OK;
}

static int linear_table(const strata_node *n, int d, const struct resize_entry **out)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    const size_t bytes = (size_t)y->dims[d] * sizeof(struct resize_entry);
    struct resize_entry *entries = malloc(bytes);
    void *device = NULL;
    if (!entries)
        return STRATA_FAIL(n, STRATA_ENOMEM, "a table of %lld entries",
                           (long long)y->dims[d]);
    for (int64_t i = 0; i < y->dims[d]; i++) {
        double share;
        const int64_t low = resize_lower(n->params, x, y, d, i, &share);
        const int64_t high = low + 1 < x->dims[d] ? low + 1 : low;
        entries[i] = (struct resize_entry){.low = (int32_t)(low * x->strides[d]),
                                           .high = (int32_t)(high * x->strides[d]),
                                           .share = (float)share};
    }
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

/* ---- tables ---------------------------------------------------------------------- */

static const strata_row nearest_rows[] = {{{MOVE_FORMATS}, {STRATA_SAME}}};
static const strata_row linear_rows[] = {{{LINEAR_FORMATS}, {STRATA_SAME}}};

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
