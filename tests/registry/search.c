/* SPDX-License-Identifier: Apache-2.0
 *
 * Where plugins are looked for, whom to trust, and which of two copies counts.
 */
#include "registry/registry.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/broken/folders.h"
#include "tests/support/reads.h"

TestSuite(search, .init = folders_start, .fini = scratch_remove, .timeout = 600);

Test(search, folders_are_searched_in_order_and_files_by_name)
{
    char path[2048], named[512];
    strata_error err = {0};
    strata_registry *r;
    folder("named"), folder("option"), folder("environment"), folder("default");
    folder("home"), folder("home/.local"), folder("home/.local/lib");
    folder("home/.local/lib/strata"), folder("home/.local/lib/strata/plugins-1");
    build("named/x", "broken/layer.c", SHARED " -DBUILD=1");
    build("option/b.so", "broken/layer.c", SHARED " -DBUILD=2");
    build("option/a.so", "broken/layer.c", SHARED " -DBUILD=3");
    build("environment/a.so", "broken/layer.c", SHARED " -DBUILD=4");
    build("home/.local/lib/strata/plugins-1/a.so", "broken/layer.c", SHARED " -DBUILD=5");
    build("default/a.so", "broken/layer.c", SHARED " -DBUILD=6");
    setenv("STRATA_PLUGIN_PATH", in_scratch("environment"), 1);
    snprintf(path, sizeof path, "%s/option", scratch);
    snprintf(named, sizeof named, "%s/named/x", scratch);
    const char *const files[] = {named};
    strata_registry_options options = {
        .struct_size = sizeof options, .files = files, .n_files = 1, .search_path = path};
    cr_assert_eq(registry_create(&r, &options, in_scratch("default"), &err), STRATA_OK,
                 "%s", err.message);
    static const char *const order[] = {"named/x",
                                        "option/a.so",
                                        "option/b.so",
                                        "environment/a.so",
                                        "home/.local/lib/strata/plugins-1/a.so",
                                        "default/a.so"};
    cr_assert_eq(registry_modules(r), ARRAY_LENGTH(order));
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++)
        cr_expect_str_eq(registry_module(r, i).path, in_scratch(order[i]));
    cr_expect(registry_module(r, 0).loaded, "a named file is loaded at once");
    cr_expect_eq(registry_warnings(r), 5, "the five hidden ones are told");
    expect_path(r, "Probe", named);
    strata_registry_destroy(r);

    options.n_files = 0;
    options.no_default_path = 1;
    cr_assert_eq(registry_create(&r, &options, in_scratch("default"), &err), STRATA_OK);
    cr_expect_eq(registry_modules(r), 2);
    cr_expect_eq(registry_folders(r), 1);
    expect_path(r, "Probe", in_scratch("option/a.so"));
    strata_registry_destroy(r);
}

Test(search, xdg_data_home_replaces_the_home_folder)
{
    setenv("XDG_DATA_HOME", in_scratch("data"), 1);
    strata_registry *r = over(NULL, NULL);
    cr_expect_str_eq(registry_folder(r, 0), in_scratch("data/strata/plugins-1"));
    strata_registry_destroy(r);
    setenv("XDG_DATA_HOME", "relative", 1);
    r = over(NULL, NULL);
    cr_expect_str_eq(registry_folder(r, 0),
                     in_scratch("home/.local/lib/strata/plugins-1"));
    strata_registry_destroy(r);
}

Test(search, relative_and_empty_folders_are_refused_with_a_reason)
{
    char path[1024];
    folder("p");
    build("p/leaky.so", LEAKY, SHARED);
    cr_assert_eq(chdir(in_scratch("p")), 0);
    snprintf(path, sizeof path, ".:plugins::%s/p/", scratch);
    setenv("STRATA_PLUGIN_PATH", ":", 1);
    strata_registry *r = over(path, NULL);
    expect_rejected(r, ".", "a relative folder in the search path is not searched");
    expect_rejected(r, "plugins", "a relative folder in the search path");
    expect_rejected(r, "(empty)", "an empty folder in the search path");
    cr_expect_eq(registry_rejections(r), 5);
    cr_expect_eq(registry_modules(r), 1);
    cr_expect_str_eq(registry_folder(r, 0), in_scratch("p"));
    strata_registry_destroy(r);
}

