/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned pieces. One thread fills pinned memory at a fraction of the speed at which it is
 * then read by the device, so what is large is filled by several. Who has filled a piece
 * puts its copy on the stream: they need no order among themselves. On the way back a
 * thread empties a piece while its next one comes.
 */
#include "engine/staging.h"

#include <string.h>

#include "engine/past_caches.h"
#include "formats/reformat/reformat.h"

enum {
    WHOLE = 64 << 20, /* the most that is kept pinned for a context's inputs */
    ALONE = 1 << 20,  /* bytes that take less than waking others */
    PIECES = 16,      /* that a few threads share well; one alone needs a quarter */
    /* Giving one to the driver takes half as long as filling it. */
    LEAST_PIECE = 128 << 10,
    HALVES = 4096, /* that are made at a time, in a core's own cache */
};

/* Bytes on the device of so many of the sources. */
static size_t arriving(const struct staging *s, size_t bytes)
{
    return s->halves ? bytes / 2 : bytes;
}

void staging_open(struct staging *s, strata_handle *handle, strata_stream *stream)
{
    *s = (struct staging){.handle = handle, .stream = stream};
    pthread_mutex_init(&s->lock, NULL);
}

static int make_slots(struct staging *s)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status = STRATA_OK;
    for (int i = 0; i < STAGING_SLOTS && status == STRATA_OK; i++)
        if (!s->sent[i])
            status = ops->event_create(s->handle->device, &s->sent[i], NULL);
    if (status != STRATA_OK)
        return status;
    s->pinned = strata_host_alloc(s->handle, (size_t)STAGING_SLOTS * STAGING_PIECE, NULL);
    if (!s->pinned)
        return STRATA_ENOMEM;
    carriers_open();
    return STRATA_OK;
}

void staging_keep(struct staging *s)
{
    s->keeps = true;
}

void staging_begin(struct staging *s)
{
    s->again = true;
}

static void drop_whole(struct staging *s)
{
    if (!s->whole)
        return;
    strata_host_free(s->handle, s->whole, s->room);
    carriers_close();
    s->whole = NULL;
    s->room = s->taken = 0;
}

/* Nothing of it is on its way. */
static bool grow_whole(struct staging *s, size_t bytes)
{
    if (s->room >= bytes)
        return true;
    drop_whole(s);
    s->whole = strata_host_alloc(s->handle, bytes, NULL);
    if (!s->whole)
        return false;
    s->room = bytes;
    carriers_open();
    return true;
}

/* Behind what else is sent for the run, where there is room; otherwise from the begin,
 * once nothing is on its way, in as much as the run has needed so far. False: by slots.
 */
static bool take_whole(struct staging *s)
{
    const struct device_ops *ops = s->handle->device->ops;
    const size_t bytes = arriving(s, s->bytes);
    const size_t wanted = (s->again ? 0 : s->wanted) + bytes;
    const bool fits = !s->again && bytes <= s->room - s->taken;
    if (!s->keeps || bytes > WHOLE)
        return false;
    if (!fits) {
        if (!s->sent[0] && ops->event_create(s->handle->device, &s->sent[0], NULL))
            return false;
        if (s->whole_sent && ops->event_synchronize(s->sent[0], NULL) != STRATA_OK)
            return false;
        s->taken = 0;
        if (!grow_whole(s, wanted < WHOLE ? wanted : bytes))
            return false;
    }
    s->again = false;
    s->wanted = wanted;
    s->at_whole = s->whole + s->taken;
    s->taken += bytes;
    return true;
}

/* The next one that nobody has taken; 0 bytes: there is none, or one failed. */
static struct staging_piece take_piece(struct staging *s)
{
    pthread_mutex_lock(&s->lock);
    const size_t left = s->status == STRATA_OK ? s->bytes - s->at : 0;
    const struct staging_piece t = {s->at, left < s->piece ? left : s->piece, s->source,
                                    s->offset};
    s->at += t.bytes;
    s->offset += t.bytes;
    while (s->at < s->bytes && s->offset >= s->source->bytes)
        s->offset -= s->source++->bytes;
    pthread_mutex_unlock(&s->lock);
    return t;
}

static void fill_halves(char *to, const float *from, size_t n)
{
    _Alignas(64) uint16_t halves[HALVES];
    for (size_t i = 0; i < n; i += HALVES) {
        const size_t m = n - i < HALVES ? n - i : HALVES;
        reformat_elements(halves, STRATA_FP16, from + i, STRATA_FP32, m);
        copy_past_caches(to + i * sizeof *halves, halves, m * sizeof *halves);
    }
}

static void fill(const struct staging *s, char *to, struct staging_piece t)
{
    while (t.bytes > 0) {
        const size_t here = t.source->bytes - t.offset;
        const size_t n = here < t.bytes ? here : t.bytes;
        const char *from = t.source->data;
        if (n > 0 && s->halves)
            fill_halves(to, (const float *)(const void *)(from + t.offset),
                        n / sizeof(float));
        else if (n > 0)
            copy_past_caches(to, from + t.offset, n);
        to += arriving(s, n);
        t.bytes -= n;
        t.offset = 0;
        t.source++;
    }
    copied_past_caches();
}

