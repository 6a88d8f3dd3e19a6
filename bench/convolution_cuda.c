/* SPDX-License-Identifier: Apache-2.0
 *
 * Every CUDA impl of Convolution that takes a problem, from whichever module, timed in
 * one run: the convolutions of ResNet-50 and depthwise ones of MobileNet v2, with bias,
 * ReLU and, where the network has one, the residual sum.
 *
 * A time is the median over replays of a graph of launches over rotating buffers. The
 * floor is the longer of bytes at 4.3 TB/s and operations at 780 TFLOP/s (dense FP16) or,
 * without tensor cores, 60, so the share is of what is possible; `copy` is the time of a
 * copy that moves as many bytes, in the same run. Each impl's result is compared with the
 * first one's ("direct"); a relative difference over 2e-3 is marked WRONG and makes the
 * exit code 1.
 *
 *   convolution_cuda [--batch N]... [--only NAME] [--impl NAME] [--default-math]
 *                    [--quick]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

#include "core/handle.h"
#include "formats/format.h"
#include "registry/registry.h"

#define PEAK_FLOPS 780e12
#define PEAK_PLAIN_FLOPS 60e12
#define PEAK_BYTES 4.3e12

enum { SETS = 3, LAUNCHES = 6, MOST_RUNS = 9, PACKS = 8, BATCHES = 8, SAMPLE = 1 << 18 };
enum { IMPLS = 96, TENSORS = 3 }; /* tensors of a set: input, output, residual */

static const struct problem {
    const char *name;
    int64_t channels, size, filters, kernel, stride, groups;
    int residual, count; /* count: in one ResNet-50 */
    const char *in;      /* format, if not fp16:nhwc8 */
} problems[] = {
    {"stem fp32", 3, 224, 64, 7, 2, 1, 0, 1, "fp32:nchw"},
    {"stem fp16", 3, 224, 64, 7, 2, 1, 0, 0, "fp16:nchw"},
    {"s1 1x1 64-64", 64, 56, 64, 1, 1, 1, 0, 1, NULL},
    {"s1 3x3 64", 64, 56, 64, 3, 1, 1, 0, 3, NULL},
    {"s1 1x1 64-256", 64, 56, 256, 1, 1, 1, 0, 1, NULL},
    {"s1 1x1 64-256 +r", 64, 56, 256, 1, 1, 1, 1, 3, NULL},
    {"s1 1x1 256-64", 256, 56, 64, 1, 1, 1, 0, 2, NULL},
    {"s2 1x1 256-128", 256, 56, 128, 1, 1, 1, 0, 1, NULL},
    {"s2 3x3 128 /2", 128, 56, 128, 3, 2, 1, 0, 1, NULL},
    {"s2 1x1 256-512 /2", 256, 56, 512, 1, 2, 1, 0, 1, NULL},
    {"s2 1x1 128-512 +r", 128, 28, 512, 1, 1, 1, 1, 4, NULL},
    {"s2 1x1 512-128", 512, 28, 128, 1, 1, 1, 0, 3, NULL},
    {"s2 3x3 128", 128, 28, 128, 3, 1, 1, 0, 3, NULL},
    {"s3 1x1 512-256", 512, 28, 256, 1, 1, 1, 0, 1, NULL},
    {"s3 3x3 256 /2", 256, 28, 256, 3, 2, 1, 0, 1, NULL},
    {"s3 1x1 512-1024 /2", 512, 28, 1024, 1, 2, 1, 0, 1, NULL},
    {"s3 1x1 256-1024 +r", 256, 14, 1024, 1, 1, 1, 1, 6, NULL},
    {"s3 1x1 1024-256", 1024, 14, 256, 1, 1, 1, 0, 5, NULL},
    {"s3 3x3 256", 256, 14, 256, 3, 1, 1, 0, 5, NULL},
    {"s4 1x1 1024-512", 1024, 14, 512, 1, 1, 1, 0, 1, NULL},
    {"s4 3x3 512 /2", 512, 14, 512, 3, 2, 1, 0, 1, NULL},
    {"s4 1x1 1024-2048/2", 1024, 14, 2048, 1, 2, 1, 0, 1, NULL},
    {"s4 1x1 512-2048 +r", 512, 7, 2048, 1, 1, 1, 1, 3, NULL},
    {"s4 1x1 2048-512", 2048, 7, 512, 1, 1, 1, 0, 2, NULL},
    {"s4 3x3 512", 512, 7, 512, 3, 1, 1, 0, 2, NULL},
    {"dw 3x3 96 /2", 96, 112, 96, 3, 2, 96, 0, 0, NULL},
    {"dw 3x3 144", 144, 56, 144, 3, 1, 144, 0, 0, NULL},
    {"dw 3x3 144 nchw", 144, 56, 144, 3, 1, 144, 0, 0, "fp16:nchw"},
    {"dw 3x3 144 nc2hw2", 144, 56, 144, 3, 1, 144, 0, 0, "fp16:nc/2hw2"},
    {"dw 3x3 144 fp32", 144, 56, 144, 3, 1, 144, 0, 0, "fp32:nchw"},
    {"dw 3x3 576", 576, 14, 576, 3, 1, 576, 0, 0, NULL},
    {"dw 5x5 240 /2", 240, 28, 240, 5, 2, 240, 0, 0, NULL},
    {"fp32 nchw 3x3 128", 128, 28, 128, 3, 1, 1, 0, 0, "fp32:nchw"},
    {"fp32 nhwc 3x3 128", 128, 28, 128, 3, 1, 1, 0, 0, "fp32:nhwc"},
    {"fp32 nhwc 3x3 /2", 128, 28, 128, 3, 2, 1, 0, 0, "fp32:nhwc"},
    {"fp32 nchw 3x3 512", 512, 7, 512, 3, 1, 1, 0, 0, "fp32:nchw"},
    {"fp32 nchw 1x1 256", 256, 56, 64, 1, 1, 1, 0, 0, "fp32:nchw"},
    {"fp32 nhwc 1x1 256", 256, 56, 64, 1, 1, 1, 0, 0, "fp32:nhwc"},
    {"fp32 nhwc 1x1 /2", 256, 56, 512, 1, 2, 1, 0, 0, "fp32:nhwc"},
};

