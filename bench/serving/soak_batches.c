/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of a batcher, as their requests' ends show them. A thread that ends requests
 * has nothing else to do between two of one run, and a whole run to wait for between two
 * runs.
 */
#include "bench/serving/soak.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Seconds: between the ends of two requests of a run, at most, where the thread is not
 * kept from going on; and until a run's others have ended. */
static const double GAP = 5e-5, LATER = 0.02;

double soak_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* With the lock held. */
static int this_thread(struct soak_batches *b)
{
    const int own = (int)syscall(SYS_gettid);
    int i = 0;
    while (i < b->n_threads && b->threads[i] != own)
        i++;
    if (i == b->n_threads && i < SOAK_THREADS)
        b->threads[b->n_threads++] = own;
    return i;
}

void soak_done(void *request, const strata_error *err)
{
    static _Thread_local unsigned long last; /* 1 + this thread's last batch */
    struct soak_request *r = request;
    struct soak_batches *b = r->batches;
    (void)err;
    pthread_mutex_lock(&b->lock);
    struct soak_batch *now = &b->recent[(last - 1) % SOAK_RECENT];
    if (last == 0 || b->n - last >= SOAK_RECENT || soak_now() - now->end > GAP ||
        now->rows + r->rows > r->most) {
        last = ++b->n;
        now = &b->recent[(last - 1) % SOAK_RECENT];
        *now = (struct soak_batch){.thread = this_thread(b)};
    }
    r->batch = last - 1;
    r->place = now->rows;
    now->rows += r->rows;
    now->end = soak_now();
    pthread_mutex_unlock(&b->lock);
}

/* The batcher makes its threads one behind the other, and deals them to the devices. -1:
 * not all have been seen. */
static int device_of(const struct soak *s, const struct soak_batches *b, int thread)
{
    const int each = strncmp(s->devices[0], "host", 4) == 0 ? 1 : 2;
    int before = 0;
    for (int i = 0; i < b->n_threads; i++)
        before += b->threads[i] < b->threads[thread];
    return b->n_threads == each * s->n_devices ? before % s->n_devices : -1;
}

static int64_t plan_of(const struct soak *s, int64_t rows)
{
    int b = 0;
    while (b + 1 < s->n_batches && s->batches[b] < rows)
        b++;
    return s->batches[b];
}

static int tell_one(const struct soak *s, const struct soak_batches *b,
                    const struct soak_batch *one, char *text, int at)
{
    return at + snprintf(text + at, (size_t)(SOAK_TEXT - at),
                         "%lld rows (plan %lld) by thread %d on device %d",
                         (long long)one->rows, (long long)plan_of(s, one->rows),
                         one->thread, device_of(s, b, one->thread));
}

void soak_tell_batch(const struct soak *s, const struct soak_request *r,
                     char text[SOAK_TEXT])
{
    struct soak_batches *b = r->batches;
    const struct timespec later = {.tv_nsec = (long)(LATER * 1e9)};
    nanosleep(&later, NULL);
    pthread_mutex_lock(&b->lock);
    const struct soak_batch *own = &b->recent[r->batch % SOAK_RECENT];
    int at = 0;
    if (b->n - r->batch > SOAK_RECENT) {
        snprintf(text, SOAK_TEXT, "a batch of long ago");
    } else {
        at = tell_one(s, b, own, text, at);
        at += snprintf(text + at, (size_t)(SOAK_TEXT - at),
                       ", from place %lld on, %.3f ms; batches about then:",
                       (long long)r->place, (own->end - r->begin) * 1e3);
    }
    const unsigned long first = b->n > SOAK_RECENT ? b->n - SOAK_RECENT : 0;
    for (unsigned long i = first; at > 0 && i < b->n && at < SOAK_TEXT / 2; i++) {
        const struct soak_batch *one = &b->recent[i % SOAK_RECENT];
        if (i == r->batch || one->end < r->begin || one->end > own->end + LATER / 2)
            continue;
        at += snprintf(text + at, (size_t)(SOAK_TEXT - at), " %+.3f ms ",
                       (one->end - own->end) * 1e3);
        at = tell_one(s, b, one, text, at);
        at += snprintf(text + at, (size_t)(SOAK_TEXT - at), ";");
    }
    pthread_mutex_unlock(&b->lock);
}
