/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines of the host that do not fit the machine, the plugins or themselves: each is
 * refused with a status and words that name what is wrong.
 */
#include "tests/engine/engine_saved.h"

/* Of the host, whatever device other tests are for. */
static void open_host_files(void)
{
    unsetenv("STRATA_TEST_DEVICE");
    open_files();
}

TestSuite(engine_refusal, .init = open_host_files, .fini = scratch_remove,
          .timeout = 600);

/* The altered file is refused with a status and words. */
static void expect_refused(int status, const char *const *words)
{
    struct session b;
    cr_expect_eq(load(&b, again), status, "%s", b.err.message);
    cr_expect_null(b.engine);
    for (; *words; words++)
        cr_expect(strstr(b.err.message, *words) != NULL, "no '%s' in: %s", *words,
                  b.err.message);
    cr_expect(strstr(b.err.message, again) != NULL, "%s", b.err.message);
    release(&b);
}

static const struct {
    const char *section, *from, *to;
    int status;
    const char *words[5];
} refusals[] = {
    {"device",
     "\"kind\": \"host\"",
     "\"kind\": \"cuda\"",
     STRATA_EUNSUPPORTED,
     {"device cuda", "handle of"}},
    {"device", "\"sm\": 0", "\"sm\": 90", STRATA_EUNSUPPORTED, {"capability 9.0"}},
    {"device", "\"sm\": 0,", "", STRATA_EPARSE, {"section 'device'", "sm"}},
    {"device", "{", "(", STRATA_EPARSE, {"section 'device'", "line 1"}},
    {"plugins",
     "\"namespace\": \"core\"",
     "\"namespace\": \"corn\"",
     STRATA_EMODULE,
     {"layer 'conv'", "convolution.so", "not here", "--plugin-path"}},
    {"plugins",
     "\"version\": \"1.",
     "\"version\": \"2.",
     STRATA_EMODULE,
     {"needs plugin", "version 2.", "found 1."}},
    {"plugins", "\"namespace\"", "\"nemespace\"", STRATA_EPARSE, {"namespace"}},
    {"plugins", "[", "{\"a\":[", STRATA_EPARSE, {"section 'plugins'"}},
    {"network", "[input x]", "[input z]", STRATA_EPARSE, {"again.engine:"}},
    {"network", "kernel = 3,3", "kernel = 4,4", STRATA_EPARSE, {"conv.weight"}},
    {"network",
     "file = weights",
     "file = /etc/passwd",
     STRATA_EPARSE,
     {"names no files"}},
    {"network",
     "[build]",
     "[plugins]\nload = x.so\n[build]",
     STRATA_EPARSE,
     {"names no files"}},
    {"network",
     "[build]",
     "[include]\nfile = x.ini\n[build]",
     STRATA_EPARSE,
     {"cannot include"}},
    {"network",
     "[build]\n",
     "[build]\ncosts = x.costs\n",
     STRATA_EPARSE,
     {"names no files"}},
    {"plan",
     "\"layer\": \"conv\"",
     "\"layer\": \"bn\"",
     STRATA_EPARSE,
     {"section 'plan'", "layer 'bn'"}},
    {"plan", "\"kind\": \"run\"", "\"kind\": \"walk\"", STRATA_EPARSE, {"'walk'"}},
    {"plan",
     "\"kind\": \"absorbed\"",
     "\"kind\": \"alias\"",
     STRATA_EUNSUPPORTED,
     {"cannot run here"}},
    {"plan", "\"row\": 0", "\"row\": 1000", STRATA_EUNSUPPORTED, {"row 1000"}},
    {"plan", "\"row\": 0", "\"row\": -1", STRATA_EPARSE, {"row -1"}},
    {"plan", "\"plugin\": 0", "\"plugin\": 900", STRATA_EPARSE, {"plugin 900"}},
    {"plan", "\"tensor\": \"x\"", "\"tensor\": \"xx\"", STRATA_EPARSE, {"tensor 'xx'"}},
    {"plan", "\"stage\": 0", "\"stage\": 3000", STRATA_EPARSE, {"stage 3000"}},
    {"plan", "\"cost\": ", "\"cost\": -", STRATA_EPARSE, {"out of range"}},
    {"plan", "\"cost\": ", "\"cost\": 1e400", STRATA_EPARSE, {"section 'plan'"}},
    {"plan",
     "\"reason\": \"FIXED-IO\"",
     "\"reason\": \"WHIM\"",
     STRATA_EPARSE,
     {"'WHIM'"}},
    {"plan",
     "\"conversions\": [",
     "\"conversion\": [], \"none\": [",
     STRATA_EPARSE,
     {"no conversion makes"}},
    {"plan",
     "\"costs\": \"analytic\"",
     "\"costs\": \"guess\"",
     STRATA_EPARSE,
     {"'guess'"}},
    {"weights", "conv.weight", "conv.weighs", STRATA_EPARSE, {"conv.weight"}},
    {"device", "\"kind\"", "\"kind\": \"host\", \"kind\"", STRATA_EPARSE, {"duplicate"}},
    {"network",
     "[layer cat]",
     "[layer more]\ntype = core::Identity@1\ninputs = act\n[layer cat]",
     STRATA_EPARSE,
     {"6 decisions for 7 layers"}},
    {"plan", "\"fused\": 2", "\"fused\": 1", STRATA_EPARSE, {"layers are fused"}},
    {"plan", "\"fused\": 3", "\"fused\": 9", STRATA_EUNSUPPORTED, {"layer 'conv'"}},
    {"plan", "\"cost\": ", "\"cost\": 0, \"x\": ", STRATA_EPARSE, {"is not free"}},
    {"plan", "\"fp32:nchw\"", "\"fp99:nchw\"", STRATA_EPARSE, {"fp99"}},
    {"plan",
     "\"fp32:nchw\"",
     "\"fp32:nc/5hw5\"",
     STRATA_EPARSE,
     {"no tensor of a network can have"}},
    {"network",
     "format = fp16:nhwc8",
     "format = fp32:nhwc8",
     STRATA_EPARSE,
     {"no tensor of a network can have", "'fp32:nhwc8'", "did you mean"}},
    {"network",
     "output_formats = fp32:nhwc",
     "output_formats = fp32:nc/2hw2",
     STRATA_EPARSE,
     {"no tensor of a network can have", "'fp32:nc/2hw2'"}},
    {"plan",
     "\"fp32:nchw\"",
     "\"int8:nchw\"",
     STRATA_EPARSE,
     {"tensor 'x'", "conversion from int8:nchw"}},
    {"plan",
     "\"reads\": [",
     "\"reads\": [\"fp32:nchw\",",
     STRATA_EPARSE,
     {"2 formats; needed 1"}},
    {"plan",
     "\"impl\": \"any\"",
     "\"impl\": \"nosuch\"",
     STRATA_EUNSUPPORTED,
     {"layer 'conv'", "impl nosuch"}},
    {"plan", "\"smaller\": []", "\"smaller\": [{}]", STRATA_EPARSE, {"smaller"}},
    {"weights", "F32", "F64", STRATA_EPARSE, {"weights"}},
};

