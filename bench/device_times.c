/* SPDX-License-Identifier: Apache-2.0
 *
 * A device's table with a stopwatch around what loading and running call.
 */
#include "bench/device_times.h"

#include <stdio.h>
#include <string.h>

#include "planner/cost/progress.h"

enum kind { ALLOC, FREE, PINNED, UNPIN, COPY, FILL, REFORMAT, WORK, WAIT, KINDS };
static const char *const kind_names[KINDS] = {
    [ALLOC] = "allocate",    [FREE] = "free", [PINNED] = "pin",
    [UNPIN] = "unpin",       [COPY] = "copy", [FILL] = "fill",
    [REFORMAT] = "reformat", [WORK] = "work", [WAIT] = "wait"};
enum { MOST_WORK = 4096, SLOWEST = 4 };

static struct {
    const struct device_ops *real;
    struct device_ops timed;
    strata_allocator memory, pinned;
    double ms[KINDS];
    size_t n[KINDS];
    double work[MOST_WORK]; /* ms of each piece */
} times;

static void stop(enum kind kind, double start)
{
    const double ms = (progress_now() - start) * 1e3;
    if (kind == WORK && times.n[WORK] < MOST_WORK)
        times.work[times.n[WORK]] = ms;
    times.ms[kind] += ms;
    times.n[kind]++;
}

static void *alloc(void *user, size_t bytes, size_t alignment)
{
    const double start = progress_now();
    void *p = times.memory.alloc(user, bytes, alignment);
    return stop(ALLOC, start), p;
}

static void release(void *user, void *ptr, size_t bytes)
{
    const double start = progress_now();
    times.memory.free(user, ptr, bytes);
    stop(FREE, start);
}

static void *pin(void *user, size_t bytes, size_t alignment)
{
    const double start = progress_now();
    void *p = times.pinned.alloc(user, bytes, alignment);
    return stop(PINNED, start), p;
}

static void unpin(void *user, void *ptr, size_t bytes)
{
    const double start = progress_now();
    times.pinned.free(user, ptr, bytes);
    stop(UNPIN, start);
}

static strata_allocator pinned_memory(struct device *d)
{
    times.pinned = times.real->host_memory(d);
    return (strata_allocator){.alloc = pin, .free = unpin, .user = times.pinned.user};
}

static int copy(strata_stream *s, void *dst, const void *src, size_t bytes,
                enum device_copy direction, strata_error *err)
{
    const double start = progress_now();
    const int status = times.real->copy(s, dst, src, bytes, direction, err);
    return stop(COPY, start), status;
}

static int fill(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err)
{
    const double start = progress_now();
    const int status = times.real->fill(s, dst, byte, bytes, err);
    return stop(FILL, start), status;
}

static int reformat(strata_stream *s, const strata_desc *dst, void *dst_data,
                    const strata_desc *src, const void *src_data, strata_error *err)
{
    const double start = progress_now();
    const int status = times.real->reformat(s, dst, dst_data, src, src_data, err);
    return stop(REFORMAT, start), status;
}

static int submit(strata_stream *s, device_work work, const void *payload, size_t bytes,
                  strata_error *err)
{
    const double start = progress_now();
    const int status = times.real->submit(s, work, payload, bytes, err);
    return stop(WORK, start), status;
}

static int synchronize(strata_stream *s, strata_error *err)
{
    const double start = progress_now();
    const int status = times.real->stream_synchronize(s, err);
    return stop(WAIT, start), status;
}

int device_times_watch(strata_handle *h, strata_error *err)
{
    times.real = h->device->ops;
    times.timed = *times.real;
    times.timed.copy = copy;
    times.timed.fill = fill;
    times.timed.reformat = times.real->reformat ? reformat : NULL;
    times.timed.submit = submit;
    times.timed.stream_synchronize = synchronize;
    times.timed.host_memory = pinned_memory;
    h->device->ops = &times.timed;
    times.memory = times.real->memory(h->device);
    const strata_allocator a = {
        .struct_size = sizeof a,
        .alloc = alloc,
        .free = release,
        .user = times.memory.user,
    };
    return strata_set_allocator(h, &a, err);
}

void device_times_reset(void)
{
    memset(times.ms, 0, sizeof times.ms);
    memset(times.n, 0, sizeof times.n);
}

static size_t slowest(void)
{
    size_t at = 0;
    for (size_t i = 1; i < times.n[WORK] && i < MOST_WORK; i++)
        at = times.work[i] > times.work[at] ? i : at;
    return at;
}

void device_times_print(const char *title, double ms,
                        const char *(*name)(const void *user, size_t n), const void *user)
{
    printf("%s %.2f ms:", title, ms);
    for (int k = 0; k < KINDS; k++) {
        if (times.n[k])
            printf(" %s %.2f (%zu),", kind_names[k], times.ms[k], times.n[k]);
        ms -= times.ms[k];
    }
    printf(" else %.2f\n  slowest work:", ms);
    for (int i = 0; i < SLOWEST && times.n[WORK]; i++) {
        const size_t at = slowest();
        printf(" %s %.3f;", name(user, at), times.work[at]);
        times.work[at] = 0;
    }
    printf("\n");
}
