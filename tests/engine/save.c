/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines written and read: the same answers bit for bit, the same bytes from the same
 * network, on whatever device.
 */
#include "tests/engine/engine_saved.h"

TestSuite(engine_save, .init = open_files, .fini = scratch_remove, .timeout = 600);

/* Bytes of all outputs after a run of a batch on inputs of a seed; the caller's. */
static char *answers(struct session *b, unsigned seed, int64_t batch, size_t *size)
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
            strata_binding info = {.struct_size = sizeof info};
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

static void expect_same_answers(struct session *a, struct session *b, unsigned seed)
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
    struct session a, b;
    const unsigned seed = (unsigned)getpid();
    build(&a, path, set, n_set);
    save(&a, file);
    cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
    expect_same_answers(&a, &b, seed);
    cr_expect_eq(a.engine->execution->n_steps, b.engine->execution->n_steps);
    cr_expect_eq(a.engine->execution->arena_bytes, b.engine->execution->arena_bytes);
    cr_expect_eq(a.engine->execution->cost, b.engine->execution->cost);
    cr_expect_eq(a.engine->weight_bytes, b.engine->weight_bytes);
    for (size_t i = 0;
         i < a.engine->execution->n_steps && i < b.engine->execution->n_steps; i++) {
        const struct execution_step *x = &a.engine->execution->steps[i],
                                    *y = &b.engine->execution->steps[i];
        cr_expect(x->kind == y->kind && x->cost == y->cost && x->reason == y->reason,
                  "%s: step %zu differs", path, i);
    }
    save(&b, again);
    expect_same_bytes(file, again);
    release(&a);
    release(&b);
}

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
    spill_text("net.ini", branches);
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++)
        round_trip(ini, sets[i], 2);
}

/* Concatenations that grow, of three images: what lies inside them at a pitch. */
#define GROWING(more)                                                                    \
    "[network]\nformat = 1\noutputs = y\n[weights w]\nrandom = 5\n"                      \
    "[input x]\nshape = 3 x 16 x 6 x 7\n"                                                \
    "[layer a]\ntype = Convolution\nfilters = 16\nkernel = 3\npad = 1\nweights = w:a\n"  \
    "[layer ar]\ntype = Activation\nkind = relu\n"                                       \
    "[layer b]\ntype = Convolution\nfilters = 32\nkernel = 1\nweights = w:b\n"           \
    "[layer ab]\ntype = Concatenation\ninputs = ar, b\n"                                 \
    "[layer s]\ntype = Scale\nscale = w:s\nmode = channel\n"                             \
    "[layer c]\ntype = Convolution\nfilters = 16\nkernel = 3\npad = 1\nweights = w:c\n"  \
    "[layer abc]\ntype = Concatenation\ninputs = ar, b, c\n" more                        \
    "[layer y]\ntype = Pooling\nkind = average\nkernel = 2\n"

Test(engine_save, what_lies_inside_others_comes_back)
{
    static const char *const sets[][2] = {
        {"build.precision=fp32", "build.costs=analytic"},
        {"build.precision=any", "build.costs=analytic"},
        {"build.precision=fp16", "build.costs=analytic"},
    };
    static const char *const texts[] = {GROWING(""), GROWING("impl = c\n")};
    for (size_t t = 0; t < ARRAY_LENGTH(texts); t++) {
        spill_text("net.ini", texts[t]);
        for (size_t i = 0; i < ARRAY_LENGTH(sets); i++)
            round_trip(ini, sets[i], 2);
    }
}

/* Weights that are used where they lie are in a copy, not in the caller's bytes. */
Test(engine_save, one_from_memory_answers_bit_for_bit)
{
    static const char *const sets[] = {"build.precision=fp32"};
    struct session a, b;
    spill_text("net.ini", branches);
    build(&a, ini, sets, 1);
    save(&a, file);
    struct blob bytes = slurp(file);
    start(&b);
    for (size_t size = 0; size < bytes.size; size += bytes.size / 7 + 1) {
        strata_engine *none = (strata_engine *)&b;
        cr_expect_eq(strata_engine_load_memory(&none, b.handle, b.registry, bytes.bytes,
                                               size, &b.err),
                     STRATA_EPARSE);
        cr_expect(none == NULL && strstr(b.err.message, "engine in memory: ") != NULL,
                  "%s", b.err.message);
    }
    cr_assert_eq(strata_engine_load_memory(&b.engine, b.handle, b.registry, bytes.bytes,
                                           bytes.size, &b.err),
                 STRATA_OK, "%s", b.err.message);
    memset(bytes.bytes, 0xff, bytes.size);
    expect_same_answers(&a, &b, 5);
    save(&b, again);
    expect_same_bytes(file, again);
    free(bytes.bytes);
    release(&a);
    release(&b);
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
    struct session a, b;
    spill_text("net.ini", branches);
    build(&a, ini, analytic, 1);
    build(&b, ini, analytic, 1);
    save(&a, file);
    save(&b, again);
    expect_same_bytes(file, again);
    release(&a);
    release(&b);
}

Test(engine_save, every_batch_of_a_profile_comes_back)
{
    static const char *const sets[] = {"profile.N=1, 3, 8", "build.precision=any"};
    struct session b;
    spill_text("net.ini", batched);
    round_trip(ini, sets, 2);
    cr_assert_eq(load(&b, file), STRATA_OK, "%s", b.err.message);
    cr_expect_eq(strata_engine_batches(b.engine, NULL, 0), 3);
    release(&b);
}

/* What a later writer may add. */
Test(engine_save, unknown_keys_and_sections_are_ignored)
{
    struct session a, b;
    struct engine_file f;
    struct engine_section sections[ENGINE_FILE_SECTIONS];
    spill_text("net.ini", branches);
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
    struct session a;
    struct engine_file f;
    struct weights *w;
    spill_text("net.ini", branches);
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
    struct session a, b;
    spill_text("net.ini", branches);
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

/* The network, its weights and labels may go; plugins may come. */
Test(engine_save, needs_no_file_besides_itself)
{
    struct session a, b;
    spill_text("net.ini", "[network]\nformat = 1\noutputs = p\nlabels = labels.txt\n"
                          "[input x]\nshape = 1 x 3\n[layer p]\ntype = Softmax\n");
    const char *labels = spill_text("labels.txt", "cat\n\ndog house\n");
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
