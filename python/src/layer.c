/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a layer that is Python functions. strata/_layers.py has checked what they
 * are made of; what it says here in tuples is laid out as a plugin has it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "python/src/layer.h"

static PyTypeObject *LayerType;

/* ---- formats --------------------------------------------------------------------- */

/* Those whose elements strides can tell. */
static const struct {
    const char *name;
    uint64_t mask;
    int dtype;
} formats[] = {
    {"fp32:nchw", STRATA_F32_NCHW, STRATA_FP32},
    {"fp16:nchw", STRATA_F16_NCHW, STRATA_FP16},
    {"fp32:nhwc", STRATA_F32_NHWC, STRATA_FP32},
    {"fp16:nhwc", STRATA_F16_NHWC, STRATA_FP16},
    {"fp32:chwn", STRATA_F32_CHWN, STRATA_FP32},
    {"fp16:chwn", STRATA_F16_CHWN, STRATA_FP16},
    {"bf16:nchw", STRATA_BF16_NCHW, STRATA_BF16},
    {"bf16:nhwc", STRATA_BF16_NHWC, STRATA_BF16},
    {"fp64:nchw", STRATA_F64_NCHW, STRATA_FP64},
    {"i32:nchw", STRATA_I32_NCHW, STRATA_INT32},
    {"i64:nchw", STRATA_I64_NCHW, STRATA_INT64},
    {"bool:nchw", STRATA_BOOL_NCHW, STRATA_BOOL8},
    {"int8:nchw", STRATA_I8_NCHW, STRATA_INT8},
    {"int8:nhwc", STRATA_I8_NHWC, STRATA_INT8},
    {"u8:nchw", STRATA_U8_NCHW, STRATA_UINT8},
    {"u8:nhwc", STRATA_U8_NHWC, STRATA_UINT8},
};

/* Of a name; 0 with an exception. */
static uint64_t format_mask(PyObject *name, int *dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (PyUnicode_CompareWithASCIIString(name, formats[i].name) == 0) {
            *dtype = formats[i].dtype;
            return formats[i].mask;
        }
    PyErr_Format(
        PyExc_ValueError,
        "format %R: a layer in Python takes formats without vectors and pads, as "
        "'fp32:nchw', 'fp32:nhwc' or 'i64:nchw'",
        name);
    return 0;
}

/* A port's masks are in two arrays. */
static void set_mask(strata_row *row, bool output, Py_ssize_t port, uint64_t mask)
{
    if (port < STRATA_MAX_PORTS)
        (output ? row->out : row->in)[port] = mask;
    else
        (output ? row->out_more : row->in_more)[port - STRATA_MAX_PORTS] = mask;
}

static bool read_side(Layer *l, strata_row *row, PyObject *names, bool output, bool first)
{
    const Py_ssize_t n = PyTuple_Size(names);
    int dtype = -1;
    for (Py_ssize_t i = 0; i < n && i < MOST_PORTS; i++) {
        const uint64_t mask = format_mask(PyTuple_GetItem(names, i), &dtype);
        if (!mask)
            return false;
        set_mask(row, output, i, mask);
        if (first && !output && i == 0)
            l->in_dtype = dtype;
        if (first && output)
            l->out_dtypes[i] = dtype;
    }
    for (Py_ssize_t i = n; first && output && i < MOST_PORTS; i++)
        l->out_dtypes[i] = dtype;
    return true;
}

/* ((("fp32:nchw",), ("fp32:nchw",)), ...) */
static bool read_rows(Layer *l, PyObject *rows)
{
    const Py_ssize_t n = PyTuple_Size(rows);
    l->rows = calloc((size_t)n + 1, sizeof *l->rows);
    if (!l->rows)
        return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *in, *out;
        if (!PyArg_ParseTuple(PyTuple_GetItem(rows, i), "O!O!", &PyTuple_Type, &in,
                              &PyTuple_Type, &out) ||
            !read_side(l, &l->rows[i], in, false, i == 0) ||
            !read_side(l, &l->rows[i], out, true, i == 0))
            return false;
    }
    l->impl = (strata_impl){.id = 1,
                            .device = STRATA_HOST,
                            .flags = STRATA_PAD_DIRTY | STRATA_PAD_IGNORED,
                            .name = "python",
                            .rows = {l->rows, (uint32_t)n, sizeof *l->rows}};
    return true;
}

/* ---- attributes and weights ------------------------------------------------------ */

static const size_t attribute_sizes[] = {
    [STRATA_I64] = sizeof(int64_t),          [STRATA_F64] = sizeof(double),
    [STRATA_BOOL] = sizeof(int32_t),         [STRATA_ENUM] = sizeof(int32_t),
    [STRATA_STRING] = sizeof(strata_string), [STRATA_INTS] = sizeof(strata_ints),
    [STRATA_REALS] = sizeof(strata_reals),
};
enum { PLACE = 8 }; /* bytes that any attribute may begin at a multiple of */

