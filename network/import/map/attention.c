/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention and what goes with it, as the layers that their definitions name.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/import/map/compose.h"

/* Sizes of one Attention. All tensors become batch x heads x sequence x size. */
struct attention {
    struct mapping *m;
    int dtype;
    bool flat; /* heads lie side by side in the last dim */
    int64_t batch, heads, kv_heads, length, kv_length, past;
    int64_t size, v_size; /* of a head */
};

/* What m->s gives is output i too, where somebody reads that; how it is read on. */
static int publish(struct mapping *m, int i, int value)
{
    if (!map_has_output(m, i) || m->refused)
        return value;
    if (m->s && m->s->n_out && m->s->out[0] == value) {
        compose_end(m, i, -1);
        return m->node->out[i];
    }
    map_is(m, i, value);
    return value;
}

/* ---- sizes ---------------------------------------------------------------------------
 */

static bool same_rank(const struct value *q, const struct value *k, const struct value *v)
{
    return q && k && v && q->rank == k->rank && q->rank == v->rank &&
           (q->rank == 3 || q->rank == 4);
}

static bool divides(int64_t heads, int64_t dim)
{
    return heads > 0 && heads <= INT32_MAX && dim % heads == 0;
}

static bool read_sizes(struct attention *a)
{
    struct mapping *m = a->m;
    const struct value *q = map_input(m, 0), *k = map_input(m, 1), *v = map_input(m, 2);
    const struct value *past = map_input(m, 4);
    if (!same_rank(q, k, v)) {
        map_refuse(m,
                   "Q, K and V have ranks of %d, %d and %d; all of 3 or of 4 are taken",
                   map_input_rank(m, 0), map_input_rank(m, 1), map_input_rank(m, 2));
        return false;
    }
    a->dtype = q->dtype;
    a->flat = q->rank == 3;
    a->batch = q->dims[0];
    a->heads = a->flat ? node_integer(m->node, "q_num_heads", 0) : q->dims[1];
    a->kv_heads = a->flat ? node_integer(m->node, "kv_num_heads", 0) : k->dims[1];
    a->length = q->dims[q->rank - 2];
    a->kv_length = k->dims[k->rank - 2];
    a->past = past && past->rank == 4 ? past->dims[2] : 0;
    if (!divides(a->kv_heads, a->heads) || !divides(a->flat ? a->heads : 1, q->dims[2]) ||
        !divides(a->flat ? a->kv_heads : 1, k->dims[2]) ||
        !divides(a->flat ? a->kv_heads : 1, v->dims[2])) {
        map_refuse(m, "%lld heads of Q and %lld of K and V do not divide what there is",
                   (long long)a->heads, (long long)a->kv_heads);
        return false;
    }
    a->size = a->flat ? q->dims[2] / a->heads : q->dims[3];
    a->v_size = a->flat ? v->dims[2] / a->kv_heads : v->dims[3];
    return dtype_is_free(a->dtype) ||
           (map_refuse(m, "its elements are %s; floats of 32 and 16 bits are taken",
                       strata_dtype_name(a->dtype)),
            false);
}

/* ---- parts ---------------------------------------------------------------------------
 */

static int split_heads(const struct attention *a, int i, int64_t heads)
{
    static const int64_t order[] = {0, 2, 1, 3};
    struct mapping *m = a->m;
    if (!a->flat)
        return compose_input(m, i);
    const int64_t *dims = map_input(m, i)->dims;
    const int out = compose_reshape(
        m, compose_input(m, i), 4, (const int64_t[]){0, dims[1], heads, dims[2] / heads});
    section_integers(m->g, m->s, "second", order, 4);
    return out;
}

/* The keys or values so far, and behind them the new ones. */
static int with_past(const struct attention *a, int x, int past, int present)
{
    struct mapping *m = a->m;
    if (map_input(m, past)) {
        x = compose_two(m, "Concatenation", compose_input(m, past), x);
        section_integer(m->g, m->s, "axis", 2);
    }
    return publish(m, present, x);
}

static int64_t total(const struct attention *a)
{
    return a->past + a->kv_length;
}

/* 0 where the condition holds, else -inf. */
static int open_where(const struct attention *a, int condition)
{
    return compose(a->m, "Select",
                   (const int[]){condition, compose_number(a->m, a->dtype, 0),
                                 compose_number(a->m, a->dtype, -INFINITY)},
                   3);
}

