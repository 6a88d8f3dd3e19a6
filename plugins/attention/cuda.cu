/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on CUDA: the impls, and from a call to a job.
 */
#include "kernels/counting.cuh"
#include "plugins/attention/job.cuh"

/* ---- from a call to a job -------------------------------------------------------------
 */

static int64_t bytes_of(int32_t dtype)
{
    return dtype == STRATA_FP32 ? 4 : 2;
}

static void *address_of(const strata_tensor *t, const attention_view *v)
{
    return v->port < 0 ? NULL
                       : (char *)t[v->port].data + v->begin * bytes_of(t[v->port].dtype);
}

static int job_of(attention_job *job, const strata_run *r)
{
    struct attention_plan *p = &job->plan;
    const int status = attention_plan_run(p, r);
    if (status != STRATA_OK)
        return status;
    job->q = address_of(r->in, &p->q);
    job->k = address_of(r->in, &p->k);
    job->v = address_of(r->in, &p->v);
    job->past_k = address_of(r->in, &p->past_k);
    job->past_v = address_of(r->in, &p->past_v);
    job->mask = p->mask.port < 0 ? NULL : r->in[p->mask.port].data;
    job->lengths = p->lengths_port < 0 ? NULL : r->in[p->lengths_port].data;
    job->y = address_of(r->out, &p->y);
    job->present_k = address_of(r->out, &p->present_k);
    job->present_v = address_of(r->out, &p->present_v);
    job->scores = address_of(r->out, &p->scores);
    return STRATA_OK;
}

static int launched(const strata_run *r, cudaError_t e, const char *kernel)
{
    cudaGetLastError();
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel attention %s: %s (%s)", kernel,
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Whether rows begin at multiples of 16 bytes, by the addresses of this call. */
static bool aligned(const attention_job &job)
{
    const uintptr_t all = (uintptr_t)job.q | (uintptr_t)job.k | (uintptr_t)job.v |
                          (uintptr_t)job.past_k | (uintptr_t)job.past_v |
                          (uintptr_t)job.y | (uintptr_t)job.present_k |
                          (uintptr_t)job.present_v;
    return all % 16 == 0;
}

/* ---- impls ----------------------------------------------------------------------------
 */

static int run_simt(const strata_run *r, const attention_job &job)
{
    attention_simt(&job, layer_stream(r));
    if (job.present_k)
        attention_present(&job, layer_stream(r));
    return layer_launched(r, "attention simt");
}

static int simt_run(const strata_run *r)
{
    attention_job job;
    const int status = job_of(&job, r);
    return status == STRATA_OK ? run_simt(r, job) : status;
}

static int hopper_ctx_open(const strata_node *n, const void *, void *ctx)
{
    return counting_open(n, ctx, HOPPER_COUNTERS * sizeof(uint32_t));
}

static int hopper_run(const strata_run *r)
{
    attention_job job;
    const int status = job_of(&job, r);
    if (status != STRATA_OK || !aligned(job) || job.plan.keys == 0)
        return status != STRATA_OK ? status : run_simt(r, job);
    if (job.present_k)
        attention_present(&job, layer_stream(r));
    return launched(r, attention_hopper(&job, counting_of(r), layer_stream(r)), "hopper");
}

static int decode_ctx_open(const strata_node *n, const void *, void *ctx)
{
    struct attention_plan p;
    const int status = attention_plan(&p, n);
    return status == STRATA_OK ? counting_open(n, ctx, attention_decode_counters(&p))
                               : status;
}

static size_t decode_workspace(const strata_node *n)
{
    struct attention_plan p;
    return attention_plan(&p, n) == STRATA_OK ? attention_decode_workspace(&p) : SIZE_MAX;
}

static int decode_run(const strata_run *r)
{
    attention_job job;
    const int status = job_of(&job, r);
    if (status != STRATA_OK || !aligned(job))
        return status != STRATA_OK ? status : run_simt(r, job);
    const cudaError_t e = attention_decode(&job, r->workspace, r->workspace_size,
                                           counting_of(r), layer_stream(r));
    if (job.present_k && (job.present_k != job.past_k || job.present_v != job.past_v))
        attention_present(&job, layer_stream(r));
    return launched(r, e, "decode");
}

/* ---- what they take -------------------------------------------------------------------
 */

#define SIMT_DIM 1024         /* elements of a query that fit into shared memory */
#define INDEX_LIMIT (1 << 29) /* of queries and keys: places are 32-bit */

static int too_long(const strata_node *n, const struct attention_plan *p)
{
    const double blocks = (double)p->batch * p->heads * ((double)p->length / 32 + 1);
    if (p->keys >= INDEX_LIMIT || p->length >= INDEX_LIMIT || blocks >= 2147483647.0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes under 2^29 queries and keys, and "
                           "2^31 blocks");
    return STRATA_OK;
}

static int simt_accept(const strata_node *n)
{
    struct attention_plan p;
    const int status = attention_plan(&p, n);
    if (status != STRATA_OK)
        return status;
    if (p.dim > SIMT_DIM)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes heads of up to %d, not %lld",
                           SIMT_DIM, (long long)p.dim);
    if (p.batch * p.kv_heads > 65535 && p.present_k.port >= 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes up to 65535 heads of all the batch, not %lld",
                           (long long)(p.batch * p.kv_heads));
    return too_long(n, &p);
}

