/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers hand in. A buffer is taken by Python's protocol, what has none by DLPack,
 * either kind of capsule; a tensor of our own needs neither.
 */
#include <string.h>

#include "python/src/module.h"

/* ---- strides --------------------------------------------------------------------- */

static void set_packed(strata_desc *d)
{
    int64_t stride = 1;
    for (int i = d->rank - 1; i >= 0; i--) {
        d->strides[i] = stride;
        stride *= d->dims[i] > 0 ? d->dims[i] : 1;
    }
}

static bool set_rank(strata_desc *d, int64_t rank, int dtype, const char *name)
{
    if (rank > STRATA_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "'%s' has %lld dims; at most %d are possible",
                     name, (long long)rank, STRATA_MAX_RANK);
        return false;
    }
    *d = (strata_desc){
        .dtype = dtype, .rank = (int32_t)rank, .vector_dim = -1, .vector = 1};
    return true;
}

bool array_is(const struct array *a, const strata_desc *d)
{
    bool same = a->desc.dtype == d->dtype && a->desc.rank == d->rank && d->vector == 1;
    for (int i = 0; i < d->rank && same; i++)
        same = a->desc.dims[i] == d->dims[i] &&
               (a->desc.strides[i] == d->strides[i] || d->dims[i] <= 1);
    return same;
}

/* ---- buffers --------------------------------------------------------------------- */

static bool describe_buffer(struct array *a, const char *name)
{
    const Py_buffer *v = &a->view;
    const int dtype = dtype_of_format(v->format, v->itemsize);
    if (dtype < 0) {
        PyErr_Format(PyExc_TypeError,
                     "'%s': elements of format '%s' have no dtype here; convert it "
                     "(x.astype(...)), to the machine's order of bytes, too",
                     name, v->format ? v->format : "B");
        return false;
    }
    if (!set_rank(&a->desc, v->ndim, dtype, name))
        return false;
    for (int i = 0; i < v->ndim; i++) {
        a->desc.dims[i] = v->shape[i];
        a->desc.strides[i] = v->strides[i] / v->itemsize;
        if ((v->strides[i] < 0 || v->strides[i] % v->itemsize) && v->shape[i] > 1) {
            PyErr_Format(PyExc_ValueError,
                         "'%s': dim %d has a stride of %zd bytes; pass a contiguous copy",
                         name, i, v->strides[i]);
            return false;
        }
    }
    a->data = v->buf;
    a->device = DL_CPU;
    return true;
}

static bool take_buffer(struct array *a, PyObject *object, const char *name,
                        bool writable)
{
    const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &a->view, flags) != 0)
        return false;
    if (describe_buffer(a, name))
        return true;
    PyBuffer_Release(&a->view);
    return false;
}

/* ---- DLPack ---------------------------------------------------------------------- */

static bool describe_dlpack(struct array *a, const struct dl_tensor *t, const char *name)
{
    const int dtype = dtype_of_dlpack(t->dtype.code, t->dtype.bits, t->dtype.lanes);
    if (dtype < 0) {
        PyErr_Format(PyExc_TypeError,
                     "'%s': DLPack's type %d of %d bits has no dtype here", name,
                     t->dtype.code, t->dtype.bits);
        return false;
    }
    if (t->device.type != DL_CPU && t->device.type != DL_CUDA &&
        t->device.type != DL_CUDA_HOST) {
        PyErr_Format(PyExc_BufferError,
                     "'%s' is on a device of DLPack's kind %d; copy it to the host first",
                     name, t->device.type);
        return false;
    }
    if (!set_rank(&a->desc, t->rank, dtype, name))
        return false;
    memcpy(a->desc.dims, t->shape, (size_t)t->rank * sizeof *t->shape);
    if (t->strides)
        memcpy(a->desc.strides, t->strides, (size_t)t->rank * sizeof *t->strides);
    else
        set_packed(&a->desc);
    a->data = (char *)t->data + t->byte_offset;
    a->device = t->device.type;
    a->device_id = t->device.id;
    return true;
}

