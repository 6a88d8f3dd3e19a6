/* SPDX-License-Identifier: Apache-2.0
 *
 * One process opens all files in turn; after one that ends it, others go on.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/trial/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/installed.h"
#include "registry/trial/known.h"

extern char **environ;

struct trial {
    struct known *known;
    const char *program;
    char **argv; /* room for all files */
};

/* STRATA_TRIAL names it for a build tree; "" or "no": there is none. */
static bool find_program(char out[PATH_MAX])
{
    struct installed_folder folders[INSTALLED_FOLDERS];
    const char *given = secure_getenv("STRATA_TRIAL");
    if (given) {
        snprintf(out, PATH_MAX, "%s", given);
        return given[0] == '/' && access(out, X_OK) == 0;
    }
    const size_t n = installed_folders(folders, INSTALLED_PROGRAMS);
    for (size_t i = 0; i < n; i++) {
        int length = snprintf(out, PATH_MAX, "%s/%s", folders[i].path, TRIAL_PROGRAM);
        if (length < PATH_MAX && access(out, X_OK) == 0)
            return true;
    }
    return false;
}

/* The process gets a group of its own, so that what it started ends with it, no signal
 * of ours is blocked or ignored there, and its answers alone have somewhere to go. */
static int spawn(pid_t *pid, const char *program, char **argv, int answers)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) ||
                         posix_spawn_file_actions_adddup2(&files, answers, 1) ||
                         posix_spawn_file_actions_addopen(&files, 2, "/dev/null",
                                                          O_WRONLY, 0) ||
                         posix_spawnattr_setsigmask(&attributes, &none) ||
                         posix_spawnattr_setsigdefault(&attributes, &all) ||
                         posix_spawnattr_setpgroup(&attributes, 0) ||
                         posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                                                   POSIX_SPAWN_SETSIGDEF |
                                                                   POSIX_SPAWN_SETPGROUP)
                     ? ENOMEM
                     : posix_spawn(pid, program, &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* What one process over a list of files came to. */
struct outcome {
    size_t done; /* files opened; the next one ended it, if there is one */
    bool unread; /* some of them could not be */
    bool well;   /* it ended as it should: no destructor did harm */
    char reason[128];
};

/* Count the files that were got through; *opened: the next one's constructors returned.
 * False if it took too long. */
static bool listen_to(int fd, struct outcome *o, bool *opened)
{
    char answers[64];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, TRIAL_TIMEOUT_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t n = ready > 0 ? read(fd, answers, sizeof answers) : -1;
        if (n <= 0)
            return n == 0;
        for (ssize_t i = 0; i < n; i++) {
            *opened = answers[i] == TRIAL_OPENED;
            o->unread |= answers[i] == TRIAL_UNREAD;
            o->done += answers[i] != TRIAL_OPENED;
        }
    }
}

/* Wait for its end and put it into words; true if it ended as it should. An application
 * that waits for all children may have taken the answer. */
static bool reap(pid_t pid, bool in_time, const char *phase, char *reason, size_t size)
{
    static const char where[] = "tried in a process of its own";
    const char *signal_name = NULL;
    int ended = 0;
    pid_t got = 0;
    for (int ms = 0; in_time && (got = waitpid(pid, &ended, WNOHANG)) == 0; ms++) {
        in_time = ms < TRIAL_TIMEOUT_MS;
        poll(NULL, 0, 1);
    }
    if (!in_time)
        kill(-pid, SIGKILL);
    while (!in_time && (got = waitpid(pid, &ended, 0)) < 0 && errno == EINTR)
        ;
    if (got == pid && WIFSIGNALED(ended))
        signal_name = sigabbrev_np(WTERMSIG(ended));
    if (!in_time)
        snprintf(reason, size, "%s: no answer in %d s", where, TRIAL_TIMEOUT_MS / 1000);
    else if (got == pid && WIFSIGNALED(ended))
        snprintf(reason, size, "%s: %s killed by SIG%s", where, phase,
                 signal_name ? signal_name : "?");
    else if (got == pid)
        snprintf(reason, size, "%s: %s called exit(%d)", where, phase,
                 WEXITSTATUS(ended));
    else
        snprintf(reason, size, "%s: %s ended it", where, phase);
    return in_time && (got != pid || (WIFEXITED(ended) && WEXITSTATUS(ended) == 0));
}

