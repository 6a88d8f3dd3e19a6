/* SPDX-License-Identifier: Apache-2.0
 *
 * What plugins/common/move/move.c hands to the kernels of plugins/common/move/move.cu:
 * axes in units of the word that is moved, fewer than 2^31 of them in all.
 */
#ifndef PLUGINS_COMMON_MOVE_JOB_H
#define PLUGINS_COMMON_MOVE_JOB_H

#include "plugins/common/move/move.h"

#ifdef __cplusplus
extern "C" {
#endif

struct move_work {
    struct move_job job; /* axes outermost first, the last counted in packs */
    uint32_t magic[MOVE_AXES], shift[MOVE_AXES]; /* of each axis' n, as a divisor */
    int32_t word;                                /* bytes */
    int32_t widened;                             /* log2 of the elements of a word */
    int32_t pack;   /* consecutive words that a thread writes at once */
    uint32_t count; /* packs */
    int32_t turned; /* axis along which the input is contiguous while the output is
                       along the last one, or -1 */
};

/* cudaError_t of the launch. */
int move_start(const struct move_work *w, void *stream);
int move_start_turned(const struct move_work *w, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_COMMON_MOVE_JOB_H */
