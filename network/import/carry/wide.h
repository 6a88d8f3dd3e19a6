/* SPDX-License-Identifier: Apache-2.0
 *
 * UINT64 as INT64 of the same bits: what differs by how the highest one counts, as other
 * operators on INT64. The node becomes the last of them.
 */
#ifndef NETWORK_IMPORT_CARRY_WIDE_H
#define NETWORK_IMPORT_CARRY_WIDE_H

#include "network/import/upgrade.h"

/* The inputs of the mask, or output 0, in the order that UINT64 has. */
void wide_order_inputs(struct import *im, struct node *n, unsigned operands);
void wide_order_output(struct import *im, struct node *n);
/* A Cast to a float that can be added, or from one. */
void wide_cast_to(struct import *im, struct node *n, enum onnx_type to);
void wide_cast_from(struct import *im, struct node *n, enum onnx_type from);
/* BitShift to the right, Div and Mod. */
void wide_shift_right(struct import *im, struct node *n);
void wide_divide(struct import *im, struct node *n);
void wide_remain(struct import *im, struct node *n);

#endif /* NETWORK_IMPORT_CARRY_WIDE_H */
