/* SPDX-License-Identifier: Apache-2.0
 *
 * States: the tensors of a network's [state NAME] sections, which a context keeps from
 * run to run, as the caches of attention and what a recurrent layer remembers. Each
 * context has its own; an engine only says which there are. Their first dim counts rows,
 * a row of the batch or a sequence each: rows are reset, saved, restored and copied
 * alone.
 *
 * Where a network has no states, these calls do nothing and succeed.
 *
 * All calls wait for the runs under way, and give their failure, but for reset and
 * restore, which put it right; like every call of a context they are for one thread at a
 * time. A run that fails in the middle leaves its states half changed: later runs are
 * then refused, with EINVAL, until all states have been reset or restored. That a state
 * counts past its room is found when a run is waited for: EOVERFLOW names state and row.
 * What the layers wrote outside of a cache's room is lost, everything else is as it would
 * be; the row must be reset or restored.
 */
#ifndef STRATA_STATE_H
#define STRATA_STATE_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* States in the network's order; one as strata_engine_binding describes a binding, whose
 * is_input is 1. Any thread. */
STRATA_API int strata_engine_states(const strata_engine *engine);
STRATA_API int strata_engine_state(const strata_engine *engine, int index,
                                   strata_binding *out, strata_error *err);

enum { STRATA_ALL_ROWS = -1 };
/* A row of all states, or all rows, as before the first run: every element is the `value`
 * of its [state] section. EINVAL: a state has fewer rows; nothing is changed then. */
STRATA_API int strata_context_reset_state(strata_context *context, int64_t row,
                                          strata_error *err);
/* Row `to` of all states becomes what row `from` is: a beam forks. EINVAL as above. */
STRATA_API int strata_context_copy_state(strata_context *context, int64_t from,
                                         int64_t to, strata_error *err);
/* Bytes that a row of all states, or all rows, are saved in; 0: there is no such row. */
STRATA_API size_t strata_context_state_bytes(const strata_context *context, int64_t row);
/* To and from memory of the caller, on the host, of strata_context_state_bytes(context,
 * row) bytes, which may be kept in a file and restored by another context, process or
 * engine of a network with the same states. A row may be restored as another. EINVAL: no
 * such row, or fewer bytes; EPARSE: the bytes are no states, or not these; nothing is
 * changed then. */
STRATA_API int strata_context_save_state(strata_context *context, int64_t row, void *data,
                                         size_t size, strata_error *err);
STRATA_API int strata_context_restore_state(strata_context *context, int64_t row,
                                            const void *data, size_t size,
                                            strata_error *err);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_STATE_H */
