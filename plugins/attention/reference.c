/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of Attention in FP64, a query at a time.
 */
#include "plugins/attention/layer.h"

#include <math.h>
#include <stdlib.h>

#include "plugins/common/dense.h"

/* Heads [first, first + ...) of a tensor whose rows have `heads` of them side by side, or
 * that has a dim of heads. */
struct heads {
    const double *x;
    int64_t heads, rows, size, first;
    int flat;
};

struct query {
    const struct attention_plan *p;
    const strata_node *n;
    const void *const *in;
    int64_t b, h, i;
    int64_t taken; /* rows of the past that are keys */
    int64_t there; /* keys that exist */
    int64_t valid; /* keys that may be seen */
    int64_t place; /* the query's */
    double *score; /* of each key */
};

static struct heads heads_of(const struct query *q, int port, int64_t size)
{
    const strata_tensor *t = &q->n->in[port];
    const int flat = t->rank == 3;
    return (struct heads){.x = q->in[port],
                          .heads = flat ? t->dims[2] / size : t->dims[1],
                          .rows = t->dims[t->rank - 2],
                          .size = size,
                          .flat = flat};
}

static const double *row_of(const struct heads *t, int64_t b, int64_t h, int64_t i)
{
    h += t->first;
    return t->x + (t->flat ? (b * t->rows + i) * t->heads + h
                           : (b * t->heads + h) * t->rows + i) *
                      t->size;
}

/* Key or value j, as `port` has it behind `past`. */
static const double *key_row(const struct query *q, int port, int past, int64_t j)
{
    const struct attention_plan *p = q->p;
    const int64_t size = port == ATTENTION_K ? p->dim : p->v_dim;
    const int64_t head = q->h / p->group;
    struct heads t = heads_of(q,
                              j < q->taken ? past
                              : p->packed  ? ATTENTION_Q
                                           : port,
                              size);
    if (p->packed && j >= q->taken)
        t.first = port == ATTENTION_K ? p->heads : p->heads + p->kv_heads;
    return row_of(&t, q->b, head, j < q->taken ? j : j - q->taken);
}

static void find_keys(struct query *q)
{
    const struct attention_plan *p = q->p;
    const int64_t *lengths = p->lengths_port < 0 ? NULL : q->in[ATTENTION_LENGTHS];
    const int64_t given = lengths ? lengths[q->b] : 0;
    const int64_t length = given < 0 ? 0 : given > p->keys ? p->keys : given;
    q->taken = p->cache ? length : p->past;
    q->there = p->cache ? length + p->fresh : p->keys;
    q->there = q->there > p->keys ? p->keys : q->there;
    q->valid = lengths && !p->cache ? length : q->there;
    q->place = q->i + (p->cache ? length : lengths ? length - p->length : p->past);
}

static double masked(const struct query *q, int64_t j, double score)
{
    const struct attention_plan *p = q->p;
    const strata_tensor *t = &q->n->in[ATTENTION_MASK];
    const int64_t at[] = {q->b, q->h, q->i, j};
    int seen = j < q->valid;
    if (p->window_left >= 0)
        seen &= j >= q->place - p->window_left;
    if (p->window_right >= 0)
        seen &= j <= q->place + p->window_right;
    if (p->causal)
        seen &= j <= q->place;
    if (seen && p->mask.port >= 0 && j < p->mask.keys) {
        const int64_t offset = dense_broadcast_from(t, at, 4);
        if (t->dtype == STRATA_BOOL8)
            seen = ((const int64_t *)q->in[ATTENTION_MASK])[offset] != 0;
        else
            score += ((const double *)q->in[ATTENTION_MASK])[offset];
    }
    seen &= p->mask.port < 0 || j < p->mask.keys;
    return seen ? score : -INFINITY;
}

