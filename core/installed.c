/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders are found as the configured ones lie to each other: a command in PREFIX/bin has
 * its plugins in ../lib/strata/plugins-1, libstrata in strata/plugins-1.
 */
#include "core/installed.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef STRATA_LIB_DIR
#define STRATA_BIN_DIR "/usr/local/bin"
#define STRATA_LIB_DIR "/usr/local/lib"
#define STRATA_PLUGIN_DIR STRATA_LIB_DIR "/strata/plugins-1"
#define STRATA_DEVICE_DIR STRATA_LIB_DIR "/strata/devices-1"
#define STRATA_PROGRAM_DIR "/usr/local/libexec/strata"
#endif

static struct installed_file here = {
    .parts = {[INSTALLED_PLUGINS] = STRATA_PLUGIN_DIR,
              [INSTALLED_DEVICES] = STRATA_DEVICE_DIR,
              [INSTALLED_PROGRAMS] = STRATA_PROGRAM_DIR},
};

/* Before main: a library's name may be relative (LD_LIBRARY_PATH=lib), and is lost with
 * the first chdir. A program's is argv[0], which says nothing. */
__attribute__((constructor)) static void find_here(void)
{
    Dl_info own, program;
    here.privileged = getauxval(AT_SECURE) != 0;
    if (here.privileged || !dladdr(&here, &own))
        return;
    const bool in_program = dladdr((const void *)getauxval(AT_PHDR), &program) &&
                            program.dli_fbase == own.dli_fbase;
    here.folder = in_program ? STRATA_BIN_DIR : STRATA_LIB_DIR;
    if (!realpath(in_program ? "/proc/self/exe" : own.dli_fname, here.path))
        here.path[0] = '\0';
}

/* Length of the folders that two absolute paths begin with; 0 if that is only /. */
static size_t shared_length(const char *a, const char *b)
{
    size_t n = 0;
    for (size_t i = 0;; i++) {
        if ((!a[i] || a[i] == '/') && (!b[i] || b[i] == '/'))
            n = i;
        if (!a[i] || a[i] != b[i])
            return n;
    }
}

/* Cut the last name of a path; false if it has none. */
static bool cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* Cut the last name of a path if it is this one. */
static bool cut_this_name(char *path, const char *name, size_t length)
{
    const char *last = strrchr(path, '/');
    return last && strlen(last + 1) == length && memcmp(last + 1, name, length) == 0 &&
           cut_name(path);
}

/* Cut the names that a moved tree keeps; false where the path ends in others: a build
 * folder, say. */
static bool cut_names(char *path, const char *names)
{
    for (size_t end = strlen(names); end > 0;) {
        size_t begin = end;
        while (begin > 0 && names[begin - 1] != '/')
            begin--;
        if (begin < end && !cut_this_name(path, names + begin, end - begin))
            return false;
        end = begin > 0 ? begin - 1 : 0;
    }
    return true;
}

bool installed_beside(char out[PATH_MAX], const char *file, const char *folder,
                      const char *wanted)
{
    char base[PATH_MAX];
    const size_t shared = shared_length(folder, wanted);
    const char *rest = folder + shared;
    int n = snprintf(base, sizeof base, "%s", file);
    if (shared == 0 || strstr(rest, "/.") || n >= (int)sizeof base || !cut_name(base) ||
        !cut_names(base, rest))
        return false;
    n = snprintf(out, PATH_MAX, "%s%s", base, wanted + shared);
    return n < PATH_MAX;
}

/* Whether the configured place holds this very file, by symbolic links perhaps. */
static bool in_place(const struct installed_file *file)
{
    char place[PATH_MAX], real[PATH_MAX];
    int n = snprintf(place, sizeof place, "%s%s", file->folder, strrchr(file->path, '/'));
    return n < (int)sizeof place && realpath(place, real) && !strcmp(real, file->path);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool part_beside(struct installed_folder *out, const struct installed_file *file,
                        enum installed_part part)
{
    return installed_beside(out->path, file->path, file->folder, file->parts[part]);
}

size_t installed_folders_of(struct installed_folder out[INSTALLED_FOLDERS],
                            const struct installed_file *file, enum installed_part part)
{
    struct installed_folder plugins;
    size_t n = 0;
    if (!file->privileged && file->path[0] && !in_place(file) &&
        part_beside(&out[0], file, part))
        n = 1;
    /* The plugins decide for the devices too: a build without CUDA has no such folder,
     * and must not take that of another installation. */
    if (n == 1 && part_beside(&plugins, file, INSTALLED_PLUGINS) &&
        is_folder(plugins.path))
        return n;
    snprintf(out[n].path, sizeof out[n].path, "%s", file->parts[part]);
    return n + 1;
}

size_t installed_folders(struct installed_folder out[INSTALLED_FOLDERS],
                         enum installed_part part)
{
    return installed_folders_of(out, &here, part);
}

/* Whether `folder` is the user's own; it is made where it is missing. errno says why it
 * cannot be made, or is 0. */
static bool own_folder(const char *folder)
{
    struct stat st;
    const int why = mkdir(folder, 0700) == 0 || errno == EEXIST ? 0 : errno;
    const bool own = stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
                     st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    errno = why;
    return own;
}

static bool enter(char path[PATH_MAX], const char *name)
{
    const size_t n = strlen(path);
    errno = ENAMETOOLONG;
    if (strlen(name) + 2 > PATH_MAX - n)
        return false;
    path[n] = '/';
    strcpy(path + n + 1, name);
    return own_folder(path);
}

bool installed_cache(char out[PATH_MAX], const char *part)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    const bool xdg = cache && cache[0] == '/';
    const char *base = xdg ? cache : home;
    errno = 0;
    if (!base || base[0] != '/' || strlen(base) >= PATH_MAX)
        return false;
    strcpy(out, base);
    return (xdg ? own_folder(out) : enter(out, ".cache")) && enter(out, "strata") &&
           (*part == '\0' || enter(out, part));
}
