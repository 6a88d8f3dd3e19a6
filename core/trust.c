/* SPDX-License-Identifier: Apache-2.0
 *
 * Owner and mode of a plugin file and of the folder it is in.
 */
#include "core/trust.h"

#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

static int check_owner(const struct stat *st, const char *path, strata_error *err)
{
    if (st->st_uid == 0 || st->st_uid == geteuid())
        return STRATA_OK;
    return error_set(err, STRATA_EMODULE,
                     "not trusted: '%s' belongs to user %u, need root or user %u; "
                     "chown %u '%s'",
                     path, st->st_uid, geteuid(), geteuid(), path);
}

static int check_mode(const struct stat *st, const char *path, strata_error *err)
{
    const char *who = (st->st_mode & S_IWOTH) ? "everyone" : "its group";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return STRATA_OK;
    return error_set(err, STRATA_EMODULE,
                     "not trusted: '%s' can be written by %s; chmod go-w '%s'", path, who,
                     path);
}

int trust_check(const char *resolved, bool named, strata_error *err)
{
    struct stat file, folder;
    char *copy = duplicate(resolved, err);
    if (!copy)
        return STRATA_ENOMEM;
    const char *parent = dirname(copy);
    int status = STRATA_OK;
    if (stat(resolved, &file) != 0)
        status =
            error_errno(err, STRATA_EMODULE, "cannot read the owner of '%s'", resolved);
    else if (stat(parent, &folder) != 0)
        status =
            error_errno(err, STRATA_EMODULE, "cannot read the owner of '%s'", parent);
    if (status == STRATA_OK)
        status = check_owner(&file, resolved, err);
    if (status == STRATA_OK)
        status = check_mode(&file, resolved, err);
    if (status == STRATA_OK)
        status = check_owner(&folder, parent, err);
    /* Sticky: others can add files there, but not replace this one. */
    if (status == STRATA_OK &&
        !(named && (folder.st_mode & S_ISVTX) && file.st_uid == geteuid()))
        status = check_mode(&folder, parent, err);
    free(copy);
    return status;
}

int trust_path(const char *path, strata_error *err)
{
    char *resolved = realpath(path, NULL);
    if (!resolved)
        return error_errno(err, STRATA_EMODULE, "cannot resolve '%s'", path);
    int status = trust_check(resolved, false, err);
    free(resolved);
    return status;
}
