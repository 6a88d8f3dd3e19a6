/* SPDX-License-Identifier: Apache-2.0
 *
 * stack(arrays, out): rows from anywhere into one tensor, with the interpreter's lock
 * free from the first to the last. Copied one by one from Python, each would give the
 * lock away and stand in line for it again, which takes longer than copying an image.
 */
#include "python/src/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 }; /* bytes from which memcpy is worth a call */

struct stack {
    struct array out;
    struct array *rows;
    Py_ssize_t n, n_taken;
    strata_desc row; /* of out */
};

static bool take_out(struct stack *s, PyObject *out)
{
    if (!array_take(&s->out, out, "out", true, NULL))
        return false;
    const strata_desc *d = &s->out.desc;
    if (s->out.device == DL_CUDA) {
        PyErr_SetString(PyExc_BufferError, "'out' is on a GPU; stack into pinned memory");
        return false;
    }
    if (d->rank < 2 || s->n > d->dims[0]) {
        PyErr_Format(PyExc_ValueError, "%zd arrays do not fit 'out', which has %lld rows",
                     s->n, d->rank < 2 ? 0 : (long long)d->dims[0]);
        return false;
    }
    s->row = *d;
    s->row.rank--;
    memmove(s->row.dims, d->dims + 1, (size_t)s->row.rank * sizeof *d->dims);
    memmove(s->row.strides, d->strides + 1, (size_t)s->row.rank * sizeof *d->strides);
    return true;
}

static bool check_row(const struct stack *s, const struct array *a, const char *name)
{
    bool same = a->desc.rank == s->row.rank;
    for (int i = 0; i < s->row.rank && same; i++)
        same = a->desc.dims[i] == s->row.dims[i];
    if (!same)
        PyErr_Format(PyExc_ValueError, "%s has another shape than the rows of 'out'",
                     name);
    else if (a->device == DL_CUDA)
        PyErr_Format(PyExc_BufferError, "%s is on a GPU", name);
    else if (a->desc.dtype != s->row.dtype)
        PyErr_Format(PyExc_TypeError, "%s is %s, 'out' is %s", name,
                     strata_dtype_name(a->desc.dtype), strata_dtype_name(s->row.dtype));
    else
        return true;
    return false;
}

static bool take_rows(struct stack *s, PyObject *arrays)
{
    s->rows = calloc((size_t)s->n + 1, sizeof *s->rows);
    if (!s->rows)
        return PyErr_NoMemory() != NULL;
    while (s->n_taken < s->n) {
        struct array *a = &s->rows[s->n_taken];
        char name[48];
        snprintf(name, sizeof name, "arrays[%lld]", (long long)s->n_taken);
        if (!array_take(a, PyTuple_GetItem(arrays, s->n_taken), name, false, NULL))
            return false;
        s->n_taken++;
        if (!check_row(s, a, name))
            return false;
    }
    return true;
}

/* Lines that are contiguous on both sides, as crops of images are. */
struct lines {
    int n; /* dims around a line */
    int64_t dims[STRATA_MAX_RANK], to[STRATA_MAX_RANK], from[STRATA_MAX_RANK]; /* bytes */
    size_t bytes;
};

static bool find_lines(struct lines *l, const strata_desc *to, const strata_desc *from)
{
    const int64_t size = (int64_t)strata_dtype_size(to->dtype);
    bool taken[STRATA_MAX_RANK] = {false};
    *l = (struct lines){.bytes = (size_t)size};
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = 0; i < to->rank; i++) {
            if (taken[i] || to->strides[i] * size != (int64_t)l->bytes ||
                from->strides[i] * size != (int64_t)l->bytes || to->dims[i] < 2)
                continue;
            l->bytes *= (size_t)to->dims[i];
            taken[i] = grown = true;
        }
    }
    for (int i = 0; i < to->rank; i++) {
        if (taken[i] || to->dims[i] == 1)
            continue;
        l->dims[l->n] = to->dims[i];
        l->to[l->n] = to->strides[i] * size;
        l->from[l->n++] = from->strides[i] * size;
    }
    return l->bytes >= LINE;
}

static void copy_lines(const struct lines *l, int dim, char *to, const char *from)
{
    if (dim == l->n)
        memcpy(to, from, l->bytes);
    else
        for (int64_t i = 0; i < l->dims[dim]; i++)
            copy_lines(l, dim + 1, to + i * l->to[dim], from + i * l->from[dim]);
}

static int copy_rows(const struct stack *s, strata_error *err)
{
    const int64_t step =
        s->out.desc.strides[0] * (int64_t)strata_dtype_size(s->row.dtype);
    int status = STRATA_OK;
    for (Py_ssize_t i = 0; i < s->n && status == STRATA_OK; i++) {
        const struct array *a = &s->rows[i];
        struct lines lines;
        if (find_lines(&lines, &s->row, &a->desc))
            copy_lines(&lines, 0, s->out.data + i * step, a->data);
        else
            status =
                strata_reformat(&s->row, s->out.data + i * step, &a->desc, a->data, err);
    }
    return status;
}

PyObject *stack(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    struct stack s = {0};
    strata_error err;
    int status = STRATA_OK;
    (void)module;
    if (n_args != 2) {
        PyErr_SetString(PyExc_TypeError, "stack() takes arrays, and the tensor for them");
        return NULL;
    }
    PyObject *arrays = PySequence_Tuple(args[0]);
    if (!arrays)
        return NULL;
    s.n = PyTuple_Size(arrays);
    const bool taken = take_out(&s, args[1]) && take_rows(&s, arrays);
    if (taken) {
        Py_BEGIN_ALLOW_THREADS status = copy_rows(&s, &err);
        Py_END_ALLOW_THREADS
    }
    for (Py_ssize_t i = 0; i < s.n_taken; i++)
        array_release(&s.rows[i]);
    free(s.rows);
    array_release(&s.out);
    Py_DECREF(arrays);
    if (status != STRATA_OK)
        return raise_error(&err);
    return taken ? Py_NewRef(Py_None) : NULL;
}
