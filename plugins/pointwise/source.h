/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise's program as CUDA source, for the run-time compiler. C and CUDA.
 */
#ifndef PLUGINS_POINTWISE_SOURCE_H
#define PLUGINS_POINTWISE_SOURCE_H

#include "plugins/common/pointwise/program.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOURCE_BLOCK 256 /* threads */
#define SOURCE_SIZE 8192 /* bytes of a program's own part, at most */
#define SOURCE_FLAT "pointwise_flat"
#define SOURCE_WALK "pointwise_walk"

/* What a program is compiled for, beside its steps. */
struct source_kind {
    int32_t dtype;     /* of the floats */
    uint32_t one;      /* bit i: input i has one element, read as such by flat kernels */
    uint32_t truth;    /* bit i: input i is of BOOL8 */
    int32_t truth_out; /* the output is */
    int32_t flat;      /* all operands lie alike, or have one element */
};

/* Packs of 16 bytes that a thread of a flat kernel loads before the first use. */
int source_packs(const struct program *p, const struct source_kind *kind);

/* The text between source_prelude and source_kernels, which give a kernel
 *   SOURCE_FLAT(job)         where all operands lie alike, or else
 *   SOURCE_WALK(job, walk)
 * The length, or -1 where it is over `size`. */
int source_write(char *to, size_t size, const struct program *p,
                 const struct source_kind *kind);

/* What stands before and behind it. */
extern const char source_prelude[], source_kernels[];

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_POINTWISE_SOURCE_H */
