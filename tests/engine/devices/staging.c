/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the host on its way to a device through pinned pieces: every byte once and
 * where it belongs, whatever the size and however many send at a time; a copy that fails
 * ends the way and is told.
 */
#include "engine/staging.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strata/half.h>
#include <time.h>

TestSuite(staging, .timeout = 300);

enum { SENDERS = 5, LARGEST = 23 * STAGING_PIECE + 4099 };

static const size_t sizes[] = {0,
                               1,
                               STAGING_PIECE - 1,
                               STAGING_PIECE,
                               STAGING_PIECE + 1,
                               4 * STAGING_PIECE,
                               4 * STAGING_PIECE + 1,
                               9 * STAGING_PIECE - 7,
                               LARGEST};

static void fill(unsigned char *bytes, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        bytes[i] = (unsigned char)(seed >> 16);
    }
}

struct sender {
    unsigned seed;
    bool keeps;
    int wrong, failed;
};

/* One way, several sizes behind each other; the source is overwritten at once. */
static void *send_all(void *arg)
{
    struct sender *me = arg;
    strata_handle *h;
    strata_error err;
    struct staging s;
    unsigned char *src = malloc(LARGEST + 1), *dst = malloc(LARGEST + 1),
                  *kept = malloc(LARGEST + 1);
    cr_assert(src && dst && kept);
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    staging_open(&s, h, h->stream);
    if (me->keeps)
        staging_keep(&s);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t n = sizes[k];
        if (k % 2)
            staging_begin(&s);
        fill(kept, n, me->seed + (unsigned)k);
        memcpy(src, kept, n);
        memset(dst, 0xa5, n + 1);
        me->failed += staging_send(&s, dst, src, n, &err) != STRATA_OK;
        memset(src, 0, n);
        me->failed += staging_wait(&s, &err) != STRATA_OK;
        me->wrong += memcmp(dst, kept, n) != 0 || dst[n] != 0xa5;
    }
    staging_close(&s);
    strata_destroy(h);
    free(src);
    free(dst);
    free(kept);
    return NULL;
}

Test(staging, every_byte_comes_where_it_belongs_for_several_senders_at_a_time)
{
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.seed = 1 + 100 * i, .keeps = i % 2};
        cr_assert_eq(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(senders[i].wrong, 0, "sender %d: %d sizes", i, senders[i].wrong);
        cr_expect_eq(senders[i].failed, 0);
    }
}

static void send_many_sources(bool keeps)
{
    enum { SOURCES = 37, ROUNDS = 12 };
    struct staging_source sources[SOURCES];
    unsigned char *src = malloc(LARGEST), *dst = malloc(LARGEST + 1),
                  *expected = malloc(LARGEST);
    strata_handle *h;
    strata_error err;
    struct staging s;
    cr_assert(src && dst && expected);
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    staging_open(&s, h, h->stream);
    if (keeps)
        staging_keep(&s);
    srand((unsigned)time(NULL));
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = 0;
        fill(src, LARGEST, (unsigned)rand());
        for (int i = 0; i < SOURCES; i++) {
            const size_t most = round % 3 == 0 ? 5000 : LARGEST / SOURCES;
            const size_t n = rand() % 4 == 0 ? 0 : (size_t)rand() % most;
            const size_t at = (size_t)rand() % (LARGEST - n);
            sources[i] = (struct staging_source){src + at, n};
            memcpy(expected + bytes, src + at, n);
            bytes += n;
        }
        memset(dst, 0xa5, bytes + 1);
        staging_begin(&s);
        cr_expect_eq(staging_send_all(&s, dst, sources, SOURCES, &err), STRATA_OK);
        cr_expect_eq(staging_wait(&s, &err), STRATA_OK);
        cr_expect_eq(memcmp(dst, expected, bytes), 0, "round %d", round);
        cr_expect_eq(dst[bytes], 0xa5);
    }
    staging_close(&s);
    strata_destroy(h);
    free(src);
    free(dst);
    free(expected);
}

