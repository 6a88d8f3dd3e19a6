/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's cuDNN handles, by device and stream.
 */
#include "plugins/convolution/cudnn/session.h"

#include <stdlib.h>

static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cudnn_session *sessions;

static cudnnStatus_t create(int device, struct cudnn_session **out)
{
    struct cudnn_session *s = calloc(1, sizeof *s);
    cudnnStatus_t status;
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    if ((status = cudnnCreate(&s->handle)) != CUDNN_STATUS_SUCCESS) {
        pthread_mutex_destroy(&s->lock);
        free(s);
        return status;
    }
    s->device = device;
    s->next = sessions;
    sessions = s;
    *out = s;
    return CUDNN_STATUS_SUCCESS;
}

/* One in use by this stream, else an idle one. */
static struct cudnn_session *find(int device, cudaStream_t stream)
{
    struct cudnn_session *idle = NULL;
    for (struct cudnn_session *s = sessions; s; s = s->next) {
        if (s->device != device)
            continue;
        if (s->users > 0 && s->stream == stream)
            return s;
        if (s->users == 0)
            idle = s;
    }
    return idle;
}

cudnnStatus_t cudnn_session_open(cudaStream_t stream, struct cudnn_session **out)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    int device;
    if (cudaGetDevice(&device) != cudaSuccess)
        return CUDNN_STATUS_NOT_INITIALIZED;
    pthread_mutex_lock(&sessions_lock);
    struct cudnn_session *s = find(device, stream);
    if (!s)
        status = create(device, &s);
    if (status == CUDNN_STATUS_SUCCESS) {
        s->stream = stream;
        s->users++;
        *out = s;
    }
    pthread_mutex_unlock(&sessions_lock);
    return status;
}

void cudnn_session_close(struct cudnn_session *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&sessions_lock);
    s->users--;
    pthread_mutex_unlock(&sessions_lock);
}

/* Any handle of the device serves: planning enqueues nothing. */
cudnnStatus_t cudnn_current_target(struct cudnn_target *out)
{
    struct cudnn_session *s;
    cudnnStatus_t status = cudnn_session_open(NULL, &s);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    *out = (struct cudnn_target){.device = s->device, .handle = s->handle};
    cudnn_session_close(s);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_session_run(struct cudnn_session *s, cudaStream_t stream,
                                struct cudnn_plan *plan, cudnnBackendDescriptor_t pack)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    pthread_mutex_lock(&s->lock);
    pthread_mutex_lock(&plan->lock);
    if (s->current != stream)
        status = cudnnSetStream(s->handle, stream);
    if (status == CUDNN_STATUS_SUCCESS) {
        s->current = stream;
        status = cudnnBackendExecute(s->handle, plan->descriptor, pack);
    }
    pthread_mutex_unlock(&plan->lock);
    pthread_mutex_unlock(&s->lock);
    return status;
}
