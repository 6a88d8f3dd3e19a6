/* SPDX-License-Identifier: Apache-2.0
 *
 * `strata check` on a GPU: it names each fault of tests/faulty/cuda.cu, and nothing in
 * the layer that has none.
 */

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "check/child.h"
#include "core/handle.h"

#define NAMED 400

/* The rules of which one at least must be named. */
static const struct fault {
    const char *layer, *rules;
} faults[] = {
    {"Good", ""},
    {"DefaultStream", "stream-order stream-capture"},
    {"Allocates", "stream-capture"},
    {"Synchronises", "stream-blocks stream-capture"},
    {"SynchronisesDevice", "stream-blocks stream-capture"},
    {"Copies", "stream-order stream-capture"},
    {"Sets", "stream-order stream-capture"},
    {"BadLaunch", "run-failed"},
    {"OneTooMany", "bounds"},
    {"OneTooFew", "unwritten"},
    {"ModifiesInput", "input-modified"},
    {"WildPointer", "device-fault"},
    {"OtherStream", "stream-order stream-capture"},
    {"Leaks", "leak"},
};

static void note(const struct check_result *r, void *user)
{
    char *named = user;
    size_t used = strlen(named);
    if (r->verdict == CHECK_SKIPPED)
        cr_log_warn("%s of %s: skipped: %s", r->test, r->layer, r->note);
    for (size_t i = 0; i < r->n_findings && used < NAMED; i++) {
        fprintf(stderr, "# %-20s %-12s %-16s %s\n", r->layer, r->test,
                r->findings[i].rule, r->findings[i].text);
        used += (size_t)snprintf(named + used, NAMED - used, " %s ", r->findings[i].rule);
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

/* This process must not open the device: its children could not use it then. */
static void try_device(void *works)
{
    strata_handle *h = NULL;
    *(bool *)works = strata_create(&h, "cuda:0", NULL) == STRATA_OK;
    strata_destroy(h);
}

static void need_device(void)
{
    strata_error err = {0};
    struct child_end end;
    bool *works = child_memory(sizeof *works);
    cr_assert(works && child_run(try_device, works, 60000, &end, &err) == STRATA_OK, "%s",
              err.message);
    const bool found = *works;
    child_memory_free(works, sizeof *works);
    const char *required = getenv("STRATA_REQUIRE_DEVICE");
    if (found)
        return;
    if (required && strcmp(required, "1") == 0)
        cr_assert(0, "a device is required");
    cr_skip_test("no CUDA device");
}

static void check_fault(const struct fault *f, const char *file)
{
    char named[NAMED] = "";
    strata_error err = {0};
    struct check_summary summary;
    const struct check_options o = {.file = file,
                                    .allow_untrusted = true,
                                    .layer = f->layer,
                                    .device = "cuda:0",
                                    .seed = 1,
                                    .limit_ms = 60000};
    cr_assert(check_module(&o, note, named, &summary, &err) == STRATA_OK, "%s",
              err.message);
    cr_expect(summary.skipped == 0, "%s: %d tests skipped", f->layer, summary.skipped);
    if (f->rules[0])
        cr_expect(names_one(named, f->rules), "%s: want one of '%s', got '%s'", f->layer,
                  f->rules, named);
    else
        cr_expect(summary.failed == 0, "%s: found '%s'", f->layer, named);
}

TestSuite(check_cuda, .timeout = 600);

Test(check_cuda, every_fault_is_named)
{
    const char *modules = getenv("STRATA_TEST_MODULES");
    char file[PATH_MAX];
    need_device();
    snprintf(file, sizeof file, "%s/cuda_faulty.so", modules ? modules : ".");
    cr_assert(access(file, R_OK) == 0, "no %s", file);
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        check_fault(&faults[i], file);
}
