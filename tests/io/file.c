/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading files, and confining names to a folder.
 */
#include "tests/support/file_tree.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

TestSuite(file, .init = set_up, .fini = tear_down, .timeout = 600);

Test(file, a_file_is_read_whole_up_to_the_limit)
{
    struct file_bytes f;
    strata_error err = {0};
    const char *path = at(base, "w.bin");
    cr_assert_eq(file_read(&f, path, 7, &err), STRATA_OK, "%s", err.message);
    cr_expect_eq(f.size, 7u);
    cr_expect_str_eq(f.data, "weights"); /* the NUL included */
    file_free(&f);
    file_free(&f);
    file_free(NULL);
    cr_assert_eq(file_read(&f, path, UINT64_MAX, &err), STRATA_OK);
    file_free(&f);
    cr_expect_eq(file_read(&f, path, 6, &err), STRATA_EPARSE);
    cr_expect_null(f.data);
    cr_expect_eq(strstr(err.message, path), err.message, "%s", err.message);
    cr_expect_not_null(strstr(err.message, "7 bytes, at most 6 are allowed"), "%s",
                       err.message);
    put(at(base, "empty"), "");
    cr_assert_eq(file_read(&f, at(base, "empty"), 0, NULL), STRATA_OK);
    cr_expect(f.size == 0 && *(char *)f.data == '\0');
    file_free(&f);
}

Test(file, what_is_not_a_regular_file_is_refused_without_blocking)
{
    static const struct {
        const char *path, *message;
        int status;
    } cases[] = {
        {"net", "is a folder", STRATA_EINVAL},
        {"net/fifo", "is a FIFO", STRATA_EINVAL},
        {"net/socket", "is a socket", STRATA_EINVAL},
        {"net/none", "No such file", STRATA_ENOTFOUND},
        {"net/dangling", "No such file", STRATA_ENOTFOUND},
        {"net/loop", "cannot be opened", STRATA_EIO},
        {"net/w.bin/x", "cannot be opened", STRATA_EIO},
    };
    struct file_bytes f;
    strata_error err;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const char *path = at(top, cases[i].path);
        error_clear(&err);
        cr_expect_eq(file_read(&f, path, 100, &err), cases[i].status, "%s", err.message);
        cr_expect_eq(strstr(err.message, path), err.message, "%s", err.message);
        cr_expect_not_null(strstr(err.message, cases[i].message), "%s", err.message);
        cr_expect_null(f.data);
    }
    error_clear(&err);
    cr_expect_eq(file_read(&f, "/dev/zero", 100, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "is a device"), "%s", err.message);
    /* A file of the kernel says 0 bytes and gives more. */
    error_clear(&err);
    cr_expect_eq(file_read(&f, "/proc/self/status", 1 << 20, &err), STRATA_EIO);
    cr_expect_not_null(strstr(err.message, "size changed"), "%s", err.message);
}

/* ---- names ---- */

Test(file, names_below_the_folder_resolve)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"w.bin", "weights"},    {"./w.bin", "weights"},   {"sub/w.bin", "below"},
        {"sub//w.bin", "below"}, {"sub/./w.bin", "below"}, {"..w", "dots"},
    };
    const char *bases[] = {base, at(top, "link"), at(base, "")};
    for (size_t b = 0; b < LENGTH(bases); b++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            struct file_bytes f;
            strata_error err = {0};
            char *path = NULL, *path2 = NULL;
            cr_assert_eq(file_resolve(&path, bases[b], cases[i].name, 0, &err), STRATA_OK,
                         "%s", err.message);
            cr_assert_eq(file_read(&f, path, 100, &err), STRATA_OK, "%s", err.message);
            cr_expect_str_eq(f.data, cases[i].text);
            file_free(&f);
            cr_assert_eq(
                file_read_beneath(&f, &path2, bases[b], cases[i].name, 0, 100, &err),
                STRATA_OK, "%s", err.message);
            cr_expect_str_eq(f.data, cases[i].text);
            cr_expect_str_eq(path, path2);
            file_free(&f);
            free(path);
            free(path2);
        }
}