/* False if no process could be started. */
static bool run_once(const struct trial *t, struct module **list, size_t n,
                     struct outcome *o)
{
    int ends[2];
    pid_t pid;
    bool opened = false;
    t->argv[0] = (char *)t->program;
    for (size_t i = 0; i < n; i++)
        t->argv[i + 1] = list[i]->resolved;
    t->argv[n + 1] = NULL;
    *o = (struct outcome){0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const int failed = spawn(&pid, t->program, t->argv, ends[1]);
    close(ends[1]);
    if (!failed) {
        const bool in_time = listen_to(ends[0], o, &opened);
        const char *phase = o->done >= n ? "destructor"
                            : opened     ? "entry"
                                         : "constructor";
        o->well = reap(pid, in_time, phase, o->reason, sizeof o->reason);
    }
    close(ends[0]);
    return !failed;
}

static int blame(struct module *m, const char *reason, strata_error *err)
{
    m->fault = duplicate(reason, err);
    return m->fault ? STRATA_OK : STRATA_ENOMEM;
}

/* Files are good if they are opened and the process then ends well: those before one that
 * ended it are tried again without it, and where a destructor ended it, by halves. */
static int try_list(const struct trial *t, struct module **list, size_t n,
                    strata_error *err)
{
    struct outcome o;
    if (n == 0)
        return STRATA_OK;
    if (!run_once(t, list, n, &o)) {
        log_line(STRATA_LOG_INFO, "cannot start %s: plugins are opened without a trial",
                 t->program);
        return STRATA_OK;
    }
    for (size_t i = 0; o.done >= n && o.well && !o.unread && i < n; i++)
        known_add(t->known, list[i]);
    if (o.done >= n && o.well)
        return STRATA_OK;
    if (o.done >= n && n == 1)
        return blame(list[0], o.reason, err);
    const size_t first = o.done < n ? o.done : n / 2, skip = o.done < n;
    int status = skip ? blame(list[first], o.reason, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = try_list(t, list, first, err);
    return status == STRATA_OK ? try_list(t, list + first + skip, n - first - skip, err)
                               : status;
}

static bool untried(const struct module *m, const struct known *known)
{
    return !m->tried && !m->loaded && !m->rejected && !m->duplicate &&
           !known_has(known, m);
}

int trial_modules(struct module **modules, size_t n, strata_error *err)
{
    char program[PATH_MAX];
    struct known known;
    size_t found = 0;
    if (!find_program(program))
        return STRATA_OK;
    int status = known_open(&known, err);
    if (status != STRATA_OK || known.fd < 0)
        return status;
    struct trial t = {.known = &known, .program = program};
    struct module **list = zalloc(n, sizeof(struct module *), "a trial of modules", err);
    t.argv = zalloc(n + 2, sizeof *t.argv, "a trial of modules", err);
    for (size_t i = 0; list && i < n; i++) {
        if (untried(modules[i], &known))
            list[found++] = modules[i];
        modules[i]->tried = true;
    }
    status = list && t.argv ? try_list(&t, list, found, err) : STRATA_ENOMEM;
    free(t.argv);
    free(list);
    known_close(&known);
    return status;
}

static int answers; /* stdout is the plugins' to write to */

static void tell(void *byte)
{
    while (write(answers, byte, 1) < 0 && errno == EINTR)
        ;
}

int trial_main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    char opened = TRIAL_OPENED;
    answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (answers < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    setrlimit(RLIMIT_CORE, &none);
    strata_set_logger(NULL, NULL, STRATA_LOG_ERROR);
    for (int i = 1; i < argc; i++) {
        strata_error err = {0};
        struct module *m = NULL;
        int status = module_open(&m, argv[i], 0, &err);
        if (status == STRATA_OK)
            status = module_load(m, tell, &opened, &err);
        /* what it says is told where it is loaded in earnest */
        char end =
            status == STRATA_OK || status == STRATA_EMODULE ? TRIAL_DONE : TRIAL_UNREAD;
        tell(&end);
    }
    return 0; /* and the destructors run */
}