Test(search, folders_below_and_other_names_are_not_read)
{
    folder("p"), folder("p/below");
    build("p/below/leaky.so", LEAKY, SHARED);
    build("p/leaky.so.1", LEAKY, SHARED);
    build("p/.hidden.so", LEAKY, SHARED);
    strata_registry *r = over(in_scratch("p"), NULL);
    cr_expect_eq(registry_modules(r), 0);
    cr_expect_eq(registry_rejections(r), 0);
    strata_registry_destroy(r);
}

Test(search, a_named_file_that_is_refused_fails_the_creation)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"missing.so", "missing.so: not found"},
        {"text", "text: not an ELF shared object (4 bytes)"},
        {"bad.so", "bad.so: layer 'Probe': attrs[1].offset 24 + 8 > params_size 16"},
    };
    spill("text", "text", 4);
    build("bad.so", "broken/layer.c", SHARED " -DOFFSET=24");
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_registry *r;
        strata_error err = {0};
        const char *const files[] = {in_scratch(cases[i].name)};
        strata_registry_options options = {
            .struct_size = sizeof options, .files = files, .n_files = 1};
        cr_expect_eq(registry_create(&r, &options, "/none", &err), STRATA_EMODULE);
        cr_expect_null(r);
        cr_expect_not_null(strstr(err.message, cases[i].text), "%s", err.message);
    }
}

Test(search, options_of_another_size_are_understood_or_refused)
{
    strata_registry *r;
    strata_error err = {0};
    struct {
        strata_registry_options options;
        void *later;
    } longer = {0};
    longer.options.struct_size = sizeof longer;
    longer.options.no_default_path = 1;
    cr_expect_eq(strata_registry_create(&r, &longer.options, &err), STRATA_OK);
    cr_expect_eq(registry_folders(r), 0);
    strata_registry_destroy(r);
    longer.options.struct_size = 8;
    cr_expect_eq(strata_registry_create(&r, &longer.options, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "struct_size is 8, need"), "%s", err.message);
    cr_expect_eq(strata_registry_create(&r, NULL, NULL), STRATA_OK);
    strata_registry_destroy(r);
    strata_registry_destroy(NULL);
}

Test(search, the_same_build_is_a_duplicate_and_another_a_warning)
{
    char path[1024];
    folder("a"), folder("b"), folder("c");
    struct blob b =
        slurp(build("a/one.so", "broken/layer.c", SHARED " -Wl,--build-id=sha1"));
    spill("b/copy.so", b.bytes, b.size);
    cr_assert_eq(symlink(in_scratch("a/one.so"), in_scratch("b/link.so")), 0);
    build("c/other.so", "broken/layer.c", SHARED " -DBUILD=1 -Wl,--build-id=sha1");
    snprintf(path, sizeof path, "%s/a:%s/b:%s/c", scratch, scratch, scratch);
    strata_registry *r = over(path, NULL);
    cr_assert_eq(registry_modules(r), 4);
    cr_expect_not(registry_module(r, 0).duplicate);
    cr_expect(registry_module(r, 1).duplicate, "a copy");
    cr_expect(registry_module(r, 2).duplicate, "a symbolic link");
    cr_expect_not(registry_module(r, 3).duplicate);
    cr_assert_eq(registry_warnings(r), 1);
    char want[1024];
    snprintf(want, sizeof want,
             "plugin %s/c/other.so: org.example::Probe is not used, %s/a/one.so has it "
             "first",
             scratch, scratch);
    cr_expect_str_eq(registry_warning(r, 0), want);
    expect_path(r, "Probe", in_scratch("a/one.so"));
    cr_assert_eq(registry_load_all(r, NULL), STRATA_OK);
    cr_expect_eq(registry_layers(r), 1);
    strata_registry_destroy(r);
    free(b.bytes);
}

