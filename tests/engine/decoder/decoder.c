/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoder as examples/language/decoder.py writes it: its caches, its count of places,
 * and any number of tokens a run. A small one with random weights against NumPy's FP64
 * (tests/data/decoder), and a checkpoint that others trained against the program it was
 * made for; that is looked for in $STRATA_MODELS, or in ../shared/models beside the
 * sources, and skipped by name when absent.
 */
#include <math.h>

#include <strata/sizes.h>
#include <strata/state.h>

#include "tests/engine/batch_net.h"
#include "tests/engine/decoder/stories.h"

TestSuite(decoder, .timeout = 1800);

enum { PLACES = 40, WORDS = 29, NPY_HEADER = 128 };
#define CLOSE 2e-5 /* logits are about 1 */

/* ---- networks ---------------------------------------------------------------------- */

struct decoder {
    struct net n;
    strata_context *c;
};

static void open_decoder(struct decoder *d, const char *ini)
{
    strata_error err;
    const char *set[] = {"build.costs=analytic"};
    const strata_network_options options = {
        .struct_size = sizeof options, .set = set, .n_set = 1};
    memset(d, 0, sizeof *d);
    OK(strata_create(&d->n.handle, getenv("STRATA_TEST_DEVICE"), &err));
    OK(strata_registry_create(&d->n.registry, NULL, &err));
    OK(strata_network_load(&d->n.network, ini, d->n.registry, &options, &err));
    OK(strata_engine_build(&d->n.engine, d->n.handle, d->n.network, &err));
    OK(strata_context_create(&d->c, d->n.engine, d->n.handle, &err));
}

static void close_decoder(struct decoder *d)
{
    strata_context_destroy(d->c);
    close_net(&d->n);
}

/* `n` tokens of each row; the logits behind the last of them. */
static void feed(struct decoder *d, const int32_t *ids, int n, float *logits)
{
    strata_error err;
    OK(strata_context_set_dimension(d->c, "T", n, &err));
    OK(strata_copy_in(d->c, 0, ids, &err));
    OK(strata_context_run(d->c, &err));
    OK(strata_copy_out(d->c, 1, logits, &err));
}

static void reset(struct decoder *d)
{
    strata_error err;
    OK(strata_context_reset_state(d->c, STRATA_ALL_ROWS, &err));
}

/* ---- the small one ----------------------------------------------------------------- */

static const char *small_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/data/decoder/%s", env_or("srcdir", "."), name);
    return path;
}

struct small {
    struct decoder d;
    struct blob expected; /* an .npy file: PLACES x WORDS doubles */
    int32_t ids[PLACES];
};

static void open_small(struct small *s)
{
    strata_error err;
    open_decoder(&s->d, small_path("decoder.ini"));
    OK(strata_context_set_dimension(s->d.c, "N", 1, &err));
    s->expected = slurp(small_path("logits.npy"));
    cr_assert_eq(s->expected.size, NPY_HEADER + PLACES * WORDS * sizeof(double));
    for (int i = 0; i < PLACES; i++)
        s->ids[i] = (i * 7 + i * i) % WORDS;
}

static void close_small(struct small *s)
{
    close_decoder(&s->d);
    free(s->expected.bytes);
}

/* Logits behind a place are those of FP64. */
static void expect_place(const struct small *s, int place, const float *logits)
{
    double expected[WORDS], worst = 0;
    memcpy(expected, s->expected.bytes + NPY_HEADER + (size_t)place * sizeof expected,
           sizeof expected);
    for (int i = 0; i < WORDS; i++) {
        const double e = fabs((double)logits[i] - expected[i]);
        worst = e <= worst ? worst : isnan(e) ? (double)INFINITY : e;
    }
    cr_expect(worst < CLOSE, "place %d: differs by %g", place, worst);
}

Test(decoder, a_token_a_run_is_as_in_fp64)
{
    struct small s;
    float logits[WORDS];
    open_small(&s);
    for (int i = 0; i < PLACES; i++) {
        feed(&s.d, s.ids + i, 1, logits);
        expect_place(&s, i, logits);
    }
    close_small(&s);
}

Test(decoder, all_tokens_in_a_run_are_as_in_fp64)
{
    struct small s;
    float logits[WORDS];
    open_small(&s);
    for (int n = 1; n <= PLACES; n++) {
        reset(&s.d);
        feed(&s.d, s.ids, n, logits);
        expect_place(&s, n - 1, logits);
    }
    close_small(&s);
}

