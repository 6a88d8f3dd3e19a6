/* SPDX-License-Identifier: Apache-2.0
 *
 * What a module must leave as it is, of the process that loads it.
 */
#ifndef CHECK_ENVIRONMENT_H
#define CHECK_ENVIRONMENT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct environment {
    char locale[256], folder[1024];
    unsigned rounding; /* mode, denormals, unmasked exceptions */
    mode_t mask;
    sigset_t blocked;
    void *handlers[8];
    int descriptors, threads, devices; /* open files; of these, accelerators */
    uint64_t variables; /* a hash of the environment's variables; 0: not compared */
};

void environment_take(struct environment *e);
/* Whether the process has as many files open as it may. */
bool environment_is_full(const struct environment *e);
/* The rule of the first thing that differs, with what was seen in text; NULL: none.
 * More descriptors, threads and devices only count where `loading` is set. The process is
 * put back to what `before` says, as far as it can be. */
const char *environment_compare(const struct environment *before, int loading, char *text,
                                unsigned long size);

#endif /* CHECK_ENVIRONMENT_H */
