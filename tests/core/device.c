/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, and the host device's streams and events.
 */
#include "core/handle.h"
#include "formats/reformat/reformat.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { WORK = 1000 };

struct log {
    int entries[WORK];
    atomic_int n;
};
struct entry {
    struct log *log;
    int value;
    int sleep_us;
    sem_t *gate; /* waits for it, unless NULL */
};

static int write_entry(void *payload, void *native, strata_error *err)
{
    const struct entry *e = payload;
    (void)native, (void)err;
    nanosleep(&(struct timespec){0, e->sleep_us * 1000L}, NULL);
    while (e->gate && sem_wait(e->gate) != 0)
        ;
    e->log->entries[atomic_fetch_add(&e->log->n, 1)] = e->value;
    return STRATA_OK;
}

static void submit(strata_stream *s, struct log *log, int value, int sleep_us)
{
    struct entry e = {log, value, sleep_us, NULL};
    cr_assert_eq(s->device->ops->submit(s, write_entry, &e, sizeof e, NULL), STRATA_OK);
}

static void submit_behind(strata_stream *s, struct log *log, int value, sem_t *gate)
{
    struct entry e = {log, value, 0, gate};
    cr_assert_eq(s->device->ops->submit(s, write_entry, &e, sizeof e, NULL), STRATA_OK);
}

static strata_handle *open_host(void)
{
    strata_handle *h = NULL;
    strata_error err = {0};
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK, "%s", err.message);
    return h;
}

Test(device, a_stream_runs_its_work_in_order_and_later)
{
    static struct log log;
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    sem_t gate;
    cr_assert_eq(sem_init(&gate, 0, 0), 0);
    submit_behind(s, &log, 0, &gate);
    cr_expect_eq(atomic_load(&log.n), 0, "submit does not wait");
    for (int i = 1; i < WORK; i++)
        submit(s, &log, i, 0);
    sem_post(&gate);
    cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    cr_expect_eq(atomic_load(&log.n), WORK);
    for (int i = 0; i < WORK; i++)
        cr_expect_eq(log.entries[i], i);
    strata_destroy(h);
}

Test(device, a_stream_waits_for_an_event_of_another)
{
    static struct log log;
    strata_handle *h = open_host();
    strata_stream *a = NULL, *b = NULL;
    strata_event *e = NULL;
    cr_assert_eq(strata_stream_create(&a, h, NULL), STRATA_OK);
    cr_assert_eq(strata_stream_create(&b, h, NULL), STRATA_OK);
    cr_assert_eq(strata_event_create(&e, h, NULL), STRATA_OK);
    sem_t gate;
    cr_assert_eq(sem_init(&gate, 0, 0), 0);
    for (int round = 0; round < 20; round++) {
        atomic_store(&log.n, 0);
        submit_behind(a, &log, 1, &gate);
        cr_expect_eq(strata_event_record(e, a, NULL), STRATA_OK);
        cr_expect_eq(strata_stream_wait(b, e, NULL), STRATA_OK);
        submit(b, &log, 2, 0);
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* time for a wrong order */
        sem_post(&gate);
        cr_expect_eq(strata_stream_synchronize(b, NULL), STRATA_OK);
        cr_expect_eq(log.entries[0], 1);
        cr_expect_eq(log.entries[1], 2);
    }
    strata_event_destroy(e);
    strata_stream_destroy(a);
    strata_stream_destroy(b);
    strata_destroy(h);
}

Test(device, events_measure_time)
{
    static struct log log;
    strata_handle *h = open_host();
    strata_event *from = NULL, *to = NULL;
    strata_error err = {0};
    double ms = -1;
    cr_assert_eq(strata_event_create(&from, h, NULL), STRATA_OK);
    cr_assert_eq(strata_event_create(&to, h, NULL), STRATA_OK);
    cr_expect_eq(strata_event_elapsed(&ms, from, to, &err), STRATA_EINVAL);
    cr_expect_str_eq(err.message, "event was never recorded");
    strata_event_record(from, strata_get_stream(h), NULL);
    submit(strata_get_stream(h), &log, 0, 10000);
    strata_event_record(to, strata_get_stream(h), NULL);
    cr_expect_eq(strata_event_synchronize(to, NULL), STRATA_OK);
    cr_expect_eq(strata_event_elapsed(&ms, from, to, NULL), STRATA_OK);
    cr_expect_geq(ms, 10.0);
    strata_event_destroy(from);
    strata_event_destroy(to);
    strata_destroy(h);
}