static const struct escape {
    const char *name, *message;
    int status;
} escapes[] = {
    {"", "empty file name", STRATA_EINVAL},
    {"..", "'..' leads out", STRATA_EINVAL},
    {"../outside.bin", "'..' leads out", STRATA_EINVAL},
    {"../net/w.bin", "'..' leads out", STRATA_EINVAL},
    {"sub/../w.bin", "'..' leads out", STRATA_EINVAL},
    {"sub/../../outside.bin", "'..' leads out", STRATA_EINVAL},
    {"sub/..", "'..' leads out", STRATA_EINVAL},
    {"./../outside.bin", "'..' leads out", STRATA_EINVAL},
    {".//..//outside.bin", "'..' leads out", STRATA_EINVAL},
    {"/etc/passwd", "absolute name", STRATA_EINVAL},
    {"//etc/passwd", "absolute name", STRATA_EINVAL},
    {"/", "absolute name", STRATA_EINVAL},
    {"out", "'out' is a symbolic link", STRATA_EINVAL},
    {"out-absolute", "'out-absolute' is a symbolic link", STRATA_EINVAL},
    {"in", "'in' is a symbolic link", STRATA_EINVAL},
    {"link-to-link", "'link-to-link' is a symbolic link", STRATA_EINVAL},
    {"dangling", "'dangling' is a symbolic link", STRATA_EINVAL},
    {"loop", "'loop' is a symbolic link", STRATA_EINVAL},
    {"up/outside.bin", "'up' is a symbolic link", STRATA_EINVAL},
    {"up/net/w.bin", "'up' is a symbolic link", STRATA_EINVAL},
    {"sub-link/w.bin", "'sub-link' is a symbolic link", STRATA_EINVAL},
    {"./out", "'out' is a symbolic link", STRATA_EINVAL},
    {"fd", "'fd' is a symbolic link", STRATA_EINVAL},
    {"linked.bin", "has 2 hard links", STRATA_EINVAL},
    {"fifo", "is a FIFO", STRATA_EINVAL},
    {"socket", "is a socket", STRATA_EINVAL},
    {".", "is a folder", STRATA_EINVAL},
    {"sub", "is a folder", STRATA_EINVAL},
    {"sub/", "is a folder", STRATA_EINVAL},
    {"sub/.", "is a folder", STRATA_EINVAL},
    {"w.bin/", "'w.bin' is a regular file; a folder is needed", STRATA_EINVAL},
    {"w.bin/x", "'w.bin' is a regular file; a folder is needed", STRATA_EINVAL},
    {"fifo/x", "'fifo' is a FIFO; a folder is needed", STRATA_EINVAL},
    {"none", "No such file", STRATA_ENOTFOUND},
    {"none/w.bin", "No such file", STRATA_ENOTFOUND},
    {"w.bin\n", "control character (byte 5)", STRATA_EINVAL},
    {"\x1b[2Jw.bin", "control character (byte 0)", STRATA_EINVAL},
    {"w.bin\x7f", "control character", STRATA_EINVAL},
};

static void expect_escape(const char *folder, const char *name, const char *message,
                          int status)
{
    struct file_bytes f;
    strata_error err = {0};
    char *path = (char *)&err, *unset = NULL;
    cr_expect_eq(file_resolve(&path, folder, name, 0, &err), status, "'%.80s': %s", name,
                 err.message);
    cr_expect_null(path);
    cr_expect_not_null(strstr(err.message, message), "'%.80s': %s", name, err.message);
    for (const char *c = err.message; *c; c++)
        cr_expect((unsigned char)*c >= ' ' && *c != 0x7f, "'%.80s': byte %02x shown",
                  name, (unsigned char)*c);
    error_clear(&err);
    cr_expect_eq(file_read_beneath(&f, &unset, folder, name, 0, 100, &err), status,
                 "'%.80s': %s", name, err.message);
    cr_expect(!f.data && !unset);
    cr_expect_eq(file_resolve(&path, folder, name, 0, NULL), status);
}

