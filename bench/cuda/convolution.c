/* SPDX-License-Identifier: Apache-2.0
 *
 * Every CUDA impl of Convolution that takes a problem, from whichever module, timed in
 * one run: the convolutions of ResNet-50, depthwise ones of MobileNet v2 and some of
 * Inception v3, with bias, ReLU and, where the network has one, the residual sum.
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

#include "bench/cuda/convolution_problems.h"
#include "bench/cuda/impl_time.h"
#include "formats/format.h"

#define PEAK_FLOPS 780e12
#define PEAK_PLAIN_FLOPS 60e12
#define PEAK_BYTES 4.3e12

enum { BATCHES = 8, SAMPLE = 1 << 18, IMPLS = 96 };
enum { TENSORS = 3 }; /* of a set: input, output, residual */

struct bench {
    struct impl_device device;
    const struct registry_layer *layer;
    char *memory[IMPL_SETS][TENSORS];
    float *weight, *bias;
    size_t room, weight_room; /* bytes of each */
    int math;
    bool quick;
    const char *only, *impl;
    uint16_t *sample[2]; /* of the first impl and of the one being timed */
    bool wrong;
    int32_t filled; /* dtype of what the tensors hold, or -1 */
};

/* A problem with its tensors, as impls see it. */
struct instance {
    const struct problem *p;
    strata_convolution params;
    int64_t kernel[2], pad[2], stride;
    strata_tensor in, out, residual, weight[2];
    strata_epilogue epilogue;
    strata_node node;
    double floor_us, flops;
};

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
    const double kernel = (double)x->kernel[0], stride = (double)x->stride;
    const double seen = kernel < stride ? kernel / stride : 1;
    double bytes = (double)x->weight[0].count * (double)strata_dtype_size(x->out.dtype);
    for (int i = 0; i < 2 + x->p->residual; i++)
        bytes += (double)t[i]->size * (double)strata_dtype_size(t[i]->dtype) *
                 (i == 0 ? seen * seen : 1);
    return bytes;
}

