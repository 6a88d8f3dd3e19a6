/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of many parts: each has its own rows back and its own failure, wherever its memory
 * is, and what was copied is told.
 */
#include <pthread.h>

#include <strata/parts.h>

#include "core/arguments.h"
#include "tests/engine/batch_net.h"

TestSuite(parts, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { ROW = 3 * 6 * 6, UNITS = 7, BATCH = 8 };

/* A part of `rows` rows in one piece. */
struct request {
    strata_memory in, out;
    strata_part part;
};

static void set_request(struct request *r, int64_t rows, const float *x, int64_t in,
                        float *y, int64_t out)
{
    r->in = (strata_memory){.data = (void *)(uintptr_t)x,
                            .bytes = (uint64_t)(rows * in) * sizeof *x};
    r->out = (strata_memory){.data = y, .bytes = (uint64_t)(rows * out) * sizeof *y};
    r->part = (strata_part){.struct_size = sizeof r->part,
                            .rows = rows,
                            .inputs = &r->in,
                            .outputs = &r->out,
                            .status = 77};
}

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)((i * 37) % 101) / 50 - 1;
}

static strata_context_stats stats_of(const strata_context *c)
{
    strata_context_stats s = {.struct_size = sizeof s};
    cr_assert_eq(strata_context_get_stats(c, &s, NULL), STRATA_OK);
    return s;
}

/* Answers of whole batches. */
static void expected(strata_context *c, const float *x, float *y)
{
    strata_error err;
    OK(strata_copy_in(c, 0, x, &err));
    OK(strata_context_run(c, &err));
    OK(strata_copy_out(c, 1, y, &err));
}

