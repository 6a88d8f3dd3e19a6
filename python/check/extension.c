/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension `strata._check`: the plugin conformance checker for layers that are in
 * this process alone. It holds code of the library, so that nothing but a check loads it.
 *
 * Each test is a child process, which goes on where this one is: the interpreter is told
 * of the fork, as os.fork would. The thread that checks must be one that has run nothing
 * else, since a child has no other: OpenMP would wait for its team in vain.
 */
#include <stdlib.h>

#include "check/check.h"
#include "check/rules.h"
#include "python/src/layer.h"

/* ---- forks ----------------------------------------------------------------------- */

static PyThreadState
    *thread; /* of the check that goes on, while it is without the lock */

static void before_fork(void)
{
    PyEval_RestoreThread(thread);
    PyOS_BeforeFork();
}

static void in_parent(void)
{
    PyOS_AfterFork_Parent();
    thread = PyEval_SaveThread();
}

static void in_child(void)
{
    PyOS_AfterFork_Child();
    thread = PyEval_SaveThread();
}

static const struct check_fork told = {before_fork, in_parent, in_child};

/* ---- results --------------------------------------------------------------------- */

static PyObject *findings_of(const struct check_result *r)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < r->n_findings; i++) {
        const struct check_finding *f = &r->findings[i];
        PyObject *item =
            Py_BuildValue("(sssssssss)", f->rule, check_rule(f->rule)->contract, f->text,
                          f->place.phase, f->place.formats, f->place.shapes,
                          f->place.attrs, f->place.variant, f->command);
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* To the list; an exception stays set until the check has ended. */
static void keep(const struct check_result *r, void *list)
{
    static const char *const verdicts[] = {
        [CHECK_PASSED] = "ok", [CHECK_FAILED] = "FAILED", [CHECK_SKIPPED] = "skipped"};
    PyEval_RestoreThread(thread);
    PyObject *item =
        PyErr_Occurred()
            ? NULL
            : Py_BuildValue("(sssNisd)", r->test, r->layer, verdicts[r->verdict],
                            findings_of(r), r->runs, r->note, r->seconds);
    if (item)
        PyList_Append(list, item);
    Py_XDECREF(item);
    thread = PyEval_SaveThread();
}

/* ---- the check ------------------------------------------------------------------- */

enum { MOST_CASES = 32 };

/* A tuple of str. */
static bool read_texts(PyObject *tuple, const char **texts, size_t *n)
{
    *n = (size_t)PyTuple_Size(tuple);
    if (*n > MOST_CASES) {
        PyErr_Format(PyExc_ValueError, "more than %d cases", MOST_CASES);
        return false;
    }
    for (size_t i = 0; i < *n; i++)
        if (!(texts[i] =
                  PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, (Py_ssize_t)i), NULL)))
            return false;
    return true;
}

static PyObject *check(PyObject *self, PyObject *args)
{
    const char *shapes[MOST_CASES], *attrs[MOST_CASES];
    struct check_options o = {.fork = &told, .shapes = shapes, .attrs = attrs};
    struct check_summary summary;
    strata_error err;
    PyObject *capsule, *shape_list, *attr_list;
    unsigned long long seed;
    int quick, thorough, in_process;
    (void)self;
    if (!PyArg_ParseTuple(args, "sOszzO!O!Kippp", &o.file, &capsule, &o.command, &o.test,
                          &o.formats, &PyTuple_Type, &shape_list, &PyTuple_Type,
                          &attr_list, &seed, &o.limit_ms, &quick, &thorough, &in_process))
        return NULL;
    o.module = PyCapsule_GetPointer(capsule, LAYER_CAPSULE);
    if (!o.module || !read_texts(shape_list, shapes, &o.n_shapes) ||
        !read_texts(attr_list, attrs, &o.n_attrs))
        return NULL;
    if (thread) {
        PyErr_SetString(PyExc_RuntimeError, "a check goes on in another thread");
        return NULL;
    }
    o.seed = seed;
    o.quick = quick;
    o.thorough = thorough;
    o.in_process = in_process;
    PyObject *list = PyList_New(0);
    if (!list)
        return NULL;
    thread = PyEval_SaveThread();
    const int status = check_module(&o, keep, list, &summary, &err);
    PyEval_RestoreThread(thread);
    thread = NULL;
    if (!PyErr_Occurred() && status == STRATA_OK)
        return list;
    Py_DECREF(list);
    return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "%s", err.message);
}

static PyObject *is_test(PyObject *self, PyObject *name)
{
    (void)self;
    const char *known;
    for (size_t i = 0; (known = check_test_name(i)); i++)
        if (PyUnicode_CompareWithASCIIString(name, known) == 0)
            Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}

static PyMethodDef functions[] = {
    {"check", check, METH_VARARGS, "The results of a layer's tests: a list of tuples."},
    {"is_test", is_test, METH_O, "Whether there is a test of the name."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "strata._check",
    .m_doc = "The conformance checker, for layers in Python.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__check(void);
PyMODINIT_FUNC PyInit__check(void)
{
    return PyModule_Create(&definition);
}
