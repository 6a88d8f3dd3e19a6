/* SPDX-License-Identifier: Apache-2.0
 *
 * The folders of this installation. A tree that was moved, or is used from its stage
 * (DESTDIR), has them beside the file that holds this code: libstrata, or a program that
 * links its archive. Any thread may ask.
 */
#ifndef CORE_INSTALLED_H
#define CORE_INSTALLED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { INSTALLED_FOLDERS = 2 };
enum installed_part {
    INSTALLED_PLUGINS,
    INSTALLED_DEVICES,
    INSTALLED_PROGRAMS,
    INSTALLED_PARTS
};

struct installed_folder {
    char path[PATH_MAX];
};

struct installed_file {
    char path[PATH_MAX];                /* without symbolic links; "" if not known */
    const char *folder;                 /* where configure meant it to be, */
    const char *parts[INSTALLED_PARTS]; /* and these */
    bool privileged; /* AT_SECURE: who runs it may have linked it to anywhere */
};

/* The folders to search for a part, first to last; returns their number. One, where the
 * tree is where it was configured for, or has its plugins beside it in another place; if
 * they are missing there, two, and the last is the configured one. Privileged programs
 * get the configured one alone. */
size_t installed_folders(struct installed_folder out[INSTALLED_FOLDERS],
                         enum installed_part part);

/* The same for a given file. */
size_t installed_folders_of(struct installed_folder out[INSTALLED_FOLDERS],
                            const struct installed_file *file, enum installed_part part);

/* Where `wanted` is, after a tree that had `file` in `folder` was moved as a whole. False
 * if it was not, as its folder has another name; if the two folders have no more than /
 * in common; or if the result is no path. */
bool installed_beside(char out[PATH_MAX], const char *file, const char *folder,
                      const char *wanted);

/* The user's cache folder, or a part of it: $XDG_CACHE_HOME/strata/PART, else
 * ~/.cache/strata/PART. It is made where it is missing. False where there is none that is
 * the user's own and nobody else may write to, and errno is 0; or where `out` cannot be
 * made, and errno says why. Privileged programs have none. */
bool installed_cache(char out[PATH_MAX], const char *part);

#endif /* CORE_INSTALLED_H */
