/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupQueryAttention of com.microsoft, which has rotation, caches and windows in one
 * node, as RotaryEmbedding and Attention of the library. How many keys a row of the past
 * holds is known when the network runs; whether the past is a cache with room or grows by
 * each run's keys has to be known here.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "core/alloc.h"

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    SEQLENS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    ADDEND,
    QUERY_NORM = 14,
    KEY_NORM
};

struct grouped {
    int64_t heads, kv_heads, dim, length;
    int query, key, value; /* key and value VALUE_NONE: packed in the query */
    int taken;             /* keys of each row that the past holds; VALUE_NONE: no past */
    int past[2];
};

/* ---- what is no part of the layers ---------------------------------------------------
 */

static bool refuse_inputs(struct import *im, const struct node *n)
{
    static const struct {
        int input;
        const char *name;
    } none[] = {
        {11, "head_sink"}, {12, "k_scale"}, {13, "v_scale"}, {16, "query_seqlens"}};
    for (size_t i = 0; i < ARRAY_LENGTH(none); i++)
        if (upgrade_input(im, n, none[i].input)) {
            import_refuse_node(im, n, NULL, "input '%s' is given; Attention has none",
                               none[i].name);
            return true;
        }
    return false;
}

static bool refuse_attributes(struct import *im, const struct node *n)
{
    static const struct {
        const char *name;
        int64_t taken;
        bool with_cache; /* a state keeps all keys, and the window is that of the mask */
    } fixed[] = {{"smooth_softmax", 0, false},
                 {"sliding_window_cache", 0, true},
                 {"qk_output", 0, false},
                 {"causal", 1, false}};
    for (size_t i = 0; i < ARRAY_LENGTH(fixed); i++) {
        const int64_t v = node_integer(n, fixed[i].name, fixed[i].taken);
        if (v == fixed[i].taken || (v < 0 && fixed[i].taken == 0) ||
            (fixed[i].with_cache && im->places >= 0))
            continue;
        import_refuse_node(im, n, NULL, "'%s' is %lld; %lld is taken%s", fixed[i].name,
                           (long long)v, (long long)fixed[i].taken,
                           fixed[i].with_cache
                               ? ", or any with --cache, whose states keep all keys"
                               : "");
        return true;
    }
    return false;
}

static bool refuse_dims(struct import *im, const struct node *n)
{
    import_refuse_node(im, n, NULL,
                       "query must be of 3 dims that its heads divide, key and value be "
                       "both there or none of both, and so past_key and past_value, of 4 "
                       "dims; and seqlens_k be there");
    return false;
}

/* Whether a past of one length has room or grows is not known of a total that is fed. */
static bool refuse_total(struct import *im, const struct node *n)
{
    const struct value *past = upgrade_input(im, n, PAST_KEY);
    const struct value *total = upgrade_input(im, n, TOTAL);
    if (im->places >= 0 || !past || past->rank != 4 || past->symbols[2] || !total ||
        total->constant || total->node)
        return false;
    import_refuse_node(im, n, NULL,
                       "the past has one length, and "
                       "'total_sequence_length' is an input: it must be a "
                       "constant, or be computed");
    return true;
}

static bool read_grouped(struct import *im, const struct node *n, struct grouped *p)
{
    const struct value *q = upgrade_input(im, n, QUERY), *k = upgrade_input(im, n, KEY);
    const struct value *past = upgrade_input(im, n, PAST_KEY);
    if (refuse_inputs(im, n) || refuse_attributes(im, n) || refuse_total(im, n))
        return false;
    *p = (struct grouped){.heads = node_integer(n, "num_heads", 0),
                          .kv_heads = node_integer(n, "kv_num_heads", 0),
                          .query = n->in[QUERY],
                          .key = k ? n->in[KEY] : VALUE_NONE,
                          .value = k ? n->in[VALUE] : VALUE_NONE,
                          .taken = VALUE_NONE,
                          .past = {VALUE_NONE, VALUE_NONE}};
    const int64_t all = p->heads + (k ? 0 : 2 * p->kv_heads);
    if (!q || q->rank != 3 || p->heads < 1 || p->kv_heads < 1 || q->dims[2] % all != 0 ||
        !k != !upgrade_input(im, n, VALUE) ||
        !past != !upgrade_input(im, n, PAST_VALUE) || (past && past->rank != 4) ||
        !upgrade_input(im, n, SEQLENS))
        return refuse_dims(im, n);
    p->dim = q->dims[2] / all;
    p->length = q->dims[1];
    return true;
}

/* ---- how many keys there are ---------------------------------------------------------
 */