Test(parts, each_has_its_own_rows_back)
{
    static const int64_t rows[][4] = {{1, 0}, {8, 0}, {3, 5}, {1, 2, 3, 2}, {2, 2}};
    float x[BATCH * ROW], y[BATCH * UNITS], got[BATCH * UNITS];
    struct net n;
    strata_error err;
    strata_context *c;
    fill(x, BATCH * ROW);
    OK(open_net(&n, "", "8 x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    expected(c, x, y);
    for (size_t k = 0; k < ARRAY_LENGTH(rows); k++) {
        struct request r[4];
        strata_part parts[4];
        int64_t at = 0;
        size_t count = 0;
        memset(got, 0, sizeof got);
        for (; count < 4 && rows[k][count]; at += rows[k][count++]) {
            set_request(&r[count], rows[k][count], x + at * ROW, ROW, got + at * UNITS,
                        UNITS);
            parts[count] = r[count].part;
        }
        OK(strata_context_run_parts(c, parts, count, &err));
        for (size_t i = 0; i < count; i++)
            cr_expect_eq(parts[i].status, STRATA_OK);
        cr_expect_eq(memcmp(got, y, (size_t)(at * UNITS) * sizeof *y), 0, "case %zu", k);
    }
    /* What was set for later runs stays. */
    OK(strata_context_set_batch(c, 3, &err));
    struct request one;
    set_request(&one, 5, x, ROW, got, UNITS);
    OK(strata_context_run_parts(c, &one.part, 1, &err));
    memset(got, 0, sizeof got);
    OK(strata_copy_out(c, 1, got, &err));
    cr_expect(got[3 * UNITS] == 0 && got[0] == y[0], "3 rows are copied");
    strata_context_destroy(c);
    close_net(&n);
}

Test(parts, inputs_come_in_pieces_and_outputs_need_not)
{
    float x[BATCH * ROW], y[BATCH * UNITS], got[3 * UNITS];
    const uint32_t pieces[] = {4};
    struct net n;
    strata_error err;
    strata_context *c;
    fill(x, BATCH * ROW);
    OK(open_net(&n, "[profile]\nN = 2, 8\n", "N x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    expected(c, x, y);
    const strata_memory in[] = {
        {.data = x, .bytes = 4},
        {.data = NULL, .bytes = 0},
        {.data = x + 1, .bytes = ROW * 4},
        {.data = x + 1 + ROW, .bytes = (2 * ROW - 1) * 4},
    };
    strata_memory out = {.data = got, .bytes = sizeof got};
    strata_part p = {.struct_size = sizeof p,
                     .rows = 3,
                     .inputs = in,
                     .pieces = pieces,
                     .outputs = &out};
    OK(strata_context_run_parts(c, &p, 1, &err));
    cr_expect_eq(memcmp(got, y, sizeof got), 0);
    out.data = NULL;
    OK(strata_context_run_parts(c, &p, 1, &err));
    p.outputs = NULL;
    OK(strata_context_run_parts(c, &p, 1, &err));
    OK(strata_context_run_parts(c, &p, 0, &err));
    strata_context_destroy(c);
    close_net(&n);
}

Test(parts, one_that_fails_fails_alone)
{
    float x[6][3], y[6][3];
    struct net n;
    strata_error err;
    strata_context *c;
    strata_part parts[6];
    struct request r[6];
    OK(open_net(&n, "[build]\ncosts = analytic\n", "8 x 3", "last",
                "[layer last]\ntype = Trial\npoison = 13\n", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6; i++) {
            for (int k = 0; k < 3; k++)
                x[i][k] = i == 3 ? 13 : (float)i;
            set_request(&r[i], 1, x[i], 3, y[i], 3);
            parts[i] = r[i].part;
        }
        r[4].in.bytes = 8; /* and this one is wrong in itself */
        cr_expect_eq(strata_context_run_parts(c, parts, 6, &err), STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, "input 'x': 8 bytes; 1 rows are 12"), "%s",
                           err.message);
        for (int i = 0; i < 6; i++)
            cr_expect(i == 3 || i == 4 ? parts[i].status == STRATA_EINVAL
                                       : parts[i].status == STRATA_OK && y[i][0] == i + 1,
                      "part %d: %d", i, parts[i].status);
    }
    /* The message of a run's failure, and of none that the others have. */
    cr_expect_eq(strata_context_run_parts(c, parts, 4, &err), STRATA_EINVAL);
    cr_expect_not_null(strstr(err.message, "row 0 is poison"), "%s", err.message);
    cr_expect_eq(strata_context_run_parts(c, parts + 3, 1, &err), STRATA_EINVAL);
    OK(strata_context_run_parts(c, parts, 1, &err));
    strata_context_destroy(c);
    close_net(&n);
}

Test(parts, memory_that_fits_is_used_where_it_is)
{
    enum { WIDTH = 1 << 14 };
    static _Alignas(256) float x[4 * WIDTH], y[4 * WIDTH], other[4 * WIDTH];
    struct net n;
    strata_error err;
    strata_context *c;
    struct request r;
    OK(open_net(&n, "[profile]\nN = 2, 4\n", "N x 16384", "y",
                "[layer y]\ntype = Activation\nkind = relu\n", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_bind(c, 1, other, &err));
    fill(x, 4 * WIDTH);
    for (int64_t rows = 1; rows <= 4; rows++) {
        const strata_context_stats before = stats_of(c);
        memset(y, 0x7f, sizeof y);
        set_request(&r, rows, x, WIDTH, y, WIDTH);
        OK(strata_context_run_parts(c, &r.part, 1, &err));
        const strata_context_stats after = stats_of(c);
        const bool planned = rows == 2 || rows == 4;
        const uint64_t bytes = planned ? 0 : (uint64_t)rows * WIDTH * 4;
        cr_expect_eq(after.in_place - before.in_place, planned);
        cr_expect_eq(after.copied_in - before.copied_in, bytes);
        cr_expect_eq(after.copied_out - before.copied_out, bytes);
        cr_expect_eq(after.runs - before.runs, 1);
        for (int i = 0; i < rows * WIDTH; i++)
            cr_assert_eq(y[i], x[i] > 0 ? x[i] : 0, "%d of %d rows", i, (int)rows);
    }
    OK(strata_context_run(c, &err));
    cr_expect_eq(other[1], x[1] > 0 ? x[1] : 0, "the caller's binding is back");
    set_request(&r, 4, x + 1, WIDTH, y, WIDTH);
    r.in.bytes -= 4;
    cr_expect_eq(strata_context_run_parts(c, &r.part, 1, &err), STRATA_EINVAL);
    strata_context_destroy(c);
    close_net(&n);
}

#define REFUSED(words, count)                                                            \
    do {                                                                                 \
        cr_expect_eq(strata_context_run_parts(c, p, (count), &err), STRATA_EINVAL);      \
        cr_expect_not_null(strstr(err.message, (words)), "%s", err.message);             \
    } while (0)

Test(parts, what_is_wrong_is_refused_with_the_reason)
{
    float x[8 * 3] = {0}, y[8 * 3];
    struct net n;
    strata_error err;
    strata_context *c;
    struct request r[2];
    strata_part p[2];
    OK(open_net(&n, "", "8 x 3", "last", "[layer last]\ntype = Identity\n", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    set_request(&r[0], 8, x, 3, y, 3);
    set_request(&r[1], 1, x, 3, y, 3);
    p[0] = r[0].part;
    p[1] = r[1].part;
    REFUSED("part 1: 1 rows behind 8", 2);
    p[0].rows = 0;
    REFUSED("part 0: 0 rows", 1);
    p[0] = r[1].part;
    p[1].struct_size += 8;
    REFUSED("part 1: strata_part.struct_size", 2);
    p[0].struct_size = 8;
    REFUSED("strata_part.struct_size is 8", 1);
    p[0] = r[1].part;
    r[1].in.kind = STRATA_MEMORY_DEVICE;
    REFUSED("device memory for an engine of the host", 1);
    r[1].in.kind = 5;
    REFUSED("memory of kind 5", 1);
    r[1].in = (strata_memory){.bytes = 12};
    REFUSED("'x': data is NULL", 1);
    p[0].inputs = NULL;
    REFUSED("needs inputs", 1);
    p[0].inputs = &r[0].in;
    r[0].in.bytes = 12;
    r[1].out.bytes = 11;
    REFUSED("output 'last': room for 11 bytes; 1 rows are 12", 1);
    strata_context_destroy(c);
    close_net(&n);
}

Test(parts, statistics_are_as_large_as_the_caller_says)
{
    struct {
        strata_context_stats stats;
        uint64_t newer, beyond;
    } out = {.newer = 7, .beyond = 7};
    struct net n;
    strata_error err;
    strata_context *c;
    OK(open_net(&n, "", "8 x 3", "last", "[layer last]\ntype = Identity\n", &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(strata_context_run(c, &err));
    out.stats.struct_size = sizeof out.stats - 8;
    cr_expect_eq(strata_context_get_stats(c, &out.stats, &err), STRATA_EINVAL);
    out.stats.struct_size = sizeof out.stats + 8;
    OK(strata_context_get_stats(c, &out.stats, &err));
    cr_expect(out.stats.runs == 1 && out.newer == 0 && out.beyond == 7);
    strata_context_destroy(c);
    close_net(&n);
}

/* ---- threads --------------------------------------------------------------------- */

struct caller {
    const strata_engine *engine;
    float base;
    int wrong;
};

/* Of 8 rows of 3, one value a part. */
static int call_once(strata_context *c, float value, int64_t rows)
{
    float x[BATCH * 3], y[BATCH * 3] = {0};
    struct request r[2];
    strata_part p[2];
    strata_error err;
    int wrong = 0;
    for (int i = 0; i < BATCH * 3; i++)
        x[i] = value + (float)i;
    set_request(&r[0], rows, x, 3, y, 3);
    set_request(&r[1], BATCH - rows, x + 3 * rows, 3, y + 3 * rows, 3);
    p[0] = r[0].part;
    p[1] = r[1].part;
    if (strata_context_run_parts(c, p, 2, &err) != STRATA_OK)
        return 1;
    for (int i = 0; i < BATCH * 3; i++)
        wrong += y[i] != x[i] + 1;
    return wrong;
}

static void *call_often(void *arg)
{
    struct caller *me = arg;
    strata_handle *handle = NULL;
    strata_context *c = NULL;
    strata_error err;
    me->wrong = strata_create(&handle, "host", &err) != STRATA_OK ||
                strata_context_create(&c, me->engine, handle, &err) != STRATA_OK;
    for (int i = 0; i < 200 && !me->wrong; i++)
        me->wrong += call_once(c, me->base + (float)i, 1 + i % (BATCH - 1));
    strata_context_destroy(c);
    strata_destroy(handle);
    return NULL;
}

Test(parts, threads_have_a_context_each)
{
    struct net n;
    strata_error err;
    pthread_t threads[4];
    struct caller callers[4];
    OK(open_net(&n, "[build]\ncosts = analytic\n", "8 x 3", "last",
                "[layer last]\ntype = Trial\n", &err));
    for (int i = 0; i < 4; i++) {
        callers[i] = (struct caller){n.engine, (float)(1000 * i), 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(callers[i].wrong, 0);
    }
    close_net(&n);
}