Test(device, an_event_happens_at_once_where_nothing_is_under_way)
{
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    strata_event *e = NULL;
    double ms;
    sem_t gate;
    static struct log log;
    cr_assert_eq(sem_init(&gate, 0, 0), 0);
    cr_assert_eq(strata_event_create(&e, h, NULL), STRATA_OK);
    cr_expect_eq(strata_event_record(e, s, NULL), STRATA_OK);
    cr_expect_eq(strata_event_elapsed(&ms, e, e, NULL), STRATA_OK);
    submit_behind(s, &log, 1, &gate);
    cr_expect_eq(strata_event_record(e, s, NULL), STRATA_OK);
    cr_expect_eq(strata_event_elapsed(&ms, e, e, NULL), STRATA_EBUSY);
    sem_post(&gate);
    cr_expect_eq(strata_event_synchronize(e, NULL), STRATA_OK);
    strata_event_destroy(e);
    strata_destroy(h);
}

static int fail_work(void *payload, void *native, strata_error *err)
{
    (void)native;
    return error_set(err, STRATA_EDEVICE, "failure %d", *(int *)payload);
}

Test(device, the_first_failure_is_kept_until_synchronize)
{
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    strata_error err;
    for (int i = 1; i <= 2; i++)
        cr_assert_eq(s->device->ops->submit(s, fail_work, &i, sizeof i, NULL), STRATA_OK);
    cr_expect_eq(strata_stream_synchronize(s, &err), STRATA_EDEVICE);
    cr_expect_str_eq(err.message, "failure 1");
    cr_expect_eq(strata_stream_synchronize(s, &err), STRATA_OK);
    strata_destroy(h);
}

static int tell_thread(void *payload, void *native, strata_error *err)
{
    (void)native, (void)err;
    **(pthread_t **)payload = pthread_self();
    return STRATA_OK;
}

Test(device, a_stream_can_run_where_work_is_handed_in)
{
    static struct log log;
    strata_handle *h = open_host();
    strata_stream *s = NULL;
    strata_event *e = NULL;
    strata_error err;
    pthread_t ran, *where = &ran;
    int one = 1;
    cr_assert_eq(strata_stream_create(&s, h, NULL), STRATA_OK);
    cr_assert_eq(strata_event_create(&e, h, NULL), STRATA_OK);
    const struct device_ops *ops = s->device->ops;
    ops->stream_run_here(s);
    cr_expect_eq(ops->submit(s, tell_thread, &where, sizeof where, NULL), STRATA_OK);
    cr_expect(pthread_equal(ran, pthread_self()));
    submit(strata_get_stream(h), &log, 1, 3000);
    strata_event_record(e, strata_get_stream(h), NULL);
    cr_expect_eq(strata_stream_wait(s, e, NULL), STRATA_OK);
    cr_expect_eq(atomic_load(&log.n), 1, "it waited for the other stream");
    cr_expect_eq(ops->submit(s, fail_work, &one, sizeof one, NULL), STRATA_OK);
    cr_expect_eq(strata_stream_synchronize(s, &err), STRATA_EDEVICE);
    cr_expect_str_eq(err.message, "failure 1");
    cr_expect_eq(strata_stream_synchronize(s, &err), STRATA_OK);
    strata_event_destroy(e);
    strata_stream_destroy(s);
    strata_destroy(h);
}

struct other {
    strata_stream *stream;
    pthread_t ran;
};

static void *submit_from_other(void *arg)
{
    struct other *o = arg;
    pthread_t *where = &o->ran;
    const struct device_ops *ops = o->stream->device->ops;
    ops->submit(o->stream, tell_thread, &where, sizeof where, NULL);
    cr_expect(!ops->stream_visit(o->stream, 1, 0), "somebody else is there");
    return NULL;
}

