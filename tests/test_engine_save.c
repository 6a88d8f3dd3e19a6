/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines written and read: the same answers bit for bit, the same bytes from the same
 * network, and a clear refusal of whatever does not fit the machine or the plugins.
 */
#include "core/engine_stored.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/strata-save-XXXXXX";
static char ini[64], file[64], again[64];

static void open_folder(void)
{
    cr_assert_neq(mkdtemp(folder), NULL);
    snprintf(ini, sizeof ini, "%s/net.ini", folder);
    snprintf(file, sizeof file, "%s/net.engine", folder);
    snprintf(again, sizeof again, "%s/again.engine", folder);
}

static void close_folder(void)
{
    unlink(ini);
    unlink(file);
    unlink(again);
    rmdir(folder);
}

TestSuite(engine_save, .init = open_folder, .fini = close_folder, .timeout = 300);

/* Everything of one network: built, or loaded. */
struct built {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_error err;
};

static void open_session(struct built *b)
{
    memset(b, 0, sizeof *b);
    cr_assert_eq(strata_registry_create(&b->registry, NULL, &b->err), STRATA_OK, "%s",
                 b->err.message);
    cr_assert_eq(strata_create(&b->handle, getenv("STRATA_TEST_DEVICE"), &b->err),
                 STRATA_OK, "%s", b->err.message);
}

static void build(struct built *b, const char *path, const char *const *set, size_t n)
{
    strata_network_options options = {sizeof options, set, n, NULL, 0};
    open_session(b);
    cr_assert_eq(strata_network_load(&b->network, path, b->registry, &options, &b->err),
                 STRATA_OK, "%s", b->err.message);
    cr_assert_eq(strata_engine_build(&b->engine, b->handle, b->network, &b->err),
                 STRATA_OK, "%s", b->err.message);
}

static int load(struct built *b, const char *path)
{
    open_session(b);
    return strata_engine_load(&b->engine, b->handle, b->registry, path, &b->err);
}

static void release(struct built *b)
{
    strata_engine_destroy(b->engine);
    strata_network_destroy(b->network);
    strata_destroy(b->handle);
    strata_registry_destroy(b->registry);
}

static void save(struct built *b, const char *path)
{
    cr_assert_eq(strata_engine_save(b->engine, path, &b->err), STRATA_OK, "%s",
                 b->err.message);
}

static void write_ini(const char *text)
{
    FILE *f = fopen(ini, "w");
    cr_assert_neq(f, NULL);
    fputs(text, f);
    fclose(f);
}

/* Bytes of all outputs after a run of a batch on inputs of a seed; the caller's. */
static char *answers(struct built *b, unsigned seed, int64_t batch, size_t *size)
{
    strata_context *c = NULL;
    char *all = NULL;
    *size = 0;
    srand(seed);
    cr_assert_eq(strata_context_create(&c, b->engine, b->handle, &b->err), STRATA_OK,
                 "%s", b->err.message);
    cr_assert_eq(strata_context_set_batch(c, batch, &b->err), STRATA_OK, "%s",
                 b->err.message);
    for (int pass = 0; pass < 2; pass++) { /* inputs come first */
        for (int i = 0; i < strata_engine_bindings(b->engine); i++) {
            strata_binding info;
            strata_engine_binding(b->engine, i, &info, NULL);
            if (info.is_input == pass)
                continue;
            float *data = calloc(1, (size_t)info.bytes);
            for (int64_t k = 0; k < info.bytes / 4 && !pass; k++)
                data[k] = (float)(rand() % 4001) / 2000 - 1;
            if (!pass) {
                strata_copy_in(c, i, data, NULL);
            } else {
                strata_copy_out(c, i, data, NULL);
                all = realloc(all, *size + (size_t)info.bytes);
                memcpy(all + *size, data, (size_t)info.bytes);
                *size += (size_t)info.bytes;
            }
            free(data);
        }
        if (!pass)
            cr_assert_eq(strata_context_run(c, &b->err), STRATA_OK, "%s", b->err.message);
    }
    strata_context_destroy(c);
    return all;
}

static void expect_same_answers(struct built *a, struct built *b, unsigned seed)
{
    int64_t batches[16];
    int n_batches = strata_engine_batches(a->engine, batches, 16);
    cr_expect_eq(strata_engine_batch(a->engine), strata_engine_batch(b->engine));
    cr_expect_eq(strata_engine_batches(b->engine, batches, 16), n_batches);
    for (int i = 0; i < n_batches; i++) {
        size_t n, m;
        char *first = answers(a, seed, batches[i], &n);
        char *second = answers(b, seed, batches[i], &m);
        cr_assert(n == m && n > 0);
        cr_expect_eq(memcmp(first, second, n), 0, "%s: outputs differ, seed %u, batch %d",
                     a->network->path, seed, (int)batches[i]);
        free(first);
        free(second);
    }
}

