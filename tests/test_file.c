/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, confining names to a folder, and writing whole or not at all.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static char top[200];  /* scratch: outside.bin, link -> net, and the folder net */
static char base[220]; /* top/net */

static const char *at(const char *folder, const char *name)
{
    static char paths[4][6000];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    fputs(text, f);
    cr_assert_eq(fclose(f), 0);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert(strlen(path) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void set_up(void)
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

static void remove_tree(const char *folder)
{
    struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d)) != NULL) {
        char path[6000];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            remove_tree(path);
        else
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(folder);
}

static void tear_down(void)
{
    remove_tree(top);
}

TestSuite(file, .init = set_up, .fini = tear_down, .timeout = 60);

static size_t entries(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    cr_assert_not_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- reading ---- */

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

/* ---- writing ---- */

Test(file, writing_replaces_the_old_file)
{
    struct file_bytes f;
    strata_error err = {0};
    const char *path = at(base, "out.bin");
    size_t before = entries(base);
    static const struct file_piece pieces[] = {{"head ", 5}, {"body", 4}};
    static const char *const texts[] = {"first", "", "the third, which is longer"};
    for (size_t i = 0; i < LENGTH(texts); i++) {
        cr_assert_eq(file_write(path, texts[i], strlen(texts[i]), &err), STRATA_OK, "%s",
                     err.message);
        cr_assert_eq(file_read(&f, path, 100, &err), STRATA_OK, "%s", err.message);
        cr_expect_str_eq(f.data, texts[i]);
        file_free(&f);
        cr_expect_eq(entries(base), before + 1, "a temporary file is left");
    }
    cr_assert_eq(file_write_pieces(path, pieces, LENGTH(pieces), &err), STRATA_OK);
    cr_assert_eq(file_read(&f, path, 100, &err), STRATA_OK);
    cr_expect_str_eq(f.data, "head body");
    file_free(&f);
    cr_assert_eq(chdir(base), 0);
    cr_expect_eq(file_write("here.bin", "x", 1, &err), STRATA_OK, "%s", err.message);
    cr_expect_eq(access(at(base, "here.bin"), R_OK), 0);
}

Test(file, a_new_file_has_the_permissions_of_the_old_one)
{
    static const mode_t modes[] = {0600, 0640, 0444};
    const char *path = at(base, "private.bin");
    struct stat st;
    for (size_t i = 0; i < LENGTH(modes); i++) {
        cr_assert_eq(file_write(path, "old", 3, NULL), STRATA_OK);
        cr_assert_eq(chmod(path, modes[i]), 0);
        cr_assert_eq(file_write(path, "new", 3, NULL), STRATA_OK);
        cr_assert_eq(stat(path, &st), 0);
        cr_expect_eq(st.st_mode & 0777, modes[i]);
    }
}

Test(file, targets_that_cannot_be_replaced_are_refused)
{
    static const struct {
        const char *path, *message;
        int status;
    } cases[] = {
        {"net/sub", "not a regular file", STRATA_EINVAL},
        {"net/fifo", "not a regular file", STRATA_EINVAL},
        {"net/out", "not a regular file", STRATA_EINVAL},
        {"net/dangling", "not a regular file", STRATA_EINVAL},
        {"net/none/out.bin", "No such file", STRATA_ENOTFOUND},
        {"net/w.bin/out.bin", "Not a directory", STRATA_EIO},
    };
    strata_error err;
    size_t before = entries(base);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        error_clear(&err);
        const char *path = at(top, cases[i].path);
        cr_expect_eq(file_write(path, "x", 1, &err), cases[i].status, "%s: %s", path,
                     err.message);
        cr_expect_eq(strstr(err.message, path), err.message, "%s", err.message);
        cr_expect_not_null(strstr(err.message, cases[i].message), "%s", err.message);
    }
    error_clear(&err);
    cr_expect_eq(file_write("/dev/null", "x", 1, &err), STRATA_EINVAL, "%s", err.message);
    cr_expect_eq(file_write("", "x", 1, NULL), STRATA_EINVAL);
    cr_expect_eq(entries(base), before, "a temporary file is left");
}

/* A limit on file sizes stands for a full disk: part is written, then no more. */
Test(file, a_failed_write_leaves_the_old_file_and_no_other)
{
    static char large[1 << 20];
    struct rlimit limit;
    struct file_bytes f;
    strata_error err = {0};
    const char *path = at(base, "w.bin");
    size_t before = entries(base);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t old = limit.rlim_cur;
    limit.rlim_cur = 100000;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int status = file_write(path, large, sizeof large, &err);
    limit.rlim_cur = old;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_expect_eq(status, STRATA_EIO);
    cr_expect_not_null(strstr(err.message, strerror(EFBIG)), "%s", err.message);
    cr_expect_eq(entries(base), before, "a temporary file is left");
    cr_assert_eq(file_read(&f, path, 100, NULL), STRATA_OK);
    cr_expect_str_eq(f.data, "weights");
    file_free(&f);
}

/* Four writers, one reader: each read is one writer's file, whole. */
Test(file, a_reader_sees_one_writers_file_whole)
{
    enum { WRITERS = 4, ROUNDS = 40, SIZE = 100000 };
    static char text[SIZE];
    const char *path = at(base, "shared.bin");
    memset(text, 'a', SIZE);
    cr_assert_eq(file_write(path, text, SIZE, NULL), STRATA_OK);
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int failures = 0;
            memset(text, 'a' + i, SIZE);
            for (int r = 0; r < ROUNDS; r++)
                failures += file_write(path, text, SIZE, NULL) != STRATA_OK;
            _exit(failures ? 1 : 0);
        }
    }
    for (int r = 0; r < 200; r++) {
        struct file_bytes f;
        cr_assert_eq(file_read(&f, path, SIZE, NULL), STRATA_OK);
        cr_expect_eq(f.size, (size_t)SIZE);
        cr_expect_eq(memcmp(f.data, (char *)f.data + 1, SIZE - 1), 0, "a mixed file");
        file_free(&f);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        waitpid(children[i], &status, 0);
        cr_expect_eq(status, 0, "writer %d failed", i);
    }
}
