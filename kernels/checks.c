/* SPDX-License-Identifier: Apache-2.0
 *
 * What `strata check` needs to see whether a layer keeps to its stream.
 */
#include "kernels/delay.h"
#include "kernels/stream.h"

static int blocking_stream(struct device *base, strata_stream **out, strata_error *err)
{
    return cuda_stream_make(base, cudaStreamDefault, out, err);
}

static int delay(strata_stream *s, double ms, strata_error *err)
{
    struct cuda_device *d = cuda_device(s->device);
    int status = cuda_enter(d, err);
    return status != STRATA_OK
               ? status
               : cuda_status(d,
                             (cudaError_t)delay_cuda_launch(ms, cuda_stream(s)->native),
                             "launching a delay", err);
}

static int capture_begin(strata_stream *s, strata_error *err)
{
    return cuda_capture(s, cudaStreamCaptureModeGlobal, err);
}

const struct device_checks cuda_checks = {
    .blocking_stream = blocking_stream,
    .delay = delay,
    .capture_begin = capture_begin,
};
