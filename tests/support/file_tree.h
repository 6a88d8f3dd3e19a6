/* SPDX-License-Identifier: Apache-2.0
 *
 * A scratch folder with files, links and what else a name may lead to, for tests of io's
 * files.
 */
#ifndef TESTS_SUPPORT_FILE_TREE_H
#define TESTS_SUPPORT_FILE_TREE_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/file.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static char top[200];  /* scratch: outside.bin, link -> net, and the folder net */
static char base[220]; /* top/net */

static inline const char *at(const char *folder, const char *name)
{
    static char paths[4][6000];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    fputs(text, f);
    cr_assert_eq(fclose(f), 0);
}

static inline void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(strlen(path) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static inline void set_up(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/strata-file-XXXXXX",
             tmp && strlen(tmp) < 60 ? tmp : "/tmp");
    cr_assert_not_null(mkdtemp(top));
    snprintf(base, sizeof base, "%s/net", top);
    cr_assert_eq(mkdir(base, 0700), 0);
    cr_assert_eq(mkdir(at(base, "sub"), 0700), 0);
    put(at(top, "outside.bin"), "outside");
    put(at(base, "w.bin"), "weights");
    put(at(base, "sub/w.bin"), "below");
    put(at(base, "..w"), "dots");
    put(at(base, "linked.bin"), "linked");
    cr_assert_eq(link(at(base, "linked.bin"), at(top, "second-name")), 0);
    cr_assert_eq(symlink("../outside.bin", at(base, "out")), 0);
    cr_assert_eq(symlink(at(top, "outside.bin"), at(base, "out-absolute")), 0);
    cr_assert_eq(symlink("w.bin", at(base, "in")), 0);
    cr_assert_eq(symlink("out", at(base, "link-to-link")), 0);
    cr_assert_eq(symlink("nowhere", at(base, "dangling")), 0);
    cr_assert_eq(symlink("loop", at(base, "loop")), 0);
    cr_assert_eq(symlink("..", at(base, "up")), 0);
    cr_assert_eq(symlink("sub", at(base, "sub-link")), 0);
    cr_assert_eq(symlink("/proc/self/fd/0", at(base, "fd")), 0);
    cr_assert_eq(symlink("net", at(top, "link")), 0);
    cr_assert_eq(mkfifo(at(base, "fifo"), 0600), 0);
    make_socket(at(base, "socket"));
}

static inline void tear_down(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    cr_expect_eq(system(command), 0, "cannot remove %s", top);
}

#endif /* TESTS_SUPPORT_FILE_TREE_H */
