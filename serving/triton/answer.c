/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and their responses: begun together, sent once each, released once each.
 */
#include "serving/triton/answer.h"

#include <stdlib.h>
#include <time.h>

uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int answer_open(struct answer *a, const struct model *m, strata_error *err)
{
    const size_t in = (size_t)m->n_in, out = (size_t)m->n_out;
    a->dims = calloc(in + 1, sizeof *a->dims);
    a->pieces = calloc(in + 1, sizeof *a->pieces);
    a->inputs = calloc(in + 1, sizeof *a->inputs);
    a->outputs = calloc(out + 1, sizeof *a->outputs);
    a->room = (uint32_t)in + 1;
    if (a->dims && a->pieces && a->inputs && a->outputs)
        return STRATA_OK;
    *err =
        (strata_error){.status = STRATA_ENOMEM, .message = "out of memory for requests"};
    return STRATA_ENOMEM;
}

void answer_close(struct answer *a)
{
    free(a->dims);
    free(a->pieces);
    free(a->inputs);
    free(a->outputs);
}

/* ---- responses --------------------------------------------------------------------- */

TRITONSERVER_Error *answers_begin(struct answer *list, TRITONBACKEND_Request **requests,
                                  uint32_t n)
{
    TRITONSERVER_Error *error = NULL;
    uint32_t made = 0;
    for (; made < n && !error; made += !error) {
        struct answer *a = &list[made];
        a->request = requests[made];
        a->response = NULL;
        a->well = a->taken = false;
        error = TRITONBACKEND_ResponseNew(&a->response, a->request);
    }
    for (uint32_t i = 0; i < made && error; i++)
        forget(TRITONBACKEND_ResponseDelete(list[i].response));
    return error;
}

void answer_send(struct answer *a)
{
    if (!a->response)
        return;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseSend(
        a->response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL);
    a->response = NULL;
    a->well = !error;
    forget(error);
}

void answer_fail(struct answer *a, TRITONSERVER_Error *error)
{
    if (a->response)
        forget(TRITONBACKEND_ResponseSend(a->response,
                                          TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    a->response = NULL;
    forget(error);
}

void answer_fail_status(struct answer *a, const strata_error *err)
{
    answer_fail(a, error_of(err));
}

/* ---- the end ----------------------------------------------------------------------- */

static void release(const struct instance *i, struct answer *a, const struct times *t)
{
    forget(TRITONBACKEND_ModelInstanceReportStatistics(
        i->triton, a->request, a->well, t->begun, t->computing, t->computed, t->ended));
    forget(TRITONBACKEND_RequestRelease(a->request, TRITONSERVER_REQUEST_RELEASE_ALL));
    a->request = NULL;
}

void answers_end(struct instance *i, struct answer *list, uint32_t n,
                 const struct times *times)
{
    int64_t rows = 0;
    for (uint32_t k = 0; k < n; k++) {
        rows += list[k].well ? i->model->batched ? list[k].rows : 1 : 0;
        release(i, &list[k], times);
    }
    if (rows > 0)
        forget(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            i->triton, (uint64_t)rows, times->begun, times->computing, times->computed,
            times->ended));
}