/* The mask as an addend; keys that it is too short for are closed. */
static int given_mask(const struct attention *a)
{
    struct mapping *m = a->m;
    const struct value *mask = map_input(m, 3);
    int x = compose_input(m, 3);
    if (!mask || m->refused)
        return VALUE_NONE;
    const bool boolean = mask->dtype == STRATA_BOOL8;
    const int64_t missing = mask->rank ? total(a) - mask->dims[mask->rank - 1] : 0;
    if (missing > 0 && mask->dims[mask->rank - 1] != 1) {
        x = compose_one(m, "Padding", x);
        section_integer(m->g, m->s, "begin", 0);
        section_integer(m->g, m->s, "end", missing);
        if (!boolean)
            section_real(m->g, m->s, "value", -INFINITY);
    }
    return boolean ? open_where(a, x) : x;
}

/* A query sees no key behind its own place. */
static int causal_mask(const struct attention *a)
{
    const int64_t dims[] = {a->length, total(a)};
    if (!node_integer(a->m->node, "is_causal", 0))
        return VALUE_NONE;
    double *v = compose_room(a->m, sizeof *v, dims, 2);
    for (int64_t i = 0; v && i < dims[0]; i++)
        for (int64_t k = 0; k < dims[1]; k++)
            v[i * dims[1] + k] = k > a->past + i ? -INFINITY : 0;
    return v ? compose_reals(a->m, 2, dims, v) : VALUE_NONE;
}

/* Keys of each batch behind its length are padding. */
static int length_mask(const struct attention *a)
{
    struct mapping *m = a->m;
    const int64_t n = total(a);
    if (!map_input(m, 6))
        return VALUE_NONE;
    int64_t *v = compose_room(m, sizeof *v, &n, 1);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = i;
    const int lengths =
        compose_reshape(m, compose_input(m, 6), 4, (const int64_t[]){a->batch, 1, 1, 1});
    return open_where(a, compose_op(m, "Compare", "greater", lengths,
                                    graph_add_integers(m->g, 1, v, v ? n : 0)));
}

static int add_masks(const struct attention *a, int scores)
{
    const int masks[] = {given_mask(a), causal_mask(a), length_mask(a)};
    int sum = VALUE_NONE;
    for (size_t i = 0; i < ARRAY_LENGTH(masks); i++)
        if (masks[i] >= 0)
            sum = sum < 0 ? masks[i]
                          : compose_op(a->m, "ElementWise", "sum", sum, masks[i]);
    return sum < 0 ? scores : compose_op(a->m, "ElementWise", "sum", scores, sum);
}

/* Queries that share keys and values are rows of one matrix. */
static int join_group(const struct attention *a, int x, int64_t columns)
{
    const int64_t rows = a->heads / a->kv_heads * a->length;
    const int64_t dims[] = {0, a->kv_heads, rows, columns};
    return a->heads == a->kv_heads ? x : compose_reshape(a->m, x, 4, dims);
}

static int split_group(const struct attention *a, int x, int64_t columns)
{
    const int64_t dims[] = {0, a->heads, a->length, columns};
    return a->heads == a->kv_heads ? x : compose_reshape(a->m, x, 4, dims);
}

static int score(const struct attention *a, int q, int k)
{
    struct mapping *m = a->m;
    const double scale = node_real(m->node, "scale", 1 / sqrt((double)a->size));
    const int product = compose_two(m, "MatrixMultiply", join_group(a, q, a->size), k);
    section_flag(m->g, m->s, "transpose_b", true);
    section_real(m->g, m->s, "alpha", (float)scale);
    return split_group(a, product, total(a));
}

/* Shares of the values, by way of what output 3 may be. */
static int weigh(const struct attention *a, int scores)
{
    struct mapping *m = a->m;
    const double cap = node_real(m->node, "softcap", 0);
    const int64_t mode = node_integer(m->node, "qk_matmul_output_mode", 0);
    if (mode == 0)
        scores = publish(m, 3, scores);
    if (cap > 0) {
        scores = compose_one(m, "Activation", scores);
        section_word(m->g, m->s, "kind", "scaled_tanh");
        section_real(m->g, m->s, "alpha", cap);
        section_real(m->g, m->s, "beta", (float)(1 / cap));
    }
    if (mode == 1)
        scores = publish(m, 3, scores);
    scores = add_masks(a, scores);
    if (mode == 2)
        scores = publish(m, 3, scores);
    scores = compose_one(m, "Softmax", scores);
    section_integer(m->g, m->s, "axis", -1);
    return mode == 3 ? publish(m, 3, scores) : scores;
}

static void make_attention(struct mapping *m)
{
    static const int64_t order[] = {0, 2, 1, 3};
    struct attention a = {.m = m};
    if (!read_sizes(&a))
        return;
    const int q = split_heads(&a, 0, a.heads);
    const int k = with_past(&a, split_heads(&a, 1, a.kv_heads), 4, 1);
    const int v = with_past(&a, split_heads(&a, 2, a.kv_heads), 5, 2);
    const int shares = weigh(&a, score(&a, q, k));
    int y = compose_two(m, "MatrixMultiply", join_group(&a, shares, total(&a)), v);
    y = split_group(&a, y, a.v_size);
    if (a.flat)
        y = compose_transpose(m, y, 4, order, 3,
                              (const int64_t[]){0, a.length, a.heads * a.v_size});
    compose_end(m, 0, -1);
}

