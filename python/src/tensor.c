/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: memory with a shape. It is freed with the tensor, or is another object's that
 * the tensor keeps alive: pinned memory its handle, a binding's its session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/src/module.h"

PyTypeObject *TensorType;

/* ---- making ---------------------------------------------------------------------- */

static Tensor *new_tensor(const strata_desc *desc)
{
    const Py_ssize_t size = (Py_ssize_t)strata_dtype_size(desc->dtype);
    Tensor *t = (Tensor *)PyType_GenericAlloc(TensorType, 0);
    if (!t)
        return NULL;
    t->desc = *desc;
    t->bytes = (size_t)strata_desc_bytes(desc);
    t->device = DL_CPU;
    for (int i = 0; i < desc->rank; i++) {
        t->shape[i] = desc->dims[i];
        t->strides[i] = desc->strides[i] * size;
    }
    return t;
}

Tensor *tensor_make(const strata_desc *desc, void *data, PyObject *base)
{
    Tensor *t = new_tensor(desc);
    if (!t)
        return NULL;
    t->memory = base ? MEMORY_BORROWED : MEMORY_OWN;
    t->base = Py_XNewRef(base);
    t->data = base ? data : aligned_memory(t->bytes);
    if (!t->data)
        Py_CLEAR(t);
    return t;
}

Tensor *tensor_pinned(const strata_desc *desc, PyObject *handle)
{
    Handle *h = (Handle *)handle;
    strata_error err;
    Tensor *t = new_tensor(desc);
    if (!t)
        return NULL;
    t->memory = MEMORY_PINNED;
    t->data = strata_host_alloc(h->handle, t->bytes, &err);
    if (!t->data) {
        Py_DECREF(OBJECT(t));
        return (Tensor *)raise_error(&err);
    }
    memset(t->data, 0, t->bytes);
    t->base = Py_NewRef(handle);
    t->device = h->is_cuda ? DL_CUDA_HOST : DL_CPU;
    h->pinned += t->bytes;
    return t;
}

static void tensor_dealloc(Tensor *t)
{
    PyTypeObject *type = Py_TYPE(OBJECT(t));
    Handle *h = (Handle *)t->base;
    if (t->memory == MEMORY_OWN)
        free(t->data);
    if (t->memory == MEMORY_PINNED && h && h->generation == process_generation()) {
        h->pinned -= t->bytes;
        strata_host_free(h->handle, t->data, t->bytes);
    }
    Py_XDECREF(t->base);
    PyObject_Free(t);
    Py_DECREF(OBJECT(type));
}

/* ---- buffers --------------------------------------------------------------------- */

static bool is_packed(const Tensor *t)
{
    Py_ssize_t stride = (Py_ssize_t)strata_dtype_size(t->desc.dtype);
    for (int i = t->desc.rank - 1; i >= 0; i--) {
        if (t->shape[i] > 1 && t->strides[i] != stride)
            return false;
        stride *= t->shape[i];
    }
    return true;
}

bool tensor_check(const Tensor *t, bool writable)
{
    if (t->memory == MEMORY_ENDED)
        PyErr_SetString(
            PyExc_BufferError,
            "the tensor was a layer's for the time of a call, which has ended; "
            "a copy (numpy.array(x)) may be kept");
    else if (writable && t->readonly)
        PyErr_SetString(PyExc_BufferError, "the tensor may only be read");
    else
        return true;
    return false;
}

static int refuse_buffer(Tensor *t, int flags)
{
    if (!tensor_check(t, flags & PyBUF_WRITABLE))
        return -1;
    if (t->device == DL_CUDA)
        PyErr_SetString(PyExc_BufferError,
                        "the tensor is on a GPU; torch.from_dlpack takes it there, and "
                        ".copy() brings it to the host");
    else if (!dtype_format(t->desc.dtype))
        PyErr_Format(PyExc_BufferError,
                     "buffers have no format for %s; torch.from_dlpack takes the tensor",
                     strata_dtype_name(t->desc.dtype));
    else if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_packed(t))
        PyErr_SetString(PyExc_BufferError,
                        "the tensor is not contiguous: ask for its strides");
    else
        return 0;
    return -1;
}

static int get_buffer(Tensor *t, Py_buffer *v, int flags)
{
    v->obj = NULL;
    if (refuse_buffer(t, flags) != 0)
        return -1;
    v->buf = t->data;
    v->itemsize = (Py_ssize_t)strata_dtype_size(t->desc.dtype);
    v->len = v->itemsize * strata_desc_count(&t->desc);
    v->readonly = t->readonly;
    v->ndim = t->desc.rank;
    v->format =
        flags & PyBUF_FORMAT ? (char *)(uintptr_t)dtype_format(t->desc.dtype) : NULL;
    v->shape = flags & PyBUF_ND ? t->shape : NULL;
    v->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? t->strides : NULL;
    v->suboffsets = NULL;
    v->internal = NULL;
    v->obj = Py_NewRef((PyObject *)t);
    t->exports++;
    return 0;
}

static void release_buffer(Tensor *t, Py_buffer *v)
{
    (void)v;
    t->exports--;
}

/* ---- attributes ------------------------------------------------------------------ */