struct bench {
    strata_handle *handle;
    const struct device_ops *ops;
    strata_event *from, *to;
    const struct registry_layer *layer;
    char *memory[SETS][TENSORS];
    float *weight, *bias;
    size_t room, weight_room; /* bytes of each */
    int runs, math;
    const char *only, *impl;
    void *packs[PACKS];
    size_t pack_bytes[PACKS];
    int n_packs;
    uint16_t *sample[2]; /* of the first impl and of the one being timed */
    bool wrong;
    int32_t filled; /* dtype of what the tensors hold, or -1 */
};

static struct bench the_bench; /* the pack extension finds it */

/* A problem with its tensors, as impls see it. */
struct instance {
    const struct problem *p;
    strata_convolution params;
    int64_t kernel, stride, pad;
    strata_tensor in, out, residual, weight[2];
    strata_epilogue epilogue;
    strata_node node;
    double floor_us, flops;
};

/* ---- memory ---------------------------------------------------------------------------
 */

static int pack_alloc(const strata_node *n, size_t bytes, void **out)
{
    struct bench *b = &the_bench;
    if (b->n_packs == PACKS)
        return error_set(n->err, STRATA_ENOMEM, "over %d packs", PACKS);
    *out = allocator_get(&b->handle->allocator, bytes, "packed weights", n->err);
    b->packs[b->n_packs] = *out;
    b->pack_bytes[b->n_packs++] = bytes;
    return *out ? STRATA_OK : STRATA_ENOMEM;
}

static const strata_pack pack_table = {.struct_size = sizeof(strata_pack),
                                       .alloc = pack_alloc};

static void free_packs(struct bench *b)
{
    while (b->n_packs > 0) {
        b->n_packs--;
        allocator_put(&b->handle->allocator, b->packs[b->n_packs],
                      b->pack_bytes[b->n_packs]);
    }
}