Test(decoder, tokens_in_pieces_are_as_in_fp64)
{
    static const int pieces[][5] = {{8, 1, 1, 30}, {5, 35}, {39, 1}, {1, 17, 3, 8, 11}};
    struct small s;
    float logits[WORDS];
    open_small(&s);
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        reset(&s.d);
        for (int i = 0, at = 0; i < 5 && pieces[k][i]; at += pieces[k][i++]) {
            feed(&s.d, s.ids + at, pieces[k][i], logits);
            expect_place(&s, at + pieces[k][i] - 1, logits);
        }
    }
    close_small(&s);
}

/* A row that begins later, and what it says does not hang on the other. */
Test(decoder, a_row_of_a_batch_is_the_row_alone)
{
    struct small s;
    strata_error err;
    float logits[2 * WORDS];
    open_small(&s);
    OK(strata_context_set_dimension(s.d.c, "N", 2, &err));
    for (int i = 0; i < PLACES; i++) {
        const int late = i % 13;
        const int32_t ids[2] = {s.ids[i], s.ids[late]};
        if (late == 0)
            OK(strata_context_reset_state(s.d.c, 1, &err));
        feed(&s.d, ids, 1, logits);
        expect_place(&s, i, logits);
        expect_place(&s, late, logits + WORDS);
    }
    reset(&s.d);
    int32_t both[2 * 9];
    for (int i = 0; i < 9; i++) {
        both[i] = s.ids[i];
        both[9 + i] = i < 4 ? 3 : s.ids[i];
    }
    feed(&s.d, both, 9, logits);
    expect_place(&s, 8, logits);
    close_small(&s);
}

Test(decoder, a_saved_sequence_goes_on_as_any_row)
{
    struct small s;
    strata_error err;
    float logits[2 * WORDS];
    open_small(&s);
    feed(&s.d, s.ids, 21, logits);
    const size_t size = strata_context_state_bytes(s.d.c, 0);
    void *saved = malloc(size);
    OK(strata_context_save_state(s.d.c, 0, saved, size, &err));
    OK(strata_context_set_dimension(s.d.c, "N", 2, &err));
    reset(&s.d);
    const int32_t other[] = {5, 6, 7, 8, 9, 10};
    feed(&s.d, other, 3, logits);
    OK(strata_context_restore_state(s.d.c, 1, saved, size, &err));
    OK(strata_context_copy_state(s.d.c, 1, 0, &err));
    for (int i = 21; i < PLACES; i++) {
        const int32_t ids[2] = {s.ids[i], s.ids[i]};
        feed(&s.d, ids, 1, logits);
        expect_place(&s, i, logits);
        expect_place(&s, i, logits + WORDS);
    }
    free(saved);
    close_small(&s);
}

Test(decoder, past_its_places_it_says_so_and_a_reset_begins_anew)
{
    struct small s;
    strata_error err;
    float logits[WORDS];
    open_small(&s);
    feed(&s.d, s.ids, PLACES, logits);
    OK(strata_context_set_dimension(s.d.c, "T", 1, &err));
    cr_expect_eq(strata_context_run(s.d.c, &err), STRATA_EOVERFLOW);
    cr_expect(strstr(err.message, "'places', row 0, is 41"), "%s", err.message);
    reset(&s.d);
    feed(&s.d, s.ids, 3, logits);
    expect_place(&s, 2, logits);
    close_small(&s);
}

static strata_memory_stats memory(const struct decoder *d)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    cr_assert_eq(strata_get_memory_stats(d->n.handle, &stats, NULL), STRATA_OK);
    return stats;
}

/* 10,000 steps, begun anew as the places end: each round says what the first said, bit
 * for bit, and takes no memory. */
Test(decoder, ten_thousand_steps_neither_drift_nor_grow)
{
    enum { ROUNDS = 10000 / PLACES };
    struct small s;
    float first[PLACES][WORDS], logits[WORDS];
    open_small(&s);
    for (int i = 0; i < PLACES; i++)
        feed(&s.d, s.ids + i, 1, first[i]);
    const strata_memory_stats before = memory(&s.d);
    for (int round = 1; round < ROUNDS; round++) {
        reset(&s.d);
        for (int i = 0; i < PLACES; i++) {
            feed(&s.d, s.ids + i, 1, logits);
            cr_assert_arr_eq(logits, first[i], sizeof logits, "round %d, place %d", round,
                             i);
        }
    }
    const strata_memory_stats after = memory(&s.d);
    cr_expect_eq(after.current_bytes, before.current_bytes);
    cr_expect_eq(after.allocations, before.allocations);
    close_small(&s);
}

/* ---- one sequence of many steps ------------------------------------------------------
 */