Test(staging, many_sources_come_one_behind_the_other)
{
    send_many_sources(false);
    send_many_sources(true);
}

/* The inputs of a run: none waits for another's copy, as each has its place. */
Test(staging, what_is_sent_for_a_run_lies_side_by_side)
{
    enum { INPUTS = 3, RUNS = 5 };
    const size_t bytes[INPUTS] = {3 * STAGING_PIECE + 5, 7, 5 * STAGING_PIECE};
    unsigned char *src = malloc(LARGEST), *dst[INPUTS];
    strata_handle *h;
    strata_error err;
    struct staging s;
    cr_assert(src);
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    staging_open(&s, h, h->stream);
    staging_keep(&s);
    for (int i = 0; i < INPUTS; i++)
        cr_assert(dst[i] = malloc(bytes[i]));
    for (unsigned run = 0; run < RUNS; run++) {
        const size_t room = s.room;
        staging_begin(&s);
        for (unsigned i = 0; i < INPUTS; i++) {
            fill(src, bytes[i], 10 * run + i);
            cr_expect_eq(staging_send(&s, dst[i], src, bytes[i], &err), STRATA_OK);
        }
        cr_expect_eq(staging_wait(&s, &err), STRATA_OK);
        for (unsigned i = 0; i < INPUTS; i++) {
            fill(src, bytes[i], 10 * run + i);
            cr_expect_eq(memcmp(dst[i], src, bytes[i]), 0, "run %u, input %u", run, i);
        }
        cr_expect(run == 0 || s.room == room, "run %u: %zu bytes, %zu before", run,
                  s.room, room);
    }
    cr_expect_eq(s.room, bytes[0] + bytes[1] + bytes[2]);
    staging_close(&s);
    for (int i = 0; i < INPUTS; i++)
        free(dst[i]);
    free(src);
    strata_destroy(h);
}

Test(staging, sending_nothing_needs_no_memory)
{
    strata_handle *h;
    strata_error err;
    struct staging s;
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    staging_open(&s, h, h->stream);
    staging_keep(&s);
    cr_expect_eq(staging_send(&s, NULL, NULL, 0, &err), STRATA_OK);
    cr_expect_null(s.pinned);
    cr_expect_null(s.whole);
    staging_close(&s);
    strata_destroy(h);
}

/* ---- failures ---------------------------------------------------------------------- */

static struct device_ops failing;
static int (*real_copy)(strata_stream *, void *, const void *, size_t, enum device_copy,
                        strata_error *);
static atomic_int copies, fail_at;

static int copy_or_fail(strata_stream *s, void *dst, const void *src, size_t bytes,
                        enum device_copy direction, strata_error *err)
{
    if (atomic_fetch_add(&copies, 1) == fail_at) {
        *err = (strata_error){.status = STRATA_EDEVICELOST, .message = "lost on the way"};
        return STRATA_EDEVICELOST;
    }
    return real_copy(s, dst, src, bytes, direction, err);
}

static void fail_copies(bool keeps)
{
    unsigned char *src = malloc(LARGEST), *dst = malloc(LARGEST);
    strata_handle *h;
    strata_error err;
    struct staging s;
    cr_assert(src && dst);
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    const struct device_ops *before = h->device->ops;
    failing = *before;
    real_copy = before->copy;
    failing.copy = copy_or_fail;
    h->device->ops = &failing;
    fill(src, LARGEST, 9);
    staging_open(&s, h, h->stream);
    if (keeps)
        staging_keep(&s);
    fail_at = -1;
    copies = 0;
    cr_expect_eq(staging_send(&s, dst, src, LARGEST, &err), STRATA_OK);
    const int pieces = copies;
    cr_expect_gt(pieces, CARRIERS_MOST);
    for (int at = 0; at < pieces; at++) {
        copies = 0;
        fail_at = at;
        cr_expect_eq(staging_send(&s, dst, src, LARGEST, &err), STRATA_EDEVICELOST);
        cr_expect_str_eq(err.message, "lost on the way");
        cr_expect(copies <= at + 1 + CARRIERS_MOST + 1, "%d copies, failed at %d", copies,
                  at);
        cr_expect_eq(staging_send(&s, dst, src, LARGEST, NULL), STRATA_OK);
        cr_expect_eq(staging_wait(&s, &err), STRATA_OK);
        cr_expect_eq(memcmp(dst, src, LARGEST), 0);
    }
    staging_close(&s);
    h->device->ops = before;
    strata_destroy(h);
    free(src);
    free(dst);
}

