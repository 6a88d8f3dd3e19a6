/* SPDX-License-Identifier: Apache-2.0
 *
 * network(...): a context that is idle, or a new one; the inputs where they are, or as
 * the bindings have them; outputs in tensors of their own. One part of a run, in place
 * where it can be. Any thread, and as many as there are.
 */
#include "python/src/module.h"

/* ---- arguments ------------------------------------------------------------------- */

/* The named ones: inputs, and the two words that are none. */
static bool take_keyword(const Network *n, PyObject *name, PyObject *value,
                         PyObject **inputs, PyObject **cast, PyObject **stream)
{
    for (int i = 0; i < n->n_in; i++) {
        PyObject *own = PyTuple_GetItem(n->names, i);
        if (own != name && PyUnicode_Compare(own, name) != 0)
            continue;
        if (inputs[i]) {
            PyErr_Format(PyExc_TypeError, "input '%s' is given twice",
                         n->bindings[i].name);
            return false;
        }
        inputs[i] = value;
        return true;
    }
    if (PyUnicode_CompareWithASCIIString(name, "cast") == 0)
        *cast = value;
    else if (PyUnicode_CompareWithASCIIString(name, "stream") == 0)
        *stream = value;
    else {
        PyObject *own = PyTuple_GetSlice(n->names, 0, n->n_in);
        if (own)
            PyErr_Format(PyExc_TypeError, "no input %R; the network has %R", name, own);
        Py_XDECREF(own);
        return false;
    }
    return true;
}

static bool check_count(const Network *n, Py_ssize_t given)
{
    if (given <= n->n_in)
        return true;
    PyErr_Format(PyExc_TypeError, "%zd inputs are given; the network has %d", given,
                 n->n_in);
    return false;
}

static bool check_all(const Network *n, PyObject *const *inputs)
{
    for (int i = 0; i < n->n_in; i++)
        if (!inputs[i]) {
            PyErr_Format(PyExc_TypeError, "input '%s' is missing", n->bindings[i].name);
            return false;
        }
    return true;
}

static bool call_inputs(const Network *n, PyObject *args, PyObject *kwargs,
                        PyObject **inputs, PyObject **cast, PyObject **stream)
{
    const Py_ssize_t n_args = args ? PyTuple_Size(args) : 0;
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!check_count(n, n_args))
        return false;
    for (int i = 0; i < n->n_in; i++)
        inputs[i] = i < n_args ? PyTuple_GetItem(args, i) : NULL;
    while (kwargs && PyDict_Next(kwargs, &at, &name, &value))
        if (!take_keyword(n, name, value, inputs, cast, stream))
            return false;
    return check_all(n, inputs);
}

bool call_vector(const Network *n, PyObject *const *args, Py_ssize_t n_args,
                 PyObject *names, PyObject **inputs)
{
    PyObject *cast = NULL, *stream = NULL;
    const Py_ssize_t n_names = names ? PyTuple_Size(names) : 0;
    if (!check_count(n, n_args))
        return false;
    for (int i = 0; i < n->n_in; i++)
        inputs[i] = i < n_args ? args[i] : NULL;
    for (Py_ssize_t i = 0; i < n_names; i++)
        if (!take_keyword(n, PyTuple_GetItem(names, i), args[n_args + i], inputs, &cast,
                          &stream))
            return false;
    if (!cast && !stream)
        return check_all(n, inputs);
    PyErr_SetString(PyExc_TypeError, "requests have neither cast= nor stream=");
    return false;
}

bool call_stream(PyObject *object, void **native)
{
    PyObject *number = NULL;
    *native = NULL;
    if (!object || object == Py_None)
        return true;
    if (PyLong_Check(object))
        number = Py_NewRef(object);
    else if (PyObject_HasAttrString(object, "cuda_stream"))
        number = PyObject_GetAttrString(object, "cuda_stream");
    else {
        PyObject *pair = PyObject_CallMethod(object, "__cuda_stream__", NULL);
        number = pair ? PySequence_GetItem(pair, 1) : NULL; /* version, stream */
        Py_XDECREF(pair);
    }
    if (number)
        *native = PyLong_AsVoidPtr(number);
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

/* ---- one call -------------------------------------------------------------------- */

struct call {
    Network *network;
    struct context *context;
    struct array arrays[MOST_BINDINGS];
    strata_memory memory[MOST_BINDINGS];
    Tensor *outputs[MOST_BINDINGS]; /* at their bindings' places */
    int n_taken;
    bool cast, on_device;
};

static struct context *take_context(Network *n)
{
    struct context *c = n->idle;
    if (!c)
        return context_open(n, false, NULL);
    n->idle = c->next;
    return c;
}

static void give_back(Network *n, struct context *c)
{
    c->next = n->idle;
    n->idle = c;
}

static strata_memory memory_of(void *data, uint64_t bytes, int device, int id)
{
    const bool on_device = device == DL_CUDA;
    return (strata_memory){.data = data,
                           .bytes = bytes,
                           .kind = on_device ? STRATA_MEMORY_DEVICE : STRATA_MEMORY_HOST,
                           .device = on_device ? id : 0};
}

static bool take_inputs(struct call *k, PyObject *const *inputs)
{
    const Network *n = k->network;
    void *stream =
        n->on_host ? NULL : strata_stream_native(strata_get_stream(k->context->handle));
    for (; k->n_taken < n->n_in; k->n_taken++) {
        struct array *a = &k->arrays[k->n_taken];
        if (!array_take(a, inputs[k->n_taken], n->bindings[k->n_taken].name, false,
                        stream))
            return false;
        if (a->device == DL_CUDA && n->on_host) {
            PyErr_Format(
                PyExc_BufferError,
                "'%s' is on a GPU, the network on the host; bring it there first",
                n->bindings[k->n_taken].name);
            array_release(a);
            return false;
        }
        k->on_device = k->on_device || a->device == DL_CUDA;
    }
    if (!context_set_shapes(k->context, n, k->arrays))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const struct array *a = &k->arrays[i];
        void *data = context_convert(k->context, n, i, a, k->cast);
        if (!data && k->context->bindings[i].bytes > 0)
            return false;
        k->memory[i] = memory_of(data, (uint64_t)k->context->bindings[i].bytes, a->device,
                                 a->device_id);
    }
    return true;
}

