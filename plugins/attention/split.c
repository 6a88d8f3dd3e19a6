/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries a head, as in decoding, on the host. The keys of a head are
 * cut into parts whose number depends on shapes alone; threads take parts, and a second
 * pass joins them in order. Every key and value is read once for all queries that share
 * it: bound by memory.
 */
#include "plugins/attention/layer.h"

#include <math.h>

#include "plugins/attention/host.h"
#include "plugins/attention/rows.h"
#include "plugins/common/product/tile.h"
#include "plugins/common/team/turn.h"

#define QUERIES 16   /* most of the heads that share keys and values */
#define PART 256     /* keys, at least */
#define PARTS 64     /* of a head, at most */
#define PARALLEL 3e4 /* multiply-adds that pay for a thread team */

struct splitting {
    const struct attention_call *c;
    const struct tile_set *set;
    const struct attention_row_set *rows;
    int64_t queries; /* that share keys: group x length */
    int64_t part;    /* keys */
    int64_t parts;   /* of a head */
};

/* A thread's memory, in floats. */
struct scratch {
    float *query;  /* queries x dim, scaled */
    float *score;  /* queries x ATTENTION_LINE */
    float *keys;   /* ATTENTION_LINE x dim, where they are no FP32 */
    float *values; /* ATTENTION_LINE x v_dim, likewise */
};

/* What a part of the keys gives a query: y before the division, then maximum and sum. */
static int64_t result_size(const struct attention_plan *p)
{
    return p->v_dim + 2;
}

struct task {
    const struct splitting *t;
    struct attention_reach reach;
    struct attention_rows keys, values;
    int64_t b, kv_head;
    struct scratch s;
    float *result; /* queries x result_size */
};

static int64_t head_at(const struct task *k, int64_t row)
{
    const struct attention_plan *p = &k->t->c->plan;
    return k->kv_head * p->group + row / p->length;
}

static int64_t query_at(const struct task *k, int64_t row)
{
    return row % k->t->c->plan.length;
}

static void load_queries(const struct task *k)
{
    const struct attention_plan *p = &k->t->c->plan;
    const float scale = (float)p->scale;
    for (int64_t m = 0; m < k->t->queries; m++) {
        float *to = k->s.query + m * p->dim;
        element_load_row(to,
                         attention_query(k->t->c, k->b, head_at(k, m), query_at(k, m)),
                         p->q.dtype, 0, 1, p->dim);
        for (int64_t d = 0; d < p->dim; d++)
            to[d] *= scale;
    }
}

/* Run a form of 1, 2 and 4 rows over all queries. */
static void each_rows(const tile_fn *form, int64_t queries, struct tile_operands *o)
{
    for (int64_t left = queries, step; left > 0; left -= step) {
        const int index = left >= 4 ? 2 : left >= 2;
        step = 1 << index;
        form[index](o);
        o->a += step * o->a_row;
        o->c += step * o->c_row;
    }
}

static void score(const struct task *k, int64_t j, int64_t n)
{
    const int64_t dim = k->t->c->plan.dim;
    struct tile_operands o = {.k = dim,
                              .a_row = dim,
                              .a_step = 1,
                              .c_row = ATTENTION_LINE,
                              .columns = n,
                              .a = k->s.query,
                              .c = k->s.score};
    o.b = attention_load_rows(&k->keys, j, n, dim, 0, k->s.keys, &o.b_row);
    each_rows(k->t->set->dot, k->t->queries, &o);
}

/* Addends of query `row` for the keys from j; 0 if all are seen as they are. */
static int load_mask(const struct task *k, int64_t row, int64_t j, int64_t n, float *to)
{
    const struct attention_plan *p = &k->t->c->plan;
    const struct attention_mask *m = &p->mask;
    const int64_t at =
        k->b * m->batch + head_at(k, row) * m->head + query_at(k, row) * m->row;
    int64_t begin, end;
    attention_bounds(p, &k->reach, query_at(k, row), &begin, &end);
    if (begin <= j && end >= j + ATTENTION_LINE && m->port < 0)
        return 0;
    for (int64_t i = 0; i < ATTENTION_LINE; i++) {
        const int64_t key = j + i, place = at + key * m->key;
        const int open = i < n && key >= begin && key < end && key < p->keys &&
                         (m->port < 0 || key < m->keys);
        to[i] = open ? 0 : -INFINITY;
        if (open && m->port >= 0 && m->dtype == STRATA_BOOL8)
            to[i] = ((const uint8_t *)k->t->c->mask)[place] ? 0 : -INFINITY;
        else if (open && m->port >= 0)
            to[i] = element_load(k->t->c->mask, m->dtype, place);
    }
    return 1;
}

