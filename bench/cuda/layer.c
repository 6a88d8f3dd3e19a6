/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers' CUDA impls against their rooflines, every impl that takes a row of the table.
 *
 * Bytes count where they are read and where they are written: inputs, outputs with pads,
 * and weights once, which an impl that takes them in few bits has beside the others that
 * get them as floats. A device-to-device copy of half of them, in the same run, says how
 * long so many bytes take; operations take as long as the peak below says. `share` is the
 * longer of both over the time measured. Times are medians over replays of a graph of
 * launches that rotate through sets of buffers.
 *
 *   layer_cuda [--only LAYER,...] [--impl NAME] [--quick]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/impl_time.h"
#include "check/harness/harness.h"
#include "formats/format.h"

#define PEAK_FP16 780e12 /* operations a second, dense, on tensor cores */
#define PEAK_FP32 60e12  /* on CUDA cores */
#define PEAK_BYTES 1560e12

enum { ALIGNMENT = 256 };

#define CARD "fp32:nchw fp16:nchw fp16:nc/2hw2 fp16:nhwc8"
#define BOTH "fp32:nchw fp16:nhwc8"
#define BYTES "int8:nhwc16"
#define HALVES "fp16:nhwc8"
#define RELU "; activation = relu"

#define S2(n, c) {2, {n, c}}
#define S4(n, c, h, w) {4, {n, c, h, w}}

static const struct row {
    const char *layer, *attrs;
    const char *formats; /* separated by blanks */
    struct harness_shape in[3];
    unsigned absent; /* bit i: weight i is not given */
} rows[] = {
    {"Identity", "", CARD, {S4(128, 256, 56, 56)}, 0},
    {"Activation", "", CARD, {S4(128, 256, 56, 56)}, 0},
    {"Activation", "kind = gelu", CARD, {S4(128, 256, 56, 56)}, 0},
    {"Activation", "", CARD, {S4(512, 1021, 7, 7)}, 0},
    {"ElementWise", "", CARD, {S4(128, 256, 56, 56), S4(128, 256, 56, 56)}, 0},
    {"ElementWise", "", CARD,
     {S4(128, 128, 56, 56), S4(128, 128, 56, 56), S4(128, 128, 56, 56)}, 0},
    {"ElementWise", "op = product", CARD, {S4(128, 256, 56, 56), S4(128, 256, 1, 1)}, 0},
    {"ElementWise", "op = product", CARD, {S4(512, 511, 14, 14), S4(512, 511, 1, 1)}, 0},
    {"Scale", "mode = channel", CARD, {S4(128, 256, 56, 56)}, 4},
    {"Scale", "mode = channel", CARD, {S4(512, 1021, 7, 7)}, 4},
    {"Normalization", "", "fp16:nchw", {S2(16384, 4096)}, 0},
    {"Normalization", "", "fp16:nchw", {S2(8192, 9216)}, 0},
    {"Normalization", "", "fp16:nchw", {S2(8192, 10240)}, 0},
    {"Normalization", "", "fp16:nchw", {S2(4096, 16384)}, 0},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(16384, 4096)}, 2},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(8192, 5120)}, 2},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(8192, 8192)}, 2},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(8192, 9216)}, 2},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(8192, 10240)}, 2},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(8192, 12288)}, 2},
    {"Normalization", "kind = rms", "fp16:nchw", {S2(4096, 16384)}, 2},
    {"Softmax", "", "fp32:nchw fp16:nchw", {S2(65536, 1000)}, 0},
    {"Softmax", "", CARD, {S4(64, 21, 256, 256)}, 0},
    {"Softmax", "axis = 3", CARD, {S4(32, 16, 384, 384)}, 0},
    {"Pooling", "kernel = 3; stride = 2; pad = 1", CARD, {S4(128, 64, 112, 112)}, 0},
    {"Pooling", "kernel = 2; stride = 2", CARD, {S4(128, 64, 112, 112)}, 0},
    {"Pooling", "kernel = 3; pad = 1; kind = average", CARD, {S4(128, 192, 35, 35)}, 0},
    {"Pooling", "kernel = 5; pad = 2", CARD, {S4(128, 512, 20, 20)}, 0},
    {"Pooling", "global = true; kind = average", CARD, {S4(1024, 2048, 7, 7)}, 0},
    {"Pooling", "global = true; kind = average", CARD, {S4(128, 256, 56, 56)}, 0},
    {"Pooling", "global = true", CARD, {S4(4, 64, 512, 512)}, 0},
    {"FullyConnected", "units = 1000", BOTH, {S4(1, 2048, 1, 1)}, 0},
    {"FullyConnected", "units = 1000", BOTH, {S4(8, 2048, 1, 1)}, 0},
    {"FullyConnected", "units = 1000", BOTH, {S4(32, 2048, 1, 1)}, 0},
    {"FullyConnected", "units = 1000", BOTH, {S4(128, 2048, 1, 1)}, 0},
    {"FullyConnected", "units = 1000", BOTH, {S4(256, 2048, 1, 1)}, 0},
    {"FullyConnected", "units = 1000", BOTH, {S4(128, 1280, 1, 1)}, 0},
    {"FullyConnected", "units = 4096", BOTH, {S4(1, 512, 7, 7)}, 0},
    {"FullyConnected", "units = 4096", BOTH, {S4(8, 512, 7, 7)}, 0},
    {"FullyConnected", "units = 4096", BOTH, {S4(64, 512, 7, 7)}, 0},
    {"FullyConnected", "units = 4096", BOTH, {S4(128, 512, 7, 7)}, 0},
    {"FullyConnected", "units = 16384", BOTH, {S2(1, 16384)}, 0},
    {"FullyConnected", "units = 16384", BOTH, {S2(4, 16384)}, 0},
    {"FullyConnected", "units = 4096", BOTH, {S2(4096, 4096)}, 0},
    {"MatrixMultiply", "units = 4096", "fp32:nchw fp16:nchw", {S2(1, 4096)}, 0},
    {"MatrixMultiply", "units = 4096", "fp32:nchw fp16:nchw", {S2(8, 4096)}, 0},
    {"MatrixMultiply", "units = 4096", "fp32:nchw fp16:nchw", {S2(16, 4096)}, 0},
    {"MatrixMultiply", "units = 28672", "fp16:nchw", {S2(1, 8192)}, 0},
    {"MatrixMultiply", "units = 57344", "fp16:nchw", {S2(1, 7168)}, 0},
    {"MatrixMultiply", "units = 1024", "fp16:nchw", {S2(1, 16384)}, 0},
    {"MatrixMultiply", "units = 4096", "fp16:nchw bf16:nchw", {S2(4096, 4096)}, 0},
