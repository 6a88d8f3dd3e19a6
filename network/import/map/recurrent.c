/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear attention, step by step: a state of keys by values for each head, that each step
 * fades, corrects and reads.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "network/import/map/compose.h"

#define STEPS 128 /* that become layers */

/* Sizes of one LinearAttention; a state is batch x heads x size x v_size. */
struct recurrence {
    struct mapping *m;
    int64_t batch, steps, heads, group; /* group: queries that share a state */
    int64_t size, v_size;
    bool fades, corrects;
};

/* What a step reads of an input: one token. */
struct tokens {
    int at[STEPS];
};

static bool read_rule(struct recurrence *r)
{
    struct mapping *m = r->m;
    const char *rule = node_text(m->node, "update_rule", "gated_delta");
    r->fades = strncmp(rule, "gated", 5) == 0;
    r->corrects = strstr(rule, "delta") != NULL;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 &&
        strcmp(rule, "delta") != 0 && strcmp(rule, "gated_delta") != 0)
        map_refuse(m, "'update_rule' = '%s' is none of linear, gated, delta, gated_delta",
                   rule);
    else if (r->fades != (map_input(m, 4) != NULL) ||
             r->corrects != (map_input(m, 5) != NULL))
        map_refuse(m, "'update_rule' = '%s' goes with%s decay and with%s beta", rule,
                   r->fades ? "" : "out", r->corrects ? "" : "out");
    return !m->refused;
}

static bool read_recurrence(struct recurrence *r)
{
    struct mapping *m = r->m;
    const struct value *q = map_input(m, 0), *k = map_input(m, 1), *v = map_input(m, 2);
    const int64_t heads = node_integer(m->node, "kv_num_heads", 0);
    const int64_t queries = node_integer(m->node, "q_num_heads", 0);
    if (!q || !k || !v || q->rank != 3 || k->rank != 3 || v->rank != 3 || heads < 1 ||
        heads > queries || queries > INT32_MAX || queries % heads ||
        q->dims[2] % queries || v->dims[2] % heads ||
        k->dims[2] / heads != q->dims[2] / queries) {
        map_refuse(m,
                   "%lld heads of queries and %lld of keys do not divide what there is",
                   (long long)queries, (long long)heads);
        return false;
    }
    r->batch = q->dims[0];
    r->steps = q->dims[1];
    r->heads = heads;
    r->group = queries / heads;
    r->size = q->dims[2] / queries;
    r->v_size = v->dims[2] / heads;
    if (r->steps < 1 || r->steps > STEPS)
        map_refuse(m,
                   "it has %lld steps; as there is no layer for it, each becomes some, "
                   "of at most %d steps",
                   (long long)r->steps, STEPS);
    return read_rule(r);
}

/* The tokens of x, which lies as input i does. */
static void split(const struct recurrence *r, int x, struct tokens *t)
{
    struct mapping *m = r->m;
    t->at[0] = x;
    if (x < 0 || r->steps == 1)
        return;
    t->at[0] = compose_one(m, "Slice", x);
    section_integer(m->g, m->s, "axis", 1);
    section_integer(m->g, m->s, "parts", r->steps);
    for (int64_t i = 1; i < r->steps; i++)
        section_out(m->g, m->s, t->at[i] = map_between(m));
}

static int shaped(const struct recurrence *r, int x, int64_t heads, int64_t rows,
                  int64_t columns)
{
    return compose_reshape(r->m, x, 4, (const int64_t[]){r->batch, heads, rows, columns});
}

/* The state after a step, from that before it; VALUE_NONE: nothing yet. */
static int step(const struct recurrence *r, int state, int k, int v, int decay, int beta)
{
    struct mapping *m = r->m;
    const struct value *given = map_input(m, 4), *factor = map_input(m, 5);
    v = shaped(r, v, r->heads, 1, r->v_size);
    if (state >= 0 && r->fades) {
        decay = shaped(r, decay, r->heads, given->dims[2] / r->heads, 1);
        state = compose_op(m, "ElementWise", "product", state, decay);
    }
    if (state >= 0 && r->corrects) {
        const int known =
            compose_two(m, "MatrixMultiply", shaped(r, k, r->heads, 1, r->size), state);
        v = compose_op(m, "ElementWise", "sub", v, known);
    }
    if (r->corrects) {
        beta = shaped(r, beta, factor->dims[2], 1, 1);
        v = compose_op(m, "ElementWise", "product", v, beta);
    }
    const int column = shaped(r, k, r->heads, r->size, 1);
    const int more = compose_op(m, "ElementWise", "product", column, v);
    return state < 0 ? more : compose_op(m, "ElementWise", "sum", state, more);
}

static int read_state(const struct recurrence *r, int q, int state)
{
    struct mapping *m = r->m;
    const double given = node_real(m->node, "scale", 0);
    const int y = compose_two(m, "MatrixMultiply",
                              shaped(r, q, r->heads, r->group, r->size), state);
    section_real(m->g, m->s, "alpha", (float)(given ? given : 1 / sqrt((double)r->size)));
    return compose_reshape(
        m, y, 3, (const int64_t[]){r->batch, 1, r->heads * r->group * r->v_size});
}

static void make_linear(struct mapping *m)
{
    struct recurrence r = {.m = m};
    struct tokens q, k, v, decay, beta, y;
    if (!read_recurrence(&r))
        return;
    split(&r, compose_input(m, 0), &q);
    split(&r, compose_input(m, 1), &k);
    split(&r, compose_input(m, 2), &v);
    split(&r,
          r.fades ? compose_op(m, "Unary", "exp", compose_input(m, 4), VALUE_NONE)
                  : VALUE_NONE,
          &decay);
    split(&r, r.corrects ? compose_input(m, 5) : VALUE_NONE, &beta);
    int state = compose_input(m, 3);
    for (int64_t i = 0; i < r.steps; i++) {
        state = step(&r, state, k.at[i], v.at[i], r.fades ? decay.at[i] : VALUE_NONE,
                     r.corrects ? beta.at[i] : VALUE_NONE);
        if (i + 1 == r.steps && map_has_output(m, 1)) {
            compose_end(m, 1, -1);
            state = m->node->out[1];
        }
        y.at[i] = read_state(&r, q.at[i], state);
    }
    if (r.steps > 1) {
        compose(m, "Concatenation", y.at, (int)r.steps);
        section_integer(m->g, m->s, "axis", 1);
    }
    compose_end(m, 0, -1);
}

static const struct map_rule rules[] = {
    {.op = "LinearAttention",
     .finish = make_linear,
     .note = "of at most 128 steps, some layers each"},
};

const struct map_table map_recurrent = {"Recurrences", rules, ARRAY_LENGTH(rules)};
