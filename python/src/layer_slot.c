/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that know a number: the library's callbacks get no pointer of ours, so each
 * layer has a set of them. Here the interpreter's lock is taken.
 */
#include <string.h>

#include "python/src/layer.h"

enum { SLOTS = 128 };

/* Changed with the lock held; a layer's tables end after all registries that have them.
 */
static Layer *slots[SLOTS];

static int any_run(int slot, const strata_run *r)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const int status = layer_run(slots[slot], r);
    PyGILState_Release(state);
    return status;
}

static int any_shape(int slot, const strata_node *n)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const int status = layer_shape(slots[slot], n);
    PyGILState_Release(state);
    return status;
}

static int any_weight_shape(int slot, const strata_node *n, strata_tensor *expected)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const int status = layer_shape_weights(slots[slot], n, expected);
    PyGILState_Release(state);
    return status;
}

static int any_reference(int slot, const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const int status = layer_refer(slots[slot], n, in, weight, out);
    PyGILState_Release(state);
    return status;
}

struct callbacks {
    int (*run)(const strata_run *r);
    int (*shape)(const strata_node *n);
    int (*weight_shape)(const strata_node *n, strata_tensor *expected);
    const void *(*extension)(const char *id);
};

/* The numbers are octal, so that eight times eight of them can be written by pasting. */
#define SLOT(k)                                                                          \
    static int run_##k(const strata_run *r)                                              \
    {                                                                                    \
        return any_run(k, r);                                                            \
    }                                                                                    \
    static int shape_##k(const strata_node *n)                                           \
    {                                                                                    \
        return any_shape(k, n);                                                          \
    }                                                                                    \
    static int weight_shape_##k(const strata_node *n, strata_tensor *expected)           \
    {                                                                                    \
        return any_weight_shape(k, n, expected);                                         \
    }                                                                                    \
    static int reference_##k(const strata_node *n, const void *const *in,                \
                             const void *const *weight, void *const *out)                \
    {                                                                                    \
        return any_reference(k, n, in, weight, out);                                     \
    }                                                                                    \
    static const void *extension_##k(const char *id)                                     \
    {                                                                                    \
        static const strata_reference_typed table = {sizeof table, 0, reference_##k};    \
        return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &table : NULL;                     \
    }
#define EIGHT(make, k)                                                                   \
    make(k##0) make(k##1) make(k##2) make(k##3) make(k##4) make(k##5) make(k##6)         \
        make(k##7)
#define ALL(make)                                                                        \
    EIGHT(make, 00)                                                                      \
    EIGHT(make, 01)                                                                      \
    EIGHT(make, 02)                                                                      \
    EIGHT(make, 03)                                                                      \
    EIGHT(make, 04)                                                                      \
    EIGHT(make, 05)                                                                      \
    EIGHT(make, 06)                                                                      \
    EIGHT(make, 07)                                                                      \
    EIGHT(make, 010)                                                                     \
    EIGHT(make, 011)                                                                     \
    EIGHT(make, 012)                                                                     \
    EIGHT(make, 013)                                                                     \
    EIGHT(make, 014)                                                                     \
    EIGHT(make, 015)                                                                     \
    EIGHT(make, 016)                                                                     \
    EIGHT(make, 017)
ALL(SLOT)
#define CALLBACKS(k) {run_##k, shape_##k, weight_shape_##k, extension_##k},
static const struct callbacks callbacks[SLOTS] = {ALL(CALLBACKS)};

bool layer_take_slot(Layer *l)
{
    for (int i = 0; i < SLOTS; i++)
        if (!slots[i]) {
            slots[i] = l;
            l->slot = i;
            return true;
        }
    PyErr_Format(PyExc_RuntimeError,
                 "%d layers in Python are alive, which is the most; remove() some, and "
                 "drop the networks that have them",
                 SLOTS);
    return false;
}

void layer_free_slot(Layer *l)
{
    if (l->slot >= 0)
        slots[l->slot] = NULL;
}

void layer_connect(Layer *l)
{
    const struct callbacks *c = &callbacks[l->slot];
    l->impl.run = c->run;
    l->layer.shape = c->shape;
    l->layer.weight_shape = l->weight_shapes == Py_None ? NULL : c->weight_shape;
    l->layer.extension = l->reference == Py_None ? NULL : c->extension;
}
