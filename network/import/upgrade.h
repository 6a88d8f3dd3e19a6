/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of older opsets as those of the newest, whose schemas only add to opset 21's.
 * A row for each change of an operator's schema: the opset that brought it, and what
 * makes a node of the opset before one of it. Rows are applied in the order of their
 * opsets, so each knows one step, while the graph is folded: shapes of inputs are known,
 * and constants are there. A change that asks nothing of a node has a row without a
 * function: the tests hold the table to the schemas' history. Operators of other domains
 * that standard ones can say are rewritten at once.
 */
#ifndef NETWORK_IMPORT_UPGRADE_H
#define NETWORK_IMPORT_UPGRADE_H

#include "network/import/private.h"

struct upgrade {
    const char *op;
    int versions[12]; /* nodes of older opsets are changed; ended by 0 */
    /* NULL: types were widened, or a default says what was always meant. */
    void (*apply)(struct import *im, struct node *n);
};

struct upgrade_table {
    const struct upgrade *rows;
    size_t n;
};

/* Families (upgrade/), ended by NULL. */
extern const struct upgrade_table *const upgrade_tables[];

struct rewrite {
    const char *op, *domain;
    void (*apply)(struct import *im, struct node *n);
};

struct rewrite_table {
    const struct rewrite *rows;
    size_t n;
};
extern const struct rewrite_table upgrade_attention, upgrade_deform, upgrade_few_bits,
    upgrade_microsoft, upgrade_quantized;

/* Whether the row is for that version. */
bool upgrade_is_for(const struct upgrade *u, int version);
/* The oldest change of an operator after a version; NULL, with *version 0: none. */
const struct upgrade *upgrade_next(const char *op, int64_t after, int *version);
/* Make the node one of GRAPH_OPSET; or refuse it. What it needs further is at the list's
 * end, in any order. */
void upgrade_node(struct import *im, struct node *n);

/* ---- for the functions of rows -------------------------------------------------------
 */

const struct value *upgrade_input(const struct import *im, const struct node *n, int i);
/* A node with one output, named after n; returned. Attributes are for node_set. */
struct node *upgrade_add(struct import *im, const struct node *n, const char *op,
                         const int *in, int n_in);
/* The output of a node that was made; VALUE_NONE of NULL. */
int upgrade_value(const struct node *made);
/* The output of such a node of two inputs; of a Cast. */
int upgrade_two(struct import *im, const struct node *n, const char *op, int a, int b);
int upgrade_cast(struct import *im, const struct node *n, int value, enum onnx_type to);
/* A part of the last of three dims. */
int upgrade_part(struct import *im, const struct node *n, int value, int64_t begin,
                 int64_t end);
/* The node is that operator of ai.onnx. */
void upgrade_standard(struct node *n, const char *op);
/* A further node between output i of n and all that reads it. */
struct node *upgrade_after(struct import *im, struct node *n, int i, const char *op);
/* The value with these dims. */
int upgrade_reshape(struct import *im, const struct node *n, int value, int rank,
                    const int64_t *dims);
/* Constants of a float dtype; rank 0: one. */
int upgrade_reals(struct import *im, int dtype, int rank, const double *v, int64_t n);
/* The node, of attributes heads, dims, interleaved and turned_heads, as a layer that
 * turns its first input: by positions (VALUE_NONE: from 0) and tables of cosines and
 * sines. */
void upgrade_rotary(struct import *im, struct node *n, int positions, int cos, int sin);
/* A node of the newest opset whose layer would hold weights that are computed: what does
 * not, of the same result. (upgrade/computed.c) */
void upgrade_computed(struct import *im, struct node *n);
/* Attribute `name`, integers or one, as constant input i of the node. */
void upgrade_move(struct import *im, struct node *n, const char *name, int i);

/* Attention of grouped queries (grouped.c): a function of a row. */
void upgrade_grouped(struct import *im, struct node *n);

#endif /* NETWORK_IMPORT_UPGRADE_H */
