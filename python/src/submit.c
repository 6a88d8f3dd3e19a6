/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for the batcher. Its threads never wait for the interpreter: who is done goes
 * to a list, and the first of a list wakes whoever reads the queue's descriptor.
 */
#include "python/src/module.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct pending;

typedef struct {
    PyObject_HEAD int fd;
    _Atomic(struct pending *) done; /* the last to end first */
    atomic_int inside;              /* threads that may yet wake it */
} Queue;
static PyTypeObject *QueueType;
static PyObject *lock_name, *waiter_name, *release_name, *result_name, *state_name,
    *finished;

/* Rows until their end: one request, or several where a run does not take as many. */
struct pending {
    struct pending *next;
    Queue *queue;
    PyObject *future, *outputs; /* outputs: a dict of tensors */
    int n_arrays;
    bool is_request;   /* the future is a Request */
    atomic_int left;   /* requests */
    atomic_int status; /* of the first that failed, whose the message is */
    char *message;
    struct array arrays[]; /* inputs */
};

/* ---- queue ----------------------------------------------------------------------- */

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    Queue *q = (Queue *)PyType_GenericAlloc(type, 0);
    if (q && (q->fd = eventfd(0, EFD_CLOEXEC)) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(q);
    }
    return (PyObject *)q;
}

static void queue_dealloc(Queue *q)
{
    PyTypeObject *type = Py_TYPE(OBJECT(q));
    while (atomic_load(&q->inside) > 0)
        sched_yield();
    if (q->fd >= 0)
        close(q->fd);
    PyObject_Free(q);
    Py_DECREF(OBJECT(type));
}

