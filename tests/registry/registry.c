/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-up of layers, extensions, and what a failed look-up says.
 */
#include "registry/registry.h"

#include <pthread.h>

#include "tests/broken/folders.h"

TestSuite(registry, .init = folders_start, .fini = scratch_remove, .timeout = 600);

Test(registry, a_layer_is_found_by_any_form_of_its_name)
{
    static const char *const types[] = {"LeakyReLU", "org.example::LeakyReLU",
                                        "LeakyReLU@1", "org.example::LeakyReLU@1"};
    folder("p");
    build("p/leaky.so", LEAKY, SHARED);
    strata_registry *r = over(in_scratch("p"), NULL);
    cr_expect_eq(registry_modules(r), 1);
    cr_expect_not(registry_module(r, 0).loaded, "loaded before it was needed");
    const struct registry_layer *first = find(r, types[0]);
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        cr_expect_eq(find(r, types[i]), first, "%s", types[i]);
    cr_expect(registry_module(r, 0).loaded);
    cr_expect_eq(registry_layers(r), 1);
    cr_expect_eq(registry_layer_at(r, 0), first);
    strata_registry_destroy(r);
}

Test(registry, a_malformed_version_is_an_invalid_argument)
{
    static const char *const types[] = {"A@",   "A@0",  "A@x",          "A@1x",
                                        "A@-1", "A@ 1", "A@99999999999"};
    strata_registry *r = over(NULL, NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
        const struct registry_layer *layer;
        strata_error err = {0};
        cr_expect_eq(registry_find(r, types[i], &layer, &err), STRATA_EINVAL, "%s",
                     types[i]);
        cr_expect_not_null(strstr(err.message, "is not a version"), "%s", err.message);
    }
    strata_registry_destroy(r);
}

Test(registry, only_what_is_looked_up_is_loaded)
{
    folder("p");
    build("p/a.so", LEAKY, SHARED);
    build("p/b.so", "broken/constructor.c", SHARED " -DCONSTRUCTOR='abort()'");
    build("p/c.so", "broken/layer.c", SHARED);
    strata_registry *r = over(in_scratch("p"), NULL);
    cr_expect_eq(registry_modules(r), 3);
    find(r, "Probe");
    cr_expect(registry_module(r, 2).loaded);
    cr_expect_not(registry_module(r, 0).loaded || registry_module(r, 1).loaded);
    strata_registry_destroy(r);
}

Test(registry, one_bad_file_never_breaks_another)
{
    folder("p");
    spill("p/a.so", "text", 4);
    cr_assert_eq(mkfifo(in_scratch("p/b.so"), 0600), 0);
    build("p/c.so", "broken/layer.c", SHARED " -DOFFSET=24");
    build("p/d.so", LEAKY, SHARED);
    build("p/e.so", LEAKY, SHARED " -DSTRATA_ABI_REQUIRED_MINOR=99");
    strata_registry *r = over(in_scratch("p"), NULL);
    expect_rejected(r, in_scratch("p/a.so"), "not an ELF shared object (4 bytes)");
    expect_rejected(r, in_scratch("p/b.so"), "not a regular file");
    expect_rejected(r, in_scratch("p/e.so"), "needs ABI 1.99, this is " THIS_ABI);
    cr_expect_eq(registry_rejections(r), 3);
    cr_expect_eq(registry_load_all(r, NULL), STRATA_OK);
    cr_expect_eq(registry_rejections(r), 4);
    expect_rejected(r, in_scratch("p/c.so"), "attrs[1].offset 24 + 8 > params_size 16");
    cr_expect(registry_module(r, 0).rejected);
    cr_expect_eq(registry_layers(r), 1);
    find(r, "LeakyReLU");
    cr_expect_eq(registry_load_all(r, NULL), STRATA_OK, "a second time");
    cr_expect_eq(registry_rejections(r), 4);
    strata_registry_destroy(r);
}

/* A plan without it would differ for no reason that anybody sees; a list tells. */
Test(registry, a_module_without_memory_is_an_error_of_look_ups_alone)
{
    const struct registry_layer *layer;
    strata_error err = {0};
    folder("p");
    build("p/a.so", "broken/entry.c", SHARED " -DENTRY='host->fail(NULL, 2, \"\")'");
    build("p/b.so", "broken/layer.c", SHARED);
    strata_registry *r = over(in_scratch("p"), NULL);
    for (int times = 0; times < 2; times++) {
        cr_expect_eq(registry_find(r, "LeakyReLU", &layer, &err), STRATA_ENOMEM);
        cr_expect_not_null(strstr(err.message, "p/a.so: out of memory in its entry: it "
                                               "gives no reason"),
                           "%s", err.message);
        cr_expect_not(registry_module(r, 0).rejected);
    }
    cr_expect_eq(registry_load_all(r, &err), STRATA_OK, "%s", err.message);
    expect_rejected(r, in_scratch("p/a.so"), "out of memory in its entry");
    cr_expect_eq(registry_layers(r), 1);
    strata_registry_destroy(r);
}