/* The small decoder with other places, in the scratch folder: 40 stands for them alone.
 */
static const char *write_wide(int places)
{
    static char path[512];
    struct blob ini = slurp(small_path("decoder.ini"));
    struct blob weights = slurp(small_path("decoder.safetensors"));
    snprintf(path, sizeof path, "%s/decoder.ini", scratch);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    const char *at = (const char *)ini.bytes, *end = at + ini.size;
    while (at < end) {
        const bool number = strncmp(at, "40", 2) == 0 && strchr(" :\n", at[2]);
        if (number)
            fprintf(f, "%d", places);
        else
            fputc(*at, f);
        at += number ? 2 : 1;
    }
    fclose(f);
    f = fopen(in_scratch("decoder.safetensors"), "wb");
    cr_assert(f && fwrite(weights.bytes, 1, weights.size, f) == weights.size);
    fclose(f);
    free(ini.bytes);
    free(weights.bytes);
    return path;
}

/* 10,000 with STRATA_TEST_LONG, after which a step is still what one run of all is. */
Test(decoder, a_long_sequence_is_one_run_of_it, .init = scratch_make,
     .fini = scratch_remove)
{
    const int steps = getenv("STRATA_TEST_LONG") ? 10000 : 1000;
    struct decoder d;
    strata_error err;
    float last[WORDS], all[WORDS];
    int32_t *ids = calloc((size_t)steps, sizeof *ids);
    cr_assert_not_null(ids);
    for (int i = 0; i < steps; i++)
        ids[i] = (i * 7 + i / 3) % WORDS;
    open_decoder(&d, write_wide(steps));
    OK(strata_context_set_dimension(d.c, "N", 1, &err));
    feed(&d, ids, 1, last);
    const strata_memory_stats before = memory(&d);
    for (int i = 1; i < steps; i++)
        feed(&d, ids + i, 1, last);
    const strata_memory_stats after = memory(&d);
    cr_expect_eq(after.current_bytes, before.current_bytes);
    cr_expect_eq(after.allocations, before.allocations);
    reset(&d);
    feed(&d, ids, steps, all);
    for (int i = 0; i < WORDS; i++)
        cr_expect(fabsf(last[i] - all[i]) < 1e-4f, "word %d: %g, in one run %g", i,
                  (double)last[i], (double)all[i]);
    close_decoder(&d);
    free(ids);
}

/* ---- a checkpoint of llama2.c --------------------------------------------------------
 */

enum { STORY_WORDS = 512, BEGIN = 1 };

static int best(const float *logits)
{
    int top = 0;
    for (int i = 1; i < STORY_WORDS; i++)
        top = logits[i] > logits[top] ? i : top;
    return top;
}

/* The network of the checkpoint in the scratch folder, or the test is skipped. */
static const char *need_stories(void)
{
    static char path[512];
    char command[2000];
    const char *given = getenv("STRATA_MODELS"), *source = env_or("srcdir", ".");
    snprintf(path, sizeof path, "%s%s/stories260K/stories260K.bin",
             given ? given : source, given ? "" : "/../shared/models");
    if (access(path, R_OK))
        cr_skip_test("%s: no such checkpoint here; set STRATA_MODELS", path);
    scratch_make();
    snprintf(command, sizeof command,
             "python3 '%s/examples/language/decoder.py' '%s' -o '%s/stories.ini'", source,
             path, scratch);
    cr_assert_eq(system(command), 0, "%s failed", command);
    snprintf(path, sizeof path, "%s/stories.ini", scratch);
    return path;
}

/* Greedy, from the first `given` tokens fed in one run; the others by what was said. */
static void expect_story(struct decoder *d, int given)
{
    float logits[STORY_WORDS];
    int32_t ids[STORY_TOKENS] = {BEGIN};
    memcpy(ids + 1, story, (size_t)(given - 1) * sizeof *ids);
    reset(d);
    feed(d, ids, given, logits);
    for (int i = given - 1;; i++) {
        const int32_t next = best(logits);
        cr_assert_eq(next, story[i], "of %d given: token %d is %d, not %d", given, i + 1,
                     (int)next, (int)story[i]);
        if (i == STORY_TOKENS - 1)
            return;
        feed(d, &next, 1, logits);
    }
}

Test(decoder, a_checkpoint_tells_the_story_of_its_own_program)
{
    struct decoder d;
    open_decoder(&d, need_stories());
    expect_story(&d, 1);
    expect_story(&d, 2);
    expect_story(&d, 100);
    expect_story(&d, STORY_TOKENS);
    close_decoder(&d);
    scratch_remove();
}
