/* SPDX-License-Identifier: Apache-2.0
 *
 * A forked child in a process group of its own, its streams caught in memory files.
 */
#include "check/child.h"

#include "check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double child_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* No core file, no handlers of the parent's; gone when the parent is. */
static void isolate(int out, int errors)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTERM, SIGINT, SIGPIPE};
    const struct rlimit none = {0, 0};
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        signal(faults[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
}

static void wait_for(pid_t pid, int limit_ms, struct child_end *end)
{
    const struct timespec pause = {.tv_nsec = 500000};
    const double start = child_now(), limit = start + limit_ms * 1e-3;
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && child_now() < limit)
        nanosleep(&pause, NULL);
    end->timed_out = got != pid;
    kill(-pid, SIGKILL); /* what it left behind, too */
    if (end->timed_out) {
        kill(pid, SIGKILL); /* if it had no time to make its group */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    end->seconds = child_now() - start;
    end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static void read_head(int fd, char text[CHILD_TEXT])
{
    ssize_t n = pread(fd, text, CHILD_TEXT - 1, 0);
    text[n > 0 ? n : 0] = '\0';
}

static pid_t start(const struct check_fork *told)
{
    if (told)
        told->before();
    const pid_t pid = fork();
    const int error = errno;
    if (told && pid == 0)
        told->child();
    else if (told)
        told->parent();
    errno = error;
    return pid;
}

int child_run(void (*body)(void *user), void *user, const struct check_fork *told,
              int limit_ms, struct child_end *end, strata_error *err)
{
    int status = STRATA_OK;
    int out = memfd_create("stdout", MFD_CLOEXEC);
    int errors = memfd_create("stderr", MFD_CLOEXEC);
    *end = (struct child_end){0};
    fflush(NULL); /* nothing must be written twice */
    pid_t pid = out < 0 || errors < 0 ? -1 : start(told);
    if (pid == 0) {
        isolate(out, errors);
        body(user);
        fflush(NULL);
        _exit(0);
    }
    if (pid < 0) {
        status = error_errno(err, STRATA_EIO, "cannot start a process");
    } else {
        wait_for(pid, limit_ms, end);
        read_head(out, end->out);
        read_head(errors, end->errors);
    }
    if (out >= 0)
        close(out);
    if (errors >= 0)
        close(errors);
    return status;
}

void *child_memory(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void child_memory_free(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}