Test(staging, a_copy_that_fails_ends_the_way_and_the_next_goes_on)
{
    fail_copies(false);
    fail_copies(true);
}

static void *refuse(void *user, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    return NULL;
}

static strata_allocator no_host_memory(struct device *d)
{
    (void)d;
    return (strata_allocator){.alloc = refuse};
}

/* As on a GPU of a process that has lost another one. */
Test(staging, without_pinned_memory_the_device_copies_by_itself)
{
    unsigned char *src = malloc(LARGEST), *dst = malloc(LARGEST + 1);
    strata_handle *h;
    strata_error err;
    struct staging s;
    cr_assert(src && dst);
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    const struct device_ops *before = h->device->ops;
    failing = *before;
    failing.host_memory = no_host_memory;
    h->device->ops = &failing;
    for (int keeps = 0; keeps < 2; keeps++) {
        const struct staging_source sources[] = {
            {src, 4099}, {src, 0}, {src + 4099, LARGEST - 4099}};
        staging_open(&s, h, h->stream);
        if (keeps)
            staging_keep(&s);
        fill(src, LARGEST, 9);
        memset(dst, 0xa5, LARGEST + 1);
        cr_expect_eq(staging_send_all(&s, dst, sources, 3, &err), STRATA_OK);
        memset(src, 0, LARGEST); /* it was read */
        fill(src, LARGEST, 9);
        cr_expect_eq(memcmp(dst, src, LARGEST), 0);
        cr_expect_eq(dst[LARGEST], 0xa5);
        staging_close(&s);
    }
    h->device->ops = before;
    strata_destroy(h);
    free(src);
    free(dst);
}

/* ---- back -------------------------------------------------------------------------- */

static void receive(strata_handle *h, bool keeps)
{
    enum { TARGETS = 29, ROUNDS = 8 };
    struct staging_source targets[TARGETS];
    unsigned char *device = malloc(LARGEST), *host = malloc(LARGEST + TARGETS);
    strata_error err;
    struct staging s;
    cr_assert(device && host);
    srand((unsigned)time(NULL));
    staging_open(&s, h, h->stream);
    if (keeps)
        staging_keep(&s);
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = 0, wrong = 0;
        fill(device, LARGEST, (unsigned)rand());
        memset(host, 0xa5, LARGEST + TARGETS);
        for (size_t i = 0; i < TARGETS; i++) { /* a byte between each two */
            const size_t most = round % 3 == 0 ? 5000 : LARGEST / TARGETS;
            const size_t n = rand() % 4 == 0 ? 0 : (size_t)rand() % most;
            targets[i] = (struct staging_source){host + at + i, n};
            at += n;
        }
        cr_expect_eq(staging_receive_all(&s, targets, TARGETS, device, &err), STRATA_OK);
        const unsigned char *from = device;
        for (size_t i = 0; i < TARGETS; from += targets[i++].bytes) {
            const unsigned char *to = targets[i].data;
            wrong += memcmp(to, from, targets[i].bytes) != 0;
            wrong += to[targets[i].bytes] != 0xa5;
        }
        cr_expect_eq(wrong, 0, "round %d: %zu targets", round, wrong);
        staging_begin(&s); /* what is sent next goes by the same slots */
        cr_expect_eq(staging_send(&s, device, host, LARGEST, &err), STRATA_OK);
        cr_expect_eq(staging_wait(&s, &err), STRATA_OK);
        cr_expect_eq(memcmp(device, host, LARGEST), 0, "round %d", round);
    }
    staging_close(&s);
    free(device);
    free(host);
}