#define FOUR_BITS "; transpose_b = true; weight_bits = 4; weight_group = 128"
#define EIGHT_BITS "; transpose_b = true; weight_group = 128"
    {"MatrixMultiply", "units = 4096" FOUR_BITS, "fp16:nchw bf16:nchw", {S2(1, 4096)}, 2},
    {"MatrixMultiply", "units = 4096" FOUR_BITS, "fp16:nchw", {S2(16, 4096)}, 2},
    {"MatrixMultiply", "units = 28672" FOUR_BITS, "fp16:nchw", {S2(1, 8192)}, 2},
    {"MatrixMultiply", "units = 28672" FOUR_BITS, "fp16:nchw", {S2(16, 8192)}, 2},
    {"MatrixMultiply", "units = 8192" FOUR_BITS, "fp16:nchw", {S2(1, 28672)}, 2},
    {"MatrixMultiply", "units = 28672; transpose_b = true; weight_bits = 4; "
                       "weight_group = 32",
     "fp16:nchw", {S2(1, 8192)}, 2},
    {"MatrixMultiply", "units = 4096" EIGHT_BITS, "fp16:nchw bf16:nchw", {S2(1, 4096)}, 2},
    {"MatrixMultiply", "units = 28672" EIGHT_BITS, "fp16:nchw bf16:nchw", {S2(1, 8192)},
     2},
    {"MatrixMultiply", "", "fp16:nchw", {S4(12, 8, 128, 64), S4(12, 8, 64, 128)}, 0},
    {"QuantizedProduct", "units = 8192; to = int8", "int8:nchw", {S2(8192, 8192)}, 0},
    {"QuantizedProduct", "units = 4096; to = int8", "int8:nchw", {S2(4096, 4096)}, 0},
    {"QuantizedProduct", "units = 4096; to = int8", "int8:nchw", {S2(128, 4096)}, 0},
    {"QuantizedProduct", "units = 8192; to = e4m3", "e4m3:nchw", {S2(8192, 8192)}, 0},
    {"QuantizedProduct", "units = 4096; to = e4m3", "e4m3:nchw", {S2(4096, 4096)}, 0},
    {"QuantizedProduct", "units = 4096; to = e4m3", "e4m3:nchw", {S2(128, 4096)}, 0},
    {"QuantizedConvolution", "filters = 64; kernel = 3; pad = 1; to = int8", BYTES,
     {S4(32, 64, 56, 56)}, 0},
    {"QuantizedConvolution", "filters = 256; kernel = 1; to = int8; activation = relu",
     BYTES, {S4(32, 64, 56, 56), S4(32, 256, 56, 56)}, 0},
    {"QuantizedConvolution", "filters = 256; kernel = 1; to = int8; activation = relu",
     BYTES, {S4(128, 64, 56, 56), S4(128, 256, 56, 56)}, 0},
    {"QuantizedConvolution", "filters = 512; kernel = 1; to = int8; activation = relu",
     BYTES, {S4(128, 128, 28, 28), S4(128, 512, 28, 28)}, 0},
    {"QuantizedConvolution", "filters = 1024; kernel = 1; to = int8; activation = relu",
     BYTES, {S4(128, 256, 14, 14), S4(128, 1024, 14, 14)}, 0},
    {"QuantizedConvolution", "filters = 2048; kernel = 1; to = int8; activation = relu",
     BYTES, {S4(128, 512, 7, 7), S4(128, 2048, 7, 7)}, 0},
    {"QuantizedConvolution", "filters = 64; kernel = 1; to = int8", BYTES,
     {S4(128, 256, 56, 56)}, 0},
    {"QuantizedConvolution", "filters = 128; kernel = 3; pad = 1; to = int8", BYTES,
     {S4(32, 128, 28, 28)}, 0},
    {"QuantizedConvolution", "filters = 256; kernel = 3; pad = 1; to = int8", BYTES,
     {S4(32, 256, 14, 14)}, 0},
    {"QuantizedConvolution", "filters = 512; kernel = 3; pad = 1; to = int8", BYTES,
     {S4(32, 512, 7, 7)}, 0},
    {"QuantizedConvolution", "filters = 512; kernel = 3; pad = 1; to = int8", BYTES,
     {S4(1, 512, 7, 7)}, 0},
    {"QuantizedConvolution",
     "filters = 144; groups = 144; kernel = 3; pad = 1; to = int8", BYTES,
     {S4(32, 144, 56, 56)}, 0},
    {"ShortcutConvolution", "filters = 512; kernel = 1; shortcut_stride = 2" RELU, HALVES,
     {S4(128, 128, 28, 28), S4(128, 256, 56, 56)}, 0},
    {"ShortcutConvolution", "filters = 1024; kernel = 1; shortcut_stride = 2" RELU,
     HALVES, {S4(128, 256, 14, 14), S4(128, 512, 28, 28)}, 0},
    {"ShortcutConvolution", "filters = 2048; kernel = 1; shortcut_stride = 2" RELU,
     HALVES, {S4(128, 512, 7, 7), S4(128, 1024, 14, 14)}, 0},
    {"ShortcutConvolution", "filters = 512; kernel = 1; shortcut_stride = 2" RELU, HALVES,
     {S4(8, 128, 28, 28), S4(8, 256, 56, 56)}, 0},
    {"ShortcutConvolution", "filters = 1024; kernel = 1; shortcut_stride = 2" RELU,
     HALVES, {S4(8, 256, 14, 14), S4(8, 512, 28, 28)}, 0},
    {"ShortcutConvolution", "filters = 2048; kernel = 1; shortcut_stride = 2" RELU,
     HALVES, {S4(8, 512, 7, 7), S4(8, 1024, 14, 14)}, 0},
    {"QuantizedSum", "to = int8", BYTES, {S4(32, 256, 56, 56), S4(32, 256, 56, 56)}, 0},
    {"Pooling", "kernel = 3; stride = 2; pad = 1", BYTES, {S4(128, 64, 112, 112)}, 0},
    {"Concatenation", "", CARD, {S4(128, 128, 56, 56), S4(128, 64, 56, 56)}, 0},
    {"Concatenation", "", CARD, {S4(128, 67, 56, 56), S4(128, 64, 56, 56)}, 0},
    {"Concatenation", "axis = 3", CARD, {S4(128, 64, 56, 56), S4(128, 64, 56, 56)}, 0},
    {"Slice", "axes = 1; begin = 32; end = 96", CARD, {S4(256, 128, 56, 56)}, 0},
    {"Slice", "axes = 2, 3; begin = 1, 1; end = -1, -1", CARD, {S4(128, 128, 58, 58)}, 0},
    {"Slice", "axes = 3; begin = -1; end = -1000; step = -1", CARD,
     {S4(128, 128, 56, 56)}, 0},
    {"Shuffle", "first = 0, 2, 3, 1", CARD, {S4(128, 128, 56, 56)}, 0},
    {"Shuffle", "first = 0, 1, 3, 2", CARD, {S4(128, 128, 56, 64)}, 0},
    {"Shuffle", "shape = 0, 8, 16, 56, 56; second = 0, 2, 1, 3, 4", CARD,
     {S4(128, 128, 56, 56)}, 0},
    {"Padding", "begin = 1, 1; end = 1, 1", CARD, {S4(128, 128, 56, 56)}, 0},
    {"Padding", "begin = 3, 3; end = 3, 3; mode = reflect", CARD,
     {S4(64, 64, 112, 112)}, 0},
    {"Padding", "begin = 0, 8, 0, 0", CARD, {S4(128, 120, 56, 56)}, 0},
    {"Resize", "scale = 2; coordinates = asymmetric", CARD, {S4(128, 64, 56, 56)}, 0},
    {"Resize", "scale = 2; mode = bilinear", CARD, {S4(128, 64, 56, 56)}, 0},
    {"Resize", "size = 70, 70; mode = bilinear", CARD, {S4(128, 67, 56, 56)}, 0},
};

