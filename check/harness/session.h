/* SPDX-License-Identifier: Apache-2.0
 *
 * One impl under guard, step by step: the blocks it sees, its state and ctx, and runs.
 * harness_run is all steps in a row.
 */
#ifndef CHECK_HARNESS_SESSION_H
#define CHECK_HARNESS_SESSION_H

#include "check/harness/harness.h"
#include "check/harness/mirror.h"

#define PACKED_BLOCKS 8 /* of strata.pack/1 in one instance */

enum { PATTERNS = 2 };
/* NaN in FP32 and FP16; then large and odd values. */
extern const unsigned char session_patterns[PATTERNS];

struct session {
    struct harness_node *n;
    const strata_impl *impl;
    struct mirror *mirror; /* of the device; NULL: the host */
    strata_node node;      /* complete tensors */
    strata_tensor in[HARNESS_INPUTS], out[HARNESS_OUTPUTS], weight[HARNESS_WEIGHTS];
    strata_tensor residual, described; /* described: without data, for setup */
    strata_epilogue kinds, epilogue; /* kinds: without pointers, for setup */
    struct block in_block[HARNESS_INPUTS], out_block[HARNESS_OUTPUTS];
    struct block weight_block[HARNESS_WEIGHTS], residual_block;
    struct block scale_block, bias_block;
    struct block workspace, state, ctx, packed[PACKED_BLOCKS];
    int n_packed;
    unsigned char pattern;        /* of the run that was prepared last */
    bool plain_bands;             /* do not poison bands in the second run */
    bool refuse_pack;             /* strata.pack/1 has no memory to give */
    bool set_up, opened;          /* teardown and ctx_close are due */
    const struct session *sharer; /* whose state this one runs on; NULL: its own */
    bool adopted;                 /* it runs on the sharer's ctx, too */
    const char *fault;            /* id of the first thing that broke the contract */
    strata_error err;
    strata_host host;
};

/* The blocks, filled: inputs and weights from values. */
int session_make(struct session *s, struct harness_node *n,
                 const struct registry_impl *impl, int row,
                 const struct harness_formats *formats, const void *const *in,
                 const void *const *weight, const strata_epilogue *epilogue);
/* accept, workspace, setup and ctx_open; EUNSUPPORTED with n->vetoed if accept refused.
 */
int session_open(struct session *s);
/* ctx_open alone, on the state of another session made from the same node and impl. */
int session_share(struct session *s, const struct session *other);
/* The same without a ctx_open: runs are of the other's ctx, at other addresses. */
int session_adopt(struct session *s, const struct session *other);
/* accept and workspace alone: its bytes. */
int session_size(struct session *s, size_t *bytes);
/* Set outputs and workspace to a byte, and bands to NaN with the second pattern, run, wait for it, fetch what it wrote. */
int session_run(struct session *s, unsigned char pattern);
/* The halves of session_run around run itself; prepare does not wait for the device. */
int session_prepare(struct session *s, unsigned char pattern);
int session_fetch(struct session *s);
/* run alone; on a device it is enqueued on the native stream given, or on the handle's.
 */
int session_call(struct session *s, strata_stream *stream);
/* Values of output i. */
void session_read(const struct session *s, int i, void *values);
/* Where output i lies. */
const struct block *session_output_block(const struct session *s, int i);
/* The host's view of output i. */
strata_tensor session_output(const struct session *s, int i);
/* Pads, gaps, bands, and what must not have changed. */
int session_inspect(struct session *s, unsigned char pattern);
/* ctx_close and teardown. */
void session_close(struct session *s);
void session_free(struct session *s);
/* Record a broken rule; the first one counts. Returns EINTERNAL. */
int session_fault(struct session *s, const char *id, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif /* CHECK_HARNESS_SESSION_H */