/* Scores up to a stage, of STRATA_SCORES_*. */
static void score_query(const struct query *q, int stage)
{
    const struct attention_plan *p = q->p;
    const struct heads queries = heads_of(q, ATTENTION_Q, p->dim);
    const double *x = row_of(&queries, q->b, q->h, q->i);
    double maximum = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->keys; j++) {
        const double *k =
            j < q->there ? key_row(q, ATTENTION_K, ATTENTION_PAST_K, j) : NULL;
        double s = 0;
        for (int64_t d = 0; d < p->dim && k; d++)
            s += x[d] * k[d];
        s *= p->scale;
        if (stage >= STRATA_SCORES_SOFTCAP && p->softcap > 0)
            s = p->softcap * tanh(s / p->softcap);
        q->score[j] = stage >= STRATA_SCORES_MASKED ? masked(q, j, s) : s;
        maximum = q->score[j] <= maximum || isnan(maximum) ? maximum : q->score[j];
    }
    for (int64_t j = 0; j < p->keys && stage == STRATA_SCORES_SOFTMAX; j++) {
        q->score[j] = maximum == -INFINITY ? 0 : exp(q->score[j] - maximum);
        sum += q->score[j];
    }
    for (int64_t j = 0; j < p->keys && sum != 0; j++)
        q->score[j] /= sum;
}

static void answer(const struct query *q, double *y)
{
    const struct attention_plan *p = q->p;
    const strata_tensor *t = &q->n->in[ATTENTION_Q];
    struct heads to = {.x = y, .heads = p->heads, .rows = p->length, .size = p->v_dim};
    to.flat = t->rank == 3;
    double *row = (double *)row_of(&to, q->b, q->h, q->i);
    for (int64_t d = 0; d < p->v_dim; d++)
        row[d] = 0;
    for (int64_t j = 0; j < q->valid; j++)
        if (q->score[j] != 0) {
            const double *v = key_row(q, ATTENTION_V, ATTENTION_PAST_V, j);
            for (int64_t d = 0; d < p->v_dim; d++)
                row[d] += q->score[j] * v[d];
        }
}

/* All keys of q's head, as present_k or present_v has them. */
static void give_present(const struct query *q, int port, int past, double *y)
{
    const struct attention_plan *p = q->p;
    const int64_t size = port == ATTENTION_K ? p->dim : p->v_dim;
    y += (q->b * p->kv_heads + q->h / p->group) * p->keys * size;
    for (int64_t j = 0; j < p->keys; j++, y += size) {
        const double *row;
        if (j < q->there)
            row = key_row(q, port, past, j);
        else { /* of a cache, what it held */
            const struct heads room = heads_of(q, past, size);
            row = row_of(&room, q->b, q->h / p->group, j);
        }
        memcpy(y, row, (size_t)size * sizeof *y);
    }
}

static void run_query(struct query *q, void *const *out)
{
    const struct attention_plan *p = q->p;
    const strata_attention *params = q->n->params;
    const int present = params->cache || params->present;
    find_keys(q);
    if (params->scores != STRATA_SCORES_NONE) {
        score_query(q, params->scores);
        memcpy((double *)out[present ? 3 : 1] +
                   ((q->b * p->heads + q->h) * p->length + q->i) * p->keys,
               q->score, (size_t)p->keys * sizeof *q->score);
    }
    score_query(q, STRATA_SCORES_SOFTMAX);
    answer(q, out[0]);
}

int attention_reference_run(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    const strata_attention *params = n->params;
    struct attention_plan p;
    (void)weight;
    int status = attention_plan(&p, n);
    if (status != STRATA_OK)
        return status;
    struct query q = {.p = &p, .n = n, .in = in};
    q.score = malloc((size_t)(p.keys ? p.keys : 1) * sizeof *q.score);
    if (!q.score)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for %lld scores",
                           (long long)p.keys);
    for (q.b = 0; q.b < p.batch; q.b++)
        for (q.h = 0; q.h < p.heads; q.h++) {
            for (q.i = 0; q.i < p.length; q.i++)
                run_query(&q, out);
            find_keys(&q);
            if (params->cache || params->present) {
                give_present(&q, ATTENTION_K, ATTENTION_PAST_K, out[1]);
                give_present(&q, ATTENTION_V, ATTENTION_PAST_V, out[2]);
            }
        }
    free(q.score);
    return STRATA_OK;
}