Test(search, the_installed_core_cannot_be_shadowed)
{
    folder("first"), folder("default");
    build("first/a.so", "broken/layer.c", SHARED " -DNS='\"core\"' -DBUILD=1");
    build("first/b.so", "broken/layer.c",
          SHARED " -DNS='\"core\"' -DBUILD=1 -DNAMES='\"Extra\"' -DNAME='\"Extra\"'");
    strata_registry *r = over(in_scratch("first"), in_scratch("default"));
    expect_path(r, "core::Probe", in_scratch("first/a.so")); /* an uninstalled tree */
    strata_registry_destroy(r);
    build("default/z.so", "broken/layer.c", SHARED " -DNS='\"core\"'");
    r = over(in_scratch("first"), in_scratch("default"));
    expect_path(r, "core::Probe", in_scratch("default/z.so"));
    expect_path(r, "core::Extra", in_scratch("first/b.so"));
    cr_expect_eq(registry_warnings(r), 1);
    cr_expect_eq(registry_load_all(r, NULL), STRATA_OK);
    cr_expect_eq(registry_layers(r), 2);
    strata_registry_destroy(r);

    cr_assert_eq(unlink(in_scratch("default/z.so")), 0);
    build("default/y.so", "broken/layer.c", SHARED " -DNS='\"core\"' -DOFFSET=24");
    static const char *const texts[] = {"y.so has core::Probe, but was rejected: layer",
                                        NULL};
    r = over(in_scratch("first"), in_scratch("default"));
    expect_missing(r, "core::Probe", texts);
    strata_registry_destroy(r);
}

Test(search, a_name_of_the_installed_core_is_meant_where_it_stands_alone)
{
    folder("first"), folder("default");
    build("first/a.so", "broken/layer.c", SHARED);
    build("default/b.so", "broken/layer.c", SHARED " -DNS='\"org.other\"'");
    build("default/z.so", "broken/layer.c", SHARED " -DNS='\"core\"'");
    strata_registry *r = over(in_scratch("first"), in_scratch("default"));
    cr_expect_eq(registry_warnings(r), 0);
    for (int i = 0; i < 2; i++)
        expect_path(r, "Probe", in_scratch("default/z.so"));
    cr_expect_eq(registry_warnings(r), 2);
    cr_expect_not_null(strstr(registry_warning(r, 0),
                              "a.so: 'Probe' alone is core::Probe; write "
                              "org.example::Probe for this one"));
    expect_path(r, "Probe@1", in_scratch("default/z.so"));
    expect_path(r, "org.example::Probe", in_scratch("first/a.so"));
    strata_registry_destroy(r);
}

Test(search, a_copy_of_the_installed_core_gives_way_to_it)
{
    folder("first"), folder("default");
    struct blob b = slurp(build("default/core.so", "broken/layer.c",
                                SHARED " -DNS='\"core\"' -Wl,--build-id=sha1"));
    spill("first/core.so", b.bytes, b.size);
    strata_registry *r = over(in_scratch("first"), in_scratch("default"));
    expect_path(r, "Probe", in_scratch("default/core.so"));
    cr_expect(registry_module(r, 0).duplicate);
    strata_registry_destroy(r);
    free(b.bytes);
}