Test(engine_refusal, what_does_not_fit_is_refused_by_name)
{
    save_text(branches, (const char *const[]){"layer conv.impl=any"}, 1);
    for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++) {
        alter(refusals[i].section, refusals[i].from, refusals[i].to);
        expect_refused(refusals[i].status, refusals[i].words);
    }
}

Test(engine_refusal, every_batch_needs_its_plan)
{
    save_text(batched, NULL, 0);
    alter("network", "N = 1,3,8", "N = 1,8");
    expect_refused(STRATA_EPARSE,
                   (const char *const[]){"2 plans for smaller sizes", NULL});
}

/* A conversion as a file has it. */
static json_t *conversion(const char *tensor, const char *from, const char *to)
{
    return json_pack("{s:s, s:{s:s, s:s, s:i}, s:{s:s, s:s, s:i}, s:i, s:s}", "tensor",
                     tensor, "from", "format", from, "pads", "zero", "stage", 0, "to",
                     "format", to, "pads", "zero", "stage", 0, "cost", 16, "reason",
                     "HARD");
}

/* Behind the last conversion of the same tensor, or at the end. */
static size_t place_behind(const json_t *list, const json_t *added)
{
    const char *tensor = json_string_value(json_object_get(added, "tensor"));
    size_t place = json_array_size(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *other = json_object_get(json_array_get(list, i), "tensor");
        if (strcmp(json_string_value(other), tensor) == 0)
            place = i + 1;
    }
    return place;
}

