/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA device module's entry: is there a driver, a GPU, is it one we can use; its
 * properties; the table of operations.
 */
#include "kernels/device.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "kernels/reformat/reformat.h"

#define EXPORT __attribute__((visibility("default")))
#define LEAST_SM 75 /* what this toolkit still compiles for */
#define HOPPER_SM 90

/* Dense multiply-add rates per multiprocessor and clock, by compute capability; the rest
 * is read off the device. FP32 on the ordinary units, FP16 and INT8 on tensor cores. */
static const struct chip {
    int sm; /* and later, up to the next row */
    double fp32, fp16, int8;
} chips[] = {
    {120, 128, 1024, 2048}, {100, 128, 4096, 8192}, {90, 128, 2048, 4096},
    {89, 128, 512, 1024},   {86, 128, 512, 1024},   {80, 64, 1024, 2048},
    {0, 64, 512, 1024},
};

static int attribute(int index, enum cudaDeviceAttr name)
{
    int value = 0;
    cudaDeviceGetAttribute(&value, name, index);
    return value;
}

static void read_properties(struct cuda_device *d, const struct cudaDeviceProp *from)
{
    struct device_properties *out = &d->properties;
    const struct chip *chip = chips;
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, from->name);
    out->kind = STRATA_CUDA;
    out->index = d->index;
    out->cache_bytes = from->l2CacheSize;
    out->sm = from->major * 10 + from->minor;
    int driver = 0;
    cudaDriverGetVersion(&driver);
    snprintf(out->build, sizeof out->build, "%.36s, sm %d, driver %d.%d", out->name,
             out->sm, driver / 1000, driver % 1000 / 10);
    out->threads = from->multiProcessorCount;
    while (out->sm < chip->sm)
        chip++;
    /* Attributes are in kHz. A multiply-add counts two. */
    const double clock = 1e3 * attribute(d->index, cudaDevAttrClockRate);
    const double rate = 2 * clock * out->threads;
    out->flops[STRATA_FP32] = rate * chip->fp32;
    out->flops[STRATA_FP16] = rate * chip->fp16;
    out->flops[STRATA_INT8] = out->flops[STRATA_UINT8] = rate * chip->int8;
    out->flops[STRATA_INT32] = rate * chip->fp32 / 2;
    out->flops[STRATA_BF16] = out->flops[STRATA_FP16];
    out->flops[STRATA_E4M3] = out->flops[STRATA_E5M2] = out->flops[STRATA_INT8];
    out->flops[STRATA_FP64] = rate * chip->fp32 / 2;
    out->flops[STRATA_INT64] = out->flops[STRATA_BOOL8] = rate * chip->fp32 / 4;
    /* Two transfers a clock; about nine tenths of it can be had. */
    out->bandwidth = 0.9 * 2e3 * attribute(d->index, cudaDevAttrMemoryClockRate) *
                     attribute(d->index, cudaDevAttrGlobalMemoryBusWidth) / 8;
    out->launch_ns = 2500;
}

static void properties(struct device *d, struct device_properties *out)
{
    *out = cuda_device(d)->properties;
}

static void close_device(struct device *base)
{
    cuda_memory_close(cuda_device(base));
    free(base);
}

static const struct device_ops ops = {
    .close = close_device,
    .properties = properties,
    .memory = cuda_memory,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_wait = cuda_stream_wait,
    .submit = cuda_submit,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .lead = cuda_lead,
    .reformat = cuda_reformat,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed = cuda_event_elapsed,
    .stream_native = cuda_stream_native,
    .stream_wrap = cuda_stream_wrap,
    .event_wrap = cuda_event_wrap,
    .event_native = cuda_event_native,
    .host_memory = cuda_host_memory,
    .is_pinned = cuda_is_pinned,
    .free_bytes = cuda_free_bytes,
    .check = cuda_check,
    .reformat_rows = reformat_cuda_rows,
    .reformat_row_name = reformat_cuda_row_name,
    .reformat_choose = reformat_cuda_choose,
    .reformat_row = cuda_reformat_row,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
    .checks = &cuda_checks,
    .range_begin = cuda_range_begin,
    .range_end = cuda_range_end,
};

