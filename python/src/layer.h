/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of Python functions: its tables (layer.c), how they are called (layer_run.c)
 * and by whom (layer_slot.c).
 */
#ifndef PYTHON_LAYER_H
#define PYTHON_LAYER_H

#include <strata/module.h>

#include "python/src/module.h"

enum { MOST_PORTS = STRATA_MAX_PORTS + STRATA_MORE_PORTS };
#define LAYER_CAPSULE "strata.module"

typedef struct {
    PyObject_HEAD PyObject *arguments; /* that it was made of; has all below */
    const char *name;                  /* of the module */
    PyObject *run;
    PyObject *shape, *weight_shapes, *reference; /* or None */
    int slot;
    int in_dtype, out_dtypes[MOST_PORTS]; /* of the first row */
    strata_row *rows;
    strata_attr *attrs;
    strata_weight *weights;
    strata_impl impl;
    strata_layer layer;
    const strata_layer *layers[1];
    strata_module module;
} Layer;

/* The callbacks of strata/plugin.h; the interpreter's lock is held. */
int layer_run(const Layer *l, const strata_run *r);
int layer_refer(const Layer *l, const strata_node *n, const void *const *in,
                const void *const *weight, void *const *out);
int layer_shape(const Layer *l, const strata_node *n);
int layer_shape_weights(const Layer *l, const strata_node *n, strata_tensor *expected);

/* False with an exception where all slots are taken. */
bool layer_take_slot(Layer *l);
void layer_free_slot(Layer *l);
/* The callbacks of its slot. */
void layer_connect(Layer *l);

#endif /* PYTHON_LAYER_H */
