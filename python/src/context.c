/* SPDX-License-Identifier: Apache-2.0
 *
 * One execution state for Python: the sizes that its next run has, and arrays brought to
 * its bindings' formats where they are not in them.
 */
#include "python/src/module.h"

#include <stdlib.h>
#include <string.h>

/* To bind other memory costs a graph: thousands of times what a copy does. Who changes it
 * again and again is to wait twice as long each time. */
enum { LEAST_PATIENCE = 3, MOST_PATIENCE = 1 << 16 };

/* Its stream is set before the context is made. */
static int open_on(struct context *c, const Network *n, bool foreign, void *stream)
{
    int status = strata_create(&c->handle, n->device, &c->err);
    if (status == STRATA_OK && foreign)
        status = strata_stream_wrap(&c->foreign, c->handle, stream, &c->err);
    if (status == STRATA_OK && foreign)
        strata_set_stream(c->handle, c->foreign);
    return status != STRATA_OK
               ? status
               : strata_context_create(&c->context, n->engine, c->handle, &c->err);
}

struct context *context_open(const Network *n, bool foreign, void *stream)
{
    int status;
    struct context *c = calloc(1, sizeof *c);
    if (c)
        c->patience = LEAST_PATIENCE;
    if (!c || !(c->seen = calloc((size_t)n->n + 1, sizeof *c->seen)) ||
        !(c->bindings = calloc((size_t)n->n + 1, sizeof *c->bindings)) ||
        !(c->staged = calloc((size_t)n->n + 1, sizeof *c->staged))) {
        context_close(c, n);
        return (struct context *)PyErr_NoMemory();
    }
    memcpy(c->bindings, n->bindings, (size_t)n->n * sizeof *c->bindings);
    Py_BEGIN_ALLOW_THREADS status = open_on(c, n, foreign, stream);
    Py_END_ALLOW_THREADS if (status == STRATA_OK) return c;
    raise_error(&c->err);
    context_close(c, n);
    return NULL;
}

void context_close(struct context *c, const Network *n)
{
    if (!c)
        return;
    strata_context_destroy(c->context);
    strata_stream_destroy(c->foreign);
    strata_destroy(c->handle);
    for (int i = 0; c->staged && i < n->n; i++)
        free(c->staged[i]);
    free(c->staged);
    free(c->seen);
    free(c->bindings);
    free(c);
}

/* ---- sizes ----------------------------------------------------------------------- */

static bool has_dims(const strata_binding *b, const strata_desc *d)
{
    return b->desc.rank == d->rank &&
           memcmp(b->desc.dims, d->dims, (size_t)d->rank * sizeof *d->dims) == 0;
}

/* For new sizes a version of a plan may be made, which takes its time. */
int context_read_sizes(struct context *c, const Network *n)
{
    int status = STRATA_OK;
    for (int i = 0; i < n->n && status == STRATA_OK; i++)
        status = strata_context_binding(c->context, i, &c->bindings[i], &c->err);
    return status;
}

/* The last one holds where inputs give a name of [profile] different sizes. */
static bool check_shapes(const struct context *c, const Network *n,
                         const struct array *inputs)
{
    for (int i = 0; i < n->n_in; i++)
        if (!has_dims(&c->bindings[i], &inputs[i].desc)) {
            PyErr_Format(
                PyExc_ValueError,
                "'%s' has another size than the other inputs give a dim of the same "
                "name, or the names that it is the sum of",
                c->bindings[i].name);
            return false;
        }
    return true;
}

bool context_set_shapes(struct context *c, const Network *n, const struct array *inputs)
{
    bool same = true;
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in && same; i++)
        same = has_dims(&c->bindings[i], &inputs[i].desc);
    if (same)
        return true;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = strata_context_set_shape(c->context, i, inputs[i].desc.rank,
                                          inputs[i].desc.dims, &c->err);
    if (status == STRATA_OK) {
        Py_BEGIN_ALLOW_THREADS status = context_read_sizes(c, n);
        Py_END_ALLOW_THREADS
    }
    if (status == STRATA_OK && check_shapes(c, n, inputs))
        return true;
    c->bindings[0].desc.rank = -1; /* not known: next time all are set */
    return !PyErr_Occurred() && raise_error(&c->err) != NULL;
}

