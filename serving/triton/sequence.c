/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks with states and several rows: a row is a sequence, and the server's k-th
 * request is of row k. All rows run together, as one part. Those of sequences that have
 * no step now are put aside and back; those of none begin anew each time, so that they
 * never fill up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "serving/triton/answer.h"

struct sequence {
    size_t rows, state_bytes; /* of a row, saved */
    bool *live, *ready;       /* of each row: it has a sequence, and that a step now */
    unsigned char *saved;     /* of each row */
    uint64_t *row_bytes;      /* of each tensor */
    void *zeros;              /* a row of the largest input */
    strata_memory *in, *out;  /* of a run: each row's pieces; each output's whole */
    uint32_t *pieces;
    size_t room; /* of `in` */
};

bool sequence_flag(TRITONBACKEND_Request *request, uint32_t flag)
{
    uint32_t flags = 0;
    forget(TRITONBACKEND_RequestFlags(request, &flags));
    return flags & flag;
}

/* ---- creation ---------------------------------------------------------------------- */

static int no_memory(strata_error *err)
{
    *err =
        (strata_error){.status = STRATA_ENOMEM, .message = "out of memory for sequences"};
    return STRATA_ENOMEM;
}

static int find_bytes(struct instance *i, struct sequence *s, strata_error *err)
{
    const struct model *m = i->model;
    uint64_t largest = 1;
    int status = STRATA_OK;
    for (int k = 0; k < m->n_in + m->n_out && status == STRATA_OK; k++) {
        strata_binding b = {.struct_size = sizeof b};
        status = strata_context_binding(i->context, k, &b, err);
        s->row_bytes[k] = (uint64_t)b.bytes / s->rows;
        if (k < m->n_in && s->row_bytes[k] > largest)
            largest = s->row_bytes[k];
        if (status == STRATA_OK && k >= m->n_in) {
            strata_memory *out = &s->out[k - m->n_in];
            out->bytes = (uint64_t)b.bytes;
            out->data = strata_host_alloc(i->handle, (size_t)b.bytes, err);
            status = out->data ? STRATA_OK : STRATA_ENOMEM;
        }
    }
    s->zeros = calloc(1, (size_t)largest);
    return status == STRATA_OK && !s->zeros ? no_memory(err) : status;
}

int sequence_open(struct instance *i, strata_error *err)
{
    const struct model *m = i->model;
    const size_t tensors = (size_t)(m->n_in + m->n_out);
    struct sequence *s = i->sequence = calloc(1, sizeof *s);
    if (m->varies) {
        *err = (strata_error){.status = STRATA_EUNSUPPORTED,
                              .message = "sequences of several rows whose dims vary: "
                                         "build the engine for one row"};
        return STRATA_EUNSUPPORTED;
    }
    if (!s)
        return no_memory(err);
    s->rows = (size_t)m->batch;
    s->state_bytes = strata_context_state_bytes(i->context, 0);
    s->room = s->rows * (size_t)m->n_in;
    s->live = calloc(s->rows, sizeof *s->live);
    s->ready = calloc(s->rows, sizeof *s->ready);
    s->saved = calloc(s->rows, s->state_bytes);
    s->row_bytes = calloc(tensors, sizeof *s->row_bytes);
    s->in = calloc(s->room, sizeof *s->in);
    s->out = calloc(tensors, sizeof *s->out);
    s->pieces = calloc(tensors, sizeof *s->pieces);
    return s->live && s->ready && s->saved && s->row_bytes && s->in && s->out && s->pieces
               ? find_bytes(i, s, err)
               : no_memory(err);
}

void sequence_close(struct instance *i)
{
    struct sequence *s = i->sequence;
    if (!s)
        return;
    for (int k = 0; s->out && k < i->model->n_out; k++)
        strata_host_free(i->handle, s->out[k].data, (size_t)s->out[k].bytes);
    free(s->live);
    free(s->ready);
    free(s->saved);
    free(s->row_bytes);
    free(s->zeros);
    free(s->in);
    free(s->out);
    free(s->pieces);
    free(s);
    i->sequence = NULL;
}

/* ---- rows -------------------------------------------------------------------------- */

/* Whether the server says so; where it has no word for it, all are. */
static bool is_ready(const struct model *m, TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    const void *data = NULL;
    uint64_t bytes = 0;
    int64_t id = 0;
    int32_t value = 0;
    TRITONSERVER_Error *error =
        m->ready ? TRITONBACKEND_RequestInput(request, m->ready, &input) : NULL;
    if (m->ready && !error)
        error = TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &type, &id);
    if (data && bytes >= sizeof value && type != TRITONSERVER_MEMORY_GPU)
        memcpy(&value, data, sizeof value);
    forget(error);
    return value != 0 || !m->ready;
}

