/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes and shapes of an Attention as a plan, with all that may be wrong with them.
 */
#include "plugins/attention/attention.h"

#include <math.h>
#include <string.h>

/* A node under inspection. */
struct reading {
    const strata_node *n;
    const strata_attention *params;
    struct attention_plan *p;
};

static const char *const port_names[ATTENTION_INPUTS] = {
    "q", "k", "v", "mask", "past_k", "past_v", "lengths",
};

/* An input, or NULL where it is absent. */
static const strata_tensor *given(const strata_node *n, int port)
{
    return port < n->n_in && n->in[port].rank > 0 ? &n->in[port] : NULL;
}

/* ---- sizes ---------------------------------------------------------------------------
 */

static int check_rank(const struct reading *r, int port)
{
    const strata_tensor *t = given(r->n, port);
    const int32_t rank = r->params->heads ? 3 : 4;
    if (!t || t->rank == rank)
        return STRATA_OK;
    return STRATA_FAIL(r->n, STRATA_EINVAL, "%s has rank %d; %s rank %d is needed",
                       port_names[port], (int)t->rank,
                       rank == 3 ? "where 'heads' is set" : "without 'heads'", (int)rank);
}

static int check_pair(const struct reading *r, int first, int second)
{
    const int lone = !given(r->n, first) ? second : first;
    if (!given(r->n, first) == !given(r->n, second))
        return STRATA_OK;
    return STRATA_FAIL(r->n, STRATA_EINVAL, "%s is given without %s", port_names[lone],
                       port_names[lone == first ? second : first]);
}

/* The size of a head where `heads` of them fill n elements. */
static int split_heads(const struct reading *r, int port, int64_t heads, int64_t n,
                       int64_t *size)
{
    if (heads < 1 || n % heads != 0)
        return STRATA_FAIL(r->n, STRATA_EINVAL,
                           "%lld heads do not divide the %lld elements of %s's rows",
                           (long long)heads, (long long)n, port_names[port]);
    *size = n / heads;
    return STRATA_OK;
}

/* Heads side by side in the last dim. */
static int flat_sizes(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const strata_tensor *q = &r->n->in[ATTENTION_Q];
    const strata_tensor *k = given(r->n, ATTENTION_K), *v = given(r->n, ATTENTION_V);
    p->heads = r->params->heads;
    p->kv_heads = r->params->kv_heads ? r->params->kv_heads : p->heads;
    p->packed = !k;
    p->length = q->dims[1];
    p->fresh = k ? k->dims[1] : p->length;
    if (p->packed) {
        int status =
            split_heads(r, ATTENTION_Q, p->heads + 2 * p->kv_heads, q->dims[2], &p->dim);
        p->v_dim = p->dim;
        return status;
    }
    int status = split_heads(r, ATTENTION_Q, p->heads, q->dims[2], &p->dim);
    int64_t k_dim = 0;
    if (status == STRATA_OK)
        status = split_heads(r, ATTENTION_K, p->kv_heads, k->dims[2], &k_dim);
    if (status == STRATA_OK)
        status = split_heads(r, ATTENTION_V, p->kv_heads, v->dims[2], &p->v_dim);
    if (status == STRATA_OK && k_dim != p->dim)
        status = STRATA_FAIL(r->n, STRATA_EINVAL,
                             "heads of q have %lld elements and those of k %lld",
                             (long long)p->dim, (long long)k_dim);
    return status;
}

static int deep_sizes(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const strata_tensor *q = &r->n->in[ATTENTION_Q];
    const strata_tensor *k = given(r->n, ATTENTION_K), *v = given(r->n, ATTENTION_V);
    if (!k)
        return STRATA_FAIL(r->n, STRATA_EINVAL,
                           "packed q needs 'heads', and k and v are absent");
    p->heads = q->dims[1];
    p->kv_heads = k->dims[1];
    p->length = q->dims[2];
    p->fresh = k->dims[2];
    p->dim = q->dims[3];
    p->v_dim = v->dims[3];
    if (v->dims[1] != p->kv_heads || k->dims[3] != p->dim)
        return STRATA_FAIL(r->n, STRATA_EINVAL,
                           "k has %lld heads of %lld elements; v has %lld heads, and q's "
                           "have %lld elements",
                           (long long)p->kv_heads, (long long)k->dims[3],
                           (long long)v->dims[1], (long long)p->dim);
    return STRATA_OK;
}