int64_t context_rows_of(const struct context *c, const Network *n)
{
    const int64_t batch = strata_engine_batch(n->engine);
    int64_t rows = batch;
    for (int i = 0; i < n->n_in; i++) { /* one may be as long by chance, and fixed */
        const int64_t *now = c->bindings[i].desc.dims;
        if (n->bindings[i].desc.rank > 0 && n->bindings[i].desc.dims[0] == batch &&
            now[0] < rows)
            rows = now[0];
    }
    return rows;
}

/* ---- formats --------------------------------------------------------------------- */

strata_desc context_plain(const strata_binding *b)
{
    strata_desc d = b->desc;
    int64_t stride = 1;
    d.vector = 1;
    d.vector_dim = -1;
    for (int i = d.rank - 1; i >= 0; i--) {
        d.strides[i] = stride;
        stride *= d.dims[i] > 0 ? d.dims[i] : 1;
    }
    return d;
}

/* Such that strides alone say where each element is, and nothing is between them. */
bool binding_is_plain(const strata_binding *b)
{
    return b->desc.vector == 1 && strata_desc_fully_packed(&b->desc);
}

static void *refuse(const Network *n, int index, const strata_binding *b,
                    const struct array *a)
{
    PyErr_Format(PyExc_TypeError,
                 "'%s' is %s, the network takes %s; convert it (x.astype(...)), or pass "
                 "cast=True",
                 n->bindings[index].name, strata_dtype_name(a->desc.dtype),
                 strata_dtype_name(b->desc.dtype));
    return NULL;
}

void *context_convert(struct context *c, const Network *n, int index,
                      const struct array *a, bool cast)
{
    const strata_binding *b = &c->bindings[index];
    int status;
    if (array_is(a, &b->desc))
        return a->data;
    if (a->desc.dtype != b->desc.dtype && !cast)
        return refuse(n, index, b, a);
    if (a->device == DL_CUDA) {
        PyErr_Format(PyExc_BufferError,
                     "'%s' is on a GPU, and not as %s has it; make it contiguous there",
                     b->name, b->format);
        return NULL;
    }
    if (!c->staged[index] &&
        !(c->staged[index] = aligned_memory((size_t)n->bindings[index].bytes)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        strata_reformat(&b->desc, c->staged[index], &a->desc, a->data, &c->err);
    Py_END_ALLOW_THREADS if (status == STRATA_OK) return c->staged[index];
    raise_error(&c->err);
    return NULL;
}

/* ---- addresses ------------------------------------------------------------------- */

static bool can_bind(const struct context *c, const Network *n, int i,
                     const struct array *a)
{
    const strata_binding *b = &c->bindings[i];
    return a->device == DL_CUDA && a->device_id == n->device_id &&
           (uintptr_t)a->data % ALIGNMENT == 0 && b->bytes == n->bindings[i].bytes &&
           array_is(a, &b->desc);
}

/* After some were bound and one was refused: none may be left at a caller's address. */
static void unbind_inputs(struct context *c, const Network *n)
{
    strata_error ignored;
    for (int i = 0; i < n->n_in; i++)
        (void)strata_context_bind(c->context, i, NULL, &ignored);
}

bool context_bind_inputs(struct context *c, const Network *n, const struct array *inputs,
                         bool *bound)
{
    bool same = true;
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in; i++) {
        same = same && c->seen[i] == inputs[i].data && can_bind(c, n, i, &inputs[i]);
        c->seen[i] = inputs[i].data;
    }
    c->repeats = same ? c->repeats + 1 : 0;
    *bound = same && (c->bound || c->repeats >= c->patience);
    if (*bound == c->bound)
        return true;
    if (c->bound && c->patience < MOST_PATIENCE)
        c->patience *= 2;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status =
            strata_context_bind(c->context, i, *bound ? inputs[i].data : NULL, &c->err);
    c->bound = *bound && status == STRATA_OK;
    if (status == STRATA_OK)
        return true;
    unbind_inputs(c, n);
    return raise_error(&c->err) != NULL;
}

/* ---- streams --------------------------------------------------------------------- */

bool context_follow(struct context *c, void *native)
{
    strata_stream *theirs = NULL;
    strata_event *event = NULL;
    int status = strata_stream_wrap(&theirs, c->handle, native, &c->err);
    if (status == STRATA_OK)
        status = strata_event_create(&event, c->handle, &c->err);
    if (status == STRATA_OK)
        status = strata_event_record(event, theirs, &c->err);
    if (status == STRATA_OK)
        status = strata_stream_wait(strata_get_stream(c->handle), event, &c->err);
    strata_event_destroy(event);
    strata_stream_destroy(theirs);
    return status == STRATA_OK || raise_error(&c->err) != NULL;
}
