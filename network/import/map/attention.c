/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention and what goes with it, as the layers that their definitions name.
 */
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/import/map/compose.h"

/* Output i of the layer, and of the node where somebody reads that. */
static void give(struct mapping *m, int i)
{
    section_out(m->g, m->s, map_has_output(m, i) ? m->node->out[i] : VALUE_NONE);
}

/* Heads that lie side by side in the last dim of x; 0 and refused: it is neither that nor
 * of rank 4. */
static bool read_heads(struct mapping *m, const struct value *x, const char *name,
                       const char *heads)
{
    const int64_t n = node_integer(m->node, heads, 0);
    if (!x || (x->rank != 4 && (x->rank != 3 || n < 1)))
        map_refuse(m,
                   "%s has a rank of %d and '%s' is %lld; rank 4, or 3 and heads, are "
                   "needed",
                   name, x ? x->rank : 0, heads, (long long)n);
    return !m->refused && x->rank == 3;
}

static void make_attention(struct mapping *m)
{
    static const char *const scores[] = {"raw", "softcap", "masked", "softmax"};
    const bool flat = read_heads(m, map_input(m, 0), "Q", "q_num_heads");
    const int64_t mode = node_integer(m->node, "qk_matmul_output_mode", 0);
    const bool present = map_has_output(m, 1) || map_has_output(m, 2);
    if (m->refused || !map_input(m, 1) || mode < 0 || mode > 3) {
        map_refuse(m, "it needs Q, K and V, and a 'qk_matmul_output_mode' of 0 to 3");
        return;
    }
    if (flat)
        map_names(m, "q_num_heads=heads,kv_num_heads=kv_heads");
    if (m->s)
        m->s->n_out = 0;
    if (present)
        section_flag(m->g, m->s, "present", true);
    give(m, 0);
    for (int i = 1; i < 3 && present; i++)
        give(m, i);
    if (map_has_output(m, 3)) {
        section_word(m->g, m->s, "scores", scores[mode]);
        give(m, 3);
    }
}

/* Caches that never change are weights, if they have a row for each position. */
static void make_rotary(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *c = map_input(m, 1), *s = map_input(m, 2);
    const bool flat = read_heads(m, x, "X", "num_heads");
    const bool weights = c && s && c->constant && s->constant && c->rank == 2 &&
                         dtype_is_free(c->dtype) && dtype_is_free(s->dtype) &&
                         dtype_is_free(x->dtype);
    if (m->refused || !c || !s) {
        map_refuse(m, "it needs the cosines and the sines");
        return;
    }
    map_in(m, 0);
    if (map_input(m, 3) || !weights)
        section_in(m->g, m->s, compose_input(m, 3));
    for (int i = 1; i < 3 && !weights; i++)
        map_in(m, i);
    for (int i = 1; i < 3 && weights; i++)
        section_weight(m->s, i == 1 ? "cos" : "sin", m->node->in[i]);
    if (flat)
        map_names(m, "num_heads=heads");
}

/* ---- convolution over the past -------------------------------------------------------
 */

/* The last steps of what was convolved, for the next call. */
static void give_state(struct mapping *m, int padded, int64_t length, int64_t behind)
{
    const struct value *x = map_input(m, 0);
    if (!map_has_output(m, 1))
        return;
    if (behind == 0) {
        map_is_constant(m, 1, x->dtype, 3, (const int64_t[]){x->dims[0], x->dims[1], 0},
                        NULL);
        return;
    }
    compose_one(m, "Slice", padded);
    section_integer(m->g, m->s, "axes", 2);
    section_integer(m->g, m->s, "begin", length);
    section_integer(m->g, m->s, "end", length + behind);
    compose_end(m, 1, -1);
}

/* Each channel by its own window, which sees no step to come. */
static void make_causal(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *w = map_constant(m, 1, "weight");
    const struct value *bias = map_constant(m, 2, "bias");
    const char *act = node_text(m->node, "activation", "none");
    const bool silu = strcmp(act, "silu") == 0 || strcmp(act, "swish") == 0;
    if (!silu && strcmp(act, "none") != 0)
        map_refuse(m, "'activation' = '%s' is none of none, silu, swish", act);
    if (!m->refused && (!x || !w || x->rank != 3 || w->rank != 3 || w->dims[2] < 1))
        map_refuse(m, "input and weight have ranks of %d and %d; 3 and 3 are needed",
                   map_input_rank(m, 0), map_input_rank(m, 1));
    if (m->refused)
        return;
    const int64_t behind = w->dims[2] - 1, length = x->dims[2], channels = x->dims[1];
    int padded = compose_input(m, 0);
    if (map_input(m, 3)) {
        padded = compose_two(m, "Concatenation", compose_input(m, 3), padded);
        section_integer(m->g, m->s, "axis", 2);
    } else if (behind) {
        padded = compose_one(m, "Padding", padded);
        section_integer(m->g, m->s, "begin", behind);
        section_integer(m->g, m->s, "end", 0);
    }
    give_state(m, padded, length, behind);
    const int y = compose_one(m, "Convolution", padded);
    section_integer(m->g, m->s, "groups", channels);
    section_weight(m->s, "weight", m->node->in[1]);
    if (bias)
        section_weight(m->s, "bias", m->node->in[2]);
    if (silu) {
        compose_one(m, "Activation", y);
        section_word(m->g, m->s, "kind", "silu");
    }
    compose_end(m, 0, -1);
}

static const struct map_rule rules[] = {
    {.op = "Attention",
     .layer = "Attention",
     .ports = "xxxxxxx",
     .names = "scale=scale,softcap=softcap,is_causal=causal?",
     .finish = make_attention},
    {.op = "CausalConvWithState", .finish = make_causal},
    {.op = "RotaryEmbedding",
     .layer = "RotaryEmbedding",
     .names = "rotary_embedding_dim=dims,interleaved=interleaved?",
     .finish = make_rotary},
};

const struct map_table map_attention = {"Attention", rules, ARRAY_LENGTH(rules)};
