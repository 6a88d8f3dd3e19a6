/* SPDX-License-Identifier: Apache-2.0
 *
 * A pass: the inputs' values into rows, the steps over the rows, the result into memory;
 * without copies where tensors lie as rows do.
 */
#include "plugins/common/pointwise.h"

#include "plugins/common/pointwise/span.h"
#include "plugins/common/walk.h"

struct tile {
    const struct span_axis *outer, *inner;
    int64_t m, n;
};

/* Whether an operand's m rows are one run. */
static int is_run(const struct tile *t, int k)
{
    return t->m == 1 || t->outer->step[k] == t->n * t->inner->step[k];
}

/* Whether a tile reads one value alone of operand k. */
static int is_one(const struct tile *t, int k)
{
    return t->inner->step[k] == 0 && (t->m == 1 || t->outer->step[k] == 0);
}

static const void *input_row(const struct pointwise_pass *pass, const struct tile *t,
                             int k, int64_t base, char *row)
{
    const struct pointwise_class *v = pass->values;
    const strata_tensor *x = pass->in[k];
    const size_t bytes = dtype_size(x->dtype), run = (size_t)t->n * v->size;
    const int64_t step = t->inner->step[k + 1], outer = t->outer->step[k + 1];
    const char *from = (const char *)x->data + base * (int64_t)bytes;
    if (is_run(t, k + 1)) {
        if (step == 1 && v->native >> x->dtype & 1)
            return from;
        v->load(row, from, x->dtype, step, t->m * t->n);
        return row;
    }
    for (int64_t i = 0; i < (outer == 0 ? 1 : t->m); i++)
        v->load(row + (size_t)i * run, from + i * outer * (int64_t)bytes, x->dtype, step,
                t->n);
    if (outer == 0)
        for (size_t done = 1, all = (size_t)t->m, more; done < all; done += more) {
            more = all - done < done ? all - done : done;
            memcpy(row + done * run, row, more * run);
        }
    return row;
}

static void store_rows(const struct pointwise_pass *pass, const struct tile *t, char *to,
                       const char *row)
{
    const struct pointwise_class *v = pass->values;
    const int32_t dtype = pass->out->dtype;
    const int64_t outer = t->outer->step[0] * (int64_t)dtype_size(dtype);
    if (is_run(t, 0)) {
        v->store(to, dtype, t->inner->step[0], row, t->m * t->n);
        return;
    }
    for (int64_t i = 0; i < t->m; i++)
        v->store(to + i * outer, dtype, t->inner->step[0],
                 row + (size_t)(i * t->n) * v->size, t->n);
}

/* A value of operand k at `base`, as in a row. */
static const void *one_value(const struct pointwise_pass *pass, int k, int64_t base,
                             char *row)
{
    const strata_tensor *x = pass->in[k];
    pass->values->load(row, (const char *)x->data + base * (int64_t)dtype_size(x->dtype),
                       x->dtype, 1, 1);
    return row;
}

struct pass_call {
    const struct pointwise_pass *pass;
    uint32_t ones; /* mask of inputs of which one value is enough where all are alike */
};

static void pass_tile(const void *arg, const struct span_axis *outer,
                      const struct span_axis *inner, const int64_t *base, int64_t m,
                      int64_t n)
{
    _Alignas(64) char memory[POINTWISE_ROWS][POINTWISE_ROW * sizeof(double)];
    _Alignas(64) char buffer[POINTWISE_ROW * sizeof(double)];
    const struct pass_call *call = arg;
    const struct pointwise_pass *pass = call->pass;
    const struct tile t = {outer, inner, m, n};
    uint32_t one = 0;
    const void *row[POINTWISE_ROWS];
    const strata_tensor *out = pass->out;
    char *to = (char *)out->data + base[0] * (int64_t)dtype_size(out->dtype);
    const int direct =
        is_run(&t, 0) && inner->step[0] == 1 && pass->values->native >> out->dtype & 1;
    char *result = direct ? to : buffer;
    for (int k = 0; k < pass->n_in; k++) {
        const int alone = call->ones >> k & 1 && is_one(&t, k + 1);
        one |= (uint32_t)alone << k;
        row[k] = alone ? one_value(pass, k, base[k + 1], memory[k])
                       : input_row(pass, &t, k, base[k + 1], memory[k]);
    }
    for (int k = pass->n_in; k < POINTWISE_ROWS; k++)
        row[k] = memory[k];
    for (int32_t i = 0; i < pass->n_steps; i++) {
        const struct pointwise_step *s = &pass->step[i];
        char *y = s->to == POINTWISE_RESULT ? result : memory[s->to];
        const int op = s->op | (one >> s->b & 1 ? POINTWISE_ONE : 0);
        pass->values->apply(op, &s->k, y, row[s->a], row[s->b], row[s->c], m * n);
        if (s->to != POINTWISE_RESULT)
            row[s->to] = y;
    }
    if (!direct)
        store_rows(pass, &t, to, buffer);
}