Test(search, files_that_others_may_write_are_refused)
{
    folder("p");
    build("p/a.so", LEAKY, SHARED);
    cr_assert_eq(chmod(in_scratch("p/a.so"), 0775), 0);
    strata_registry *r = over(in_scratch("p"), NULL);
    char want[600];
    snprintf(want, sizeof want, "can be written by its group; chmod go-w '%s/p/a.so'",
             scratch);
    expect_rejected(r, in_scratch("p/a.so"), want);
    static const char *const texts[] = {"a.so has org.example::LeakyReLU, but was "
                                        "rejected: not trusted: ",
                                        NULL};
    expect_missing(r, "LeakyReLU", texts);
    strata_registry_destroy(r);

    cr_assert_eq(chmod(in_scratch("p/a.so"), 0755), 0);
    cr_assert_eq(chmod(in_scratch("p"), 0777), 0);
    r = over(in_scratch("p"), NULL);
    snprintf(want, sizeof want, "'%s/p' can be written by everyone; chmod go-w '%s/p'",
             scratch, scratch);
    expect_rejected(r, in_scratch("p/a.so"), want);
    strata_registry_destroy(r);

    strata_registry_options options = {.struct_size = sizeof options,
                                       .search_path = in_scratch("p"),
                                       .allow_untrusted = 1};
    cr_assert_eq(registry_create(&r, &options, "/none", NULL), STRATA_OK);
    find(r, "LeakyReLU");
    strata_registry_destroy(r);
}

Test(search, a_sticky_folder_is_trusted_for_a_named_file_alone)
{
    strata_registry *r;
    strata_error err = {0};
    folder("tmp"), folder("links");
    build("tmp/a.so", LEAKY, SHARED);
    cr_assert_eq(chmod(in_scratch("tmp"), 01777), 0);
    r = over(in_scratch("tmp"), NULL);
    expect_rejected(r, in_scratch("tmp/a.so"), "not trusted");
    strata_registry_destroy(r);
    const char *const files[] = {in_scratch("tmp/a.so")};
    strata_registry_options options = {
        .struct_size = sizeof options, .files = files, .n_files = 1};
    cr_expect_eq(registry_create(&r, &options, "/none", &err), STRATA_OK, "%s",
                 err.message);
    strata_registry_destroy(r);
    /* The target of a link is what counts. */
    cr_assert_eq(symlink(in_scratch("tmp/a.so"), in_scratch("links/a.so")), 0);
    r = over(in_scratch("links"), NULL);
    expect_rejected(r, in_scratch("links/a.so"), "/tmp' can be written by everyone");
    strata_registry_destroy(r);
}

/* Who can write a folder above could exchange the ones below it. */
Test(search, every_folder_above_is_judged)
{
    char want[600];
    folder("up"), folder("up/mid"), folder("up/mid/p");
    build("up/mid/p/a.so", LEAKY, SHARED);
    cr_assert_eq(chmod(in_scratch("up"), 0777), 0);
    strata_registry *r = over(in_scratch("up/mid/p"), NULL);
    snprintf(want, sizeof want, "'%s/up' can be written by everyone; chmod go-w '%s/up'",
             scratch, scratch);
    expect_rejected(r, in_scratch("up/mid/p/a.so"), want);
    strata_registry_destroy(r);
    cr_assert_eq(chmod(in_scratch("up"), 01777), 0);
    r = over(in_scratch("up/mid/p"), NULL);
    find(r, "LeakyReLU");
    strata_registry_destroy(r);
    cr_assert_eq(chmod(in_scratch("up/mid"), 0775), 0);
    r = over(in_scratch("up/mid/p"), NULL);
    expect_rejected(r, in_scratch("up/mid/p/a.so"), "/mid' can be written by its group");
    strata_registry_destroy(r);
    if (geteuid() != 0)
        return;
    cr_assert_eq(chmod(in_scratch("up/mid"), 0755), 0);
    cr_assert_eq(chown(in_scratch("up/mid"), 12345, (gid_t)-1), 0);
    r = over(in_scratch("up/mid/p"), NULL);
    expect_rejected(r, in_scratch("up/mid/p/a.so"), "/mid' belongs to user 12345");
    strata_registry_destroy(r);
}

/* Another user exchanges a folder and one of its own, for as long as it lives. */
static pid_t start_exchanging(const char *one, const char *other)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (setgid(12345) != 0 || setuid(12345) != 0)
        _exit(1);
    for (;;)
        renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