/* A binding's format as one that strides say is the tensor's; others are brought to rows
 * behind each other after the run. */
static Tensor *make_output(const struct call *k, int index)
{
    const strata_binding *b = &k->context->bindings[index];
    const strata_desc plain = context_plain(b);
    return tensor_make(binding_is_plain(b) ? &b->desc : &plain, NULL, NULL);
}

/* Of inputs on a GPU the outputs stay there, where the context has them. */
static bool make_outputs(struct call *k)
{
    const Network *n = k->network;
    struct context *c = k->context;
    for (int i = n->n_in; i < n->n; i++) {
        const strata_binding *b = &c->bindings[i];
        const bool plain = binding_is_plain(b);
        k->memory[i] = (strata_memory){.data = NULL};
        if (k->on_device)
            continue;
        if (!(k->outputs[i] = make_output(k, i)))
            return false;
        if (!plain && !c->staged[i] &&
            !(c->staged[i] = aligned_memory((size_t)n->bindings[i].bytes)))
            return false;
        k->memory[i] = memory_of(plain ? k->outputs[i]->data : c->staged[i],
                                 (uint64_t)b->bytes, DL_CPU, 0);
    }
    return true;
}

static int unpack_outputs(struct call *k)
{
    const Network *n = k->network;
    struct context *c = k->context;
    int status = STRATA_OK;
    for (int i = n->n_in; i < n->n && status == STRATA_OK && !k->on_device; i++)
        if (!binding_is_plain(&c->bindings[i]))
            status = strata_reformat(&k->outputs[i]->desc, k->outputs[i]->data,
                                     &c->bindings[i].desc, c->staged[i], &c->err);
    return status;
}

static bool run(struct call *k)
{
    const Network *n = k->network;
    struct context *c = k->context;
    strata_part part = {.struct_size = sizeof part,
                        .rows = context_rows_of(c, n),
                        .inputs = k->memory,
                        .outputs = k->memory + n->n_in};
    bool bound = false;
    int status;
    if (k->on_device && !context_bind_inputs(c, n, k->arrays, &bound))
        return false;
    Py_BEGIN_ALLOW_THREADS status =
        bound ? strata_context_run(c->context, &c->err)
              : strata_context_run_parts(c->context, &part, 1, &c->err);
    if (status == STRATA_OK)
        status = unpack_outputs(k);
    Py_END_ALLOW_THREADS return status == STRATA_OK || raise_error(&c->err) != NULL;
}

/* The context stays with the views. */
static bool lease_outputs(struct call *k)
{
    Lease *lease = lease_make(k->network, k->context, true);
    k->context = NULL;
    for (int i = k->network->n_in; lease && i < k->network->n; i++)
        if (!(k->outputs[i] = (Tensor *)lease_view(lease, i)))
            Py_CLEAR(lease);
    Py_XDECREF(OBJECT(lease));
    return lease != NULL;
}

static PyObject *collect(struct call *k)
{
    const Network *n = k->network;
    if (k->on_device && !lease_outputs(k))
        return NULL;
    PyObject *result = PyObject_CallNoArgs(n->outputs_type);
    for (int i = n->n_in; result && i < n->n; i++)
        if (PyDict_SetItem(result, PyTuple_GetItem(n->names, i),
                           (PyObject *)k->outputs[i]) != 0)
            Py_CLEAR(result);
    return result;
}

static PyObject *call(struct call *k, PyObject *const *inputs)
{
    PyObject *result = NULL;
    if (take_inputs(k, inputs) && make_outputs(k) && run(k))
        result = collect(k);
    for (int i = 0; i < k->n_taken; i++)
        array_release(&k->arrays[i]);
    for (int i = k->network->n_in; i < k->network->n; i++)
        Py_XDECREF(OBJECT(k->outputs[i]));
    return result;
}

PyObject *network_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct call k;
    Network *n = (Network *)self;
    PyObject *inputs[MOST_BINDINGS], *cast = NULL, *stream = NULL, *result = NULL;
    void *native;
    if (!network_check(n) || !call_inputs(n, args, kwargs, inputs, &cast, &stream) ||
        !call_stream(stream, &native))
        return NULL;
    k.network = n;
    k.n_taken = 0;
    k.cast = cast && PyObject_IsTrue(cast);
    k.on_device = false;
    for (int i = n->n_in; i < n->n; i++)
        k.outputs[i] = NULL;
    if (!(k.context = take_context(n)))
        return NULL;
    if (!stream || stream == Py_None || n->on_host || context_follow(k.context, native))
        result = call(&k, inputs);
    if (k.context)
        give_back(n, k.context);
    return result;
}