static int check_driver(strata_error *err)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "this machine has no NVIDIA driver (libcuda.so.1 cannot be "
                         "loaded); install one for CUDA %d.%d or later, or use device "
                         "host",
                         runtime / 1000, runtime % 1000 / 10);
    if (driver / 1000 < runtime / 1000)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "the NVIDIA driver supports CUDA %d.%d, and %d.%d is needed; "
                         "install a newer driver, or use device host",
                         driver / 1000, driver % 1000 / 10, runtime / 1000,
                         runtime % 1000 / 10);
    return STRATA_OK;
}

static int check_index(int index, strata_error *err)
{
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    cudaGetLastError();
    if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0))
        return error_set(err, STRATA_EUNSUPPORTED,
                         "the NVIDIA driver finds no GPU here (CUDA_VISIBLE_DEVICES may "
                         "hide it); use device host");
    if (result != cudaSuccess)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "the NVIDIA driver cannot be used: %s (%s); see nvidia-smi, or "
                         "use device host",
                         cudaGetErrorString(result), cudaGetErrorName(result));
    if (index >= count || index >= CUDA_DEVICES)
        return error_set(err, STRATA_EUNSUPPORTED, "there %s %d GPU%s, from cuda:0 on",
                         count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
    return STRATA_OK;
}

/* Impls are chosen by the chip. The driver compiles an older chip's PTX for it, in which
 * what they use of 9.0 is left out: they would compute nothing, and say nothing. */
static int check_chip(const struct cudaDeviceProp *found, strata_error *err)
{
    if (found->major * 10 + found->minor < LEAST_SM)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s has compute capability %d.%d; %d.%d or later is needed",
                         found->name, found->major, found->minor, LEAST_SM / 10,
                         LEAST_SM % 10);
    if (found->major * 10 >= HOPPER_SM && CUDA_NEWEST_ARCH < HOPPER_SM)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s has compute capability %d.%d, and this build's kernels are "
                         "compiled for %d.%d at most; configure it with "
                         "--with-cuda-arch=90 or later",
                         found->name, found->major, found->minor, CUDA_NEWEST_ARCH / 10,
                         CUDA_NEWEST_ARCH % 10);
    return STRATA_OK;
}

static int open_device(struct cuda_device *d, strata_error *err)
{
    struct cudaDeviceProp found;
    int status = cuda_enter(d, err);
    if (status == STRATA_OK)
        status = cuda_status(d, cudaGetDeviceProperties(&found, d->index),
                             "reading its properties", err);
    if (status == STRATA_OK)
        status = check_chip(&found, err);
    if (status != STRATA_OK)
        return status;
    read_properties(d, &found);
    return cuda_memory_open(d, err);
}

/* The part of core/device.h that both sides were built with. */
static int check_abi(const struct device_abi *abi, strata_error *err)
{
    const struct device_abi here = DEVICE_ABI_HERE;
    if (memcmp(abi, &here, sizeof here) == 0)
        return STRATA_OK;
    return error_set(err, STRATA_EMODULE,
                     "strata-cuda.so and libstrata are of different builds (interface %u "
                     "of %u bytes, needed %u of %u); install both from one",
                     here.version, here.ops_size, abi->version, abi->ops_size);
}

EXPORT device_entry strata_device_open_v1;
int strata_device_open_v1(const struct device_abi *abi, struct device **out, int index,
                          strata_error *err)
{
    struct cuda_device *d = NULL;
    int status;
    if ((status = check_abi(abi, err)) != STRATA_OK ||
        (status = check_driver(err)) != STRATA_OK ||
        (status = check_index(index, err)) != STRATA_OK)
        return status;
    if (!(d = zalloc(1, sizeof *d, "a device", err)))
        return STRATA_ENOMEM;
    d->base.ops = &ops;
    d->index = index;
    d->state = cuda_state_of(index);
    if ((status = open_device(d, err)) != STRATA_OK) {
        close_device(&d->base);
        return status;
    }
    *out = &d->base;
    return STRATA_OK;
}
