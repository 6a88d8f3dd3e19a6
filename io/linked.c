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

char *linked_folder(const char *path)
{
    struct stat about;
    char *end =
        lstat(path, &about) == 0 && S_ISLNK(about.st_mode) ? realpath(path, NULL) : NULL;
    char *folder = end ? file_folder(end, NULL) : NULL;
    free(end);
    return folder;
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
        status =
            error_set(err, STRATA_EIO, "%s: cannot be opened: %s", path, strerror(errno));
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
