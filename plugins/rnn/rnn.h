/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN as its impls see it: sizes, distances and rules, read from the attributes here
 * alone.
 */
#ifndef PLUGINS_RNN_RNN_H
#define PLUGINS_RNN_RNN_H

#include <strata/layers.h>

#include <math.h>
#include <string.h>

enum { RNN_X, RNN_LENGTHS, RNN_H0, RNN_C0 }; /* inputs */
enum { RNN_W, RNN_U, RNN_R, RNN_B, RNN_P };  /* weights */
enum { RNN_Y, RNN_HN, RNN_CN };              /* outputs */
enum { RNN_MOST_GATES = 4, RNN_MOST_FUNCTIONS = 3 };
/* Gates, and the functions of a cell: of gates, of the candidate, of the cell. */
enum { RNN_I, RNN_O, RNN_F, RNN_C };
enum { RNN_UPDATE, RNN_RESET, RNN_CANDIDATE };

/* What a cell does beside its sums. */
struct rnn_rule {
    strata_activation function[RNN_MOST_FUNCTIONS]; /* alpha and beta are set */
    double clip;
    int32_t clips, coupled;
    int32_t custom; /* some function is not the op's own */
};

/* Distances are in elements of dense tensors. */
struct rnn_plan {
    int32_t op, gates, functions, layers, directions;
    int32_t backward; /* the first direction begins at the end; the second always does */
    int32_t skip, reset_after;
    int64_t steps, batch, inputs, hidden;
    int64_t x_step, x_row, y_step, y_row, y_direction;
    struct rnn_rule rule[2]; /* of each direction */
};

static inline int rnn_gates(const strata_rnn *p)
{
    return p->op == STRATA_RNN_LSTM ? 4 : p->op == STRATA_RNN_GRU ? 3 : 1;
}

static inline int rnn_directions(const strata_rnn *p)
{
    return p->direction == STRATA_RNN_BIDIRECTIONAL ? 2 : 1;
}

/* H, or 0: neither the attribute nor the weight tells. */
static inline int64_t rnn_hidden(const strata_rnn *p, const strata_tensor *weight)
{
    return p->hidden ? p->hidden : weight[RNN_R].rank == 3 ? weight[RNN_R].dims[2] : 0;
}

/* Columns that the input product of a layer sums over. */
static inline int64_t rnn_depth(const struct rnn_plan *p, int layer)
{
    return layer == 0 ? p->inputs : p->directions * p->hidden;
}

/* Whether a layer has an input product. */
static inline int rnn_multiplies(const struct rnn_plan *p, int layer)
{
    return layer > 0 || !p->skip;
}

/* The step at which a sequence of `length` does its i-th. */
static inline int64_t rnn_time(const struct rnn_plan *p, int direction, int64_t length,
                               int64_t i)
{
    return p->backward || direction == 1 ? length - 1 - i : i;
}

static inline int64_t rnn_length(const struct rnn_plan *p, const int32_t *lengths,
                                 int64_t row)
{
    const int64_t n = lengths ? lengths[row] : p->steps;
    return n < 0 ? 0 : n < p->steps ? n : p->steps;
}

