/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: buffers bound once, and runs without arguments. What cannot be bound, since
 * it is on another device, not aligned or too small for the largest run, is copied at
 * each.
 */
#include "python/src/module.h"

#include <stdlib.h>

enum way { OWN, BOUND, COPIED };

struct port {
    struct array array; /* given, unless OWN */
    enum way way;
};

typedef struct {
    PyObject_HEAD Network *network;
    Lease *lease; /* NULL: closed */
    struct port *ports;
    bool copies;
} Session;
static PyTypeObject *SessionType;

/* ---- the end --------------------------------------------------------------------- */

static void release(Session *s)
{
    Py_CLEAR(s->lease); /* first: it may still read and write them */
    for (int i = 0; s->ports && i < s->network->n; i++)
        if (s->ports[i].way != OWN)
            array_release(&s->ports[i].array);
    free(s->ports);
    s->ports = NULL;
}

static void session_dealloc(Session *s)
{
    PyTypeObject *type = Py_TYPE(OBJECT(s));
    release(s);
    Py_DECREF(OBJECT(s->network));
    PyObject_Free(s);
    Py_DECREF(OBJECT(type));
}

static bool session_check(const Session *s)
{
    if (s->lease)
        return network_check(s->network);
    PyErr_SetString(PyExc_ValueError, "the session is closed");
    return false;
}

static PyObject *session_close(Session *s, PyObject *unused)
{
    (void)unused;
    if (s->lease && Py_REFCNT(OBJECT(s->lease)) > 1) {
        PyErr_Format(PyExc_BufferError,
                     "%zd views of the session's memory, or runs of it, are in use; drop "
                     "them first, or wait",
                     Py_REFCNT(OBJECT(s->lease)) - 1);
        return NULL;
    }
    release(s);
    Py_RETURN_NONE;
}

/* ---- binding --------------------------------------------------------------------- */

static bool take_buffers(Session *s, PyObject *kwargs)
{
    const Network *n = s->network;
    void *stream =
        n->on_host ? NULL
                   : strata_stream_native(strata_get_stream(s->lease->context->handle));
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (kwargs && PyDict_Next(kwargs, &at, &name, &value)) {
        if (PyUnicode_CompareWithASCIIString(name, "stream") == 0)
            continue;
        const int i = network_find(n, name);
        if (i < 0 || !array_take(&s->ports[i].array, value, n->bindings[i].name,
                                 i >= n->n_in, stream))
            return false;
        s->ports[i].way = COPIED;
    }
    return true;
}

static bool set_shapes(Session *s)
{
    const Network *n = s->network;
    struct context *c = s->lease->context;
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++) {
        const strata_desc *d = &s->ports[i].array.desc;
        if (s->ports[i].way != OWN)
            status = strata_context_set_shape(c->context, i, d->rank, d->dims, &c->err);
    }
    if (status == STRATA_OK) {
        Py_BEGIN_ALLOW_THREADS status = context_read_sizes(c, n);
        Py_END_ALLOW_THREADS
    }
    return status == STRATA_OK || raise_error(&c->err) != NULL;
}

/* A run at less than the largest sizes may compute, and write, more rows than it has. */
static bool can_bind(const Session *s, int i)
{
    const Network *n = s->network;
    const struct array *a = &s->ports[i].array;
    const bool here = n->on_host ? a->device != DL_CUDA
                                 : a->device == DL_CUDA && a->device_id == n->device_id;
    return here && (uintptr_t)a->data % ALIGNMENT == 0 &&
           s->lease->context->bindings[i].bytes == n->bindings[i].bytes;
}

static bool bind(Session *s, int i)
{
    struct context *c = s->lease->context;
    const strata_binding *b = &c->bindings[i];
    struct port *p = &s->ports[i];
    if (!array_is(&p->array, &b->desc)) {
        PyErr_Format(PyExc_TypeError,
                     "'%s' cannot be bound: it must have the dtype, shape and strides of "
                     "the binding (%s); network.pinned('%s') has them",
                     b->name, b->format, b->name);
        return false;
    }
    if (can_bind(s, i)) {
        p->way = BOUND;
        return strata_context_bind(c->context, i, p->array.data, &c->err) == STRATA_OK ||
               raise_error(&c->err) != NULL;
    }
    if (p->array.device == DL_CUDA) {
        PyErr_Format(PyExc_BufferError,
                     "'%s' cannot be bound: it must be on %s, aligned to %d bytes and of "
                     "the largest size",
                     b->name, s->network->device, ALIGNMENT);
        return false;
    }
    s->copies = true;
    return true;
}

static bool bind_all(Session *s, PyObject *kwargs)
{
    bool ok = take_buffers(s, kwargs) && set_shapes(s);
    for (int i = 0; i < s->network->n && ok; i++)
        if (s->ports[i].way != OWN)
            ok = bind(s, i);
    return ok;
}

