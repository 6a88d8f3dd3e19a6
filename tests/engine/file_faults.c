/* SPDX-License-Identifier: Apache-2.0
 *
 * A real engine file damaged in every way, and its writing disturbed at every step:
 * killed, refused by the system, short of room, or done by many at once. Readers see the
 * old file or the new one.
 *
 * The system calls of writing are this program's own here: each counts, and the one asked
 * for fails or kills.
 */
#include "engine/file/stored.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/engine/engine_session.h"

/* ---- system calls that can be made to fail
 * ---------------------------------------------
 */

enum mode { COUNT, FAIL, KILL, INTERRUPT, SHORT };

static struct {
    bool armed;
    enum mode mode;
    int at, calls; /* from 1 */
    int error;
} fault;

/* Whether this call is the one: then it kills, or errno is set. */
static bool strikes(void)
{
    if (!fault.armed || ++fault.calls != fault.at || fault.mode == COUNT)
        return false;
    if (fault.mode == KILL)
        raise(SIGKILL);
    errno = fault.mode == INTERRUPT ? EINTR : fault.error;
    return true;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fault.armed && fault.mode != INTERRUPT && fault.mode != SHORT && strikes())
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (fault.armed && fault.mode == SHORT && size > 1)
        size = size / 2 < 1000 ? size : size / 2;
    return strikes() ? -1 : syscall(SYS_write, fd, data, size);
}

int fsync(int fd)
{
    if (fault.armed && fault.mode != INTERRUPT && fault.mode != SHORT && strikes())
        return -1;
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    if (fault.armed && fault.mode != INTERRUPT && fault.mode != SHORT && strikes())
        return -1;
    return (int)syscall(SYS_rename, from, to);
}

/* ---- the files ----------------------------------------------------------------------
 */

static char target[300];
static struct file_bytes before, after; /* the old engine and the new one */
static struct engine_file old_file, new_file;

/* A network whose engine has 64 KiB and a little more. */
static void build(const char *seed, struct file_bytes *bytes)
{
    struct session s;
    char text[512];
    snprintf(
        text, sizeof text,
        "[network]\nformat = 1\nname = net\noutputs = fc\n[input x]\nshape = 1 x 3 x "
        "16 x 16\n[build]\nformats = fp32:nchw\n[weights w]\nrandom = %s\n"
        "[layer conv]\ntype = Convolution\nfilters = 4\nkernel = 3x3\npad = 1\n"
        "weights = w:conv\n[layer fc]\ntype = FullyConnected\nunits = 16\n"
        "weights = w:fc\n",
        seed);
    int status = session_build(&s, spill_text("net.ini", text), NULL, 0);
    if (status == STRATA_OK)
        status = strata_engine_save(s.engine, target, &s.err);
    if (status == STRATA_OK)
        status = file_read(bytes, target, ENGINE_FILE_MAX, &s.err);
    cr_assert_eq(status, STRATA_OK, "%s", s.err.message);
    release(&s);
}

static void open_folder(void)
{
    scratch_make();
    snprintf(target, sizeof target, "%s/net.engine", scratch);
    build("1", &before);
    build("2", &after);
    cr_assert(before.size >= 64 << 10, "%zu bytes", before.size);
    cr_assert(before.size == after.size && memcmp(before.data, after.data, before.size));
    cr_assert_eq(engine_file_parse(&old_file, before.data, before.size, "", NULL), 0);
    cr_assert_eq(engine_file_parse(&new_file, after.data, after.size, "", NULL), 0);
}

static int count_temporaries(void)
{
    DIR *d = opendir(scratch);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strncmp(e->d_name, ".strata-", 8) == 0;
    closedir(d);
    return n;
}

static void close_folder(void)
{
    scratch_remove();
    file_free(&before);
    file_free(&after);
}

TestSuite(engine_faults, .init = open_folder, .fini = close_folder, .timeout = 1800);

static int write_engine(const struct engine_file *f, strata_error *err)
{
    return engine_file_write(target, f->sections, f->n_sections, "1.0.0", err);
}

static bool target_is(const struct file_bytes *wanted)
{
    struct file_bytes now;
    cr_assert_eq(file_read(&now, target, ENGINE_FILE_MAX, NULL), STRATA_OK);
    bool same =
        now.size == wanted->size && memcmp((char *)now.data + ENGINE_FILE_HEADER,
                                           (char *)wanted->data + ENGINE_FILE_HEADER,
                                           now.size - ENGINE_FILE_HEADER) == 0;
    file_free(&now);
    return same;
}

/* ---- damage -------------------------------------------------------------------------
 */