Test(file, names_that_leave_the_folder_are_refused)
{
    for (size_t i = 0; i < LENGTH(escapes); i++) {
        expect_escape(base, escapes[i].name, escapes[i].message, escapes[i].status);
        expect_escape(at(top, "link"), escapes[i].name, escapes[i].message,
                      escapes[i].status);
    }
    expect_escape("/dev", "null", "is a device", STRATA_EINVAL);
    expect_escape("/proc/self/fd", "0", "'0' is a symbolic link", STRATA_EINVAL);
    expect_escape("/proc/self", "root/etc/passwd", "'root' is a symbolic link",
                  STRATA_EINVAL);
    expect_escape(at(top, "nowhere"), "w.bin", "No such file", STRATA_ENOTFOUND);
}

Test(file, long_names_are_refused)
{
    static const struct {
        size_t length;
        char fill;
        const char *message;
        int status;
    } cases[] = {
        {255, 'x', "No such file", STRATA_ENOTFOUND},
        {256, 'x', "more than 255 bytes", STRATA_EINVAL},
        {4095, 'x', "more than 255 bytes", STRATA_EINVAL},
        {4096, 'x', "has 4096 bytes, at most 4095", STRATA_EINVAL},
        {1 << 20, 'x', "has 1048576 bytes, at most 4095", STRATA_EINVAL},
        {4095, '/', "absolute name", STRATA_EINVAL},
        {4096, '.', "has 4096 bytes", STRATA_EINVAL},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *name = malloc(cases[i].length + 1);
        cr_assert_not_null(name);
        memset(name, cases[i].fill, cases[i].length);
        name[cases[i].length] = '\0';
        expect_escape(base, name, cases[i].message, cases[i].status);
        free(name);
    }
}

Test(file, anywhere_lifts_the_confinement_but_not_the_kind_of_file)
{
    static const struct {
        const char *name, *text;
    } good[] = {
        {"../outside.bin", "outside"}, {"out", "outside"}, {"linked.bin", "linked"}};
    strata_error err = {0};
    struct file_bytes f;
    char *path;
    for (size_t i = 0; i < LENGTH(good); i++) {
        cr_assert_eq(file_read_beneath(&f, NULL, base, good[i].name, 1, 100, &err),
                     STRATA_OK, "%s", err.message);
        cr_expect_str_eq(f.data, good[i].text);
        file_free(&f);
    }
    cr_assert_eq(file_resolve(&path, base, at(top, "outside.bin"), 1, &err), STRATA_OK);
    cr_expect_str_eq(path, at(top, "outside.bin"));
    free(path);
    cr_expect_eq(file_read_beneath(&f, NULL, base, "fifo", 1, 100, &err), STRATA_EINVAL);
    cr_expect_eq(file_read_beneath(&f, NULL, base, "", 1, 100, NULL), STRATA_EINVAL);
}

/* A link put in place of a file again and again: what is read is never what it points
 * to. */
Test(file, exchanging_a_file_for_a_link_leads_nowhere)
{
    const char *name = at(base, "swap"), *link_name = at(base, "swap-link");
    const char *file_name = at(base, "swap-file");
    pid_t child = fork();
    if (child == 0)
        for (;;) {
            int ignored = symlink("../outside.bin", link_name);
            ignored |= rename(link_name, name);
            int fd = open(file_name, O_WRONLY | O_CREAT, 0600);
            ignored |= (int)write(fd, "inside!", 7);
            close(fd);
            ignored |= rename(file_name, name);
            (void)ignored;
        }
    int read = 0, refused = 0;
    for (int i = 0; i < 200000 && (i < 5000 || !read || !refused); i++) {
        struct file_bytes f;
        if (i >= 5000) /* others have the processors: the child shall have its turn */
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (file_read_beneath(&f, NULL, base, "swap", 0, 100, NULL) != STRATA_OK) {
            refused++;
            continue;
        }
        read++;
        cr_expect_str_neq(f.data, "outside");
        file_free(&f);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_expect(read > 0 && refused > 0, "read %d, refused %d: nothing was exchanged", read,
              refused);
}

Test(file, the_folder_of_a_path)
{
    static const struct {
        const char *path, *folder;
    } cases[] = {
        {"a.ini", "."},     {"", "."},   {"a/b.ini", "a"}, {"/b.ini", "/"},
        {"/a/b/c", "/a/b"}, {"a/", "a"}, {"./a", "."},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *folder = file_folder(cases[i].path, NULL);
        cr_expect_str_eq(folder, cases[i].folder, "of '%s'", cases[i].path);
        free(folder);
    }
}
