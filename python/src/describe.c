/* SPDX-License-Identifier: Apache-2.0
 *
 * What a network tells of itself, as plain objects that strata/_network.py gives names.
 */
#include "python/src/module.h"

#include <string.h>

bool network_check(const Network *n)
{
    return check_process(n->generation);
}

int network_find(const Network *n, PyObject *name)
{
    for (int i = 0; i < n->n; i++) {
        PyObject *own = PyTuple_GetItem(n->names, i);
        if (own == name || PyUnicode_Compare(own, name) == 0)
            return i;
    }
    PyErr_Format(PyExc_KeyError, "%R; the network has %R", name, n->names);
    return -1;
}

static PyObject *list_of(const int64_t *values, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value || PyTuple_SetItem(tuple, i, value) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* An item that was made goes to the list, or its failure ends it. */
static bool append(PyObject **list, PyObject *item)
{
    if (!item || PyList_Append(*list, item) != 0)
        Py_CLEAR(*list);
    Py_XDECREF(item);
    return *list != NULL;
}

PyObject *network_bindings(Network *n, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n->n; i++) {
        const strata_binding *b = &n->bindings[i];
        append(&list,
               Py_BuildValue("(sNssLO)", b->name, list_of(b->desc.dims, b->desc.rank),
                             strata_dtype_name(b->desc.dtype), b->format,
                             (long long)b->bytes, b->is_input ? Py_True : Py_False));
    }
    return list;
}

PyObject *network_dimensions(Network *n, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < strata_engine_dimensions(n->engine); i++) {
        strata_dimension d = {.struct_size = sizeof d};
        strata_engine_dimension(n->engine, i, &d, NULL);
        append(&list, Py_BuildValue("(sLLNO)", d.name, (long long)d.least,
                                    (long long)d.most, list_of(d.sizes, d.n_sizes),
                                    d.is_batch ? Py_True : Py_False));
    }
    return list;
}

PyObject *network_facts(Network *n, PyObject *unused)
{
    (void)unused;
    int64_t batches[64];
    const int count = strata_engine_batches(n->engine, batches, 64);
    return Py_BuildValue("{sssLsNsKsKsK}", "device", n->device, "batch",
                         (long long)strata_engine_batch(n->engine), "batches",
                         list_of(batches, count < 64 ? count : 64), "weight_bytes",
                         (unsigned long long)strata_engine_weight_bytes(n->engine),
                         "arena_bytes",
                         (unsigned long long)strata_engine_arena_bytes(n->engine),
                         "pinned_bytes", n->handle->pinned);
}

PyObject *network_labels(Network *n, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < strata_engine_labels(n->engine); i++)
        append(&list, PyUnicode_FromString(strata_engine_label(n->engine, i)));
    return list;
}

/* Steps whose impl came in no file: (step, layer). */
PyObject *network_given(Network *n, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < strata_engine_steps(n->engine); i++) {
        strata_step s = {.struct_size = sizeof s};
        if (strata_engine_step(n->engine, i, &s, NULL) == STRATA_OK && s.module &&
            strncmp(s.module, "memory:", strlen("memory:")) == 0)
            append(&list, Py_BuildValue("(ss)", s.name, s.layer));
    }
    return list;
}

/* Of the contexts that calls use, none of which is under way now. */
PyObject *network_stats(Network *n, PyObject *unused)
{
    (void)unused;
    unsigned long long contexts = 0, runs = 0, in = 0, out = 0, in_place = 0;
    for (const struct context *c = n->idle; c; c = c->next) {
        strata_context_stats s = {.struct_size = sizeof s};
        if (strata_context_get_stats(c->context, &s, NULL) != STRATA_OK)
            continue;
        contexts++;
        runs += s.runs;
        in += s.copied_in;
        out += s.copied_out;
        in_place += s.in_place;
    }
    return Py_BuildValue("{sKsKsKsKsK}", "contexts", contexts, "runs", runs, "copied_in",
                         in, "copied_out", out, "in_place", in_place);
}
