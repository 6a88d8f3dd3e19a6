/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a pattern, taken apart.
 */
#ifndef NETWORK_IMPORT_PATTERN_PARSE_H
#define NETWORK_IMPORT_PATTERN_PARSE_H

#include "network/import/pattern/pattern.h"

struct token {
    const char *at; /* in the pattern's text */
    int n;
};

enum arg_kind { ARG_INPUT, ARG_CONSTANT, ARG_NUMBER, ARG_INNER };

struct arg {
    enum arg_kind kind;
    int name; /* of INPUT and CONSTANT */
    int statement;
    double number;
};

struct statement {
    struct token ops; /* "Div|Mul" */
    struct arg args[PATTERN_ARGS];
    int n_args;
    int name;
    int reads; /* by other statements */
    bool rest; /* ... */
};

struct parsed {
    struct statement statements[PATTERN_STATEMENTS];
    struct token names[PATTERN_NAMES];
    int n, n_names;
    unsigned swaps; /* a bit for each statement whose operands may commute */
};

/* false: the text is none; a defect. */
bool pattern_parse(struct parsed *p, const char *text);
bool token_is(struct token t, const char *text);
/* -1: none of that name. */
int parsed_name(const struct parsed *p, const char *name);
/* Whether the node's operator is one of the statement's. */
bool statement_takes(const struct statement *s, const struct node *n);
bool node_commutes(const struct node *n);

#endif /* NETWORK_IMPORT_PATTERN_PARSE_H */