static int fill_slot(struct staging *s, size_t slot, struct staging_piece t,
                     strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    const int status =
        s->used[slot] ? ops->event_synchronize(s->sent[slot], err) : STRATA_OK;
    if (status == STRATA_OK)
        fill(s, s->pinned + slot * STAGING_PIECE, t);
    return status;
}

static int send_slot(struct staging *s, size_t slot, struct staging_piece t,
                     strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status =
        ops->copy(s->stream, s->dst + arriving(s, t.at), s->pinned + slot * STAGING_PIECE,
                  arriving(s, t.bytes), COPY_TO_DEVICE, err);
    if (status == STRATA_OK)
        status = ops->event_record(s->sent[slot], s->stream, err);
    s->used[slot] = s->used[slot] || status == STRATA_OK;
    return status;
}

static int send_by_slot(struct staging *s, int who, struct staging_piece t,
                        strata_error *err)
{
    s->turn[who] = !s->turn[who];
    const size_t slot = 2 * (size_t)who + s->turn[who];
    int status = fill_slot(s, slot, t, err);
    if (status != STRATA_OK)
        return status;
    pthread_mutex_lock(&s->lock);
    status = send_slot(s, slot, t, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* The stream takes copies of several threads; they need no order. */
static int send_in_whole(struct staging *s, struct staging_piece t, strata_error *err)
{
    char *const from = s->at_whole + arriving(s, t.at);
    fill(s, from, t);
    return s->handle->device->ops->copy(s->stream, s->dst + arriving(s, t.at), from,
                                        arriving(s, t.bytes), COPY_TO_DEVICE, err);
}

/* The first one of a job is told, and ends it. */
static void note_failure(struct staging *s, int status, const strata_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (status != STRATA_OK && s->status == STRATA_OK) {
        s->status = status;
        if (s->err)
            *s->err = *err;
    }
    pthread_mutex_unlock(&s->lock);
}

static bool send_piece(struct carriers_job *job, int who)
{
    struct staging *s = (struct staging *)job;
    strata_error err;
    const struct staging_piece t = take_piece(s);
    if (t.bytes == 0)
        return false;
    const int status =
        s->by_slots ? send_by_slot(s, who, t, &err) : send_in_whole(s, t, &err);
    note_failure(s, status, &err);
    return status == STRATA_OK;
}

/* Of so many bytes: some are on their way while others are filled. */
static size_t piece_of(const struct staging *s)
{
    const size_t share = s->bytes / (s->bytes > ALONE ? PIECES : PIECES / 4) + 1;
    const size_t piece = (share + LEAST_PIECE - 1) / LEAST_PIECE * LEAST_PIECE;
    return piece < STAGING_PIECE || !s->by_slots ? piece : STAGING_PIECE;
}

static int note_sent(struct staging *s, strata_error *err)
{
    const int status = s->handle->device->ops->event_record(s->sent[0], s->stream, err);
    s->whole_sent = s->whole_sent || status == STRATA_OK;
    return status;
}

static int send_bytes(struct staging *s, const void *from, size_t bytes,
                      strata_error *err)
{
    char *const to = s->dst;
    s->dst += bytes;
    return bytes > 0 ? s->handle->device->ops->copy(s->stream, to, from, bytes,
                                                    COPY_TO_DEVICE, err)
                     : STRATA_OK;
}

static int send_rounded(struct staging *s, const float *from, size_t n, strata_error *err)
{
    uint16_t halves[HALVES];
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i += HALVES) {
        const size_t m = n - i < HALVES ? n - i : HALVES;
        reformat_elements(halves, STRATA_FP16, from + i, STRATA_FP32, m);
        status = send_bytes(s, halves, m * sizeof *halves, err);
        if (status == STRATA_OK) /* which has read them then */
            status = staging_wait(s, err);
    }
    return status;
}

/* Where no memory can be pinned: by the device's own way, which has read them when the
 * stream has ended. */
static int send_plain(struct staging *s, size_t n, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct staging_source *from = &s->source[i];
        status = s->halves ? send_rounded(s, from->data, from->bytes / sizeof(float), err)
                           : send_bytes(s, from->data, from->bytes, err);
    }
    const int ended = staging_wait(s, status == STRATA_OK ? err : NULL);
    return status != STRATA_OK ? status : ended;
}

/* False: there is nothing to move. */
static bool begin_job(struct staging *s, void *device, const struct staging_source *host,
                      size_t n)
{
    s->dst = device;
    s->source = host;
    s->offset = s->at = s->bytes = 0;
    for (size_t i = 0; i < n; i++)
        s->bytes += host[i].bytes;
    return s->bytes > 0;
}

static int run_job(struct staging *s, bool (*piece)(struct carriers_job *job, int who),
                   strata_error *err)
{
    s->job.piece = piece;
    s->piece = piece_of(s);
    s->err = err;
    s->status = STRATA_OK;
    if (s->bytes > ALONE)
        carriers_run(&s->job, (s->bytes - 1) / s->piece + 1);
    else
        while (piece(&s->job, 0))
            ;
    return s->status;
}

