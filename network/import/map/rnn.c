/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN, GRU and LSTM: the layer RNN, whose gates are in ONNX's order. With the batch first
 * the states are, too, where the layer has the directions.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "network/import/map/compose.h"

enum { X, W, R, BIAS, LENGTHS, HIDDEN, CELL, PEEPHOLES };
enum { FUNCTIONS = 6 }; /* most: three of each direction */

static const int64_t states_turned[] = {1, 0, 2};

/* Where the activations' factors are, which only those take that have some. */
struct factors {
    const struct onnx_attribute *given;
    size_t taken;
    double value[FUNCTIONS];
};

static void take_factor(struct factors *f, int i, bool has)
{
    const bool there =
        has && f->given && f->given->kind == ONNX_A_REALS && f->taken < f->given->n;
    f->value[i] = there ? (double)f->given->reals[f->taken++] : INFINITY;
}

struct function {
    const char *theirs, *ours;
    bool alpha, beta;
};

static const struct function *find_function(struct mapping *m, const char *name)
{
    static const struct function all[] = {
        {"Sigmoid", "sigmoid", false, false},
        {"Tanh", "tanh", false, false},
        {"Relu", "relu", false, false},
        {"LeakyRelu", "leaky_relu", true, false},
        {"HardSigmoid", "hard_sigmoid", true, true},
        {"ThresholdedRelu", "thresholded_relu", true, false},
        {"ScaledTanh", "scaled_tanh", true, true},
        {"Elu", "elu", true, false},
        {"Softsign", "softsign", false, false},
        {"Softplus", "softplus", false, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        if (strcasecmp(name, all[i].theirs) == 0)
            return &all[i];
    map_refuse(m, "the activation '%s' is not taken", name);
    return NULL;
}

static void take_functions(struct mapping *m)
{
    const struct onnx_attribute *a = node_attribute(m->node, "activations");
    struct factors alpha = {node_attribute(m->node, "activation_alpha"), 0, {0}};
    struct factors beta = {node_attribute(m->node, "activation_beta"), 0, {0}};
    char words[FUNCTIONS * 24] = "";
    if (!a || a->kind != ONNX_A_TEXTS || a->n == 0)
        return;
    if (a->n > FUNCTIONS) {
        map_refuse(m, "it has %zu activations; at most %d are taken", a->n, FUNCTIONS);
        return;
    }
    for (size_t i = 0; i < a->n; i++) {
        const struct function *f = find_function(m, a->texts[i]);
        if (!f)
            return;
        strcat(strcat(words, i ? " " : ""), f->ours);
        take_factor(&alpha, (int)i, f->alpha);
        take_factor(&beta, (int)i, f->beta);
    }
    section_word(m->g, m->s, "activations",
                 arena_text(&m->g->arena, words, strlen(words)));
    if (alpha.taken)
        section_reals(m->g, m->s, "activation_alpha", alpha.value, (int64_t)a->n);
    if (beta.taken)
        section_reals(m->g, m->s, "activation_beta", beta.value, (int64_t)a->n);
}

static void take_options(struct mapping *m, const char *op)
{
    const double clip = node_real(m->node, "clip", 0);
    section_word(m->g, m->s, "op", op);
    map_names(m, "direction=direction,input_forget=coupled?");
    section_flag(m->g, m->s, "split_directions", true);
    if (strcmp(op, "gru") == 0)
        section_flag(m->g, m->s, "reset_after",
                     node_integer(m->node, "linear_before_reset", 0) != 0);
    if (node_integer(m->node, "layout", 0))
        section_word(m->g, m->s, "layout", "batch");
    if (clip > 0)
        section_real(m->g, m->s, "clip", clip);
    take_functions(m);
}

static void take_weights(struct mapping *m)
{
    static const struct {
        int input;
        const char *theirs, *ours;
    } all[] = {{W, "W", "w"}, {R, "R", "r"}, {BIAS, "B", "b"}, {PEEPHOLES, "P", "p"}};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        if (map_constant(m, all[i].input, all[i].theirs) && !m->refused)
            section_weight(m->s, all[i].ours, compose_input(m, all[i].input));
}

static bool is_zero(const struct value *v)
{
    const int64_t n = v && v->constant ? value_count(v) : 0;
    for (int64_t i = 0; i < n; i++)
        if (value_real(v, i) != 0)
            return false;
    return n > 0;
}

/* A first state, directions first; zeros are what the layer begins with anyway. */
static int first_state(struct mapping *m, int i)
{
    const int x = is_zero(map_input(m, i)) ? VALUE_NONE : compose_input(m, i);
    return x >= 0 && node_integer(m->node, "layout", 0)
               ? compose_transpose(m, x, 3, states_turned, 0, NULL)
               : x;
}

/* The layer's states as outputs of the node. */
static void give_states(struct mapping *m, const int *state, int n)
{
    for (int i = 1; i < n; i++)
        if (map_has_output(m, i)) {
            compose_transpose(m, state[i], 3, states_turned, 0, NULL);
            compose_end(m, i, -1);
        }
}

static void make(struct mapping *m, const char *op, int outputs)
{
    int inputs = outputs == 3 ? 4 : 3;
    const int in[] = {compose_input(m, X), compose_input(m, LENGTHS),
                      first_state(m, HIDDEN), inputs == 4 ? first_state(m, CELL) : 0};
    const bool turned = node_integer(m->node, "layout", 0) != 0;
    int state[3] = {VALUE_NONE, VALUE_NONE, VALUE_NONE};
    if (!map_input(m, R) || map_input_rank(m, X) != 3 || !map_input(m, W)) {
        map_refuse(m, "X has rank %d, W %d and R %d; needed are 3 each",
                   map_input_rank(m, X), map_input_rank(m, W), map_input_rank(m, R));
        return;
    }
    while (inputs > 1 && in[inputs - 1] < 0)
        inputs--;
    map_section(m, "RNN");
    for (int i = 0; i < inputs; i++)
        section_in(m->g, m->s, in[i]);
    map_out(m, 0);
    for (int i = 1; i < outputs; i++)
        if (turned && map_has_output(m, i))
            section_out(m->g, m->s, state[i] = map_between(m));
        else
            map_out(m, i);
    take_options(m, op);
    take_weights(m);
    if (turned)
        give_states(m, state, outputs);
}

static void make_simple(struct mapping *m)
{
    make(m, "tanh", 2);
}

static void make_gru(struct mapping *m)
{
    make(m, "gru", 2);
}

static void make_lstm(struct mapping *m)
{
    make(m, "lstm", 3);
}

#define NOTE "weights must be constant; no activation Affine"

static const struct map_rule rules[] = {
    {.op = "RNN", .finish = make_simple, .note = NOTE},
    {.op = "GRU", .finish = make_gru, .note = NOTE},
    {.op = "LSTM", .finish = make_lstm, .note = NOTE},
};

const struct map_table map_rnn = {"Recurrent cells", rules, ARRAY_LENGTH(rules)};
