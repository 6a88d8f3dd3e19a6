/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in tiles on the host. A task has some queries of the heads that share keys
 * and values, and walks those keys a tile at a time with a running maximum and sum, so
 * that no more scores exist than a tile's. Scores lie with queries beside each other:
 * keys and values are then read where they are, only the queries are transposed, and the
 * softmax has no sums across a vector. Bound by multiply-adds.
 */
#include "plugins/attention/layer.h"

#include <math.h>

#include "plugins/attention/host.h"
#include "plugins/attention/rows.h"
#include "plugins/common/product/tile.h"
#include "plugins/common/team/turn.h"

#define KEYS 128     /* of a tile: its scores stay in the L1 cache */
#define PARALLEL 1e5 /* multiply-adds that pay for a thread team */

struct tiling {
    const struct attention_call *c;
    const struct tile_set *set;
    const struct attention_row_set *rows;
    int64_t columns; /* queries of a tile at most, whole vectors */
    int64_t tiles;   /* of a head's queries */
    int64_t width;   /* elements of a value, whole vectors */
};

/* A thread's memory, in floats. */
struct scratch {
    float *query;  /* dim x columns, scaled */
    float *score;  /* KEYS x columns */
    float *mask;   /* the same */
    float *y;      /* columns x width */
    float *keys;   /* KEYS x dim, where they are no FP32 */
    float *values; /* KEYS x width, likewise */
    float *maximum, *sum, *factor;
    int32_t *begin, *end; /* of each column, among the tile's keys */
};

struct task {
    const struct tiling *t;
    struct attention_reach reach;
    struct attention_rows keys, values;
    int64_t b, kv_head, first, queries; /* of the group's queries, head by head */
    int64_t columns;                    /* of this task, whole vectors */
    int64_t begin, end;                 /* keys that some query sees */
    struct scratch s;
};

/* ---- queries ---------------------------------------------------------------------- */

static int64_t head_at(const struct task *k, int64_t column)
{
    const struct attention_plan *p = &k->t->c->plan;
    return k->kv_head * p->group + (k->first + column) / p->length;
}

static int64_t query_at(const struct task *k, int64_t column)
{
    return (k->first + column) % k->t->c->plan.length;
}

static void load_queries(const struct task *k)
{
    const struct attention_plan *p = &k->t->c->plan;
    const int64_t columns = k->columns;
    const float scale = (float)p->scale;
    float part[64];
    for (int64_t c = 0; c < k->queries; c++) {
        const void *q = attention_query(k->t->c, k->b, head_at(k, c), query_at(k, c));
        for (int64_t d = 0; d < p->dim; d += 64) {
            const int64_t n = p->dim - d < 64 ? p->dim - d : 64;
            element_load_row(part, q, p->q.dtype, d, 1, n);
            for (int64_t i = 0; i < n; i++)
                k->s.query[(d + i) * columns + c] = part[i] * scale;
        }
    }
    for (int64_t d = 0; d < p->dim; d++)
        memset(k->s.query + d * columns + k->queries, 0,
               (size_t)(columns - k->queries) * sizeof(float));
}

static void find_range(struct task *k)
{
    const struct attention_plan *p = &k->t->c->plan;
    k->begin = p->keys;
    k->end = 0;
    for (int64_t c = 0; c < k->queries; c++) {
        int64_t begin, end;
        attention_bounds(p, &k->reach, query_at(k, c), &begin, &end);
        if (begin < end) {
            k->begin = begin < k->begin ? begin : k->begin;
            k->end = end > k->end ? end : k->end;
        }
    }
}

/* ---- a tile of keys [j, j + n) ---------------------------------------------------- */

/* Bounds of each column within the tile; whether some query does not see all of it. */
static int find_bounds(const struct task *k, int64_t j, int64_t n)
{
    int partial = 0;
    for (int64_t c = 0; c < k->columns; c++) {
        int64_t begin = 0, end = 0;
        if (c < k->queries)
            attention_bounds(&k->t->c->plan, &k->reach, query_at(k, c), &begin, &end);
        begin = begin < j ? 0 : begin > j + n ? n : begin - j;
        end = end < j ? 0 : end > j + n ? n : end - j;
        partial |= c < k->queries && (begin > 0 || end < n);
        k->s.begin[c] = (int32_t)begin;
        k->s.end[c] = (int32_t)end;
    }
    return partial;
}