static PyObject *get_shape(Tensor *t, void *unused)
{
    (void)unused;
    PyObject *shape = PyTuple_New(t->desc.rank);
    for (int i = 0; shape && i < t->desc.rank; i++) {
        PyObject *dim = PyLong_FromSsize_t(t->shape[i]);
        if (!dim || PyTuple_SetItem(shape, i, dim) != 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *get_dtype(Tensor *t, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(strata_dtype_name(t->desc.dtype));
}

/* By the name that a binding would have; None where no layout has its strides. */
static PyObject *get_format(Tensor *t, void *unused)
{
    static const char *const layouts[] = {"nchw", "nhwc", "chwn"};
    strata_desc d;
    char name[32];
    (void)unused;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        snprintf(name, sizeof name, "%s:%s", strata_dtype_name(t->desc.dtype),
                 layouts[i]);
        if (t->desc.rank > 0 &&
            strata_desc_format(&d, name, t->desc.dims, t->desc.rank, NULL) == STRATA_OK &&
            strata_desc_equal(&d, &t->desc))
            return PyUnicode_FromString(name);
    }
    Py_RETURN_NONE;
}

static PyObject *get_device(Tensor *t, void *unused)
{
    (void)unused;
    return t->device == DL_CUDA ? PyUnicode_FromFormat("cuda:%d", t->device_id)
                                : PyUnicode_FromString("host");
}

static PyObject *get_address(Tensor *t, void *unused)
{
    (void)unused;
    return tensor_check(t, false) ? PyLong_FromVoidPtr(t->data) : NULL;
}

static PyObject *tensor_numpy(Tensor *t, PyObject *unused)
{
    (void)unused;
    if (refuse_buffer(t, PyBUF_STRIDES) != 0) /* which NumPy passes over */
        return NULL;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", t) : NULL;
    Py_XDECREF(numpy);
    return array;
}

/* NumPy asks where there is no buffer: to be told why. */
static PyObject *tensor_array(Tensor *t, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", names, &dtype, &copy))
        return NULL;
    PyObject *array = tensor_numpy(t, NULL);
    if (!array || (dtype == Py_None && copy != Py_True))
        return array;
    PyObject *made = dtype == Py_None ? PyObject_CallMethod(array, "copy", NULL)
                                      : PyObject_CallMethod(array, "astype", "O", dtype);
    Py_DECREF(array);
    return made;
}

static Py_ssize_t tensor_length(Tensor *t)
{
    if (t->desc.rank > 0)
        return t->shape[0];
    PyErr_SetString(PyExc_TypeError, "a tensor of rank 0 has no length");
    return -1;
}

/* Elements are NumPy's affair. */
static PyObject *get_item(Tensor *t, PyObject *key)
{
    PyObject *array = tensor_numpy(t, NULL);
    PyObject *item = array ? PyObject_GetItem(array, key) : NULL;
    Py_XDECREF(array);
    return item;
}

static int set_item(Tensor *t, PyObject *key, PyObject *value)
{
    PyObject *array = tensor_numpy(t, NULL);
    int failed = !array  ? -1
                 : value ? PyObject_SetItem(array, key, value)
                         : PyObject_DelItem(array, key);
    Py_XDECREF(array);
    return failed;
}

static PyObject *tensor_repr(Tensor *t)
{
    static const char *const kinds[] = {[MEMORY_OWN] = "",
                                        [MEMORY_PINNED] = ", pinned",
                                        [MEMORY_BORROWED] = ", a view",
                                        [MEMORY_ENDED] = ", ended"};
    PyObject *shape = get_shape(t, NULL), *device = get_device(t, NULL), *text = NULL;
    if (shape && device)
        text = PyUnicode_FromFormat("strata.Tensor(%S, %s, %U%s)", shape,
                                    strata_dtype_name(t->desc.dtype), device,
                                    kinds[t->memory]);
    Py_XDECREF(shape);
    Py_XDECREF(device);
    return text;
}

static PyMethodDef methods[] = {
    {"numpy", PYTHON(tensor_numpy), METH_NOARGS,
     "A NumPy array of the same memory. BufferError on a GPU."},
    {"__array__", PYTHON(tensor_array), METH_VARARGS | METH_KEYWORDS,
     "The same for NumPy, by a dtype or as a copy where it wants one."},
    {"__dlpack__", PYTHON(tensor_dlpack), METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule of the same memory."},
    {"__dlpack_device__", PYTHON(tensor_dlpack_device), METH_NOARGS,
     "DLPack's kind of device, and its number."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", (getter)get_shape, NULL, "Dims, outermost first.", NULL},
    {"dtype", (getter)get_dtype, NULL, "\"fp32\", \"i64\", ...", NULL},
    {"format", (getter)get_format, NULL, "\"fp32:nchw\", ...; None: of other strides.",
     NULL},
    {"device", (getter)get_device, NULL, "\"host\" or \"cuda:N\".", NULL},
    {"address", (getter)get_address, NULL, "Of the first element.", NULL},
    {"__cuda_array_interface__", (getter)tensor_cuda_interface, NULL,
     "Version 3; AttributeError on the host.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Memory with a shape and a dtype. Arrays made of it share the memory."},
    {Py_tp_dealloc, (void *)tensor_dealloc},
    {Py_tp_repr, (void *)tensor_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_bf_getbuffer, (void *)get_buffer},
    {Py_bf_releasebuffer, (void *)release_buffer},
    {Py_mp_length, (void *)tensor_length},
    {Py_mp_subscript, (void *)get_item},
    {Py_mp_ass_subscript, (void *)set_item},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "strata.Tensor",
    .basicsize = sizeof(Tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

bool tensor_register(PyObject *module)
{
    return (TensorType = add_type(module, &spec)) != NULL;
}