/* Random finite values in [-1, 1) of a dtype all over a block. */
static int fill_random(struct bench *b, void *to, size_t bytes, bool half,
                       strata_error *err)
{
    enum { CHUNK = 1 << 22 };
    static uint32_t state = 12345;
    char *noise = malloc(CHUNK);
    int status = noise ? STRATA_OK : error_no_memory(err, CHUNK, "random data");
    for (size_t i = 0; noise && i < CHUNK / (half ? 2 : 4); i++) {
        state = state * 1664525u + 1013904223u;
        if (half) /* exponents of 2^-4 to 2^-1, any sign and fraction */
            ((uint16_t *)noise)[i] = (uint16_t)(state >> 16 & 0x83ff) |
                                     (uint16_t)((11 + (state >> 8 & 3)) << 10);
        else
            ((float *)noise)[i] = (float)(int32_t)state * 0x1p-31f;
    }
    size_t done = bytes < CHUNK ? bytes : CHUNK;
    if (status == STRATA_OK)
        status = b->ops->copy(b->handle->stream, to, noise, done, COPY_TO_DEVICE, err);
    for (; done < bytes && status == STRATA_OK; done *= 2)
        status =
            b->ops->copy(b->handle->stream, (char *)to + done, to,
                         bytes - done < done ? bytes - done : done, COPY_ON_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(b->handle->stream, err);
    free(noise);
    return status;
}

/* ---- an instance ----------------------------------------------------------------------
 */

static int view(strata_tensor *t, const char *format, const int64_t *dims, void *data,
                strata_error *err)
{
    struct format f;
    strata_desc d;
    int status = format_parse(&f, format, err);
    if (status == STRATA_OK)
        status = format_desc(&d, f, dims, 4, err);
    if (status == STRATA_OK)
        tensor_view(t, &d, format_mask(f), STRATA_PAD_ZERO, data);
    return status;
}

/* What must move: of the input, the pixels under a window. */
static double instance_bytes(const struct instance *x)
{
    const strata_tensor *t[] = {&x->in, &x->out, &x->residual};
    const double seen = x->kernel < x->stride ? (double)x->kernel / (double)x->stride : 1;
    double bytes = (double)x->weight[0].count * (double)strata_dtype_size(x->out.dtype);
    for (int i = 0; i < 2 + x->p->residual; i++)
        bytes += (double)t[i]->size * (double)strata_dtype_size(t[i]->dtype) *
                 (i == 0 ? seen * seen : 1);
    return bytes;
}

static int open_instance(struct instance *x, struct bench *b, const struct problem *p,
                         int64_t batch, strata_error *err)
{
    const int64_t out = (p->size + p->kernel / 2 * 2 - p->kernel) / p->stride + 1;
    const int64_t in_dims[] = {batch, p->channels, p->size, p->size};
    const int64_t out_dims[] = {batch, p->filters, out, out};
    const int64_t weight_dims[] = {p->filters, p->channels / p->groups, p->kernel,
                                   p->kernel};
    const char *in = p->in ? p->in : "fp16:nhwc8";
    const bool stem = p->channels < 8 && b->math; /* the kernel of that name */
    memset(x, 0, sizeof *x);
    x->p = p;
    x->kernel = p->kernel;
    x->stride = p->stride;
    x->pad = p->kernel / 2;
    x->params = (strata_convolution){.filters = p->filters,
                                     .kernel = {&x->kernel, 1},
                                     .stride = {&x->stride, 1},
                                     .pad = {&x->pad, 1},
                                     .groups = p->groups};
    int status = view(&x->in, in, in_dims, NULL, err);
    if (status == STRATA_OK)
        status = view(&x->out, stem ? "fp16:nhwc8" : in, out_dims, NULL, err);
    if (status == STRATA_OK)
        status = view(&x->weight[0], "fp32:nchw", weight_dims, b->weight, err);
    if (status != STRATA_OK)
        return status;
    x->residual = x->out;
    x->weight[1] = x->weight[0];
    x->weight[1].rank = 1;
    x->weight[1].count = x->weight[1].size = p->filters;
    x->weight[1].dims[0] = p->filters;
    x->weight[1].strides[0] = 1;
    x->weight[1].data = b->bias;
    x->epilogue.flags =
        STRATA_EPILOGUE_ACTIVATION | (p->residual ? STRATA_EPILOGUE_RESIDUAL : 0);
    x->epilogue.activation = STRATA_RELU;
    x->epilogue.residual = p->residual ? &x->residual : NULL;
    x->node = (strata_node){.struct_size = sizeof x->node,
                            .n_in = 1,
                            .n_out = 1,
                            .n_weights = 2,
                            .params = &x->params,
                            .in = &x->in,
                            .out = &x->out,
                            .weight = x->weight,
                            .epilogue = &x->epilogue,
                            .device = STRATA_CUDA,
                            .sm = b->handle->properties.sm,
                            .math = b->math,
                            .stream = b->ops->stream_native(b->handle->stream),
                            .host = registry_host(),
                            .err = err};
    x->flops = b->layer->layer.flops(&x->node);
    const double bytes_us = instance_bytes(x) / PEAK_BYTES * 1e6;
    x->floor_us =
        x->flops * 1e6 /
        (b->math && x->out.dtype == STRATA_FP16 ? PEAK_FLOPS : PEAK_PLAIN_FLOPS);
    if (bytes_us > x->floor_us)
        x->floor_us = bytes_us;
    return STRATA_OK;
}

static bool row_takes(const strata_row *row, const struct instance *x)
{
    const uint64_t out = row->out[0] & STRATA_SAME ? x->in.format : row->out[0];
    return row->in[0] & x->in.format && out & x->out.format;
}

/* Whether an impl takes the instance, by its row, epilogue and its own word. */
static bool takes(const struct registry_impl *impl, struct instance *x)
{
    const strata_impl *i = &impl->impl;
    const int sm = x->node.sm;
    if (i->device != STRATA_CUDA || (i->min_sm && sm < i->min_sm) ||
        (i->max_sm && sm > i->max_sm) || (x->epilogue.flags & ~i->epilogues) ||
        !(i->activations >> STRATA_RELU & 1))
        return false;
    for (uint32_t r = 0; r < i->rows.n; r++)
        if (row_takes(&impl->rows[r], x)) {
            x->node.row = (int32_t)r;
            const bool accepted = !i->accept || i->accept(&x->node) == STRATA_OK;
            error_clear(x->node.err);
            return accepted;
        }
    return false;
}

/* ---- one impl -------------------------------------------------------------------------
 */

struct subject {
    const strata_impl *impl; /* NULL: a copy of `copied` bytes */
    struct instance *x;
    void *state, *ctx, *workspace;
    size_t workspace_size, copied;
};

static int run_subject(struct bench *b, struct subject *s, int set, strata_error *err)
{
    struct instance *x = s->x;
    if (!s->impl)
        return b->ops->copy(b->handle->stream, b->memory[set][1], b->memory[set][0],
                            s->copied, COPY_ON_DEVICE, err);
    x->in.data = b->memory[set][0];
    x->out.data = b->memory[set][1];
    x->residual.data = b->memory[set][2];
    strata_run r = {.struct_size = sizeof r,
                    .n_in = 1,
                    .n_out = 1,
                    .n_weights = 2,
                    .params = &x->params,
                    .state = s->state,
                    .ctx = s->ctx,
                    .in = &x->in,
                    .out = &x->out,
                    .weight = x->weight,
                    .epilogue = &x->epilogue,
                    .workspace = s->workspace,
                    .workspace_size = s->workspace_size,
                    .stream = b->ops->stream_native(b->handle->stream),
                    .host = registry_host(),
                    .err = err};
    return s->impl->run(&r);
}

static int launches(struct bench *b, struct subject *s, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < LAUNCHES && status == STRATA_OK; i++)
        status = run_subject(b, s, i % SETS, err);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median microseconds of a launch. */
static int time_subject(double *us, struct bench *b, struct subject *s, strata_error *err)
{
    double times[MOST_RUNS + 1];
    void *graph = NULL;
    strata_stream *stream = b->handle->stream;
    const bool capture = s->impl && !(s->impl->flags & STRATA_NO_CAPTURE);
    int status = STRATA_OK;
    if (capture) {
        status = b->ops->capture_begin(stream, err);
        if (status == STRATA_OK)
            status = launches(b, s, err);
        const int ended = b->ops->capture_end(stream, &graph, err);
        status = status == STRATA_OK ? ended : status;
    }
    for (int i = 0; i <= b->runs && status == STRATA_OK; i++) {
        status = b->ops->event_record(b->from, stream, err);
        if (status == STRATA_OK)
            status =
                capture ? b->ops->graph_launch(stream, graph, err) : launches(b, s, err);
        if (status == STRATA_OK)
            status = b->ops->event_record(b->to, stream, err);
        if (status == STRATA_OK)
            status = b->ops->event_synchronize(b->to, err);
        if (status == STRATA_OK)
            status = b->ops->event_elapsed(&times[i], b->from, b->to, err);
    }
    if (graph)
        b->ops->graph_destroy(b->handle->device, graph);
    if (status != STRATA_OK)
        return status;
    qsort(times + 1, (size_t)b->runs, sizeof times[0], by_value);
    *us = times[1 + b->runs / 2] * 1e3 / LAUNCHES;
    return STRATA_OK;
}

/* Of a copy that reads and writes as many bytes as the instance, or part of them. */
static int time_copy(double *us, struct bench *b, struct instance *x, strata_error *err)
{
    const double half = instance_bytes(x) / 2;
    struct subject s = {.copied = half < (double)b->room ? (size_t)half : b->room};
    const int status = time_subject(us, b, &s, err);
    *us *= half / (double)s.copied;
    return status;
}

/* The first and the last elements of the output, as they lie. */
static int take_sample(struct bench *b, const struct subject *s, uint16_t *to,
                       size_t *bytes, strata_error *err)
{
    const strata_tensor *y = &s->x->out;
    const size_t all = (size_t)y->size * strata_dtype_size(y->dtype);
    const size_t part = all / 2 < SAMPLE ? all / 2 : SAMPLE;
    const char *from = y->data;
    int status = b->ops->copy(b->handle->stream, to, from, part, COPY_FROM_DEVICE, err);
    if (status == STRATA_OK)
        status = b->ops->copy(b->handle->stream, (char *)to + part, from + all - part,
                              part, COPY_FROM_DEVICE, err);
    *bytes = 2 * part;
    return status == STRATA_OK ? strata_stream_synchronize(b->handle->stream, err)
                               : status;
}

static double sample_difference(const struct bench *b, size_t bytes, int32_t dtype)
{
    double worst = 0, largest = 0;
    const size_t n = bytes / strata_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        const bool half = dtype == STRATA_FP16;
        const float want =
            half ? half_to_float(b->sample[0][i]) : ((const float *)b->sample[0])[i];
        const float got =
            half ? half_to_float(b->sample[1][i]) : ((const float *)b->sample[1])[i];
        const double difference = fabs((double)got - (double)want);
        largest = fabsf(want) > (float)largest ? (double)fabsf(want) : largest;
        if (!(difference <= worst))
            worst = isnan(difference) ? INFINITY : difference;
    }
    return largest > 0 ? worst / largest : INFINITY;
}

