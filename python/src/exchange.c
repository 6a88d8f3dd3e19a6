/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors for others: DLPack, either kind of capsule, and CUDA's array interface. On CUDA
 * the consumer's stream is made to wait for ours; runs are complete before their outputs
 * are handed out, so that this matters to sessions alone.
 */
#include <stdlib.h>
#include <string.h>

#include "python/src/module.h"

/* ---- capsules -------------------------------------------------------------------- */

/* Both kinds; the consumer frees the one that it was given. */
struct exported {
    union {
        struct dl_managed plain;
        struct dl_managed_versioned versioned;
    } managed;
    Tensor *tensor;
    int64_t shape[STRATA_MAX_RANK], strides[STRATA_MAX_RANK];
};

/* From any thread, after the interpreter's end perhaps: the memory is then the system's.
 */
static void drop(struct exported *e)
{
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    e->tensor->exports--;
    Py_DECREF(OBJECT(e->tensor));
    PyGILState_Release(state);
    free(e);
}

static void drop_plain(struct dl_managed *m)
{
    drop(m->context);
}

static void drop_versioned(struct dl_managed_versioned *m)
{
    drop(m->context);
}

static void plain_unused(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return; /* a consumer has it */
    struct dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    m->deleter(m);
}

static void versioned_unused(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return;
    struct dl_managed_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    m->deleter(m);
}

/* Of pinned memory the host's, as PyTorch has it: consumers tell the two apart by the
 * address, and PyTorch takes none that says it is pinned. */
static int dlpack_device(const Tensor *t)
{
    return t->device == DL_CUDA_HOST ? DL_CPU : t->device;
}

static void describe(struct dl_tensor *out, struct exported *e)
{
    const Tensor *t = e->tensor;
    *out = (struct dl_tensor){.data = t->data, .rank = t->desc.rank};
    out->device.type = dlpack_device(t);
    out->device.id = t->device_id;
    dtype_to_dlpack(t->desc.dtype, out);
    memcpy(e->shape, t->desc.dims, sizeof e->shape);
    memcpy(e->strides, t->desc.strides, sizeof e->strides);
    out->shape = e->shape;
    out->strides = e->strides;
}

static PyObject *export_tensor(Tensor *t, bool versioned, bool copied)
{
    struct exported *e = calloc(1, sizeof *e);
    PyObject *capsule;
    if (!e)
        return PyErr_NoMemory();
    e->tensor = t;
    if (versioned) {
        struct dl_managed_versioned *m = &e->managed.versioned;
        m->version.major = DL_MAJOR;
        m->version.minor = DL_MINOR;
        m->context = e;
        m->deleter = drop_versioned;
        m->flags = (t->readonly ? DL_READ_ONLY : 0) | (copied ? DL_IS_COPIED : 0);
        describe(&m->tensor, e);
        capsule = PyCapsule_New(m, "dltensor_versioned", versioned_unused);
    } else {
        struct dl_managed *m = &e->managed.plain;
        m->context = e;
        m->deleter = drop_plain;
        describe(&m->tensor, e);
        capsule = PyCapsule_New(m, "dltensor", plain_unused);
    }
    if (!capsule) {
        free(e);
        return NULL;
    }
    t->exports++;
    Py_INCREF(OBJECT(t));
    return capsule;
}

/* ---- what is asked for ------------------------------------------------------------- */

/* Only the host's memory is copied for others; on this side nobody waits for a stream. */
static bool check_device(const Tensor *t, PyObject *wanted, PyObject *copy)
{
    int type, id;
    if (copy == Py_True && t->device == DL_CUDA) {
        PyErr_SetString(
            PyExc_BufferError,
            "a tensor on a GPU is not copied here; copy what from_dlpack gives");
        return false;
    }
    if (!wanted || wanted == Py_None)
        return true;
    if (!PyArg_ParseTuple(wanted, "ii", &type, &id))
        return false;
    if (type == dlpack_device(t) && (type != DL_CUDA || id == t->device_id))
        return true;
    PyErr_Format(PyExc_BufferError,
                 "the tensor is on DLPack's device (%d, %d), not (%d, %d)",
                 dlpack_device(t), t->device_id, type, id);
    return false;
}