static int check_rows(const struct reading *r)
{
    const struct attention_plan *p = r->p;
    const strata_tensor *k = given(r->n, ATTENTION_K), *v = given(r->n, ATTENTION_V);
    if (p->heads % (p->kv_heads ? p->kv_heads : 1) != 0 || p->kv_heads < 1)
        return STRATA_FAIL(r->n, STRATA_EINVAL,
                           "%lld heads of k and v do not divide the %lld of q",
                           (long long)p->kv_heads, (long long)p->heads);
    if (p->dim < 1 || p->v_dim < 1)
        return STRATA_FAIL(r->n, STRATA_EINVAL, "heads have no elements");
    if (!k)
        return STRATA_OK;
    const int32_t rows = k->rank - 2;
    if (k->dims[0] != p->batch || v->dims[0] != p->batch || v->dims[rows] != p->fresh)
        return STRATA_FAIL(
            r->n, STRATA_EINVAL,
            "q has a batch of %lld; k has %lld with %lld rows, and v %lld with %lld",
            (long long)p->batch, (long long)k->dims[0], (long long)p->fresh,
            (long long)v->dims[0], (long long)v->dims[rows]);
    return STRATA_OK;
}

static int read_sizes(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const int64_t kv_heads = r->params->kv_heads;
    int status = check_pair(r, ATTENTION_K, ATTENTION_V);
    for (int port = ATTENTION_Q; port <= ATTENTION_V && status == STRATA_OK; port++)
        status = check_rank(r, port);
    if (status != STRATA_OK)
        return status;
    p->batch = r->n->in[ATTENTION_Q].dims[0];
    status = r->params->heads ? flat_sizes(r) : deep_sizes(r);
    if (status == STRATA_OK)
        status = check_rows(r);
    if (status == STRATA_OK && kv_heads && kv_heads != p->kv_heads)
        status = STRATA_FAIL(r->n, STRATA_EINVAL, "'kv_heads' is %lld; k has %lld heads",
                             (long long)kv_heads, (long long)p->kv_heads);
    return status;
}

/* ---- what goes with them -------------------------------------------------------------
 */

static int check_past(const struct reading *r, int port, int64_t size)
{
    const struct attention_plan *p = r->p;
    const strata_tensor *t = given(r->n, port);
    if (t->rank == 4 && t->dims[0] == p->batch && t->dims[1] == p->kv_heads &&
        t->dims[2] == r->n->in[ATTENTION_PAST_K].dims[2] && t->dims[3] == size)
        return STRATA_OK;
    return STRATA_FAIL(r->n, STRATA_EINVAL,
                       "%s has rank %d and is %lld x %lld x %lld x %lld; %lld x %lld x "
                       "%lld (as past_k) x %lld is needed",
                       port_names[port], (int)t->rank, (long long)t->dims[0],
                       (long long)t->dims[1], (long long)t->dims[2],
                       (long long)t->dims[3], (long long)p->batch, (long long)p->kv_heads,
                       (long long)r->n->in[ATTENTION_PAST_K].dims[2], (long long)size);
}

static int read_past(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const strata_tensor *past = given(r->n, ATTENTION_PAST_K);
    int status = check_pair(r, ATTENTION_PAST_K, ATTENTION_PAST_V);
    p->cache = r->params->cache;
    if (status == STRATA_OK && p->cache && !(past && given(r->n, ATTENTION_LENGTHS)))
        status =
            STRATA_FAIL(r->n, STRATA_EINVAL, "'cache' needs past_k, past_v and lengths");
    if (status == STRATA_OK && past)
        status = check_past(r, ATTENTION_PAST_K, p->dim);
    if (status == STRATA_OK && past)
        status = check_past(r, ATTENTION_PAST_V, p->v_dim);
    p->past = past ? past->dims[2] : 0;
    p->keys = p->cache ? p->past : p->past + p->fresh;
    return status;
}

static int read_lengths(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const strata_tensor *t = given(r->n, ATTENTION_LENGTHS);
    p->lengths_port = t ? ATTENTION_LENGTHS : -1;
    if (!t)
        return STRATA_OK;
    p->lengths_dtype = t->dtype;
    if (t->dtype != STRATA_INT32 && t->dtype != STRATA_INT64)
        return STRATA_FAIL(r->n, STRATA_EINVAL, "lengths are i32 or i64");
    if (t->rank != 1 || t->dims[0] != p->batch)
        return STRATA_FAIL(r->n, STRATA_EINVAL,
                           "lengths have rank %d and %lld elements; one for each of a "
                           "batch of %lld is needed",
                           (int)t->rank, (long long)t->dims[0], (long long)p->batch);
    return STRATA_OK;
}

/* Dim `back` from the last of t, which may have fewer. */
static int64_t dim_of(const strata_tensor *t, int back)
{
    return back < t->rank ? t->dims[t->rank - 1 - back] : 1;
}

static int64_t distance(const strata_tensor *t, int back)
{
    return dim_of(t, back) == 1 ? 0 : t->strides[t->rank - 1 - back];
}