/* ((name, type, required, default, choices, default text), ...) */
static bool read_attributes(Layer *l, PyObject *list)
{
    const Py_ssize_t n = PyTuple_Size(list);
    l->attrs = calloc((size_t)n + 1, sizeof *l->attrs);
    if (!l->attrs)
        return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        strata_attr *a = &l->attrs[i];
        int required;
        if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "sipdzz", &a->name, &a->type,
                              &required, &a->def, &a->choices, &a->def_text))
            return false;
        if (a->type < 0 || a->type > STRATA_REALS) {
            PyErr_SetString(PyExc_ValueError, "no such type of attribute");
            return false;
        }
        a->flags = required ? STRATA_REQUIRED : 0;
        a->offset = l->layer.params_size;
        l->layer.params_size += (attribute_sizes[a->type] + PLACE - 1) / PLACE * PLACE;
    }
    l->layer.attrs = (strata_array){l->attrs, (uint32_t)n, sizeof *l->attrs};
    return true;
}

static bool read_weights(Layer *l, PyObject *names)
{
    const Py_ssize_t n = PyTuple_Size(names);
    l->weights = calloc((size_t)n + 1, sizeof *l->weights);
    if (!l->weights)
        return PyErr_NoMemory() != NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        l->weights[i].name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
        l->weights[i].flags = STRATA_REQUIRED;
        l->weights[i].rank = -1;
        if (!l->weights[i].name)
            return false;
    }
    l->layer.weights = (strata_array){l->weights, (uint32_t)n, sizeof *l->weights};
    return true;
}

/* ---- the object ------------------------------------------------------------------ */

static bool fill(Layer *l, PyObject *args)
{
    PyObject *rows, *attributes, *weights;
    int n_in, n_out, version;
    if (!PyArg_ParseTuple(args, "ssssiiiO!O!O!OOOO", &l->name, &l->module.ns,
                          &l->module.version, &l->layer.name, &version, &n_in, &n_out,
                          &PyTuple_Type, &rows, &PyTuple_Type, &attributes, &PyTuple_Type,
                          &weights, &l->run, &l->shape, &l->weight_shapes, &l->reference))
        return false;
    if (n_in < 0 || n_out < 1 || n_in > MOST_PORTS || n_out > MOST_PORTS) {
        PyErr_Format(PyExc_ValueError,
                     "%d inputs and %d outputs; 0 to %d inputs and 1 to %d outputs are "
                     "possible",
                     n_in, n_out, MOST_PORTS, MOST_PORTS);
        return false;
    }
    l->layer.struct_size = sizeof l->layer;
    l->layer.version = (uint32_t)version;
    l->layer.doc = "A prototype in Python.";
    l->layer.min_in = l->layer.max_in = n_in;
    l->layer.n_out = n_out;
    return read_rows(l, rows) && read_attributes(l, attributes) &&
           read_weights(l, weights);
}

static void point(Layer *l)
{
    layer_connect(l);
    l->layer.impls = (strata_array){&l->impl, 1, sizeof l->impl};
    l->layers[0] = &l->layer;
    l->module.struct_size = sizeof l->module;
    l->module.abi_minor = STRATA_ABI_MINOR;
    l->module.layers = l->layers;
    l->module.n_layers = 1;
}

static PyObject *layer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    Layer *l = (Layer *)PyType_GenericAlloc(type, 0);
    if (!l)
        return NULL;
    l->slot = -1;
    const bool filled = fill(l, args);
    l->arguments = Py_NewRef(args); /* texts and functions are its */
    if (filled && layer_take_slot(l)) {
        point(l);
        return (PyObject *)l;
    }
    Py_DECREF(OBJECT(l));
    return NULL;
}

static void layer_dealloc(Layer *l)
{
    PyTypeObject *type = Py_TYPE(OBJECT(l));
    layer_free_slot(l);
    free(l->rows);
    free(l->attrs);
    free(l->weights);
    Py_XDECREF(l->arguments);
    PyObject_Free(l);
    Py_DECREF(OBJECT(type));
}

int layer_give(PyObject *object, strata_registry *registry, strata_error *err)
{
    const Layer *l = (const Layer *)object;
    return strata_registry_add(registry, l->name, &l->module, err);
}

bool layer_is(PyObject *object)
{
    return Py_IS_TYPE(object, LayerType);
}

/* By a registry without any folder. */
PyObject *layer_validate(PyObject *module, PyObject *object)
{
    const strata_registry_options none = {.struct_size = sizeof none,
                                          .no_default_path = 1};
    strata_registry *registry = NULL;
    strata_error err;
    (void)module;
    if (!layer_is(object)) {
        PyErr_SetString(PyExc_TypeError, "tables of a layer are needed");
        return NULL;
    }
    int status = strata_registry_create(&registry, &none, &err);
    if (status == STRATA_OK)
        status = layer_give(object, registry, &err);
    strata_registry_destroy(registry);
    if (status != STRATA_OK)
        return raise_error(&err);
    Py_RETURN_NONE;
}

/* For strata._check, which has a registry of its own. */
static PyObject *layer_tables(Layer *l, PyObject *unused)
{
    (void)unused;
    return PyCapsule_New(&l->module, LAYER_CAPSULE, NULL);
}

static PyMethodDef methods[] = {
    {"tables", PYTHON(layer_tables), METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The tables of a layer in Python."},
    {Py_tp_new, (void *)layer_new},
    {Py_tp_dealloc, (void *)layer_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "strata._strata.Tables",
    .basicsize = sizeof(Layer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

bool layer_register(PyObject *module)
{
    return (LayerType = add_type(module, &spec)) != NULL;
}
