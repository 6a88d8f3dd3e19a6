/* SPDX-License-Identifier: Apache-2.0
 *
 * A device's handle.
 */
#include "python/src/module.h"

#include <string.h>

static PyTypeObject *HandleType;

static void handle_dealloc(Handle *h)
{
    PyTypeObject *type = Py_TYPE(OBJECT(h));
    if (h->generation == process_generation())
        strata_destroy(h->handle);
    PyObject_Free(h);
    Py_DECREF(OBJECT(type));
}

/* Its libraries may be those of Python's packages, of which the loader knows nothing. */
static bool load_cuda(void)
{
    PyObject *module = PyImport_ImportModule("strata._cuda");
    PyObject *none = module ? PyObject_CallMethod(module, "load", NULL) : NULL;
    const bool loaded = none != NULL;
    Py_XDECREF(module);
    Py_XDECREF(none);
    return loaded;
}

Handle *handle_open(const char *device)
{
    strata_error err;
    int status;
    const bool is_cuda = device && strncmp(device, "cuda", strlen("cuda")) == 0;
    if (is_cuda && !load_cuda())
        return NULL;
    Handle *h = (Handle *)PyType_GenericAlloc(HandleType, 0);
    if (!h)
        return NULL;
    h->generation = process_generation();
    h->is_cuda = is_cuda;
    Py_BEGIN_ALLOW_THREADS status = strata_create(&h->handle, device, &err);
    Py_END_ALLOW_THREADS if (status == STRATA_OK) return h;
    Py_DECREF(OBJECT(h));
    return (Handle *)raise_error(&err);
}

static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, (void *)handle_dealloc},
    {0, NULL},
};

static PyType_Spec handle_spec = {
    .name = "strata._strata._Handle",
    .basicsize = sizeof(Handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = handle_slots,
};

bool handle_register(PyObject *module)
{
    return (HandleType = add_type(module, &handle_spec)) != NULL;
}
