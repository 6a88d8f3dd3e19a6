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

/* One part of a launch of many: its packs begin o*step[0] + i*pack*step[1] words in, with
 * i below n. */
struct move_run {
    char *to;
    const char *from;
    int64_t to_step[2], from_step[2]; /* words; outer axis, then inner */
    uint32_t n, count;                /* packs of the inner axis; of both */
    uint32_t magic, shift;            /* of n, as a divisor */
    uint32_t end;                     /* of its blocks, counted over all parts */
};

/* As many as kernel parameters, 4 KiB, hold. */
enum { MOVE_RUNS = 48 };

struct move_list {
    struct move_run run[MOVE_RUNS];
    int32_t n, word, pack; /* word, bytes, and pack are those of all parts */
};

/* cudaError_t of the launch. */
int move_start_list(struct move_list *list, void *stream); /* fills each `end` */
int move_start(const struct move_work *w, void *stream);
int move_start_turned(const struct move_work *w, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_COMMON_MOVE_JOB_H */