/* n addends, from key j on, of the query that begins at `at`; keys past the mask are
 * closed. In memory, or made in `copy`. */
static const float *load_addends(const struct attention_call *c, int64_t at, int64_t j,
                                 int64_t n, float *copy)
{
    const struct attention_mask *m = &c->plan.mask;
    const int64_t left = m->keys - j, there = left < 0 ? 0 : left < n ? left : n;
    at += j * m->key;
    if (there == n && m->key == 1 && m->dtype == STRATA_FP32)
        return (const float *)c->mask + at;
    if (m->dtype == STRATA_BOOL8)
        for (int64_t i = 0; i < there; i++)
            copy[i] = ((const uint8_t *)c->mask)[at + i * m->key] ? 0 : -INFINITY;
    else
        element_load_row(copy, c->mask, m->dtype, at, m->key, there);
    for (int64_t i = there; i < n; i++)
        copy[i] = -INFINITY;
    return copy;
}

typedef float four __attribute__((vector_size(16)));
typedef int32_t order __attribute__((vector_size(16)));

/* Four rows of n as n rows of four, `step` apart. */
static void turn_four(float *to, int64_t step, const float *const from[4], int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, to += 4 * step) {
        four a, b, c, d;
        LOAD(a, from[0] + i);
        LOAD(b, from[1] + i);
        LOAD(c, from[2] + i);
        LOAD(d, from[3] + i);
        const four ac = __builtin_shuffle(a, c, (order){0, 4, 1, 5});
        const four bd = __builtin_shuffle(b, d, (order){0, 4, 1, 5});
        const four ca = __builtin_shuffle(a, c, (order){2, 6, 3, 7});
        const four db = __builtin_shuffle(b, d, (order){2, 6, 3, 7});
        a = __builtin_shuffle(ac, bd, (order){0, 4, 1, 5});
        b = __builtin_shuffle(ac, bd, (order){2, 6, 3, 7});
        c = __builtin_shuffle(ca, db, (order){0, 4, 1, 5});
        d = __builtin_shuffle(ca, db, (order){2, 6, 3, 7});
        STORE(to, a);
        STORE(to + step, b);
        STORE(to + 2 * step, c);
        STORE(to + 3 * step, d);
    }
    for (; i < n; i++, to += step)
        for (int k = 0; k < 4; k++)
            to[k] = from[k][i];
}

/* Addends as the scores lie. Columns are whole vectors: some have no query, and zeros. */
static void load_columns(const struct task *k, int64_t j, int64_t n)
{
    static const float zeros[KEYS];
    const struct attention_call *c = k->t->c;
    const struct attention_mask *m = &c->plan.mask;
    float copy[4][KEYS];
    for (int64_t i = 0; i < k->columns; i += 4) {
        const float *from[4];
        for (int64_t q = 0; q < 4; q++) {
            if (i + q >= k->queries) {
                from[q] = zeros;
                continue;
            }
            const int64_t at = k->b * m->batch + head_at(k, i + q) * m->head +
                               query_at(k, i + q) * m->row;
            from[q] = load_addends(c, at, j, n, copy[q]);
        }
        turn_four(k->s.mask + i, k->columns, from, n);
    }
}

/* The mask as addends: one for each key where all columns share it. */
static void load_mask(const struct task *k, int64_t j, struct attention_score_tile *tile)
{
    const struct attention_call *c = k->t->c;
    const struct attention_mask *m = &c->plan.mask;
    if (m->port < 0)
        return;
    if (m->row == 0 && (m->head == 0 || c->plan.group == 1)) {
        const int64_t at = k->b * m->batch + head_at(k, 0) * m->head;
        tile->key_mask = load_addends(c, at, j, tile->keys, k->s.mask);
        return;
    }
    load_columns(k, j, tile->keys);
    tile->mask = k->s.mask;
}

/* Rows of packed heads lie pages apart, where the CPU fetches none ahead. */
static void fetch_ahead(const struct attention_rows *r, int64_t j, int64_t n)
{
    const int64_t bytes = r->size * (r->dtype == STRATA_FP32 ? 4 : 2);
    for (int64_t i = j; i < j + n; i++)
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)attention_row(r, i) + at);
}

