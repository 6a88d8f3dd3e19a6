/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types that are no dtype, as integers of 16 and 4 bits. A value of one has the
 * dtype that holds all of the type's values (onnx_type_carrier), and operators compute in
 * that; where a result may leave the type, a Cast to it follows, which map/cast.c makes a
 * Narrow layer. Operators for which that would not be right are refused.
 */
#ifndef NETWORK_IMPORT_CARRY_H
#define NETWORK_IMPORT_CARRY_H

#include "network/import/private.h"

/* The type of a value's elements in the model. */
enum onnx_type carry_type(const struct value *v);
/* The type as the layer Narrow calls it; NULL: a dtype, or UINT64, which is INT64's bits.
 */
const char *carry_values(enum onnx_type type);
/* Make a value that constant. Its dtype is -1 where nothing holds such elements. */
void carry_constant(struct graph *g, int value, const struct onnx_tensor *t);
/* Make of a node with values of such types one of its carriers, before it is mapped: its
 * inputs may be others then, its outputs are told their types; or refuse it. */
void carry_node(struct import *im, struct node *n);

#endif /* NETWORK_IMPORT_CARRY_H */
