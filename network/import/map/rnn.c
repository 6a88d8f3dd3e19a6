/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN, GRU and LSTM, step by step. What does not depend on the step before is one product
 * for all steps.
 */
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/import/map/compose.h"

#define STEPS 128 /* that become layers */

enum { X, W, R, BIAS, LENGTHS, HIDDEN, CELL, PEEPHOLES };

/* Sizes, and what each kind does; a cell's gates lie one after another. */
struct rnn {
    struct mapping *m;
    const char *const *defaults; /* activations */
    int n_activations;
    int64_t gates, directions, steps, batch, in, hidden;
    bool batch_first, reset_after; /* GRU: the reset comes after the product */
    /* Of the direction at hand. */
    int64_t direction;
    int recurrent, recurrent_last; /* weights; of GRU the candidate's apart */
    int last_bias;                 /* GRU: of the candidate, with reset_after */
    int peepholes[3];              /* i, o, f */
};

/* ---- sizes and weights ---------------------------------------------------------------
 */

static bool read_direction(struct rnn *r)
{
    static const char *const words[] = {"forward", "reverse", "bidirectional"};
    const char *word = node_text(r->m->node, "direction", words[0]);
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (strcmp(word, words[i]) == 0) {
            r->directions = i == 2 ? 2 : 1;
            return true;
        }
    map_refuse(r->m, "'direction' = '%s' is none of forward, reverse, bidirectional",
               word);
    return false;
}

