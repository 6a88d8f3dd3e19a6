/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that symbolic links lead to, in the one folder where they may.
 */
#include "io/linked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"

static bool is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

int linked_folder(char **out, const char *path, strata_error *err)
{
    int status = STRATA_OK;
    *out = NULL;
    if (!is_link(path))
        return STRATA_OK;
    char *end = realpath(path, NULL);
    if (end && !(*out = file_folder(end, err)))
        status = STRATA_ENOMEM;
    else if (!end && errno == ENOMEM) /* otherwise who opens it says why it cannot be */
        status = error_no_memory(err, 0, "a path");
    free(end);
    return status;
}

int linked_name(bool *out, const char *base, const char *name, strata_error *err)
{
    char *path = text_print("%s/%s", base, name);
    *out = false;
    if (!path)
        return error_no_memory(err, 0, "a path");
    for (char *at = path + strlen(base) + 1, *end; !*out; at = end + 1) {
        const char was = *(end = at + strcspn(at, "/"));
        *end = '\0';
        *out = is_link(path);
        *end = was;
        if (!was)
            break;
    }
    free(path);
    return STRATA_OK;
}

static bool lies_in(const char *path, const char *folder)
{
    const char *last = strrchr(path, '/');
    return last && strlen(folder) == (size_t)(last - path) &&
           strncmp(path, folder, (size_t)(last - path)) == 0;
}

int linked_map(struct file_bytes *out, const char *base, const char *name,
               const char *folder, uint64_t limit, strata_error *err)
{
    char *path = text_print("%s/%s", base, name);
    char *end = path ? realpath(path, NULL) : NULL;
    int status = STRATA_OK;
    *out = (struct file_bytes){0};
    if (!path)
        status = error_no_memory(err, 0, "a path");
    else if (!end)
        status = error_errno(err, status_of_errno(errno, STRATA_EIO),
                             "%s: cannot be opened", path);
    else if (!lies_in(end, folder))
        status = error_set(err, STRATA_EINVAL,
                           "%s: leads to '%s', which is not in '%s', as the model is",
                           path, end, folder);
    else
        status = file_map_beneath(out, folder, strrchr(end, '/') + 1, limit, err);
    free(end);
    free(path);
    return status;
}
