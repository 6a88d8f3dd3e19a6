/* SPDX-License-Identifier: Apache-2.0
 *
 * The only functions that open files for the library. Messages start with the path.
 *
 * Status: ENOTFOUND for a file that does not exist, EINVAL for a name or a kind of file
 * that is refused, EPARSE for a size beyond the limit, EIO for what the system reports.
 */
#ifndef IO_FILE_H
#define IO_FILE_H

#include <stdbool.h>

#include "core/status.h"

struct file_bytes {
    void *data; /* private; a NUL byte follows the last */
    size_t size;
};

/* Read a regular file whole, at most `limit` bytes. Refuses folders, FIFOs and devices
 * without blocking. Not mapped: a file that another process cuts short is an error here,
 * not a signal later. */
int file_read(struct file_bytes *out, const char *path, uint64_t limit,
              strata_error *err);
/* The same of bytes in memory; `name` is for messages. */
int file_copy(struct file_bytes *out, const void *bytes, size_t size, const char *name,
              strata_error *err);
void file_free(struct file_bytes *f);
/* A regular file's bytes in a private mapping that is read only; no NUL follows, and an
 * empty file has no data. For files too large to be read whole: one that is cut short
 * meanwhile is a signal. */
int file_map(struct file_bytes *out, const char *path, uint64_t limit, strata_error *err);
void file_unmap(struct file_bytes *f);
/* The first bytes of a regular file; how many of `size` there are, 0 where it cannot be
 * read. */
size_t file_head(void *out, size_t size, const char *path);

/* Resolve `name` (relative, as written in a file of folder `base`) to a path inside that
 * folder. Refused, unless `anywhere`: absolute names, "..", symbolic links below `base`
 * (`base` itself may be one), files with more than one hard link, and whatever is not a
 * regular file. *out is malloc-ed. */
int file_resolve(char **out, const char *base, const char *name, int anywhere,
                 strata_error *err);
/* The same for a folder inside that folder; *out is an absolute path. */
int file_resolve_folder(char **out, const char *base, const char *name,
                        strata_error *err);
/* file_resolve and file_read without a moment between check and use in which the file
 * could be exchanged. *path, malloc-ed, is for messages; path may be NULL. */
int file_read_beneath(struct file_bytes *out, char **path, const char *base,
                      const char *name, int anywhere, uint64_t limit, strata_error *err);
/* file_map by the rules of file_resolve, nothing being allowed. */
int file_map_beneath(struct file_bytes *out, const char *base, const char *name,
                     uint64_t limit, strata_error *err);
/* Whether both paths name one file that exists, links followed. */
bool file_same(const char *a, const char *b);
/* Folder part of a path ("." when it has none), malloc-ed. */
char *file_folder(const char *path, strata_error *err);

/* Write atomically: temporary file beside the target, fsync, rename. The old file stays
 * as it was on failure, and gives the new one its permissions. A target that exists and
 * is not a regular file, or is write-protected, is refused. */
int file_write(const char *path, const void *data, size_t size, strata_error *err);
/* The same for several pieces in a row, so that no caller has to join them. */
struct file_piece {
    const void *data;
    size_t size;
};
int file_write_pieces(const char *path, const struct file_piece *pieces, size_t n,
                      strata_error *err);
/* Whether file_write could write there now, for work that takes long before it does. */
int file_writable(const char *path, strata_error *err);
/* Wait for others of this machine that read, change and write a file of the same folder,
 * and keep them waiting until file_unlock. Where no lock can be had there is none (-1).
 */
int file_lock(const char *path);
void file_unlock(int lock);

#endif /* IO_FILE_H */
