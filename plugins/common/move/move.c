/* SPDX-License-Identifier: Apache-2.0
 *
 * From a job to kernels: axes are ordered as they lie in the output, joined where both
 * sides allow it, and the last one is cut into the widest words and packs that lengths,
 * strides and addresses allow. More than 2^31 packs are several launches; jobs that come
 * together are one, as far as its parameters hold them.
 */
#include "plugins/common/move/move.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "plugins/common/dtype.h"
#include "plugins/common/move/job.h"

enum { WIDEST = 16 /* bytes a thread writes at once */, TURN_LEAST = 8 };

/* ---- building a job -------------------------------------------------------------- */

int32_t move_size(int32_t dtype)
{
    return (int32_t)dtype_size(dtype);
}

int64_t move_offset(const strata_tensor *t, int d, int64_t i)
{
    return d == t->vector_dim ? i / t->vector * t->strides[d] + i % t->vector
                              : i * t->strides[d];
}

void move_begin(struct move_job *job, const strata_tensor *y, const strata_tensor *x)
{
    memset(job, 0, sizeof *job);
    job->to = y->data;
    job->from = x ? x->data : NULL;
    job->size = move_size(y->dtype);
}

static void move_from(struct move_job *job, int64_t to, int64_t from)
{
    job->to += to * job->size;
    if (job->from)
        job->from += from * job->size;
}

void move_add_axis(struct move_job *job, int64_t n, int64_t to, int64_t from)
{
    job->axis[job->axes++] = (struct move_axis){.n = n, .to = to, .from = from};
}

static int32_t log2_of(int64_t x)
{
    int32_t log = 0;
    while (INT64_C(2) << log <= x)
        log++;
    return log;
}

/* Whether all channels lie side by side. */
static int is_flat(const strata_tensor *t)
{
    return t->strides[t->vector_dim] == t->vector || t->dims[t->vector_dim] <= t->vector;
}

static struct move_channels channels_of(const strata_tensor *t, int64_t begin,
                                        int64_t step)
{
    return (struct move_channels){begin, step, t->strides[t->vector_dim],
                                  log2_of(t->vector)};
}

static int is_vectored(const strata_tensor *t, int d)
{
    return d == t->vector_dim && t->vector > 1;
}

/* Both tensors have one format, so both have vectors in dim d. */
static void move_vectored(struct move_job *job, int d, const strata_tensor *y,
                          int64_t y_begin, const strata_tensor *x, int64_t x_begin,
                          int64_t x_step, int64_t n)
{
    const int64_t v = y->vector, blocks = (n + v - 1) / v;
    const int ends = n % v == 0 || y_begin + n == y->dims[d]; /* no lane is another's */
    if (y_begin % v == 0 && x_begin % v == 0 && x_step == 1 && ends) {
        move_from(job, move_offset(y, d, y_begin), move_offset(x, d, x_begin));
        move_add_axis(job, blocks, y->strides[d], x->strides[d]);
        move_add_axis(job, v, 1, 1);
    } else if (is_flat(y) && is_flat(x)) {
        move_from(job, y_begin, x_begin);
        move_add_axis(job, n, 1, x_step);
    } else {
        move_add_axis(job, n, y->strides[d], x->strides[d]);
        job->axis[job->axes - 1].odd = 1;
        job->to_channels = channels_of(y, y_begin, 1);
        job->from_channels = channels_of(x, x_begin, x_step);
    }
}

void move_dim(struct move_job *job, int d, const strata_tensor *y, int64_t y_begin,
              const strata_tensor *x, int64_t x_begin, int64_t x_step, int64_t n)
{
    if (is_vectored(y, d)) {
        move_vectored(job, d, y, y_begin, x, x_begin, x_step, n);
        return;
    }
    move_from(job, y_begin * y->strides[d], x_begin * x->strides[d]);
    move_add_axis(job, n, y->strides[d], x_step * x->strides[d]);
}

void move_table(struct move_job *job, int d, const strata_tensor *y,
                const strata_tensor *x, const int64_t *table)
{
    struct move_axis *a = &job->axis[job->axes];
    if (!table) {
        move_dim(job, d, y, 0, x, 0, 1, y->dims[d]);
        return;
    }
    const int vectored = is_vectored(y, d);
    move_add_axis(job, y->dims[d], vectored && is_flat(y) ? 1 : y->strides[d],
                  vectored ? 1 : x->strides[d]);
    a->table = table;
    a->odd = vectored && !is_flat(y);
    if (a->odd)
        job->to_channels = channels_of(y, 0, 1);
}

