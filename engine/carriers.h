/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the process that help with copies on the host: one thread moves a fifth of
 * what a GPU's link takes. They sleep between jobs, so they cost nothing meanwhile, and
 * are woken for jobs that are longer than waking. No team of OpenMP: that would be each
 * caller's own, and would spin.
 */
#ifndef ENGINE_CARRIERS_H
#define ENGINE_CARRIERS_H

#include <stdbool.h>
#include <stddef.h>

enum { CARRIERS_MOST = 5 }; /* beside the caller */

/* Work in pieces that any thread may take; the caller's. */
struct carriers_job {
    struct carriers_job *next;
    /* Do a piece, as one of 0 (the caller) to CARRIERS_MOST; false: none is left. */
    bool (*piece)(struct carriers_job *job, int who);
    int joined, working; /* of the carriers */
    bool drained;
};

/* Each who will have jobs, and when that is over; with the last one the threads end.
 * Without any the caller works alone. */
void carriers_open(void);
void carriers_close(void);
/* A job of so many pieces. The calling thread works, too, and others are woken for two
 * pieces each; on return none is left or under way. */
void carriers_run(struct carriers_job *job, size_t pieces);

#endif /* ENGINE_CARRIERS_H */
