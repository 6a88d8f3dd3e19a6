/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN handles. A handle belongs to one stream at a time, for it owns streams of its
 * own that order themselves after that one; it is locked while work is enqueued, for
 * cuDNN forbids two threads in it. Making one takes a tenth of a second and more, so they
 * are kept for later streams and never given back.
 */
#ifndef PLUGINS_CONVOLUTION_CUDNN_SESSION_H
#define PLUGINS_CONVOLUTION_CUDNN_SESSION_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "plugins/convolution/cudnn/choice.h"

struct cudnn_session {
    struct cudnn_session *next;
    pthread_mutex_t lock; /* of handle and current */
    cudnnHandle_t handle;
    cudaStream_t current; /* what the handle is set to */
    cudaStream_t stream;  /* of the users */
    int device;
    int users;
};

/* The session of a stream of the current device. Give it back with cudnn_session_close.
 */
cudnnStatus_t cudnn_session_open(cudaStream_t stream, struct cudnn_session **out);
void cudnn_session_close(struct cudnn_session *s);

/* The current device as a target to plan for; valid as long as the process. */
cudnnStatus_t cudnn_current_target(struct cudnn_target *out);

/* Enqueue a plan on a stream. */
cudnnStatus_t cudnn_session_run(struct cudnn_session *s, cudaStream_t stream,
                                struct cudnn_plan *plan, cudnnBackendDescriptor_t pack);

#endif /* PLUGINS_CONVOLUTION_CUDNN_SESSION_H */