/* Sets up, checks and times one impl. first: its result becomes the reference. */
static int measure(double *us, double *difference, struct bench *b,
                   const strata_impl *impl, struct instance *x, bool first,
                   strata_error *err)
{
    struct subject s = {.impl = impl, .x = x};
    struct allocator *memory = &b->handle->allocator;
    size_t bytes = 0;
    bool set_up = false;
    s.state = calloc(1, impl->state_size + 1);
    s.ctx = calloc(1, impl->ctx_size + 1);
    int status = s.state && s.ctx ? STRATA_OK : error_no_memory(err, 1, "state");
    s.workspace_size = impl->workspace ? impl->workspace(&x->node) : 0;
    if (status == STRATA_OK && s.workspace_size) {
        s.workspace = allocator_get(memory, s.workspace_size, "workspace", err);
        status = s.workspace ? STRATA_OK : STRATA_ENOMEM;
    }
    if (status == STRATA_OK && impl->setup)
        status = impl->setup(&x->node, s.state);
    set_up = status == STRATA_OK;
    if (status == STRATA_OK && impl->ctx_open)
        status = impl->ctx_open(&x->node, s.state, s.ctx);
    if (status == STRATA_OK) /* an output that is not written shows */
        status = b->ops->fill(b->handle->stream, b->memory[0][1], 0xff,
                              (size_t)x->out.size * strata_dtype_size(x->out.dtype), err);
    if (status == STRATA_OK)
        status = run_subject(b, &s, 0, err);
    if (status == STRATA_OK)
        status = take_sample(b, &s, b->sample[first ? 0 : 1], &bytes, err);
    if (status == STRATA_OK)
        *difference = first ? 0 : sample_difference(b, bytes, x->out.dtype);
    if (status == STRATA_OK)
        status = time_subject(us, b, &s, err);
    if (set_up && impl->ctx_close)
        impl->ctx_close(s.ctx);
    if (set_up && impl->teardown)
        impl->teardown(s.state);
    allocator_put(memory, s.workspace, s.workspace_size);
    free_packs(b);
    free(s.state);
    free(s.ctx);
    return status;
}