static void expect_same_bytes(const char *a, const char *b)
{
    struct file_bytes x, y;
    cr_assert_eq(file_read(&x, a, ENGINE_FILE_MAX, NULL), STRATA_OK);
    cr_assert_eq(file_read(&y, b, ENGINE_FILE_MAX, NULL), STRATA_OK);
    cr_expect(x.size == y.size && memcmp(x.data, y.data, x.size) == 0, "%s and %s differ",
              a, b);
    file_free(&x);
    file_free(&y);
}

/* Save, load, run both, save what was loaded. */
static void round_trip(const char *path, const char *const *set, size_t n_set)
{
    struct built a, b;
    const unsigned seed = (unsigned)getpid();
    build(&a, path, set, n_set);
    save(&a, file);
    cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
    expect_same_answers(&a, &b, seed);
    cr_expect_eq(a.engine->n_steps, b.engine->n_steps);
    cr_expect_eq(a.engine->arena_bytes, b.engine->arena_bytes);
    cr_expect_eq(a.engine->plan->cost, b.engine->plan->cost);
    cr_expect_eq(a.engine->weight_bytes, b.engine->weight_bytes);
    for (size_t i = 0; i < a.engine->n_steps && i < b.engine->n_steps; i++) {
        const struct engine_step *x = &a.engine->steps[i], *y = &b.engine->steps[i];
        cr_expect(x->kind == y->kind && x->cost == y->cost && x->reason == y->reason,
                  "%s: step %zu differs", path, i);
    }
    save(&b, again);
    expect_same_bytes(file, again);
    release(&a);
    release(&b);
}

static const char branches[] =
    "[network]\nformat = 1\nname = \"a $$5 #net\"\noutputs = cat, act\n"
    "output_formats = fp32:nhwc, fp16:nchw\n"
    "[input x]\nshape = 2 x 3 x 9 x 7\nmean = 1, 2, 3\nchannels = bgr\n"
    "[input y]\nshape = 2 x 5 x 9 x 7\nformat = fp16:nhwc8\n"
    "[weights w]\nrandom = 7\n"
    "[layer conv]\ntype = Convolution\nfilters = 5\nkernel = 3x3\npad = 1\n"
    "inputs = x\nweights = w:conv\nbias = zeros\n"
    "[layer bn]\ntype = Scale\nscale = w:s\nshift = 0.1\n"
    "[layer sum]\ntype = ElementWise\ninputs = bn, y\nop = sum\n"
    "[layer act]\ntype = Activation\nkind = leaky_relu\nalpha = 0.3\n"
    "[layer second]\ntype = Convolution\nfilters = 4\nkernel = 1x1\ninputs = act\n"
    "weights = w:second\n"
    "[layer cat]\ntype = Concatenation\naxis = 1\ninputs = second, act, y\n";

Test(engine_save, a_loaded_engine_answers_bit_for_bit)
{
    static const char *const sets[][2] = {
        {"build.precision=fp32", "build.fusion=yes"},
        {"build.precision=fp32", "build.fusion=no"},
        {"build.precision=fp16", "build.fusion=yes"},
        {"build.precision=any", "build.objective=memory"},
        {"build.precision=any", "build.objective=reformats"},
        {"build.precision=fp16", "build.formats=fp16:nhwc8,fp16:nc/2hw2"},
    };
    write_ini(branches);
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++)
        round_trip(ini, sets[i], 2);
}

Test(engine_save, digits_come_back)
{
    char path[512];
    const char *source = getenv("srcdir");
    snprintf(path, sizeof path, "%s/examples/digits/digits.ini", source ? source : ".");
    round_trip(path, NULL, 0);
    round_trip(path, (const char *const[]){"build.costs=measure"}, 1);
}

Test(engine_save, is_the_same_bytes_from_the_same_network)
{
    static const char *const analytic[] = {"build.costs=analytic"};
    struct built a, b;
    write_ini(branches);
    build(&a, ini, analytic, 1);
    build(&b, ini, analytic, 1);
    save(&a, file);
    save(&b, again);
    expect_same_bytes(file, again);
    release(&a);
    release(&b);
}

/* ---- refusals -------------------------------------------------------------------- */

/* Rewrite the saved file with `from` replaced by `to` in one section; hashes are right.
 */