/* A step of a sequence that has begun; else it is none. */
static bool take_step(struct instance *i, struct answer *a, size_t row)
{
    struct sequence *s = i->sequence;
    if (!a->response || !is_ready(i->model, a->request))
        return false;
    if (sequence_flag(a->request, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)) {
        s->live[row] = false; /* its row begins anew */
    } else if (!s->live[row]) {
        answer_fail(a, error_text(TRITONSERVER_ERROR_UNAVAILABLE,
                                  "%s: the sequence is not known, or was lost when a run "
                                  "failed; begin it anew",
                                  i->model->name));
        return false;
    }
    make_outputs(i, a);
    for (int k = 0; k < i->model->n_out; k++)
        if (a->outputs[k].kind == STRATA_MEMORY_DEVICE)
            answer_fail(a, error_text(TRITONSERVER_ERROR_UNSUPPORTED,
                                      "%s: outputs of sequences go to memory of the host",
                                      i->model->name));
    return a->response;
}

static int set_states(struct instance *i, strata_error *err)
{
    struct sequence *s = i->sequence;
    int status = STRATA_OK;
    for (size_t r = 0; r < s->rows && status == STRATA_OK; r++)
        if (!s->live[r])
            status = strata_context_reset_state(i->context, (int64_t)r, err);
        else if (!s->ready[r])
            status = strata_context_save_state(i->context, (int64_t)r,
                                               s->saved + r * s->state_bytes,
                                               s->state_bytes, err);
    return status;
}

static int put_back(struct instance *i, strata_error *err)
{
    struct sequence *s = i->sequence;
    int status = STRATA_OK;
    for (size_t r = 0; r < s->rows && status == STRATA_OK; r++)
        if (s->live[r] && !s->ready[r])
            status = strata_context_restore_state(i->context, (int64_t)r,
                                                  s->saved + r * s->state_bytes,
                                                  s->state_bytes, err);
    return status;
}

/* ---- a run ------------------------------------------------------------------------- */

/* An answer's pieces of an input. */
static const strata_memory *pieces_of(const struct answer *a, int index)
{
    const strata_memory *first = a->inputs;
    for (int k = 0; k < index; k++)
        first += a->pieces[k];
    return first;
}

static int add_pieces(struct sequence *s, size_t *at, const strata_memory *m, uint32_t n,
                      strata_error *err)
{
    if (*at + n > s->room) {
        const size_t room = (*at + n) * 2;
        strata_memory *grown = realloc(s->in, room * sizeof *grown);
        if (!grown)
            return no_memory(err);
        s->in = grown;
        s->room = room;
    }
    memcpy(s->in + *at, m, n * sizeof *m);
    *at += n;
    return STRATA_OK;
}

/* Each input's rows, one behind the other. */
static int gather_rows(struct instance *i, strata_error *err)
{
    struct sequence *s = i->sequence;
    size_t at = 0;
    int status = STRATA_OK;
    for (int k = 0; k < i->model->n_in; k++) {
        const size_t first = at;
        const strata_memory nothing = {.data = s->zeros, .bytes = s->row_bytes[k]};
        for (size_t r = 0; r < s->rows && status == STRATA_OK; r++) {
            const struct answer *a = &i->answers[r];
            status = s->ready[r] ? add_pieces(s, &at, pieces_of(a, k), a->pieces[k], err)
                                 : add_pieces(s, &at, &nothing, 1, err);
        }
        s->pieces[k] = (uint32_t)(at - first);
    }
    return status;
}

static void scatter_rows(struct instance *i)
{
    const struct model *m = i->model;
    struct sequence *s = i->sequence;
    for (size_t r = 0; r < s->rows; r++)
        for (int k = 0; s->ready[r] && k < m->n_out; k++) {
            const size_t bytes = (size_t)s->row_bytes[m->n_in + k];
            if (i->answers[r].outputs[k].data)
                memcpy(i->answers[r].outputs[k].data, (char *)s->out[k].data + r * bytes,
                       bytes);
        }
}

static int run_rows(struct instance *i, strata_error *err)
{
    struct sequence *s = i->sequence;
    int status = set_states(i, err);
    if (status == STRATA_OK)
        status = gather_rows(i, err);
    if (status != STRATA_OK)
        return status;
    strata_part part = {.struct_size = sizeof part,
                        .rows = (int64_t)s->rows,
                        .inputs = s->in,
                        .pieces = s->pieces,
                        .outputs = s->out};
    status = strata_context_run_parts(i->context, &part, 1, err);
    return status == STRATA_OK ? put_back(i, err) : status;
}

/* States are half changed: no sequence can go on. */
static void lose_all(struct instance *i, const strata_error *err)
{
    struct sequence *s = i->sequence;
    strata_context_reset_state(i->context, STRATA_ALL_ROWS, NULL);
    for (size_t r = 0; r < s->rows; r++) {
        s->live[r] = false;
        if (s->ready[r])
            answer_fail_status(&i->answers[r], err);
    }
}

void sequence_run(struct instance *i, uint32_t n)
{
    struct sequence *s = i->sequence;
    strata_error err;
    bool any = false;
    for (size_t r = 0; r < s->rows; r++)
        any |= s->ready[r] = r < n && take_step(i, &i->answers[r], r);
    if (!any)
        return;
    if (run_rows(i, &err) != STRATA_OK) {
        lose_all(i, &err);
        return;
    }
    scatter_rows(i);
    for (size_t r = 0; r < s->rows; r++)
        if (s->ready[r])
            s->live[r] = !sequence_flag(i->answers[r].request,
                                        TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);
}