Test(device, who_visits_an_idle_stream_does_its_own_work)
{
    static struct log log;
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    const struct device_ops *ops = s->device->ops;
    struct other other = {.stream = s, .ran = pthread_self()};
    pthread_t ran, *where = &ran, thread;
    cr_assert(ops->stream_visit(s, 1, 0));
    cr_expect_eq(ops->submit(s, tell_thread, &where, sizeof where, NULL), STRATA_OK);
    cr_expect(pthread_equal(ran, pthread_self()));
    cr_assert_eq(pthread_create(&thread, NULL, submit_from_other, &other), 0);
    pthread_join(thread, NULL);
    cr_expect(pthread_equal(other.ran, pthread_self()), "others' work waits");
    ops->stream_visit(s, 0, 0);
    cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    cr_expect(!pthread_equal(other.ran, pthread_self()));
    sem_t gate;
    cr_assert_eq(sem_init(&gate, 0, 0), 0);
    submit_behind(s, &log, 1, &gate);
    cr_expect(!ops->stream_visit(s, 1, 0), "there is work on it");
    sem_post(&gate);
    cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    strata_destroy(h);
}

Test(device, copies_fills_and_reformats_in_order)
{
    enum { N = 1 << 16 };
    static unsigned char a[N], b[N];
    strata_handle *h = open_host();
    strata_stream *s = strata_get_stream(h);
    const struct device_ops *ops = s->device->ops;
    cr_expect_eq(ops->fill(s, a, 7, N, NULL), STRATA_OK);
    cr_expect_eq(ops->copy(s, b, a, N, COPY_ON_DEVICE, NULL), STRATA_OK);
    cr_expect_eq(ops->fill(s, a, 9, N, NULL), STRATA_OK);
    cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    cr_expect(a[0] == 9 && a[N - 1] == 9 && b[0] == 7 && b[N - 1] == 7);
    strata_desc nchw, nhwc;
    int64_t dims[] = {1, 2, 1, 3};
    float x[] = {1, 2, 3, 4, 5, 6}, y[6];
    strata_desc_layout(&nchw, STRATA_LAYOUT_NCHW, STRATA_FP32, dims, 4, NULL);
    strata_desc_layout(&nhwc, STRATA_LAYOUT_NHWC, STRATA_FP32, dims, 4, NULL);
    cr_expect_eq(reformat_enqueue(s, &nhwc, y, &nchw, x, NULL), STRATA_OK);
    cr_expect_eq(strata_stream_synchronize(s, NULL), STRATA_OK);
    cr_expect_arr_eq(y, ((float[]){1, 4, 2, 5, 3, 6}), sizeof y);
    strata_destroy(h);
}

static const struct {
    const char *name;
    int status;
    const char *text;
} bad_names[] = {
    {"hots", STRATA_EUNSUPPORTED, "use host or cuda"},
    {"host:1", STRATA_ENOTFOUND, "there is one host"},
    {"host:x", STRATA_EINVAL, "KIND:NUMBER"},
    {"host:-1", STRATA_EINVAL, "KIND:NUMBER"},
    {"", STRATA_EINVAL, "KIND:NUMBER"},
    {":0", STRATA_EINVAL, "KIND:NUMBER"},
};

Test(device, a_bad_device_name_says_what_is_accepted)
{
    for (size_t i = 0; i < ARRAY_LENGTH(bad_names); i++) {
        strata_handle *h = NULL;
        strata_error err;
        cr_expect_eq(strata_create(&h, bad_names[i].name, &err), bad_names[i].status,
                     "'%s'", bad_names[i].name);
        cr_expect_neq(strstr(err.message, bad_names[i].text), NULL, "'%s': %s",
                      bad_names[i].name, err.message);
        cr_expect_null(h);
    }
}

