/* SPDX-License-Identifier: Apache-2.0
 *
 * The child reports through a pipe: one byte when the constructors are done, then its
 * verdict. Without a verdict, how it ended is the reason.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "registry/module.h"

#define OPENED 'o'  /* constructors returned */
#define VERDICT 'v' /* the reason follows; empty: good */

struct report {
    char text[STRATA_MESSAGE_SIZE];
    size_t length;
};

static void write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done <= 0 && errno != EINTR)
            return; /* the parent is gone */
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
}

static void tell_opened(void *fd)
{
    const char byte = OPENED;
    write_all(*(const int *)fd, &byte, 1);
}

/* Silence, no core file, no handlers of the parent; a group of its own to be killed. */
static void isolate(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM};
    const struct rlimit none = {0, 0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        signal(faults[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    setpgid(0, 0);
}

static _Noreturn void child(struct module *m, int fd)
{
    strata_error err = {0};
    const char kind = VERDICT;
    isolate();
    if (module_load(m, tell_opened, &fd, &err) == STRATA_OK && m->warning)
        error_set(&err, STRATA_EMODULE, "the note differs from the tables: %s",
                  m->warning);
    write_all(fd, &kind, 1);
    write_all(fd, err.message, err.length);
    _exit(0);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Read until the child closes its end or the time is over. */
static void listen_to(int fd, int64_t end, struct report *r)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = end - now_ms();
        int ready = poll(&p, 1, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return;
        ssize_t n = read(fd, r->text + r->length, sizeof r->text - 1 - r->length);
        if (n <= 0)
            return;
        r->length += (size_t)n;
        r->text[r->length] = '\0';
    }
}

/* Wait for the child to end by itself; false when it had to be killed. */
static bool reap(pid_t pid, int64_t end, int *ended)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    pid_t got;
    while ((got = waitpid(pid, ended, WNOHANG)) == 0 && now_ms() < end)
        nanosleep(&pause, NULL);
    kill(-pid, SIGKILL); /* what it left behind, too */
    if (got == pid)
        return true;
    kill(pid, SIGKILL); /* if it had no time to make its group */
    while (waitpid(pid, ended, 0) < 0 && errno == EINTR)
        ;
    return false;
}

static int judge(const struct report *r, int ended, char *reason, size_t size, bool *died)
{
    const bool opened = r->length > 0 && r->text[0] == OPENED;
    const char *verdict = r->text + opened;
    const char *phase = opened ? "entry" : "constructor";
    if (verdict[0] == VERDICT && verdict[1] == '\0')
        return STRATA_OK;
    *died = verdict[0] != VERDICT;
    if (verdict[0] == VERDICT)
        snprintf(reason, size, "%s", verdict + 1);
    else if (WIFSIGNALED(ended) && sigabbrev_np(WTERMSIG(ended)))
        snprintf(reason, size, "%s killed by SIG%s", phase,
                 sigabbrev_np(WTERMSIG(ended)));
    else if (WIFSIGNALED(ended))
        snprintf(reason, size, "%s killed by signal %d", phase, WTERMSIG(ended));
    else
        snprintf(reason, size, "%s called exit(%d)", phase, WEXITSTATUS(ended));
    return STRATA_EMODULE;
}

static int watch(pid_t pid, int fd, int timeout_ms, char *reason, size_t size, bool *died)
{
    const int64_t end = now_ms() + timeout_ms;
    struct report report = {0};
    int ended = 0;
    listen_to(fd, end, &report);
    if (reap(pid, end, &ended))
        return judge(&report, ended, reason, size, died);
    *died = true;
    snprintf(reason, size, "no answer in %g s", timeout_ms / 1000.0);
    return STRATA_EMODULE;
}

static int probe(const char *path, int timeout_ms, char *reason, size_t size, bool *died)
{
    strata_error err = {0};
    struct module *m = NULL;
    int ends[2];
    int status = module_open(&m, path, 0, &err);
    if (size > 0)
        reason[0] = '\0';
    if (status == STRATA_OK && pipe2(ends, O_CLOEXEC) != 0)
        status = error_errno(&err, STRATA_EIO, "cannot make a pipe");
    if (status != STRATA_OK) {
        snprintf(reason, size, "%s", err.message);
        module_free(m);
        return status;
    }
    pid_t pid = fork();
    if (pid == 0)
        child(m, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        status = error_errno(&err, STRATA_EIO, "cannot start a process");
        snprintf(reason, size, "%s", err.message);
    } else {
        status = watch(pid, ends[0], timeout_ms, reason, size, died);
    }
    close(ends[0]);
    module_free(m);
    return status;
}

int registry_probe(const char *path, int timeout_ms, char *reason, size_t size)
{
    bool died;
    return probe(path, timeout_ms, reason, size, &died);
}

bool registry_survives(const char *path, int timeout_ms, char *reason, size_t size)
{
    bool died = false;
    probe(path, timeout_ms, reason, size, &died);
    return !died;
}