static bool whole_pieces(const attention_view *v)
{
    return v->port < 0 || (v->begin % 8 == 0 && v->batch % 8 == 0 && v->head % 8 == 0 &&
                           v->row % 8 == 0);
}

/* What the kernels that move 16 bytes at a time have in common. */
static const char *tensor_refuses(const struct attention_plan *p)
{
    if (p->dim % 8 || p->v_dim % 8 || p->dim > 128 || p->v_dim > 128)
        return "takes heads of multiples of 8 up to 128";
    if (p->scores_kind != STRATA_SCORES_NONE)
        return "keeps no scores";
    if (!whole_pieces(&p->q) || !whole_pieces(&p->k) || !whole_pieces(&p->v) ||
        !whole_pieces(&p->y) || !whole_pieces(&p->past_k) || !whole_pieces(&p->past_v) ||
        !whole_pieces(&p->present_k) || !whole_pieces(&p->present_v))
        return "takes rows that begin at multiples of 8";
    return NULL;
}

static int accept_as(const strata_node *n,
                     const char *(*refuses)(const struct attention_plan *))
{
    struct attention_plan p;
    int status = attention_plan(&p, n);
    if (status == STRATA_OK)
        status = simt_accept(n);
    if (status != STRATA_OK)
        return status;
    const char *why = tensor_refuses(&p);
    if (!why)
        why = refuses(&p);
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

static int hopper_accept(const strata_node *n)
{
    return accept_as(n, attention_hopper_refuses);
}

static int decode_accept(const strata_node *n)
{
    return accept_as(n, attention_decode_refuses);
}

/* ---- tables ---------------------------------------------------------------------------
 */

#define MASKS (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_BOOL_NCHW)
#define ROW(format)                                                                      \
    {                                                                                    \
        {(format), STRATA_SAME, STRATA_SAME, MASKS}, {STRATA_SAME},                      \
            {STRATA_SAME, STRATA_SAME, STRATA_I32_NCHW | STRATA_I64_NCHW},               \
        {                                                                                \
            0                                                                            \
        }                                                                                \
    }

static const strata_row rows[] = {ROW(STRATA_F32_NCHW), ROW(STRATA_F16_NCHW),
                                  ROW(STRATA_BF16_NCHW)};
static const strata_row half_rows[] = {ROW(STRATA_F16_NCHW), ROW(STRATA_BF16_NCHW)};

#define STRIDED (STRATA_STRIDED_IN | STRATA_STRIDED_OUT)
/* present_k and present_v may be the caches past_k and past_v. */
#define CACHES                                                                           \
    {                                                                                    \
        0, 1 + ATTENTION_PAST_K, 1 + ATTENTION_PAST_V                                    \
    }

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRIDED,
     .name = "simt",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .accept = simt_accept,
     .run = simt_run,
     .bandwidth = 0.2,
     .in_place = CACHES},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRIDED,
     .min_sm = 90,
     .max_sm = 90,
     .name = "hopper",
     .rows = STRATA_ARRAY(half_rows),
     .efficiency = 0.7,
     .ctx_size = sizeof(counting_context),
     .accept = hopper_accept,
     .ctx_open = hopper_ctx_open,
     .ctx_close = counting_close,
     .run = hopper_run,
     .bandwidth = 0.7,
     .in_place = CACHES},
    {.id = 3,
     .device = STRATA_CUDA,
     .flags = STRIDED,
     .min_sm = 90,
     .max_sm = 90,
     .name = "decode",
     .rows = STRATA_ARRAY(half_rows),
     .efficiency = 0.05,
     .ctx_size = sizeof(counting_context),
     .accept = decode_accept,
     .workspace = decode_workspace,
     .ctx_open = decode_ctx_open,
     .ctx_close = counting_close,
     .run = decode_run,
     .bandwidth = 0.8,
     .in_place = CACHES},
};

static const strata_extends attention = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Attention",
    .params_size = sizeof(strata_attention),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&attention};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Attention", extends)
