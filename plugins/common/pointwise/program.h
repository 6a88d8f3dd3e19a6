/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise's program, from text to steps: operations on rows of values in FP32, where a
 * row is an input, or a result that a later step reads. C and CUDA.
 */
#ifndef PLUGINS_COMMON_POINTWISE_PROGRAM_H
#define PLUGINS_COMMON_POINTWISE_PROGRAM_H

#include <stdbool.h>

#include <strata/layers.h>

#include "plugins/common/pointwise/operations.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PROGRAM_STEPS 16
#define PROGRAM_INPUTS 8
#define PROGRAM_KEPT 4 /* results that are held at once */

/* Of QuantizedPointwise alone, beside POINTWISE_DEQUANTIZE; both have the numbers scale
 * and zero, alpha and beta of a step. */
#define PROGRAM_INT8 110
#define PROGRAM_UINT8 111

static inline bool program_is_of_bytes(int32_t op)
{
    return op == POINTWISE_DEQUANTIZE || op == PROGRAM_INT8 || op == PROGRAM_UINT8;
}

/* The number of a row: an input's own, or PROGRAM_INPUTS and more for a result. */
struct program_step {
    int32_t op; /* of plugins/common/pointwise/operations.h */
    uint8_t to, a, b, c;
    double alpha, beta;
};

struct program {
    int32_t n_steps, n_in;
    int32_t
        dtype; /* of the output: STRATA_FP32 for any float, or as the last step says */
    int32_t exact; /* the output's dtype is the program's, not the plan's */
    struct program_step step[PROGRAM_STEPS];
};

/* Read the text for a node's inputs. STRATA_OK, or a message with the instruction that is
 * wrong, in n->err. */
int program_parse(struct program *out, const strata_node *n);

/* How a program's text calls an operation of Pointwise, and what it takes there. */
struct program_operation {
    char name[24];
    int32_t operands, numbers;
};
bool program_operation(int32_t op, struct program_operation *out);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_COMMON_POINTWISE_PROGRAM_H */
