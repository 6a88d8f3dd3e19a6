/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules given as tables: what is refused, and who is found where files have the name,
 * too.
 */
#include <strata/module.h>

#include "tests/broken/folders.h"

TestSuite(given, .init = folders_start, .fini = scratch_remove, .timeout = 600);

static int run(const strata_run *r)
{
    return r->n_in == 1 ? STRATA_OK : STRATA_EINVAL;
}

static const strata_row row = {.in = {STRATA_F32_NCHW}, .out = {STRATA_F32_NCHW}};

/* A module of one layer, whose fields a test may break. */
struct given {
    strata_impl impl;
    strata_layer layer;
    const strata_layer *layers[1];
    strata_module module;
};

static struct given *fill(struct given *g, const char *ns, const char *name)
{
    *g = (struct given){
        .impl = {.id = 1, .name = "given", .rows = {&row, 1, sizeof row}, .run = run},
        .layer = {.struct_size = sizeof(strata_layer),
                  .version = 1,
                  .name = name,
                  .min_in = 1,
                  .max_in = 1,
                  .n_out = 1},
        .module = {.struct_size = sizeof(strata_module),
                   .abi_minor = STRATA_ABI_MINOR,
                   .ns = ns,
                   .version = "1.0",
                   .n_layers = 1}};
    g->layer.impls = (strata_array){&g->impl, 1, sizeof g->impl};
    g->layers[0] = &g->layer;
    g->module.layers = g->layers;
    return g;
}

static void give(strata_registry *r, const char *name, const strata_module *m)
{
    strata_error err = {0};
    cr_assert_eq(strata_registry_add(r, name, m, &err), STRATA_OK, "%s", err.message);
}

static void expect_refused(strata_registry *r, const char *name, const strata_module *m,
                           int status, const char *text)
{
    strata_error err = {0};
    const size_t before = registry_modules(r);
    cr_expect_eq(strata_registry_add(r, name, m, &err), status, "%s: %s", text,
                 err.message);
    cr_expect_not_null(strstr(err.message, text), "want '%s', got '%s'", text,
                       err.message);
    cr_expect_eq(registry_modules(r), before);
}

/* How many warnings hold the text. */
static size_t warnings(const strata_registry *r, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < registry_warnings(r); i++)
        n += strstr(registry_warning(r, i), text) != NULL;
    return n;
}

Test(given, a_layer_is_found_by_any_form_of_its_name)
{
    static const char *const types[] = {"Mine", "app::Mine", "Mine@1", "app::Mine@1"};
    struct given g;
    strata_registry *r = over(NULL, NULL);
    give(r, "mine", &fill(&g, "app", "Mine")->module);
    const struct registry_layer *first = find(r, types[0]);
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        cr_expect_eq(find(r, types[i]), first, "%s", types[i]);
    expect_path(r, "Mine", "memory:mine");
    cr_expect_eq(registry_load_all(r, NULL), STRATA_OK);
    cr_expect_eq(registry_layers(r), 1);
    cr_expect_eq(registry_rejections(r) + registry_warnings(r), 0);
    strata_registry_destroy(r);
}

Test(given, tables_are_copied)
{
    struct given g;
    strata_registry *r = over(NULL, NULL);
    give(r, "mine", &fill(&g, "app", "Mine")->module);
    memset(&g, 0, sizeof g); /* of its texts and functions nothing is in g */
    const struct registry_layer *l = find(r, "Mine");
    cr_expect_str_eq(l->full_name, "app::Mine@1");
    cr_expect_eq(l->impls[0].impl.run, run);
    cr_expect_eq(l->impls[0].rows[0].out[0], STRATA_F32_NCHW);
    strata_registry_destroy(r);
}

Test(given, bad_tables_are_named_to_the_field)
{
    struct given g;
    strata_registry *r = over(NULL, NULL);
    const strata_module *m = &fill(&g, "app", "Mine")->module;
    g.layer.version = 0;
    expect_refused(r, "x", m, STRATA_EMODULE,
                   "module memory:x: layer 'Mine': version is 0");
    fill(&g, "app", "Mine")->impl.run = NULL;
    expect_refused(r, "x", m, STRATA_EMODULE, "impls[0] 'given'");
    fill(&g, "Upper", "Mine");
    expect_refused(r, "x", m, STRATA_EMODULE, "module.ns 'Upper'");
    fill(&g, "app", "lower");
    expect_refused(r, "x", m, STRATA_EMODULE, "name 'lower' is not");
    fill(&g, "app", "Mine")->module.n_layers = 0;
    expect_refused(r, "x", m, STRATA_EMODULE, "no layers and extends none");
    fill(&g, "app", "Mine")->module.struct_size = 8;
    expect_refused(r, "x", m, STRATA_EMODULE, "struct_size 8 of strata_module");
    fill(&g, "a23456789012345678901234567890123456789012345678901234567890123456",
         "Mine");
    expect_refused(r, "x", m, STRATA_EMODULE, "is too long");
    strata_registry_destroy(r);
}

