/* SPDX-License-Identifier: Apache-2.0
 *
 * Trial: adds a number, on CUDA in ways that a context has to cope with. A network picks
 * one by the impl's name. All elements are alike, so every layout will do.
 */
#include <cuda_runtime_api.h>
#include <strata/plugin.h>

#include "tests/modules/cuda_trial.h"

struct trial {
    double add;
};

static int check(const strata_run *r, int result)
{
    return result == cudaSuccess ? STRATA_OK
                                 : STRATA_FAIL(r, STRATA_EDEVICE, "launch: %s",
                                               cudaGetErrorString((cudaError_t)result));
}

static int run_kernel(const strata_run *r)
{
    const struct trial *p = r->params;
    return check(r, trial_add(r->out[0].data, r->in[0].data, r->out[0].size,
                              (float)p->add, r->stream));
}

/* Waits for its own work, which no graph can hold. */
static int run_waiting(const strata_run *r)
{
    int status = run_kernel(r);
    cudaStreamSynchronize(r->stream);
    return status;
}

static int run_refusing(const strata_run *r)
{
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(r->stream, &state);
    if (state != cudaStreamCaptureStatusNone)
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED, "not while a graph is made");
    return run_kernel(r);
}

static int run_slowly(const strata_run *r)
{
    int status = check(r, trial_wait(INT64_C(50000000), r->stream));
    return status == STRATA_OK ? run_kernel(r) : status;
}

static int run_faulting(const strata_run *r)
{
    return check(r, trial_fault(r->stream));
}

static int run_on_host(const strata_run *r)
{
    const struct trial *p = r->params;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    for (int64_t i = 0; i < r->out[0].size; i++)
        y[i] = x[i] + (float)p->add;
    return STRATA_OK;
}

static const strata_attr attrs[] = {
    {.name = "add",
     .type = STRATA_F64,
     .offset = offsetof(struct trial, add),
     .def = 1,
     .doc = "what is added to every element"},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW | STRATA_F32_NHWC}, {STRATA_SAME}}};
#define IMPL(id_, device_, name_, flags_, run_)                                          \
    {                                                                                    \
        .id = id_, .device = device_, .name = name_, .flags = flags_,                    \
        .rows = STRATA_ARRAY(rows), .run = run_                                          \
    }
static const strata_impl impls[] = {
    IMPL(1, STRATA_HOST, "c", 0, run_on_host),
    IMPL(2, STRATA_CUDA, "kernel", 0, run_kernel),
    IMPL(3, STRATA_CUDA, "apart", STRATA_NO_CAPTURE, run_waiting),
    IMPL(4, STRATA_CUDA, "waiting", 0, run_waiting),
    IMPL(5, STRATA_CUDA, "refusing", 0, run_refusing),
    IMPL(6, STRATA_CUDA, "slow", 0, run_slowly),
    IMPL(7, STRATA_CUDA, "faulting", 0, run_faulting),
};
static const strata_layer trial = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Trial",
    .doc = "Adds a number to every element.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(struct trial),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
};
static const strata_layer *const layers[] = {&trial};
STRATA_MODULE("test", "1.0.0", "Trial", layers)
