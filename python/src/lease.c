/* SPDX-License-Identifier: Apache-2.0
 *
 * A context that tensors are views of: it lives as long as the last of them.
 */
#include "python/src/module.h"

static PyTypeObject *LeaseType;

static void lease_dealloc(Lease *l)
{
    PyTypeObject *type = Py_TYPE(OBJECT(l));
    Network *n = l->network;
    if (n->generation != process_generation()) {
        /* a parent's: its threads are not here to be waited for */
    } else if (l->reuse) {
        l->context->next = n->idle;
        n->idle = l->context;
    } else {
        context_close(l->context, n);
    }
    Py_DECREF(OBJECT(n));
    PyObject_Free(l);
    Py_DECREF(OBJECT(type));
}

Lease *lease_make(Network *n, struct context *c, bool reuse)
{
    Lease *l = (Lease *)PyType_GenericAlloc(LeaseType, 0);
    if (!l) {
        context_close(c, n);
        return NULL;
    }
    l->network = (Network *)Py_NewRef((PyObject *)n);
    l->context = c;
    l->reuse = reuse;
    return l;
}

PyObject *lease_view(Lease *lease, int index)
{
    const Network *n = lease->network;
    struct context *c = lease->context;
    const strata_binding *b = &c->bindings[index];
    void *data = strata_context_data(c->context, index);
    if (b->desc.vector != 1) {
        PyErr_Format(
            PyExc_BufferError,
            "'%s' is in format %s, which strides cannot tell; ask the network for "
            "a linear one ([input] or [output] format)",
            b->name, b->format);
        return NULL;
    }
    if (!data)
        return raise_status(STRATA_EBUSY, "the session runs in another thread");
    Tensor *t = tensor_make(&b->desc, data, (PyObject *)lease);
    if (t && !n->on_host) {
        t->device = DL_CUDA;
        t->device_id = n->device_id;
    }
    return (PyObject *)t;
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)lease_dealloc},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "strata._strata._Lease",
    .basicsize = sizeof(Lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

bool lease_register(PyObject *module)
{
    return (LeaseType = add_type(module, &spec)) != NULL;
}