Test(search, folders_exchanged_in_a_race_bring_no_strangers_code)
{
    if (geteuid() != 0)
        cr_skip_test("only root has another user's folders exchanged");
    folder("open"), folder("open/ours"), folder("open/ours/p");
    folder("open/theirs"), folder("open/theirs/p");
    build("open/ours/p/a.so", LEAKY, SHARED);
    build("open/theirs/p/a.so", "broken/constructor.c",
          SHARED " -DCONSTRUCTOR='_exit(66)'");
    static const char *const given[] = {"open", "open/theirs", "open/theirs/p",
                                        "open/theirs/p/a.so"};
    for (size_t i = 0; i < ARRAY_LENGTH(given); i++)
        cr_assert_eq(chown(in_scratch(given[i]), i ? 12345 : 0, (gid_t)-1), 0);
    cr_assert_eq(chmod(scratch, 0755), 0);
    cr_assert_eq(chmod(in_scratch("open"), 0777), 0);
    pid_t other = start_exchanging(in_scratch("open/ours"), in_scratch("open/theirs"));
    cr_assert_gt(other, 0);
    for (int i = 0; i < 300; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            const struct registry_layer *layer;
            strata_registry *r = over(in_scratch("open/ours/p"), NULL);
            _exit(registry_find(r, "LeakyReLU", &layer, NULL) == STRATA_OK);
        }
        int ended = 0;
        cr_assert_eq(waitpid(pid, &ended, 0), pid);
        cr_expect(WIFEXITED(ended) && WEXITSTATUS(ended) == 0, "round %d: 0x%x", i,
                  (unsigned)ended);
    }
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

Test(search, a_strangers_file_is_refused)
{
    if (geteuid() != 0)
        cr_skip_test("only root can give a file away");
    folder("p");
    build("p/a.so", LEAKY, SHARED);
    cr_assert_eq(chown(in_scratch("p/a.so"), 12345, (gid_t)-1), 0);
    strata_registry *r = over(in_scratch("p"), NULL);
    expect_rejected(r, in_scratch("p/a.so"),
                    "belongs to user 12345, need root or user 0");
    strata_registry_destroy(r);
    cr_assert_eq(chown(in_scratch("p/a.so"), 0, (gid_t)-1), 0);
    cr_assert_eq(chown(in_scratch("p"), 12345, (gid_t)-1), 0);
    r = over(in_scratch("p"), NULL);
    expect_rejected(r, in_scratch("p/a.so"), "/p' belongs to user 12345");
    strata_registry_destroy(r);
}

Test(search, modules_for_a_newer_cuda_are_refused_once_the_driver_is_known)
{
    folder("p");
    build("p/a.so", LEAKY, SHARED " -DCUDART_VERSION=13000");
    strata_registry *r = over(in_scratch("p"), NULL);
    cr_expect_eq(registry_module(r, 0).cudart, 13000);
    strata_registry_destroy(r);
    registry_set_cuda_driver(12080);
    r = over(in_scratch("p"), NULL);
    expect_rejected(r, in_scratch("p/a.so"), "built for CUDA 13, driver supports 12.8");
    strata_registry_destroy(r);
}

Test(search, scanning_a_hundred_files_takes_a_few_small_reads_each)
{
    char name[32];
    folder("p");
    struct blob b = slurp(build("p/000.so", LEAKY, SHARED));
    for (int i = 1; i < 100; i++) {
        snprintf(name, sizeof name, "p/%03d.so", i);
        spill(name, b.bytes, b.size);
    }
    const struct reads before = reads_now();
    strata_registry *r = over(in_scratch("p"), NULL);
    expect_few_reads(&before, 100);
    cr_expect_eq(registry_modules(r), 100);
    cr_expect_null(dlopen(in_scratch("p/000.so"), RTLD_NOW | RTLD_NOLOAD));
    strata_registry_destroy(r);
    free(b.bytes);
}