void move_dense(struct move_job *job, int d, const strata_tensor *y, int64_t from)
{
    const int vectored = is_vectored(y, d), odd = vectored && !is_flat(y);
    move_add_axis(job, y->dims[d], vectored && !odd ? 1 : y->strides[d], from);
    job->axis[job->axes - 1].odd = odd;
    if (odd) {
        job->to_channels = channels_of(y, 0, 1);
        job->from_channels = (struct move_channels){0, 1, from, 0};
    }
}

/* ---- tables ---------------------------------------------------------------------- */

int move_upload(const strata_node *n, const void *values, size_t bytes, void **device)
{
    const strata_pack *pack =
        n->host->extension ? n->host->extension(STRATA_PACK_V1) : NULL;
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which holds the tables of this impl");
    int status = pack->alloc(n, bytes, device);
    if (status != STRATA_OK)
        return status;
    /* pageable memory: staged when the call returns */
    cudaError_t e = cudaMemcpyAsync(*device, values, bytes, cudaMemcpyHostToDevice,
                                    (cudaStream_t)n->stream);
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "tables to the device: %s",
                                          cudaGetErrorString(e));
}

int move_make_tables(const strata_node *n, uint32_t dims, move_source *source,
                     struct move_tables *out)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    int status = STRATA_OK;
    memset(out, 0, sizeof *out);
    for (int d = 0; d < y->rank && status == STRATA_OK; d++) {
        const size_t bytes = (size_t)y->dims[d] * sizeof(int64_t);
        void *device = NULL;
        int64_t *table = dims >> d & 1 ? malloc(bytes) : NULL;
        if (!(dims >> d & 1))
            continue;
        if (!table)
            return STRATA_FAIL(n, STRATA_ENOMEM, "a table of %lld entries",
                               (long long)y->dims[d]);
        for (int64_t i = 0; i < y->dims[d]; i++) {
            const int64_t at = source(n, d, i);
            table[i] = at < 0 ? MOVE_FILL : move_offset(x, d, at);
        }
        status = move_upload(n, table, bytes, &device);
        out->dim[d] = device;
        free(table);
    }
    return status;
}

/* ---- from axes to words ---------------------------------------------------------- */

static int is_plain(const struct move_axis *a)
{
    return !a->table && !a->odd;
}

static void drop_axis(struct move_job *job, int at)
{
    job->axes--;
    memmove(&job->axis[at], &job->axis[at + 1],
            (size_t)(job->axes - at) * sizeof job->axis[0]);
}

/* Outermost first. */
static void order_axes(struct move_job *job)
{
    for (int i = job->axes - 1; i >= 0; i--)
        if (job->axis[i].n == 1 && is_plain(&job->axis[i]))
            drop_axis(job, i);
    for (int i = 1; i < job->axes; i++) {
        const struct move_axis a = job->axis[i];
        int at = i;
        for (; at > 0 && job->axis[at - 1].to < a.to; at--)
            job->axis[at] = job->axis[at - 1];
        job->axis[at] = a;
    }
}

static void join_axes(struct move_job *job)
{
    for (int i = job->axes - 1; i > 0; i--) {
        const struct move_axis *inner = &job->axis[i];
        struct move_axis *outer = &job->axis[i - 1];
        if (!is_plain(inner) || !is_plain(outer) || outer->to != inner->n * inner->to ||
            outer->from != inner->n * inner->from)
            continue;
        outer->n *= inner->n;
        outer->to = inner->to;
        outer->from = inner->from;
        drop_axis(job, i);
    }
}

static int divides(int64_t by, const void *p)
{
    return (uintptr_t)p % (uint64_t)by == 0;
}

/* Whether all axes but the last move by whole pieces of n elements on the sides asked. */
static int moves_by(const struct move_job *job, int64_t n, int from)
{
    for (int i = 0; i + 1 < job->axes; i++)
        if (job->axis[i].odd || job->axis[i].to % n || (from && job->axis[i].from % n))
            return 0;
    return divides(n * job->size, job->to) &&
           (!from || divides(n * job->size, job->from));
}

/* Count runs on both sides in words; offsets are divided, tables' entries by the kernel.
 */
