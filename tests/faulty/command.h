/* SPDX-License-Identifier: Apache-2.0
 *
 * Running `strata`, and reading what `strata check` printed.
 */
#ifndef TESTS_FAULTY_COMMAND_H
#define TESTS_FAULTY_COMMAND_H

#include "tests/broken/build.h"

#include <stdbool.h>
#include <sys/wait.h>

#define OUTPUT 65536

/* What the command wrote, and its exit code; -1 if it did not end by itself. */
static inline int command(char output[OUTPUT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline int command(char output[OUTPUT], const char *format, ...)
{
    char line[4096];
    size_t used;
    va_list args;
    used = (size_t)snprintf(line, sizeof line, "'%s/strata' ", env_or("builddir", "."));
    va_start(args, format);
    used += (size_t)vsnprintf(line + used, sizeof line - used, format, args);
    va_end(args);
    snprintf(line + used, sizeof line - used, " 2>&1");
    FILE *f = popen(line, "r");
    cr_assert_not_null(f, "%s", line);
    output[fread(output, 1, OUTPUT - 1, f)] = '\0';
    for (char rest[4096];
         fread(rest, 1, sizeof rest, f) > 0;) /* or the writer is killed */
        ;
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The line of a rule, with some of the words: "A|B" is either. */
static inline bool names(const char *output, const char *rule, const char *words)
{
    char start[64], any[128];
    snprintf(start, sizeof start, "\n  %s: ", rule);
    for (const char *p = output; (p = strstr(p, start)); p++) {
        size_t length = strcspn(p + 1, "\n");
        char line[2048], *rest = any;
        snprintf(line, sizeof line, "%.*s", (int)length, p + 1);
        snprintf(any, sizeof any, "%s", words);
        for (char *word; (word = strsep(&rest, "|"));)
            if (strstr(line, word))
                return true;
    }
    return false;
}

/* The command that a report gives for a finding of a rule, without "strata"; false: it
 * gives none. */
static inline bool find_again(const char *output, const char *rule, char *line,
                              size_t size)
{
    static const char lead[] = "    again   strata ";
    char start[64];
    snprintf(start, sizeof start, "\n  %s: ", rule);
    const char *p = strstr(output, start);
    p = p ? strstr(p, lead) : NULL;
    if (!p)
        return false;
    p += sizeof lead - 1;
    snprintf(line, size, "%.*s", (int)strcspn(p, "\n"), p);
    return true;
}

#endif /* TESTS_FAULTY_COMMAND_H */
