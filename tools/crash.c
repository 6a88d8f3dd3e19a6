/* SPDX-License-Identifier: Apache-2.0
 *
 * The last words of a process that a signal ends: which plugin's code it was in. Nothing
 * here may allocate or wait, since the heap and its locks may be what is broken.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "tools/tool.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 64, STACK = 1 << 16 };

static const struct {
    int number;
    const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV"},
              {SIGBUS, "SIGBUS"},
              {SIGFPE, "SIGFPE"},
              {SIGILL, "SIGILL"},
              {SIGABRT, "SIGABRT"}};

/* What plugins call: a fault in one of these is its caller's. So is one in what the
 * system brings. */
static const char *const below[] = {"libcu", "libnv", "libdnnl.", "libgomp.",
                                    "libstrata."};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_below(const char *file)
{
    if ((strncmp(file, "/lib", 4) == 0 || strncmp(file, "/usr/lib", 8) == 0) &&
        !strstr(file, "/strata/"))
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(below); i++)
        if (strncmp(last_part(file), below[i], strlen(below[i])) == 0)
            return true;
    return false;
}

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

/* The innermost frame of a shared object that is not below it. */
static bool find_plugin(Dl_info *found, void **at)
{
    void *frames[FRAMES];
    Dl_info own;
    const int n = backtrace(frames, FRAMES);
    if (!dladdr((void *)(uintptr_t)find_plugin, &own))
        return false;
    for (int i = 0; i < n; i++)
        if (dladdr(frames[i], found) && found->dli_fname && found->dli_fname[0] == '/' &&
            strcmp(found->dli_fname, own.dli_fname) != 0 && !is_below(found->dli_fname)) {
            *at = frames[i];
            return true;
        }
    return false;
}

static const char *name_of(int number)
{
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        if (faults[i].number == number)
            return faults[i].name;
    return "a signal";
}

static void tell(int number)
{
    char text[2048] = "strata: error: ended by ";
    Dl_info found;
    void *at;
    append(text, sizeof text, name_of(number));
    if (find_plugin(&found, &at)) {
        append(text, sizeof text, " in ");
        append(text, sizeof text, found.dli_fname);
        append(text, sizeof text, " (at 0x");
        append_hex(text, sizeof text, (uintptr_t)at - (uintptr_t)found.dli_fbase);
        append(text, sizeof text,
               "); `strata check` of that file tries all that it does\n");
    } else {
        append(text, sizeof text,
               ", in no plugin's code; STRATA_CHECK=1 in the environment finds one that "
               "has written where it must not\n");
    }
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody is left to be told */
}

static void last_words(int number)
{
    signal(number, SIG_DFL);
    tell(number);
    raise(
        number); /* ends as it would have: the shell, and a core file, know the signal */
}

void tool_catch_crashes(void)
{
    static char stack[STACK];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    void *frame;
    backtrace(&frame, 1); /* loads what it needs while that is possible */
    sigaltstack(&other, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
        struct sigaction before;
        const struct sigaction own = {.sa_handler = last_words,
                                      .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
        if (sigaction(faults[i].number, NULL, &before) == 0 &&
            before.sa_handler == SIG_DFL) /* a sanitizer's stays */
            sigaction(faults[i].number, &own, NULL);
    }
}
