/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer with a fault put in: `strata check` names the rule, and what it says to do
 * shows it again.
 */
#ifndef TESTS_FAULTY_FAULT_H
#define TESTS_FAULTY_FAULT_H

#include "tests/faulty/command.h"

/* -D text, the rule it breaks, and words of the finding ("": any). */
struct fault {
    const char *what, *define, *rule, *words;
};

/* The command of the finding finds the same. */
static inline void check_again(const struct fault *f, const char *report)
{
    static char line[4096], output[OUTPUT];
    if (!find_again(report, f->rule, line, sizeof line)) {
        cr_expect(0, "%s: no command in\n%.2000s", f->what, report);
        return;
    }
    int code = command(output, "%s", line);
    cr_expect(code == 1 && names(output, f->rule, ""),
              "%s: exit code %d, rule %s is not named by: %s\n%.2000s", f->what, code,
              f->rule, line, output);
}

/* Built of tests/SOURCE; what the command wrote is in output. */
static inline void check_fault_of(const char *source, const struct fault *f, char *output)
{
    const char *file =
        build("faulty.so", source, SHARED " %s -O1 -w -lpthread", f->define);
    const bool hangs = strcmp(f->rule, "hang") == 0;
    int code = command(output, "check '%s' --time-limit %d", file, hangs ? 3 : 300);
    cr_expect_eq(code, 1, "%s: exit code %d\n%.2000s", f->what, code, output);
    cr_expect(names(output, f->rule, f->words), "%s: want '%s' (%s), got\n%.3000s",
              f->what, f->rule, f->words, output);
    if (!hangs) /* which takes its time */
        check_again(f, output);
}

/* Those of a table, or with FAULT in the environment those whose names have it. */
static inline void check_faults_of(const char *source, const struct fault *faults,
                                   size_t n)
{
    char *output = malloc(OUTPUT);
    const char *only = getenv("FAULT");
    for (size_t i = 0; i < n; i++)
        if (!only || strstr(faults[i].what, only))
            check_fault_of(source, &faults[i], output);
    free(output);
}

#endif /* TESTS_FAULTY_FAULT_H */