struct bench {
    struct impl_device device;
    char *memory[IMPL_SETS];
    size_t room; /* bytes of each set */
    const char *only, *impl;
};

/* What is timed: an impl on an instance, or without an impl a copy. */
struct subject {
    struct bench *bench;
    struct impl_state impl;
    struct harness_node *node;
    size_t offset[HARNESS_INPUTS + HARNESS_OUTPUTS]; /* of tensors in a set */
    size_t bytes;                                    /* read and written */
};

/* ---- one impl ---------------------------------------------------------------------- */

static int launch(void *user, int set, strata_error *err)
{
    static const strata_epilogue none = {0};
    struct subject *s = user;
    const struct impl_device *d = &s->bench->device;
    struct harness_node *n = s->node;
    char *memory = s->bench->memory[set];
    if (!s->impl.impl)
        return d->ops->copy(d->handle->stream, memory + s->bench->room / 2, memory,
                            s->bytes / 2, COPY_ON_DEVICE, err);
    for (int i = 0; i < n->node.n_in; i++)
        n->in[i].data = memory + s->offset[i];
    for (int i = 0; i < n->node.n_out; i++)
        n->out[i].data = memory + s->offset[n->node.n_in + i];
    strata_run r = {.struct_size = sizeof r,
                    .n_in = n->node.n_in,
                    .n_out = n->node.n_out,
                    .n_weights = n->node.n_weights,
                    .params = n->params,
                    .state = s->impl.state,
                    .ctx = s->impl.ctx,
                    .in = n->in,
                    .out = n->out,
                    .weight = n->weight,
                    .epilogue = &none,
                    .workspace = s->impl.workspace,
                    .workspace_size = s->impl.workspace_size,
                    .stream = d->ops->stream_native(d->handle->stream),
                    .host = registry_host(),
                    .err = err};
    return s->impl.impl->run(&r);
}