static void alter(const char *section, const char *from, const char *to)
{
    struct engine_file f;
    struct engine_section sections[ENGINE_FILE_SECTIONS];
    strata_error err = {0};
    char *text = NULL;
    cr_assert_eq(engine_file_open(&f, file, &err), STRATA_OK, "%s", err.message);
    memcpy(sections, f.sections, sizeof sections);
    for (size_t i = 0; i < f.n_sections; i++) {
        if (strcmp(f.sections[i].name, section) != 0)
            continue;
        size_t size = f.sections[i].size, n = strlen(from), m = strlen(to);
        text = calloc(1, size + m + 1);
        memcpy(text, f.sections[i].data, size);
        char *at = memmem(text, size, from, n);
        cr_assert(at != NULL, "section %s has no '%s':\n%s", section, from, text);
        memmove(at + m, at + n, (size_t)(text + size - (at + n)));
        memcpy(at, to, m);
        sections[i].data = text;
        sections[i].size = size - n + m;
    }
    cr_assert(text != NULL, "no section %s", section);
    cr_assert_eq(engine_file_write(again, sections, f.n_sections, "1.0.0", &err),
                 STRATA_OK, "%s", err.message);
    free(text);
    engine_file_close(&f);
}

/* The altered file is refused with a status and words. */
static void expect_refused(int status, const char *const *words)
{
    struct built b;
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
    {"plan", "\"stage\": 0", "\"stage\": 1002", STRATA_EPARSE, {"stage 1002"}},
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
    {"plan", "\"fp32:nchw\"", "\"fp32:nc/5hw5\"", STRATA_EPARSE, {"no layer can have"}},
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

Test(engine_save, what_does_not_fit_is_refused_by_name)
{
    struct built a;
    if (getenv("STRATA_TEST_DEVICE"))
        cr_skip_test("the table is for an engine of the host");
    write_ini(branches);
    build(&a, ini, (const char *const[]){"layer conv.impl=any"}, 1);
    save(&a, file);
    release(&a);
    for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++) {
        alter(refusals[i].section, refusals[i].from, refusals[i].to);
        expect_refused(refusals[i].status, refusals[i].words);
    }
}

Test(engine_save, every_batch_of_a_profile_comes_back)
{
    static const char *const sets[] = {"profile.N=1, 3, 8", "build.precision=any"};
    struct built b;
    write_ini("[network]\nformat = 1\noutputs = act\n[profile]\nN = 1, 3, 8\n"
              "[input x]\nshape = N x 5 x 9 x 7\n[weights w]\nrandom = 7\n"
              "[layer conv]\ntype = Convolution\nfilters = 6\nkernel = 3x3\n"
              "weights = w:conv\n[layer act]\ntype = Activation\nkind = elu\n");
    round_trip(ini, sets, 2);
    cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
    cr_expect_eq(strata_engine_batches(b.engine, NULL, 0), 3);
    release(&b);
    if (getenv("STRATA_TEST_DEVICE"))
        return;
    alter("network", "batch = 1,3,8", "batch = 1,8");
    expect_refused(STRATA_EPARSE,
                   (const char *const[]){"2 plans for smaller batches", NULL});
}

/* A conversion as a file has it. */
static json_t *conversion(const char *tensor, const char *from, const char *to)
{
    return json_pack("{s:s, s:{s:s, s:s, s:i}, s:{s:s, s:s, s:i}, s:i, s:s}", "tensor",
                     tensor, "from", "format", from, "pads", "zero", "stage", 0, "to",
                     "format", to, "pads", "zero", "stage", 0, "cost", 16, "reason",
                     "HARD");
}

/* The saved file's plan with one more conversion; at the end, or as the first. */
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
        json_array_insert_new(list, first ? 0 : json_array_size(list), added);
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