static size_t user_bytes;
static void *user_alloc(void *user, size_t bytes, size_t alignment)
{
    *(size_t *)user += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void user_free(void *user, void *ptr, size_t bytes)
{
    *(size_t *)user -= bytes;
    free(ptr);
}

Test(handle, uses_the_callers_allocator_and_counts)
{
    strata_handle *h = open_host();
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_error err;
    strata_allocator a = {sizeof a, user_alloc, user_free, &user_bytes};
    cr_expect_eq(strata_set_allocator(h, &(strata_allocator){0}, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_allocator(h, &a, NULL), STRATA_OK);
    void *p = allocator_get(&h->allocator, 4096, "p", NULL);
    cr_expect_eq(user_bytes, 4096);
    cr_expect_eq(strata_set_allocator(h, &a, &err), STRATA_EBUSY);
    strata_get_memory_stats(h, &stats, NULL);
    cr_expect_eq(stats.current_bytes, 4096);
    allocator_put(&h->allocator, p, 4096);
    cr_expect_eq(user_bytes, 0);
    strata_destroy(h);
}

Test(handle, math_mode_is_default_until_set)
{
    strata_handle *h = open_host();
    strata_error err;
    cr_expect_eq(strata_get_math_mode(h), STRATA_MATH_DEFAULT);
    cr_expect_eq(strata_set_math_mode(h, 9, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_math_mode(h, STRATA_MATH_TENSOR_OP, NULL), STRATA_OK);
    cr_expect_eq(strata_get_math_mode(h), STRATA_MATH_TENSOR_OP);
    cr_expect_eq(strata_set_math_mode(h, STRATA_MATH_TF32, NULL), STRATA_OK);
    cr_expect_eq(strata_get_math_mode(h), STRATA_MATH_TF32);
    cr_expect_eq(strata_set_math_mode(h, STRATA_MATH_TF32 + 1, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_math_mode(h, -1, &err), STRATA_EINVAL);
    cr_expect_eq(strata_get_math_mode(h), STRATA_MATH_TF32);
    strata_destroy(h);
}

/* A wait that is still queued holds on to its event. */
Test(device, an_event_may_be_destroyed_while_streams_wait_for_it)
{
    static struct log log;
    strata_stream *other = NULL;
    strata_handle *h = open_host();
    cr_assert_eq(strata_stream_create(&other, h, NULL), STRATA_OK);
    for (int i = 0; i < 20; i++) {
        strata_event *e = NULL;
        cr_assert_eq(strata_event_create(&e, h, NULL), STRATA_OK);
        cr_assert_eq(strata_event_record(e, strata_get_stream(h), NULL), STRATA_OK);
        submit(other, &log, i, 2000);
        cr_assert_eq(strata_stream_wait(other, e, NULL), STRATA_OK);
        strata_event_destroy(e);
        cr_expect_eq(atomic_load(&log.n), i + 1, "destroy waited for the stream");
    }
    cr_expect_eq(strata_stream_synchronize(other, NULL), STRATA_OK);
    strata_stream_destroy(other);
    strata_destroy(h);
}

Test(device, the_host_has_no_streams_of_others)
{
    strata_handle *h = NULL;
    strata_stream *s = (strata_stream *)&h;
    strata_event *e = (strata_event *)&h;
    strata_error err;
    int there = 0;
    cr_assert_eq(strata_create(&h, "host", &err), STRATA_OK);
    cr_expect_eq(strata_stream_wrap(&s, h, NULL, &err), STRATA_EUNSUPPORTED);
    cr_expect_null(s);
    cr_expect_not_null(strstr(err.message, "no streams of others"), "%s", err.message);
    cr_expect_eq(strata_event_wrap(&e, h, &there, &err), STRATA_EUNSUPPORTED);
    cr_expect_null(e);
    cr_expect_not_null(strstr(err.message, "no events of others"), "%s", err.message);
    cr_expect_null(strata_stream_native(strata_get_stream(h)));
    cr_assert_eq(strata_event_create(&e, h, &err), STRATA_OK);
    cr_expect_null(strata_event_native(e));
    strata_event_destroy(e);
    strata_destroy(h);
}