static void weigh(const struct task *k, int64_t j, int64_t n)
{
    const struct attention_plan *p = &k->t->c->plan;
    float mask[ATTENTION_LINE];
    for (int64_t m = 0; m < k->t->queries; m++) {
        float *y = k->result + m * result_size(p), *state = y + p->v_dim;
        float *s = k->s.score + m * ATTENTION_LINE;
        struct attention_score_line line = {
            .s = s, .softcap = (float)p->softcap, .maximum = state[0], .sum = state[1]};
        for (int64_t i = n; i < ATTENTION_LINE; i++)
            s[i] = 0;
        line.mask = load_mask(k, m, j, n, mask) ? mask : NULL;
        k->t->rows->line(&line);
        state[0] = line.maximum;
        state[1] = line.sum;
        for (int64_t d = 0; d < p->v_dim && line.factor != 1; d++)
            y[d] *= line.factor;
    }
}

static void gather(const struct task *k, int64_t j, int64_t n)
{
    const struct attention_plan *p = &k->t->c->plan;
    struct tile_operands o = {.k = n,
                              .a_row = ATTENTION_LINE,
                              .a_step = 1,
                              .c_row = result_size(p),
                              .columns = p->v_dim,
                              .accumulate = 1,
                              .a = k->s.score,
                              .c = k->result};
    o.b = attention_load_rows(&k->values, j, n, p->v_dim, 0, k->s.values, &o.b_row);
    each_rows(k->t->set->axpy, k->t->queries, &o);
}

/* The keys from `begin` that some query sees. */
static void run_part(const struct task *k, int64_t begin)
{
    const struct attention_plan *p = &k->t->c->plan;
    int64_t end = begin + k->t->part, first, last, none;
    attention_bounds(p, &k->reach, 0, &first, &none);
    attention_bounds(p, &k->reach, p->length - 1, &none, &last);
    begin = begin < first ? first : begin;
    end = end > last ? last : end;
    for (int64_t m = 0; m < k->t->queries; m++) {
        float *y = k->result + m * result_size(p);
        memset(y, 0, (size_t)result_size(p) * sizeof *y);
        y[p->v_dim] = -INFINITY;
    }
    if (begin < end)
        load_queries(k);
    for (int64_t j = begin; j < end; j += ATTENTION_LINE) {
        const int64_t n = end - j < ATTENTION_LINE ? end - j : ATTENTION_LINE;
        score(k, j, n);
        weigh(k, j, n);
        gather(k, j, n);
    }
}

/* One query's answer from all parts of its head, in order. */
static void join(const struct task *k, int64_t row, float *sum)
{
    const struct splitting *t = k->t;
    const struct attention_plan *p = &t->c->plan;
    const int64_t size = result_size(p), step = t->queries * size;
    const float *part = k->result + row * size;
    float maximum = -INFINITY, total = 0;
    for (int64_t i = 0; i < t->parts; i++)
        maximum =
            part[i * step + p->v_dim] > maximum ? part[i * step + p->v_dim] : maximum;
    memset(sum, 0, (size_t)p->v_dim * sizeof *sum);
    for (int64_t i = 0; i < t->parts; i++, part += step) {
        if (part[p->v_dim + 1] == 0)
            continue;
        const float share = maximum == part[p->v_dim] || maximum == -INFINITY
                                ? 1
                                : expf(part[p->v_dim] - maximum);
        total += share * part[p->v_dim + 1];
        for (int64_t d = 0; d < p->v_dim; d++)
            sum[d] += share * part[d];
    }
    for (int64_t d = 0; d < p->v_dim; d++)
        sum[d] = total == 0 ? 0 : sum[d] / total;
    element_store_row(attention_answer(t->c, k->b, head_at(k, row), query_at(k, row)),
                      p->y.dtype, 0, 1, sum, p->v_dim);
}

/* ---- all of it -------------------------------------------------------------------- */

static int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