static void widen(struct move_work *w)
{
    struct move_job *job = &w->job;
    struct move_axis *last = &job->axis[job->axes - 1];
    int64_t n = WIDEST / job->size;
    w->word = job->size;
    if (!is_plain(last) || last->to != 1 || last->from != 1)
        return;
    while (n > 1 && (last->n % n || !moves_by(job, n, job->from != NULL)))
        n /= 2;
    w->word = (int32_t)n * job->size;
    w->widened = log2_of(n);
    for (int i = 0; i + 1 < job->axes; i++) {
        job->axis[i].to /= n;
        job->axis[i].from /= n;
    }
    last->n /= n;
    if (last->n == 1 && job->axes > 1)
        job->axes--;
}

/* Let a thread gather several words of the output's last axis, neighbours in the input too
 * where that alone keeps them from being one word. */
static void gather(struct move_work *w)
{
    const struct move_job *job = &w->job;
    const struct move_axis *last = &job->axis[job->axes - 1];
    int64_t n = WIDEST / w->word;
    w->pack = 1;
    if (last->odd || last->to != 1)
        return;
    struct move_job words = *job;
    words.size = w->word;
    while (n > 1 && (last->n % n || !moves_by(&words, n, 0)))
        n /= 2;
    w->pack = (int32_t)n;
}

/* The plain axis along which the input is contiguous, when the last one is another. */
static int turned_axis(const struct move_work *w)
{
    const struct move_job *job = &w->job;
    const struct move_axis *last = &job->axis[job->axes - 1];
    if (w->word > 8 || !is_plain(last) || last->to != 1 || last->from == 1 ||
        last->n < TURN_LEAST)
        return -1;
    for (int i = 0; i + 1 < job->axes; i++)
        if (is_plain(&job->axis[i]) && job->axis[i].from == 1 &&
            job->axis[i].n >= TURN_LEAST)
            return i;
    return -1;
}

/* Whether both contiguous axes are whole pieces of n elements that lie aligned. */
static int turns_by(const struct move_work *w, int64_t n)
{
    const struct move_job *job = &w->job;
    const int last = job->axes - 1;
    if (job->axis[w->turned].n % n || job->axis[last].n % n ||
        !divides(n * w->word, job->to) || !divides(n * w->word, job->from))
        return 0;
    for (int i = 0; i < job->axes; i++)
        if (job->axis[i].odd || (i != last && job->axis[i].to % n) ||
            (i != w->turned && job->axis[i].from % n))
            return 0;
    return 1;
}

static void pack_turned(struct move_work *w)
{
    w->pack = w->word == 8 ? WIDEST / 8 : 4;
    while (w->pack > 1 && !turns_by(w, w->pack))
        w->pack /= 2;
}

/* Granlund and Montgomery's divisor, as in kernels/layer.cuh. */
static void set_divisor(struct move_work *w, int i, uint32_t d)
{
    uint32_t shift = 0;
    while ((UINT64_C(1) << shift) < d)
        shift++;
    w->shift[i] = shift;
    w->magic[i] =
        (uint32_t)(((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - d)) / d + 1);
}

/* ---- launching ------------------------------------------------------------------- */

static int64_t packs_of(const struct move_work *w)
{
    int64_t count = 1;
    for (int i = 0; i < w->job.axes; i++)
        count *= w->job.axis[i].n;
    return count;
}

static int start(struct move_work *w, void *stream)
{
    w->count = (uint32_t)packs_of(w);
    if (w->turned >= 0) {
        pack_turned(w);
        return move_start_turned(w, stream);
    }
    for (int i = 0; i < w->job.axes; i++)
        set_divisor(w, i, (uint32_t)w->job.axis[i].n);
    return move_start(w, stream);
}

/* Halve the longest outer part until what is left fits 32-bit arithmetic. */
static int start_parts(const struct move_work *whole, void *stream)
{
    struct move_work w = *whole;
    if (packs_of(&w) < INT64_C(1) << 31)
        return start(&w, stream);
    int at = 0;
    while (at < w.job.axes && (w.job.axis[at].n == 1 || w.job.axis[at].odd))
        at++;
    if (at == w.job.axes)
        return cudaErrorInvalidValue;
    struct move_axis *a = &w.job.axis[at];
    const int64_t n = a->n, half = n / 2;
    const int64_t step = at + 1 == w.job.axes ? w.pack : 1;
    a->n = half;
    int status = start_parts(&w, stream);
    w = *whole;
    a = &w.job.axis[at];
    a->n = n - half;
    w.job.to += half * step * a->to * w.word;
    if (a->table)
        a->table += half * step;
    else if (w.job.from)
        w.job.from += half * step * a->from * w.word;
    return status == cudaSuccess ? start_parts(&w, stream) : status;
}

