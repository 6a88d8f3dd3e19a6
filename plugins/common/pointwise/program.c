/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser: instructions one by one, then rows for their results, as few as the last
 * uses allow.
 */
#include "plugins/common/pointwise/program.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/activation_attrs.h"

#define WORD 32

/* Names are those of the layers' attributes, in the order of their enumerators. */
static const struct family {
    const char *names; /* separated by '|' */
    int32_t base, operands, numbers;
} families[] = {
    {ACTIVATION_KINDS, POINTWISE_ACTIVATION, 1, 2},
    {"abs|neg|exp|log|sqrt|reciprocal|sign|floor|ceil|round|sin|cos|tan|asin|acos|atan|"
     "sinh|cosh|tanh|asinh|acosh|atanh|erf|not",
     POINTWISE_UNARY, 1, 0},
    {"is_nan", POINTWISE_UNARY + STRATA_UNARY_IS_NAN, 1, 0},
    {"sum|sub|product|div|max|min|pow|mod|and|or|xor", POINTWISE_ELEMENTWISE, 2, 0},
    {"equal|not_equal|less|less_equal|greater|greater_equal", POINTWISE_COMPARE, 2, 0},
    {"select", POINTWISE_SELECT, 3, 0},
    {"scale", POINTWISE_AFFINE, 1, 2},
    {"cast_fp32", POINTWISE_COPY, 1, 0},
    {"cast_fp16", POINTWISE_ROUND + STRATA_FP16, 1, 0},
    {"cast_bf16", POINTWISE_ROUND + STRATA_BF16, 1, 0},
    {"cast_bool", POINTWISE_ELEMENTWISE + STRATA_OR, 1, 0},
    {"dequantize", POINTWISE_DEQUANTIZE, 1, 2},
    {"quantize_int8|quantize_u8", PROGRAM_INT8, 1, 2},
};
#define N_FAMILIES (sizeof families / sizeof *families)

/* Of a program that is read: operands are inputs, or PROGRAM_INPUTS + instruction. */
struct reader {
    const strata_node *node;
    struct program *out;
    const char *at, *end;
};

/* ---- words ----------------------------------------------------------------------- */

static void skip_spaces(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
}

static int at_end(struct reader *r)
{
    skip_spaces(r);
    return r->at == r->end || *r->at == ',';
}

/* The next word of the instruction, cut at WORD; "" at its end. */
static const char *take_word(struct reader *r, char word[WORD])
{
    int n = 0;
    skip_spaces(r);
    for (; r->at < r->end && *r->at != ' ' && *r->at != '\t' && *r->at != ','; r->at++)
        if (n < WORD - 1)
            word[n++] = *r->at;
    word[n] = '\0';
    return word;
}

static int wrong(const struct reader *r, const char *what, const char *word)
{
    return STRATA_FAIL(
        r->node, STRATA_EINVAL,
        "program: instruction %d: %s '%s'; write an operation, its operands "
        "(x0 an input, r0 a result before) and its numbers, like \"product "
        "x0 x1, clip r0 0 6\"",
        (int)r->out->n_steps, what, word);
}

/* Position of a word in "a|b|c", or -1. */
static int32_t index_in(const char *names, const char *word)
{
    const size_t length = strlen(word);
    int32_t index = 0;
    for (const char *at = names; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (strcspn(at, "|") == length && strncmp(at, word, length) == 0)
            return index;
        index++;
    }
    return -1;
}

static const struct family *take_operation(struct reader *r, int32_t *op)
{
    char word[WORD];
    take_word(r, word);
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const int32_t index = index_in(families[i].names, word);
        if (index >= 0) {
            *op = families[i].base + index;
            return &families[i];
        }
    }
    wrong(r, "no operation is called", word);
    return NULL;
}

static int take_operand(struct reader *r, uint8_t *out)
{
    char word[WORD], *end = word + 1;
    take_word(r, word);
    const long index = word[0] ? strtol(word + 1, &end, 10) : -1;
    const int whole = word[0] && end != word + 1 && *end == '\0' && index >= 0;
    if (whole && word[0] == 'x' && index < r->out->n_in)
        *out = (uint8_t)index;
    else if (whole && word[0] == 'r' && index < r->out->n_steps)
        *out = (uint8_t)(PROGRAM_INPUTS + index);
    else
        return wrong(r, "no operand is", word);
    return STRATA_OK;
}

/* Numbers are written as in C, whatever the process's locale. */
static int take_number(struct reader *r, double *out)
{
    char word[WORD], *end;
    const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    const locale_t before = c ? uselocale(c) : (locale_t)0;
    *out = strtod(take_word(r, word), &end);
    const int whole = c && end != word && *end == '\0';
    if (c) {
        uselocale(before);
        freelocale(c);
    }
    return whole ? STRATA_OK : wrong(r, "no number is", word);
}

/* Numbers that are left out are those of the layer. */
static void default_numbers(struct program_step *s)
{
    strata_activation a = {0, 0, STRATA_KIND_DEFAULT, STRATA_KIND_DEFAULT};
    s->alpha = s->op == POINTWISE_AFFINE || program_is_of_bytes(s->op);
    if (s->op < POINTWISE_ACTIVATION)
        return;
    a.kind = s->op - POINTWISE_ACTIVATION;
    s->alpha = strata_activation_alpha(&a);
    s->beta = strata_activation_beta(&a);
}

/* ---- instructions ---------------------------------------------------------------- */