static bool refused(const void *bytes, size_t size)
{
    struct engine_file f;
    strata_error err;
    error_clear(&err);
    int status = engine_file_parse(&f, bytes, size, "x.engine", &err);
    return status == err.status && err.message[0] &&
           (status == STRATA_EPARSE || status == STRATA_EUNSUPPORTED);
}

/* STRATA_TEST_LONG flips each of the 524,288 bits of 64 KiB and more, else a random
 * hundredth of them. */
Test(engine_faults, every_flip_of_one_bit_of_an_engine_is_refused)
{
    const bool all = getenv("STRATA_TEST_LONG") != NULL;
    unsigned seed = (unsigned)time(NULL), start = seed;
    size_t tried = 0;
    uint8_t *bytes = before.data;
    for (size_t bit = 0; bit < before.size * 8; bit++) {
        if (!all && rand_r(&seed) % 100 != 0)
            continue;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert(refused(bytes, before.size), "seed %u, bit %zu", start, bit);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        tried++;
    }
    cr_assert_not(refused(bytes, before.size));
    cr_assert(tried >= 4 << 10);
    fprintf(stderr, "%zu flips of one bit refused, seed %u\n", tried, start);
}

Test(engine_faults, every_truncation_of_an_engine_is_refused)
{
    for (size_t size = 0; size < before.size; size++)
        cr_assert(refused(before.data, size), "cut at %zu", size);
}

/* Two engines in one file, and bytes after one. */
Test(engine_faults, whatever_is_appended_is_refused)
{
    char *both = calloc(2, before.size);
    cr_assert(both != NULL);
    memcpy(both, before.data, before.size);
    for (size_t more = 1; more <= 4096; more++)
        cr_assert(refused(both, before.size + more), "%zu more", more);
    memcpy(both + before.size, after.data, after.size);
    cr_assert(refused(both, before.size + after.size));
    free(both);
}

/* The loader says so too, with the path, and makes nothing. */
Test(engine_faults, loading_a_damaged_engine_fails_with_its_name)
{
    strata_error err = {0};
    strata_registry *registry = NULL;
    strata_handle *handle = NULL;
    strata_engine *e;
    unsigned seed = (unsigned)time(NULL);
    uint8_t *bytes = before.data;
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK);
    cr_assert_eq(strata_create(&handle, "host", &err), STRATA_OK);
    for (int i = 0; i < 50; i++) {
        size_t at = (size_t)rand_r(&seed) % before.size;
        bytes[at] ^= 0x10;
        cr_assert_eq(file_write(target, bytes, before.size, NULL), STRATA_OK);
        bytes[at] ^= 0x10;
        cr_expect_neq(strata_engine_load(&e, handle, registry, target, &err), STRATA_OK,
                      "byte %zu", at);
        cr_expect(!e && strstr(err.message, target), "%s", err.message);
    }
    strata_destroy(handle);
    strata_registry_destroy(registry);
}

/* ---- writing that fails ---------------------------------------------------------------
 */

/* System calls of one undisturbed write. */
static int count_calls(void)
{
    strata_error err = {0};
    fault = (typeof(fault)){.armed = true, .mode = COUNT};
    cr_assert_eq(write_engine(&new_file, &err), STRATA_OK, "%s", err.message);
    fault.armed = false;
    cr_assert_geq(fault.calls, 5); /* open, write, fsync, rename, fsync of the folder */
    return fault.calls;
}

Test(engine_faults, a_failing_call_leaves_the_old_file_or_the_new_one)
{
    static const int errors[] = {ENOSPC, EIO, EDQUOT, EROFS};
    const int calls = count_calls();
    for (int at = 1; at <= calls; at++)
        for (size_t k = 0; k < ARRAY_LENGTH(errors); k++) {
            strata_error err = {0};
            cr_assert_eq(file_write(target, before.data, before.size, NULL), STRATA_OK);
            fault = (typeof(fault)){
                .armed = true, .mode = FAIL, .at = at, .error = errors[k]};
            int status = write_engine(&new_file, &err);
            fault.armed = false;
            if (status != STRATA_OK) {
                cr_expect_eq(status, STRATA_EIO, "call %d: %s", at, err.message);
                cr_expect(strstr(err.message, target) &&
                              strstr(err.message, strerror(errors[k])),
                          "call %d: %s", at, err.message);
            }
            bool is_new = target_is(&after);
            cr_expect(is_new || target_is(&before), "call %d", at);
            cr_expect(status != STRATA_OK || is_new, "call %d", at);
            cr_expect_eq(count_temporaries(), 0, "call %d", at);
        }
}