/* One integer of the dtype. */
static int integer(struct import *im, int dtype, int64_t v)
{
    const int64_t dims[] = {1};
    int32_t narrow = (int32_t)v;
    return dtype == STRATA_INT64
               ? graph_add_integers(&im->g, 1, &v, 1)
               : graph_add_constant(&im->g, "", dtype, 1, dims,
                                    arena_copy(&im->g.arena, &narrow, sizeof narrow));
}

/* How long the query is, as the network runs. */
static int length_of(struct import *im, const struct node *n, int query, int dtype)
{
    const int64_t axis = 1;
    struct node *shape = upgrade_add(im, n, "Shape", &query, 1);
    if (!shape)
        return VALUE_NONE;
    shape->domain = "strata";
    node_set_integers(&im->g, shape, "axes", &axis, 1);
    node_set_text(&im->g, shape, "to", dtype == STRATA_INT64 ? "i64" : "i32");
    return upgrade_value(shape);
}

/* In a state, with that of the next run as the last output. */
static int counted(struct import *im, const struct node *n)
{
    if (im->counts)
        return im->places;
    im->counts = true;
    const int length = length_of(im, n, n->in[QUERY], STRATA_INT32);
    const int next = upgrade_two(im, n, "Add", im->places, length);
    if (next >= 0) {
        im->g.values[next].name = "next_places";
        im->g.values[next].readers++;
        im->g.outputs[im->g.n_outputs++] = next;
    }
    return im->places;
}

/* seqlens_k + 1 - length, which a first prompt's padded rows have below 0: once for all
 * nodes of a model. */
static int taken_keys(struct import *im, const struct node *n, const struct grouped *p)
{
    int from = n->in[SEQLENS];
    const struct value *v = upgrade_input(im, n, SEQLENS);
    const int dtype = v->dtype == STRATA_INT64 ? STRATA_INT64 : STRATA_INT32;
    const int64_t last = 1;
    if (im->places >= 0)
        return counted(im, n);
    if (im->taken_of == from && im->taken_length == p->length)
        return im->taken;
    im->taken_of = from;
    im->taken_length = p->length;
    if (v->rank == 2)
        from =
            upgrade_two(im, n, "Squeeze", from, graph_add_integers(&im->g, 1, &last, 1));
    const int keys = upgrade_two(im, n, "Add", from, integer(im, dtype, 1));
    const int less = upgrade_two(im, n, "Sub", keys, length_of(im, n, p->query, dtype));
    im->taken = upgrade_two(im, n, "Max", less, integer(im, dtype, 0));
    return im->taken;
}

/* ---- queries and keys ----------------------------------------------------------------
 */

static void unpack(struct import *im, const struct node *n, struct grouped *p)
{
    const int64_t q = p->heads * p->dim, k = p->kv_heads * p->dim;
    const int all = p->query;
    if (p->key >= 0)
        return;
    p->query = upgrade_part(im, n, all, 0, q);
    p->key = upgrade_part(im, n, all, q, q + k);
    p->value = upgrade_part(im, n, all, q + k, q + 2 * k);
}

/* Each head by the root of its mean square. */
static int norm_heads(struct import *im, const struct node *n, int x, int scale,
                      int64_t heads, int64_t dim, const char *epsilon)
{
    struct graph *g = &im->g;
    const int64_t apart[] = {0, 0, heads, dim}, joined[] = {0, 0, heads * dim};
    const int split =
        upgrade_two(im, n, "Reshape", x, graph_add_integers(g, 1, apart, 4));
    struct node *norm =
        upgrade_add(im, n, "RMSNormalization", (const int[]){split, scale}, 2);
    node_set_integer(g, norm, "axis", -1);
    node_set_real(g, norm, "epsilon",
                  node_real(n, epsilon, node_real(n, "qk_norm_epsilon", (double)1e-6f)));
    return upgrade_two(im, n, "Reshape", upgrade_value(norm),
                       graph_add_integers(g, 1, joined, 3));
}

static void norm(struct import *im, const struct node *n, struct grouped *p)
{
    if (!upgrade_input(im, n, QUERY_NORM) || !upgrade_input(im, n, KEY_NORM))
        return;
    unpack(im, n, p);
    p->query = norm_heads(im, n, p->query, n->in[QUERY_NORM], p->heads, p->dim,
                          "q_norm_epsilon");
    p->key =
        norm_heads(im, n, p->key, n->in[KEY_NORM], p->kv_heads, p->dim, "k_norm_epsilon");
}

void upgrade_rotary(struct import *im, struct node *n, int positions, int cos, int sin)
{
    const struct value *c = graph_value(&im->g, cos), *s = graph_value(&im->g, sin);
    const int weights = c && s && c->constant && s->constant ? 2 : 0;
    const int x = n ? n->in[0] : VALUE_NONE;
    if (!n)
        return;
    n->n_in = 0;
    node_set_input(&im->g, n, 0, x);
    node_set_input(&im->g, n, 1, positions);
    node_set_input(&im->g, n, 2 + weights, cos);
    node_set_input(&im->g, n, 3 + weights, sin);
    n->op = "RotaryEmbedding";
    n->domain = "strata";
}

