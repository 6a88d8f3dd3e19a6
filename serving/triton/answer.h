/* SPDX-License-Identifier: Apache-2.0
 *
 * A request on its way through a run. Until every request of a batch has a response, the
 * batch is the server's: an error is returned, and all of it is as it was. From then on
 * the requests are ours, and every failure goes into a response. A response is sent once,
 * and is NULL from then on; a request is released once, after its statistics.
 */
#ifndef SERVING_TRITON_ANSWER_H
#define SERVING_TRITON_ANSWER_H

#include "serving/triton/backend.h"

struct answer {
    TRITONBACKEND_Request *request;
    TRITONBACKEND_Response *response; /* NULL: sent */
    bool well;                        /* sent, with outputs */
    bool taken;                       /* it is in a run already */
    int64_t rows;
    const int64_t **dims;    /* of each input, with the rows; the server's */
    strata_memory *inputs;   /* pieces of all inputs */
    uint32_t n_inputs, room; /* pieces, and room for them */
    uint32_t *pieces;        /* of each input */
    strata_memory *outputs;  /* one each */
};

/* ---- answer.c ---------------------------------------------------------------------- */

int answer_open(struct answer *a, const struct model *m, strata_error *err);
void answer_close(struct answer *a);
/* Responses for all requests, or none. */
TRITONSERVER_Error *answers_begin(struct answer *list, TRITONBACKEND_Request **requests,
                                  uint32_t n);
void answer_send(struct answer *a);
/* Sends a failure; the first takes the error. Nothing, if it is sent already. */
void answer_fail(struct answer *a, TRITONSERVER_Error *error);
void answer_fail_status(struct answer *a, const strata_error *err);

/* Monotonic nanoseconds of an execution. */
struct times {
    uint64_t begun, computing, computed, ended;
};
uint64_t now(void);
/* Statistics of each and of all of them, then every request is released. */
void answers_end(struct instance *i, struct answer *list, uint32_t n,
                 const struct times *times);

/* ---- sender.c ---------------------------------------------------------------------- */

/* Sends all that are not sent yet, by the backend's threads too; on return all are. */
void senders_send(struct senders *s, struct answer *answers, uint32_t n);

/* ---- io.c -------------------------------------------------------------------------- */

/* The request's inputs, checked, their memory as it lies. What is wrong fails it. */
void gather(const struct instance *i, struct answer *a);
/* The outputs that it wants, of the shapes that the context is set to. */
void make_outputs(struct instance *i, struct answer *a);
/* The part of an answer. */
strata_part part_of(const struct answer *a);

#endif /* SERVING_TRITON_ANSWER_H */
