/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers' CUDA impls against their rooflines, every impl that takes a row of the table.
 *
 * Bytes count where they are read and where they are written: inputs, outputs with pads,
 * and weights once. A device-to-device copy of half of them, in the same run, says how
 * long so many bytes take; operations take as long as the peak below says. `share` is the
 * longer of both over the time measured. Times are medians over replays of a graph of
 * launches that rotate through sets of buffers.
 *
 *   layer_cuda [--only LAYER] [--impl NAME] [--quick]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/harness.h"
#include "core/handle.h"
#include "formats/format.h"

#define PEAK_FP16 780e12 /* operations a second, dense, on tensor cores */
#define PEAK_FP32 60e12  /* on CUDA cores */

enum { SETS = 3, LAUNCHES = 6, MOST_RUNS = 9, PACKS = 16, ALIGNMENT = 256 };

#define CARD "fp32:nchw fp16:nchw fp16:nc/2hw2 fp16:nhwc8"
#define BOTH "fp32:nchw fp16:nhwc8"

#define S2(n, c)                                                                         \
    {                                                                                    \
        2,                                                                               \
        {                                                                                \
            n, c                                                                         \
        }                                                                                \
    }
#define S4(n, c, h, w)                                                                   \
    {                                                                                    \
        4,                                                                               \
        {                                                                                \
            n, c, h, w                                                                   \
        }                                                                                \
    }

static const struct row {
    const char *layer, *attrs;
    const char *formats; /* separated by blanks */
    struct harness_shape in[2];
} rows[] = {
    {"FullyConnected", "units = 1000", BOTH, {S4(1, 2048, 1, 1)}},
    {"FullyConnected", "units = 1000", BOTH, {S4(8, 2048, 1, 1)}},
    {"FullyConnected", "units = 1000", BOTH, {S4(32, 2048, 1, 1)}},
    {"FullyConnected", "units = 1000", BOTH, {S4(128, 2048, 1, 1)}},
    {"FullyConnected", "units = 4096", BOTH, {S4(1, 512, 7, 7)}},
    {"FullyConnected", "units = 4096", BOTH, {S4(8, 512, 7, 7)}},
    {"FullyConnected", "units = 4096", BOTH, {S4(64, 512, 7, 7)}},
    {"FullyConnected", "units = 16384", BOTH, {S2(1, 16384)}},
    {"FullyConnected", "units = 16384", BOTH, {S2(4, 16384)}},
    {"FullyConnected", "units = 4096", BOTH, {S2(4096, 4096)}},
    {"Concatenation", "", CARD, {S4(128, 128, 56, 56), S4(128, 64, 56, 56)}},
    {"Concatenation", "", CARD, {S4(128, 67, 56, 56), S4(128, 64, 56, 56)}},
    {"Concatenation", "axis = 3", CARD, {S4(128, 64, 56, 56), S4(128, 64, 56, 56)}},
    {"Slice", "axes = 1; begin = 32; end = 96", CARD, {S4(256, 128, 56, 56)}},
    {"Slice", "axes = 2, 3; begin = 1, 1; end = -1, -1", CARD, {S4(128, 128, 58, 58)}},
    {"Slice",
     "axes = 3; begin = -1; end = -1000; step = -1",
     CARD,
     {S4(128, 128, 56, 56)}},
    {"Shuffle", "first = 0, 2, 3, 1", CARD, {S4(128, 128, 56, 56)}},
    {"Shuffle", "first = 0, 1, 3, 2", CARD, {S4(128, 128, 56, 64)}},
    {"Shuffle",
     "shape = 0, 8, 16, 56, 56; second = 0, 2, 1, 3, 4",
     CARD,
     {S4(128, 128, 56, 56)}},
    {"Padding", "begin = 1, 1; end = 1, 1", CARD, {S4(128, 128, 56, 56)}},
    {"Padding", "begin = 3, 3; end = 3, 3; mode = reflect", CARD, {S4(64, 64, 112, 112)}},
    {"Padding", "begin = 0, 8, 0, 0", CARD, {S4(128, 120, 56, 56)}},
    {"Resize", "scale = 2; coordinates = asymmetric", CARD, {S4(128, 64, 56, 56)}},
    {"Resize", "scale = 2; mode = bilinear", CARD, {S4(128, 64, 56, 56)}},
    {"Resize", "size = 70, 70; mode = bilinear", CARD, {S4(128, 67, 56, 56)}},
};

struct bench {
    strata_handle *handle;
    const struct device_ops *ops;
    strata_registry *registry;
    strata_event *from, *to;
    char *memory[SETS];
    size_t room; /* bytes of each set */
    int runs;
    const char *only, *impl;
    void *packs[PACKS];
    size_t pack_bytes[PACKS];
    int n_packs;
};