Test(engine_faults, interrupted_and_short_writes_go_on)
{
    static const enum mode modes[] = {INTERRUPT, SHORT};
    for (size_t k = 0; k < ARRAY_LENGTH(modes); k++)
        for (int at = 1; at < 20; at++) {
            strata_error err = {0};
            cr_assert_eq(file_write(target, before.data, before.size, NULL), STRATA_OK);
            fault = (typeof(fault)){
                .armed = true, .mode = modes[k], .at = modes[k] == SHORT ? 0 : at};
            cr_expect_eq(write_engine(&new_file, &err), STRATA_OK, "%s", err.message);
            fault.armed = false;
            cr_expect(target_is(&after));
        }
}

/* kill -9 at every call: the target is whole, and the next write leaves nothing else. */
Test(engine_faults, a_killed_writer_leaves_a_whole_file)
{
    const int calls = count_calls();
    int strays = 0;
    for (int at = 1; at <= calls; at++) {
        strata_error err = {0};
        cr_assert_eq(file_write(target, before.data, before.size, NULL), STRATA_OK);
        pid_t pid = fork();
        if (pid == 0) {
            fault = (typeof(fault)){.armed = true, .mode = KILL, .at = at};
            _exit(write_engine(&new_file, NULL) == STRATA_OK ? 0 : 1);
        }
        int how;
        cr_assert_eq(waitpid(pid, &how, 0), pid);
        cr_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL, "call %d", at);
        cr_expect(target_is(&before) || target_is(&after), "killed at call %d", at);
        cr_expect_leq(count_temporaries(), 1, "killed at call %d", at);
        strays += count_temporaries();
        cr_expect_eq(write_engine(&new_file, &err), STRATA_OK, "%s", err.message);
        cr_expect(target_is(&after));
        cr_expect_eq(count_temporaries(), 0, "after call %d", at);
    }
    cr_expect(strays > 0, "some kill must come while there is a temporary file");
}

/* What another process is writing at the moment is not a stray. */
Test(engine_faults, files_of_living_writers_stay)
{
    char alive[320], other[320];
    snprintf(alive, sizeof alive, "%s/.strata-%ld-7.tmp", scratch, (long)getpid());
    snprintf(other, sizeof other, "%s/.strata-notes.tmp", scratch);
    cr_assert_eq(file_write(alive, "x", 1, NULL), STRATA_OK);
    cr_assert_eq(file_write(other, "x", 1, NULL), STRATA_OK);
    cr_assert_eq(write_engine(&new_file, NULL), STRATA_OK);
    cr_expect_eq(access(alive, F_OK), 0);
    cr_expect_eq(access(other, F_OK), 0);
}

/* The system's own refusal, half-way: a limit on the size of files. */
Test(engine_faults, no_room_is_an_error_and_the_old_file_stays)
{
    cr_assert_eq(file_write(target, before.data, before.size, NULL), STRATA_OK);
    pid_t pid = fork();
    if (pid == 0) {
        strata_error err = {0};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){8192, 8192});
        int status = write_engine(&new_file, &err);
        _exit(status == STRATA_EIO && strstr(err.message, "File too large") ? 0 : 1);
    }
    int how;
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    cr_expect(target_is(&before));
    cr_expect_eq(count_temporaries(), 0);
}

/* ---- many at once --------------------------------------------------------------------
 */

/* 0 if every round's file was a whole engine. */
static int read_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        struct engine_file f;
        if (engine_file_open(&f, target, NULL) != STRATA_OK)
            return 1;
        engine_file_close(&f);
    }
    return 0;
}

static int write_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++)
        if (write_engine(i % 2 ? &old_file : &new_file, NULL) != STRATA_OK)
            return 2;
    return write_engine(&new_file, NULL) == STRATA_OK ? 0 : 2;
}

Test(engine_faults, many_writers_of_one_file_and_its_readers_agree)
{
    enum { WRITERS = 16, READERS = 4 };
    const int rounds = getenv("STRATA_TEST_LONG") ? 200 : 10;
    pid_t pids[WRITERS + READERS];
    cr_assert_eq(write_engine(&old_file, NULL), STRATA_OK);
    for (int i = 0; i < WRITERS + READERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(i < WRITERS ? write_rounds(rounds) : read_rounds(10 * rounds));
    }
    for (int i = 0; i < WRITERS + READERS; i++) {
        int how;
        cr_assert_eq(waitpid(pids[i], &how, 0), pids[i]);
        cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "%s %d: status %d",
                  i < WRITERS ? "writer" : "reader", i, how);
    }
    cr_expect(target_is(&after));
    cr_expect_eq(count_temporaries(), 0);
}
