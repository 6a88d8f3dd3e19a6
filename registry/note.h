/* SPDX-License-Identifier: Apache-2.0
 *
 * Preflight: decide whether a file is a plugin for this host without running it.
 */
#ifndef REGISTRY_NOTE_H
#define REGISTRY_NOTE_H

#include <time.h>

#include "core/status.h"

struct note_result {
    strata_note note;  /* zero where the file failed before its note was understood */
    char build_id[41]; /* hex of the GNU build id, or "" */
    uint64_t device, inode, size; /* identity of the file behind the path */
    struct timespec modified, changed;
};

/* Open the file (no FIFO hangs), check that it is a complete ELF shared object for this
 * machine with a well-formed note of our major. EMODULE with the reason, without the
 * path; ENOMEM or EIO where it could not be read, which says nothing of the file. */
int note_read(struct note_result *out, const char *path, strata_error *err);
/* The same, and all that a loader is led to by the dynamic section; reads more of it. */
int note_examine(struct note_result *out, const char *path, strata_error *err);
/* note_examine over bytes in memory; for tests and fuzzing. */
int note_parse(struct note_result *out, const void *bytes, size_t size,
               strata_error *err);
/* Whether a module with this note fits the host: ABI minor, sanitizer, CUDA. driver is
 * what cuDriverGetVersion gives (12080 for 12.8), 0 where it is unknown. */
int note_accept(const strata_note *note, uint32_t driver, strata_error *err);

#endif /* REGISTRY_NOTE_H */