Test(staging, what_comes_back_goes_where_it_belongs_by_every_way)
{
    strata_handle *h;
    strata_error err;
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    receive(h, false);
    receive(h, true);
    const struct device_ops *before = h->device->ops;
    failing = *before;
    failing.host_memory = no_host_memory;
    h->device->ops = &failing;
    receive(h, true);
    h->device->ops = before;
    strata_destroy(h);
}

Test(staging, a_copy_back_that_fails_is_told_and_the_next_goes_on)
{
    unsigned char *device = malloc(LARGEST), *host = malloc(LARGEST);
    strata_handle *h;
    strata_error err;
    struct staging s;
    cr_assert(device && host);
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    const struct device_ops *before = h->device->ops;
    const struct staging_source target = {host, LARGEST};
    failing = *before;
    real_copy = before->copy;
    failing.copy = copy_or_fail;
    h->device->ops = &failing;
    fill(device, LARGEST, 11);
    staging_open(&s, h, h->stream);
    fail_at = -1;
    copies = 0;
    cr_expect_eq(staging_receive_all(&s, &target, 1, device, &err), STRATA_OK);
    const int pieces = copies;
    for (int at = 0; at < pieces; at++) {
        copies = 0;
        fail_at = at;
        cr_expect_eq(staging_receive_all(&s, &target, 1, device, &err),
                     STRATA_EDEVICELOST);
        cr_expect_str_eq(err.message, "lost on the way");
        memset(host, 0, LARGEST);
        cr_expect_eq(staging_receive_all(&s, &target, 1, device, NULL), STRATA_OK);
        cr_expect_eq(memcmp(device, host, LARGEST), 0);
    }
    staging_close(&s);
    h->device->ops = before;
    strata_destroy(h);
    free(device);
    free(host);
}

/* ---- halves ------------------------------------------------------------------------ */

static void send_halves(strata_handle *h, bool keeps)
{
    enum { FLOATS = LARGEST / 4, FIRST = 3 * STAGING_PIECE / 4 + 17 };
    float *src = malloc(FLOATS * sizeof *src);
    uint16_t *dst = malloc((FLOATS + 1) * sizeof *dst);
    strata_error err;
    struct staging s;
    size_t wrong = 0;
    cr_assert(src && dst);
    const struct staging_source sources[] = {
        {src, FIRST * sizeof *src},
        {src, 0},
        {src + FIRST, (FLOATS - FIRST) * sizeof *src}};
    fill((unsigned char *)src, FLOATS * sizeof *src, (unsigned)time(NULL));
    dst[FLOATS] = 0xa5a5;
    staging_open(&s, h, h->stream);
    if (keeps)
        staging_keep(&s);
    cr_expect_eq(staging_send_halves(&s, dst, sources, 3, &err), STRATA_OK);
    cr_expect_eq(staging_wait(&s, &err), STRATA_OK);
    for (size_t i = 0; i < FLOATS; i++)
        wrong += dst[i] != strata_half_of_float(src[i]);
    cr_expect_eq(wrong, 0, "%zu of %d", wrong, FLOATS);
    cr_expect_eq(dst[FLOATS], 0xa5a5);
    cr_expect_eq(staging_send_all(&s, src, &(struct staging_source){dst, 9}, 1, &err),
                 STRATA_OK);
    cr_expect_eq(staging_wait(&s, &err), STRATA_OK);
    cr_expect_eq(memcmp(src, dst, 9), 0, "what is sent next is as it is");
    staging_close(&s);
    free(src);
    free(dst);
}

Test(staging, floats_arrive_as_halves_by_every_way)
{
    strata_handle *h;
    strata_error err;
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    send_halves(h, false);
    send_halves(h, true);
    const struct device_ops *before = h->device->ops;
    failing = *before;
    failing.host_memory = no_host_memory;
    h->device->ops = &failing;
    send_halves(h, true);
    h->device->ops = before;
    strata_destroy(h);
}