/* ---- the table ------------------------------------------------------------------------
 */

struct sum {
    double best, floor;
};

/* Tensors hold values of the problem's dtype. */
static int fill_tensors(struct bench *b, int32_t dtype, strata_error *err)
{
    int status = STRATA_OK;
    for (int s = 0; s < SETS && dtype != b->filled; s++)
        for (int t = 0; t < TENSORS && status == STRATA_OK; t++)
            status = fill_random(b, b->memory[s][t], b->room, dtype == STRATA_FP16, err);
    b->filled = dtype;
    return status;
}

/* One problem at one batch: a line of every impl's microseconds, the best marked. */
static int line(struct sum *sum, struct bench *b, const struct problem *p, int64_t batch,
                strata_error *err)
{
    struct instance x;
    double us[IMPLS], difference[IMPLS], copy_us = 0;
    const struct registry_impl *tried[IMPLS];
    int n = 0, best = -1, status = open_instance(&x, b, p, batch, err);
    if (status == STRATA_OK)
        status = fill_tensors(b, x.in.dtype, err);
    if (status == STRATA_OK)
        status = time_copy(&copy_us, b, &x, err);
    for (size_t i = 0; i < b->layer->n_impls && n < IMPLS && status == STRATA_OK; i++) {
        const struct registry_impl *impl = &b->layer->impls[i];
        const bool wanted = !b->impl || strstr(impl->impl.name, b->impl);
        if (!takes(impl, &x) || (n > 0 && !wanted))
            continue;
        tried[n] = impl;
        status = measure(&us[n], &difference[n], b, &impl->impl, &x, n == 0, err);
        if (status == STRATA_EUNSUPPORTED) {
            printf("# %s: %s\n", impl->impl.name, err->message);
            error_clear(err);
            status = STRATA_OK;
            continue;
        }
        if (status != STRATA_OK)
            return error_prefix(err, "%s, %s", p->name, impl->impl.name), status;
        if (best < 0 || us[n] < us[best])
            best = n;
        n++;
    }
    if (status != STRATA_OK || best < 0)
        return status;
    printf("%-18s %4lld floor %7.1f copy %7.1f  %-16s %7.1f us %6.1f TF/s %4.0f%% |",
           p->name, (long long)batch, x.floor_us, copy_us, tried[best]->impl.name,
           us[best], x.flops / us[best] * 1e-6, 100 * x.floor_us / us[best]);
    for (int i = 0; i < n; i++) {
        const bool wrong = !(difference[i] < 2e-3);
        printf(" %s %.1f%s", tried[i]->impl.name, us[i], wrong ? " WRONG" : "");
        if (wrong)
            printf("(%.1e)", difference[i]);
        b->wrong |= wrong;
        printf(i + 1 < n ? "," : "\n");
    }
    fflush(stdout);
    sum->best += p->count * us[best];
    sum->floor += p->count * x.floor_us;
    return STRATA_OK;
}

