/* SPDX-License-Identifier: Apache-2.0
 *
 * Which module files have been opened before without harm, kept in the user's cache
 * folder: $XDG_CACHE_HOME/strata, or ~/.cache/strata. A file is told by device, inode,
 * size and times; ctime changes with any write and cannot be set back.
 */
#ifndef REGISTRY_TRIAL_KNOWN_H
#define REGISTRY_TRIAL_KNOWN_H

#include "registry/module.h"

struct known {
    int fd; /* of the record file; -1: there is none to trust */
    char *text;
};

/* Open and read the record. Without a folder, or with one that others could have written,
 * k->fd is -1; ENOMEM alone is an error. */
int known_open(struct known *k, strata_error *err);
void known_close(struct known *k);
bool known_has(const struct known *k, const struct module *m);
/* Add a file; a failure to write costs another trial, no more. */
void known_add(struct known *k, const struct module *m);

#endif /* REGISTRY_TRIAL_KNOWN_H */
