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

/* Each takes a compiler and two checks: in a quick test one of so many is tried. */
#define QUICK_FAULTS 5

/* Fault i of a table; with FAULT in the environment, those whose names have it. */
static inline bool fault_wanted(const struct fault *f, size_t i)
{
    const char *only = getenv("FAULT");
    return only ? strstr(f->what, only) != NULL
                : !getenv("STRATA_TEST_QUICK") || i % QUICK_FAULTS == 0;
}

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

static inline void check_faults_of(const char *source, const struct fault *faults,
                                   size_t n)
{
    char *output = malloc(OUTPUT);
    for (size_t i = 0; i < n; i++)
        if (fault_wanted(&faults[i], i))
            check_fault_of(source, &faults[i], output);
    free(output);
}

#endif /* TESTS_FAULTY_FAULT_H */