static int table(struct bench *b, int64_t batch, strata_error *err)
{
    struct sum sum = {0, 0};
    int status = STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(problems) && status == STRATA_OK; i++)
        if (!b->only || strstr(problems[i].name, b->only))
            status = line(&sum, b, &problems[i], batch, err);
    if (sum.floor > 0 && status == STRATA_OK)
        printf("all of ResNet-50 in this list, batch %lld: best %.1f us, floor %.1f us, "
               "%.0f%%\n\n",
               (long long)batch, sum.best, sum.floor, 100 * sum.floor / sum.best);
    return status;
}

/* ---- opening --------------------------------------------------------------------------
 */

static int reserve(struct bench *b, int64_t most_batch, strata_error *err)
{
    struct instance x;
    for (size_t i = 0; i < ARRAY_LENGTH(problems); i++) {
        const int status = open_instance(&x, b, &problems[i], most_batch, err);
        if (status != STRATA_OK)
            return status;
        const size_t in = (size_t)x.in.size * strata_dtype_size(x.in.dtype);
        const size_t out = (size_t)x.out.size * strata_dtype_size(x.out.dtype);
        const size_t weight = (size_t)x.weight[0].size * sizeof(float);
        b->room = in > b->room ? in : b->room;
        b->room = out > b->room ? out : b->room;
        b->weight_room = weight > b->weight_room ? weight : b->weight_room;
    }
    return STRATA_OK;
}