/* ---- one step on values as they lie ------------------------------------------------ */

enum {
    PART = 16 * POINTWISE_ROW, /* values of a part, for which places are found once */
    PIECE = 4 * POINTWISE_ROW, /* of a row, at once: the first cache holds them */
    LEAST = 128,               /* of a row: shorter ones are laid out beside each other */
};

/* Whether there is one step, and values are read as they lie. */
static int is_plain(const struct pointwise_pass *pass)
{
    uint32_t dtypes = 0;
    for (int32_t k = 0; k < pass->n_in; k++)
        dtypes |= UINT32_C(1) << pass->in[k]->dtype;
    return pass->n_steps == 1 && pass->n_in > 0 && !(dtypes & ~pass->values->native);
}

/* Whether rows of a part are those of the tensors. one: of inputs of which a row has one
 * value. */
static int has_rows(const struct pass_call *call, const struct tile *t, uint32_t *one)
{
    *one = 0;
    if (t->m > 1 && t->n < LEAST)
        return 0;
    for (int k = 0; k < call->pass->n_in; k++)
        if (t->inner->step[k + 1] == 0 && call->ones >> k & 1)
            *one |= UINT32_C(1) << k;
        else if (t->inner->step[k + 1] != 1)
            return 0;
    return t->inner->step[0] == 1;
}

/* Where operand k's value (i, j) of a part lies; k = 0: the output. */
static char *place_of(const struct pointwise_pass *pass, const struct tile *t,
                      const int64_t *base, int k, int64_t i, int64_t j)
{
    const strata_tensor *x = k == 0 ? pass->out : pass->in[k - 1];
    return (char *)x->data + (base[k] + i * t->outer->step[k] + j * t->inner->step[k]) *
                                 (int64_t)dtype_size(x->dtype);
}

/* Whether the step's results are bytes that its class makes without a row in between. */
static int makes_truths(const struct pointwise_pass *pass)
{
    const int op = pass->step[0].op;
    return pass->values->truths && pass->out->dtype == STRATA_BOOL8 &&
           op >= POINTWISE_COMPARE &&
           op <= POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL;
}

/* n values from (i, j) on. */
static void run_piece(const struct pass_call *call, const struct tile *t,
                      const int64_t *base, int op, int64_t i, int64_t j, int64_t n)
{
    _Alignas(64) char buffer[POINTWISE_ROW * sizeof(double)];
    const struct pointwise_pass *pass = call->pass;
    const struct pointwise_step *s = &pass->step[0];
    const int direct = pass->values->native >> pass->out->dtype & 1;
    char *to = place_of(pass, t, base, 0, i, j);
    const void *a = place_of(pass, t, base, s->a + 1, i, j);
    const void *b = place_of(pass, t, base, s->b + 1, i, j);
    if (makes_truths(pass)) {
        pass->values->truths(op, (uint8_t *)to, a, b, n);
        return;
    }
    pass->values->apply(op, &s->k, direct ? to : buffer, a, b,
                        place_of(pass, t, base, s->c + 1, i, j), n);
    if (!direct)
        pass->values->store(to, pass->out->dtype, 1, buffer, n);
}

static void run_rows(const struct pass_call *call, const struct tile *t,
                     const int64_t *base, uint32_t one)
{
    const struct pointwise_pass *pass = call->pass;
    const struct pointwise_step *s = &pass->step[0];
    const int op = s->op | (one >> s->b & 1 ? POINTWISE_ONE : 0);
    const int direct = pass->values->native >> pass->out->dtype & 1;
    const int64_t piece = direct || makes_truths(pass) ? PIECE : POINTWISE_ROW;
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j += piece)
            run_piece(call, t, base, op, i, j, t->n - j < piece ? t->n - j : piece);
}