/* DLPack's numbers: 1 the legacy default stream, 2 that of the thread, -1 none. What is
 * in a tensor is complete, unless a session's run is under way, which no other call of
 * Python's can see. */
static bool check_stream(const Tensor *t, PyObject *stream)
{
    if (!stream || stream == Py_None)
        return true;
    const long long number = PyLong_AsLongLong(stream);
    if (number == -1 && PyErr_Occurred())
        return false;
    if (t->device != DL_CUDA && number != -1) {
        PyErr_SetString(PyExc_BufferError, "a tensor of the host has no stream");
        return false;
    }
    if (number != 0)
        return true;
    PyErr_SetString(PyExc_BufferError,
                    "stream 0 is ambiguous; 1 is the legacy default, 2 the thread's");
    return false;
}

/* Row by row, in memory of its own. */
static Tensor *copy_of(const Tensor *t)
{
    strata_desc d = t->desc;
    int64_t stride = 1;
    strata_error err;
    int status = STRATA_OK;
    for (int i = d.rank - 1; i >= 0; i--) {
        d.strides[i] = stride;
        stride *= d.dims[i] > 0 ? d.dims[i] : 1;
    }
    Tensor *copy = tensor_make(&d, NULL, NULL);
    if (copy && d.rank == 0)
        memcpy(copy->data, t->data, t->bytes);
    else if (copy && strata_desc_count(&d) > 0)
        status = strata_reformat(&d, copy->data, &t->desc, t->data, &err);
    if (status != STRATA_OK) {
        raise_error(&err);
        Py_CLEAR(copy);
    }
    return copy;
}

PyObject *tensor_dlpack(Tensor *t, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    int major = 0, minor = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream, &version,
                                     &device, &copy) ||
        !check_device(t, device, copy) || !check_stream(t, stream))
        return NULL;
    if (version && version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor))
        return NULL;
    const bool copied = copy == Py_True;
    /* Older capsules cannot say that a tensor may only be read. */
    if (!tensor_check(t, major < 1 && !copied))
        return NULL;
    Tensor *given = copied ? copy_of(t) : (Tensor *)Py_NewRef(OBJECT(t));
    PyObject *capsule = given ? export_tensor(given, major >= 1, copied) : NULL;
    Py_XDECREF(OBJECT(given));
    return capsule;
}

PyObject *tensor_dlpack_device(Tensor *t, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(ii)", dlpack_device(t), t->device_id);
}

PyObject *tensor_cuda_interface(Tensor *t, void *unused)
{
    (void)unused;
    const char *typestr = dtype_typestr(t->desc.dtype);
    if (t->device != DL_CUDA || !typestr) {
        PyErr_SetString(PyExc_AttributeError, "__cuda_array_interface__");
        return NULL;
    }
    PyObject *shape = PyTuple_New(t->desc.rank), *strides = PyTuple_New(t->desc.rank);
    for (int i = 0; shape && strides && i < t->desc.rank; i++) {
        PyObject *dim = PyLong_FromSsize_t(t->shape[i]),
                 *stride = PyLong_FromSsize_t(t->strides[i]);
        if (!dim || !stride || PyTuple_SetItem(shape, i, dim) != 0 ||
            PyTuple_SetItem(strides, i, stride) != 0)
            Py_CLEAR(shape);
    }
    PyObject *data = PyLong_FromVoidPtr(t->data), *result = NULL;
    if (shape && strides && data)
        result = Py_BuildValue("{sisOsss(OO)sO}", "version", 3, "shape", shape, "typestr",
                               typestr, "data", data, Py_False, "strides", strides);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(data);
    return result;
}
