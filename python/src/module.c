/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension: its types and functions, and the library's log. Log lines come from any
 * thread, without the interpreter's lock: they are kept until Python asks for them.
 */
#include "python/src/module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- log --------------------------------------------------------------------------- */

enum { MOST_LINES = 10000 };

struct line {
    struct line *next;
    int level;
    char text[];
};

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct line *first_line, **last_line = &first_line;
static size_t n_lines, n_dropped;

static void keep_line(void *user, int level, const char *text)
{
    (void)user;
    const size_t size = strlen(text) + 1;
    struct line *line = malloc(sizeof *line + size);
    pthread_mutex_lock(&log_lock);
    if (!line || n_lines == MOST_LINES) {
        n_dropped++;
        free(line);
    } else {
        line->next = NULL;
        line->level = level;
        memcpy(line->text, text, size);
        *last_line = line;
        last_line = &line->next;
        n_lines++;
    }
    pthread_mutex_unlock(&log_lock);
}

static struct line *take_lines(size_t *dropped)
{
    pthread_mutex_lock(&log_lock);
    struct line *lines = first_line;
    first_line = NULL;
    last_line = &first_line;
    *dropped = n_dropped;
    n_lines = n_dropped = 0;
    pthread_mutex_unlock(&log_lock);
    return lines;
}

static PyObject *drain_log(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    size_t dropped;
    struct line *line = take_lines(&dropped);
    PyObject *list = PyList_New(0);
    while (line) {
        struct line *next = line->next;
        PyObject *pair = list ? Py_BuildValue("(is)", line->level, line->text) : NULL;
        if (!pair || PyList_Append(list, pair) != 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
        free(line);
        line = next;
    }
    PyObject *result = list ? Py_BuildValue("(On)", list, (Py_ssize_t)dropped) : NULL;
    Py_XDECREF(list);
    return result;
}

static PyObject *set_log_level(PyObject *module, PyObject *level)
{
    (void)module;
    const long value = PyLong_AsLong(level);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    strata_set_logger(keep_line, NULL, (int)value);
    Py_RETURN_NONE;
}

/* ---- pinned memory without a network ------------------------------------------------
 */

static bool read_shape(strata_desc *d, PyObject *shape, int dtype)
{
    const Py_ssize_t rank = PySequence_Size(shape);
    int64_t dims[STRATA_MAX_RANK];
    strata_error err;
    if (rank < 0 || rank > STRATA_MAX_RANK) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%zd dims; at most %d are possible", rank,
                         STRATA_MAX_RANK);
        return false;
    }
    *d = (strata_desc){
        .dtype = dtype, .rank = (int32_t)rank, .vector_dim = -1, .vector = 1};
    for (Py_ssize_t i = rank - 1, stride = 1; i >= 0;
         stride *= dims[i] ? dims[i] : 1, i--) {
        PyObject *dim = PySequence_GetItem(shape, i);
        dims[i] = dim ? PyLong_AsLongLong(dim) : -1;
        Py_XDECREF(dim);
        if (dims[i] < 0 || dims[i] > INT32_MAX) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "a dim of %lld", (long long)dims[i]);
            return false;
        }
        d->dims[i] = dims[i];
        d->strides[i] = stride;
        if (stride > INT64_MAX / 16 / (dims[i] ? dims[i] : 1)) {
            PyErr_SetString(PyExc_OverflowError, "the tensor is too large");
            return false;
        }
    }
    if (rank > 0 && strata_desc_check(d, 1, &err) != STRATA_OK)
        return raise_error(&err) != NULL;
    return true;
}

static PyObject *pinned_empty(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "dtype", "device", NULL};
    const char *dtype = "fp32", *device = "host";
    PyObject *shape;
    strata_desc desc;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|ss", names, &shape, &dtype,
                                     &device))
        return NULL;
    const int type = dtype_of_name(dtype);
    if (type < 0 || !read_shape(&desc, shape, type))
        return NULL;
    Handle *handle = handle_open(device);
    Tensor *t = handle ? tensor_pinned(&desc, (PyObject *)handle) : NULL;
    Py_XDECREF(OBJECT(handle));
    return (PyObject *)t;
}

/* ---- module ---------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"drain_log", drain_log, METH_NOARGS,
     "Lines of the library's log since the last call, and how many were dropped."},
    {"set_log_level", set_log_level, METH_O, "0 errors, 1 warnings, 2 info, 3 debug."},
    {"pinned_empty", PYTHON(pinned_empty), METH_VARARGS | METH_KEYWORDS,
     "A tensor of memory that copies to and from the device fastest."},
    {"stack", PYTHON(stack), METH_FASTCALL,
     "Copy arrays to the first rows of a tensor, without the interpreter's lock."},
    {"validate", layer_validate, METH_O, "Raise what is wrong with a layer's tables."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "strata._strata",
    .m_doc = "Strata's library for Python; use the package `strata`.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__strata(void);
PyMODINIT_FUNC PyInit__strata(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    if (tensor_register(module) && handle_register(module) && network_register(module) &&
        lease_register(module) && layer_register(module) && session_register(module) &&
        submit_register(module) && process_watch() &&
        PyModule_AddStringConstant(module, "version", strata_version()) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
