/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of many parts: requests that lie apart in memory, on the host or on GPUs, as one
 * batch. What the batcher does with those it has gathered, for servers that gather them
 * themselves; and what was copied for it.
 */
#ifndef STRATA_PARTS_H
#define STRATA_PARTS_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STRATA_MEMORY_HOST,  /* pageable or pinned */
    STRATA_MEMORY_DEVICE /* of a device of the engine's kind, which the host cannot touch
                          */
};

typedef struct strata_memory {
    void *data;
    uint64_t bytes;
    int32_t kind;   /* STRATA_MEMORY_* */
    int32_t device; /* of STRATA_MEMORY_DEVICE: its number, the N of "cuda:N" */
} strata_memory;

/* Rows of one request. Its memory is the caller's, for the call alone. */
typedef struct strata_part {
    size_t struct_size;
    int64_t rows;
    /* Each input in one piece or in several that follow each other, in the engine's
     * order: `rows` rows in the binding's format, the whole of a binding that has no
     * rows. Pad lanes are zero. */
    const strata_memory *inputs;
    const uint32_t *pieces; /* of each input; NULL: one */
    /* Each output in one piece, of at least its rows' bytes; data NULL, or outputs NULL:
     * not wanted. */
    const strata_memory *outputs;
    int status; /* out */
} strata_part;

/* Run the parts together, complete on return: rows as they follow each other, at most
 * strata_engine_batch of them, at the sizes that the context is set to. What the caller
 * set for later runs stays. A part that is wrong in itself (EINVAL) is left out; if the
 * run fails, each part is run alone. Either way the others are right, each part's status
 * says how it went, and the call gives that of one that failed, with its message: the
 * first that was left out, or else the first that failed alone.
 * EINVAL for all: they have too many rows, or more than one where the network has states
 * or inputs without rows. On the host the calling thread computes as in
 * strata_context_run; a lone part that fills the batch it runs at is read and written in
 * place where its memory is aligned to 256 bytes. Memory of a device other than the
 * context's is copied from one to the other. An input that all who read it round to FP16
 * may be so in strata_context_data afterwards. */
STRATA_API int strata_context_run_parts(strata_context *context, strata_part *parts,
                                        size_t n, strata_error *err);

/* Whether runs wait, on the device, for the run before them of another context of the
 * engine that takes turns; no thread waits, nor any copy. What two runs gain by sharing
 * a device is lost then, and what each copies while the other computes is won. */
enum {
    STRATA_TURNS_AUTO = 0, /* where it was found to pay; the default */
    STRATA_TURNS_OFF = -1,
    STRATA_TURNS_ON = 1 /* all runs, strata_context_enqueue's too; not on the host */
};
/* STRATA_TURNS_AUTO: runs of parts on the handle's own stream of a device other than the
 * host, of an engine whose plans' costs were measured, where what is copied from and to
 * the host would take a quarter of the run or more. Plans by a model's costs leave so
 * much of a device unused that their runs gain more by sharing it. */
STRATA_API int strata_context_set_turns(strata_context *context, int use,
                                        strata_error *err);
/* What runs of the engine's largest batch from and to the host do, and why: a sentence
 * that stays. NULL of NULL; by the thread that uses the context. */
STRATA_API const char *strata_context_turns(const strata_context *context);

/* Of all calls of the context so far. */
typedef struct strata_context_stats {
    size_t struct_size;
    uint64_t runs;
    uint64_t copied_in, copied_out; /* bytes between bindings and other memory */
    uint64_t cross_device;          /* of these: from or to another device */
    uint64_t in_place;              /* runs of parts whose memory was used where it is */
} strata_context_stats;
/* EBUSY while another thread is in a call of the context. */
STRATA_API int strata_context_get_stats(const strata_context *context,
                                        strata_context_stats *out, strata_error *err);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_PARTS_H */