/* A part that is no such rows, in tiles. */
static void run_tiles(const struct pass_call *call, const struct tile *t,
                      const int64_t *base)
{
    const int64_t n = t->n < POINTWISE_ROW ? t->n : POINTWISE_ROW;
    const int64_t m = POINTWISE_ROW / n;
    int64_t from[SPAN_OPERANDS];
    for (int64_t i = 0; i < t->m; i += m)
        for (int64_t j = 0; j < t->n; j += n) {
            for (int k = 0; k < 1 + call->pass->n_in; k++)
                from[k] = base[k] + i * t->outer->step[k] + j * t->inner->step[k];
            pass_tile(call, t->outer, t->inner, from, t->m - i < m ? t->m - i : m,
                      t->n - j < n ? t->n - j : n);
        }
}

static void pass_part(const void *arg, const struct span_axis *outer,
                      const struct span_axis *inner, const int64_t *base, int64_t m,
                      int64_t n)
{
    const struct pass_call *call = arg;
    const struct tile t = {outer, inner, m, n};
    uint32_t one;
    if (has_rows(call, &t, &one))
        run_rows(call, &t, base, one);
    else
        run_tiles(call, &t, base);
}

/* ---- all ----------------------------------------------------------------------------
 */

static int takes_one(int op)
{
    switch (op) {
    case POINTWISE_ELEMENTWISE + STRATA_SUM:
    case POINTWISE_ELEMENTWISE + STRATA_SUB:
    case POINTWISE_ELEMENTWISE + STRATA_PRODUCT:
    case POINTWISE_ELEMENTWISE + STRATA_DIV:
    case POINTWISE_ELEMENTWISE + STRATA_MAX:
    case POINTWISE_ELEMENTWISE + STRATA_MIN:
    case POINTWISE_PRELU:
    case POINTWISE_COMPARE + STRATA_COMPARE_EQUAL:
    case POINTWISE_COMPARE + STRATA_COMPARE_NOT_EQUAL:
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS:
    case POINTWISE_COMPARE + STRATA_COMPARE_LESS_EQUAL:
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER:
    case POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL:
        return 1;
    default:
        return 0;
    }
}

/* Inputs that all steps that read them take as one value; the first is every op's a. */
static uint32_t inputs_as_one(const struct pointwise_pass *pass)
{
    uint32_t ones = pass->values->has_one ? (UINT32_C(1) << pass->n_in) - 2 : 0;
    for (int32_t i = 0; i < pass->n_steps; i++) {
        const struct pointwise_step *s = &pass->step[i];
        ones &= ~(UINT32_C(1) << s->a | UINT32_C(1) << s->c | UINT32_C(1) << s->to);
        if (!takes_one(s->op))
            ones &= ~(UINT32_C(1) << s->b);
    }
    return ones;
}

void pointwise_pass_run(const struct pointwise_pass *pass)
{
    const strata_tensor *operand[SPAN_OPERANDS] = {pass->out};
    const struct pass_call call = {pass, inputs_as_one(pass)};
    for (int32_t k = 0; k < pass->n_in; k++)
        operand[k + 1] = pass->in[k];
    if (is_plain(pass))
        span_run(operand, pass->n_in + 1, PART, pass_part, &call);
    else
        span_run(operand, pass->n_in + 1, POINTWISE_ROW, pass_tile, &call);
    walk_clear_pads(pass->out);
}

void pointwise_run_one(const strata_run *r, int op, const struct pointwise_constants *k,
                       const strata_tensor *values)
{
    struct pointwise_pass pass = {.values = pointwise_class_of(values->dtype),
                                  .out = &r->out[0]};
    for (int32_t i = 0; i < r->n_in; i++)
        pass.in[pass.n_in++] = &r->in[i];
    if (r->n_weights > 0)
        pass.in[pass.n_in++] = &r->weight[0];
    pass.n_steps = 1;
    const uint8_t b = pass.n_in > 1, c = pass.n_in > 2 ? 2 : 0;
    pass.step[0] = (struct pointwise_step){op, POINTWISE_RESULT, 0, b, c, *k};
    pointwise_pass_run(&pass);
}

const struct pointwise_class *pointwise_class_of(int32_t dtype)
{
    static const struct pointwise_class *const classes[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = &pointwise_float,  [STRATA_FP16] = &pointwise_float,
        [STRATA_BF16] = &pointwise_float,  [STRATA_FP64] = &pointwise_double,
        [STRATA_INT8] = &pointwise_int32,  [STRATA_UINT8] = &pointwise_int32,
        [STRATA_INT32] = &pointwise_int32, [STRATA_BOOL8] = &pointwise_int32,
        [STRATA_INT64] = &pointwise_int64,
    };
    return classes[dtype];
}
