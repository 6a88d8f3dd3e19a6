/* SPDX-License-Identifier: Apache-2.0
 *
 * Owner and mode of a plugin file and of every folder above it, from the root down. Each
 * is opened in the one before, which by then only root and the user can change: when the
 * file is reached, nobody else can make its path lead elsewhere.
 */
#include "core/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Open `name` in the folder that *at holds and put it in its place; links are refused. */
static int descend(int *at, const char *name, int flags, const char *path,
                   struct stat *st, strata_error *err)
{
    int next = openat(*at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags);
    if (*at >= 0)
        close(*at);
    *at = next;
    if (next < 0 || fstat(next, st) != 0)
        return error_errno(err, status_of_errno(errno, STRATA_EMODULE),
                           "cannot read the owner of '%s'", path);
    return STRATA_OK;
}

/* A folder that has a folder of the path: in a sticky one others can add, but neither
 * replace nor remove what is not theirs. */
static int check_ancestor(const struct stat *st, const char *path, strata_error *err)
{
    int status = check_owner(st, path, err);
    return status == STRATA_OK && !(st->st_mode & S_ISVTX) ? check_mode(st, path, err)
                                                           : status;
}

/* The file, and the folder that it is in. */
static int check_file(const struct stat *file, const char *resolved,
                      const struct stat *folder, const char *parent, bool named,
                      strata_error *err)
{
    int status = S_ISREG(file->st_mode) ? check_owner(file, resolved, err)
                                        : error_set(err, STRATA_EMODULE,
                                                    "'%s' is no regular file", resolved);
    if (status == STRATA_OK)
        status = check_mode(file, resolved, err);
    if (status == STRATA_OK)
        status = check_owner(folder, parent, err);
    if (status == STRATA_OK &&
        !(named && (folder->st_mode & S_ISVTX) && file->st_uid == geteuid()))
        status = check_mode(folder, parent, err);
    return status;
}

int trust_check(const char *resolved, bool named, strata_error *err)
{
    char path[PATH_MAX] = "/";
    struct stat folder, file;
    int at = AT_FDCWD;
    if (resolved[0] != '/' || strlen(resolved) >= sizeof path)
        return error_set(err, STRATA_EMODULE, "'%.64s' is no absolute path of a file",
                         resolved);
    int status = descend(&at, "/", O_DIRECTORY, path, &folder, err);
    for (const char *name = resolved + 1, *slash;
         status == STRATA_OK && (slash = strchr(name, '/')); name = slash + 1) {
        char part[NAME_MAX + 1];
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        if ((status = check_ancestor(&folder, path, err)) != STRATA_OK)
            break;
        snprintf(path, sizeof path, "%.*s", (int)(slash - resolved), resolved);
        status = descend(&at, part, O_DIRECTORY, path, &folder, err);
    }
    if (status == STRATA_OK)
        status = descend(&at, strrchr(resolved, '/') + 1, 0, resolved, &file, err);
    if (status == STRATA_OK)
        status = check_file(&file, resolved, &folder, path, named, err);
    if (at >= 0)
        close(at);
    return status;
}

int trust_path(const char *path, char resolved[PATH_MAX], strata_error *err)
{
    if (!realpath(path, resolved))
        return error_errno(err, status_of_errno(errno, STRATA_EMODULE),
                           "cannot resolve '%s'", path);
    return trust_check(resolved, false, err);
}
