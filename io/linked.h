/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores of files by their content, as that of Hugging Face: all files lie in one folder,
 * and their names in others are symbolic links to them.
 */
#ifndef IO_LINKED_H
#define IO_LINKED_H

#include "io/file.h"

/* Where `path` is a symbolic link: the folder of what it leads to, malloc-ed; else NULL.
 */
int linked_folder(char **out, const char *path, strata_error *err);
/* Whether `name`, or a folder of it, is a symbolic link below `base`. */
int linked_name(bool *out, const char *base, const char *name, strata_error *err);
/* file_map_beneath of what base/name leads to, which has to lie in `folder` itself, as
 * linked_folder tells it. */
int linked_map(struct file_bytes *out, const char *base, const char *name,
               const char *folder, uint64_t limit, strata_error *err);

#endif /* IO_LINKED_H */
