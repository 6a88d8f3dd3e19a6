/* SPDX-License-Identifier: Apache-2.0
 *
 * A network that can be called: the engine, with all that it needs.
 */
#include "python/src/module.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_SECONDS 0.05 /* from look to look at signals: each waits for the lock */

/* ---- what is asked for ------------------------------------------------------------- */

struct request {
    const char *path, *device;
    char *plugin_path; /* NULL: the default alone */
    int is_engine, threads, wait, math;
    PyObject *set, *define, *plugins;                       /* tuples of bytes */
    PyObject *folders;                                      /* bytes or None */
    PyObject *layers;                                       /* tuple of Tables */
    const char **set_texts, **define_texts, **plugin_texts; /* theirs */
    size_t n_set, n_define, n_plugins;
};

static const char **texts_of(PyObject *list, size_t *n)
{
    const Py_ssize_t length = PySequence_Size(list);
    const char **texts = length < 0 ? NULL : calloc((size_t)length + 1, sizeof *texts);
    if (length >= 0 && !texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < length; i++) {
        PyObject *item = PyTuple_GetItem(list, i); /* borrowed: the tuple keeps it */
        if (!item || PyBytes_AsStringAndSize(item, (char **)&texts[i], NULL) != 0) {
            free(texts);
            return NULL;
        }
    }
    *n = (size_t)length;
    return texts;
}

static void free_request(struct request *r)
{
    free(r->set_texts);
    free(r->define_texts);
    free(r->plugin_texts);
}

static bool read_request(struct request *r, PyObject *args)
{
    *r = (struct request){0};
    if (!PyArg_ParseTuple(args, "yzpiiiO!O!O!OO!", &r->path, &r->device, &r->is_engine,
                          &r->threads, &r->wait, &r->math, &PyTuple_Type, &r->set,
                          &PyTuple_Type, &r->define, &PyTuple_Type, &r->plugins,
                          &r->folders, &PyTuple_Type, &r->layers) ||
        (r->folders != Py_None &&
         PyBytes_AsStringAndSize(r->folders, &r->plugin_path, NULL) != 0))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(r->layers); i++)
        if (!layer_is(PyTuple_GetItem(r->layers, i))) {
            PyErr_SetString(PyExc_TypeError, "tables of layers are needed");
            return false;
        }
    r->set_texts = texts_of(r->set, &r->n_set);
    r->define_texts = r->set_texts ? texts_of(r->define, &r->n_define) : NULL;
    r->plugin_texts = r->define_texts ? texts_of(r->plugins, &r->n_plugins) : NULL;
    return r->plugin_texts != NULL;
}

/* ---- making ---------------------------------------------------------------------- */

static int build_network(Network *n, const struct request *r, strata_error *err)
{
    const strata_network_options options = {.struct_size = sizeof options,
                                            .set = r->set_texts,
                                            .n_set = r->n_set,
                                            .define = r->define_texts,
                                            .n_define = r->n_define};
    int status = strata_network_load(&n->network, r->path, n->registry, &options, err);
    return status != STRATA_OK
               ? status
               : strata_engine_build(&n->engine, n->handle->handle, n->network, err);
}

static int make_engine(Network *n, const struct request *r, strata_error *err)
{
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .files = r->plugin_texts,
                                             .n_files = r->n_plugins,
                                             .search_path = r->plugin_path};
    const Py_ssize_t n_layers = PyTuple_Size(n->layers); /* only read, without the lock */
    strata_handle *h = n->handle->handle;
    int status = strata_set_threads(h, r->threads, err);
    if (status == STRATA_OK)
        status = strata_set_wait(h, r->wait, err);
    if (status == STRATA_OK)
        status = strata_set_math_mode(h, r->math, err);
    if (status == STRATA_OK)
        status = strata_registry_create(&n->registry, &options, err);
    for (Py_ssize_t i = 0; i < n_layers && status == STRATA_OK; i++)
        status = layer_give(PyTuple_GetItem(n->layers, i), n->registry, err);
    if (status != STRATA_OK)
        return status;
    return r->is_engine ? strata_engine_load(&n->engine, h, n->registry, r->path, err)
                        : build_network(n, r, err);
}

