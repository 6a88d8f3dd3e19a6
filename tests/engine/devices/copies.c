/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs that all readers round to FP16 travel to a device as halves, where the host has
 * to copy them anyway: half the bytes, and what comes back is the same to the bit. What
 * is large goes by pinned memory in both directions. The device is one of tests/modules,
 * whose copies are counted.
 */
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include <strata/parts.h>

#include "core/handle.h"
#include "planner/execution.h"
#include "tests/engine/batch_net.h"

TestSuite(copies, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

enum { SIDE = 320, ROW = 3 * SIDE * SIDE, MOST = 8, SUMS = 40, WHOLE = -1 };

#define LAYER(name, type) "[layer " name "]\ntype = " type "\n"
#define SUMS_OF(name, type, x) LAYER(name, type) "inputs = " x "\nsums = 40\n"

static struct device_ops counting;
static int (*real_copy)(strata_stream *, void *, const void *, size_t, enum device_copy,
                        strata_error *);
static atomic_size_t travelled, pinned; /* bytes to the device, and of pinned memory */
static atomic_size_t unpinned_back;     /* from the device to other memory */

static int count_copy(strata_stream *s, void *dst, const void *src, size_t bytes,
                      enum device_copy direction, strata_error *err)
{
    if (direction == COPY_TO_DEVICE)
        atomic_fetch_add(&travelled, bytes);
    if (direction == COPY_TO_DEVICE && counting.is_pinned(s->device, src))
        atomic_fetch_add(&pinned, bytes);
    if (direction == COPY_FROM_DEVICE && !counting.is_pinned(s->device, dst))
        atomic_fetch_add(&unpinned_back, bytes);
    return real_copy(s, dst, src, bytes, direction, err);
}

/* On the device of tests/modules. */
static void open_later(struct net *n, const char *outputs, const char *layers)
{
    strata_error err;
    char text[4096];
    cr_assert_eq(mkdir(in_scratch("devices"), 0700), 0);
    build("devices/strata-cuda.so", "modules/later_device.c",
          SHARED " -pthread -D_GNU_SOURCE -I'%s' -I. '%s/tests/modules/later_memory.c'",
          env_or("srcdir", "."), env_or("srcdir", "."));
    setenv("STRATA_DEVICE_PATH", in_scratch("devices"), 1);
    setenv("STRATA_PLUGIN_PATH", scratch, 1);
    build("later.so", "modules/later_layers.c", SHARED);
    snprintf(text, sizeof text, "%s", layers);
    OK(open_net_on(n, "cuda:0", "[profile]\nN = 1, 3, 8\n[build]\ncosts = analytic\n",
                   "N x 3 x 320 x 320", outputs, text, &err));
    counting = *n->handle->device->ops;
    real_copy = counting.copy;
    counting.copy = count_copy;
    n->handle->device->ops = &counting;
}

/* Numbers of all sizes, those that lie in the middle of two halves among them. */
static void fill(float *x, size_t n)
{
    static const float odd[] = {0,        -0.0f,    INFINITY, -INFINITY, NAN,
                                65519.0f, 65520.0f, 1e-8f,    0x1p-25f,  0x1.8p-24f,
                                2049.0f,  2051.0f,  1e30f,    0x1p-149f};
    for (size_t i = 0; i < n; i++)
        x[i] = rand() % 50 == 0
                   ? odd[(size_t)rand() % ARRAY_LENGTH(odd)]
                   : ldexpf((float)rand() / (float)RAND_MAX - 0.5f, rand() % 24 - 12);
}

struct trial {
    struct net net;
    strata_context *context;
    float *x;           /* of MOST rows, and one element */
    float *right, *got; /* SUMS of each row and output */
    size_t outputs;
};

static void open_trial(struct trial *t, const char *outputs, size_t n, const char *layers)
{
    strata_error err;
    const unsigned seed = (unsigned)time(NULL);
    fprintf(stderr, "# seed %u\n", seed);
    srand(seed);
    open_later(&t->net, outputs, layers);
    OK(strata_context_create(&t->context, t->net.engine, t->net.handle, &err));
    t->outputs = n;
    t->x = malloc((MOST * ROW + 1) * sizeof(float));
    t->right = malloc(n * MOST * SUMS * sizeof(float));
    t->got = malloc(n * MOST * SUMS * sizeof(float));
    cr_assert(t->x && t->right && t->got);
}

static void close_trial(struct trial *t)
{
    strata_context_destroy(t->context);
    close_net(&t->net);
    free(t->x);
    free(t->right);
    free(t->got);
}

/* By copies that take the floats as they are. */
static void run_plainly(struct trial *t, int64_t rows, const float *x)
{
    strata_error err;
    OK(strata_context_set_batch(t->context, rows, &err));
    OK(strata_copy_in(t->context, 0, x, &err));
    OK(strata_context_run(t->context, &err));
    for (size_t i = 0; i < t->outputs; i++)
        OK(strata_copy_out(t->context, 1 + (int)i, t->right + i * MOST * SUMS, &err));
}

/* So many rows, one part of them in two pieces that meet so many bytes into it. */
static void run_parts(struct trial *t, int64_t rows, const float *x, int64_t cut)
{
    strata_error err;
    strata_memory in[3], out[2][2];
    strata_part parts[2];
    const int64_t first = rows > 1 ? rows / 2 : rows;
    const uint32_t pieces[] = {cut == WHOLE ? 1 : 2, 1};
    const size_t n = rows > 1 ? 2 : 1;
    char *const bytes = (char *)(uintptr_t)x;
    const uint64_t row = ROW * sizeof(float), part = (uint64_t)first * row;
    uint64_t at = cut == WHOLE ? part : (uint64_t)cut;
    in[0] = (strata_memory){.data = bytes, .bytes = at};
    in[1] = (strata_memory){.data = bytes + at, .bytes = part - at};
    in[pieces[0]] =
        (strata_memory){.data = bytes + part, .bytes = (uint64_t)(rows - first) * row};
    for (size_t k = 0, row_of = 0; k < n; k++, row_of += (size_t)first) {
        const int64_t of = k == 0 ? first : rows - first;
        for (size_t i = 0; i < t->outputs; i++)
            out[k][i] = (strata_memory){.data = t->got + (i * MOST + row_of) * SUMS,
                                        .bytes = (uint64_t)of * SUMS * sizeof(float)};
        parts[k] = (strata_part){.struct_size = sizeof parts[k],
                                 .rows = of,
                                 .inputs = in + (k == 0 ? 0 : pieces[0]),
                                 .pieces = &pieces[k],
                                 .outputs = out[k]};
    }
    atomic_store(&travelled, 0);
    OK(strata_context_run_parts(t->context, parts, n, &err));
}

/* Whether what comes back is the same, of as many bytes a value on the way; few rows
 * travel as they are. */
static void compare(struct trial *t, int64_t rows, const float *x, int64_t cut,
                    size_t bytes)
{
    run_plainly(t, rows, x);
    run_parts(t, rows, x, cut);
    for (size_t i = 0; i < t->outputs; i++)
        cr_expect_eq(memcmp(t->got + i * MOST * SUMS, t->right + i * MOST * SUMS,
                            (size_t)rows * SUMS * sizeof(float)),
                     0, "%lld rows, output %zu", (long long)rows, i);
    const size_t given = (size_t)rows * ROW * sizeof(float);
    const size_t expected = given < ENGINE_HALVES ? given : given * bytes / sizeof(float);
    cr_expect_eq(atomic_load(&travelled), expected, "%lld rows: %zu", (long long)rows,
                 atomic_load(&travelled));
}

Test(copies, halves_travel_and_give_the_same)
{
    struct trial t;
    open_trial(&t, "y", 1, LAYER("a", "Halves") SUMS_OF("y", "Mix", "a"));
    cr_expect(t.net.engine->execution->bindings[0].rounded);
    for (int64_t rows = 1; rows <= MOST; rows++) {
        fill(t.x, MOST * ROW);
        compare(&t, rows, t.x, WHOLE, 2);
        compare(&t, rows, t.x, 40, 2);
        compare(&t, rows, t.x + 1, 5000 * 4, 2);
    }
    close_trial(&t);
}

Test(copies, pieces_that_cut_a_number_travel_as_they_are)
{
    struct trial t;
    open_trial(&t, "y", 1, LAYER("a", "Halves") SUMS_OF("y", "Mix", "a"));
    fill(t.x, MOST * ROW);
    compare(&t, MOST, t.x, 42, 4);
    compare(&t, MOST - 1, t.x, 3, 4);
    compare(&t, MOST, t.x, WHOLE, 2);
    close_trial(&t);
}

/* A full batch of a network of so many outputs. */
static void compare_full(const char *outputs, size_t n, const char *layers, bool rounded,
                         size_t bytes)
{
    struct trial t;
    open_trial(&t, outputs, n, layers);
    cr_expect_eq(t.net.engine->execution->bindings[0].rounded, rounded);
    fill(t.x, MOST * ROW);
    compare(&t, MOST, t.x, WHOLE, bytes);
    close_trial(&t);
}

Test(copies, one_reader_of_floats_is_enough_for_floats)
{
    compare_full("y, z", 2,
                 LAYER("a", "Halves") SUMS_OF("y", "Mix", "a") SUMS_OF("z", "Mix", "x"),
                 false, 4);
}

Test(copies, several_readers_that_round_are_as_one)
{
    compare_full("y, z", 2,
                 SUMS_OF("z", "Halves", "x")
                     LAYER("a", "Halves") "inputs = x\n" SUMS_OF("y", "Mix", "a"),
                 true, 2);
}

/* Halves lie in the arena first, which a network of one layer does not have. */
Test(copies, without_room_floats_travel)
{
    compare_full("y", 1, SUMS_OF("y", "Halves", "x"), true, 4);
}

/* A copy that somebody waits for goes by the same pieces, and rounds nothing. */
Test(copies, they_go_by_pinned_memory_as_they_are)
{
    struct trial t;
    strata_error err;
    float *back = malloc(MOST * ROW * sizeof *back);
    cr_assert_not_null(back);
    open_trial(&t, "y", 1, LAYER("a", "Halves") SUMS_OF("y", "Mix", "a"));
    for (int64_t rows = 1; rows <= MOST; rows++) {
        const size_t bytes = (size_t)rows * ROW * sizeof *back;
        fill(t.x, MOST * ROW);
        atomic_store(&travelled, 0);
        atomic_store(&pinned, 0);
        atomic_store(&unpinned_back, 0);
        run_plainly(&t, rows, t.x);
        cr_expect_eq(atomic_load(&travelled), bytes);
        cr_expect_eq(atomic_load(&pinned), bytes);
        OK(strata_copy_out(t.context, 0, back, &err));
        cr_expect_eq(memcmp(back, t.x, bytes), 0, "%lld rows", (long long)rows);
        cr_expect_lt(atomic_load(&unpinned_back), bytes, "small ones alone");
    }
    free(back);
    close_trial(&t);
}

Test(copies, large_outputs_of_parts_come_back_by_pinned_memory)
{
    struct net n;
    strata_error err;
    strata_context *c;
    float *x = malloc(MOST * ROW * sizeof *x), *y = malloc(MOST * ROW * sizeof *y);
    strata_memory in[MOST], out[MOST];
    strata_part parts[MOST];
    cr_assert(x && y);
    open_later(&n, "a", LAYER("a", "Mix"));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (size_t rows = 1; rows <= MOST; rows++) {
        for (size_t i = 0; i < rows * ROW; i++)
            x[i] = (float)(rand() % 4096);
        for (size_t i = 0; i < rows; i++) { /* in reverse in the caller's memory */
            in[i] = (strata_memory){.data = x + i * ROW, .bytes = ROW * sizeof *x};
            out[i] = (strata_memory){.data = y + (rows - 1 - i) * ROW,
                                     .bytes = ROW * sizeof *y};
            parts[i] = (strata_part){.struct_size = sizeof parts[i],
                                     .rows = 1,
                                     .inputs = &in[i],
                                     .outputs = &out[i]};
        }
        atomic_store(&unpinned_back, 0);
        OK(strata_context_run_parts(c, parts, rows, &err));
        size_t wrong = 0;
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < ROW; k++)
                wrong += y[(rows - 1 - i) * ROW + k] != x[i * ROW + k] / 2 + 1;
        cr_expect_eq(wrong, 0, "%zu rows: %zu values", rows, wrong);
        cr_expect_eq(atomic_load(&unpinned_back), 0);
    }
    strata_context_destroy(c);
    close_net(&n);
    free(x);
    free(y);
}