static int read_mask(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const strata_tensor *t = given(r->n, ATTENTION_MASK);
    const int64_t full[] = {p->keys, p->length, p->heads, p->batch};
    p->mask.port = t ? ATTENTION_MASK : -1;
    if (!t)
        return STRATA_OK;
    int fits = t->rank <= 4 && (dim_of(t, 0) <= p->keys || dim_of(t, 0) == 1);
    for (int back = 1; back < 4; back++)
        fits &= dim_of(t, back) == 1 || dim_of(t, back) == full[back];
    if (!fits)
        return STRATA_FAIL(r->n, STRATA_EINVAL,
                           "mask has rank %d and is %lld x %lld x %lld x %lld; it must "
                           "broadcast to %lld x %lld x %lld x %lld keys, or have fewer "
                           "keys",
                           (int)t->rank, (long long)dim_of(t, 3), (long long)dim_of(t, 2),
                           (long long)dim_of(t, 1), (long long)dim_of(t, 0),
                           (long long)p->batch, (long long)p->heads, (long long)p->length,
                           (long long)p->keys);
    p->mask.dtype = t->dtype;
    p->mask.key = distance(t, 0);
    p->mask.row = distance(t, 1);
    p->mask.head = distance(t, 2);
    p->mask.batch = distance(t, 3);
    p->mask.keys = dim_of(t, 0) == 1 ? p->keys : dim_of(t, 0);
    return STRATA_OK;
}

/* ---- where heads lie -----------------------------------------------------------------
 */

static struct attention_view absent(void)
{
    return (struct attention_view){.port = -1};
}

/* t of 3 dims has heads of `size` elements side by side from element `begin` of a row. */
static struct attention_view view_of(const strata_tensor *t, int port, int64_t size,
                                     int64_t begin)
{
    struct attention_view v = {.port = port, .dtype = t->dtype, .begin = begin};
    v.batch = t->strides[0];
    v.head = t->rank == 3 ? size : t->strides[1];
    v.row = t->strides[t->rank - 2];
    return v;
}

static struct attention_view input_view(const struct reading *r, int port, int64_t size)
{
    const strata_tensor *t = given(r->n, port);
    return t ? view_of(t, port, size, 0) : absent();
}

static struct attention_view output_view(const struct reading *r, int port, int64_t size)
{
    const int there = port >= 0 && port < r->n->n_out && r->n->out;
    return there ? view_of(&r->n->out[port], port, size, 0) : absent();
}

static void read_views(const struct reading *r)
{
    struct attention_plan *p = r->p;
    const strata_tensor *q = &r->n->in[ATTENTION_Q];
    const int present = p->cache || r->params->present;
    p->q = view_of(q, ATTENTION_Q, p->dim, 0);
    p->k = input_view(r, ATTENTION_K, p->dim);
    p->v = input_view(r, ATTENTION_V, p->v_dim);
    if (p->packed) {
        p->k = view_of(q, ATTENTION_Q, p->dim, p->heads * p->dim);
        p->v = view_of(q, ATTENTION_Q, p->dim, (p->heads + p->kv_heads) * p->dim);
    }
    p->past_k = input_view(r, ATTENTION_PAST_K, p->dim);
    p->past_v = input_view(r, ATTENTION_PAST_V, p->v_dim);
    p->y = output_view(r, 0, p->v_dim);
    p->present_k = output_view(r, present ? 1 : -1, p->dim);
    p->present_v = output_view(r, present ? 2 : -1, p->v_dim);
    p->scores = output_view(r,
                            r->params->scores == STRATA_SCORES_NONE ? -1
                            : present                               ? 3
                                                                    : 1,
                            p->keys);
}

int attention_plan(struct attention_plan *p, const strata_node *n)
{
    const strata_attention *params = n->params;
    const struct reading r = {n, params, p};
    memset(p, 0, sizeof *p);
    int status = read_sizes(&r);
    if (status == STRATA_OK)
        status = read_past(&r);
    if (status == STRATA_OK)
        status = read_lengths(&r);
    if (status == STRATA_OK)
        status = read_mask(&r);
    if (status != STRATA_OK)
        return status;
    p->group = p->heads / p->kv_heads;
    p->scale = params->scale != 0 ? params->scale : 1 / sqrt((double)p->dim);
    p->softcap = params->softcap;
    p->window_left = params->window_left;
    p->window_right = params->window_right;
    p->causal = params->causal;
    p->scores_kind = params->scores;
    read_views(&r);
    return STRATA_OK;
}

int attention_plan_run(struct attention_plan *p, const strata_run *r)
{
    const strata_node n = {.struct_size = sizeof n,
                           .n_in = r->n_in,
                           .n_out = r->n_out,
                           .params = r->params,
                           .in = r->in,
                           .out = (strata_tensor *)r->out, /* attention_plan only reads */
                           .host = r->host,
                           .err = r->err};
    return attention_plan(p, &n);
}