Test(registry, a_short_name_in_two_namespaces_is_ambiguous)
{
    static const char *const texts[] = {
        "layer type 'Probe' is in more than one namespace; write one of:",
        "org.example::Probe (",
        "p/a.so)",
        "org.other::Probe (",
        "p/b.so)",
        NULL};
    folder("p");
    build("p/a.so", "broken/layer.c", SHARED);
    build("p/b.so", "broken/layer.c", SHARED " -DNS='\"org.other\"'");
    strata_registry *r = over(in_scratch("p"), NULL);
    expect_missing(r, "Probe", texts);
    expect_path(r, "org.other::Probe", in_scratch("p/b.so"));
    strata_registry_destroy(r);
    /* A candidate that does not load is none. */
    cr_assert_eq(unlink(in_scratch("p/b.so")), 0);
    build("p/c.so", "broken/layer.c", SHARED " -DNS='\"org.other\"' -DOFFSET=24");
    r = over(in_scratch("p"), NULL);
    expect_path(r, "Probe", in_scratch("p/a.so"));
    strata_registry_destroy(r);
}

Test(registry, a_version_is_taken_from_whoever_has_it)
{
    static const char *const texts[] = {"no layer type 'Probe@3'; there is @1, @2\n",
                                        "searched:", NULL};
    folder("p");
    build("p/a.so", "broken/layer.c", SHARED);
    build("p/b.so", "broken/layer.c", SHARED " -DLAYER_VERSION=2");
    strata_registry *r = over(in_scratch("p"), NULL);
    expect_path(r, "Probe", in_scratch("p/a.so"));
    expect_path(r, "Probe@2", in_scratch("p/b.so"));
    expect_missing(r, "Probe@3", texts);
    cr_expect_eq(registry_load_all(r, NULL), STRATA_OK);
    cr_expect_eq(registry_layers(r), 2);
    strata_registry_destroy(r);
}

Test(registry, a_failed_look_up_says_all_it_knows)
{
    static const char *const near[] = {
        "no layer type 'Leaky_ReLU'; did you mean 'LeakyReLU'?",
        "\n  namespaces: org.example\n",
        "\n  searched:\n",
        "/p (3 plugin files)",
        "/none (does not exist)",
        "\n  rejected: 2 (see `strata list --rejected`)",
        NULL};
    static const char *const refused[] = {
        "b.so has org.example::Probe, but was rejected: needs ABI 1.99, this is " THIS_ABI,
        NULL};
    static const char *const elsewhere[] = {"; there is 'org.example::LeakyReLU'", NULL};
    folder("p");
    build("p/a.so", LEAKY, SHARED);
    build("p/b.so", "broken/layer.c", SHARED " -DSTRATA_ABI_REQUIRED_MINOR=99");
    spill("p/c.so", "text", 4);
    strata_registry *r = over(in_scratch("p"), NULL);
    expect_missing(r, "Leaky_ReLU", near);
    expect_missing(r, "Probe", refused);
    expect_missing(r, "org.other::LeakyReLU", elsewhere);
    cr_expect_eq(registry_find(r, "", &(const struct registry_layer *){0}, NULL),
                 STRATA_ENOTFOUND, "err may be NULL");
    strata_registry_destroy(r);
}

Test(registry, impls_of_extending_modules_join_in_path_order)
{
    folder("p");
    build("p/a.so", "broken/extends.c", SHARED " -DIMPL='\"early\"'");
    build("p/m.so", "broken/layer.c", SHARED);
    build("p/z.so", "broken/extends.c", SHARED " -DIMPL='\"late\"'");
    strata_registry *r = over(in_scratch("p"), NULL);
    const struct registry_layer *l = find(r, "Probe");
    static const char *const names[] = {"one", "two", "early", "late"};
    static const size_t modules[] = {1, 1, 0, 2};
    cr_assert_eq(l->n_impls, ARRAY_LENGTH(names));
    for (size_t i = 0; i < l->n_impls; i++) {
        cr_expect_str_eq(l->impls[i].impl.name, names[i]);
        cr_expect_str_eq(module_info(l->impls[i].module).path,
                         registry_module(r, modules[i]).path);
        cr_expect_neq(l->impls[i].rows[0].in[0], 0);
    }
    cr_expect_eq(registry_rejections(r) + registry_warnings(r), 0);
    strata_registry_destroy(r);
}

