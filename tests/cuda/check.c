/* SPDX-License-Identifier: Apache-2.0
 *
 * `strata check` on a GPU: it names each fault of tests/faulty/cuda.cu, and nothing in
 * the layer that has none. Each fault is a test of its own, so that CRITERION_JOBS can
 * hold several at once.
 */

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "core/status.h"

#define TEXT 512

/* The test that is to find it, and the rules of which one at least must be named. */
static const struct fault {
    const char *layer, *test, *rules;
    const char *shape; /* NULL: searched for, then made smaller */
} faults[] = {
    /* the stream */
    {"DefaultStream", "streams", "stream-order stream-capture", "2x3x5x7"},
    {"Allocates", "streams", "stream-capture", "2x3x5x7"},
    {"Synchronises", "streams", "stream-blocks", "2x3x5x7"},
    {"SynchronisesDevice", "streams", "stream-blocks", "2x3x5x7"},
    {"WaitsForEvent", "streams", "stream-blocks", "2x3x5x7"},
    {"Copies", "streams", "stream-capture", "2x3x5x7"},
    {"CopiesToHost", "streams", "stream-blocks", "2x3x5x7"},
    {"Sets", "streams", "stream-capture", "2x3x5x7"},
    {"OtherStream", "streams", "stream-order", "2x3x5x7"},
    {"KeepsStream", "streams", "stream-capture", "2x3x5x7"},
    {"BadLaunch", "values", "run-failed", "2x3x5x7"},
    /* memory */
    {"WildPointer", "values", "device-fault", "2x3x5x7"},
    {"OneTooMany", "memory", "bounds", "2x3x5x7"},
    {"OneTooFew", "memory", "unwritten", "2x3x5x7"},
    {"ReadsPast", "memory", "reads-outside", "2x3x5x7"},
    {"ModifiesInput", "memory", "input-modified", "2x3x5x7"},
    {"WorkspaceOverrun", "memory", "bounds", "2x3x5x7"},
    {"StaleWorkspace", "memory", "stale-read", "2x3x5x7"},
    {"PadDirty", "memory", "pad-dirty", "2x3x5x7"},
    /* values */
    {"PadRead", "values", "value-wrong", "2x3x5x7"},
    {"IgnoresStrides", "values", "value-wrong", "2x3x5x7"},
    {"Channel17", "values", "value-wrong"},
    {"Batch3", "values", "value-wrong"},
    /* repetition */
    {"Nondeterministic", "determinism", "nondeterministic", "2x3x5x7"},
    {"KeepsPointer", "determinism", "keeps-pointer", "2x3x5x7"},
    {"SharesBuffer", "concurrency", "concurrency", "2x17x31x33"},
    {"Leaks", "leaks", "leak", "2x3x5x7"},
};

/* What a check said: the rules it named, and why it skipped a test. */
struct verdict {
    char named[TEXT], skipped[TEXT];
};

static void note(const struct check_result *r, void *user)
{
    struct verdict *v = user;
    size_t used = strlen(v->named);
    if (r->verdict == CHECK_SKIPPED && r->device[0]) /* not for want of attributes */
        snprintf(v->skipped, TEXT, "%s", r->note);
    for (size_t i = 0; i < r->n_findings && used < TEXT; i++) {
        fprintf(stderr, "# %-18s %-12s %-16s %s\n", r->layer, r->test,
                r->findings[i].rule, r->findings[i].text);
        used +=
            (size_t)snprintf(v->named + used, TEXT - used, " %s ", r->findings[i].rule);
    }
}

static bool names_one(const char *named, const char *rules)
{
    char rule[64], copy[128], *rest = copy;
    snprintf(copy, sizeof copy, "%s", rules);
    for (char *word; (word = strsep(&rest, " "));) {
        snprintf(rule, sizeof rule, " %s ", word);
        if (strstr(named, rule))
            return true;
    }
    return false;
}

/* Without a device, or without the module: skip, unless there must be both. */
static void do_without(const char *what)
{
    const char *required = getenv("STRATA_REQUIRE_DEVICE");
    if (required && strcmp(required, "1") == 0)
        cr_assert(0, "a device is required: %s", what);
    cr_skip_test("no CUDA device");
}

/* This process must not open the device: its children could not use it then. The layer
 * on the device, in one test or (NULL) all. */
static struct verdict check_layer(const char *layer, const char *test, const char *shape)
{
    const char *modules = getenv("STRATA_TEST_MODULES");
    char file[PATH_MAX];
    struct verdict v = {0};
    strata_error err = {0};
    struct check_summary summary;
    const struct check_options o = {.file = file,
                                    .allow_untrusted = true,
                                    .layer = layer,
                                    .test = test,
                                    .shapes = &shape,
                                    .n_shapes = shape != NULL,
                                    .device = "cuda:0",
                                    .seed = 1,
                                    .limit_ms = 30000};
    snprintf(file, sizeof file, "%s/cuda_faulty.so", modules ? modules : ".");
    if (access(file, R_OK) != 0)
        do_without(file);
    cr_assert(check_module(&o, note, &v, &summary, &err) == STRATA_OK, "%s", err.message);
    if (v.skipped[0])
        do_without(v.skipped);
    return v;
}

TestSuite(check_cuda, .timeout = 600);

static void free_indices(struct criterion_test_params *p)
{
    cr_free(p->params);
}

ParameterizedTestParameters(check_cuda, each_fault_is_named)
{
    size_t *indices = cr_malloc(sizeof *indices * ARRAY_LENGTH(faults));
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        indices[i] = i;
    return cr_make_param_array(size_t, indices, ARRAY_LENGTH(faults), free_indices);
}

ParameterizedTest(size_t *index, check_cuda, each_fault_is_named)
{
    const struct fault *f = &faults[*index];
    const struct verdict v = check_layer(f->layer, f->test, f->shape);
    cr_expect(names_one(v.named, f->rules), "%s: want one of '%s', got '%s'", f->layer,
              f->rules, v.named);
}

Test(check_cuda, nothing_is_found_where_nothing_is_wrong)
{
    const struct verdict v = check_layer("Good", NULL, NULL);
    cr_expect(v.named[0] == '\0', "found '%s'", v.named);
}
