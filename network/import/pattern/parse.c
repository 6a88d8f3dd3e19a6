/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns' statements.
 */
#include "network/import/pattern/parse.h"

#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

bool token_is(struct token t, const char *text)
{
    return strlen(text) == (size_t)t.n && memcmp(t.at, text, (size_t)t.n) == 0;
}

static struct token next_token(const char **at)
{
    const char *from = *at + strspn(*at, " ");
    const size_t n = *from == ';' ? 1 : strcspn(from, " ;");
    *at = from + n;
    return (struct token){from, (int)n};
}

/* The name's number; new ones are added. -1: there are too many. */
static int name_of(struct parsed *p, struct token t)
{
    for (int i = 0; i < p->n_names; i++)
        if (p->names[i].n == t.n && memcmp(p->names[i].at, t.at, (size_t)t.n) == 0)
            return i;
    if (p->n_names == PATTERN_NAMES)
        return -1;
    p->names[p->n_names] = t;
    return p->n_names++;
}

static int statement_of(const struct parsed *p, int name)
{
    for (int i = 0; i < p->n; i++)
        if (p->statements[i].name == name)
            return i;
    return -1;
}

static bool parse_arg(struct parsed *p, struct statement *s, struct token t)
{
    char *end;
    if (token_is(t, "...")) {
        s->rest = true;
        return true;
    }
    if (s->n_args == PATTERN_ARGS)
        return false;
    struct arg *a = &s->args[s->n_args++];
    if (strchr("-.0123456789", *t.at)) {
        *a = (struct arg){.kind = ARG_NUMBER, .number = text_to_real(t.at, &end)};
        return end == t.at + t.n;
    }
    a->name = name_of(p, t);
    a->statement = statement_of(p, a->name);
    a->kind = a->statement >= 0              ? ARG_INNER
              : *t.at >= 'A' && *t.at <= 'Z' ? ARG_CONSTANT
                                             : ARG_INPUT;
    if (a->kind == ARG_INNER)
        p->statements[a->statement].reads++;
    return a->name >= 0;
}

static bool parse_statement(struct parsed *p, const char **at)
{
    struct statement *s = &p->statements[p->n];
    struct token t = next_token(at);
    s->name = name_of(p, t);
    if (s->name < 0 || statement_of(p, s->name) >= 0 || !token_is(next_token(at), "="))
        return false;
    s->ops = next_token(at);
    for (t = next_token(at); t.n && !token_is(t, ";"); t = next_token(at))
        if (!parse_arg(p, s, t))
            return false;
    p->n++;
    return s->ops.n > 0;
}

/* The next of a|b|c. */
static struct token next_op(struct token *ops)
{
    const char *bar = memchr(ops->at, '|', (size_t)ops->n);
    const struct token op = {ops->at, bar ? (int)(bar - ops->at) : ops->n};
    const int used = op.n + (bar != NULL);
    ops->at += used;
    ops->n -= used;
    return op;
}

static bool op_commutes(struct token op)
{
    static const char *const ops[] = {"Add", "Mul", "Max", "Min", "Sum"};
    for (size_t i = 0; i < ARRAY_LENGTH(ops); i++)
        if (token_is(op, ops[i]))
            return true;
    return false;
}

bool node_commutes(const struct node *n)
{
    return !*n->domain && n->n_in == 2 &&
           op_commutes((struct token){n->op, (int)strlen(n->op)});
}

bool pattern_parse(struct parsed *p, const char *text)
{
    *p = (struct parsed){.n = 0};
    while (*text)
        if (p->n == PATTERN_STATEMENTS || !parse_statement(p, &text))
            return false;
    for (int i = 0; i < p->n; i++) {
        struct token ops = p->statements[i].ops;
        bool commutes = false;
        while (ops.n)
            commutes |= op_commutes(next_op(&ops));
        p->swaps |= commutes && p->statements[i].n_args == 2 ? 1u << i : 0;
    }
    return p->n > 0;
}

int parsed_name(const struct parsed *p, const char *name)
{
    for (int i = 0; i < p->n_names; i++)
        if (token_is(p->names[i], name))
            return i;
    return -1;
}

bool statement_takes(const struct statement *s, const struct node *n)
{
    static const char own[] = PATTERN_DOMAIN "::";
    for (struct token ops = s->ops; ops.n;) {
        struct token op = next_op(&ops);
        const bool is_own =
            op.n >= (int)sizeof own && memcmp(op.at, own, sizeof own - 1) == 0;
        if (is_own) {
            op.at += sizeof own - 1;
            op.n -= (int)sizeof own - 1;
        }
        if (token_is(op, n->op) && strcmp(n->domain, is_own ? PATTERN_DOMAIN : "") == 0)
            return true;
    }
    return false;
}