/* ---- positions as rotations ----------------------------------------------------------
 */

/* Columns of a tensor's last dim. */
static int columns(struct mapping *m, int x, int64_t begin, int64_t end, int64_t step)
{
    const int out = compose_one(m, "Slice", x);
    section_integer(m->g, m->s, "axes", -1);
    section_integer(m->g, m->s, "begin", begin);
    section_integer(m->g, m->s, "end", end);
    if (step != 1)
        section_integer(m->g, m->s, "step", step);
    return out;
}

/* The cosines or sines of all positions, beside the heads. */
static int angles(struct mapping *m, int i, bool flat, int64_t length, int64_t half)
{
    int x = compose_input(m, i);
    if (map_input(m, 3))
        x = compose_two(m, "Gather", x, compose_input(m, 3));
    const int64_t beside[] = {0, flat ? length : 1, flat ? 1 : length, half};
    return compose_reshape(m, x, 4, beside);
}

static int combine(struct mapping *m, const char *op, int a, int b, int c, int d)
{
    const int first = compose_op(m, "ElementWise", "product", a, b);
    const int second = compose_op(m, "ElementWise", "product", c, d);
    return compose_op(m, "ElementWise", op, first, second);
}

static int concatenate(struct mapping *m, int a, int b)
{
    const int out = compose_two(m, "Concatenation", a, b);
    section_integer(m->g, m->s, "axis", -1);
    return out;
}

/* Pairs of columns turned by their angles; neighbours, or one of either half. */
static int rotate(struct mapping *m, int x, const int64_t *dims, int64_t half, bool flat)
{
    const bool pairs = node_integer(m->node, "interleaved", 0) != 0;
    const int64_t turned = 2 * half, length = dims[flat ? 1 : 2];
    const int64_t apart[] = {0, dims[1], dims[2], half, 1};
    const int64_t together[] = {0, dims[1], dims[2], turned};
    const int c = angles(m, 1, flat, length, half), s = angles(m, 2, flat, length, half);
    const int a = columns(m, x, 0, pairs ? turned : half, pairs ? 2 : 1);
    const int b = columns(m, x, pairs ? 1 : half, turned, pairs ? 2 : 1);
    int real = combine(m, "sub", c, a, s, b), imaginary = combine(m, "sum", s, a, c, b);
    if (pairs) {
        real = compose_reshape(m, real, 5, apart);
        imaginary = compose_reshape(m, imaginary, 5, apart);
    }
    int y = concatenate(m, real, imaginary);
    if (pairs)
        y = compose_reshape(m, y, 4, together);
    return dims[3] > turned ? concatenate(m, y, columns(m, x, turned, dims[3], 1)) : y;
}

static void make_rotary(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const bool flat = x && x->rank == 3;
    const int64_t heads = node_integer(m->node, "num_heads", 0);
    if (!x || (!flat && x->rank != 4) || (flat && !divides(heads, x->dims[2]))) {
        map_refuse(m, "an input of rank %d with %lld heads cannot be split in heads",
                   map_input_rank(m, 0), (long long)heads);
        return;
    }
    int64_t dims[4] = {x->dims[0], x->dims[1], x->dims[2], x->dims[3]};
    int from = compose_input(m, 0);
    if (flat) {
        dims[2] = heads;
        dims[3] = x->dims[2] / heads;
        from = compose_reshape(m, from, 4, (const int64_t[]){0, dims[1], heads, dims[3]});
    }
    const int64_t given = node_integer(m->node, "rotary_embedding_dim", 0);
    const int64_t turned = given ? given : dims[3];
    if (turned < 2 || turned % 2 || turned > dims[3]) {
        map_refuse(m, "'rotary_embedding_dim' = %lld is no even part of heads of %lld",
                   (long long)turned, (long long)dims[3]);
        return;
    }
    const int y = rotate(m, from, dims, turned / 2, flat);
    if (flat)
        compose_reshape(m, y, 3, (const int64_t[]){0, dims[1], heads * dims[3]});
    compose_end(m, 0, -1);
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
    {.op = "Attention", .finish = make_attention},
    {.op = "CausalConvWithState", .finish = make_causal},
    {.op = "RotaryEmbedding", .finish = make_rotary},
};

const struct map_table map_attention = {"Attention", rules, ARRAY_LENGTH(rules)};
