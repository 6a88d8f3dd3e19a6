/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of Criterion that these tests use, for sanitized builds: ThreadSanitizer takes
 * the address range that Criterion's arena wants, LeakSanitizer reports Criterion's own
 * leaks. Every test runs in a child process; results are TAP. The tests are the same.
 */
#ifndef PLAIN_CRITERION_H
#define PLAIN_CRITERION_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct plain_options {
    void (*init)(void), (*fini)(void);
    double timeout;
};
struct plain_suite {
    const char *name;
    struct plain_options options;
};
struct plain_test {
    const char *suite, *name;
    struct plain_options options;
    void (*run)(void);
};

enum { PLAIN_MAX = 256, PLAIN_SKIPPED = 77 };
/* Weak: a test program of several files has one of each. */
#define PLAIN_SHARED __attribute__((weak))
PLAIN_SHARED struct plain_suite plain_suites[PLAIN_MAX];
PLAIN_SHARED struct plain_test plain_tests[PLAIN_MAX];
PLAIN_SHARED int plain_n_suites, plain_n_tests, plain_failures;

#define TestSuite(suite_, ...)                                                  \
    __attribute__((constructor)) static void plain_suite_##suite_(void)         \
    {                                                                           \
        plain_suites[plain_n_suites++] =                                        \
            (struct plain_suite){#suite_, {__VA_ARGS__}};                       \
    }                                                                           \
    struct plain_suite

#define Test(suite_, name_, ...)                                                \
    static void suite_##_##name_##_plain(void);                                 \
    __attribute__((constructor)) static void plain_test_##suite_##_##name_(void) \
    {                                                                           \
        plain_tests[plain_n_tests++] = (struct plain_test){                     \
            #suite_, #name_, {__VA_ARGS__}, suite_##_##name_##_plain};          \
    }                                                                           \
    static void suite_##_##name_##_plain(void)

#define PLAIN_TEXT_(...) " " __VA_ARGS__
#define plain_check(condition, fatal, what, ...)                                \
    do {                                                                        \
        if (!(condition)) {                                                     \
            plain_failures++;                                                   \
            fprintf(stderr, "# %s:%d: %s:", __FILE__, __LINE__, what);         \
            fprintf(stderr, PLAIN_TEXT_(__VA_ARGS__));                          \
            fprintf(stderr, "\n");                                              \
            if (fatal)                                                          \
                exit(1);                                                        \
        }                                                                       \
    } while (0)

#define cr_expect(c, ...) plain_check(c, 0, #c, __VA_ARGS__)
#define cr_assert(c, ...) plain_check(c, 1, #c, __VA_ARGS__)
#define cr_expect_not(c, ...) plain_check(!(c), 0, "not " #c, __VA_ARGS__)
#define cr_assert_not(c, ...) plain_check(!(c), 1, "not " #c, __VA_ARGS__)
#define cr_expect_eq(a, b, ...) plain_check((a) == (b), 0, #a " == " #b, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) plain_check((a) == (b), 1, #a " == " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) plain_check((a) != (b), 0, #a " != " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) plain_check((a) != (b), 1, #a " != " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) plain_check((a) < (b), 0, #a " < " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) plain_check((a) < (b), 1, #a " < " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) plain_check((a) <= (b), 0, #a " <= " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) plain_check((a) <= (b), 1, #a " <= " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) plain_check((a) > (b), 0, #a " > " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) plain_check((a) > (b), 1, #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) plain_check((a) >= (b), 1, #a " >= " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) plain_check((a) >= (b), 0, #a " >= " #b, __VA_ARGS__)
#define cr_expect_null(a, ...) plain_check(!(a), 0, #a " is NULL", __VA_ARGS__)
#define cr_assert_null(a, ...) plain_check(!(a), 1, #a " is NULL", __VA_ARGS__)
#define cr_expect_not_null(a, ...) plain_check((a), 0, #a " is not NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) plain_check((a), 1, #a " is not NULL", __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)                                             \
    plain_check(strcmp(a, b) == 0, 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)                                             \
    plain_check(strcmp((a), (b)) == 0, 1, #a " == " #b, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)                                            \
    plain_check(strcmp(a, b) != 0, 0, #a " differs from " #b, __VA_ARGS__)
#define cr_expect_str_empty(a, ...) plain_check(!(a)[0], 0, #a " is empty", __VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...)                                       \
    plain_check(memcmp(a, b, size) == 0, 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...)                                       \
    plain_check(memcmp(a, b, size) == 0, 1, #a " equals " #b, __VA_ARGS__)
#define cr_expect_float_eq(a, b, within, ...)                                   \
    plain_check(fabs((double)(a) - (double)(b)) <= (double)(within), 0,         \
                #a " is near " #b, __VA_ARGS__)
#define cr_assert_fail(...) plain_check(0, 1, "failed", __VA_ARGS__)
#define plain_note(...)                                                         \
    (fprintf(stderr, "# " __VA_ARGS__), fprintf(stderr, "\n"))
#define cr_skip_test(...) (plain_note(__VA_ARGS__), exit(PLAIN_SKIPPED))
#define cr_log_info(...) plain_note(__VA_ARGS__)
#define cr_log_warn(...) plain_note(__VA_ARGS__)
#define cr_log_error(...) plain_note(__VA_ARGS__)

PLAIN_SHARED void plain_run(const struct plain_test *t);
PLAIN_SHARED void plain_run(const struct plain_test *t)
{
    struct plain_options o = t->options;
    for (int i = 0; i < plain_n_suites; i++)
        if (strcmp(plain_suites[i].name, t->suite) == 0) {
            o.init = o.init ? o.init : plain_suites[i].options.init;
            o.fini = o.fini ? o.fini : plain_suites[i].options.fini;
        }
    if (o.init)
        o.init();
    t->run();
    if (o.fini)
        o.fini();
    exit(plain_failures != 0);
}

PLAIN_SHARED int main(void)
{
    int failed = 0;
    printf("1..%d\n", plain_n_tests);
    for (int i = 0; i < plain_n_tests; i++) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            plain_run(&plain_tests[i]);
        waitpid(child, &status, 0);
        int skipped = WIFEXITED(status) && WEXITSTATUS(status) == PLAIN_SKIPPED;
        int good = skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
        failed += !good;
        printf("%s %d - %s::%s%s\n", good ? "ok" : "not ok", i + 1, plain_tests[i].suite,
               plain_tests[i].name, skipped ? " # SKIP" : "");
    }
    return failed != 0;
}

#endif /* PLAIN_CRITERION_H */
