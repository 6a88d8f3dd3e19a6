/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA device: streams, events, memory, copies, graphs, and what it says when it is
 * missing or lost.
 */
#include "tests/cuda/device.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/reformat/reformat.h"

TestSuite(cuda_device, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

/* ---- without a device -------------------------------------------------------------- */

/* Any machine: it opens, or one of the messages says what is missing. */
Test(cuda_device, opens_or_says_what_is_missing)
{
    static const char *const remedies[] = {
        "no NVIDIA driver", "install a newer driver",
        "finds no GPU",     "install Strata built with CUDA",
        "cannot load",      "cannot be used"};
    strata_handle *h = NULL;
    strata_error err;
    int status = strata_create(&h, "cuda:0", &err), found = 0;
    if (status == STRATA_OK) {
        strata_destroy(h);
        return;
    }
    cr_expect(status == STRATA_EUNSUPPORTED, "status %d", status);
    for (size_t i = 0; i < ARRAY_LENGTH(remedies); i++)
        found |= strstr(err.message, remedies[i]) != NULL;
    cr_expect(found, "%s", err.message);
    cr_expect(strstr(err.message, "host") != NULL, "%s", err.message);
    cr_expect_null(h);
    cr_expect_eq(strata_create(&h, "host", &err), STRATA_OK);
    strata_destroy(h);
}

Test(cuda_device, a_missing_module_is_named_with_where_it_was_sought)
{
    strata_handle *h = NULL;
    strata_error err;
    setenv("STRATA_DEVICE_PATH", "/nonexistent-folder:relative", 1);
    int status = strata_create(&h, "cuda:0", &err);
    if (status == STRATA_OK) /* an installed one is there */
        strata_destroy(h);
    else
        cr_expect(strstr(err.message, "/nonexistent-folder") != NULL ||
                      strstr(err.message, "driver") != NULL,
                  "%s", err.message);
}

/* A module that others could have written is not loaded, whatever it holds. */
Test(cuda_device, a_module_that_others_may_write_is_refused)
{
    char folder[] = "/tmp/strata-device-XXXXXX", path[64];
    strata_handle *h = NULL;
    strata_error err;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/strata-cuda.so", folder);
    FILE *f = fopen(path, "w");
    cr_assert(f && !fclose(f) && !chmod(path, 0666));
    setenv("STRATA_DEVICE_PATH", folder, 1);
    cr_expect_eq(strata_create(&h, "cuda:0", &err), STRATA_EMODULE, "%s", err.message);
    cr_expect_not_null(strstr(err.message, "chmod go-w"), "%s", err.message);
    cr_expect_null(strstr(err.message, "--allow-untrusted-plugins"), "%s", err.message);
    unlink(path);
    rmdir(folder);
}

/* ---- with one ------------------------------------------------------------------------
 */

Test(cuda_device, has_properties)
{
    strata_handle *h = need_cuda();
    const struct device_properties *p = &h->properties;
    cr_expect_eq(p->kind, STRATA_CUDA);
    cr_expect_geq(p->sm, 75);
    cr_expect_gt(p->threads, 0);
    cr_expect_gt(p->bandwidth, 1e10);
    for (int d = 0; d < STRATA_DTYPE_COUNT; d++)
        cr_expect_gt(p->flops[d], 1e11);
    fprintf(stderr, "# %s, sm %d, %d multiprocessors, %.0f GB/s, fp16 %.0f TFLOP/s\n",
            p->name, p->sm, p->threads, p->bandwidth * 1e-9, p->flops[1] * 1e-12);
    strata_destroy(h);
}

Test(cuda_device, a_number_past_the_last_is_refused)
{
    strata_handle *h = need_cuda(), *none = NULL;
    strata_error err;
    cr_expect_eq(strata_create(&none, "cuda:63", &err), STRATA_EUNSUPPORTED);
    cr_expect(strstr(err.message, "from cuda:0 on") != NULL, "%s", err.message);
    cr_expect_null(none);
    strata_destroy(h);
}

enum { BYTES = 1 << 20 };

static void fill_pattern(unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

Test(cuda_device, copies_every_way_and_fills_in_order)
{
    strata_handle *h = need_cuda();
    strata_stream *s = strata_get_stream(h);
    const struct device_ops *ops = h->device->ops;
    strata_error err = {0};
    unsigned char *in = strata_host_alloc(h, BYTES, &err);
    unsigned char *out = malloc(BYTES);
    char *a = allocator_get(&h->allocator, BYTES, "a", &err);
    char *b = allocator_get(&h->allocator, BYTES, "b", &err);
    cr_assert(in && out && a && b, "%s", err.message);
    cr_expect_eq((uintptr_t)in % 256, 0);
    cr_expect_eq((uintptr_t)a % 256, 0);
    fill_pattern(in, BYTES, 7);
    memset(out, 0, BYTES);
    OK(ops->copy(s, a, in, BYTES, COPY_TO_DEVICE, &err));
    OK(ops->copy(s, b, a, BYTES, COPY_ON_DEVICE, &err));
    OK(ops->fill(s, a, 0x5c, BYTES, &err));
    OK(ops->copy(s, out, b, BYTES, COPY_FROM_DEVICE, &err));
    OK(strata_stream_synchronize(s, &err));
    cr_expect_arr_eq(out, in, BYTES);
    OK(ops->copy(s, out, a, BYTES, COPY_FROM_DEVICE, &err));
    OK(strata_stream_synchronize(s, &err));
    for (int i = 0; i < BYTES; i++)
        cr_assert_eq(out[i], 0x5c, "byte %d", i);
    allocator_put(&h->allocator, a, BYTES);
    allocator_put(&h->allocator, b, BYTES);
    strata_host_free(h, in, BYTES);
    free(out);
    strata_destroy(h);
}

Test(cuda_device, streams_wait_for_events_and_events_measure)
{
    enum { BIG = 256 << 20 };
    strata_handle *h = need_cuda();
    const struct device_ops *ops = h->device->ops;
    strata_stream *s = strata_get_stream(h), *other = NULL;
    strata_event *from = NULL, *to = NULL;
    strata_error err = {0};
    unsigned char last = 0;
    double ms = -1;
    char *a = allocator_get(&h->allocator, BIG, "a", &err);
    char *b = allocator_get(&h->allocator, BIG, "b", &err);
    cr_assert(a && b, "%s", err.message);
    OK(strata_stream_create(&other, h, &err));
    OK(strata_event_create(&from, h, &err));
    OK(strata_event_create(&to, h, &err));
    cr_expect_eq(strata_event_elapsed(&ms, from, to, &err), STRATA_EINVAL);
    OK(strata_event_record(from, s, &err));
    for (int i = 1; i <= 50; i++)
        OK(ops->fill(s, a, i, BIG, &err));
    OK(strata_event_record(to, s, &err));
    OK(strata_stream_wait(other, to, &err));
    OK(ops->copy(other, b, a, BIG, COPY_ON_DEVICE, &err));
    OK(ops->copy(other, &last, b + BIG - 1, 1, COPY_FROM_DEVICE, &err));
    OK(strata_stream_synchronize(other, &err));
    cr_expect_eq(last, 50);
    OK(strata_event_elapsed(&ms, from, to, &err));
    /* 12.5 GiB cannot take less than a tenth of a millisecond, nor a second. */
    cr_expect(ms > 0.1 && ms < 1000, "%g ms", ms);
    strata_event_destroy(from);
    strata_event_destroy(to);
    strata_stream_destroy(other);
    allocator_put(&h->allocator, a, BIG);
    allocator_put(&h->allocator, b, BIG);
    strata_destroy(h);
}

Test(cuda_device, a_graph_replays_what_was_captured)
{
    strata_handle *h = need_cuda();
    strata_stream *s = strata_get_stream(h);
    const struct device_ops *ops = h->device->ops;
    strata_error err = {0};
    void *graph = NULL;
    unsigned char *in = strata_host_alloc(h, BYTES, &err), *out = malloc(BYTES);
    char *a = allocator_get(&h->allocator, BYTES, "a", &err);
    char *b = allocator_get(&h->allocator, BYTES, "b", &err);
    cr_assert(in && out && a && b, "%s", err.message);
    OK(ops->capture_begin(s, &err));
    OK(ops->copy(s, b, a, BYTES, COPY_ON_DEVICE, &err));
    OK(ops->fill(s, a, 1, BYTES, &err));
    OK(ops->capture_end(s, &graph, &err));
    for (unsigned round = 0; round < 3; round++) {
        fill_pattern(in, BYTES, round);
        OK(ops->copy(s, a, in, BYTES, COPY_TO_DEVICE, &err));
        OK(ops->graph_launch(s, graph, &err));
        OK(ops->copy(s, out, b, BYTES, COPY_FROM_DEVICE, &err));
        OK(strata_stream_synchronize(s, &err));
        cr_expect_arr_eq(out, in, BYTES);
    }
    ops->graph_destroy(h->device, graph);
    allocator_put(&h->allocator, a, BYTES);
    allocator_put(&h->allocator, b, BYTES);
    strata_host_free(h, in, BYTES);
    free(out);
    strata_destroy(h);
}

Test(cuda_device, running_out_of_memory_is_said_and_passes)
{
    strata_handle *h = need_cuda();
    strata_error err = {0};
    strata_memory_stats stats = {.struct_size = sizeof stats};
    const size_t all = (size_t)1 << 46;
    cr_expect_null(allocator_get(&h->allocator, all, "a huge tensor", &err));
    cr_expect_eq(err.status, STRATA_ENOMEM);
    cr_expect(strstr(err.message, "70368744177664 bytes") != NULL, "%s", err.message);
    cr_expect(strstr(err.message, "bytes free") != NULL, "%s", err.message);
    error_clear(&err);
    void *p = allocator_get(&h->allocator, BYTES, "p", &err);
    cr_expect_not_null(p, "%s", err.message);
    strata_get_memory_stats(h, &stats, NULL);
    cr_expect_eq(stats.current_bytes, BYTES);
    cr_expect_eq(stats.failures, 1);
    allocator_put(&h->allocator, p, BYTES);
    OK(strata_device_ok(h, &err));
    strata_destroy(h);
}

struct worker {
    strata_handle *handle;
    unsigned seed;
    int wrong;
};

static void *copy_often(void *arg)
{
    struct worker *w = arg;
    const struct device_ops *ops = w->handle->device->ops;
    strata_stream *s = NULL;
    static const size_t n = 1 << 16;
    unsigned char *in = malloc(n), *out = malloc(n);
    char *a = allocator_get(&w->handle->allocator, n, "a", NULL);
    w->wrong = !in || !out || !a || strata_stream_create(&s, w->handle, NULL);
    for (unsigned i = 0; i < 200 && !w->wrong; i++) {
        fill_pattern(in, n, w->seed + i);
        w->wrong = ops->copy(s, a, in, n, COPY_TO_DEVICE, NULL) ||
                   ops->copy(s, out, a, n, COPY_FROM_DEVICE, NULL) ||
                   strata_stream_synchronize(s, NULL) || memcmp(in, out, n) != 0;
    }
    strata_stream_destroy(s);
    allocator_put(&w->handle->allocator, a, n);
    free(in);
    free(out);
    return NULL;
}

Test(cuda_device, threads_share_a_device)
{
    enum { THREADS = 4 };
    strata_handle *h = need_cuda();
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){h, i * 1000, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, copy_often, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_not(workers[i].wrong, "thread %u", i);
    }
    strata_destroy(h);
}

/* Device work that reads far outside any memory: done through a reformat of device
 * memory that was never there, which only a kernel notices. */
static int break_device(strata_handle *h, strata_error *err)
{
    strata_desc d;
    const int64_t dims[] = {1, 64, 64, 64};
    strata_desc_format(&d, "fp32:nchw", dims, 4, err);
    void *nowhere = (void *)(uintptr_t)0x100000, *elsewhere = (void *)(uintptr_t)0x900000;
    int status = h->device->ops->reformat(h->stream, &d, nowhere, &d, elsewhere, err);
    return status != STRATA_OK ? status : strata_stream_synchronize(h->stream, err);
}

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

Test(cuda_device, a_lost_device_says_so_at_once_and_the_host_goes_on)
{
    strata_handle *h = need_cuda(), *second = NULL, *host = NULL;
    const struct device_ops *ops = h->device->ops;
    strata_error err = {0};
    strata_event *e = NULL;
    char byte = 0;
    void *graph = NULL;
    void *p = allocator_get(&h->allocator, BYTES, "p", &err);
    OK(strata_create(&second, "cuda:0", &err));
    OK(strata_event_create(&e, h, &err));
    cr_expect_eq(break_device(h, &err), STRATA_EDEVICELOST, "%s", err.message);
    cr_expect(strstr(err.message, "is lost since") != NULL, "%s", err.message);
    double ms, slowest = 0;
#define LOST(call)                                                                       \
    do {                                                                                 \
        const double start = milliseconds();                                             \
        cr_expect_eq((call), STRATA_EDEVICELOST, #call);                                 \
        const double took = milliseconds() - start;                                      \
        slowest = took > slowest ? took : slowest;                                       \
    } while (0)
    LOST(strata_device_ok(second, NULL));
    LOST(strata_stream_synchronize(second->stream, NULL));
    LOST(ops->copy(h->stream, p, &byte, 1, COPY_TO_DEVICE, NULL));
    LOST(ops->fill(h->stream, p, 0, 1, NULL));
    LOST(ops->submit(h->stream, NULL, NULL, 0, NULL));
    LOST(strata_event_record(e, h->stream, NULL));
    LOST(strata_event_synchronize(e, NULL));
    LOST(strata_event_elapsed(&ms, e, e, NULL));
    LOST(strata_stream_wait(h->stream, e, NULL));
    LOST(ops->capture_begin(h->stream, NULL));
    LOST(ops->capture_end(h->stream, &graph, NULL));
    LOST(ops->graph_launch(h->stream, NULL, NULL));
    fprintf(stderr, "# of the calls to a lost device the slowest took %g ms\n", slowest);
    cr_expect_null(allocator_get(&h->allocator, 1, "q", NULL));
    allocator_put(&h->allocator, p, BYTES);
    strata_event_destroy(e);
    strata_destroy(second);
    strata_destroy(h);
    h = NULL;
    LOST(strata_create(&h, "cuda:0", &err));
    OK(strata_create(&host, "host", &err));
    OK(strata_device_ok(host, &err));
    strata_destroy(host);
}
