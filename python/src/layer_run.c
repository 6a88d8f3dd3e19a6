/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks of the library into Python, on any thread: the interpreter's lock is taken
 * for as long as one takes. Tensors are views that end with the call.
 */
#include <stdlib.h>
#include <string.h>

#include "python/src/layer.h"

enum { MOST_ARGUMENTS = 2 * MOST_PORTS + 64 };

/* A function of Python, while it is called; the lock is held. */
struct call {
    const Layer *layer;
    const char *what; /* for messages */
    const strata_host *host;
    strata_error *err;
    Tensor *tensors[MOST_ARGUMENTS];
    size_t n_tensors;
};

/* ---- failures -------------------------------------------------------------------- */

/* The exception that is set becomes the call's failure. */
static int fail(const struct call *c)
{
    PyObject *type, *value, *trace, *said = NULL;
    const char *text = NULL;
    int status = STRATA_EINTERNAL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    PyObject *module = PyImport_ImportModule("strata._layers");
    if (module)
        said = PyObject_CallMethod(module, "explain", "O", value ? value : Py_None);
    if (!said || !PyArg_ParseTuple(said, "is", &status, &text))
        text = "an exception that cannot be told";
    PyErr_Clear();
    if (type && PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt(); /* the run fails of it, and the main thread ends by it */
    status = c->host->fail(c->err, status, "%s of %s in Python: %s", c->what,
                           c->layer->layer.name, text);
    Py_XDECREF(said);
    Py_XDECREF(module);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

/* ---- arguments ------------------------------------------------------------------- */

static PyObject *tuple_of(const int64_t *values, int64_t n)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (int64_t i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value || PyTuple_SetItem(tuple, (Py_ssize_t)i, value) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *reals_of(const strata_reals *list)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)list->n);
    for (int64_t i = 0; tuple && i < list->n; i++) {
        PyObject *value = PyFloat_FromDouble(list->v[i]);
        if (!value || PyTuple_SetItem(tuple, (Py_ssize_t)i, value) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *choice_of(const char *choices, int32_t index)
{
    for (; index > 0 && strchr(choices, '|'); index--)
        choices = strchr(choices, '|') + 1;
    return PyUnicode_FromStringAndSize(choices, (Py_ssize_t)strcspn(choices, "|"));
}

static PyObject *attribute_of(const strata_attr *a, const void *params)
{
    const void *at = (const char *)params + a->offset;
    const strata_string *string = at;
    const strata_ints *ints = at;
    switch (a->type) {
    case STRATA_I64:
        return PyLong_FromLongLong(*(const int64_t *)at);
    case STRATA_F64:
        return PyFloat_FromDouble(*(const double *)at);
    case STRATA_BOOL:
        return PyBool_FromLong(*(const int32_t *)at);
    case STRATA_ENUM:
        return choice_of(a->choices, *(const int32_t *)at);
    case STRATA_STRING:
        return PyUnicode_FromStringAndSize(string->text, (Py_ssize_t)string->length);
    case STRATA_INTS:
        return tuple_of(ints->v, ints->n);
    default:
        return reals_of(at);
    }
}

/* What the network says, by name. */
static PyObject *attributes_of(const Layer *l, const void *params)
{
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict && i < l->layer.attrs.n; i++) {
        PyObject *value = attribute_of(&l->attrs[i], params);
        if (!value || PyDict_SetItemString(dict, l->attrs[i].name, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* Shapes of tensors behind those that are there; None for one that is absent. */
static bool put_shapes(PyObject *tuple, Py_ssize_t at, const strata_tensor *t, int n)
{
    for (int i = 0; i < n; i++) {
        PyObject *shape =
            t[i].rank > 0 ? tuple_of(t[i].dims, t[i].rank) : Py_NewRef(Py_None);
        if (!shape || PyTuple_SetItem(tuple, at + i, shape) != 0)
            return false;
    }
    return true;
}

static bool put_tensor(struct call *c, PyObject *tuple, Py_ssize_t at,
                       const strata_desc *d, void *data, bool writable)
{
    Tensor *t = tensor_make(d, data, (PyObject *)c->layer);
    if (!t)
        return false;
    t->readonly = !writable;
    c->tensors[c->n_tensors++] = (Tensor *)Py_NewRef(OBJECT(t));
    return PyTuple_SetItem(tuple, at, OBJECT(t)) == 0;
}

static strata_desc desc_of(const strata_tensor *t)
{
    strata_desc d = {.dtype = t->dtype, .rank = t->rank, .vector_dim = -1, .vector = 1};
    memcpy(d.dims, t->dims, sizeof d.dims);
    memcpy(d.strides, t->strides, sizeof d.strides);
    return d;
}

static bool put_views(struct call *c, PyObject *tuple, Py_ssize_t at,
                      const strata_tensor *t, int n, bool writable)
{
    static char nothing[ALIGNMENT]; /* an empty tensor may have any address */
    for (int i = 0; i < n; i++) {
        const strata_desc d = desc_of(&t[i]);
        if (!put_tensor(c, tuple, at + i, &d, t[i].data ? t[i].data : nothing, writable))
            return false;
    }
    return true;
}

/* Dense, in FP64 where the layer's is a float, else in INT64. */
static bool put_reference(struct call *c, PyObject *tuple, Py_ssize_t at,
                          const strata_tensor *t, const void *const *data, int n,
                          bool writable)
{
    for (int i = 0; i < n; i++) {
        strata_desc d = desc_of(&t[i]);
        int64_t stride = 1;
        switch (d.dtype) {
        case STRATA_INT8:
        case STRATA_UINT8:
        case STRATA_INT32:
        case STRATA_INT64:
        case STRATA_BOOL8:
            d.dtype = STRATA_INT64;
            break;
        default:
            d.dtype = STRATA_FP64;
        }
        for (int k = d.rank - 1; k >= 0; k--) {
            d.strides[k] = stride;
            stride *= d.dims[k] > 0 ? d.dims[k] : 1;
        }
        if (!put_tensor(c, tuple, at + i, &d, (void *)(uintptr_t)data[i], writable))
            return false;
    }
    return true;
}

/* ---- the end of views ------------------------------------------------------------ */

static size_t count_kept(const struct call *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_tensors; i++)
        kept += c->tensors[i]->exports > 0;
    return kept;
}

/* Their memory is the run's, which goes on: a view that is left is a failure. What hangs
 * in a cycle alone is let go of first. */
static int end_views(struct call *c, int status)
{
    size_t kept = count_kept(c);
    if (kept > 0) {
        PyObject *gc = PyImport_ImportModule("gc");
        PyObject *count = gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL;
        Py_XDECREF(count);
        Py_XDECREF(gc);
        PyErr_Clear();
        kept = count_kept(c);
    }
    for (size_t i = 0; i < c->n_tensors; i++) {
        c->tensors[i]->memory = MEMORY_ENDED;
        Py_DECREF(OBJECT(c->tensors[i]));
    }
    if (kept == 0 || status != STRATA_OK)
        return status;
    return c->host->fail(
        c->err, STRATA_EINVAL,
        "%s of %s in Python: it keeps views of %zu of its tensors, whose "
        "memory is the run's alone; keep copies (numpy.array(x))",
        c->what, c->layer->layer.name, kept);
}

/* ---- calls ------------------------------------------------------------------------ */

/* What the function gives; NULL with an exception. */
static PyObject *call(const struct call *c, PyObject *function, PyObject *args,
                      const void *params)
{
    PyObject *kwargs = args ? attributes_of(c->layer, params) : NULL;
    PyObject *result = kwargs ? PyObject_Call(function, args, kwargs) : NULL;
    Py_XDECREF(kwargs);
    return result;
}

/* Outputs are written, not given back. */
static int finish(struct call *c, PyObject *result, PyObject *args)
{
    int status = STRATA_OK;
    if (result && result != Py_None) {
        PyErr_SetString(PyExc_TypeError,
                        "it gives something back; a layer writes its outputs, as in "
                        "y[...] = value");
        Py_CLEAR(result);
    }
    Py_XDECREF(args);
    if (!result)
        status = fail(c);
    Py_XDECREF(result);
    return end_views(c, status);
}

int layer_run(const Layer *l, const strata_run *r)
{
    struct call c = {.layer = l, .what = "run", .host = r->host, .err = r->err};
    const int n = r->n_in + r->n_weights;
    PyObject *args = PyTuple_New(n + r->n_out), *result = NULL;
    if (args && put_views(&c, args, 0, r->in, r->n_in, false) &&
        put_views(&c, args, r->n_in, r->weight, r->n_weights, false) &&
        put_views(&c, args, n, r->out, r->n_out, true))
        result = call(&c, l->run, args, r->params);
    return finish(&c, result, args);
}

int layer_refer(const Layer *l, const strata_node *n, const void *const *in,
                const void *const *weight, void *const *out)
{
    struct call c = {.layer = l, .what = "reference", .host = n->host, .err = n->err};
    int64_t elements = 0;
    for (int i = 0; i < n->n_out; i++)
        elements += n->out[i].count;
    if (elements == 0) /* as run, which is not called then */
        return STRATA_OK;
    const int before = n->n_in + n->n_weights;
    PyObject *args = PyTuple_New(before + n->n_out), *result = NULL;
    if (args && put_reference(&c, args, 0, n->in, in, n->n_in, false) &&
        put_reference(&c, args, n->n_in, n->weight, weight, n->n_weights, false) &&
        put_reference(&c, args, before, n->out, (const void *const *)out, n->n_out, true))
        result = call(&c, l->reference, args, n->params);
    return finish(&c, result, args);
}

/* ---- shapes ---------------------------------------------------------------------- */

/* A sequence of integers; None, where it may be: no shape. */
static bool read_shape(strata_tensor *t, PyObject *shape)
{
    if (shape == Py_None) {
        t->rank = 0;
        return true;
    }
    const Py_ssize_t rank = PySequence_Size(shape);
    if (rank < 0)
        return false;
    if (rank < 1 || rank > STRATA_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a shape of %zd dims; 1 to %d are possible", rank,
                     STRATA_MAX_RANK);
        return false;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        PyObject *item = PySequence_GetItem(shape, i);
        PyObject *number = item ? PyNumber_Index(item) : NULL;
        t->dims[i] = number ? PyLong_AsLongLong(number) : -1;
        Py_XDECREF(number);
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return false;
    }
    t->rank = (int32_t)rank;
    return true;
}

static bool read_shapes(strata_tensor *t, int n, PyObject *shapes)
{
    const Py_ssize_t found = PySequence_Size(shapes);
    bool ok = found == n;
    if (found >= 0 && !ok)
        PyErr_Format(PyExc_ValueError, "%zd shapes are given, for %d tensors", found, n);
    for (int i = 0; ok && i < n; i++) {
        PyObject *shape = PySequence_GetItem(shapes, i);
        ok = shape && read_shape(&t[i], shape);
        Py_XDECREF(shape);
    }
    return ok;
}

/* Of the inputs' and, if they are known, the weights' shapes. */
static PyObject *call_shapes(const struct call *c, PyObject *function,
                             const strata_node *n, int n_weights)
{
    PyObject *args = PyTuple_New(n->n_in + n_weights), *result = NULL;
    if (args && put_shapes(args, 0, n->in, n->n_in) &&
        put_shapes(args, n->n_in, n->weight, n_weights))
        result = call(c, function, args, n->params);
    Py_XDECREF(args);
    return result;
}

/* Without a rule, outputs are as input 0. */
static bool set_shapes(const struct call *c, const strata_node *n)
{
    const Layer *l = c->layer;
    if (l->shape == Py_None) {
        for (int i = 0; i < n->n_out; i++) {
            n->out[i].rank = n->in[0].rank;
            memcpy(n->out[i].dims, n->in[0].dims, sizeof n->out[i].dims);
        }
        return true;
    }
    PyObject *shapes = call_shapes(c, l->shape, n, n->n_weights);
    const bool ok = shapes && (n->n_out == 1 ? read_shape(&n->out[0], shapes)
                                             : read_shapes(n->out, n->n_out, shapes));
    Py_XDECREF(shapes);
    return ok;
}

int layer_shape(const Layer *l, const strata_node *n)
{
    const struct call c = {.layer = l, .what = "shape", .host = n->host, .err = n->err};
    if (!set_shapes(&c, n))
        return fail(&c);
    for (int i = 0; i < n->n_out; i++)
        if (n->n_in == 0 || l->out_dtypes[i] != l->in_dtype)
            n->out[i].dtype = l->out_dtypes[i];
    return STRATA_OK;
}

int layer_shape_weights(const Layer *l, const strata_node *n, strata_tensor *expected)
{
    const struct call c = {
        .layer = l, .what = "weights' shapes", .host = n->host, .err = n->err};
    PyObject *shapes = call_shapes(&c, l->weight_shapes, n, 0);
    const bool ok = shapes && read_shapes(expected, n->n_weights, shapes);
    Py_XDECREF(shapes);
    return ok ? STRATA_OK : fail(&c);
}