static void wake(Queue *q)
{
    const uint64_t one = 1;
    while (write(q->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* So many of its requests are over. */
static void requests_over(struct pending *p, int n, const strata_error *err)
{
    Queue *q = p->queue; /* p is another's as soon as it is in the list */
    int none = STRATA_OK;
    if (err->status != STRATA_OK &&
        atomic_compare_exchange_strong(&p->status, &none, err->status))
        p->message = strdup(err->message);
    if (atomic_fetch_sub(&p->left, n) != n)
        return;
    struct pending *before = atomic_load(&q->done);
    atomic_fetch_add(&q->inside, 1);
    do
        p->next = before;
    while (!atomic_compare_exchange_weak(&q->done, &before, p));
    if (!before)
        wake(q);
    atomic_fetch_sub(&q->inside, 1);
}

/* On a thread of the batcher. */
static void request_done(void *user, const strata_error *err)
{
    requests_over(user, 1, err);
}

static void free_pending(struct pending *p)
{
    for (int i = 0; i < p->n_arrays; i++)
        array_release(&p->arrays[i]);
    Py_XDECREF(p->future);
    Py_XDECREF(p->outputs);
    Py_XDECREF((PyObject *)p->queue);
    free(p->message);
    free(p);
}

/* The lock of the thread that waits, if one does. */
static void wake_waiter(PyObject *request)
{
    PyObject *waiter = PyObject_GetAttr(request, waiter_name), *none = NULL;
    if (waiter && waiter != Py_None)
        none = PyObject_CallMethodObjArgs(waiter, release_name, NULL);
    Py_XDECREF(none);
    Py_XDECREF(waiter);
    PyErr_Clear(); /* it was woken before: by its time limit */
}

/* A Request without a condition is a result and a state. No other thread of Python's
 * comes between; who makes the condition, or begins to wait, looks at the state behind
 * it. */
static bool finish_unwatched(const struct pending *p)
{
    if (!p->is_request || atomic_load(&p->status) != STRATA_OK)
        return false;
    PyObject *lock = PyObject_GetAttr(p->future, lock_name);
    const bool done = lock == Py_None &&
                      PyObject_SetAttr(p->future, result_name, p->outputs) == 0 &&
                      PyObject_SetAttr(p->future, state_name, finished) == 0;
    Py_XDECREF(lock);
    if (done)
        wake_waiter(p->future);
    else
        PyErr_Clear();
    return done;
}

/* (future, outputs, status, message) of one. */
static PyObject *result_of(const struct pending *p)
{
    const int status = atomic_load(&p->status);
    return Py_BuildValue("(OOis)", p->future, status == STRATA_OK ? p->outputs : Py_None,
                         status, p->message);
}

static struct pending *take_done(Queue *q)
{
    struct pending *p = atomic_exchange(&q->done, NULL), *oldest = NULL;
    while (p) {
        struct pending *next = p->next;
        p->next = oldest;
        oldest = p;
        p = next;
    }
    return oldest;
}

static PyObject *queue_drain(Queue *q, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (struct pending *p = take_done(q), *next; p; p = next) {
        next = p->next;
        if (list && !finish_unwatched(p)) {
            PyObject *result = result_of(p);
            if (!result || PyList_Append(list, result) != 0)
                Py_CLEAR(list);
            Py_XDECREF(result);
        }
        free_pending(p);
    }
    return list;
}

/* Until something is done, or wake was called. */
static PyObject *queue_wait(Queue *q, PyObject *unused)
{
    uint64_t count;
    ssize_t got;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS do got = read(q->fd, &count, sizeof count);
    while (got < 0 && errno == EINTR)
        ;
    Py_END_ALLOW_THREADS return queue_drain(q, NULL);
}

static PyObject *queue_wake(Queue *q, PyObject *unused)
{
    (void)unused;
    wake(q);
    Py_RETURN_NONE;
}

static PyObject *queue_fileno(Queue *q, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(q->fd);
}

/* ---- submitting ------------------------------------------------------------------ */

/* A row, or several: `rows` of what the binding has, or one without that dim. */
static bool check_rows(const Network *n, int i, const struct array *a, int64_t *rows,
                       bool *single)
{
    const strata_binding *b = &n->bindings[i];
    struct array whole = *a;
    const bool one = a->desc.rank == b->desc.rank - 1;
    if (one) { /* as a row of itself */
        for (int d = a->desc.rank; d > 0; d--) {
            whole.desc.dims[d] = a->desc.dims[d - 1];
            whole.desc.strides[d] = a->desc.strides[d - 1];
        }
        whole.desc.rank++;
        whole.desc.dims[0] = 1;
        whole.desc.strides[0] = b->desc.strides[0];
    }
    strata_desc wanted = b->desc;
    wanted.dims[0] = whole.desc.rank > 0 ? whole.desc.dims[0] : 0;
    if (a->device == DL_CUDA || !array_is(&whole, &wanted) ||
        (i > 0 && (wanted.dims[0] != *rows || one != *single))) {
        PyErr_Format(PyExc_TypeError,
                     "'%s' cannot be submitted: rows of host memory are needed, of dtype "
                     "%s and as many for each input, in the shape and format (%s) of the "
                     "binding",
                     b->name, strata_dtype_name(b->desc.dtype), b->format);
        return false;
    }
    *rows = wanted.dims[0];
    *single = one;
    return true;
}

/* Tensors of so many rows, and what the batcher writes: the same memory. */
static bool make_outputs(const Network *n, struct pending *p, int64_t rows, bool single,
                         void **data)
{
    p->outputs = PyObject_CallNoArgs(n->outputs_type);
    for (int i = n->n_in; p->outputs && i < n->n; i++) {
        const strata_binding *b = &n->bindings[i];
        strata_desc d = b->desc;
        if (!binding_is_plain(b) || d.rank == 0) {
            PyErr_Format(PyExc_BufferError,
                         "'%s' is in format %s; submit needs a linear one", b->name,
                         b->format);
            return false;
        }
        d.dims[0] = rows;
        for (int k = 0; single && k + 1 < d.rank; k++) {
            d.dims[k] = b->desc.dims[k + 1];
            d.strides[k] = b->desc.strides[k + 1];
        }
        d.rank -= single;
        Tensor *t = tensor_make(&d, NULL, NULL);
        data[i - n->n_in] = t ? t->data : NULL;
        const bool put =
            t && PyDict_SetItem(p->outputs, PyTuple_GetItem(n->names, i), OBJECT(t)) == 0;
        Py_XDECREF(OBJECT(t));
        if (!put)
            return false;
    }
    return p->outputs != NULL;
}

static struct pending *make_pending(const Network *n, PyObject *queue, PyObject *future)
{
    struct pending *p = calloc(1, sizeof *p + (size_t)n->n_in * sizeof *p->arrays);
    if (!p)
        return (struct pending *)PyErr_NoMemory();
    p->queue = (Queue *)Py_NewRef(queue);
    p->future = Py_NewRef(future);
    return p;
}

/* Bytes from row to row; 0: rows are not behind each other. */
static int64_t row_bytes(const strata_binding *b)
{
    const strata_desc *d = &b->desc;
    for (int i = 1; i < d->rank; i++)
        if (d->strides[i] > d->strides[0])
            return 0;
    return d->rank > 0 ? d->strides[0] * (int64_t)strata_dtype_size(d->dtype) : 0;
}

/* How many requests so many rows are; one, to be refused, where they cannot be parted. */
static int count_requests(const Network *n, int64_t rows)
{
    for (int i = 0; i < n->n; i++)
        if (row_bytes(&n->bindings[i]) == 0)
            return 1;
    const int64_t requests = (rows + n->most_rows - 1) / n->most_rows;
    return rows <= n->most_rows || requests > INT32_MAX ? 1 : (int)requests;
}

static void go_on(const Network *n, const void **in, void **out, int64_t rows)
{
    for (int i = 0; i < n->n_in; i++)
        in[i] = (const char *)in[i] + rows * row_bytes(&n->bindings[i]);
    for (int i = n->n_in; i < n->n; i++)
        out[i - n->n_in] = (char *)out[i - n->n_in] + rows * row_bytes(&n->bindings[i]);
}

/* Status of the first request; where a later one is refused the future fails, once those
 * before it are over. */
static int submit_rows(const Network *n, struct pending *p, const void **in, void **out,
                       int64_t rows, strata_error *err)
{
    const int requests = count_requests(n, rows);
    int status = STRATA_OK;
    strata_request_options o = {.struct_size = sizeof o,
                                .inputs = in,
                                .outputs = out,
                                .done = request_done,
                                .user = p};
    atomic_store(&p->left, requests);
    for (int i = 0; i < requests; i++) {
        o.rows = requests > 1 && rows > n->most_rows ? n->most_rows : rows;
        status = strata_batcher_submit(n->batcher, NULL, &o, err);
        if (status != STRATA_OK && i > 0)
            requests_over(p, requests - i, err);
        if (status != STRATA_OK)
            return i == 0 ? status : STRATA_OK;
        rows -= o.rows;
        if (rows > 0) /* of p nothing is known after the last */
            go_on(n, in, out, o.rows);
    }
    return status;
}

static bool submit(const Network *n, struct pending *p, PyObject *const *inputs)
{
    const void *in[MOST_BINDINGS];
    void *out[MOST_BINDINGS];
    int64_t rows = 0;
    bool single = false;
    strata_error err;
    for (int i = 0; i < n->n_in; i++) {
        struct array *a = &p->arrays[i];
        if (!array_take(a, inputs[i], n->bindings[i].name, false, NULL))
            return false;
        p->n_arrays++;
        if (!check_rows(n, i, a, &rows, &single))
            return false;
        in[i] = a->data;
    }
    if (!make_outputs(n, p, rows, single, out))
        return false;
    /* On the host one request is put into a list, which waits for nobody: to give the
     * interpreter's lock away and to get it back would take longer. */
    const bool at_once = n->on_host && rows <= n->most_rows;
    PyThreadState *thread = at_once ? NULL : PyEval_SaveThread();
    const int status = submit_rows(n, p, in, out, rows, &err);
    if (thread)
        PyEval_RestoreThread(thread);
    return status == STRATA_OK || raise_error(&err) != NULL;
}

static bool submit_to(Network *n, PyObject *queue, PyObject *future, bool is_request,
                      PyObject *const *args, Py_ssize_t n_args, PyObject *names)
{
    PyObject *inputs[MOST_BINDINGS];
    struct pending *p;
    if (!network_check(n) || !call_vector(n, args, n_args, names, inputs) ||
        !(p = make_pending(n, queue, future)))
        return false;
    p->is_request = is_request;
    if (submit(n, p, inputs))
        return true;
    free_pending(p);
    return false;
}

PyObject *network_submit(Network *n, PyObject *const *args, Py_ssize_t n_args,
                         PyObject *names)
{
    if (!n->queue) { /* which makes it */
        PyObject *none = PyObject_CallMethod(OBJECT(n), "_open_queue", NULL);
        Py_XDECREF(none);
        if (!none)
            return NULL;
    }
    PyObject *future = PyObject_CallNoArgs(n->request_type);
    if (future && !submit_to(n, n->queue, future, true, args, n_args, names))
        Py_CLEAR(future);
    return future;
}

PyObject *network_submit_to(Network *n, PyObject *const *args, Py_ssize_t n_args,
                            PyObject *names)
{
    if (n_args < 2 || !Py_IS_TYPE(args[0], QueueType) || !n->batcher) {
        PyErr_SetString(PyExc_TypeError, "a queue and a future come first");
        return NULL;
    }
    if (!submit_to(n, args[0], args[1], false, args + 2, n_args - 2, names))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *network_use_queue(Network *n, PyObject *args)
{
    PyObject *queue, *type;
    if (!PyArg_ParseTuple(args, "O!O", QueueType, &queue, &type))
        return NULL;
    PyObject *old_queue = n->queue, *old_type = n->request_type;
    n->request_type = Py_NewRef(type);
    n->queue = Py_NewRef(queue);
    Py_XDECREF(old_queue);
    Py_XDECREF(old_type);
    Py_RETURN_NONE;
}

/* ---- batcher --------------------------------------------------------------------- */

PyObject *network_open_batcher(Network *n, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"max_batch",   "max_delay_us", "contexts",
                            "max_waiting", "turns",        NULL};
    strata_batcher_options o = {.struct_size = sizeof o};
    long long max_batch = 0, delay = 0, waiting = 0;
    strata_error err;
    int status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|LLiLi", names, &max_batch, &delay,
                                     &o.contexts, &waiting, &o.turns) ||
        !network_check(n))
        return NULL;
    if (n->batcher || delay < 0 || delay > INT32_MAX || waiting < 0) {
        PyErr_SetString(PyExc_ValueError,
                        n->batcher ? "the batcher runs already"
                                   : "max_delay_us and max_waiting are 0 or more");
        return NULL;
    }
    o.max_batch = max_batch;
    o.max_delay_ns = (uint64_t)delay * 1000;
    o.max_waiting = (size_t)waiting;
    n->most_rows = max_batch > 0 ? max_batch : strata_engine_batch(n->engine);
    Py_BEGIN_ALLOW_THREADS status =
        strata_batcher_create(&n->batcher, n->engine, &o, &err);
    Py_END_ALLOW_THREADS if (status != STRATA_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

/* What waits is run; the queues have it then. */
void network_close_batcher(Network *n)
{
    strata_batcher *batcher = n->batcher;
    n->batcher = NULL;
    Py_BEGIN_ALLOW_THREADS strata_batcher_destroy(batcher);
    Py_END_ALLOW_THREADS
}

static PyMethodDef methods[] = {
    {"drain", PYTHON(queue_drain), METH_NOARGS, "What is done: a list of tuples."},
    {"wait", PYTHON(queue_wait), METH_NOARGS, "The same, once there is something."},
    {"wake", PYTHON(queue_wake), METH_NOARGS, "End a wait."},
    {"fileno", PYTHON(queue_fileno), METH_NOARGS, "Readable when something is done."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Where requests end."},
    {Py_tp_new, (void *)queue_new},
    {Py_tp_dealloc, (void *)queue_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "strata._strata.Queue",
    .basicsize = sizeof(Queue),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

bool submit_register(PyObject *module)
{
    lock_name = PyUnicode_InternFromString("_lock");
    waiter_name = PyUnicode_InternFromString("_waiter");
    release_name = PyUnicode_InternFromString("release");
    result_name = PyUnicode_InternFromString("_result");
    state_name = PyUnicode_InternFromString("_state");
    finished = PyUnicode_InternFromString("FINISHED");
    return lock_name && waiter_name && release_name && result_name && state_name &&
           finished && (QueueType = add_type(module, &spec)) != NULL;
}
