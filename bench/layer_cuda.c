/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers on CUDA that memory bounds: each impl in each format against a device-to-device
 * copy that moves as many bytes, in the same run, alternating, on the same buffers.
 *
 * Bytes are those of inputs, weights and outputs, pads included, each once. Every launch
 * reads and writes other buffers than the one before. Times are medians of device events
 * over bursts. docs/performance.md holds floors, predictions and results.
 *
 *   layer_cuda [--quick] [LAYER]...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/harness.h"
#include "core/handle.h"
#include "formats/format.h"

enum { SETS = 3, BURST = 6, MOST_RUNS = 15, ALIGN = 256 };

#define S2(...)                                                                          \
    {                                                                                    \
        2,                                                                               \
        {                                                                                \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }
#define S4(...)                                                                          \
    {                                                                                    \
        4,                                                                               \
        {                                                                                \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

static const struct row {
    const char *layer, *attrs;
    int n_in;
    struct harness_shape in[HARNESS_INPUTS];
    unsigned absent; /* weights, as in struct layer_case */
} rows[] = {
    {"Identity", "", 1, {S4(128, 256, 56, 56)}, 0},
    {"Activation", "", 1, {S4(128, 256, 56, 56)}, 0},
    {"Activation", "kind = gelu", 1, {S4(128, 256, 56, 56)}, 0},
    {"Activation", "", 1, {S4(128, 2044, 7, 7)}, 0},
    {"ElementWise", "", 2, {S4(128, 256, 56, 56), S4(128, 256, 56, 56)}, 0},
    {"ElementWise",
     "",
     3,
     {S4(128, 128, 56, 56), S4(128, 128, 56, 56), S4(128, 128, 56, 56)},
     0},
    {"ElementWise", "op = product", 2, {S4(128, 256, 56, 56), S4(128, 256, 1, 1)}, 0},
    {"ElementWise", "op = product", 2, {S4(512, 511, 14, 14), S4(512, 511, 1, 1)}, 0},
    {"Scale", "mode = channel", 1, {S4(128, 256, 56, 56)}, 4},
    {"Scale", "mode = channel", 1, {S4(512, 1023, 7, 7)}, 4},
    {"Scale", "mode = uniform", 1, {S4(128, 256, 56, 56)}, 4},
    {"Softmax", "", 1, {S2(65536, 1000)}, 0},
    {"Softmax", "", 1, {S4(64, 21, 256, 256)}, 0},
    {"Softmax", "axis = 3", 1, {S4(32, 16, 384, 384)}, 0},
    {"Pooling", "kernel = 3; stride = 2; pad = 1", 1, {S4(128, 64, 112, 112)}, 0},
    {"Pooling", "kernel = 2; stride = 2", 1, {S4(128, 64, 112, 112)}, 0},
    {"Pooling", "kernel = 3; pad = 1; kind = average", 1, {S4(128, 192, 35, 35)}, 0},
    {"Pooling", "kernel = 5; pad = 2", 1, {S4(128, 512, 20, 20)}, 0},
    {"Pooling", "global = true; kind = average", 1, {S4(1024, 2048, 7, 7)}, 0},
    {"Pooling", "global = true; kind = average", 1, {S4(128, 256, 56, 56)}, 0},
    {"Pooling", "global = true", 1, {S4(4, 64, 512, 512)}, 0},
    {"Concatenation", "", 2, {S4(128, 128, 56, 56), S4(128, 128, 56, 56)}, 0},
    {"Slice", "axes = 1; begin = 64; end = 192", 1, {S4(128, 256, 56, 56)}, 0},
    {"Padding", "begin = 1, 1; end = 1, 1", 1, {S4(128, 128, 56, 56)}, 0},
    {"Shuffle", "first = 0, 2, 3, 1", 1, {S4(128, 256, 56, 56)}, 0},
    {"Resize", "scale = 2; coordinates = asymmetric", 1, {S4(64, 128, 56, 56)}, 0},
    {"Resize", "scale = 2; mode = bilinear", 1, {S4(64, 128, 56, 56)}, 0},
};

struct bench {
    strata_handle *handle;
    const struct device_ops *ops;
    strata_event *from, *to;
    char *in[SETS], *out[SETS], *weights;
    size_t room;
    int runs;
};

/* One impl in one combination of formats; impl NULL: a copy. */
struct subject {
    const struct registry_impl *impl;
    struct harness_node *n;
    strata_tensor in[HARNESS_INPUTS], out[HARNESS_OUTPUTS], weight[HARNESS_WEIGHTS];
    strata_node node;
    void *state, *ctx;
    size_t workspace; /* bytes, behind the outputs */
    size_t out_bytes, bytes;
};

static const strata_epilogue no_epilogue;

static size_t align(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- one subject ---------------------------------------------------------------------
 */

/* A tensor of a format, `at` bytes into its buffer; adds its size to *at. */
static int make_tensor(strata_tensor *t, const strata_tensor *shape, uint64_t format,
                       size_t *at, size_t *bytes, strata_error *err)
{
    strata_desc d;
    int status = format_desc(&d, *format_at(__builtin_ctzll(format)), shape->dims,
                             shape->rank, err);
    if (status != STRATA_OK)
        return status;
    tensor_view(t, &d, format, STRATA_PAD_ZERO, NULL);
    *bytes += (size_t)strata_desc_bytes(&d);
    *at += align((size_t)strata_desc_bytes(&d));
    return STRATA_OK;
}

static int make_tensors(struct subject *s, const struct harness_formats *f,
                        strata_error *err)
{
    const struct harness_node *n = s->n;
    size_t at = 0;
    int status = STRATA_OK;
    for (int i = 0; i < n->node.n_in && status == STRATA_OK; i++)
        status = make_tensor(&s->in[i], &n->in[i], f->in[i], &at, &s->bytes, err);
    for (int i = 0; i < n->node.n_weights && status == STRATA_OK; i++)
        if (n->weight[i].rank > 0)
            status = make_tensor(&s->weight[i], &n->weight[i], STRATA_F32_NCHW, &at,
                                 &s->bytes, err);
    for (int i = 0; i < n->node.n_out && status == STRATA_OK; i++)
        status =
            make_tensor(&s->out[i], &n->out[i], f->out[i], &s->out_bytes, &s->bytes, err);
    return status;
}

/* The addresses of a set. */
static void place(struct subject *s, const struct bench *b, int set)
{
    char *in = b->in[set], *out = b->out[set], *weight = b->weights;
    for (int i = 0; i < s->node.n_in; i++) {
        s->in[i].data = in;
        in += align((size_t)s->in[i].size * strata_dtype_size(s->in[i].dtype));
    }
    for (int i = 0; i < s->node.n_weights; i++) {
        s->weight[i].data = s->weight[i].rank ? weight : NULL;
        weight += align((size_t)s->weight[i].size * sizeof(float));
    }
    for (int i = 0; i < s->node.n_out; i++) {
        s->out[i].data = out;
        out += align((size_t)s->out[i].size * strata_dtype_size(s->out[i].dtype));
    }
}

static void close_subject(struct subject *s)
{
    if (s->ctx && s->impl->impl.ctx_close)
        s->impl->impl.ctx_close(s->ctx);
    if (s->state && s->impl->impl.teardown)
        s->impl->impl.teardown(s->state);
    free(s->ctx);
    free(s->state);
}

/* EUNSUPPORTED where the impl does not take it. */
static int open_subject(struct subject *s, const struct bench *b, struct harness_node *n,
                        const struct registry_impl *impl, int row,
                        const struct harness_formats *f, strata_error *err)
{
    *s = (struct subject){.impl = impl, .n = n, .node = n->node};
    int status = make_tensors(s, f, err);
    if (status != STRATA_OK)
        return status;
    s->node.in = s->in;
    s->node.out = s->out;
    s->node.weight = s->weight;
    s->node.epilogue = &no_epilogue;
    s->node.device = STRATA_CUDA;
    s->node.sm = b->handle->properties.sm;
    s->node.row = row;
    s->node.stream = b->ops->stream_native(b->handle->stream);
    place(s, b, 0);
    if (impl->impl.accept && impl->impl.accept(&s->node) != STRATA_OK)
        return STRATA_EUNSUPPORTED;
    s->workspace = impl->impl.workspace ? impl->impl.workspace(&s->node) : 0;
    if (s->workspace > b->room - s->out_bytes || s->bytes > b->room)
        return error_set(err, STRATA_EOVERFLOW, "%zu bytes do not fit", s->bytes);
    s->state = calloc(1, impl->impl.state_size + 1);
    s->ctx = calloc(1, impl->impl.ctx_size + 1);
    if (!s->state || !s->ctx)
        return error_no_memory(err, impl->impl.state_size, "an instance");
    status = impl->impl.setup ? impl->impl.setup(&s->node, s->state) : STRATA_OK;
    if (status == STRATA_OK && impl->impl.ctx_open)
        status = impl->impl.ctx_open(&s->node, s->state, s->ctx);
    return status;
}

/* ---- times ---------------------------------------------------------------------------
 */

struct launch {
    const struct subject *s;
    void *workspace;
};

static int run_impl(void *payload, void *native_stream, strata_error *err)
{
    const struct launch *l = payload;
    const struct subject *s = l->s;
    const strata_run r = {.struct_size = sizeof r,
                          .n_in = s->node.n_in,
                          .n_out = s->node.n_out,
                          .n_weights = s->node.n_weights,
                          .params = s->node.params,
                          .state = s->state,
                          .ctx = s->ctx,
                          .in = s->in,
                          .out = s->out,
                          .weight = s->weight,
                          .epilogue = &no_epilogue,
                          .workspace = s->workspace ? l->workspace : NULL,
                          .workspace_size = s->workspace,
                          .stream = native_stream,
                          .host = s->node.host,
                          .err = err};
    return s->impl->impl.run(&r);
}

static int launch(const struct bench *b, struct subject *s, bool copy, int set,
                  strata_error *err)
{
    strata_stream *stream = b->handle->stream;
    if (copy)
        return b->ops->copy(stream, b->out[set], b->in[set], s->bytes / 2, COPY_ON_DEVICE,
                            err);
    place(s, b, set);
    const struct launch work = {s, b->out[set] + s->out_bytes};
    return b->ops->submit(stream, run_impl, &work, sizeof work, err);
}

/* Milliseconds of a launch, in a burst over rotating buffers. */
static int burst(double *ms, const struct bench *b, struct subject *s, bool copy,
                 strata_error *err)
{
    strata_stream *stream = b->handle->stream;
    int status = b->ops->event_record(b->from, stream, err);
    for (int i = 0; i < BURST && status == STRATA_OK; i++)
        status = launch(b, s, copy, i % SETS, err);
    if (status == STRATA_OK)
        status = b->ops->event_record(b->to, stream, err);
    if (status == STRATA_OK)
        status = b->ops->event_synchronize(b->to, err);
    if (status == STRATA_OK)
        status = b->ops->event_elapsed(ms, b->from, b->to, err);
    *ms /= BURST;
    return status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians of impl and copy, alternating; the first burst warms up. */
static int compare(double ms[2], const struct bench *b, struct subject *s,
                   strata_error *err)
{
    double times[2][MOST_RUNS + 1];
    int status = STRATA_OK;
    for (int i = 0; i <= b->runs && status == STRATA_OK; i++)
        for (int copy = 0; copy < 2 && status == STRATA_OK; copy++)
            status = burst(&times[copy][i], b, s, copy, err);
    for (int k = 0; k < 2; k++) {
        qsort(times[k] + 1, (size_t)b->runs, sizeof times[k][0], by_value);
        ms[k] = times[k][1 + b->runs / 2];
    }
    return status;
}

/* ---- the table -----------------------------------------------------------------------
 */

static void print_line(const struct row *row, const struct subject *s,
                       const struct harness_formats *f, const double ms[2])
{
    char shape[64] = "";
    const strata_tensor *x = &s->in[0];
    for (int d = 0, used = 0; d < x->rank; d++)
        used += snprintf(shape + used, sizeof shape - (size_t)used, "%s%lld",
                         d ? "x" : "", (long long)x->dims[d]);
    printf("%-13s %-37s %-16s %-13s %-10s %8.1f %7.0f %7.0f %6.3f\n", row->layer,
           row->attrs, shape, format_mask_name(f->in[0], x->rank), s->impl->impl.name,
           ms[0] * 1e3, (double)s->bytes * 1e-6 / ms[0], (double)s->bytes * 1e-6 / ms[1],
           ms[1] / ms[0]);
    fflush(stdout);
}

static int bench_impl(struct bench *b, const struct row *row, struct harness_node *n,
                      const struct registry_impl *impl, strata_error *err)
{
    struct harness_formats f;
    struct subject s;
    int status = STRATA_OK;
    for (uint32_t r = 0; r < impl->impl.rows.n; r++)
        for (int64_t k = 0;
             status == STRATA_OK &&
             harness_combination(&f, &impl->rows[r], n->node.n_in, n->node.n_out, k);
             k++) {
            double ms[2];
            const struct format *format = format_at(__builtin_ctzll(f.in[0]));
            if (f.in[0] != f.out[0] || format->dtype > STRATA_FP16 ||
                format->order == ORDER_BATCH || format->vector > 8 ||
                (format->vector == 8 && format->dtype == STRATA_FP32))
                continue;
            status = open_subject(&s, b, n, impl, (int)r, &f, err);
            if (status == STRATA_OK)
                status = compare(ms, b, &s, err);
            if (status == STRATA_OK)
                print_line(row, &s, &f, ms);
            if (status == STRATA_EUNSUPPORTED) {
                error_clear(err);
                error_clear(&n->err);
                status = STRATA_OK;
            }
            close_subject(&s);
        }
    return status;
}

static int bench_row(struct bench *b, strata_registry *registry, const struct row *row,
                     strata_error *err)
{
    const struct registry_layer *layer;
    struct harness_node n = {0};
    char name[80];
    snprintf(name, sizeof name, "core::%s", row->layer);
    int status = registry_find(registry, name, &layer, err);
    if (status != STRATA_OK)
        return status;
    status = harness_open(&n, layer, row->attrs, row->in, row->n_in, NULL, row->absent);
    if (status != STRATA_OK)
        error_set(err, status, "%s: %s", row->layer, n.err.message);
    for (size_t i = 0; i < layer->n_impls && status == STRATA_OK; i++)
        if (layer->impls[i].impl.device == STRATA_CUDA)
            status = bench_impl(b, row, &n, &layer->impls[i], err);
    harness_close(&n);
    return status;
}

/* ---- buffers -------------------------------------------------------------------------
 */

/* FP32 bytes of the largest row: inputs, and an output at most four times input 0. */
static size_t room_needed(void)
{
    size_t most = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        size_t bytes = 0;
        for (int k = 0; k < rows[i].n_in; k++) {
            size_t count = sizeof(float);
            for (int d = 0; d < rows[i].in[k].rank; d++)
                count *= (size_t)rows[i].in[k].dims[d];
            bytes += count + (k == 0) * count * (strcmp(rows[i].layer, "Resize") ? 1 : 4);
        }
        most = bytes > most ? bytes : most;
    }
    return align(most + most / 8);
}

/* Values that are ordinary numbers in FP32 and, halved, in FP16. */
static int fill(struct bench *b, strata_error *err)
{
    uint32_t *noise = malloc(b->room), state = 1;
    int status = STRATA_OK;
    if (!noise)
        return error_no_memory(err, b->room, "random data");
    for (size_t i = 0; i < b->room / 4; i++) {
        state = state * 1664525u + 1013904223u;
        noise[i] = (state & 0x83ff83ffu) | 0x38003800u;
    }
    for (int i = 0; i < SETS && status == STRATA_OK; i++)
        status = b->ops->copy(b->handle->stream, b->in[i], noise, b->room, COPY_TO_DEVICE,
                              err);
    if (status == STRATA_OK)
        status = b->ops->copy(b->handle->stream, b->weights, noise, b->room,
                              COPY_TO_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(b->handle->stream, err);
    free(noise);
    return status;
}

static int open_bench(struct bench *b, strata_error *err)
{
    int status = strata_create(&b->handle, "cuda:0", err);
    if (status != STRATA_OK)
        return status;
    b->ops = b->handle->device->ops;
    b->room = room_needed();
    status = b->ops->event_create(b->handle->device, &b->from, err);
    if (status == STRATA_OK)
        status = b->ops->event_create(b->handle->device, &b->to, err);
    b->weights = allocator_get(&b->handle->allocator, b->room, "weights", err);
    for (int i = 0; i < SETS && status == STRATA_OK; i++) {
        b->in[i] = allocator_get(&b->handle->allocator, b->room, "inputs", err);
        b->out[i] = allocator_get(&b->handle->allocator, b->room, "outputs", err);
        if (!b->weights || !b->in[i] || !b->out[i])
            status = STRATA_ENOMEM;
    }
    return status == STRATA_OK ? fill(b, err) : status;
}

static void close_bench(struct bench *b)
{
    if (!b->handle)
        return;
    for (int i = 0; i < SETS; i++) {
        allocator_put(&b->handle->allocator, b->in[i], b->room);
        allocator_put(&b->handle->allocator, b->out[i], b->room);
    }
    allocator_put(&b->handle->allocator, b->weights, b->room);
    strata_event_destroy(b->from);
    strata_event_destroy(b->to);
    strata_destroy(b->handle);
}

static bool wanted(const char *layer, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(layer, names[i]) == 0)
            return true;
    return n == 0;
}

int main(int argc, char **argv)
{
    struct bench b = {.runs = MOST_RUNS};
    strata_error err = {0};
    strata_registry *registry = NULL;
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "--quick") == 0) {
        b.runs = 5;
        first = 2;
    }
    int status = open_bench(&b, &err);
    if (status == STRATA_OK && !(registry = harness_registry(&err)))
        status = err.status;
    if (status == STRATA_OK)
        printf("%s\n%-13s %-37s %-16s %-13s %-10s %8s %7s %7s %6s\n",
               strata_device_name(b.handle), "layer", "attributes", "shape", "format",
               "impl", "us", "GB/s", "copy", "ratio");
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && status == STRATA_OK; i++)
        if (wanted(rows[i].layer, argv + first, argc - first))
            status = bench_row(&b, registry, &rows[i], &err);
    strata_registry_destroy(registry);
    close_bench(&b);
    if (status != STRATA_OK)
        fprintf(stderr, "%s\n", err.message);
    return status == STRATA_OK ? 0 : status == STRATA_EUNSUPPORTED ? 3 : 1;
}