/* Names as the layer Activation has them, in its order. */
static inline int rnn_kind_of(const char *name, size_t length)
{
    static const char *const names[STRATA_ACTIVATION_COUNT] = {"relu",
                                                               "leaky_relu",
                                                               "relu6",
                                                               "clip",
                                                               "sigmoid",
                                                               "tanh",
                                                               "elu",
                                                               "selu",
                                                               "softplus",
                                                               "softsign",
                                                               "gelu",
                                                               "silu",
                                                               "hard_sigmoid",
                                                               "hard_swish",
                                                               "mish",
                                                               "gelu_tanh",
                                                               "swish",
                                                               "celu",
                                                               "thresholded_relu",
                                                               "shrink",
                                                               "scaled_tanh"};
    for (int i = 0; i < STRATA_ACTIVATION_COUNT; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    return -1;
}

/* The next word of a text, from *at on; its length, 0 at the end. */
static inline size_t rnn_word(const strata_string *s, size_t *at, const char **word)
{
    size_t n = 0;
    while (*at < s->length && strchr(" ,\t", s->text[*at]))
        ++*at;
    *word = s->text + *at;
    while (*at < s->length && !strchr(" ,\t", s->text[*at]))
        ++*at, n++;
    return n;
}

/* Which kinds, at most `most`; how many words there are, -1 - i where word i is none. */
static inline int rnn_kinds(const strata_rnn *p, int32_t *kinds, int most)
{
    size_t at = 0, n;
    const char *word;
    int count = 0;
    for (; p->activations.text && (n = rnn_word(&p->activations, &at, &word)); count++) {
        const int kind = rnn_kind_of(word, n);
        if (kind < 0)
            return -1 - count;
        if (count < most)
            kinds[count] = kind;
    }
    return count;
}

static inline int rnn_functions(const strata_rnn *p)
{
    return p->op == STRATA_RNN_LSTM ? 3 : p->op == STRATA_RNN_GRU ? 2 : 1;
}

static inline void rnn_rule_of(const strata_rnn *p, int direction, struct rnn_rule *rule)
{
    static const int32_t own[][RNN_MOST_FUNCTIONS] = {
        [STRATA_RNN_LSTM] = {STRATA_SIGMOID, STRATA_TANH, STRATA_TANH},
        [STRATA_RNN_GRU] = {STRATA_SIGMOID, STRATA_TANH},
        [STRATA_RNN_TANH] = {STRATA_TANH},
        [STRATA_RNN_RELU] = {STRATA_RELU}};
    const int n = rnn_functions(p);
    int32_t kinds[2 * RNN_MOST_FUNCTIONS];
    const int given = rnn_kinds(p, kinds, 2 * RNN_MOST_FUNCTIONS);
    rule->custom = 0;
    rule->clip = p->clip;
    rule->clips = isfinite(p->clip) != 0;
    rule->coupled = p->coupled;
    for (int i = 0; i < n; i++) {
        const int at = given > n ? direction * n + i : i;
        strata_activation a = {0, 0, STRATA_KIND_DEFAULT, STRATA_KIND_DEFAULT};
        a.kind = given > 0 ? kinds[at] : own[p->op][i];
        rule->custom |= a.kind != own[p->op][i];
        if (p->activation_alpha.n > at)
            a.alpha = p->activation_alpha.v[at];
        if (p->activation_beta.n > at)
            a.beta = p->activation_beta.v[at];
        rule->function[i] = a;
        rule->function[i].alpha = strata_activation_alpha(&a);
        rule->function[i].beta = strata_activation_beta(&a);
    }
}

/* Of a node whose shapes are right. */
static inline struct rnn_plan rnn_plan_of(const strata_rnn *p, const strata_tensor *in,
                                          const strata_tensor *weight)
{
    const int batch_first = p->layout == STRATA_RNN_BATCH;
    const int64_t *x = in[RNN_X].dims;
    struct rnn_plan plan = {.op = p->op,
                            .gates = rnn_gates(p),
                            .functions = rnn_functions(p),
                            .layers = (int32_t)p->layers,
                            .directions = rnn_directions(p),
                            .backward = p->direction == STRATA_RNN_REVERSE,
                            .skip = p->input_mode == STRATA_RNN_SKIP,
                            .reset_after = p->reset_after,
                            .steps = x[batch_first],
                            .batch = x[!batch_first],
                            .inputs = x[2],
                            .hidden = rnn_hidden(p, weight)};
    const int64_t b = plan.batch, wide = plan.directions * plan.hidden;
    const int split = p->split_directions && !batch_first;
    plan.x_step = batch_first ? plan.inputs : b * plan.inputs;
    plan.x_row = batch_first ? plan.steps * plan.inputs : plan.inputs;
    plan.y_step = batch_first ? wide : b * wide;
    plan.y_row = batch_first ? plan.steps * wide : split ? plan.hidden : wide;
    plan.y_direction = split ? b * plan.hidden : plan.hidden;
    for (int d = 0; d < plan.directions; d++)
        rnn_rule_of(p, d, &plan.rule[d]);
    return plan;
}

static inline const void *rnn_input(int n_in, const strata_tensor *in, int i)
{
    return i < n_in && in[i].rank > 0 ? in[i].data : NULL;
}

#endif /* PLUGINS_RNN_RNN_H */
