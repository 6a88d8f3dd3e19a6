/* SPDX-License-Identifier: Apache-2.0
 *
 * Shuffle on CUDA: the common factors of the reshape's sides are the axes of one copy,
 * cut further where a factor reaches over the lanes of a vector. Where that fails,
 * elements go one by one.
 */
#include <strata/layers.h>

#include <string.h>

#include <cuda_runtime_api.h>

#include "plugins/common/move/move.h"
#include "plugins/shuffle/each.h"
#include "plugins/shuffle/shuffle.h"

#define LINEAR                                                                           \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |            \
     STRATA_I64_NCHW | STRATA_I32_NCHW | STRATA_I8_NCHW | STRATA_U8_NCHW |               \
     STRATA_BOOL_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW)

/* Positions `times` apart that lie at equal distances, of n; 0: not even two. */
static int64_t regular(const strata_tensor *t, int32_t d, int64_t times, int64_t n)
{
    if (d != t->vector_dim || t->vector <= 1 || times % t->vector == 0)
        return n;
    if (t->vector % times)
        return 0;
    const int64_t lanes = t->vector / times;
    return lanes < n ? lanes : n;
}

/* Axes of a factor; false where its offsets are no sum of axes. */
static int add_factor(struct move_job *job, struct factor f, const strata_tensor *x,
                      const strata_tensor *y)
{
    while (f.n > 1) {
        const int64_t to = regular(y, f.to_dim, f.to_times, f.n);
        const int64_t from = regular(x, f.from_dim, f.from_times, f.n);
        const int64_t n = to < from ? to : from;
        if (n < 2 || f.n % n || job->axes >= MOVE_AXES)
            return 0;
        move_add_axis(job, n, move_offset(y, f.to_dim, f.to_times),
                      move_offset(x, f.from_dim, f.from_times));
        f.n /= n;
        f.to_times *= n;
        f.from_times *= n;
    }
    return 1;
}

/* Channels that stay channels keep their vectors, the last one's pads included. */
static int keeps_channels(const struct factor *f, const strata_tensor *x,
                          const strata_tensor *y)
{
    return f->from_dim == x->vector_dim && f->to_dim == y->vector_dim &&
           f->n == x->dims[f->from_dim] && f->n == y->dims[f->to_dim];
}

static int make_axes(struct move_job *job, const strata_shuffle *p,
                     const struct shuffle *s, const strata_tensor *x,
                     const strata_tensor *y)
{
    struct factor factors[2 * STRATA_MAX_RANK];
    if (p->first.n == 0 && p->second.n == 0 && y->format & LINEAR) {
        move_add_axis(job, y->count, 1, 1);
        return 1;
    }
    const int n = shuffle_factors(s, factors);
    for (int i = 0; i < n; i++)
        if (keeps_channels(&factors[i], x, y))
            move_dim(job, y->vector_dim, y, 0, x, 0, 1, factors[i].n);
        else if (!add_factor(job, factors[i], x, y))
            return 0;
    return n >= 0;
}

static int run_each(const strata_run *r, const struct shuffle *s)
{
    struct shuffle_each job = {.x = r->in[0],
                               .y = r->out[0],
                               .from_rank = s->from_rank,
                               .to_rank = s->to_rank,
                               .size = move_size(r->out[0].dtype)};
    memcpy(job.from, s->from, sizeof job.from);
    memcpy(job.to, s->to, sizeof job.to);
    memcpy(job.from_dim, s->from_dim, sizeof job.from_dim);
    memcpy(job.to_dim, s->to_dim, sizeof job.to_dim);
    const int status = shuffle_each_start(&job, r->stream);
    return status == cudaSuccess ? STRATA_OK
                                 : STRATA_FAIL(r, STRATA_EDEVICE, "kernel each: %s",
                                               cudaGetErrorString((cudaError_t)status));
}

static int shuffle_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    struct shuffle s;
    struct move_job job;
    move_begin(&job, y, x);
    shuffle_sides(&s, r->params, x, y);
    int status =
        make_axes(&job, r->params, &s, x, y) ? move_launch(r, &job) : run_each(r, &s);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static const strata_row rows[] = {{{MOVE_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = shuffle_run},
};

static const strata_extends shuffle = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Shuffle",
    .params_size = sizeof(strata_shuffle),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&shuffle};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Shuffle", extends)
