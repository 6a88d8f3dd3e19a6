/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation and every file operation fails once, and all from there on, while a
 * network is read, built, saved, loaded and run: an error each time, or the right answer
 * where the library can do without; nothing leaks, and the next try works. Every 50th or
 * so of the calls, from a random first one, all of them with STRATA_TEST_LONG.
 */
#include <dirent.h>
#include <math.h>
#include <time.h>

#include "tests/engine/batch_net.h"
#include "tests/support/fault.h"

static void open_faults(void)
{
    scratch_make();
    fault_json(false);
}

TestSuite(faults, .init = open_faults, .fini = scratch_remove, .timeout = 3600);

enum { PIXELS = 64, CLASSES = 10, NOTHING = 2 /* entries of an empty folder */ };

struct work {
    struct net net;
    strata_engine *loaded;
    strata_context *context;
    float y[CLASSES];
    strata_error err;
};

/* ---- what is done ---------------------------------------------------------------------
 */

static int do_parse(struct work *w)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/examples/digits/digits.ini", env_or("srcdir", "."));
    int status = strata_registry_create(&w->net.registry, NULL, &w->err);
    return status != STRATA_OK ? status
                               : strata_network_load(&w->net.network, path,
                                                     w->net.registry, NULL, &w->err);
}

static int do_build(struct work *w)
{
    int status = strata_create(&w->net.handle, "host", &w->err);
    return status != STRATA_OK ? status
                               : strata_engine_build(&w->net.engine, w->net.handle,
                                                     w->net.network, &w->err);
}

static int do_save(struct work *w)
{
    return strata_engine_save(w->net.engine, in_scratch("net.engine"), &w->err);
}

static int do_load(struct work *w)
{
    return strata_engine_load(&w->loaded, w->net.handle, w->net.registry,
                              in_scratch("net.engine"), &w->err);
}

static int do_run(struct work *w)
{
    float x[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i * 37 % 64) / 64;
    int status = strata_context_create(&w->context, w->loaded, w->net.handle, &w->err);
    if (status == STRATA_OK)
        status = strata_copy_in(w->context, 0, x, &w->err);
    if (status == STRATA_OK)
        status = strata_context_run(w->context, &w->err);
    return status != STRATA_OK ? status : strata_copy_out(w->context, 1, w->y, &w->err);
}

static const struct stage {
    const char *name;
    int (*run)(struct work *w);
    int files; /* 0: it uses none */
} stages[] = {
    {"parse", do_parse, 1}, {"build", do_build, 0}, {"save", do_save, 1},
    {"load", do_load, 1},   {"run", do_run, 0},
};
enum { SAVE = 2, STAGES = ARRAY_LENGTH(stages) };

static void close_work(struct work *w)
{
    strata_context_destroy(w->context);
    strata_engine_destroy(w->loaded);
    strata_engine_destroy(w->net.engine);
    strata_network_destroy(w->net.network);
    strata_registry_destroy(w->net.registry);
    strata_destroy(w->net.handle);
}

/* The stages before it, without a fault. */
static void begin(struct work *w, int stage)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < stage; i++)
        cr_assert_eq(stages[i].run(w), STRATA_OK, "%s: %s", stages[i].name,
                     w->err.message);
}

static int finish(struct work *w, int stage)
{
    int status = STRATA_OK;
    for (int i = stage; i < STAGES && status == STRATA_OK; i++)
        status = stages[i].run(w);
    return status;
}