/* Scores of n keys by all columns. */
static void score(const struct task *k, int64_t j, int64_t n)
{
    const struct tiling *t = k->t;
    const int64_t columns = k->columns, dim = t->c->plan.dim;
    struct tile_operands o = {.k = dim, .a_step = 1, .b = k->s.query, .b_row = columns};
    o.a = attention_load_rows(&k->keys, j, n, dim, 0, k->s.keys, &o.a_row);
    o.c = k->s.score;
    o.c_row = columns;
    for (int64_t i = 0, rows; i < n; i += rows) {
        const int whole = n - i >= t->set->rows;
        rows = whole ? t->set->rows : 1;
        fetch_ahead(&k->values, j + i, rows);
        if (i + 2 * rows <= n)
            fetch_ahead(&k->keys, j + i + rows, rows);
        t->set->tile[whole][columns / t->set->lanes - 1](&o);
        o.a += rows * o.a_row;
        o.c += rows * o.c_row;
    }
}

/* Vectors of a row taken at once, so that no tile has but one. */
static int64_t piece(int64_t vectors)
{
    return vectors == 4 ? 2 : vectors < TILE_VECTORS ? vectors : TILE_VECTORS;
}

/* Add the values by their weights. */
static void gather(const struct task *k, int64_t j, int64_t n, int accumulate)
{
    const struct tiling *t = k->t;
    const int64_t lanes = t->set->lanes;
    struct tile_operands o = {.k = n, .a_row = 1, .a_step = k->columns};
    int64_t row;
    const float *v =
        attention_load_rows(&k->values, j, n, t->width, 1, k->s.values, &row);
    o.b_row = row;
    o.c_row = t->width;
    o.accumulate = accumulate;
    for (int64_t at = 0, vectors; at < t->width; at += vectors * lanes) {
        vectors = piece((t->width - at) / lanes);
        for (int64_t c = 0; c < k->queries; c += t->set->rows) {
            o.a = k->s.score + c;
            o.b = v + at;
            o.c = k->s.y + c * t->width + at;
            t->set->tile[1][vectors - 1](&o);
        }
    }
}

static void rescale(const struct task *k)
{
    const int64_t width = k->t->width;
    for (int64_t c = 0; c < k->queries; c++) {
        const float factor = k->s.factor[c];
        for (int64_t i = 0; i < width && factor != 1; i++)
            k->s.y[c * width + i] *= factor;
    }
}

static void take_keys(const struct task *k, int64_t j, int64_t n)
{
    const struct tiling *t = k->t;
    struct attention_score_tile tile = {.s = k->s.score,
                                        .row = k->columns,
                                        .keys = n,
                                        .columns = k->columns,
                                        .softcap = (float)t->c->plan.softcap,
                                        .maximum = k->s.maximum,
                                        .sum = k->s.sum,
                                        .factor = k->s.factor};
    score(k, j, n);
    if (find_bounds(k, j, n)) {
        tile.begin = k->s.begin;
        tile.end = k->s.end;
    }
    load_mask(k, j, &tile);
    t->rows->tile(&tile);
    if (j > k->begin)
        rescale(k);
    gather(k, j, n, j > k->begin);
}

/* ---- a task ----------------------------------------------------------------------- */

static void store_answers(const struct task *k)
{
    const struct attention_plan *p = &k->t->c->plan;
    for (int64_t c = 0; c < k->queries; c++) {
        void *y = attention_answer(k->t->c, k->b, head_at(k, c), query_at(k, c));
        float *row = k->s.y + c * k->t->width;
        const float factor = k->s.sum[c] == 0 ? 0 : 1 / k->s.sum[c];
        for (int64_t i = 0; i < p->v_dim; i++)
            row[i] *= factor;
        element_store_row(y, p->y.dtype, 0, 1, row, p->v_dim);
    }
}

static void run_task(struct task *k)
{
    const struct tiling *t = k->t;
    for (int64_t c = 0; c < k->columns; c++) {
        k->s.maximum[c] = -INFINITY;
        k->s.sum[c] = 0;
    }
    find_range(k);
    load_queries(k);
    for (int64_t j = k->begin; j < k->end; j += KEYS)
        take_keys(k, j, k->end - j < KEYS ? k->end - j : KEYS);
    if (k->begin >= k->end)
        memset(k->s.y, 0, (size_t)(k->columns * t->width) * sizeof *k->s.y);
    store_answers(k);
}

