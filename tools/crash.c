/* SPDX-License-Identifier: Apache-2.0
 *
 * The last words of a process that a signal ends, or a plugin by exit: which plugin's
 * code it was in. Nothing here allocates, since the heap may be what is broken; what may
 * wait for a lock has a limit.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "tools/tool.h"

#include <execinfo.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "registry/loading/guard.h"
#include "registry/loading/mapped.h"

enum { FRAMES = 64, STACK = 1 << 16, PATIENCE = 5 /* seconds */ };

static const struct {
    int number;
    const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV"},
              {SIGBUS, "SIGBUS"},
              {SIGFPE, "SIGFPE"},
              {SIGILL, "SIGILL"},
              {SIGABRT, "SIGABRT"}};

static void append(char *text, size_t size, const char *more)
{
    const size_t n = strlen(text), m = strlen(more);
    const size_t part = m < size - n - 1 ? m : size - n - 1;
    memcpy(text + n, more, part);
    text[n + part] = '\0';
}

static void append_hex(char *text, size_t size, uintptr_t x)
{
    char digits[2 * sizeof x + 1] = "";
    size_t at = sizeof digits - 1;
    do
        digits[--at] = "0123456789abcdef"[x % 16];
    while (x /= 16);
    append(text, size, digits + at);
}

/* Of the code that the signal stopped; 0: this machine's registers are not known here. */
static uintptr_t program_counter(const void *context)
{
    const ucontext_t *u = context;
#if defined __x86_64__
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    return (uintptr_t)u->uc_mcontext.pc;
#else
    (void)u;
    return 0;
#endif
}

/* The innermost frame in a plugin: a fault in what plugins call is theirs. context NULL:
 * no signal stopped anything. */
static const struct mapped *find_plugin(const void *context, uintptr_t *at)
{
    void *frames[FRAMES];
    const struct mapped *found = NULL;
    if (context && (found = mapped_at(*at = program_counter(context))))
        return found;
    const int n = backtrace(frames, FRAMES);
    for (int i = 0; i < n && !found; i++)
        found = mapped_at(*at = (uintptr_t)frames[i]);
    return found;
}

static const char *name_of(int number)
{
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        if (faults[i].number == number)
            return faults[i].name;
    return "a signal";
}

static void tell(const char *by, const void *context)
{
    char text[PATH_MAX + 512] = "strata: error: ended by ";
    uintptr_t at;
    append(text, sizeof text, by);
    const struct mapped *found = find_plugin(context, &at);
    if (found) {
        append(text, sizeof text, " in ");
        append(text, sizeof text, found->path);
        append(text, sizeof text, " (at 0x");
        append_hex(text, sizeof text, at - found->base);
        append(text, sizeof text,
               "); `strata check` of that file tries all that it does\n");
    } else if (guard_loading()) { /* its constructors run before it is on the list */
        append(text, sizeof text, " while ");
        append(text, sizeof text, guard_loading());
        append(text, sizeof text, " was loaded; `strata check` of that file tries it\n");
    } else if (context) {
        append(text, sizeof text,
               ", in no plugin's code; STRATA_CHECK=1 in the environment finds one that "
               "has written where it must not\n");
    } else { /* as libgomp's, which could start no thread */
        append(text, sizeof text, " of a library; why is its own to say\n");
    }
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody is left to be told */
}

/* Raised at the end, the signal ends the process as it would have: the shell, and a core
 * file, know it. The unwinder, and who reads standard error, may keep this waiting. */
static void last_words(int number, siginfo_t *info, void *context)
{
    (void)info;
    signal(number, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE);
    tell(name_of(number), context);
    alarm(0);
    raise(number);
}

/* ---- exit ------------------------------------------------------------------------ */

static pid_t running; /* the process that no exit may end; 0: it ends by itself */

/* Children that watch a plugin end as it ends them. */
static void at_exit(void)
{
    if (running != getpid())
        return;
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE); /* another thread may hold a stream's lock */
    fflush(NULL);
    tell("exit", NULL);
    _exit(EXIT_USAGE);
}

void tool_ends(void)
{
    running = 0;
}

void tool_catch_crashes(void)
{
    static char stack[STACK];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    void *frame;
    backtrace(&frame, 1); /* loads what it needs while that is possible */
    running = atexit(at_exit) == 0 ? getpid() : 0;
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
        struct sigaction before;
        const struct sigaction own = {.sa_sigaction = last_words,
                                      .sa_flags =
                                          SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
        if (sigaction(faults[i].number, NULL, &before) == 0 &&
            before.sa_handler == SIG_DFL) /* a sanitizer's stays */
            sigaction(faults[i].number, &own, NULL);
    }
}
