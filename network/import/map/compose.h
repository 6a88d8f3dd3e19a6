/* SPDX-License-Identifier: Apache-2.0
 *
 * One operator as several layers, one after another. Each gives a value in between, that
 * the next ones read; the last is then made an output of the node. Without memory, or
 * after a refusal, values are VALUE_NONE and nothing is made.
 */
#ifndef NETWORK_IMPORT_MAP_COMPOSE_H
#define NETWORK_IMPORT_MAP_COMPOSE_H

#include "network/import/map.h"

/* Input i of the node as a value; VALUE_NONE: absent. */
int compose_input(const struct mapping *m, int i);
/* A layer that reads these, as m->s; its attributes are then set there. What it gives. */
int compose(struct mapping *m, const char *type, const int *in, int n);
int compose_one(struct mapping *m, const char *type, int x);
int compose_two(struct mapping *m, const char *type, int a, int b);
/* ElementWise, Compare or Unary; b VALUE_NONE: of one operand. */
int compose_op(struct mapping *m, const char *type, const char *op, int a, int b);
int compose_cast(struct mapping *m, int x, int dtype);
/* The values of a type that is no dtype, by the node's `saturate` and `round_mode`. */
int compose_narrow(struct mapping *m, int x, enum onnx_type type);
/* Shuffles: other dims; dims in the order of perm, then `shape` if rank > 0. A step that
 * changes nothing makes no layer. */
int compose_reshape(struct mapping *m, int x, int rank, const int64_t *shape);
int compose_transpose(struct mapping *m, int x, int from_rank, const int64_t *perm,
                      int rank, const int64_t *shape);
int compose_reduce(struct mapping *m, const char *op, int x, const int64_t *axes, int n,
                   bool keep);
/* Attributes of a window, of m->s. */
void compose_window(struct mapping *m);
/* What m->s gives is output i of the node; rank -1: the layer's. */
void compose_end(struct mapping *m, int i, int rank);
/* A value, made of layers of the node or not, is output i. */
void compose_is(struct mapping *m, int i, int value, int rank, const int64_t *dims);

/* Whether numbers of an attribute are in [least, 2^31); else the node is refused. */
bool compose_fits(struct mapping *m, const char *name, const int64_t *v, int64_t n,
                  int64_t least);
/* Room for a constant of these dims, in the arena; NULL, and refused, beyond what is
 * folded. */
void *compose_room(struct mapping *m, size_t size, const int64_t *dims, int n);
/* Constants: one number of a dtype; FP32 or i64 of a list. */
int compose_number(struct mapping *m, int dtype, double v);
int compose_reals(struct mapping *m, int rank, const int64_t *dims, const double *v);
/* A constant, converted to FP64; NULL: no memory, or none of that count. In the arena. */
double *compose_values(struct mapping *m, const struct value *v);

#endif /* NETWORK_IMPORT_MAP_COMPOSE_H */