/* 0 where nothing is to be moved. */
static int reduce(struct move_work *w, const struct move_job *job)
{
    *w = (struct move_work){.job = *job};
    for (int i = 0; i < job->axes; i++)
        if (job->axis[i].n == 0)
            return 0;
    if (job->size < 8)
        w->job.fill_upper = job->fill;
    order_axes(&w->job);
    join_axes(&w->job);
    if (w->job.axes == 0)
        move_add_axis(&w->job, 1, 1, 1);
    widen(w);
    w->turned = turned_axis(w);
    if (w->turned < 0)
        gather(w);
    else
        w->pack = 1;
    w->job.axis[w->job.axes - 1].n /= w->pack;
    return 1;
}

static int launched(const strata_run *r, int status)
{
    return status == cudaSuccess ? STRATA_OK
                                 : STRATA_FAIL(r, STRATA_EDEVICE, "kernel move: %s",
                                               cudaGetErrorString((cudaError_t)status));
}

int move_launch(const strata_run *r, const struct move_job *job)
{
    struct move_work w;
    return reduce(&w, job) ? launched(r, start_parts(&w, r->stream)) : STRATA_OK;
}

/* ---- many in a launch ------------------------------------------------------------ */

static int can_list(const struct move_work *w)
{
    for (int i = 0; i < w->job.axes; i++)
        if (!is_plain(&w->job.axis[i]))
            return 0;
    return w->job.axes <= 2 && w->turned < 0 && w->job.from &&
           packs_of(w) < INT64_C(1) << 31;
}

static struct move_run run_of(struct move_work *w)
{
    const int inner = w->job.axes - 1;
    const struct move_axis *i = &w->job.axis[inner];
    const struct move_axis none = {.n = 1}, *o = inner > 0 ? &w->job.axis[0] : &none;
    set_divisor(w, inner, (uint32_t)i->n);
    return (struct move_run){.to = w->job.to,
                             .from = w->job.from,
                             .to_step = {o->to, i->to},
                             .from_step = {o->from, i->from},
                             .n = (uint32_t)i->n,
                             .count = (uint32_t)packs_of(w),
                             .magic = w->magic[inner],
                             .shift = w->shift[inner]};
}

static int flush(struct move_list *list, void *stream)
{
    const int status = list->n > 0 ? move_start_list(list, stream) : cudaSuccess;
    list->n = 0;
    return status;
}

static int add(struct move_list *list, struct move_work *w, void *stream)
{
    int status = cudaSuccess;
    if (!can_list(w))
        return start_parts(w, stream);
    if (list->n == MOVE_RUNS || w->word != list->word || w->pack != list->pack)
        status = flush(list, stream);
    list->word = w->word;
    list->pack = w->pack;
    list->run[list->n++] = run_of(w);
    return status;
}

int move_all(const strata_run *r, int n, move_maker *make, void *user)
{
    struct move_list list = {.n = 0};
    int status = cudaSuccess;
    for (int k = 0; k < n && status == cudaSuccess; k++) {
        struct move_job job;
        struct move_work w;
        make(r, k, user, &job);
        if (reduce(&w, &job))
            status = add(&list, &w, r->stream);
    }
    return launched(r, status == cudaSuccess ? flush(&list, r->stream) : status);
}

int move_clear_pads(const strata_run *r, const strata_tensor *y)
{
    struct move_job job;
    const int d = y->vector_dim;
    if (d < 0 || y->vector <= 1 || y->dims[d] % y->vector == 0)
        return STRATA_OK;
    const int64_t used = y->dims[d] % y->vector;
    move_begin(&job, y, NULL);
    move_from(&job, move_offset(y, d, y->dims[d]), 0);
    for (int i = 0; i < y->rank; i++)
        if (i != d)
            move_add_axis(&job, y->dims[i], y->strides[i], y->strides[i]);
    move_add_axis(&job, y->vector - used, 1, 1);
    return move_launch(r, &job);
}
