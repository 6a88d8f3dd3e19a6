/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that compute element by element as instructions of a program, as the layers
 * Pointwise and QuantizedPointwise have it.
 */
#ifndef PLANNER_FUSE_PROGRAM_H
#define PLANNER_FUSE_PROGRAM_H

#include "planner/planner.h"

enum { PROGRAM_INSTRUCTIONS = 16 }; /* at most */

/* A program that is written into a made layer. */
struct program_writer {
    struct made_layer *out;
    size_t used;
    int results; /* instructions so far */
    bool full;
};

/* "x2" or "r5" */
struct program_operand {
    char text[16];
};

/* Whether a layer is an instruction. */
bool program_has(const strata_network *net, const struct network_layer *layer);
/* Append one that is, with an operand for each input. */
void program_write(struct program_writer *w, const struct network_layer *layer,
                   const struct program_operand *operands);
/* Append text. */
void program_put(struct program_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Begin an instruction. */
void program_begin(struct program_writer *w, const char *operation);

#endif /* PLANNER_FUSE_PROGRAM_H */