/* The saved file's plan with one more conversion, in its place or as the first. */
static void add_conversion(json_t *added, bool first)
{
    struct engine_file f;
    struct engine_section sections[ENGINE_FILE_SECTIONS];
    json_t *plan = NULL;
    char *text = NULL;
    cr_assert_eq(engine_file_open(&f, file, NULL), STRATA_OK);
    memcpy(sections, f.sections, sizeof sections);
    for (size_t i = 0; i < f.n_sections; i++) {
        if (strcmp(f.sections[i].name, SECTION_PLAN) != 0)
            continue;
        cr_assert_eq(engine_section_json(&plan, &f, SECTION_PLAN, NULL), STRATA_OK);
        json_t *list = json_object_get(plan, "conversions");
        json_array_insert_new(list, first ? 0 : place_behind(list, added), added);
        sections[i].data = text = json_dumps(plan, 0);
        sections[i].size = strlen(text);
    }
    cr_assert(text != NULL);
    cr_assert_eq(engine_file_write(again, sections, f.n_sections, "1.0.0", NULL),
                 STRATA_OK);
    json_decref(plan);
    free(text);
    engine_file_close(&f);
}

Test(engine_refusal, conversions_must_hold_together)
{
    struct session b;
    save_text(branches, (const char *const[]){"layer conv.impl=any",
                                               "layer conv.format=fp32:nhwc"},
              2);
    add_conversion(conversion("x", "fp32:nhwc", "fp16:nhwc"), true);
    expect_refused(STRATA_EPARSE, (const char *const[]){"'x'", "wrong place", NULL});
    add_conversion(conversion("x", "fp32:nchw", "fp32:nhwc"), false);
    expect_refused(STRATA_EPARSE, (const char *const[]){"'x'", "wrong place", NULL});
    add_conversion(conversion("y", "fp32:nhwc", "i32:nchw"), false);
    expect_refused(STRATA_EPARSE, (const char *const[]){"'y'", "does not exist", NULL});
    add_conversion(conversion("x", "fp32:nhwc", "fp16:nhwc"), false);
    cr_assert_eq(load(&b, again), STRATA_OK, "%s", b.err.message);
    release(&b);
    cr_assert_eq(rename(again, file), 0);
    add_conversion(conversion("x", "fp16:nhwc", "fp32:nc/8hw8"), false);
    expect_refused(STRATA_EPARSE, (const char *const[]){"'x'", "loses precision", NULL});
}

/* Nothing is allocated for an engine of another device. */
Test(engine_refusal, a_refused_engine_allocates_nothing)
{
    struct session b;
    strata_memory_stats stats = {.struct_size = sizeof stats};
    save_text(branches, NULL, 0);
    alter("device", "\"kind\": \"host\"", "\"kind\": \"cuda\"");
    cr_expect_eq(load(&b, again), STRATA_EUNSUPPORTED);
    strata_get_memory_stats(b.handle, &stats, NULL);
    cr_expect_eq(stats.allocations, 0);
    release(&b);
}

/* Neither its build nor its file's name is here. */
Test(engine_refusal, a_plugin_that_is_missing_is_named)
{
    save_text(branches, NULL, 0);
    alter("plugins", "\"build_id\": \"", "\"build_id\": \"00");
    cr_assert_eq(rename(again, file), 0);
    alter("plugins", "convolution.so", "nowhere.so");
    expect_refused(STRATA_EMODULE,
                   (const char *const[]){"layer 'conv'", "nowhere.so", "not here", NULL});
}

Test(engine_refusal, bad_arguments_are_refused)
{
    strata_error err = {0};
    strata_engine *e = NULL;
    cr_expect_eq(strata_engine_save(NULL, file, &err), STRATA_EINVAL);
    cr_expect_eq(strata_engine_load(&e, NULL, NULL, file, &err), STRATA_EINVAL);
    struct session b;
    cr_expect_eq(load(&b, "/nonexistent/x.engine"), STRATA_ENOTFOUND);
    release(&b);
}