static struct bench the_bench; /* the pack extension finds it */

/* What is timed: an impl on an instance, or without an impl a copy. */
struct subject {
    const strata_impl *impl;
    struct harness_node *node;
    strata_tensor *weight;
    void *state, *ctx, *workspace;
    size_t workspace_size;
    size_t offset[HARNESS_INPUTS + HARNESS_OUTPUTS]; /* of tensors in a set */
    size_t bytes;                                    /* read and written */
};

/* ---- memory ------------------------------------------------------------------------ */

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

/* Halves of moderate size, which are no outliers as floats either. */
static int fill_random(struct bench *b, char *to, size_t bytes, strata_error *err)
{
    enum { CHUNK = 1 << 22 };
    static uint32_t random = 12345;
    uint16_t *noise = malloc(CHUNK);
    size_t done = bytes < CHUNK ? bytes : CHUNK;
    if (!noise)
        return error_no_memory(err, CHUNK, "random data");
    for (size_t i = 0; i < CHUNK / 2; i++) {
        random = random * 1664525u + 1013904223u;
        noise[i] = (uint16_t)((random >> 16 & 0x83ff) | (11 + (random >> 8 & 3)) << 10);
    }
    int status = b->ops->copy(b->handle->stream, to, noise, done, COPY_TO_DEVICE, err);
    for (; done < bytes && status == STRATA_OK; done *= 2)
        status =
            b->ops->copy(b->handle->stream, to + done, to,
                         bytes - done < done ? bytes - done : done, COPY_ON_DEVICE, err);
    if (status == STRATA_OK)
        status = strata_stream_synchronize(b->handle->stream, err);
    free(noise);
    return status;
}

/* ---- timing ------------------------------------------------------------------------ */

static int launch(struct bench *b, struct subject *s, int set, strata_error *err)
{
    static const strata_epilogue none = {0};
    struct harness_node *n = s->node;
    char *memory = b->memory[set];
    if (!s->impl)
        return b->ops->copy(b->handle->stream, memory + b->room / 2, memory, s->bytes / 2,
                            COPY_ON_DEVICE, err);
    for (int i = 0; i < n->node.n_in; i++)
        n->in[i].data = memory + s->offset[i];
    for (int i = 0; i < n->node.n_out; i++)
        n->out[i].data = memory + s->offset[n->node.n_in + i];
    strata_run r = {.struct_size = sizeof r,
                    .n_in = n->node.n_in,
                    .n_out = n->node.n_out,
                    .n_weights = n->node.n_weights,
                    .params = n->params,
                    .state = s->state,
                    .ctx = s->ctx,
                    .in = n->in,
                    .out = n->out,
                    .weight = n->weight,
                    .epilogue = &none,
                    .workspace = s->workspace,
                    .workspace_size = s->workspace_size,
                    .stream = b->ops->stream_native(b->handle->stream),
                    .host = registry_host(),
                    .err = err};
    return s->impl->run(&r);
}