static struct splitting splitting_of(const struct attention_plan *p)
{
    struct splitting t = {.set = tile_choose(), .rows = attention_rows_choose()};
    t.queries = p->group * p->length;
    t.part = round_up((p->keys + PARTS - 1) / PARTS, ATTENTION_LINE);
    t.part = t.part < PART ? PART : t.part;
    t.parts = p->keys > t.part ? (p->keys + t.part - 1) / t.part : 1;
    return t;
}

/* Floats of a thread's scratch; memory: NULL to count alone. */
static int64_t lay_out(const struct splitting *t, const struct attention_plan *p,
                       float *memory, struct scratch *s)
{
    const struct {
        float **at;
        int64_t n;
    } parts[] = {{&s->query, t->queries * p->dim},
                 {&s->score, t->queries * ATTENTION_LINE},
                 {&s->keys, ATTENTION_LINE * p->dim},
                 {&s->values, ATTENTION_LINE * p->v_dim}};
    int64_t total = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (memory)
            *parts[i].at = memory + total;
        total += round_up(parts[i].n, 16);
    }
    return total;
}

static int64_t result_floats(const struct splitting *t, const struct attention_plan *p)
{
    return round_up(p->batch * p->kv_heads * t->parts * t->queries * result_size(p), 16);
}

int attention_split_accept(const strata_node *n)
{
    struct attention_plan p;
    const int status = attention_plan(&p, n);
    if (status == STRATA_OK && p.group * p.length > QUERIES)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld queries share keys; it is for at most %d",
                           (long long)(p.group * p.length), QUERIES);
    return status == STRATA_OK && p.scores_kind != STRATA_SCORES_NONE
               ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "it keeps no scores")
               : status;
}

size_t attention_split_workspace(const strata_node *n)
{
    struct attention_plan p;
    struct scratch s;
    size_t bytes;
    if (attention_plan(&p, n) != STRATA_OK)
        return SIZE_MAX;
    const struct splitting t = splitting_of(&p);
    const int64_t share = lay_out(&t, &p, NULL, &s);
    const int64_t floats = result_floats(&t, &p) + share * attention_threads();
    return __builtin_mul_overflow((size_t)floats, sizeof(float), &bytes) ? SIZE_MAX
                                                                         : bytes;
}

static struct task task_of(const struct splitting *t, int64_t head, float *memory)
{
    const struct attention_plan *p = &t->c->plan;
    struct task k = {.t = t, .b = head / p->kv_heads, .kv_head = head % p->kv_heads};
    k.reach = attention_call_reach(t->c, k.b);
    k.keys = attention_keys(t->c, k.b, k.kv_head, k.reach.split);
    k.values = attention_values(t->c, k.b, k.kv_head, k.reach.split);
    k.result = memory + head * t->parts * t->queries * result_size(p);
    return k;
}

int attention_split_run(const strata_run *r)
{
    struct attention_call c;
    const int status = attention_call_open(&c, r);
    if (status != STRATA_OK)
        return status;
    const struct attention_plan *p = &c.plan;
    struct splitting t = splitting_of(p);
    t.c = &c;
    const int64_t share = lay_out(&t, p, NULL, &(struct scratch){0});
    float *results = r->workspace, *scratch = results + result_floats(&t, p);
    const int64_t floats = (int64_t)(r->workspace_size / sizeof(float));
    const int64_t made = (floats - (scratch - results)) / share;
    const double work = (double)(p->batch * p->heads * p->length) * (double)p->keys *
                        (double)(p->dim + p->v_dim);
    const int most = attention_threads();
    const int threads = work < PARALLEL ? 1 : made < most ? (int)made : most;
    const int64_t heads = p->batch * p->kv_heads;
    int64_t next = 0;
    (void)threads;
#pragma omp parallel num_threads(threads)
    {
        float *memory = scratch + share * attention_thread();
        for (int64_t i; team_turn(&next, heads * t.parts, &i);) {
            struct task k = task_of(&t, i / t.parts, results);
            lay_out(&t, p, memory, &k.s);
            k.result += i % t.parts * t.queries * result_size(p);
            run_part(&k, i % t.parts * t.part);
        }
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t i = 0; i < heads * t.queries; i++) {
            const struct task k = task_of(&t, i / t.queries, results);
            join(&k, i % t.queries, memory);
        }
    }
    return STRATA_OK;
}