Test(given, names_are_plain_and_each_its_own)
{
    static const char *const names[] = {"", "a b", "a/b", "a\n", "\xc3\xa4"};
    char most[102];
    struct given g;
    strata_registry *r = over(NULL, NULL);
    const strata_module *m = &fill(&g, "app", "Mine")->module;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        expect_refused(r, names[i], m, STRATA_EINVAL, "1 to 100 printable characters");
    memset(most, 'n', sizeof most);
    most[101] = '\0';
    expect_refused(r, most, m, STRATA_EINVAL, "1 to 100 printable characters");
    most[100] = '\0';
    give(r, most, m);
    give(r, "x:1", m); /* the same layer again: the first has it */
    cr_expect_eq(warnings(r, "app::Mine is not used, memory:nnn"), 1);
    expect_refused(r, "x:1", m, STRATA_EINVAL, "has a module 'memory:x:1' already");
    strata_registry_destroy(r);
}

Test(given, a_file_has_its_layer_whenever_it_comes)
{
    struct given g, other;
    folder("p");
    folder("q");
    build("p/probe.so", "broken/layer.c", SHARED);
    build("q/late.so", "broken/layer.c", SHARED " -DNAME='\"Late\"' -DNAMES='\"Late\"'");
    strata_registry *r = over(in_scratch("p"), NULL);
    give(r, "mine", &fill(&g, "org.example", "Probe")->module);
    expect_path(r, "Probe", in_scratch("p/probe.so"));
    expect_path(r, "org.example::Probe", in_scratch("p/probe.so"));
    cr_expect_eq(warnings(r, "plugin memory:mine: org.example::Probe is not used, "), 1);
    give(r, "late", &fill(&other, "org.example", "Late")->module);
    cr_expect_eq(registry_warnings(r), 1);
    cr_assert_eq(registry_add_file(r, in_scratch("q/late.so"), NULL), STRATA_OK);
    cr_expect_eq(warnings(r, "plugin memory:late: org.example::Late is not used, "), 1);
    expect_path(r, "Late", in_scratch("q/late.so"));
    strata_registry_destroy(r);
}

Test(given, a_bare_name_is_a_files_in_any_namespace)
{
    struct given g;
    folder("p");
    build("p/probe.so", "broken/layer.c", SHARED);
    strata_registry *r = over(in_scratch("p"), NULL);
    give(r, "mine", &fill(&g, "app", "Probe")->module);
    expect_path(r, "Probe", in_scratch("p/probe.so"));
    expect_path(r, "app::Probe", "memory:mine");
    cr_expect_eq(
        warnings(r, "plugin memory:mine: 'Probe' alone is org.example::Probe of"), 1);
    strata_registry_destroy(r);
}

/* A file that cannot be loaded has nothing. */
Test(given, a_broken_file_leaves_the_layer)
{
    struct given g;
    folder("p");
    build("p/probe.so", "broken/layer.c", SHARED " -DOFFSET=24");
    strata_registry *r = over(in_scratch("p"), NULL);
    give(r, "mine", &fill(&g, "org.example", "Probe")->module);
    expect_path(r, "org.example::Probe", "memory:mine");
    expect_path(r, "Probe", "memory:mine");
    strata_registry_destroy(r);
}

Test(given, impls_for_the_layer_of_a_file)
{
    struct given g;
    folder("p");
    build("p/probe.so", "broken/layer.c", SHARED);
    strata_registry *r = over(in_scratch("p"), NULL);
    fill(&g, "app", "Unused");
    const strata_extends extends = {.struct_size = sizeof extends,
                                    .version = 1,
                                    .layer = "org.example::Probe",
                                    .params_size = 16,
                                    .impls = g.layer.impls};
    const strata_extends *const list[] = {&extends};
    g.module.n_layers = 0;
    g.module.extends = list;
    g.module.n_extends = 1;
    give(r, "faster", &g.module);
    const struct registry_layer *l = find(r, "Probe");
    cr_assert_eq(l->n_impls, 3);
    cr_expect_str_eq(l->impls[2].impl.name, "given");
    cr_expect_str_eq(module_info(l->impls[2].module).path, "memory:faster");
    strata_registry_destroy(r);
}
