/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention with every option in every float type: one query at a time, in FP64. FP64
 * tensors and scores that somebody reads come here; what must be fast goes another way.
 */
#include "plugins/attention/layer.h"

#include <math.h>

#include "plugins/attention/host.h"
#include "plugins/common/element.h"

#define PARALLEL 1e5 /* multiply-adds that pay for a thread team */

/* One query and its scratch. */
struct line {
    const struct attention_call *c;
    struct attention_reach reach;
    struct attention_rows keys, values;
    int64_t b, h, i;
    double *query, *score, *y;
};

static double load(const void *data, int32_t dtype, int64_t i)
{
    return dtype == STRATA_FP64 ? ((const double *)data)[i]
                                : (double)element_load(data, dtype, i);
}

static void store(void *data, int32_t dtype, int64_t i, double x)
{
    if (dtype == STRATA_FP64)
        ((double *)data)[i] = x;
    else
        element_store(data, dtype, i, (float)x);
}

static double raw_score(const struct line *l, int64_t j)
{
    const struct attention_plan *p = &l->c->plan;
    const void *key = attention_row(&l->keys, j);
    double sum = 0;
    for (int64_t d = 0; d < p->dim; d++)
        sum += l->query[d] * load(key, l->keys.dtype, d);
    return sum * p->scale;
}

/* The score of a key within bounds: -infinity where the mask closes it. */
static double through_mask(const struct line *l, int64_t j, double score)
{
    const struct attention_mask *m = &l->c->plan.mask;
    const int64_t at = l->b * m->batch + l->h * m->head + l->i * m->row + j * m->key;
    if (m->port < 0)
        return score;
    if (j >= m->keys)
        return -INFINITY;
    if (m->dtype == STRATA_BOOL8)
        return ((const uint8_t *)l->c->mask)[at] ? score : -INFINITY;
    return score + load(l->c->mask, m->dtype, at);
}

/* Give what output `scores` is of a key, if it is of that kind. */
static void give(const struct line *l, int kind, int64_t j, double score)
{
    const struct attention_plan *p = &l->c->plan;
    const struct attention_view *v = &p->scores;
    if (p->scores_kind == kind && v->port >= 0)
        store(l->c->run->out[v->port].data, v->dtype,
              l->b * v->batch + l->h * v->head + l->i * v->row + j, score);
}

/* The scores within [begin, end), and of the rest what somebody reads. Their maximum. */
static double score_line(const struct line *l, int64_t begin, int64_t end)
{
    const struct attention_plan *p = &l->c->plan;
    const int all = p->scores_kind != STRATA_SCORES_NONE;
    const int64_t there = p->cache ? l->reach.keys : p->keys;
    double maximum = -INFINITY;
    for (int64_t j = all ? 0 : begin; j < (all ? p->keys : end); j++) {
        double s = j < there ? raw_score(l, j) : 0;
        give(l, STRATA_SCORES_RAW, j, s);
        s = p->softcap > 0 ? p->softcap * tanh(s / p->softcap) : s;
        give(l, STRATA_SCORES_SOFTCAP, j, s);
        s = j >= begin && j < end ? through_mask(l, j, s) : -INFINITY;
        give(l, STRATA_SCORES_MASKED, j, s);
        l->score[j] = s;
        maximum = s <= maximum || isnan(maximum) ? maximum : s;
    }
    return maximum;
}

static void run_line(struct line *l)
{
    const struct attention_plan *p = &l->c->plan;
    const void *query = attention_query(l->c, l->b, l->h, l->i);
    void *answer = attention_answer(l->c, l->b, l->h, l->i);
    int64_t begin, end;
    double sum = 0;
    for (int64_t d = 0; d < p->dim; d++)
        l->query[d] = load(query, p->q.dtype, d);
    attention_bounds(p, &l->reach, l->i, &begin, &end);
    const double maximum = score_line(l, begin, end);
    for (int64_t j = begin; j < end; j++) {
        l->score[j] = maximum == -INFINITY ? 0 : exp(l->score[j] - maximum);
        sum += l->score[j];
    }
    memset(l->y, 0, (size_t)p->v_dim * sizeof *l->y);
    for (int64_t j = begin; j < end; j++) {
        const void *value = attention_row(&l->values, j);
        for (int64_t d = 0; d < p->v_dim && l->score[j] != 0; d++)
            l->y[d] += l->score[j] * load(value, l->values.dtype, d);
    }
    for (int64_t d = 0; d < p->v_dim; d++)
        store(answer, p->y.dtype, d, sum == 0 ? 0 : l->y[d] / sum);
    for (int64_t j = 0; j < p->keys && p->scores_kind == STRATA_SCORES_SOFTMAX; j++)
        give(l, STRATA_SCORES_SOFTMAX, j,
             j < begin || j >= end || sum == 0 ? 0 : l->score[j] / sum);
}

/* A query, its scores and its answer; 0: overflow. */
static size_t share_of(const struct attention_plan *p)
{
    int64_t elements;
    size_t bytes;
    if (__builtin_add_overflow(p->dim, p->v_dim, &elements) ||
        __builtin_add_overflow(elements, p->keys, &elements) ||
        __builtin_mul_overflow((size_t)elements, sizeof(double), &bytes))
        return 0;
    return bytes;
}

size_t attention_exact_workspace(const strata_node *n)
{
    struct attention_plan p;
    if (attention_plan(&p, n) != STRATA_OK)
        return SIZE_MAX;
    size_t bytes = share_of(&p);
    return !bytes || __builtin_mul_overflow(bytes, (size_t)attention_threads(), &bytes)
               ? SIZE_MAX
               : bytes;
}

int attention_exact_run(const strata_run *r)
{
    struct attention_call c;
    const int status = attention_call_open(&c, r);
    if (status != STRATA_OK)
        return status;
    const struct attention_plan *p = &c.plan;
    const size_t share = share_of(p);
    const double work = (double)(p->batch * p->heads * p->length) * (double)p->keys *
                        (double)(p->dim + p->v_dim);
    const int64_t made = share ? (int64_t)(r->workspace_size / share) : 1;
    const int most = attention_threads();
    const int threads = work < PARALLEL ? 1 : made < most ? (int)made : most;
    (void)threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t task = 0; task < p->batch * p->heads * p->length; task++) {
        struct line l = {.c = &c, .i = task % p->length};
        double *scratch = r->workspace;
        scratch += share / sizeof *scratch * (size_t)attention_thread();
        l.h = task / p->length % p->heads;
        l.b = task / p->length / p->heads;
        l.reach = attention_call_reach(&c, l.b);
        l.keys = attention_keys(&c, l.b, l.h / p->group, l.reach.split);
        l.values = attention_values(&c, l.b, l.h / p->group, l.reach.split);
        l.query = scratch;
        l.y = scratch + p->dim;
        l.score = l.y + p->v_dim;
        run_line(&l);
    }
    return STRATA_OK;
}
