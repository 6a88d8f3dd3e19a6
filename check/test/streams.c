/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether run keeps to its stream, seen in three ways after a warm-up:
 *   capture  on a stream that the default stream waits for, in the mode that refuses
 *            whatever a capture cannot hold: what is not enqueued on the stream fails
 *   order    the inputs arrive late on a stream that the default stream does not wait
 *            for: work put elsewhere reads what was there before
 *   time     run returns while its stream is still busy
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/test/test.h"

#define DELAY_MS 40.0
#define WAITED_MS (DELAY_MS / 2)

struct bytes {
    unsigned char *data[HARNESS_OUTPUTS];
};

static void bytes_free(struct bytes *b)
{
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        free(b->data[i]);
}

static bool bytes_read(struct bytes *b, const struct session *s)
{
    for (int i = 0; i < s->node.n_out; i++) {
        const struct block *from = &s->out_block[i];
        b->data[i] = malloc(from->bytes + 1);
        if (!b->data[i])
            return false;
        memcpy(b->data[i], from->data, from->bytes);
    }
    return true;
}

static bool bytes_equal(const struct bytes *b, const struct session *s)
{
    for (int i = 0; i < s->node.n_out; i++)
        if (memcmp(b->data[i], s->out_block[i].data, s->out_block[i].bytes) != 0)
            return false;
    return true;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static const struct device_ops *device(const struct session *s)
{
    return s->mirror->handle->device->ops;
}

/* ---- capture
 * --------------------------------------------------------------------------- */

static int replay(struct session *s, strata_stream *stream, void *graph)
{
    const struct device_ops *ops = device(s);
    int status = session_prepare(s, session_patterns[1]);
    if (status == STRATA_OK)
        status = mirror_wait(s->mirror, &s->err);
    if (status == STRATA_OK)
        status = ops->graph_launch(stream, graph, &s->err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(stream, &s->err);
    return status == STRATA_OK ? session_fetch(s) : status;
}

/* Captured, launched once, compared with the plain run. */
static void capture(struct session *s, const struct bytes *expected)
{
    const struct device_ops *ops = device(s);
    strata_stream *stream = NULL;
    void *graph = NULL;
    strata_error failure = {0}, end = {0};
    int status =
        ops->checks->blocking_stream(s->mirror->handle->device, &stream, &s->err);
    if (status == STRATA_OK)
        status = ops->checks->capture_begin(stream, &s->err);
    if (status != STRATA_OK)
        goto done;
    status = session_call(s, stream);
    failure = s->err;
    const int ended = ops->capture_end(stream, &graph, &end);
    error_clear(&s->err);
    if (status != STRATA_OK)
        session_fault(s, "stream-capture", "while captured, run fails: %.600s",
                      failure.message);
    else if (ended != STRATA_OK)
        session_fault(s, "stream-capture", "what run did cannot be captured: %.600s",
                      end.message);
    else if (replay(s, stream, graph) != STRATA_OK)
        session_fault(s, "stream-capture", "the captured graph fails: %.600s",
                      s->err.message);
    else if (!bytes_equal(expected, s))
        session_fault(s, "stream-capture",
                      "the captured graph computes something else: part of the work was "
                      "done elsewhere, or at capture time");
done:
    ops->graph_destroy(s->mirror->handle->device, graph);
    if (stream)
        ops->stream_destroy(stream);
}

/* ---- order and time
 * ---------------------------------------------------------------------- */

/* Inputs are a pattern until the delay is over. Everything lies in the mirror's one
 * allocation, so one copy on the device brings them. */
static int bring_late(struct session *s, void *spare)
{
    const struct device_ops *ops = device(s);
    struct mirror *m = s->mirror;
    int status = session_prepare(s, session_patterns[1]);
    for (int i = 0; i < s->node.n_in && status == STRATA_OK; i++) {
        const struct block *b = &s->in_block[i];
        status = ops->copy(m->stream, (char *)spare + (b->device - m->device), b->device,
                           b->bytes, COPY_ON_DEVICE, &s->err);
        if (status == STRATA_OK)
            status = ops->fill(m->stream, b->device, 0x3c, b->bytes, &s->err);
    }
    if (status == STRATA_OK)
        status = mirror_wait(m, &s->err);
    if (status == STRATA_OK)
        status = ops->checks->delay(m->stream, DELAY_MS, &s->err);
    for (int i = 0; i < s->node.n_in && status == STRATA_OK; i++) {
        const struct block *b = &s->in_block[i];
        status = ops->copy(m->stream, b->device, (char *)spare + (b->device - m->device),
                           b->bytes, COPY_ON_DEVICE, &s->err);
    }
    return status;
}

static void run_late(struct session *s, const struct bytes *expected)
{
    strata_allocator a = device(s)->memory(s->mirror->handle->device);
    const size_t bytes = s->mirror->used + 256;
    void *spare = a.alloc(a.user, bytes, 256);
    if (!spare)
        return;
    int status = bring_late(s, spare);
    const double start = now_ms();
    if (status == STRATA_OK)
        status = session_call(s, NULL);
    const double took = now_ms() - start;
    if (status == STRATA_OK)
        status = session_fetch(s);
    else
        mirror_wait(s->mirror, NULL);
    if (status == STRATA_OK && took > WAITED_MS)
        session_fault(s, "stream-blocks",
                      "run took %.1f ms of the host's time while its stream was busy for "
                      "%.0f ms",
                      took, DELAY_MS);
    if (status == STRATA_OK && !bytes_equal(expected, s))
        session_fault(s, "stream-order",
                      "run did not wait for inputs that were still on their way on its "
                      "stream: some of its work is on another stream");
    a.free(a.user, spare, bytes);
}

/* ---- the test
 * -------------------------------------------------------------------------- */

/* What was found so far; the next look may find something else. */
static void tell(struct trial *t, struct session *s)
{
    if (s->fault)
        trial_session_problem(t, s, s->fault);
    s->fault = NULL;
    error_clear(&s->err);
}

static void visit(struct trial *t, int row)
{
    struct session *s = calloc(1, sizeof *s);
    struct bytes expected = {{0}};
    const bool exact = !(t->impl->impl.flags & STRATA_NONDETERMINISTIC);
    if (!s)
        return;
    t->variant = NULL;
    t->target->place(t, t->target->user);
    int status = trial_session(t, s, row);
    if (status == STRATA_OK)
        status = session_open(s);
    for (int i = 0; i < 2 && status == STRATA_OK; i++) /* the first loads kernels */
        status = session_run(s, session_patterns[1]);
    const bool ready = status == STRATA_OK && exact && bytes_read(&expected, s);
    if (ready)
        run_late(s, &expected);
    tell(t, s);
    if (ready && !(t->impl->impl.flags & STRATA_NO_CAPTURE))
        capture(s, &expected);
    tell(t, s);
    t->result.runs += ready;
    session_close(s);
    session_free(s);
    bytes_free(&expected);
    free(s);
}

void check_streams(struct check_child *c)
{
    if (!c->handle || !c->handle->device->ops->checks) {
        snprintf(c->report->skip, sizeof c->report->skip, "no device with streams");
        return;
    }
    c->target.visit = visit;
    cases_run(c, CASES_SMALL);
}