static int open_instance(struct instance *x, struct bench *b, const struct problem *p,
                         int64_t batch, strata_error *err)
{
    const int64_t across = p->across ? p->across : p->kernel;
    const int64_t out = (p->size + p->kernel / 2 * 2 - p->kernel) / p->stride + 1;
    const int64_t in_dims[] = {batch, p->channels, p->size, p->size};
    const int64_t out_dims[] = {batch, p->filters, out, out};
    const int64_t weight_dims[] = {p->filters, p->channels / p->groups, p->kernel,
                                   across};
    const char *in = p->in ? p->in : "fp16:nhwc8";
    const bool stem = p->channels < 8 && b->math; /* the kernel of that name */
    memset(x, 0, sizeof *x);
    x->p = p;
    x->kernel[0] = p->kernel;
    x->kernel[1] = across;
    x->stride = p->stride;
    for (int d = 0; d < 2; d++)
        x->pad[d] = x->kernel[d] / 2;
    x->params = (strata_convolution){.filters = p->filters,
                                     .kernel = {x->kernel, 2},
                                     .stride = {&x->stride, 1},
                                     .pad = {x->pad, 2},
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
    x->node =
        (strata_node){.struct_size = sizeof x->node,
                      .n_in = 1,
                      .n_out = 1,
                      .n_weights = 2,
                      .params = &x->params,
                      .in = &x->in,
                      .out = &x->out,
                      .weight = x->weight,
                      .epilogue = &x->epilogue,
                      .device = STRATA_CUDA,
                      .sm = b->device.handle->properties.sm,
                      .math = b->math,
                      .stream = b->device.ops->stream_native(b->device.handle->stream),
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

static bool row_takes(const struct registry_row *row, const struct instance *x)
{
    const uint64_t out = row->out[0] & STRATA_SAME ? x->in.format : row->out[0];
    return row->in[0] & x->in.format && out & x->out.format;
}

/* Whether an impl takes the instance, by its row, epilogue and its own word. */
static bool takes(const struct registry_impl *impl, struct instance *x)
{
    const strata_impl *i = &impl->impl;
    if ((x->epilogue.flags & ~i->epilogues) || !(i->activations >> STRATA_RELU & 1))
        return false;
    for (uint32_t r = 0; r < i->rows.n; r++)
        if (row_takes(&impl->rows[r], x)) {
            x->node.row = (int32_t)r;
            return impl_admits(i, &x->node);
        }
    return false;
}

/* ---- one impl -------------------------------------------------------------------------
 */

/* An impl on an instance, or without an impl a copy of `copied` bytes. */
struct subject {
    struct bench *bench;
    struct impl_state impl;
    struct instance *x;
    size_t copied;
};

static int launch(void *user, int set, strata_error *err)
{
    struct subject *s = user;
    const struct impl_device *d = &s->bench->device;
    char **memory = s->bench->memory[set];
    struct instance *x = s->x;
    if (!s->impl.impl)
        return d->ops->copy(d->handle->stream, memory[1], memory[0], s->copied,
                            COPY_ON_DEVICE, err);
    x->in.data = memory[0];
    x->out.data = memory[1];
    x->residual.data = memory[2];
    strata_run r = {.struct_size = sizeof r,
                    .n_in = 1,
                    .n_out = 1,
                    .n_weights = 2,
                    .params = &x->params,
                    .state = s->impl.state,
                    .ctx = s->impl.ctx,
                    .in = &x->in,
                    .out = &x->out,
                    .weight = x->weight,
                    .epilogue = &x->epilogue,
                    .workspace = s->impl.workspace,
                    .workspace_size = s->impl.workspace_size,
                    .stream = d->ops->stream_native(d->handle->stream),
                    .host = registry_host(),
                    .err = err};
    return s->impl.impl->run(&r);
}

/* Of a copy that reads and writes as many bytes as the instance, or part of them: in a
 * graph, which is faster for little, or on the stream, for much. */
static int time_copy(double *us, struct bench *b, struct instance *x, strata_error *err)
{
    const double half = instance_bytes(x) / 2;
    struct subject s = {.bench = b,
                        .copied = half < (double)b->room ? (size_t)half : b->room};
    double plain;
    int status = impl_time(us, &b->device, launch, &s, true, err);
    if (status == STRATA_OK)
        status = impl_time(&plain, &b->device, launch, &s, false, err);
    if (status == STRATA_OK)
        *us = fmin(*us, plain) * half / (double)s.copied;
    return status;
}

/* The first and the last elements of the output, as they lie. */
static int take_sample(struct bench *b, const struct subject *s, uint16_t *to,
                       size_t *bytes, strata_error *err)
{
    const struct impl_device *d = &b->device;
    const strata_tensor *y = &s->x->out;
    const size_t all = (size_t)y->size * strata_dtype_size(y->dtype);
    const size_t part = all / 2 < SAMPLE ? all / 2 : SAMPLE;
    const char *from = y->data;
    int status = d->ops->copy(d->handle->stream, to, from, part, COPY_FROM_DEVICE, err);
    if (status == STRATA_OK)
        status = d->ops->copy(d->handle->stream, (char *)to + part, from + all - part,
                              part, COPY_FROM_DEVICE, err);
    *bytes = 2 * part;
    return status == STRATA_OK ? strata_stream_synchronize(d->handle->stream, err)
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
    struct subject s = {.bench = b, .impl.impl = impl, .x = x};
    const struct impl_device *d = &b->device;
    size_t bytes = 0;
    int status = impl_open(&s.impl, &b->device, &x->node, err);
    if (status == STRATA_OK) /* an output that is not written shows */
        status = d->ops->fill(d->handle->stream, b->memory[0][1], 0xff,
                              (size_t)x->out.size * strata_dtype_size(x->out.dtype), err);
    if (status == STRATA_OK)
        status = launch(&s, 0, err);
    if (status == STRATA_OK)
        status = take_sample(b, &s, b->sample[first ? 0 : 1], &bytes, err);
    if (status == STRATA_OK)
        *difference = first ? 0 : sample_difference(b, bytes, x->out.dtype);
    if (status == STRATA_OK)
        status = impl_time(us, &b->device, launch, &s, !(impl->flags & STRATA_NO_CAPTURE),
                           err);
    impl_close(&s.impl, &b->device);
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
    for (int s = 0; s < IMPL_SETS && dtype != b->filled; s++)
        for (int t = 0; t < TENSORS && status == STRATA_OK; t++)
            status = impl_fill(&b->device, b->memory[s][t], b->room, dtype == STRATA_FP16,
                               err);
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
    int status = impl_device_open(&b->device, b->quick, err);
    if (status == STRATA_OK)
        status = registry_find(b->device.registry, "Convolution", &b->layer, err);
    if (status == STRATA_OK)
        status = reserve(b, most_batch, err);
    if (status != STRATA_OK)
        return status;
    struct allocator *memory = &b->device.handle->allocator;
    for (int s = 0; s < IMPL_SETS; s++)
        for (int t = 0; t < TENSORS; t++)
            if (!(b->memory[s][t] = allocator_get(memory, b->room, "a tensor", err)))
                return STRATA_ENOMEM;
    b->weight = allocator_get(memory, b->weight_room, "weights", err);
    b->bias = allocator_get(memory, 1 << 16, "bias", err);
    b->sample[0] = malloc(2 * SAMPLE);
    b->sample[1] = malloc(2 * SAMPLE);
    if (!b->weight || !b->bias || !b->sample[0] || !b->sample[1])
        return error_no_memory(err, 2 * SAMPLE, "samples");
    status = impl_fill(&b->device, b->weight, b->weight_room, false, err);
    if (status == STRATA_OK)
        status = impl_fill(&b->device, b->bias, 1 << 16, false, err);
    return status;
}

static void close_bench(struct bench *b)
{
    if (!b->device.handle)
        return;
    struct allocator *memory = &b->device.handle->allocator;
    for (int s = 0; s < IMPL_SETS; s++)
        for (int t = 0; t < TENSORS; t++)
            allocator_put(memory, b->memory[s][t], b->room);
    allocator_put(memory, b->weight, b->weight_room);
    allocator_put(memory, b->bias, 1 << 16);
    free(b->sample[0]);
    free(b->sample[1]);
    impl_device_close(&b->device);
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
    struct bench bench = {.filled = -1, .math = STRATA_MATH_TENSOR_OP}, *b = &bench;
    int64_t batches[BATCHES] = {1, 8, 32, 128}, most = 0;
    int given = 0, n = 4;
    strata_error err = {0};
    for (int i = 1; i < argc; i++) {
        const char *value = "";
        if (strcmp(argv[i], "--quick") == 0)
            b->quick = true;
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
        printf("%s\n", strata_device_name(b->device.handle));
    for (int i = 0; i < n && status == STRATA_OK; i++)
        status = table(b, batches[i], &err);
    close_bench(b);
    if (status != STRATA_OK)
        fprintf(stderr, "%s\n", err.message);
    return status == STRATA_OK ? b->wrong : status == STRATA_EUNSUPPORTED ? 3 : 1;
}
