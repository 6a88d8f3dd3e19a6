/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that stand for others, or hold them, by how they begin.
 */
#include "io/stand_in.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *begin, *what;
} kinds[] = {
    {"version https://git-lfs",
     "it is a Git LFS pointer: `git lfs pull` fetches the file"},
    {"<!doctype html", "it is a web page"},
    {"<html", "it is a web page"},
    {"PK\3\4", "it is a zip archive, as numpy.savez and torch.save write"},
};

void stand_in_tell(const void *bytes, size_t size, strata_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        const size_t n = strlen(kinds[i].begin);
        if (size >= n && strncasecmp(bytes, kinds[i].begin, n) == 0) {
            error_append(err, "; %s", kinds[i].what);
            return;
        }
    }
}