/* The thread whose state is put aside while it makes an engine. */
struct maker {
    PyThreadState *state;
    struct maker *outer; /* of the same thread: a signal's handler may make one, too */
    double asked;        /* when; s of a monotonic clock */
    bool interrupted;
    PyObject *type, *value, *trace; /* by what a handler raised */
};

static _Thread_local struct maker *making;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What was raised is put aside: layers of Python functions may be called until the build
 * has ended. */
static int ask_signals(void *user)
{
    struct maker *m = user;
    if (m->interrupted || seconds() - m->asked < ASK_SECONDS)
        return m->interrupted;
    PyEval_RestoreThread(m->state);
    m->interrupted = PyErr_CheckSignals() != 0;
    if (m->interrupted)
        PyErr_Fetch(&m->type, &m->value, &m->trace);
    m->state = PyEval_SaveThread();
    m->asked = seconds();
    return m->interrupted;
}

/* Without the interpreter's lock, which it takes now and then, as Ctrl-C has to be heard
 * while costs are measured. What a handler raised counts, whatever became of the engine.
 */
static int make_unlocked(Network *n, const struct request *r, strata_error *err)
{
    struct maker m = {.state = PyEval_SaveThread(), .outer = making};
    making = &m;
    strata_set_interrupt(ask_signals, &m);
    const int status = make_engine(n, r, err);
    making = m.outer;
    strata_set_interrupt(making ? ask_signals : NULL, making);
    PyEval_RestoreThread(m.state);
    if (!m.interrupted)
        return status;
    PyErr_Restore(m.type, m.value, m.trace);
    return STRATA_EBUSY;
}

static bool read_bindings(Network *n)
{
    n->n = strata_engine_bindings(n->engine);
    if (n->n > MOST_BINDINGS) {
        PyErr_Format(PyExc_ValueError,
                     "%d inputs and outputs; at most %d are possible from Python", n->n,
                     MOST_BINDINGS);
        return false;
    }
    n->bindings = calloc((size_t)n->n + 1, sizeof *n->bindings);
    n->names = PyTuple_New(n->n);
    if (!n->bindings || !n->names)
        return PyErr_NoMemory() != NULL;
    for (int i = 0; i < n->n; i++) {
        strata_binding *b = &n->bindings[i];
        b->struct_size = sizeof *b;
        strata_engine_binding(n->engine, i, b, NULL);
        n->n_in += b->is_input;
        PyObject *name = PyUnicode_InternFromString(b->name);
        if (!name || PyTuple_SetItem(n->names, i, name) != 0)
            return false;
    }
    return true;
}

static bool set_device(Network *n, const char *device)
{
    const char *colon = device ? strchr(device, ':') : NULL;
    n->on_host = !device || strncmp(device, "cuda", 4) != 0;
    n->device_id = colon ? atoi(colon + 1) : 0;
    const size_t length = device ? strlen(device) : 0;
    memcpy(n->device, device ? device : "host",
           length && length < sizeof n->device ? length : sizeof "host");
    PyObject *module = PyImport_ImportModule("strata._outputs");
    n->outputs_type = module ? PyObject_GetAttrString(module, "Outputs") : NULL;
    Py_XDECREF(module);
    return n->outputs_type != NULL;
}

static PyObject *network_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct request r;
    strata_error err;
    int status = STRATA_OK;
    (void)kwargs;
    Network *n = read_request(&r, args) ? (Network *)PyType_GenericAlloc(type, 0) : NULL;
    if (n) {
        n->generation = process_generation();
        n->layers = Py_NewRef(r.layers);
        n->handle = handle_open(r.device);
    }
    if (n && n->handle) {
        status = make_unlocked(n, &r, &err);
        if (status != STRATA_OK && !PyErr_Occurred())
            raise_error(&err);
    }
    if (n && (!n->handle || status != STRATA_OK || !read_bindings(n) ||
              !set_device(n, r.device)))
        Py_CLEAR(n);
    free_request(&r);
    return (PyObject *)n;
}

