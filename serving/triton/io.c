/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's inputs as they lie in the server's memory, in one buffer or in several, and
 * the memory that the server gives for its outputs.
 */
#include "serving/triton/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ------------------------------------------------------------------------ */

static TRITONSERVER_Error *add_piece(struct answer *a, const strata_memory *m)
{
    if (a->n_inputs == a->room) {
        const uint32_t room = a->room * 2;
        strata_memory *grown =
            room > a->room ? realloc(a->inputs, room * sizeof *grown) : NULL;
        if (!grown)
            return error_memory("a request's buffers");
        a->inputs = grown;
        a->room = room;
    }
    a->inputs[a->n_inputs++] = *m;
    return NULL;
}

static strata_memory memory_of(const void *data, uint64_t bytes,
                               TRITONSERVER_MemoryType type, int64_t id)
{
    return (strata_memory){.data = (void *)(uintptr_t)data,
                           .bytes = bytes,
                           .kind = type == TRITONSERVER_MEMORY_GPU ? STRATA_MEMORY_DEVICE
                                                                   : STRATA_MEMORY_HOST,
                           .device = (int32_t)id};
}

static TRITONSERVER_Error *wrong_shape(const struct tensor *t, TRITONSERVER_DataType type,
                                       const int64_t *dims, uint32_t rank)
{
    char ours[256], theirs[256];
    struct tensor found = {.type = type, .rank = (int32_t)rank};
    if (rank > STRATA_MAX_RANK)
        found.rank = STRATA_MAX_RANK;
    memcpy(found.dims, dims, (size_t)found.rank * sizeof *dims);
    tensor_text(ours, sizeof ours, t, 0);
    tensor_text(theirs, sizeof theirs, &found, 0);
    return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                      "input '%s' is %s; the engine's is %s", t->name, theirs, ours);
}

/* Dims but for rows, which are the part's. */
static bool shape_fits(const struct model *m, const struct tensor *t, const int64_t *dims,
                       uint32_t rank)
{
    if (rank != (uint32_t)t->rank)
        return false;
    for (int k = m->batched; k < t->rank; k++)
        if (dims[k] != t->dims[k] && (t->dims[k] >= 0 || dims[k] < 1))
            return false;
    return true;
}

static TRITONSERVER_Error *take_rows(const struct model *m, struct answer *a, int input)
{
    const int64_t rows = m->batched ? a->dims[input][0] : m->batch;
    if (rows < 1 || rows > m->batch || (input > 0 && rows != a->rows))
        return error_text(TRITONSERVER_ERROR_INVALID_ARG,
                          "input '%s' has %" PRId64
                          " rows; the engine takes 1 to %" PRId64
                          ", as many of each input",
                          m->tensors[input].name, rows, m->batch);
    a->rows = rows;
    return NULL;
}

static TRITONSERVER_Error *gather_input(const struct model *m, struct answer *a,
                                        int index)
{
    const struct tensor *t = &m->tensors[index];
    TRITONBACKEND_Input *input;
    TRITONSERVER_DataType type;
    uint32_t rank, buffers;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInput(a->request, t->name, &input);
    if (!error)
        error = TRITONBACKEND_InputProperties(input, NULL, &type, &a->dims[index], &rank,
                                              NULL, &buffers);
    if (!error && (type != t->type || !shape_fits(m, t, a->dims[index], rank)))
        error = wrong_shape(t, type, a->dims[index], rank);
    if (!error)
        error = take_rows(m, a, index);
    a->pieces[index] = 0;
    for (uint32_t k = 0; !error && k < buffers; k++) {
        TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
        int64_t id = 0;
        const void *data;
        uint64_t bytes;
        error = TRITONBACKEND_InputBuffer(input, k, &data, &bytes, &kind, &id);
        const strata_memory piece =
            error || bytes == 0 ? (strata_memory){0} : memory_of(data, bytes, kind, id);
        if (!error && bytes > 0 && !(error = add_piece(a, &piece)))
            a->pieces[index]++;
    }
    return error;
}

static TRITONSERVER_Error *check_cancelled(struct answer *a)
{
    bool cancelled = false;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestIsCancelled(a->request, &cancelled);
    return error || !cancelled
               ? error
               : error_text(TRITONSERVER_ERROR_CANCELLED, "the request was cancelled");
}

void gather(const struct instance *i, struct answer *a)
{
    const struct model *m = i->model;
    TRITONSERVER_Error *error = check_cancelled(a);
    a->n_inputs = 0;
    a->rows = m->batched ? 1 : m->batch;
    for (int k = 0; k < m->n_in && !error; k++)
        error = gather_input(m, a, k);
    if (error)
        answer_fail(a, error);
}

/* ---- outputs ----------------------------------------------------------------------- */

/* As the context's next run has it, with the rows of the answer. */
static TRITONSERVER_Error *output_shape(const struct instance *i, const struct answer *a,
                                        int index, int64_t *dims, uint64_t *bytes)
{
    const struct model *m = i->model;
    const struct tensor *t = &m->tensors[index];
    strata_binding b = {.struct_size = sizeof b};
    strata_error err;
    if (strata_context_binding(i->context, index, &b, &err) != STRATA_OK)
        return error_of(&err);
    *bytes = strata_dtype_size(b.desc.dtype);
    for (int k = 0; k < t->rank; k++) {
        dims[k] = k == 0 && m->batched ? a->rows : b.desc.dims[t->order[k]];
        *bytes *= (uint64_t)dims[k];
    }
    return NULL;
}

static TRITONSERVER_Error *make_output(struct instance *i, struct answer *a, int index)
{
    const struct tensor *t = &i->model->tensors[index];
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType type =
        i->on_gpu && !i->sequence ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
    int64_t dims[STRATA_MAX_RANK], id = type == TRITONSERVER_MEMORY_GPU ? i->device : 0;
    uint64_t bytes = 0;
    void *data = NULL;
    TRITONSERVER_Error *error = output_shape(i, a, index, dims, &bytes);
    if (!error)
        error = TRITONBACKEND_ResponseOutput(a->response, &output, t->name, t->type, dims,
                                             (uint32_t)t->rank);
    if (!error)
        error = TRITONBACKEND_OutputBuffer(output, &data, bytes, &type, &id);
    if (!error)
        a->outputs[index - i->model->n_in] = memory_of(data, bytes, type, id);
    return error;
}

static int find_output(const struct model *m, const char *name)
{
    for (int k = m->n_in; k < m->n_in + m->n_out; k++)
        if (!strcmp(m->tensors[k].name, name))
            return k;
    return -1;
}

void make_outputs(struct instance *i, struct answer *a)
{
    uint32_t n = 0;
    memset(a->outputs, 0, (size_t)i->model->n_out * sizeof *a->outputs);
    TRITONSERVER_Error *error = TRITONBACKEND_RequestOutputCount(a->request, &n);
    for (uint32_t k = 0; k < n && !error; k++) {
        const char *name;
        error = TRITONBACKEND_RequestOutputName(a->request, k, &name);
        const int index = error ? -1 : find_output(i->model, name);
        if (!error && index < 0)
            error = error_text(TRITONSERVER_ERROR_INVALID_ARG,
                               "the engine has no output '%s'", name);
        if (!error)
            error = make_output(i, a, index);
    }
    if (error)
        answer_fail(a, error);
}

strata_part part_of(const struct answer *a)
{
    return (strata_part){.struct_size = sizeof(strata_part),
                         .rows = a->rows,
                         .inputs = a->inputs,
                         .pieces = a->pieces,
                         .outputs = a->outputs};
}