static bool takes(const struct registry_impl *impl, struct harness_node *h)
{
    struct harness_formats f;
    strata_node *n = &h->node;
    const strata_impl *i = &impl->impl;
    for (uint32_t r = 0; r < i->rows.n; r++)
        for (int64_t k = 0; harness_combination(&f, &impl->rows[r], h, k); k++) {
            bool fits = f.out[0] == n->out[0].format;
            for (int p = 0; p < n->n_in; p++)
                fits &= f.in[p] == n->in[p].format;
            if (!fits)
                continue;
            n->row = (int32_t)r;
            return impl_admits(i, n);
        }
    return false;
}

static double peak(int32_t dtype)
{
    return dtype == STRATA_FP16                           ? PEAK_FP16
           : dtype == STRATA_INT8 || dtype == STRATA_E4M3 ? PEAK_BYTES
                                                          : PEAK_FP32;
}

static double peak_us(const struct harness_node *n)
{
    const strata_layer *layer = &n->layer->layer;
    const double flops = layer->flops ? layer->flops(&n->node) : (double)n->out[0].count;
    return flops / peak(n->in[0].dtype) * 1e6;
}

static int line(struct bench *b, const struct row *row, const struct registry_impl *impl,
                struct subject *s, strata_error *err)
{
    double us = 0, copy = 0;
    struct subject plain = {.bench = b, .bytes = s->bytes};
    const struct harness_node *n = s->node;
    const char *name = impl->impl.name;
    const bool capture = !(impl->impl.flags & STRATA_NO_CAPTURE);
    s->impl.impl = &impl->impl;
    int status = impl_open(&s->impl, &b->device, &n->node, err);
    if (status == STRATA_OK)
        status = impl_time(&us, &b->device, launch, s, capture, err);
    if (status == STRATA_OK)
        status = impl_time(&copy, &b->device, launch, &plain, true, err);
    impl_close(&s->impl, &b->device);
    if (status != STRATA_OK)
        return error_prefix(err, "%s {%s}, %s", row->layer, row->attrs, name), status;
    const double floor = peak_us(n) > copy ? peak_us(n) : copy;
    printf("  %-13s %-14s %9.1f us %7.0f GB/s, copy %6.0f  %8.0f GFLOP/s  share %.3f\n",
           format_mask_name(n->in[0].format, 4), name, us,
           (double)s->bytes * 1e-3 / us, (double)s->bytes * 1e-3 / copy,
           peak_us(n) / us * peak(n->in[0].dtype) * 1e-9, floor / us);
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
    *used += ((size_t)t->size * strata_dtype_size(t->dtype) + ALIGNMENT - 1) /
             ALIGNMENT * ALIGNMENT;
    return STRATA_OK;
}