/* ---- the end --------------------------------------------------------------------- */

static void free_contexts(Network *n)
{
    while (n->idle) {
        struct context *c = n->idle;
        n->idle = c->next;
        context_close(c, n);
    }
}

/* A child that was forked has none of the threads to wait for: all stays as it is. */
static void network_dealloc(Network *n)
{
    PyTypeObject *type = Py_TYPE(OBJECT(n));
    if (n->generation == process_generation()) {
        network_close_batcher(n);
        free_contexts(n);
        strata_engine_destroy(n->engine);
        strata_network_destroy(n->network);
        strata_registry_destroy(n->registry);
    }
    free(n->bindings);
    Py_XDECREF(n->names);
    Py_XDECREF(n->outputs_type);
    Py_XDECREF(n->queue);
    Py_XDECREF(n->request_type);
    Py_XDECREF(n->layers);
    Py_XDECREF(OBJECT(n->handle));
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(n);
    Py_DECREF(OBJECT(type));
}

/* ---- methods ----------------------------------------------------------------------- */

static PyObject *network_save(Network *n, PyObject *path)
{
    strata_error err;
    int status;
    PyObject *bytes = NULL;
    if (!network_check(n) || !PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *text = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS status = strata_engine_save(n->engine, text, &err);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status != STRATA_OK)
        return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *network_pinned(Network *n, PyObject *name)
{
    if (!network_check(n))
        return NULL;
    const int index = network_find(n, name);
    if (index < 0)
        return NULL;
    const strata_binding *b = &n->bindings[index];
    const strata_desc plain = binding_is_plain(b) ? b->desc : context_plain(b);
    return (PyObject *)tensor_pinned(&plain, (PyObject *)n->handle);
}

static PyObject *get_names(Network *n, void *unused)
{
    (void)unused;
    return Py_NewRef(n->names);
}

static PyObject *close_batcher(Network *n, PyObject *unused)
{
    (void)unused;
    if (n->generation == process_generation())
        network_close_batcher(n);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"save", PYTHON(network_save), METH_O,
     "Write the engine to one file, which load() takes without planning."},
    {"pinned", PYTHON(network_pinned), METH_O,
     "A tensor for a binding, in memory that copies to and from the device fastest."},
    {"session", PYTHON(network_session), METH_VARARGS | METH_KEYWORDS,
     "An execution state with buffers bound to it."},
    {"_bindings", PYTHON(network_bindings), METH_NOARGS, NULL},
    {"_dimensions", PYTHON(network_dimensions), METH_NOARGS, NULL},
    {"_facts", PYTHON(network_facts), METH_NOARGS, NULL},
    {"_labels", PYTHON(network_labels), METH_NOARGS, NULL},
    {"_given", PYTHON(network_given), METH_NOARGS, NULL},
    {"_stats", PYTHON(network_stats), METH_NOARGS, NULL},
    {"_open_batcher", PYTHON(network_open_batcher), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_close_batcher", PYTHON(close_batcher), METH_NOARGS, NULL},
    {"submit", PYTHON(network_submit), METH_FASTCALL | METH_KEYWORDS,
     "Hand in rows, any number, to be run together with those of others: a future. "
     "Inputs\n"
     "without their first dim are one row, and so are the outputs then. The arrays must\n"
     "stay as they are until the future is done."},
    {"_submit_to", PYTHON(network_submit_to), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_use_queue", PYTHON(network_use_queue), METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"names", (getter)get_names, NULL, "Inputs, then outputs.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A network, planned for a device."},
    {Py_tp_new, (void *)network_new},
    {Py_tp_dealloc, (void *)network_dealloc},
    {Py_tp_call, (void *)network_call},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "strata._strata.Network",
    .basicsize = sizeof(Network),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

bool network_register(PyObject *module)
{
    return add_type(module, &spec) != NULL;
}