static bool has_dims(const struct value *v, int rank, const int64_t *dims)
{
    return !v || (v->rank == rank && dtype_is_free(v->dtype) &&
                  memcmp(v->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

static bool read_rnn(struct rnn *r)
{
    struct mapping *m = r->m;
    const struct value *x = map_input(m, X), *w = map_constant(m, W, "W");
    const struct value *k = map_constant(m, R, "R"), *b = map_constant(m, BIAS, "B");
    const struct value *p = map_constant(m, PEEPHOLES, "P");
    if (m->refused || !read_direction(r))
        return false;
    if (!x || !w || !k || x->rank != 3 || k->rank != 3 || !dtype_is_free(x->dtype)) {
        map_refuse(m, "X and R have ranks of %d and %d; floats of 3 and 3 are needed",
                   map_input_rank(m, X), map_input_rank(m, R));
        return false;
    }
    r->batch_first = node_integer(m->node, "layout", 0) != 0;
    r->reset_after = node_integer(m->node, "linear_before_reset", 0) != 0;
    r->steps = x->dims[r->batch_first ? 1 : 0];
    r->batch = x->dims[r->batch_first ? 0 : 1];
    r->in = x->dims[2];
    r->hidden = k->dims[2];
    const int64_t rows = r->gates * r->hidden;
    if (!has_dims(w, 3, (const int64_t[]){r->directions, rows, r->in}) ||
        !has_dims(k, 3, (const int64_t[]){r->directions, rows, r->hidden}) ||
        !has_dims(b, 2, (const int64_t[]){r->directions, 2 * rows}) ||
        !has_dims(p, 2, (const int64_t[]){r->directions, 3 * r->hidden}))
        map_refuse(m,
                   "W, R, B or P are not of %lld directions, %lld inputs and %lld "
                   "hidden units",
                   (long long)r->directions, (long long)r->in, (long long)r->hidden);
    else if (r->steps < 1 || r->steps > STEPS)
        map_refuse(m,
                   "it has %lld steps; as there is no layer for it, each becomes some, "
                   "of at most %d steps",
                   (long long)r->steps, STEPS);
    else if (node_integer(m->node, "input_forget", 0) ||
             node_attribute(m->node, "activation_alpha") ||
             node_attribute(m->node, "activation_beta"))
        map_refuse(m, "'input_forget' and factors of activations are not taken");
    return !m->refused;
}

/* Rows of a constant from `first` on, as one of that rank. */
static int part_of(const struct rnn *r, int i, int64_t first, int rank,
                   const int64_t *dims)
{
    const struct value *v = map_input(r->m, i);
    const size_t size = weight_dtype_size(weight_dtype_of(v->dtype));
    return graph_add_constant(r->m->g, "", v->dtype, rank, dims,
                              (const char *)v->data + (size_t)first * size);
}

/* The sum of both biases; of the candidate's second one where it is apart. */
static int bias_of(const struct rnn *r)
{
    const int64_t rows = r->gates * r->hidden;
    const double *b = compose_values(r->m, map_input(r->m, BIAS));
    double *sum = compose_room(r->m, sizeof *sum, &rows, 1);
    if (!b || !sum)
        return VALUE_NONE;
    b += r->direction * 2 * rows;
    for (int64_t i = 0; i < rows; i++)
        sum[i] = b[i] + (r->last_bias >= 0 && i >= 2 * r->hidden ? 0 : b[rows + i]);
    return compose_reals(r->m, 1, &rows, sum);
}

static void take_weights(struct rnn *r)
{
    const int64_t n = r->hidden, rows = r->gates * n, d = r->direction;
    const bool gru = r->gates == 3;
    r->recurrent =
        part_of(r, R, d * rows * n, 2, (const int64_t[]){gru ? 2 * n : rows, n});
    r->recurrent_last = r->last_bias = VALUE_NONE;
    if (gru)
        r->recurrent_last =
            part_of(r, R, (d * rows + 2 * n) * n, 2, (const int64_t[]){n, n});
    if (gru && r->reset_after && map_input(r->m, BIAS))
        r->last_bias = part_of(r, BIAS, (2 * d + 1) * rows + 2 * n, 1, &n);
    for (int i = 0; i < 3; i++)
        r->peepholes[i] = map_input(r->m, PEEPHOLES) && r->gates == 4
                              ? part_of(r, PEEPHOLES, (3 * d + i) * n, 1, &n)
                              : VALUE_NONE;
}

/* ---- a cell --------------------------------------------------------------------------
 */

static int operate(const struct rnn *r, const char *op, int a, int b)
{
    return compose_op(r->m, "ElementWise", op, a, b);
}

static int product(const struct rnn *r, int x, int weight, int bias)
{
    const int y = compose_one(r->m, "MatrixMultiply", x);
    section_flag(r->m->g, r->m->s, "transpose_b", true);
    section_weight(r->m->s, "b", weight);
    section_weight(r->m->s, "bias", bias);
    return y;
}

/* Columns of a gate, or of some. */
static int gate(const struct rnn *r, int x, int64_t first, int64_t n)
{
    const int y = compose_one(r->m, "Slice", x);
    section_integer(r->m->g, r->m->s, "axes", 1);
    section_integer(r->m->g, r->m->s, "begin", first * r->hidden);
    section_integer(r->m->g, r->m->s, "end", (first + n) * r->hidden);
    return y;
}

/* The i-th activation of the direction. */
static int activate(const struct rnn *r, int i, int x)
{
    static const char *const kinds[][2] = {{"Sigmoid", "sigmoid"},
                                           {"Tanh", "tanh"},
                                           {"Relu", "relu"},
                                           {"LeakyRelu", "leaky_relu"},
                                           {"HardSigmoid", "hard_sigmoid"},
                                           {"ThresholdedRelu", "thresholded_relu"},
                                           {"Elu", "elu"},
                                           {"Softsign", "softsign"},
                                           {"Softplus", "softplus"}};
    const struct onnx_attribute *a = node_attribute(r->m->node, "activations");
    const size_t at = (size_t)(r->direction * r->n_activations + i);
    const double clip = node_real(r->m->node, "clip", 0);
    const char *name =
        a && a->kind == ONNX_A_TEXTS && at < a->n ? a->texts[at] : r->defaults[i];
    const char *kind = NULL;
    for (size_t k = 0; k < ARRAY_LENGTH(kinds); k++)
        kind = strcasecmp(name, kinds[k][0]) == 0 ? kinds[k][1] : kind;
    if (!kind) {
        map_refuse(r->m, "the activation '%s' is not taken", name);
        return VALUE_NONE;
    }
    if (clip > 0) {
        x = compose_one(r->m, "Activation", x);
        section_word(r->m->g, r->m->s, "kind", "clip");
        section_real(r->m->g, r->m->s, "alpha", -clip);
        section_real(r->m->g, r->m->s, "beta", clip);
    }
    const int y = compose_one(r->m, "Activation", x);
    section_word(r->m->g, r->m->s, "kind", kind);
    return y;
}

static int simple_cell(const struct rnn *r, int x, int h)
{
    return activate(r, 0, operate(r, "sum", x, product(r, h, r->recurrent, VALUE_NONE)));
}

/* Update, reset, candidate. */
static int gru_cell(const struct rnn *r, int x, int h)
{
    const int known =
        operate(r, "sum", gate(r, x, 0, 2), product(r, h, r->recurrent, VALUE_NONE));
    const int gates = activate(r, 0, known);
    const int update = gate(r, gates, 0, 1), reset = gate(r, gates, 1, 1);
    int memory;
    if (r->reset_after)
        memory =
            operate(r, "product", reset, product(r, h, r->recurrent_last, r->last_bias));
    else
        memory =
            product(r, operate(r, "product", reset, h), r->recurrent_last, VALUE_NONE);
    const int candidate = activate(r, 1, operate(r, "sum", gate(r, x, 2, 1), memory));
    const int change = operate(r, "product", update, operate(r, "sub", h, candidate));
    return operate(r, "sum", candidate, change);
}

/* A gate of LSTM, which may see the cell. */
static int lstm_gate(const struct rnn *r, int x, int64_t i, int cell)
{
    x = gate(r, x, i, 1);
    if (r->peepholes[i] >= 0)
        x = operate(r, "sum", x, operate(r, "product", cell, r->peepholes[i]));
    return activate(r, 0, x);
}

/* Input, output, forget, candidate. */
static int lstm_cell(const struct rnn *r, int x, int h, int *cell)
{
    const int all = operate(r, "sum", x, product(r, h, r->recurrent, VALUE_NONE));
    const int input = lstm_gate(r, all, 0, *cell), forget = lstm_gate(r, all, 2, *cell);
    const int candidate = activate(r, 1, gate(r, all, 3, 1));
    *cell = operate(r, "sum", operate(r, "product", forget, *cell),
                    operate(r, "product", input, candidate));
    const int output = lstm_gate(r, all, 1, *cell);
    return operate(r, "product", output, activate(r, 2, *cell));
}

/* ---- steps ---------------------------------------------------------------------------
 */

static int join(const struct rnn *r, const int *v, int64_t n, int64_t axis)
{
    if (n == 1)
        return v[0];
    const int out = compose(r->m, "Concatenation", v, (int)n);
    section_integer(r->m->g, r->m->s, "axis", axis);
    return out;
}

/* A state at the begin, batch x hidden. */
static int first_state(const struct rnn *r, int i)
{
    struct mapping *m = r->m;
    const int64_t dims[] = {r->batch, r->hidden};
    if (!map_input(m, i)) {
        double *zero = compose_room(m, sizeof *zero, dims, 2);
        return zero ? compose_reals(m, 2, dims, zero) : VALUE_NONE;
    }
    int x = compose_input(m, i);
    if (r->directions > 1) {
        x = compose_one(m, "Slice", x);
        section_integer(m->g, m->s, "axes", r->batch_first ? 1 : 0);
        section_integer(m->g, m->s, "begin", r->direction);
        section_integer(m->g, m->s, "end", r->direction + 1);
    }
    return compose_reshape(m, x, 2, dims);
}

/* What all steps know of their inputs, a step each. */
static void split_steps(const struct rnn *r, int *at)
{
    static const int64_t order[] = {1, 0, 2};
    struct mapping *m = r->m;
    const int64_t rows = r->gates * r->hidden, dims[] = {r->batch, rows};
    const int w =
        part_of(r, W, r->direction * rows * r->in, 2, (const int64_t[]){rows, r->in});
    int x = compose_input(m, X);
    if (r->batch_first)
        x = compose_transpose(m, x, 3, order, 0, NULL);
    x = product(r, x, w, map_input(m, BIAS) ? bias_of(r) : VALUE_NONE);
    at[0] = x;
    if (r->steps > 1) {
        at[0] = compose_one(m, "Slice", x);
        section_integer(m->g, m->s, "axis", 0);
        section_integer(m->g, m->s, "parts", r->steps);
        for (int64_t t = 1; t < r->steps; t++)
            section_out(m->g, m->s, at[t] = map_between(m));
    }
    for (int64_t t = 0; t < r->steps; t++)
        at[t] = compose_reshape(m, at[t], 2, dims);
}

/* Whether each sequence has a step t; VALUE_NONE: they all have. */
static int reaches(const struct rnn *r, int64_t t)
{
    struct mapping *m = r->m;
    const struct value *lengths = map_input(m, LENGTHS);
    if (!lengths)
        return VALUE_NONE;
    const int dtype = lengths->dtype;
    const int x =
        compose_reshape(m, compose_input(m, LENGTHS), 2, (const int64_t[]){r->batch, 1});
    return compose_op(m, "Compare", "greater", x, compose_number(m, dtype, (double)t));
}

static int choose(const struct rnn *r, int condition, int a, int b)
{
    return condition < 0 ? a : compose(r->m, "Select", (const int[]){condition, a, b}, 3);
}

/* All steps of a direction; *all: batch x hidden of each, one after another. */
static void run_direction(struct rnn *r, int *all, int *hidden, int *cell)
{
    const bool back =
        r->direction == 1 ||
        strcmp(node_text(r->m->node, "direction", "forward"), "reverse") == 0;
    int x[STEPS] = {0}, y[STEPS] = {0};
    take_weights(r);
    split_steps(r, x);
    int h = first_state(r, HIDDEN), c = r->gates == 4 ? first_state(r, CELL) : VALUE_NONE;
    const int zero = compose_number(r->m, STRATA_FP32, 0);
    for (int64_t i = 0; i < r->steps && !r->m->refused; i++) {
        const int64_t t = back ? r->steps - 1 - i : i;
        const int there = reaches(r, t), old = c;
        const int next = r->gates == 4   ? lstm_cell(r, x[t], h, &c)
                         : r->gates == 3 ? gru_cell(r, x[t], h)
                                         : simple_cell(r, x[t], h);
        const bool more = i + 1 < r->steps;
        if (more || map_has_output(r->m, 1))
            h = choose(r, there, next, h);
        if (r->gates == 4 && (more || map_has_output(r->m, 2)))
            c = choose(r, there, c, old);
        if (map_has_output(r->m, 0))
            y[t] = choose(r, there, next, zero);
    }
    *all = map_has_output(r->m, 0) ? join(r, y, r->steps, 0) : VALUE_NONE;
    *hidden = h;
    *cell = c;
}

/* ---- results -------------------------------------------------------------------------
 */

/* directions x batch x hidden, or the batch first. */
static void give_state(const struct rnn *r, int i, int *v)
{
    const int64_t first = r->batch_first ? r->batch : 1;
    const int64_t second = r->batch_first ? 1 : r->batch;
    const int64_t dims[] = {first, second, r->hidden};
    if (!map_has_output(r->m, i))
        return;
    for (int64_t d = 0; d < r->directions; d++)
        v[d] = compose_reshape(r->m, v[d], 3, dims);
    join(r, v, r->directions, r->batch_first ? 1 : 0);
    compose_end(r->m, i, -1);
}

/* steps x directions x batch x hidden, or the batch first. */
static void give_all(const struct rnn *r, int *v)
{
    static const int64_t order[] = {2, 0, 1, 3};
    const int64_t dims[] = {r->steps, 1, r->batch, r->hidden};
    if (!map_has_output(r->m, 0))
        return;
    for (int64_t d = 0; d < r->directions; d++)
        v[d] = compose_reshape(r->m, v[d], 4, dims);
    const int all = join(r, v, r->directions, 1);
    if (r->batch_first)
        compose_transpose(r->m, all, 4, order, 0, NULL);
    compose_end(r->m, 0, -1);
}

static void make(struct mapping *m, int64_t gates, const char *const *defaults, int n)
{
    struct rnn r = {.m = m, .gates = gates, .defaults = defaults, .n_activations = n};
    int all[2], hidden[2], cell[2];
    if (!read_rnn(&r))
        return;
    for (; r.direction < r.directions; r.direction++)
        run_direction(&r, &all[r.direction], &hidden[r.direction], &cell[r.direction]);
    give_all(&r, all);
    give_state(&r, 1, hidden);
    if (gates == 4)
        give_state(&r, 2, cell);
}

static void make_simple(struct mapping *m)
{
    static const char *const defaults[] = {"Tanh"};
    make(m, 1, defaults, 1);
}

static void make_gru(struct mapping *m)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh"};
    make(m, 3, defaults, 2);
}

static void make_lstm(struct mapping *m)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    make(m, 4, defaults, 3);
}

#define NOTE "of at most 128 steps, some layers each; weights must be constant"

static const struct map_rule rules[] = {
    {.op = "RNN", .finish = make_simple, .note = NOTE},
    {.op = "GRU", .finish = make_gru, .note = NOTE},
    {.op = "LSTM", .finish = make_lstm, .note = NOTE},
};

const struct map_table map_rnn = {"Recurrent cells", rules, ARRAY_LENGTH(rules)};
