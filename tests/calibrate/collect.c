/* SPDX-License-Identifier: Apache-2.0
 *
 * What tensors hold over data: whole, in pieces, on any number of threads.
 */
#include "tests/calibrate/small_net.h"

static void collect_with(struct bench *b, struct collection *c, int64_t threads)
{
    strata_error err = {0};
    struct probe p;
    b->net->runtime.threads = threads;
    ok(probe_open(&p, b->handle, b->net, &err), &err);
    ok(collection_open(c, &b->scheme, &err), &err);
    ok(collection_run(c, p.context, &b->samples, SAMPLES, &err), &err);
    probe_close(&p);
}

Test(collection, is_bit_for_bit_the_same_on_one_thread_and_on_many)
{
    struct bench b;
    struct collection one, many;
    open_bench(&b);
    collect_with(&b, &one, 1);
    collect_with(&b, &many, 4);
    for (size_t t = 0; t < b.net->n_tensors; t++)
        if (one.tensors[t])
            cr_expect(memcmp(one.tensors[t], many.tensors[t], sizeof **one.tensors) == 0,
                      "%s", b.net->tensors[t].name);
    cr_expect_eq(one.tensors[tensor(b.net, "x")]->seen, SAMPLES * PIXELS);
    collection_free(&one);
    collection_free(&many);
    close_bench(&b);
}

Test(collection, that_was_kept_goes_on_to_the_same_end)
{
    char path[] = "/tmp/strata-collected-XXXXXX";
    struct bench b;
    struct collection whole, part, rest;
    strata_error err = {0};
    open_bench(&b);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && close(fd) == 0);
    ok(collection_open(&whole, &b.scheme, &err), &err);
    ok(collection_open(&part, &b.scheme, &err), &err);
    ok(collection_open(&rest, &b.scheme, &err), &err);
    ok(collection_run(&whole, b.floats.context, &b.samples, SAMPLES, &err), &err);
    ok(collection_run(&part, b.floats.context, &b.samples, 5, &err), &err);
    ok(collected_write(&part, path, SAMPLES, &err), &err);
    ok(collected_read(&rest, path, SAMPLES, &err), &err);
    cr_expect_eq(rest.done, 5);
    b.loads = 0;
    ok(collection_run(&rest, b.floats.context, &b.samples, SAMPLES, &err), &err);
    cr_expect_eq(b.loads, SAMPLES - 5);
    for (size_t t = 0; t < b.net->n_tensors; t++)
        if (whole.tensors[t])
            cr_expect(memcmp(whole.tensors[t], rest.tensors[t], sizeof **rest.tensors) ==
                          0,
                      "%s", b.net->tensors[t].name);
    collection_free(&whole);
    collection_free(&part);
    collection_free(&rest);
    unlink(path);
    close_bench(&b);
}

/* Bytes of a good file changed at random: refused, or read and whole. */
Test(collection, damaged_files_are_refused_or_read)
{
    struct bench b;
    struct collection c;
    strata_error err = {0};
    char path[] = "/tmp/strata-collected-XXXXXX", *good = NULL;
    size_t size = 0;
    open_bench(&b);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && close(fd) == 0);
    ok(collection_open(&c, &b.scheme, &err), &err);
    ok(collection_run(&c, b.floats.context, &b.samples, 1, &err), &err);
    ok(collected_write(&c, path, SAMPLES, &err), &err);
    FILE *f = fopen(path, "rb");
    cr_assert(f && (good = malloc(1 << 20)) && (size = fread(good, 1, 1 << 20, f)));
    fclose(f);
    int refused = 0;
    for (int round = 0; round < 600; round++) {
        char *text = malloc(size);
        memcpy(text, good, size);
        for (int k = 0; k <= round % 3; k++)
            text[(size_t)(fabs(draw()) * (double)size)] =
                round % 2 ? (char)(draw() * 128) : "0-: ,.\n9"[(int)(fabs(draw()) * 8)];
        strata_error why = {0};
        const int status = collected_parse(&c, text, size, SAMPLES, "x", &why);
        cr_assert_eq(status, why.status);
        refused += status != STRATA_OK;
        for (size_t t = 0; t < b.net->n_tensors && status == STRATA_OK; t++) {
            int64_t sum = 0;
            for (int i = 0; c.tensors[t] && i < 2 * HISTOGRAM_SIDE; i++)
                sum += c.tensors[t]->bins[i];
            cr_expect(!c.tensors[t] || sum == c.tensors[t]->seen);
        }
        free(text);
    }
    cr_expect(refused > 300, "%d of 600 are refused", refused);
    collection_free(&c);
    free(good);
    unlink(path);
    close_bench(&b);
}

Test(collection, ranges_shared_are_those_of_all_values)
{
    struct bench b;
    struct ranges r = {0};
    strata_error err = {0};
    open_bench(&b);
    collect_ranges(&b, &r);
    const struct range *left = ranges_find(&r, "left"), *join = ranges_find(&r, "join");
    cr_assert(left && join && r.n == b.scheme.n_tensors);
    cr_expect(left->low == join->low && left->high == join->high);
    cr_expect_eq(join->seen, left->seen + ranges_find(&r, "right")->seen);
    /* Edited apart, they become the widest. */
    ok(ranges_put(&r, "left", -1e3, 0, 1, &err), &err);
    ok(ranges_put(&r, "right", 0, 2e3, 1, &err), &err);
    ok(ranges_share(&r, &b.scheme, &err), &err);
    join = ranges_find(&r, "join");
    cr_expect(join->low == -1e3 && join->high == 2e3);
    ranges_free(&r);
    close_bench(&b);
}