PyObject *network_session(Network *n, PyObject *args, PyObject *kwargs)
{
    PyObject *stream = kwargs ? PyDict_GetItemString(kwargs, "stream") : NULL;
    const bool foreign = stream && stream != Py_None;
    struct context *c = NULL;
    void *native;
    if (PyTuple_Size(args) != 0) {
        PyErr_SetString(PyExc_TypeError, "a session's buffers are given by name");
        return NULL;
    }
    if (!network_check(n) || !call_stream(stream, &native) ||
        !(c = context_open(n, foreign, native)))
        return NULL;
    Session *s = (Session *)PyType_GenericAlloc(SessionType, 0);
    if (!s) {
        context_close(c, n);
        return NULL;
    }
    s->network = (Network *)Py_NewRef((PyObject *)n);
    s->lease = lease_make(n, c, false);
    s->ports = s->lease ? calloc((size_t)n->n + 1, sizeof *s->ports) : NULL;
    if (!s->ports || !bind_all(s, kwargs)) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_CLEAR(s);
    }
    return (PyObject *)s;
}

/* ---- running --------------------------------------------------------------------- */

/* One way or the other; on the host at once, elsewhere behind each other on the stream.
 */
static int copy_ports(Session *s, int first, int end)
{
    struct context *c = s->lease->context;
    const Network *n = s->network;
    int status = STRATA_OK;
    for (int i = first; i < end && status == STRATA_OK; i++) {
        void *data = s->ports[i].array.data;
        if (s->ports[i].way != COPIED)
            continue;
        if (n->on_host)
            status = i < n->n_in ? strata_copy_in(c->context, i, data, &c->err)
                                 : strata_copy_out(c->context, i, data, &c->err);
        else
            status = i < n->n_in ? strata_enqueue_copy_in(c->context, i, data, &c->err)
                                 : strata_enqueue_copy_out(c->context, i, data, &c->err);
    }
    return status;
}

static int run_with_copies(Session *s)
{
    struct context *c = s->lease->context;
    const Network *n = s->network;
    int status = copy_ports(s, 0, n->n_in);
    if (status == STRATA_OK)
        status = n->on_host ? strata_context_run(c->context, &c->err)
                            : strata_context_enqueue(c->context, NULL, &c->err);
    if (status == STRATA_OK)
        status = copy_ports(s, n->n_in, n->n);
    if (n->on_host || status == STRATA_EBUSY)
        return status;
    const int ended =
        strata_context_wait(c->context, status == STRATA_OK ? &c->err : NULL);
    return status == STRATA_OK ? ended : status;
}

static PyObject *session_run(Session *s, PyObject *unused)
{
    int status;
    (void)unused;
    if (!session_check(s))
        return NULL;
    Lease *lease = (Lease *)Py_NewRef((PyObject *)s->lease); /* close may be called */
    strata_context *context = lease->context->context;
    Py_BEGIN_ALLOW_THREADS status =
        s->copies ? run_with_copies(s)
                  : strata_context_run(context, &lease->context->err);
    Py_END_ALLOW_THREADS if (status != STRATA_OK) raise_error(&lease->context->err);
    Py_DECREF(OBJECT(lease));
    if (status != STRATA_OK)
        return NULL;
    Py_RETURN_NONE;
}

/* A coroutine; loops are Python's affair. */
static PyObject *session_run_async(Session *s, PyObject *unused)
{
    (void)unused;
    PyObject *module =
        session_check(s) ? PyImport_ImportModule("strata._requests") : NULL;
    PyObject *made = module ? PyObject_CallMethod(module, "run_session", "O", s) : NULL;
    Py_XDECREF(module);
    return made;
}

/* ---- what it has ------------------------------------------------------------------- */

static PyObject *session_item(Session *s, PyObject *name)
{
    const int index = session_check(s) ? network_find(s->network, name) : -1;
    return index < 0 ? NULL : lease_view(s->lease, index);
}

static PyObject *session_enter(Session *s, PyObject *unused)
{
    (void)unused;
    return session_check(s) ? Py_NewRef((PyObject *)s) : NULL;
}

static PyObject *session_exit(Session *s, PyObject *args)
{
    (void)args;
    return session_close(s, NULL);
}

static PyObject *session_stats(Session *s, PyObject *unused)
{
    strata_context_stats stats = {.struct_size = sizeof stats};
    (void)unused;
    if (!session_check(s))
        return NULL;
    struct context *c = s->lease->context;
    if (strata_context_get_stats(c->context, &stats, &c->err) != STRATA_OK)
        return raise_error(&c->err);
    return Py_BuildValue("{sKsKsK}", "runs", (unsigned long long)stats.runs, "copied_in",
                         (unsigned long long)stats.copied_in, "copied_out",
                         (unsigned long long)stats.copied_out);
}

static PyMethodDef methods[] = {
    {"run", PYTHON(session_run), METH_NOARGS,
     "Compute the outputs from the inputs as they are; complete on return."},
    {"run_async", PYTHON(session_run_async), METH_NOARGS,
     "The same for coroutines: the event loop goes on meanwhile."},
    {"close", PYTHON(session_close), METH_NOARGS,
     "Give everything back; BufferError while views of its memory are in use."},
    {"stats", PYTHON(session_stats), METH_NOARGS, "Runs, and bytes that were copied."},
    {"__enter__", PYTHON(session_enter), METH_NOARGS, NULL},
    {"__exit__", PYTHON(session_exit), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "An execution state with its buffers; one thread at a time."},
    {Py_tp_dealloc, (void *)session_dealloc},
    {Py_tp_methods, methods},
    {Py_mp_subscript, (void *)session_item},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "strata.Session",
    .basicsize = sizeof(Session),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

bool session_register(PyObject *module)
{
    return (SessionType = add_type(module, &spec)) != NULL;
}