/* Scales of layers of 8 bits, which random bits would not do for. */
static int put_one(struct bench *b, const strata_tensor *t, strata_error *err)
{
    const float one = 1;
    return t->count == 1 && t->dtype == STRATA_FP32
               ? b->device.ops->copy(b->device.handle->stream, t->data, &one, sizeof one,
                                     COPY_TO_DEVICE, err)
               : STRATA_OK;
}

static int place_tensors(struct bench *b, struct harness_node *n, struct format f,
                         bool stored, struct subject *s, strata_error *err)
{
    size_t used = 0, offset;
    int status = STRATA_OK;
    for (int i = 0; i < n->node.n_in && status == STRATA_OK; i++)
        status = place(&n->in[i], f, &used, &s->offset[i], err);
    for (int i = 0; i < n->node.n_out && status == STRATA_OK; i++)
        status = place(&n->out[i], f, &used, &s->offset[n->node.n_in + i], err);
    s->bytes = used;
    for (int i = 0; i < n->node.n_weights && status == STRATA_OK; i++) {
        if (n->weight[i].rank == 0)
            continue;
        const struct format linear = {n->weight[i].dtype, ORDER_LINEAR, 1};
        const int dtype = stored ? n->weight[i].dtype : n->in[0].dtype;
        status = place(&n->weight[i], linear, &used, &offset, err);
        n->weight[i].data = b->memory[0] + offset;
        if (status == STRATA_OK && used <= b->room)
            status = put_one(b, &n->weight[i], err);
        s->bytes += (size_t)n->weight[i].count * strata_dtype_size(dtype);
    }
    if (status == STRATA_OK && used > b->room)
        return error_set(err, STRATA_ENOMEM, "the tensors take %zu bytes, of %zu", used,
                         b->room);
    return status;
}