static int send_sources(struct staging *s, void *dst,
                        const struct staging_source *sources, size_t n, strata_error *err)
{
    if (!begin_job(s, dst, sources, n))
        return STRATA_OK;
    s->by_slots = !take_whole(s);
    if (s->by_slots && !s->pinned && make_slots(s) != STRATA_OK)
        return send_plain(s, n, err);
    const int status = run_job(s, send_piece, err);
    if (s->by_slots)
        return status;
    const int noted = note_sent(s, status == STRATA_OK ? err : NULL);
    return status != STRATA_OK ? status : noted;
}

int staging_send_all(struct staging *s, void *dst, const struct staging_source *sources,
                     size_t n, strata_error *err)
{
    s->halves = false;
    return send_sources(s, dst, sources, n, err);
}

int staging_send_halves(struct staging *s, void *dst,
                        const struct staging_source *sources, size_t n, strata_error *err)
{
    s->halves = true;
    return send_sources(s, dst, sources, n, err);
}

int staging_send(struct staging *s, void *dst, const void *src, size_t bytes,
                 strata_error *err)
{
    const struct staging_source source = {src, bytes};
    return staging_send_all(s, dst, &source, 1, err);
}

/* ---- back -------------------------------------------------------------------------- */

static void scatter(struct staging_piece t, const char *from)
{
    while (t.bytes > 0) {
        const size_t here = t.source->bytes - t.offset;
        const size_t n = here < t.bytes ? here : t.bytes;
        if (n > 0)
            memcpy((char *)(uintptr_t)t.source->data + t.offset, from, n);
        from += n;
        t.bytes -= n;
        t.offset = 0;
        t.source++;
    }
}

static int empty_slot(struct staging *s, size_t slot, struct staging_piece t,
                      strata_error *err)
{
    const int status = s->handle->device->ops->event_synchronize(s->sent[slot], err);
    if (status == STRATA_OK)
        scatter(t, s->pinned + slot * STAGING_PIECE);
    return status;
}

static int fetch_to_slot(struct staging *s, size_t slot, struct staging_piece t,
                         strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    pthread_mutex_lock(&s->lock);
    int status = ops->copy(s->stream, s->pinned + slot * STAGING_PIECE, s->dst + t.at,
                           t.bytes, COPY_FROM_DEVICE, err);
    if (status == STRATA_OK)
        status = ops->event_record(s->sent[slot], s->stream, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* A thread's next piece is put on its way before the last one is emptied. */
static bool receive_piece(struct carriers_job *job, int who)
{
    struct staging *s = (struct staging *)job;
    const size_t slot = 2 * (size_t)who + s->turn[who], last = slot ^ 1;
    const struct staging_piece before = s->coming[who];
    struct staging_piece t = take_piece(s);
    strata_error err;
    int status = t.bytes > 0 ? fetch_to_slot(s, slot, t, &err) : STRATA_OK;
    note_failure(s, status, &err);
    if (status != STRATA_OK)
        t.bytes = 0;
    status = before.bytes > 0 ? empty_slot(s, last, before, &err) : STRATA_OK;
    note_failure(s, status, &err);
    s->coming[who] = t;
    s->turn[who] = !s->turn[who];
    return t.bytes > 0;
}

static int receive_plain(struct staging *s, size_t n, strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct staging_source *to = &s->source[i];
        if (to->bytes > 0)
            status = ops->copy(s->stream, (void *)(uintptr_t)to->data, s->dst, to->bytes,
                               COPY_FROM_DEVICE, err);
        s->dst += to->bytes;
    }
    const int ended = staging_wait(s, status == STRATA_OK ? err : NULL);
    return status != STRATA_OK ? status : ended;
}

int staging_receive_all(struct staging *s, const struct staging_source *targets, size_t n,
                        const void *src, strata_error *err)
{
    s->halves = false;
    s->by_slots = true;
    if (!begin_job(s, (void *)(uintptr_t)src, targets, n))
        return STRATA_OK;
    if (!s->pinned && make_slots(s) != STRATA_OK)
        return receive_plain(s, n, err);
    /* What was sent by slots is on the stream before what comes back by them. */
    const int status = run_job(s, receive_piece, err);
    if (status != STRATA_OK)
        staging_wait(s, NULL); /* what nobody waited for */
    memset(s->used, 0, sizeof s->used);
    return status;
}

int staging_wait(struct staging *s, strata_error *err)
{
    return s->handle->device->ops->stream_synchronize(s->stream, err);
}

void staging_close(struct staging *s)
{
    if (!s->handle)
        return;
    const struct device_ops *ops = s->handle->device->ops;
    staging_wait(s, NULL);
    for (int i = 0; i < STAGING_SLOTS; i++)
        if (s->sent[i])
            ops->event_destroy(s->sent[i]);
    drop_whole(s);
    strata_host_free(s->handle, s->pinned, (size_t)STAGING_SLOTS * STAGING_PIECE);
    if (s->pinned)
        carriers_close();
    pthread_mutex_destroy(&s->lock);
    *s = (struct staging){0};
}
