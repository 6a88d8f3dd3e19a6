/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures as exceptions. The classes are Python's, in strata/_errors.py: nothing here is
 * on the way of calls that go well.
 */
#include "python/src/module.h"

static PyObject *make_error(int status, const char *message)
{
    PyObject *module = PyImport_ImportModule("strata._errors");
    PyObject *made =
        module ? PyObject_CallMethod(module, "make", "is", status, message) : NULL;
    Py_XDECREF(module);
    return made;
}

PyObject *raise_status(int status, const char *message)
{
    PyObject *made = make_error(status, message);
    if (made)
        PyErr_SetObject(OBJECT(Py_TYPE(made)), made);
    Py_XDECREF(made);
    return NULL;
}

PyObject *raise_error(const strata_error *err)
{
    return raise_status(err->status, err->message);
}
