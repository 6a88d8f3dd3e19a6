/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation and every file operation of opening modules fails once, and all from
 * there on: an error, or all that is there without a fault. A module that is left out as
 * if its file were bad would be missed by plans, and by nobody else.
 */
#include "registry/registry.h"

#include <sys/resource.h>

#include "tests/broken/folders.h"
#include "tests/support/fault.h"

TestSuite(faults, .init = folders_start, .fini = scratch_remove, .timeout = 600);

/* What a registry came to. */
struct found {
    int status;
    size_t modules, rejections, layers, impls;
};

static struct found look(strata_error *err)
{
    strata_registry_options options = {.struct_size = sizeof options,
                                       .search_path = in_scratch("p")};
    strata_registry *r;
    struct found f = {registry_create(&r, &options, in_scratch("q"), err), 0, 0, 0, 0};
    if (f.status == STRATA_OK)
        f.status = registry_load_all(r, err);
    if (f.status == STRATA_OK) {
        f.modules = registry_modules(r);
        f.rejections = registry_rejections(r);
        f.layers = registry_layers(r);
        for (size_t i = 0; i < f.layers; i++)
            f.impls += registry_layer_at(r, i)->n_impls;
    }
    strata_registry_destroy(r);
    return f;
}

static void fail_each(enum fault_kind kind, bool lasts)
{
    strata_error err = {0};
    look(&err); /* first use allocates what stays */
    fault_arm(kind, 0, false);
    const struct found right = look(&err);
    const long calls = fault_disarm(), before = fault_blocks();
    cr_assert_eq(right.status, STRATA_OK, "%s", err.message);
    cr_assert(right.modules == 3 && right.rejections == 1 && right.impls == 4,
              "%zu modules, %zu rejections, %zu impls", right.modules, right.rejections,
              right.impls);
    for (long at = 1; at <= calls; at++) {
        memset(&err, 0, sizeof err);
        fault_arm(kind, at, lasts);
        const struct found f = look(&err);
        fault_disarm();
        if (f.status != STRATA_OK)
            cr_expect(f.status == (kind == FAULT_MEMORY ? STRATA_ENOMEM : STRATA_EIO) &&
                          err.message[0],
                      "call %ld of %ld: %d, '%s'", at, calls, f.status, err.message);
        else
            cr_expect(f.modules == right.modules && f.rejections == right.rejections &&
                          f.layers == right.layers && f.impls == right.impls,
                      "call %ld of %ld: %zu modules, %zu rejections, %zu impls", at,
                      calls, f.modules, f.rejections, f.impls);
        cr_expect_eq(fault_blocks(), before, "call %ld of %ld leaks", at, calls);
    }
    cr_expect_gt(calls, 20, "%ld", calls);
}

static void make_modules(void)
{
    folder("p"), folder("q");
    build("p/leaky.so", LEAKY, SHARED);
    build("p/extends.so", "broken/extends.c", SHARED);
    build("q/probe.so", "broken/layer.c", SHARED);
    spill_text("p/bad.so", "no module");
}

Test(faults, memory_that_is_short_leaves_no_module_out)
{
    make_modules();
    fail_each(FAULT_MEMORY, false);
    fail_each(FAULT_MEMORY, true);
}

Test(faults, a_file_that_cannot_be_read_is_no_bad_file)
{
    make_modules();
    fail_each(FAULT_IO, false);
    fail_each(FAULT_IO, true);
}

Test(faults, too_many_open_files_are_an_error)
{
    strata_error err = {0};
    struct rlimit limit;
    make_modules();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){1, limit.rlim_max}), 0);
    const struct found f = look(&err);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(f.status, STRATA_EIO, "%s", err.message);
    cr_expect_not_null(strstr(err.message, "/p cannot be read: Too many open files"),
                       "%s", err.message);
}
