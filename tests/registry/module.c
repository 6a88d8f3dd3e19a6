/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules whose note is right and that fail when they are loaded, in this process or
 * in a child.
 */
#include "registry/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>

#include "registry/probe.h"

#include "tests/broken/build.h"

TestSuite(module, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

/* For what answers, however busy the machine is. */
#define PATIENCE_MS 300000

static int load(const char *path, struct module **out, strata_error *err)
{
    int status = module_open(out, path, 0, err);
    return status == STRATA_OK ? module_load(*out, NULL, NULL, err) : status;
}

static void expect_refused(const char *path, const char *text)
{
    struct module *m;
    strata_error err = {0};
    cr_expect_eq(load(path, &m, &err), STRATA_EMODULE, "%s: loaded", path);
    cr_expect_not_null(strstr(err.message, text), "%s: want '%s', got '%s'", path, text,
                       err.message);
    cr_expect_null(strstr(err.message, scratch), "the path is the caller's: %s",
                   err.message);
    module_free(m);
}

Test(module, a_good_one_loads_and_its_tables_are_copies)
{
    struct module *m;
    strata_error err = {0};
    cr_assert_eq(load(build("good.so", LEAKY, SHARED), &m, &err), STRATA_OK, "%s",
                 err.message);
    struct module_info info = module_info(m);
    const struct registry_layer *l = &m->tables.layers[0].layer;
    cr_expect(info.loaded && !info.duplicate && !info.rejected);
    cr_expect_str_eq(info.ns, "org.example");
    cr_expect_str_eq(l->full_name, "org.example::LeakyReLU@1");
    cr_expect_eq(l->n_attrs, 1);
    cr_expect_str_eq(l->attrs[0].name, "slope");
    cr_expect_eq(l->n_impls, 1);
    cr_expect_eq(l->impls[0].rows[0].out[0], STRATA_SAME);
    cr_expect_null(m->warning);
    module_free(m);
}

Test(module, what_the_loader_says_comes_with_its_meaning)
{
    expect_refused(build("undefined.so", "broken/undefined.c", SHARED),
                   "undefined symbol: from_elsewhere; plugins must not link the core");
    build("libdep.so", "broken/library.c", SHARED);
    build("needs.so", "broken/undefined.c", SHARED " -L'%s' -Wl,--no-as-needed -ldep",
          scratch);
    cr_assert_eq(unlink(in_scratch("libdep.so")), 0);
    expect_refused(in_scratch("needs.so"), "libdep.so: cannot open shared object file");
    expect_refused(build("tls.so", "broken/tls.c", SHARED),
                   "cannot allocate memory in static TLS block; build without "
                   "-ftls-model=initial-exec");
}

Test(module, an_entry_that_is_hidden_or_refuses_is_explained)
{
    expect_refused(build("hidden.so", LEAKY,
                         SHARED " -Wl,--version-script='%s/tests/broken/hidden.map'",
                         env_or("srcdir", ".")),
                   "the entry is hidden; check visibility and export list");
    expect_refused(
        build("refuses.so", "broken/entry.c",
              SHARED " -DENTRY='host->fail(NULL, 7, \"no licence for %%s\", \"you\")'"),
        "module refused to load: no licence for you");
    expect_refused(build("silent.so", "broken/entry.c", SHARED " -DENTRY='(void)host'"),
                   "module refused to load: it gives no reason");
}

/* A module's own symbol counts, not that of a plugin it was linked with. */
Test(module, the_entry_of_a_dependency_is_not_taken)
{
    build("libother.so", LEAKY, SHARED);
    build("borrows.so", LEAKY,
          SHARED " -Wl,--version-script='%s/tests/broken/hidden.map' -L'%s' "
                 "-Wl,--no-as-needed -lother -Xlinker -rpath -Xlinker '%s'",
          env_or("srcdir", "."), scratch, scratch);
    expect_refused(in_scratch("borrows.so"), "the entry is hidden");
}

Test(module, bad_tables_are_named_to_the_field)
{
    static const struct {
        const char *flags, *text;
    } cases[] = {
        {" -DOFFSET=24", "layer 'Probe': attrs[1].offset 24 + 8 > params_size 16"},
        {" -DNAME=NULL", "layers[0]: name is NULL"},
        {" -DLAYER_SIZE=8", "layers[0]: struct_size 8 of strata_layer < "},
        {" -DSECOND_ID=1",
         "layer 'Probe': impls[0] 'one' and impls[1] 'two' both have id 1"},
        {" -DIN=0", "layer 'Probe': impls[0] 'one': rows[0].in[0] is empty"},
        {" -DNS='\"org.example\"' -DLAYER_VERSION=0", "layer 'Probe': version is 0"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char name[32];
        snprintf(name, sizeof name, "bad%zu.so", i);
        expect_refused(build(name, "broken/layer.c", SHARED "%s", cases[i].flags),
                       cases[i].text);
    }
}

Test(module, a_note_that_differs_from_the_tables_is_a_warning)
{
    struct module *m;
    strata_error err = {0};
    char reason[512];
    const char *path = build("differs.so", "broken/layer.c",
                             SHARED " -DNAMES='\"Absent,+core::Other\"'");
    cr_assert_eq(load(path, &m, &err), STRATA_OK, "%s", err.message);
    cr_expect_str_eq(m->warning, "the note alone has 'Absent', the note alone has "
                                 "'+core::Other', the tables alone have 'Probe'");
    module_free(m);
    cr_expect_eq(registry_probe(path, PATIENCE_MS, reason, sizeof reason),
                 STRATA_EMODULE);
    cr_expect_not_null(strstr(reason, "the note differs from the tables: "), "%s",
                       reason);
}

Test(module, a_file_changed_after_its_note_was_read_is_refused)
{
    struct module *m;
    strata_error err = {0};
    build("change.so", "broken/layer.c", SHARED);
    cr_assert_eq(module_open(&m, in_scratch("change.so"), 0, &err), STRATA_OK);
    build("change.so", "broken/layer.c", SHARED " -DNS='\"org.other\"'");
    cr_expect_eq(module_load(m, NULL, NULL, &err), STRATA_EMODULE);
    cr_expect_not_null(strstr(err.message, "it changed after its note was read"), "%s",
                       err.message);
    module_free(m);
}

static void expect_probe(const char *path, int timeout_ms, const char *text)
{
    char reason[512];
    cr_expect_eq(registry_probe(path, timeout_ms, reason, sizeof reason), STRATA_EMODULE,
                 "%s: passed", path);
    cr_expect_str_eq(reason, text, "%s: want '%s', got '%s'", path, text, reason);
}

Test(module, a_probe_survives_what_a_module_does)
{
    static const struct {
        const char *source, *flags, *text;
    } cases[] = {
        {"broken/constructor.c", "-DCONSTRUCTOR='*nowhere = 1'",
         "constructor killed by SIGSEGV"},
        {"broken/constructor.c", "-DCONSTRUCTOR='abort()'",
         "constructor killed by SIGABRT"},
        {"broken/constructor.c", "-DCONSTRUCTOR='exit(3)'", "constructor called exit(3)"},
        {"broken/constructor.c", "-DCONSTRUCTOR='_exit(0)'",
         "constructor called exit(0)"},
        {"broken/constructor.c", "-DCONSTRUCTOR='for (;;) pause()'",
         "no answer in 0.5 s"},
        {"broken/constructor.c",
         "-DCONSTRUCTOR='for (int i = 0; i < 99; i++) close(i); for (;;) pause()'",
         "no answer in 0.5 s"},
        {"broken/entry.c", "-DENTRY='*nowhere = 1'", "entry killed by SIGSEGV"},
        {"broken/entry.c", "-DENTRY='for (;;)'", "no answer in 0.5 s"},
        {"broken/entry.c", "-DENTRY='host->fail(NULL, 7, \"busy\")'",
         "module refused to load: busy"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char name[32];
        snprintf(name, sizeof name, "probe%zu.so", i);
        expect_probe(build(name, cases[i].source, SHARED " %s", cases[i].flags),
                     strstr(cases[i].text, "0.5 s") ? 500 : PATIENCE_MS, cases[i].text);
    }
}

/* The pipe ends when nobody has it open for writing. */
Test(module, a_probe_waits_five_seconds_and_kills_what_is_left)
{
    int ends[2];
    char byte;
    build("hang.so", "broken/constructor.c",
          SHARED " -DCONSTRUCTOR='fork(); for (;;) pause()'");
    cr_assert_eq(pipe(ends), 0);
    expect_probe(in_scratch("hang.so"), PROBE_TIMEOUT_MS, "no answer in 5 s");
    close(ends[1]);
    cr_expect_eq(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

Test(module, a_probe_of_a_good_module_passes_and_loads_nothing_here)
{
    char reason[512];
    const char *path = build("good.so", LEAKY, SHARED);
    cr_expect_eq(registry_probe(path, PATIENCE_MS, reason, sizeof reason), STRATA_OK,
                 "%s", reason);
    cr_expect_str_empty(reason);
    cr_expect_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    expect_probe(in_scratch("missing.so"), PATIENCE_MS, "not found");
}
