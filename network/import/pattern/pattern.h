/* SPDX-License-Identifier: Apache-2.0
 *
 * Several operators that are one layer. A pattern is text, statements between ';':
 *
 *     d = Div x 1.41421356; e = Erf d; s = Add e 1; m = Mul x s; y = Mul m 0.5
 *
 * Names in lower case are values: of a statement, or inputs of the whole. Names in upper
 * case are constants, which `check` looks at; a number is a constant all of whose
 * elements are that number. Op|Op takes either, strata::Op one of our own (map/own.c);
 * ... stands for further inputs that are constant or absent. Operands of an operator that
 * commutes come in either order. What a statement makes, but for the last one, is read
 * inside of the pattern alone and is no output of the network.
 *
 * `emit` adds nodes; what the last one makes takes the place of the last statement's
 * value. Where the layers refuse that, or give other dims, the model stays as it was: so
 * `check` asks only what shapes do not tell.
 */
#ifndef NETWORK_IMPORT_PATTERN_PATTERN_H
#define NETWORK_IMPORT_PATTERN_PATTERN_H

#include "network/import/private.h"

enum { PATTERN_STATEMENTS = 12, PATTERN_ARGS = 4, PATTERN_NAMES = 24 };

struct match;

struct pattern {
    const char *text;
    bool (*check)(const struct match *m); /* NULL: the text says all */
    struct node *(*emit)(struct match *m);
    const char *word; /* for emit: the kind of an Activation */
};

/* A table is a step: its rows are tried at every node, the first ones first, readers
 * before producers, until nothing changes. Or a function is, which looks at the graph as
 * a whole: its text would have no end. */
struct pattern_table {
    const struct pattern *rows;
    size_t n;
    int (*sweep)(struct import *im, bool *changed, strata_error *err);
};

extern const struct pattern_table *const pattern_tables[]; /* in order; ended by NULL */

/* ---- for check and emit --------------------------------------------------------------
 */

/* By the name in the text: a value; the node of a statement. VALUE_NONE and NULL where
 * the text has no such name. */
int match_value(const struct match *m, const char *name);
const struct value *match_tensor(const struct match *m, const char *name);
const struct node *match_node(const struct match *m, const char *name);
/* Whether a dim of a value may have several sizes in the network that is made. */
bool match_may_vary(const struct match *m, const char *name, int dim);
const char *match_word(const struct match *m);
struct graph *match_graph(const struct match *m);
/* Whether the statement's operator is that one. */
bool match_op(const struct match *m, const char *name, const char *op);
/* The number that all elements of a constant are; NaN: they differ. */
double match_number(const struct match *m, const char *name);
/* Whether x is that number, as well as constants in a model are. */
bool match_near(double x, double number);
/* A constant's elements as FP32 of these dims; VALUE_NONE: it has another count, and is
 * not of one element, which stands for all. */
int match_constant(struct match *m, const char *name, int rank, const int64_t *dims,
                   double factor);

/* A node of ai.onnx, or of our own domain. */
struct node *match_add(struct match *m, const char *op, const int *in, int n);
struct node *match_own(struct match *m, const char *op, const int *in, int n);
/* The same operator as a statement's, with its attributes and its inputs. */
struct node *match_again(struct match *m, const char *name);

/* Rows may need what others made: also declared by map/own.c. */
#define PATTERN_DOMAIN "strata"

#endif /* NETWORK_IMPORT_PATTERN_PATTERN_H */