static int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

static struct tiling tiling_of(const struct attention_plan *p)
{
    struct tiling t = {.set = tile_choose(), .rows = attention_rows_choose()};
    const int64_t lanes = t.set->lanes, widest = TILE_VECTORS * lanes;
    const int64_t queries = p->length > 0 ? p->group * p->length : 1;
    t.tiles = (queries + widest - 1) / widest;
    t.columns = round_up((queries + t.tiles - 1) / t.tiles, lanes);
    t.tiles = (queries + t.columns - 1) / t.columns;
    t.width = round_up(p->v_dim, lanes);
    return t;
}

/* Floats of a thread's scratch; memory: NULL to count alone. */
static int64_t lay_out(const struct tiling *t, const struct attention_plan *p,
                       float *memory, struct scratch *s)
{
    const struct {
        float **at;
        int64_t n;
    } parts[] = {
        {&s->query, p->dim * t->columns}, {&s->score, KEYS * t->columns},
        {&s->mask, KEYS * t->columns},    {&s->y, t->columns * t->width},
        {&s->keys, KEYS * p->dim},        {&s->values, KEYS * t->width},
        {&s->maximum, t->columns},        {&s->sum, t->columns},
        {&s->factor, t->columns},
    };
    int64_t total = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (memory)
            *parts[i].at = memory + total;
        total += round_up(parts[i].n, 16);
    }
    if (memory) {
        s->begin = (int32_t *)(void *)(memory + total);
        s->end = s->begin + t->columns;
    }
    return round_up(total + 2 * t->columns, 16);
}

/* So that sizes of scratch stay far from overflow. */
#define LARGEST_HEAD (INT64_C(1) << 32)

size_t attention_tiled_workspace(const strata_node *n)
{
    struct attention_plan p;
    struct scratch s;
    if (attention_plan(&p, n) != STRATA_OK || p.dim > LARGEST_HEAD ||
        p.v_dim > LARGEST_HEAD)
        return SIZE_MAX;
    const struct tiling t = tiling_of(&p);
    return (size_t)lay_out(&t, &p, NULL, &s) * sizeof(float) *
           (size_t)attention_threads();
}

static void run_tile(const struct tiling *t, int64_t i, float *memory)
{
    const struct attention_plan *p = &t->c->plan;
    struct task k = {.t = t, .first = i % t->tiles * t->columns};
    const int64_t rest = p->group * p->length - k.first;
    k.kv_head = i / t->tiles % p->kv_heads;
    k.b = i / t->tiles / p->kv_heads;
    k.queries = rest < t->columns ? rest : t->columns;
    k.columns = round_up(k.queries, t->set->lanes);
    k.reach = attention_call_reach(t->c, k.b);
    k.keys = attention_keys(t->c, k.b, k.kv_head, k.reach.split);
    k.values = attention_values(t->c, k.b, k.kv_head, k.reach.split);
    lay_out(t, p, memory, &k.s);
    run_task(&k);
}

int attention_tiled_run(const strata_run *r)
{
    struct attention_call c;
    const int status = attention_call_open(&c, r);
    if (status != STRATA_OK)
        return status;
    const struct attention_plan *p = &c.plan;
    struct tiling t = tiling_of(p);
    t.c = &c;
    const int64_t share = lay_out(&t, p, NULL, &(struct scratch){0});
    const int64_t made = (int64_t)(r->workspace_size / sizeof(float)) / share;
    const double work = (double)(p->batch * p->heads * p->length) * (double)p->keys *
                        (double)(p->dim + p->v_dim);
    const int most = attention_threads();
    const int threads = work < PARALLEL ? 1 : made < most ? (int)made : most;
    (void)threads;
    /* Tiles of a head read the same keys: one thread takes them, if there are many. */
    const int64_t heads = p->batch * p->kv_heads;
    const int64_t chunk = heads >= 4 * threads ? t.tiles : 1;
    int64_t next = 0;
#pragma omp parallel num_threads(threads)
    for (int64_t turn; team_turn(&next, heads * t.tiles / chunk, &turn);)
        for (int64_t i = turn * chunk; i < (turn + 1) * chunk; i++)
            run_tile(&t, i, (float *)r->workspace + share * attention_thread());
    return STRATA_OK;
}