static int open_bench(struct bench *b, int64_t most_batch, strata_error *err)
{
    strata_registry *registry;
    int status = strata_create(&b->handle, "cuda:0", err);
    if (status != STRATA_OK)
        return status;
    b->ops = b->handle->device->ops;
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .allow_untrusted = 1};
    if ((status = strata_registry_create(&registry, &options, err)) ||
        (status = registry_find(registry, "Convolution", &b->layer, err)) ||
        (status = registry_set_extension(STRATA_PACK_V1, &pack_table)) ||
        (status = reserve(b, most_batch, err)) ||
        (status = b->ops->event_create(b->handle->device, &b->from, err)) ||
        (status = b->ops->event_create(b->handle->device, &b->to, err)))
        return status;
    struct allocator *memory = &b->handle->allocator;
    for (int s = 0; s < SETS; s++)
        for (int t = 0; t < TENSORS; t++)
            if (!(b->memory[s][t] = allocator_get(memory, b->room, "a tensor", err)))
                return STRATA_ENOMEM;
    b->weight = allocator_get(memory, b->weight_room, "weights", err);
    b->bias = allocator_get(memory, 1 << 16, "bias", err);
    b->sample[0] = malloc(2 * SAMPLE);
    b->sample[1] = malloc(2 * SAMPLE);
    if (!b->weight || !b->bias || !b->sample[0] || !b->sample[1])
        return error_no_memory(err, 2 * SAMPLE, "samples");
    status = fill_random(b, b->weight, b->weight_room, false, err);
    if (status == STRATA_OK)
        status = fill_random(b, b->bias, 1 << 16, false, err);
    return status;
}

static void close_bench(struct bench *b)
{
    if (!b->handle)
        return;
    struct allocator *memory = &b->handle->allocator;
    for (int s = 0; s < SETS; s++)
        for (int t = 0; t < TENSORS; t++)
            allocator_put(memory, b->memory[s][t], b->room);
    allocator_put(memory, b->weight, b->weight_room);
    allocator_put(memory, b->bias, 1 << 16);
    free(b->sample[0]);
    free(b->sample[1]);
    strata_event_destroy(b->from);
    strata_event_destroy(b->to);
    strata_destroy(b->handle);
}

/* Values of an option: NULL and a message if there is none. */
static const char *argument(int argc, char **argv, int *i)
{
    if (*i + 1 < argc)
        return argv[++*i];
    fprintf(stderr, "%s: %s needs a value\n", argv[0], argv[*i]);
    return NULL;
}

static int usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--batch N]... [--only NAME] [--impl NAME] [--default-math] "
            "[--quick]\n",
            program);
    return 2;
}

int main(int argc, char **argv)
{
    struct bench *b = &the_bench;
    int64_t batches[BATCHES] = {1, 8, 32, 128}, most = 0;
    int given = 0, n = 4;
    strata_error err = {0};
    b->runs = MOST_RUNS;
    b->filled = -1;
    b->math = STRATA_MATH_TENSOR_OP;
    for (int i = 1; i < argc; i++) {
        const char *value = "";
        if (strcmp(argv[i], "--quick") == 0)
            b->runs = 3;
        else if (strcmp(argv[i], "--default-math") == 0)
            b->math = STRATA_MATH_DEFAULT;
        else if (strcmp(argv[i], "--only") == 0)
            value = b->only = argument(argc, argv, &i);
        else if (strcmp(argv[i], "--impl") == 0)
            value = b->impl = argument(argc, argv, &i);
        else if (strcmp(argv[i], "--batch") == 0 && given < BATCHES &&
                 (value = argument(argc, argv, &i)))
            batches[given++] = atoll(value);
        else
            return usage(argv[0]);
        if (!value)
            return 2;
    }
    n = given ? given : n;
    for (int i = 0; i < n; i++) {
        if (batches[i] < 1)
            return usage(argv[0]);
        most = batches[i] > most ? batches[i] : most;
    }
    int status = open_bench(b, most, &err);
    if (status == STRATA_OK)
        printf("%s\n", strata_device_name(b->handle));
    for (int i = 0; i < n && status == STRATA_OK; i++)
        status = table(b, batches[i], &err);
    close_bench(b);
    if (status != STRATA_OK)
        fprintf(stderr, "%s\n", err.message);
    return status == STRATA_OK ? b->wrong : status == STRATA_EUNSUPPORTED ? 3 : 1;
}
