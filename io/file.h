/* SPDX-License-Identifier: Apache-2.0
 *
 * The only functions that open files for the library.
 */
#ifndef IO_FILE_H
#define IO_FILE_H

#include "core/status.h"

struct file_bytes {
    void *data; /* private; a NUL byte follows the last */
    size_t size;
};

/* Read a regular file whole, at most `limit` bytes. Refuses folders, FIFOs and devices
 * without blocking. Messages start with the path. */
int file_read(struct file_bytes *out, const char *path, uint64_t limit,
              strata_error *err);
void file_free(struct file_bytes *f);

/* Resolve `name` (relative, as written in a file of folder `base`) to a path inside that
 * folder: absolute names, "..", and symbolic links that leave are refused unless
 * `anywhere`. *out is malloc-ed. */
int file_resolve(char **out, const char *base, const char *name, int anywhere,
                 strata_error *err);
/* Folder part of a path ("." when it has none), malloc-ed. */
char *file_folder(const char *path, strata_error *err);
/* Write atomically: temporary file beside the target, fsync, rename. */
int file_write(const char *path, const void *data, size_t size, strata_error *err);

#endif /* IO_FILE_H */