Test(registry, a_bad_extension_is_left_out_and_the_layer_works)
{
    folder("p");
    build("p/a.so", "broken/layer.c", SHARED);
    build("p/b.so", "broken/extends.c", SHARED " -DRUN=NULL -DIMPL='\"b\"'");
    build("p/c.so", "broken/extends.c", SHARED " -DPARAMS_SIZE=24 -DIMPL='\"c\"'");
    build("p/d.so", "broken/extends.c", SHARED " -DLAYER_VERSION=2 -DIMPL='\"d\"'");
    build("p/e.so", "broken/extends.c", SHARED " -DIMPL='\"e\"'");
    strata_registry *r = over(in_scratch("p"), NULL);
    const struct registry_layer *l = find(r, "Probe");
    cr_assert_eq(l->n_impls, 3);
    cr_expect_str_eq(l->impls[2].impl.name, "e");
    expect_rejected(r, in_scratch("p/b.so"),
                    "extends 'org.example::Probe': impls[0] 'b': run is NULL");
    expect_rejected(r, in_scratch("p/c.so"),
                    "params_size 24 > 16 of org.example::Probe@1: built with a newer");
    cr_assert_eq(registry_warnings(r), 1);
    cr_expect_not_null(strstr(registry_warning(r, 0),
                              "p/d.so: it has no impls for org.example::Probe@1"),
                       "%s", registry_warning(r, 0));
    strata_registry_destroy(r);
}

Test(registry, the_host_table_reports_logs_and_extends)
{
    static const int table = 1;
    const strata_host *host = registry_host();
    strata_error err = {0};
    cr_expect_eq(host->struct_size, sizeof(strata_host));
    cr_expect_eq(host->fail(&err, STRATA_EINVAL, "kernel %d", 3), STRATA_EINVAL);
    cr_expect_str_eq(err.message, "kernel 3");
    cr_expect_eq(host->fail(NULL, STRATA_OK, "x"), STRATA_EINTERNAL, "never success");
    cr_expect_null(host->extension("test.table/1"));
    cr_expect_null(host->extension(NULL));
    cr_expect_eq(registry_set_extension("test.table/1", &table), STRATA_OK);
    cr_expect_eq(host->extension("test.table/1"), &table);
    cr_expect_null(host->extension("test.table/10"));
    host->log(STRATA_LOG_DEBUG, "below the level");
}

static void *find_many(void *registry)
{
    const struct registry_layer *layer;
    for (int i = 0; i < 200; i++) {
        if (registry_find(registry, i % 2 ? "Probe" : "LeakyReLU", &layer, NULL) != 0)
            return registry;
        (void)registry_find(registry, "Absent", &layer, NULL);
        if (registry_layers(registry) > 2 || registry_rejections(registry) > 1)
            return registry;
    }
    return NULL;
}

Test(registry, many_threads_look_up_at_once)
{
    pthread_t threads[8];
    folder("p");
    build("p/a.so", LEAKY, SHARED);
    build("p/b.so", "broken/layer.c", SHARED);
    build("p/c.so", "broken/extends.c", SHARED);
    build("p/d.so", "broken/extends.c", SHARED " -DRUN=NULL");
    strata_registry *r = over(in_scratch("p"), NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, find_many, r), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_expect_null(failed, "thread %zu", i);
    }
    cr_expect_eq(find(r, "Probe")->n_impls, 3);
    strata_registry_destroy(r);
}

Test(registry, a_network_adds_files_and_folders_in_front)
{
    strata_error err = {0};
    folder("p"), folder("q"), folder("bad");
    build("p/a.so", "broken/layer.c", SHARED);
    build("q/b.so", "broken/layer.c", SHARED " -DBUILD=1");
    build("bad/c.so", "broken/layer.c", SHARED " -DOFFSET=24 -DBUILD=2");
    build("named", "broken/layer.c", SHARED " -DBUILD=3");
    strata_registry *r = over(in_scratch("p"), NULL);
    for (int again = 0; again < 2; again++) {
        error_clear(&err);
        cr_expect_eq(registry_add_file(r, in_scratch("bad/c.so"), &err), STRATA_EMODULE);
        cr_expect_not_null(strstr(err.message, "c.so: layer 'Probe': attrs[1].offset"),
                           "%s", err.message);
    }
    error_clear(&err);
    cr_expect_eq(registry_add_file(r, in_scratch("named"), &err), STRATA_OK, "%s",
                 err.message);
    cr_expect_eq(registry_add_folder(r, in_scratch("q"), &err), STRATA_OK, "%s",
                 err.message);
    cr_expect_eq(registry_add_folder(r, in_scratch("q"), &err), STRATA_OK);
    cr_expect_eq(registry_add_folder(r, "q", &err), STRATA_EINVAL);
    expect_path(r, "Probe", in_scratch("named"));
    cr_expect_eq(registry_warnings(r), 2, "p/a.so and q/b.so, once each");
    strata_registry_destroy(r);
}
