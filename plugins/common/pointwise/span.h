/* SPDX-License-Identifier: Apache-2.0
 *
 * Span: the loops over an output's elements with operands of other strides. Dims that lie
 * alike in all operands become one, so most spans are one run, or a run and what repeats
 * around it. Unlike a walk it has no tables: an operand is its strides.
 */
#ifndef PLUGINS_COMMON_POINTWISE_SPAN_H
#define PLUGINS_COMMON_POINTWISE_SPAN_H

#include <strata/plugin.h>

#define SPAN_OPERANDS 10 /* the output first */
#define SPAN_AXES (STRATA_MAX_RANK + 2)

struct span_axis {
    int64_t n, step[SPAN_OPERANDS]; /* elements */
};

/* Axes outermost first; the last two are handed to a tile whole or in parts. */
struct span {
    int32_t operands, axes;
    struct span_axis axis[SPAN_AXES];
    int64_t base[SPAN_OPERANDS];
};

/* m times n elements: operand k's element (i, j) is at
 * base[k] + i*outer->step[k] + j*inner->step[k]. */
typedef void span_tile(const void *arg, const struct span_axis *outer,
                       const struct span_axis *inner, const int64_t *base, int64_t m,
                       int64_t n);

/* Call tile for everything in parts of at most `most` elements, from all threads. Pad
 * lanes are not visited. operand[0] is the output; the others are broadcast to it. */
void span_run(const strata_tensor *const *operand, int operands, int64_t most,
              span_tile *tile, const void *arg);

#endif /* PLUGINS_COMMON_POINTWISE_SPAN_H */
