/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's state, read from the C library and from /proc.
 */
#include "check/environment.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"

static const int watched[] = {SIGINT, SIGTERM, SIGSEGV, SIGFPE, SIGPIPE, SIGCHLD};

static unsigned read_rounding(void)
{
#if defined(__x86_64__)
    unsigned control;
    __asm__ volatile("stmxcsr %0" : "=m"(control));
    return control & ~0x3fu; /* without the sticky exception flags */
#else
    return (unsigned)fegetround();
#endif
}

static void write_rounding(unsigned rounding)
{
#if defined(__x86_64__)
    fesetround(FE_TONEAREST);
    __asm__ volatile("ldmxcsr %0" : : "m"(rounding));
#else
    fesetround((int)rounding);
#endif
}

static void *handler(int number)
{
    struct sigaction now;
    void *address = NULL;
    if (sigaction(number, NULL, &now) == 0)
        memcpy(&address, &now.sa_handler, sizeof address);
    return address;
}

/* Open files, asked one by one: for when no more may be opened, a folder neither. */
static int count_descriptors(void)
{
    const long most = sysconf(_SC_OPEN_MAX);
    int n = 0;
    for (int fd = 0; fd < most; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

bool environment_is_full(const struct environment *e)
{
    return e->descriptors >= sysconf(_SC_OPEN_MAX) - 1;
}

/* Entries of a folder; *devices counts links to accelerators. */
static int count_entries(const char *path, int *devices)
{
    DIR *d = opendir(path);
    int n = 0;
    char link[512], target[256];
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        snprintf(link, sizeof link, "%s/%s", path, e->d_name);
        ssize_t got = devices ? readlink(link, target, sizeof target - 1) : -1;
        target[got > 0 ? got : 0] = '\0';
        if (got > 0 && strncmp(target, "/dev/nvidia", 11) == 0)
            (*devices)++;
    }
    if (d)
        closedir(d);
    return n;
}

/* FNV-1a over all of them, in their order; never 0. */
static uint64_t hash_variables(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (char **v = environ; v && *v; v++)
        for (const char *p = *v; p == *v || p[-1]; p++)
            hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

void environment_take(struct environment *e)
{
    const char *locale = setlocale(LC_ALL, NULL);
    memset(e, 0, sizeof *e);
    snprintf(e->locale, sizeof e->locale, "%s", locale ? locale : "");
    if (!getcwd(e->folder, sizeof e->folder))
        e->folder[0] = '\0';
    e->rounding = read_rounding();
    umask(e->mask = umask(022));
    sigprocmask(SIG_BLOCK, NULL, &e->blocked);
    for (size_t i = 0; i < ARRAY_LENGTH(watched); i++)
        e->handlers[i] = handler(watched[i]);
    e->descriptors = count_entries("/proc/self/fd", &e->devices);
    if (e->descriptors == 0)
        e->descriptors = count_descriptors();
    e->threads = count_entries("/proc/self/task", NULL);
    e->variables = hash_variables();
}

static const char *compare_signals(const struct environment *a,
                                   const struct environment *b, char *text,
                                   unsigned long size)
{
    for (size_t i = 0; i < ARRAY_LENGTH(watched); i++)
        if (a->handlers[i] != b->handlers[i]) {
            snprintf(text, size, "the handler of SIG%s was replaced",
                     sigabbrev_np(watched[i]));
            return "signals";
        }
    for (int s = 1; s < 32; s++)
        if (sigismember(&a->blocked, s) != sigismember(&b->blocked, s)) {
            snprintf(text, size, "SIG%s was %s", sigabbrev_np(s),
                     sigismember(&b->blocked, s) ? "blocked" : "unblocked");
            sigprocmask(SIG_SETMASK, &a->blocked, NULL);
            return "signals";
        }
    return NULL;
}

static const char *compare_files(const struct environment *a, const struct environment *b,
                                 char *text, unsigned long size)
{
    if (b->descriptors < a->descriptors) {
        snprintf(text, size, "%d files are open, %d were before", b->descriptors,
                 a->descriptors);
        return "descriptor";
    }
    if (a->variables != 0 && b->variables != a->variables) {
        snprintf(text, size, "an environment variable was set, changed or removed");
        return "variables";
    }
    return NULL;
}

static const char *compare_loading(const struct environment *a,
                                   const struct environment *b, char *text,
                                   unsigned long size)
{
    if (b->threads > a->threads) {
        snprintf(text, size, "%d threads run after loading, %d before", b->threads,
                 a->threads);
        return "thread";
    }
    if (b->devices > a->devices) {
        snprintf(text, size, "/dev/nvidia* was opened");
        return "opens-device";
    }
    if (b->descriptors > a->descriptors) {
        snprintf(text, size, "%d files are open after loading, %d before", b->descriptors,
                 a->descriptors);
        return "descriptor";
    }
    return NULL;
}

const char *environment_compare(const struct environment *before, int loading, char *text,
                                unsigned long size)
{
    struct environment now;
    const unsigned rounding = read_rounding();
    if (rounding != before->rounding) { /* first: it changes what follows */
        write_rounding(before->rounding);
        snprintf(text, size, "the control word went from %#x to %#x", before->rounding,
                 rounding);
        return "rounding";
    }
    environment_take(&now);
    if (strcmp(now.locale, before->locale) != 0) {
        setlocale(LC_ALL, before->locale);
        snprintf(text, size, "the locale went from %.100s to %.100s", before->locale,
                 now.locale);
        return "locale";
    }
    if (strcmp(now.folder, before->folder) != 0) {
        snprintf(text, size, "the working folder went from %.300s to %.300s%s",
                 before->folder, now.folder,
                 chdir(before->folder) == 0 ? "" : ", and cannot be put back");
        return "folder";
    }
    if (now.mask != before->mask) {
        umask(before->mask);
        snprintf(text, size, "umask went from %03o to %03o", before->mask, now.mask);
        return "umask";
    }
    const char *rule = compare_signals(before, &now, text, size);
    rule = rule ? rule : compare_files(before, &now, text, size);
    return rule || !loading ? rule : compare_loading(before, &now, text, size);
}