/* ---- what is left ---------------------------------------------------------------------
 */

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    cr_assert_not_null(d, "%s", folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

struct left {
    long blocks;
    int descriptors;
};

static struct left look(void)
{
    return (struct left){fault_blocks(), entries("/proc/self/fd")};
}

struct tally {
    long calls, tried, errors, coped;
};

/* After a save that failed: no file, or, where only making sure of it failed, all of it.
 */
static void expect_whole_or_nothing(struct work *w)
{
    if (entries(scratch) == NOTHING)
        return;
    cr_assert_eq(entries(scratch), NOTHING + 1, "a failed save leaves another file");
    cr_assert_eq(do_load(w), STRATA_OK, "a failed save leaves %s", w->err.message);
}

/* One stage with one fault. */
static void try_fault(int stage, enum fault_kind kind, long at, bool lasting,
                      const float *right, struct tally *t)
{
    static struct work w;
    begin(&w, stage);
    if (stage == SAVE) /* else entries cannot tell */
        unlink(in_scratch("net.engine"));
    fault_json(stage == SAVE);
    fault_arm(kind, at, lasting);
    const int status = stages[stage].run(&w);
    fault_disarm();
    fault_json(false);
    t->tried++;
    if (status != STRATA_OK) {
        t->errors++;
        cr_expect(w.err.status == status && w.err.message[0],
                  "%s, call %ld: status %d without a message", stages[stage].name, at,
                  status);
        if (kind == FAULT_MEMORY)
            cr_expect_eq(status, STRATA_ENOMEM, "%s, allocation %ld: %s",
                         stages[stage].name, at, w.err.message);
        if (stage == SAVE)
            expect_whole_or_nothing(&w);
    } else {
        t->coped++;
        cr_assert_eq(finish(&w, stage + 1), STRATA_OK, "%s, call %ld: then %s",
                     stages[stage].name, at, w.err.message);
        for (int k = 0; k < CLASSES; k++)
            cr_expect_float_eq(w.y[k], right[k], 1e-5, "%s, call %ld: answer %g, not %g",
                               stages[stage].name, at, w.y[k], right[k]);
    }
    close_work(&w);
}

static long count_calls(int stage, enum fault_kind kind, float *right)
{
    static struct work w;
    begin(&w, stage);
    fault_json(stage == SAVE);
    fault_arm(kind, 0, false);
    cr_assert_eq(stages[stage].run(&w), STRATA_OK, "%s", w.err.message);
    const long n = fault_disarm();
    fault_json(false);
    cr_assert_eq(finish(&w, stage + 1), STRATA_OK, "%s", w.err.message);
    memcpy(right, w.y, sizeof w.y);
    close_work(&w);
    return n;
}

/* Every k of a stage, in turn or thinned. */
static struct tally fail_all(int stage, enum fault_kind kind, bool lasting)
{
    float right[CLASSES];
    count_calls(stage, kind, right); /* first use allocates what stays */
    struct tally t = {.calls = count_calls(stage, kind, right)};
    const long step = getenv("STRATA_TEST_LONG") || t.calls < 100 ? 1 : t.calls / 50;
    const struct left before = look();
    for (long k = 1 + rand() % step; k <= t.calls; k += step)
        try_fault(stage, kind, k, lasting, right, &t);
    const struct left after = look();
    cr_expect_eq(after.blocks, before.blocks, "%s: %ld blocks leaked in %ld tries",
                 stages[stage].name, after.blocks - before.blocks, t.tried);
    cr_expect_eq(after.descriptors, before.descriptors, "%s: descriptors leaked",
                 stages[stage].name);
    return t;
}

static void fail_stages(enum fault_kind kind, const char *name, bool lasting)
{
    const unsigned seed = (unsigned)time(NULL);
    srand(seed);
    strata_set_logger(NULL, NULL, -1); /* plugins that could not be read are told */
    for (int stage = 0; stage < STAGES; stage++) {
        if (kind != FAULT_MEMORY && !stages[stage].files)
            continue;
        struct tally t = fail_all(stage, kind, lasting);
        fprintf(
            stderr,
            "# %s, %s%s: %ld calls, %ld tried, %ld errors, %ld did without, seed %u\n",
            stages[stage].name, name, lasting ? " from there on" : "", t.calls, t.tried,
            t.errors, t.coped, seed);
        cr_expect_gt(t.calls, 0, "%s has calls of the kind", stages[stage].name);
        if (kind == FAULT_MEMORY || kind == FAULT_IO)
            cr_expect_gt(t.errors, 0);
        else
            cr_expect_eq(t.errors, 0, "an interrupted or short transfer goes on");
    }
}

Test(faults, an_allocation_that_fails_is_an_error_and_leaks_nothing)
{
    fail_stages(FAULT_MEMORY, "memory", false);
}

Test(faults, memory_that_stays_out_is_an_error_and_leaks_nothing)
{
    fail_stages(FAULT_MEMORY, "memory", true);
}

Test(faults, a_file_operation_that_fails_is_an_error_and_leaks_nothing)
{
    fail_stages(FAULT_IO, "EIO", false);
}

Test(faults, interrupted_transfers_go_on)
{
    fail_stages(FAULT_INTERRUPTED, "EINTR", false);
}

Test(faults, short_transfers_go_on)
{
    fail_stages(FAULT_SHORT, "one byte", false);
}