/* The weight in few bits, and its factors. */
static void give_stored(struct harness_node *n)
{
    n->weight[0] = n->stored.weight;
    n->weight[n->stored.factors] = n->stored.factor;
}

static int run_format(struct bench *b, const struct row *row, struct harness_node *n,
                      const char *name, strata_error *err)
{
    struct subject s = {.bench = b, .node = n};
    struct format f;
    int status = format_parse(&f, name, err);
    for (size_t i = 0; i < n->layer->n_impls && status == STRATA_OK; i++) {
        const struct registry_impl *impl = &n->layer->impls[i];
        const bool stored = impl->impl.flags & STRATA_WEIGHT_STORED;
        if ((b->impl && !strstr(impl->impl.name, b->impl)) ||
            !harness_suits(n, &impl->impl))
            continue;
        const strata_tensor floats = n->weight[0];
        if (stored)
            give_stored(n);
        status = place_tensors(b, n, f, stored, &s, err);
        if (status == STRATA_OK && takes(impl, n))
            status = line(b, row, impl, &s, err);
        n->weight[0] = floats;
        if (stored)
            n->weight[n->stored.factors].rank = 0;
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
    const int32_t bytes[HARNESS_INPUTS] = {STRATA_INT8, STRATA_INT8};
    const int32_t floats[HARNESS_INPUTS] = {STRATA_E4M3};
    const int64_t *d = row->in[0].dims;
    int status = registry_find(b->device.registry, row->layer, &layer, err);
    if (status != STRATA_OK)
        return status;
    int n_in = 1;
    while (n_in < (int)ARRAY_LENGTH(row->in) && row->in[n_in].rank)
        n_in++;
    if (strncmp(row->formats, "int8", 4) == 0)
        n.in_dtype = bytes;
    if (strncmp(row->formats, "e4m3", 4) == 0)
        n.in_dtype = floats;
    status =
        harness_open(&n, layer, row->attrs, row->in, n_in, no_weights, row->absent);
    if (status != STRATA_OK)
        error_set(err, status, "%s", n.err.message);
    n.node.device = STRATA_CUDA;
    n.node.sm = b->device.handle->properties.sm;
    n.node.math = STRATA_MATH_TENSOR_OP;
    n.node.stream = b->device.ops->stream_native(b->device.handle->stream);
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

static int open_bench(struct bench *b, bool quick, strata_error *err)
{
    int status = impl_device_open(&b->device, quick, err);
    b->room = (size_t)2 << 30;
    for (int i = 0; i < IMPL_SETS && status == STRATA_OK; i++) {
        b->memory[i] = allocator_get(&b->device.handle->allocator, b->room, "a set", err);
        status = b->memory[i] ? impl_fill(&b->device, b->memory[i], b->room, true, err)
                              : STRATA_ENOMEM;
    }
    return status;
}

static void close_bench(struct bench *b)
{
    if (b->device.handle)
        for (int i = 0; i < IMPL_SETS; i++)
            allocator_put(&b->device.handle->allocator, b->memory[i], b->room);
    impl_device_close(&b->device);
}

/* Whether a list of names, separated by commas, holds one; NULL holds all. */
static bool wanted(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return !list;
}

int main(int argc, char **argv)
{
    struct bench bench = {.room = 0}, *b = &bench;
    bool quick = false;
    strata_error err = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            b->only = argv[++i];
        } else if (strcmp(argv[i], "--impl") == 0 && i + 1 < argc) {
            b->impl = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--only LAYER,...] [--impl NAME] [--quick]\n",
                    argv[0]);
            return 2;
        }
    }
    int status = open_bench(b, quick, &err);
    if (status == STRATA_OK)
        printf("%s\n", strata_device_name(b->device.handle));
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && status == STRATA_OK; i++)
        if (wanted(b->only, rows[i].layer))
            status = run_row(b, &rows[i], &err);
    close_bench(b);
    if (status != STRATA_OK)
        fprintf(stderr, "%s\n", err.message);
    return status == STRATA_OK ? 0 : status == STRATA_EUNSUPPORTED ? 3 : 1;
}