Test(engine_save, conversions_must_hold_together)
{
    struct built a, b;
    if (getenv("STRATA_TEST_DEVICE"))
        cr_skip_test("the conversions are those of the host's plan");
    write_ini(branches);
    build(&a, ini, (const char *const[]){"layer conv.impl=any"}, 1);
    save(&a, file);
    release(&a);
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

/* What a later writer may add. */
Test(engine_save, unknown_keys_and_sections_are_ignored)
{
    struct built a, b;
    struct engine_file f;
    struct engine_section sections[ENGINE_FILE_SECTIONS];
    write_ini(branches);
    build(&a, ini, NULL, 0);
    save(&a, file);
    alter("plan", "\"pads_any\"", "\"novelty\": [1], \"pads_any\"");
    cr_assert_eq(engine_file_open(&f, again, NULL), STRATA_OK);
    memcpy(sections, f.sections, sizeof sections);
    sections[f.n_sections] = (struct engine_section){"novelty", "news", 4};
    cr_assert_eq(engine_file_write(file, sections, f.n_sections + 1, "1.0.0", NULL),
                 STRATA_OK);
    engine_file_close(&f);
    cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
    expect_same_answers(&a, &b, 11);
    release(&a);
    release(&b);
}

Test(engine_save, sections_and_weights_lie_as_specified)
{
    static const char *const order[] = {"device", "plugins", "plan",   "network",
                                        "costs",  "report",  "weights"};
    struct built a;
    struct engine_file f;
    struct weights *w;
    write_ini(branches);
    build(&a, ini, NULL, 0);
    save(&a, file);
    release(&a);
    cr_assert_eq(engine_file_open(&f, file, NULL), STRATA_OK);
    cr_assert_eq(f.n_sections, ARRAY_LENGTH(order));
    for (size_t i = 0; i < f.n_sections; i++)
        cr_expect_str_eq(f.sections[i].name, order[i]);
    const struct engine_section *s = engine_file_find(&f, "weights");
    cr_assert_eq(weights_parse(&w, s->data, s->size, "weights", NULL, NULL), STRATA_OK);
    for (size_t i = 0; i < weights_count(w); i++) {
        struct weight_view view = weights_at(w, i);
        cr_expect(strncmp(view.name, "align.", 6) == 0 ||
                      ((const char *)view.data - (const char *)s->data) % 256 == 0,
                  "%s", view.name);
    }
    weights_close(w);
    engine_file_close(&f);
}

/* Nothing is allocated for an engine of another device. */
Test(engine_save, a_refused_engine_allocates_nothing)
{
    struct built a, b;
    strata_memory_stats stats;
    if (getenv("STRATA_TEST_DEVICE"))
        cr_skip_test("the engine is made one of another device than the host");
    write_ini(branches);
    build(&a, ini, NULL, 0);
    save(&a, file);
    release(&a);
    alter("device", "\"kind\": \"host\"", "\"kind\": \"cuda\"");
    cr_expect_eq(load(&b, again), STRATA_EUNSUPPORTED);
    strata_get_memory_stats(b.handle, &stats);
    cr_expect_eq(stats.allocations, 0);
    release(&b);
}

static char warned[4096];

static void keep_warning(void *user, int level, const char *text)
{
    (void)user;
    if (level == STRATA_LOG_WARNING)
        snprintf(warned, sizeof warned, "%s", text);
}

/* Another build of the same version may only be slower. */
Test(engine_save, a_plugin_of_another_build_is_a_warning)
{
    struct built a, b;
    write_ini(branches);
    build(&a, ini, NULL, 0);
    save(&a, file);
    alter("plugins", "\"build_id\": \"", "\"build_id\": \"00");
    strata_set_logger(keep_warning, NULL, STRATA_LOG_WARNING);
    cr_assert_eq(load(&b, again), STRATA_OK, "%s", b.err.message);
    strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
    cr_expect(strstr(warned, "another build"), "%s", warned);
    expect_same_answers(&a, &b, 3);
    release(&a);
    release(&b);
}

/* Neither its build nor its file's name is here. */
Test(engine_save, a_plugin_that_is_missing_is_named)
{
    struct built a;
    write_ini(branches);
    build(&a, ini, NULL, 0);
    save(&a, file);
    release(&a);
    alter("plugins", "\"build_id\": \"", "\"build_id\": \"00");
    cr_assert_eq(rename(again, file), 0);
    alter("plugins", "convolution.so", "nowhere.so");
    expect_refused(STRATA_EMODULE,
                   (const char *const[]){"layer 'conv'", "nowhere.so", "not here", NULL});
}

/* The network, its weights and labels may go; plugins may come. */
Test(engine_save, needs_no_file_besides_itself)
{
    char labels[80];
    struct built a, b;
    write_ini("[network]\nformat = 1\noutputs = p\nlabels = labels.txt\n"
              "[input x]\nshape = 1 x 3\n[layer p]\ntype = Softmax\n");
    snprintf(labels, sizeof labels, "%s/labels.txt", folder);
    cr_assert_eq(file_write(labels, "cat\n\ndog house\n", 15, NULL), STRATA_OK);
    build(&a, ini, NULL, 0);
    save(&a, file);
    unlink(ini);
    unlink(labels);
    cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
    cr_assert_eq(b.engine->network->n_labels, 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect_str_eq(b.engine->network->labels[i], a.network->labels[i]);
    expect_same_answers(&a, &b, 5);
    release(&a);
    release(&b);
}

Test(engine_save, bad_arguments_are_refused)
{
    strata_error err = {0};
    strata_engine *e = NULL;
    cr_expect_eq(strata_engine_save(NULL, file, &err), STRATA_EINVAL);
    cr_expect_eq(strata_engine_load(&e, NULL, NULL, file, &err), STRATA_EINVAL);
    struct built b;
    cr_expect_eq(load(&b, "/nonexistent/x.engine"), STRATA_ENOTFOUND);
    release(&b);
}
