/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of an engine: a header with hashes, a table, and named sections. It knows
 * nothing of what is in them. Layout, byte for byte: docs/files/engine.md.
 *
 * A file is hostile input. Header, table, padding and hashes are checked before any byte
 * of a section is given out; then every byte of the file is one that the writer wrote. A
 * hash shows damage, not who wrote the file.
 */
#ifndef IO_ENGINE_FILE_H
#define IO_ENGINE_FILE_H

#include <stdint.h>

#include "io/file.h"

#define ENGINE_FILE_MAJOR 1
#define ENGINE_FILE_MINOR 0
#define ENGINE_FILE_HEADER 128              /* bytes */
#define ENGINE_FILE_ENTRY 64                /* bytes of a section's line in the table */
#define ENGINE_FILE_ALIGNMENT 256           /* bytes; where sections begin */
#define ENGINE_FILE_SECTIONS 16             /* at most */
#define ENGINE_FILE_NAME 16                 /* bytes of a section's name, with its NUL */
#define ENGINE_FILE_MAX (UINT64_C(1) << 36) /* bytes: 64 GiB */

struct engine_section {
    char name[ENGINE_FILE_NAME];
    const void *data; /* not NUL-terminated */
    size_t size;
};

/* What the header says; for people and `strata inspect`. */
struct engine_file_info {
    uint16_t major, minor;
    uint64_t size;
    char builder[32];   /* version of the library that wrote it */
    uint8_t sha256[32]; /* of the SHA-256s of each 1 MiB after the header */
};

struct engine_file {
    struct engine_file_info info;
    struct engine_section sections[ENGINE_FILE_SECTIONS]; /* in the file's order */
    size_t n_sections;
    struct file_bytes bytes; /* the private copy; empty for engine_file_parse */
};

/* Whether bytes begin as an engine file does, sound or not. */
int engine_file_is(const void *bytes, size_t size);
/* Whether a file is meant to be one, also with a damaged beginning, which opening it then
 * tells; 0 also where it cannot be read. */
int engine_file_at(const char *path);

/* Write atomically. Section names are unique, 1 to 15 of [a-z0-9._-]. The same sections
 * and builder give the same bytes. */
int engine_file_write(const char *path, const struct engine_section *sections, size_t n,
                      const char *builder, strata_error *err);
/* STRATA_EPARSE: damaged or not an engine; STRATA_EUNSUPPORTED: of another format
 * version, or with a feature unknown here. The message says what, where, found, needed.
 */
int engine_file_open(struct engine_file *out, const char *path, strata_error *err);
/* The same of bytes in memory, which are copied. */
int engine_file_copy(struct engine_file *out, const void *bytes, size_t size,
                     const char *name, strata_error *err);
/* Over bytes that stay the caller's; `path` is for messages. */
int engine_file_parse(struct engine_file *out, const void *bytes, size_t size,
                      const char *path, strata_error *err);
void engine_file_close(struct engine_file *f);
/* NULL if there is none of the name. */
const struct engine_section *engine_file_find(const struct engine_file *f,
                                              const char *name);

#endif /* IO_ENGINE_FILE_H */
