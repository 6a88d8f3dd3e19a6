/* SPDX-License-Identifier: Apache-2.0
 *
 * Where plugins are looked for: the application's path, STRATA_PLUGIN_PATH, the user's
 * folder, the installed folder. Never the working directory, never below a folder.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "registry/name.h"
#include "registry/private.h"

#define PLUGINS "plugins-1" /* the ABI major is in the name */

static int add_folder(strata_registry *r, const char *path, size_t n, bool is_default,
                      strata_error *err)
{
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (size_t i = 0; i < r->n_folders; i++)
        if (strlen(r->folders[i].path) == n && !memcmp(r->folders[i].path, path, n)) {
            r->folders[i].is_default |= is_default;
            return STRATA_OK;
        }
    if (grow(&r->folders, &r->folders_capacity, r->n_folders, sizeof *r->folders, err) !=
        STRATA_OK)
        return STRATA_ENOMEM;
    char *copy = zalloc(n + 1, 1, "a folder's name", err);
    if (!copy)
        return STRATA_ENOMEM;
    memcpy(copy, path, n);
    r->folders[r->n_folders++] = (struct folder){.path = copy, .is_default = is_default};
    return STRATA_OK;
}

/* A folder that the user named: what it means must not depend on where one stands.
 * `source` names its list in the refusal. */
static int add_absolute(strata_registry *r, const char *path, size_t n, bool is_default,
                        const char *source, strata_error *err)
{
    char text[512], reason[128];
    if (n > 0 && path[0] == '/')
        return add_folder(r, path, n, is_default, err);
    snprintf(text, sizeof text, "%.*s", n ? (int)n : 7, n ? path : "(empty)");
    snprintf(reason, sizeof reason,
             "%s folder in %s is not searched; write an absolute one",
             n ? "a relative" : "an empty", source);
    return registry_reject(r, text, reason, NULL, err);
}

/* A colon-separated path. */
static int add_path(strata_registry *r, const char *path, const char *source,
                    strata_error *err)
{
    int status = STRATA_OK;
    const char *item;
    size_t n;
    while (status == STRATA_OK && (item = name_next(&path, ':', &n)))
        status = add_absolute(r, item, n, false, source, err);
    return status;
}

/* $XDG_DATA_HOME/strata/plugins-1, or ~/.local/lib/strata/plugins-1. */
static int add_user_folder(strata_registry *r, strata_error *err)
{
    const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
    const bool xdg = data && data[0] == '/';
    const char *base = xdg ? data : home;
    const char *rest = xdg ? "strata/" PLUGINS : ".local/lib/strata/" PLUGINS;
    if (!base || base[0] != '/')
        return STRATA_OK;
    size_t size = strlen(base) + strlen(rest) + 2;
    char *path = zalloc(size, 1, "a folder's name", err);
    if (!path)
        return STRATA_ENOMEM;
    int n = snprintf(path, size, "%s/%s", base, rest);
    int status = add_folder(r, path, (size_t)n, false, err);
    free(path);
    return status;
}

static int is_plugin_name(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 3 && !strcmp(entry->d_name + n - 3, ".so");
}

/* By bytes: the order must not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_entry(strata_registry *r, const struct folder *f, const char *name,
                     strata_error *err)
{
    size_t size = strlen(f->path) + strlen(name) + 2;
    char *path = zalloc(size, 1, "a file's name", err);
    if (!path)
        return STRATA_ENOMEM;
    snprintf(path, size, "%s/%s", f->path, name);
    int status = registry_add(r, path, false, f->is_default, err);
    free(path);
    return status;
}

static int scan_folder(strata_registry *r, struct folder *f, strata_error *err)
{
    struct dirent **entries = NULL;
    int n = scandir(f->path, &entries, is_plugin_name, by_name);
    int status = STRATA_OK;
    if (n < 0 && errno == ENOENT)
        return STRATA_OK;
    const int failure = n < 0 ? status_of_errno(errno, STRATA_OK) : STRATA_OK;
    if (failure != STRATA_OK)
        return error_errno(err, failure, "plugin folder %s cannot be read", f->path);
    if (n < 0)
        return registry_reject(r, f->path, strerror(errno), NULL, err);
    f->exists = true;
    f->n_files = (size_t)n;
    for (int i = 0; i < n; i++) {
        if (status == STRATA_OK)
            status = add_entry(r, f, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}

int search_folders(strata_registry *r, const strata_registry_options *options,
                   const char *const *default_folders, size_t n_default_folders,
                   strata_error *err)
{
    int status = STRATA_OK;
    if (options->search_path)
        status = add_path(r, options->search_path, "the search path", err);
    if (status == STRATA_OK && !options->no_default_path) {
        const char *path = secure_getenv("STRATA_PLUGIN_PATH");
        if (path && path[0])
            status = add_path(r, path, "STRATA_PLUGIN_PATH", err);
        if (status == STRATA_OK)
            status = add_user_folder(r, err);
        for (size_t i = 0; status == STRATA_OK && i < n_default_folders; i++)
            status = add_absolute(r, default_folders[i], strlen(default_folders[i]), true,
                                  "STRATA_PLUGIN_DIR", err);
    }
    for (size_t i = 0; status == STRATA_OK && i < r->n_folders; i++)
        status = scan_folder(r, &r->folders[i], err);
    return status;
}

int search_add_folder(strata_registry *r, const char *path, strata_error *err)
{
    size_t known = r->n_folders;
    if (path[0] != '/')
        return error_set(err, STRATA_EINVAL, "plugin folder %s: write an absolute one",
                         path);
    int status = add_folder(r, path, strlen(path), false, err);
    return status == STRATA_OK && r->n_folders > known
               ? scan_folder(r, &r->folders[known], err)
               : status;
}
