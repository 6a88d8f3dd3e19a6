/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rest stands on: which process this is, memory, types.
 */
#include "python/src/module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Threads do not live on in a child that was forked, nor does CUDA. */
static unsigned generation;

static void count_fork(void)
{
    generation++;
}

unsigned process_generation(void)
{
    return generation;
}

bool check_process(unsigned made)
{
    if (made == generation)
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "this object was made before a fork, and its threads are the "
                    "parent's; load the network in the child, or start processes with "
                    "multiprocessing.get_context('spawn')");
    return false;
}

bool process_watch(void)
{
    return pthread_atfork(NULL, NULL, count_fork) == 0;
}

void *aligned_memory(size_t bytes)
{
    const size_t rounded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *data = rounded > bytes ? aligned_alloc(ALIGNMENT, rounded) : NULL;
    if (!data)
        PyErr_NoMemory();
    return data;
}

PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    const bool is_public = strrchr(spec->name, '.')[1] != '_';
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && is_public && PyModule_AddType(module, (PyTypeObject *)type) != 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type; /* kept as long as the process */
}