static int take_instruction(struct reader *r)
{
    struct program *p = r->out;
    char word[WORD];
    struct program_step s = {0};
    if (p->n_steps == PROGRAM_STEPS)
        return STRATA_FAIL(r->node, STRATA_EINVAL,
                           "program: more than %d instructions; use two layers",
                           PROGRAM_STEPS);
    const struct family *f = take_operation(r, &s.op);
    uint8_t *const operands[] = {&s.a, &s.b, &s.c};
    double *const numbers[] = {&s.alpha, &s.beta};
    int status = f ? STRATA_OK : STRATA_EINVAL;
    for (int i = 0; status == STRATA_OK && i < f->operands; i++)
        status = take_operand(r, operands[i]);
    if (f)
        default_numbers(&s);
    for (int i = 0; status == STRATA_OK && i < f->numbers && !at_end(r); i++)
        status = take_number(r, numbers[i]);
    if (status != STRATA_OK)
        return status;
    if (f->operands < 2)
        s.b = s.a;
    if (f->operands < 3)
        s.c = s.a;
    if (take_word(r, word)[0] != '\0')
        return wrong(r, "there is more than it takes:", word);
    p->step[p->n_steps++] = s;
    return STRATA_OK;
}

static int gives_truth(int32_t op)
{
    return (op >= POINTWISE_COMPARE &&
            op <= POINTWISE_COMPARE + STRATA_COMPARE_GREATER_EQUAL) ||
           op == POINTWISE_UNARY + STRATA_UNARY_NOT ||
           op == POINTWISE_UNARY + STRATA_UNARY_IS_NAN ||
           op == POINTWISE_ELEMENTWISE + STRATA_AND ||
           op == POINTWISE_ELEMENTWISE + STRATA_OR ||
           op == POINTWISE_ELEMENTWISE + STRATA_XOR;
}

/* What the last instruction gives. */
static void settle_dtype(struct program *p)
{
    const int32_t op = p->step[p->n_steps - 1].op;
    p->dtype = gives_truth(op)                       ? STRATA_BOOL8
               : op == POINTWISE_ROUND + STRATA_FP16 ? STRATA_FP16
               : op == POINTWISE_ROUND + STRATA_BF16 ? STRATA_BF16
               : op == PROGRAM_INT8                  ? STRATA_INT8
               : op == PROGRAM_UINT8                 ? STRATA_UINT8
                                                     : STRATA_FP32;
    p->exact = p->dtype != STRATA_FP32 || op == POINTWISE_COPY;
}

/* ---- rows ------------------------------------------------------------------------ */

/* The last instruction that reads each result; its own where none does. */
static void find_last_uses(const struct program *p, int last[PROGRAM_STEPS])
{
    for (int i = 0; i < p->n_steps; i++) {
        const uint8_t read[] = {p->step[i].a, p->step[i].b, p->step[i].c};
        last[i] = i;
        for (int k = 0; k < 3; k++)
            if (read[k] >= PROGRAM_INPUTS)
                last[read[k] - PROGRAM_INPUTS] = i;
    }
}

/* Give each result a row; an instruction may write over what it reads last. */
static int assign_rows(const strata_node *n, struct program *p)
{
    int last[PROGRAM_STEPS], holds[PROGRAM_KEPT];
    uint8_t row[PROGRAM_STEPS];
    find_last_uses(p, last);
    for (int k = 0; k < PROGRAM_KEPT; k++)
        holds[k] = -1;
    for (int i = 0; i < p->n_steps; i++) {
        struct program_step *s = &p->step[i];
        uint8_t *const read[] = {&s->a, &s->b, &s->c};
        int free = -1;
        for (int k = 0; k < 3; k++)
            if (*read[k] >= PROGRAM_INPUTS)
                *read[k] = row[*read[k] - PROGRAM_INPUTS];
        for (int k = PROGRAM_KEPT - 1; k >= 0; k--)
            if (holds[k] < 0 || last[holds[k]] <= i)
                free = k;
        if (free < 0)
            return STRATA_FAIL(
                n, STRATA_EINVAL,
                "program: %d results are waiting at instruction %d, at most "
                "%d can; use each soon after it is made, or two layers",
                PROGRAM_KEPT + 1, i, PROGRAM_KEPT);
        holds[free] = i;
        row[i] = s->to = (uint8_t)(PROGRAM_INPUTS + free);
    }
    return STRATA_OK;
}

int program_parse(struct program *out, const strata_node *n)
{
    const strata_pointwise *p = (const strata_pointwise *)n->params;
    struct reader r = {n, out, p->program.text, NULL};
    int status = STRATA_OK;
    memset(out, 0, sizeof *out);
    out->n_in = n->n_in;
    r.end = r.at + p->program.length;
    if (n->n_in > PROGRAM_INPUTS)
        return STRATA_FAIL(n, STRATA_EINVAL, "%d inputs; a program takes up to %d",
                           (int)n->n_in, PROGRAM_INPUTS);
    while (status == STRATA_OK) {
        status = take_instruction(&r);
        skip_spaces(&r);
        if (r.at == r.end)
            break;
        r.at++; /* ',' */
    }
    if (status == STRATA_OK)
        settle_dtype(out);
    return status == STRATA_OK ? assign_rows(n, out) : status;
}

bool program_operation(int32_t op, struct program_operation *out)
{
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const char *at = families[i].names;
        for (int32_t own = families[i].base; at; own++) {
            const size_t length = strcspn(at, "|");
            if (own == op && !program_is_of_bytes(op) && length < sizeof out->name) {
                memcpy(out->name, at, length);
                out->name[length] = '\0';
                out->operands = families[i].operands;
                out->numbers = families[i].numbers;
                return true;
            }
            at = at[length] ? at + length + 1 : NULL;
        }
    }
    return false;
}