/* The producer's; a new kind's stream argument is of CUDA alone. */
static PyObject *ask_dlpack(PyObject *object, void *stream)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *kwargs = method ? Py_BuildValue("{s(ii)}", "max_version", 1, 0) : NULL;
    PyObject *none = PyTuple_New(0), *capsule = NULL;
    if (kwargs && stream) {
        PyObject *number = PyLong_FromVoidPtr(stream);
        if (!number || PyDict_SetItemString(kwargs, "stream", number) != 0)
            Py_CLEAR(kwargs);
        Py_XDECREF(number);
    }
    if (kwargs && none)
        capsule = PyObject_Call(method, none, kwargs);
    if (!capsule && kwargs && none && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* a producer of DLPack before 1.0 */
        PyDict_DelItemString(kwargs, "max_version");
        capsule = PyObject_Call(method, none, kwargs);
    }
    Py_XDECREF(method);
    Py_XDECREF(kwargs);
    Py_XDECREF(none);
    return capsule;
}

/* Of a capsule of either kind; NULL with an exception set. */
static const struct dl_tensor *open_capsule(PyObject *capsule, const char *name,
                                            bool writable)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        struct dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        return &m->tensor;
    }
    struct dl_managed_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (!m)
        return NULL;
    if (m->version.major != DL_MAJOR) {
        PyErr_Format(PyExc_BufferError, "'%s': DLPack %u; 1 is understood", name,
                     m->version.major);
        return NULL;
    }
    if (writable && m->flags & DL_READ_ONLY) {
        PyErr_Format(PyExc_BufferError, "'%s' may only be read", name);
        return NULL;
    }
    return &m->tensor;
}

/* Producers of the host's memory refuse a stream. */
static bool is_on_cuda(PyObject *object, bool *yes)
{
    int type, id;
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    const bool found = device && PyArg_ParseTuple(device, "ii", &type, &id);
    *yes = found && type == DL_CUDA;
    Py_XDECREF(device);
    return found;
}

static bool take_dlpack(struct array *a, PyObject *object, const char *name,
                        bool writable, void *stream)
{
    PyObject *capsule = ask_dlpack(object, stream);
    if (!capsule)
        return false;
    const struct dl_tensor *t = open_capsule(capsule, name, writable);
    if (t && describe_dlpack(a, t, name)) {
        a->owner = capsule; /* unused: its destructor frees the tensor */
        return true;
    }
    Py_DECREF(capsule);
    return false;
}

/* ---- any ------------------------------------------------------------------------- */

static void take_tensor(struct array *a, Tensor *t)
{
    a->desc = t->desc;
    a->data = t->data;
    a->device = t->device;
    a->device_id = t->device_id;
    a->owner = Py_NewRef((PyObject *)t);
}

bool array_take(struct array *a, PyObject *object, const char *name, bool writable,
                void *stream)
{
    *a = (struct array){0};
    if (Py_IS_TYPE(object, TensorType)) {
        if (!tensor_check((Tensor *)object, writable))
            return false;
        take_tensor(a, (Tensor *)object);
        return true;
    }
    const bool has_dlpack = PyObject_HasAttrString(object, "__dlpack__");
    bool ordered = false;
    if (has_dlpack && (stream || !PyObject_CheckBuffer(object)) &&
        !is_on_cuda(object, &ordered))
        return false;
    if (PyObject_CheckBuffer(object) && !ordered) /* an array of CuPy's has one in vain */
        return take_buffer(a, object, name, writable);
    if (has_dlpack)
        return take_dlpack(a, object, name, writable, ordered ? stream : NULL);
    PyErr_Format(PyExc_TypeError,
                 "'%s' is %R, which has neither a buffer nor __dlpack__; pass an array",
                 name, (PyObject *)Py_TYPE(object));
    return false;
}

void array_release(struct array *a)
{
    if (a->owner)
        Py_CLEAR(a->owner);
    else if (a->view.obj)
        PyBuffer_Release(&a->view);
}
