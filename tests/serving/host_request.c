/* SPDX-License-Identifier: Apache-2.0
 *
 * The stand-in's requests and responses.
 */
#include "tests/serving/host_private.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TRITONBACKEND_Response {
    TRITONBACKEND_Request *request;
    TRITONBACKEND_Output outputs[HOST_TENSORS];
    uint32_t n;
};

GIVES(TRITONBACKEND_RequestIsCancelled, TRITONBACKEND_Request, bool *, o->cancelled)
GIVES(TRITONBACKEND_RequestFlags, TRITONBACKEND_Request, uint32_t *, o->flags)
GIVES(TRITONBACKEND_RequestOutputCount, TRITONBACKEND_Request, uint32_t *, o->n_outputs)

TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *r, const char *name,
                                               TRITONBACKEND_Input **out)
{
    MAY_FAIL;
    for (uint32_t i = 0; i < r->n_inputs; i++)
        if (!strcmp(r->inputs[i].name, name)) {
            *out = &r->inputs[i];
            return NULL;
        }
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no such input");
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *r,
                                                    uint32_t index, const char **out)
{
    MAY_FAIL;
    *out = r->outputs[index];
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *r, uint32_t flags)
{
    cr_assert_eq(flags, (uint32_t)TRITONSERVER_REQUEST_RELEASE_ALL);
    cr_assert_eq(r->sent, 1, "released without an answer");
    cr_assert_eq(r->released++, 0, "released twice");
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *in,
                                                  const char **name,
                                                  TRITONSERVER_DataType *type,
                                                  const int64_t **dims, uint32_t *rank,
                                                  uint64_t *bytes, uint32_t *buffers)
{
    MAY_FAIL;
    if (name)
        *name = in->name;
    if (bytes)
        *bytes = 0;
    *type = in->type;
    *dims = in->dims;
    *rank = in->rank;
    *buffers = in->n;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *in, uint32_t index,
                                              const void **data, uint64_t *bytes,
                                              TRITONSERVER_MemoryType *type, int64_t *id)
{
    MAY_FAIL;
    *data = in->data[index];
    *bytes = in->bytes[index];
    *type = in->kind;
    *id = 0;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **out,
                                              TRITONBACKEND_Request *r)
{
    MAY_FAIL;
    *out = host_make(sizeof **out);
    (*out)->request = r;
    return NULL;
}

static void free_outputs(TRITONBACKEND_Response *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->outputs[i].data != p->request->place)
            free(p->outputs[i].data);
}

TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *p)
{
    free_outputs(p);
    host_drop(p);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *p,
                                                 TRITONBACKEND_Output **out,
                                                 const char *name,
                                                 TRITONSERVER_DataType type,
                                                 const int64_t *dims, uint32_t rank)
{
    MAY_FAIL;
    cr_assert(p->n < HOST_TENSORS && rank <= HOST_DIMS);
    TRITONBACKEND_Output *o = *out = &p->outputs[p->n++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->type = type;
    o->rank = rank;
    o->request = p->request;
    memcpy(o->dims, dims, rank * sizeof *dims);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *o, void **data,
                                               uint64_t bytes,
                                               TRITONSERVER_MemoryType *type, int64_t *id)
{
    MAY_FAIL;
    o->bytes = bytes;
    *type = TRITONSERVER_MEMORY_CPU;
    *id = 0;
    o->data = o->request->place ? o->request->place : host_zeroed(bytes);
    memset(o->data, 0x7f, bytes);
    *data = o->data;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *p, uint32_t flags,
                                               TRITONSERVER_Error *error)
{
    TRITONBACKEND_Request *r = p->request;
    cr_assert_eq(flags, (uint32_t)TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    cr_assert_eq(r->sent++, 0, "answered twice");
    if (error) {
        r->code = error->code;
        snprintf(r->text, sizeof r->text, "%s", error->text);
        free_outputs(p);
    } else {
        memcpy(r->answers, p->outputs, sizeof r->answers);
        r->n_answers = p->n;
    }
    host_drop(p);
    return NULL;
}