static int turned(struct import *im, const struct node *n, int x, int positions,
                  int64_t heads, int64_t turned_heads)
{
    struct graph *g = &im->g;
    const int64_t half = upgrade_input(im, n, COS)->dims[1];
    struct node *made = upgrade_add(im, n, "RotaryEmbedding", &x, 1);
    node_set_integer(g, made, "heads", heads);
    node_set_integer(g, made, "turned_heads", turned_heads);
    node_set_integer(g, made, "dims", 2 * half);
    node_set_integer(g, made, "interleaved", node_integer(n, "rotary_interleaved", 0));
    upgrade_rotary(im, made, positions, n->in[COS], n->in[SIN]);
    return upgrade_value(made);
}

/* Of packed ones, queries and keys turn together. */
static bool turn(struct import *im, const struct node *n, struct grouped *p)
{
    const struct value *cos = upgrade_input(im, n, COS), *sin = upgrade_input(im, n, SIN);
    const int64_t both = p->heads + p->kv_heads;
    if (!node_integer(n, "do_rotary", 0))
        return true;
    if (!cos || !sin || cos->rank != 2 || sin->rank != 2) {
        import_refuse_node(im, n, NULL,
                           "'do_rotary' needs cos_cache and sin_cache of 2 "
                           "dims");
        return false;
    }
    const bool told = upgrade_input(im, n, POSITIONS) && im->places < 0;
    const int positions = told ? n->in[POSITIONS] : p->taken;
    if (p->key < 0) {
        p->query = turned(im, n, p->query, positions, both + p->kv_heads, both);
        return true;
    }
    p->query = turned(im, n, p->query, positions, p->heads, 0);
    p->key = turned(im, n, p->key, positions, p->kv_heads, 0);
    return true;
}

/* ---- the past ------------------------------------------------------------------------
 */

/* Whether the past is as long as what it holds; else it has room for the new keys. */
static bool grows(const struct import *im, const struct node *n)
{
    const struct value *past = upgrade_input(im, n, PAST_KEY);
    const struct value *total = upgrade_input(im, n, TOTAL);
    const int symbol = past->symbols[2] - 1;
    if (im->places >= 0)
        return false;
    if (symbol >= 0 && im->symbols[symbol].least != im->symbols[symbol].most)
        return true;
    return total && total->constant && value_count(total) == 1 &&
           value_integer(total, 0) > past->dims[2];
}

/* Room for the new keys behind the old ones. */
static int grown(struct import *im, const struct node *n, int past, int64_t more)
{
    const int64_t pads[8] = {[6] = more};
    return upgrade_two(im, n, "Pad", past, graph_add_integers(&im->g, 1, pads, 8));
}

static void take_past(struct import *im, const struct node *n, struct grouped *p)
{
    if (!upgrade_input(im, n, PAST_KEY))
        return;
    const bool more = grows(im, n);
    if (im->places >= 0 && upgrade_input(im, n, PAST_KEY)->node)
        import_refuse_node(im, n, NULL,
                           "its past is computed, so that it can be no cache: import "
                           "without --cache");
    p->taken = taken_keys(im, n, p);
    for (int i = 0; i < 2; i++)
        p->past[i] =
            more ? grown(im, n, n->in[PAST_KEY + i], p->length) : n->in[PAST_KEY + i];
}

/* ---- all of it -----------------------------------------------------------------------
 */

void upgrade_grouped(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    struct grouped p;
    if (!read_grouped(im, n, &p))
        return;
    const int addend = ADDEND < n->n_in ? n->in[ADDEND] : VALUE_NONE;
    const int64_t window = node_integer(n, "local_window_size", -1);
    take_past(im, n, &p);
    norm(im, n, &p);
    if (!turn(im, n, &p))
        return;
    const int in[] = {p.query, p.key, p.value, addend, p.past[0], p.past[1], p.taken};
    for (int i = 0; i < (int)ARRAY_LENGTH(in); i++)
        node_set_input(g, n, i, in[i]);
    n->n_in = (int)ARRAY_LENGTH(in);
    n->n_out = n->n_out > 3 ? 3 : n->n_out;
    node_set_integer(g, n, "heads", p.heads);
    node_set_integer(g, n, "kv_heads", p.kv_heads);
    node_set_integer(g, n, "causal", 1);
    node_set_integer(g, n, p.taken >= 0 ? "cache" : "present",
                     p.taken >= 0 || n->n_out > 1);
    if (window > 0)
        node_set_integer(g, n, "window_left", window - 1);
    n->op = "Attention";
    n->domain = "strata";
}
