/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a test: what its process knows, and where it leaves what it found.
 */
#ifndef CHECK_TEST_TEST_H
#define CHECK_TEST_TEST_H

#include "check/cases.h"
#include "check/check.h"
#include "check/environment.h"
#include "check/harness/trial.h"

#define REPORT_LAYERS 64

/* A layer that the file defines, or extends; host, cuda: it has impls there, of those
 * asked for. */
struct report_layer {
    char name[160];  /* full */
    char impls[256]; /* of the file: "any, avx2" */
    bool own, host, cuda;
};

/* Shared by a test's process and its parent: what is written here survives a crash. */
struct check_report {
    bool finished; /* the test came to its end */
    bool no_case;  /* nothing was found that the layer takes */
    int runs;
    char note[256], skip[256]; /* skip: why the test cannot be held; or "" */
    char fatal[24];            /* rule that a crash breaks now, if not the usual one */
    struct check_place place;  /* where the test is */
    size_t n_findings, n_layers;
    struct check_finding findings[CHECK_FINDINGS];
    struct report_layer layers[REPORT_LAYERS];
};

struct check_child {
    const struct check_options *o;
    struct check_report *report;
    const char *layer_name, *device; /* "" where none */
    struct environment before;
    strata_registry *registry;
    const struct registry_layer *layer;
    strata_handle *handle; /* NULL: the host */
    struct mirror mirror;
    struct harness_target target; /* made for this test; a test adds its visitor */
    struct check_cases cases;
};

enum check_scope { SCOPE_FILE, SCOPE_LAYER, SCOPE_IMPLS };
struct check_test {
    const char *name;
    enum check_scope scope; /* of a layer's own module; of impls, once a device */
    bool cuda_only, host_only;
    void (*run)(struct check_child *c);
};
extern const struct check_test check_tests[]; /* ended by {0} */

/* test.c */
/* As much of a text as fits. */
void copy_text(char *to, size_t size, const char *from);
/* Record a finding at the current place; one of each rule and impl is kept. */
void check_found(struct check_child *c, const char *rule, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* A problem of the harness, with c as user. */
void check_problem(const struct trial *t, const char *rule, const char *text, void *c);
/* Add to what a passed test says of itself. */
void check_note(struct check_child *c, const char *format, ...) PRINTF_LIKE(2, 3);
/* Note where a trial is, and whether the process is as it was. */
void check_place_at(const struct trial *t, void *c);
void check_environment(struct check_child *c, bool loading);

/* again.c: fill f->command. */
void check_write_command(struct check_finding *f, const struct check_child *c,
                         const struct check_test *test);

/* load.c, attributes.c, shapes.c, values.c, repeat.c, concurrency.c, errors.c,
 * streams.c */
void check_load(struct check_child *c);
void check_attributes(struct check_child *c);
void check_round_trip(struct check_child *c);
void check_shapes(struct check_child *c);
void check_values(struct check_child *c);
void check_memory(struct check_child *c);
void check_determinism(struct check_child *c);
void check_concurrency(struct check_child *c);
void check_leaks(struct check_child *c);
void check_errors(struct check_child *c);
void check_streams(struct check_child *c);

#endif /* CHECK_TEST_TEST_H */
