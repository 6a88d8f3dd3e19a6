/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing files whole or not at all.
 */
#include "tests/support/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

TestSuite(file_write, .init = set_up, .fini = tear_down, .timeout = 600);

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

Test(file_write, writing_replaces_the_old_file)
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

Test(file_write, a_new_file_has_the_permissions_of_the_old_one)
{
    static const mode_t modes[] = {0600, 0640, 0664};
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

Test(file_write, a_write_protected_file_stays)
{
    const char *path = at(base, "kept.bin");
    struct file_bytes f;
    strata_error err = {0};
    cr_assert_eq(file_write(path, "old", 3, NULL), STRATA_OK);
    cr_assert_eq(chmod(path, 0444), 0);
    const size_t before = entries(base);
    cr_expect_eq(file_writable(path, NULL), STRATA_EIO);
    cr_expect_eq(file_write(path, "new", 3, &err), STRATA_EIO);
    cr_expect(strstr(err.message, "is write-protected"), "%s", err.message);
    cr_assert_eq(file_read(&f, path, 100, NULL), STRATA_OK);
    cr_expect_str_eq(f.data, "old");
    file_free(&f);
    cr_expect_eq(entries(base), before, "a temporary file is left");
}

Test(file_write, asking_whether_a_file_can_be_written_leaves_nothing)
{
    const size_t before = entries(base);
    cr_expect_eq(file_writable(at(base, "new.bin"), NULL), STRATA_OK);
    cr_expect_eq(file_writable(at(base, "none/new.bin"), NULL), STRATA_ENOTFOUND);
    cr_expect_eq(file_writable(base, NULL), STRATA_EINVAL);
    cr_expect_eq(entries(base), before);
}

/* Read, add one, write, as those do that save costs. */
static void count_up(const char *path, int times)
{
    for (int i = 0; i < times; i++) {
        struct file_bytes f = {0};
        char text[32];
        const int lock = file_lock(path);
        const int known = file_read(&f, path, 100, NULL) == STRATA_OK ? atoi(f.data) : 0;
        snprintf(text, sizeof text, "%d", known + 1);
        file_free(&f);
        file_write(path, text, strlen(text), NULL);
        file_unlock(lock);
    }
}

Test(file_write, writers_that_lock_lose_nothing_of_each_other)
{
    enum { PROCESSES = 4, TIMES = 25 };
    const char *path = at(base, "count");
    struct file_bytes f;
    for (int i = 0; i < PROCESSES; i++) {
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) {
            count_up(path, TIMES);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    cr_assert_eq(file_read(&f, path, 100, NULL), STRATA_OK);
    cr_expect_eq(atoi(f.data), PROCESSES * TIMES);
    file_free(&f);
}

Test(file_write, targets_that_cannot_be_replaced_are_refused)
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
Test(file_write, a_failed_write_leaves_the_old_file_and_no_other)
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
Test(file_write, a_reader_sees_one_writers_file_whole)
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
