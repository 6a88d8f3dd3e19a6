/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a plugin keeps the contract of strata/plugin.h: its tables are read, and every
 * claim in them is tried, each test in a process of its own.
 */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include <stdbool.h>

#include "core/status.h"

/* A child that must be told before and after a fork, as an interpreter has to be. */
struct check_fork {
    void (*before)(void), (*parent)(void), (*child)(void);
};

struct check_options {
    const char *file;
    /* Tables to check in place of a file; `file` is then their name for
     * strata_registry_add. NULL: a file. */
    const strata_module *module;
    const struct check_fork *fork; /* or NULL: nobody needs to be told */
    const char *command; /* that checks the same, for findings; NULL: strata check FILE */
    const char *const *others; /* more plugin files to load: what the file extends */
    size_t n_others;
    const char *plugin_path; /* or NULL */
    bool allow_untrusted;
    const char *device; /* NULL: the host, and cuda:0 for impls on CUDA */
    const char *layer;  /* only this one, as strata list writes it or bare; or NULL */
    const char *test;   /* only this one; or NULL */
    const char *impl, *formats; /* only these; or NULL */
    /* Cases to try in place of those found: each of the shapes ("3x8,3x8x5x5") with each
     * of the attributes. */
    const char *const *shapes, *const *attrs;
    size_t n_shapes, n_attrs;
    uint64_t seed;
    int limit_ms;    /* for one test */
    bool in_process; /* no child processes, for a debugger */
    bool thorough;   /* more shapes */
    bool quick;      /* fewer shapes, a sample of formats */
};

/* Where something happened; empty text where it does not apply. */
struct check_place {
    char phase[24]; /* callback */
    char impl[64], formats[192], attrs[512], shapes[192], variant[64];
};

struct check_finding {
    char rule[24]; /* of check/rules.h */
    struct check_place place;
    char text[1024];    /* what was seen */
    char command[2048]; /* that shows it again */
};
#define CHECK_FINDINGS 8 /* kept of one test */

enum check_verdict { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED };

struct check_result {
    const char *test, *layer, *device; /* layer "" and device "" where none */
    enum check_verdict verdict;
    const struct check_finding *findings;
    size_t n_findings;
    int runs;         /* combinations tried */
    const char *note; /* "agreement only", why it was skipped; or "" */
    double seconds;
};

/* Called after each test, in the calling process. */
typedef void (*check_listener)(const struct check_result *r, void *user);

struct check_summary {
    int passed, failed, skipped;
};

/* STRATA_OK when every test could be held, whatever it found. EINVAL for an option that
 * names nothing. */
int check_module(const struct check_options *o, check_listener listener, void *user,
                 struct check_summary *summary, strata_error *err);

/* The names that options.test may have; NULL past the last. */
const char *check_test_name(size_t i);

/* Counts, and refuses at will, what the module under test asks of malloc. The program
 * that can do so sets it (check/allocation.c); NULL: such tests are skipped. */
struct check_allocations {
    /* Watch what code between the two addresses asks for. */
    void (*watch)(const void *begin, const void *end);
    /* Refuse the k-th request from now on, counted from 1; 0: none. */
    void (*refuse)(unsigned k);
    unsigned (*count)(void); /* requests since watch or refuse */
    void (*stop)(void);
};
extern const struct check_allocations *check_allocations;

#endif /* CHECK_CHECK_H */