static int capture(void **graph, struct bench *b, struct subject *s, strata_error *err)
{
    strata_stream *stream = b->handle->stream;
    int status = launch(b, s, 0, err); /* warm up */
    if (status == STRATA_OK)
        status = strata_stream_synchronize(stream, err);
    if (status == STRATA_OK)
        status = b->ops->capture_begin(stream, err);
    if (status != STRATA_OK)
        return status;
    for (int i = 0; i < LAUNCHES && status == STRATA_OK; i++)
        status = launch(b, s, i % SETS, err);
    const int ended = b->ops->capture_end(stream, graph, err);
    return status == STRATA_OK ? ended : status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median microseconds of a launch. */
static int measure(double *us, struct bench *b, struct subject *s, strata_error *err)
{
    double times[MOST_RUNS + 1];
    strata_stream *stream = b->handle->stream;
    void *graph = NULL;
    int status = capture(&graph, b, s, err);
    for (int i = 0; i <= b->runs && status == STRATA_OK; i++) {
        status = b->ops->event_record(b->from, stream, err);
        if (status == STRATA_OK)
            status = b->ops->graph_launch(stream, graph, err);
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

/* ---- one impl ---------------------------------------------------------------------- */

static int open_subject(struct bench *b, struct subject *s, strata_error *err)
{
    const strata_impl *impl = s->impl;
    const strata_node *n = &s->node->node;
    s->state = calloc(1, impl->state_size + 1);
    s->ctx = calloc(1, impl->ctx_size + 1);
    if (!s->state || !s->ctx)
        return error_no_memory(err, impl->state_size + impl->ctx_size, "a state");
    s->workspace_size = impl->workspace ? impl->workspace(n) : 0;
    if (s->workspace_size)
        s->workspace =
            allocator_get(&b->handle->allocator, s->workspace_size, "a workspace", err);
    if (s->workspace_size && !s->workspace)
        return STRATA_ENOMEM;
    int status = impl->setup ? impl->setup(n, s->state) : STRATA_OK;
    return status == STRATA_OK && impl->ctx_open ? impl->ctx_open(n, s->state, s->ctx)
                                                 : status;
}

static void close_subject(struct bench *b, struct subject *s)
{
    strata_stream_synchronize(b->handle->stream, NULL);
    if (s->ctx && s->impl->ctx_close)
        s->impl->ctx_close(s->ctx);
    if (s->state && s->impl->teardown)
        s->impl->teardown(s->state);
    allocator_put(&b->handle->allocator, s->workspace, s->workspace_size);
    free_packs(b);
    free(s->state);
    free(s->ctx);
}

static bool takes(const struct registry_impl *impl, strata_node *n, strata_error *err)
{
    struct harness_formats f;
    const strata_impl *i = &impl->impl;
    if (i->device != STRATA_CUDA || (i->min_sm && n->sm < i->min_sm) ||
        (i->max_sm && n->sm > i->max_sm))
        return false;
    for (uint32_t r = 0; r < i->rows.n; r++)
        for (int64_t k = 0; harness_combination(&f, &impl->rows[r], n->n_in, n->n_out, k);
             k++) {
            bool fits = f.out[0] == n->out[0].format;
            for (int p = 0; p < n->n_in; p++)
                fits &= f.in[p] == n->in[p].format;
            if (!fits)
                continue;
            n->row = (int32_t)r;
            const bool taken = !i->accept || i->accept(n) == STRATA_OK;
            error_clear(err);
            return taken;
        }
    return false;
}

static double peak_us(const struct harness_node *n)
{
    const strata_layer *layer = &n->layer->layer;
    const double flops = layer->flops ? layer->flops(&n->node) : (double)n->out[0].count;
    return flops / (n->in[0].dtype == STRATA_FP16 ? PEAK_FP16 : PEAK_FP32) * 1e6;
}

static int line(struct bench *b, const struct row *row, const struct registry_impl *impl,
                struct subject *s, strata_error *err)
{
    double us = 0, copy = 0;
    struct subject plain = {.bytes = s->bytes};
    const struct harness_node *n = s->node;
    s->impl = &impl->impl;
    int status = open_subject(b, s, err);
    if (status == STRATA_OK)
        status = measure(&us, b, s, err);
    if (status == STRATA_OK)
        status = measure(&copy, b, &plain, err);
    close_subject(b, s);
    s->state = s->ctx = s->workspace = NULL;
    if (status != STRATA_OK)
        return error_prefix(err, "%s {%s}, %s", row->layer, row->attrs, s->impl->name),
               status;
    const double floor = peak_us(n) > copy ? peak_us(n) : copy;
    printf("  %-13s %-14s %9.1f us %7.0f GB/s, copy %6.0f  %8.0f GFLOP/s  share %.3f\n",
           format_mask_name(n->in[0].format, 4), s->impl->name, us,
           (double)s->bytes * 1e-3 / us, (double)s->bytes * 1e-3 / copy,
           peak_us(n) / us * (n->in[0].dtype == STRATA_FP16 ? PEAK_FP16 : PEAK_FP32) *
               1e-9,
           floor / us);
    fflush(stdout);
    return STRATA_OK;
}

/* ---- one row of the table ---------------------------------------------------------- */

/* Give a tensor a format and a place behind *used. */
static int place(strata_tensor *t, struct format f, size_t *used, size_t *offset,
                 strata_error *err)
{
    strata_desc d;
    int status = format_desc(&d, f, t->dims, t->rank, err);
    if (status != STRATA_OK)
        return status;
    tensor_view(t, &d, format_mask(f), STRATA_PAD_ZERO, NULL);
    *offset = *used;
    *used += ((size_t)t->size * strata_dtype_size(t->dtype) + ALIGNMENT - 1) / ALIGNMENT *
             ALIGNMENT;
    return STRATA_OK;
}

static int place_tensors(struct bench *b, struct harness_node *n, struct format f,
                         struct subject *s, strata_error *err)
{
    struct format linear;
    size_t used = 0, offset;
    int status = format_parse(&linear, "fp32:nchw", err);
    for (int i = 0; i < n->node.n_in && status == STRATA_OK; i++)
        status = place(&n->in[i], f, &used, &s->offset[i], err);
    for (int i = 0; i < n->node.n_out && status == STRATA_OK; i++)
        status = place(&n->out[i], f, &used, &s->offset[n->node.n_in + i], err);
    s->bytes = used;
    for (int i = 0; i < n->node.n_weights && status == STRATA_OK; i++) {
        if (n->weight[i].rank == 0)
            continue;
        status = place(&n->weight[i], linear, &used, &offset, err);
        n->weight[i].data = b->memory[0] + offset;
        s->bytes += (size_t)n->weight[i].count * strata_dtype_size(n->in[0].dtype);
    }
    if (status == STRATA_OK && used > b->room)
        return error_set(err, STRATA_ENOMEM, "the tensors take %zu bytes, of %zu", used,
                         b->room);
    return status;
}

static int run_format(struct bench *b, const struct row *row, struct harness_node *n,
                      const char *name, strata_error *err)
{
    struct subject s = {.node = n};
    struct format f;
    int status = format_parse(&f, name, err);
    if (status == STRATA_OK)
        status = place_tensors(b, n, f, &s, err);
    for (size_t i = 0; i < n->layer->n_impls && status == STRATA_OK; i++) {
        const struct registry_impl *impl = &n->layer->impls[i];
        if ((!b->impl || strstr(impl->impl.name, b->impl)) && takes(impl, &n->node, err))
            status = line(b, row, impl, &s, err);
    }
    return status;
}

static int run_row(struct bench *b, const struct row *row, strata_error *err)
{
    const struct registry_layer *layer;
    const struct harness_shape no_weights[HARNESS_WEIGHTS] = {{0}};
    struct harness_node n = {.layer = NULL};
    char names[128], *save = NULL;
    const strata_epilogue none = {0};
    const int64_t *d = row->in[0].dims;
    int status = registry_find(b->registry, row->layer, &layer, err);
    if (status != STRATA_OK)
        return status;
    status = harness_open(&n, layer, row->attrs, row->in, row->in[1].rank ? 2 : 1,
                          no_weights, 0);
    if (status != STRATA_OK)
        error_set(err, status, "%s", n.err.message);
    n.node.device = STRATA_CUDA;
    n.node.sm = b->handle->properties.sm;
    n.node.math = STRATA_MATH_TENSOR_OP;
    n.node.stream = b->ops->stream_native(b->handle->stream);
    n.node.host = registry_host();
    n.node.epilogue = &none;
    n.node.err = err;
    printf("%s {%s} of %lldx%lldx%lldx%lld\n", row->layer, row->attrs, (long long)d[0],
           (long long)d[1], (long long)(d[2] ? d[2] : 1), (long long)(d[3] ? d[3] : 1));
    snprintf(names, sizeof names, "%s", row->formats);
    for (char *name = strtok_r(names, " ", &save); name && status == STRATA_OK;
         name = strtok_r(NULL, " ", &save))
        status = run_format(b, row, &n, name, err);
    harness_close(&n);
    return status;
}

/* ---- opening ----------------------------------------------------------------------- */

static int open_bench(struct bench *b, strata_error *err)
{
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .allow_untrusted = 1};
    int status = strata_create(&b->handle, "cuda:0", err);
    if (status != STRATA_OK)
        return status;
    b->ops = b->handle->device->ops;
    b->room = (size_t)2 << 30;
    if ((status = strata_registry_create(&b->registry, &options, err)) ||
        (status = registry_set_extension(STRATA_PACK_V1, &pack_table)) ||
        (status = b->ops->event_create(b->handle->device, &b->from, err)) ||
        (status = b->ops->event_create(b->handle->device, &b->to, err)))
        return status;
    for (int i = 0; i < SETS && status == STRATA_OK; i++) {
        b->memory[i] = allocator_get(&b->handle->allocator, b->room, "a set", err);
        status =
            b->memory[i] ? fill_random(b, b->memory[i], b->room, err) : STRATA_ENOMEM;
    }
    return status;
}

static void close_bench(struct bench *b)
{
    if (!b->handle)
        return;
    for (int i = 0; i < SETS; i++)
        allocator_put(&b->handle->allocator, b->memory[i], b->room);
    strata_event_destroy(b->from);
    strata_event_destroy(b->to);
    strata_registry_destroy(b->registry);
    strata_destroy(b->handle);
}

int main(int argc, char **argv)
{
    struct bench *b = &the_bench;
    strata_error err = {0};
    b->runs = MOST_RUNS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            b->runs = 3;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            b->only = argv[++i];
        } else if (strcmp(argv[i], "--impl") == 0 && i + 1 < argc) {
            b->impl = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--only LAYER] [--impl NAME] [--quick]\n",
                    argv[0]);
            return 2;
        }
    }
    int status = open_bench(b, &err);
    if (status == STRATA_OK)
        printf("%s\n", strata_device_name(b->handle));
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && status == STRATA_OK; i++)
        if (!b->only || strcmp(rows[i].layer, b->only) == 0)
            status = run_row(b, &rows[i], &err);
    close_bench(b);
    if (status != STRATA_OK)
        fprintf(stderr, "%s\n", err.message);
    return status == STRATA_OK ? 0 : status == STRATA_EUNSUPPORTED ? 3 : 1;
}
