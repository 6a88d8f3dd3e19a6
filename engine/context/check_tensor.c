/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's tensors, element by element, in an image of them in host memory.
 */
#include "engine/context/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- walking ----------------------------------------------------------------------- */

/* All lanes of a tensor in row-major order, those of pads too. */
struct walk {
    const strata_tensor *t;
    char *image;
    int64_t dims[STRATA_MAX_RANK], index[STRATA_MAX_RANK];
    bool live; /* at an element, not at a pad lane */
    char *at;
};

static void locate(struct walk *w)
{
    const strata_tensor *t = w->t;
    w->live = t->vector_dim < 0 || w->index[t->vector_dim] < t->dims[t->vector_dim];
    if (w->image)
        w->at =
            w->image + (size_t)strata_offset(t, w->index) * strata_dtype_size(t->dtype);
}

static void walk_begin(struct walk *w, const strata_tensor *t, char *image)
{
    *w = (struct walk){.t = t, .image = image};
    memcpy(w->dims, t->dims, sizeof w->dims);
    if (t->vector_dim >= 0)
        w->dims[t->vector_dim] =
            (t->dims[t->vector_dim] + t->vector - 1) / t->vector * t->vector;
    locate(w);
}

static bool walk_next(struct walk *w)
{
    for (int d = w->t->rank - 1; d >= 0; d--) {
        if (++w->index[d] < w->dims[d]) {
            locate(w);
            return true;
        }
        w->index[d] = 0;
    }
    return false;
}

/* "(0, 3, 1, 2)" */
static const char *place(const struct walk *w, char text[GUARD_PLACE])
{
    size_t used = 0;
    for (int d = 0; d < w->t->rank && used < GUARD_PLACE - 24; d++)
        used += (size_t)snprintf(text + used, GUARD_PLACE - used, "%s%lld",
                                 d ? ", " : "(", (long long)w->index[d]);
    snprintf(text + used, GUARD_PLACE - used, ")");
    return text;
}

/* ---- elements ---------------------------------------------------------------------- */

static bool all_bytes(const char *at, size_t size, unsigned char byte)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)at[i] != byte)
            return false;
    return true;
}

/* The largest magnitude of each floating-point dtype that is no NaN, as bits. */
static const uint64_t largest[STRATA_DTYPE_COUNT] = {
    [STRATA_FP32] = 0x7f800000, [STRATA_FP16] = 0x7c00,
    [STRATA_BF16] = 0x7f80,     [STRATA_E4M3] = 0x7e,
    [STRATA_E5M2] = 0x7c,       [STRATA_FP64] = 0x7ff0000000000000,
};

bool guard_can_be_nan(const strata_tensor *t)
{
    return largest[t->dtype] != 0;
}

/* An element's bits without its sign; little-endian. */
static uint64_t magnitude_of(const strata_tensor *t, const char *at)
{
    const size_t size = strata_dtype_size(t->dtype);
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    return bits & ~(UINT64_C(1) << (8 * size - 1));
}

static bool is_nan(const strata_tensor *t, const char *at)
{
    return magnitude_of(t, at) > largest[t->dtype];
}

static bool is_zero(const strata_tensor *t, const char *at)
{
    return guard_can_be_nan(t) ? magnitude_of(t, at) == 0
                               : all_bytes(at, strata_dtype_size(t->dtype), 0);
}

/* ---- tensors ----------------------------------------------------------------------- */

static int take_image(strata_context *c, const strata_tensor *t, strata_error *err)
{
    struct context_check *k = c->check;
    const size_t bytes = guard_bytes(t);
    if (bytes > k->image_bytes) {
        char *larger = realloc(k->image, bytes);
        if (!larger)
            return error_no_memory(err, bytes, "an image of a tensor");
        k->image = larger;
        k->image_bytes = bytes;
    }
    return guard_fetch(c, k->image, t->data, bytes, err);
}

static bool has_pads(const strata_tensor *t)
{
    return t->vector_dim >= 0 && t->dims[t->vector_dim] % t->vector != 0;
}

bool guard_is_dense(const strata_tensor *t)
{
    struct walk w;
    int64_t lanes = 1;
    walk_begin(&w, t, NULL);
    for (int d = 0; d < t->rank; d++)
        lanes *= w.dims[d];
    return lanes == t->size;
}

int guard_fill(strata_context *c, const strata_tensor *t, int byte, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    struct walk w;
    if (t->count == 0)
        return STRATA_OK;
    if (guard_is_dense(t))
        return ops->fill(c->stream, t->data, byte, guard_bytes(t), err);
    int status = take_image(c, t, err);
    if (status != STRATA_OK)
        return status;
    walk_begin(&w, t, c->check->image);
    do
        memset(w.at, byte, strata_dtype_size(t->dtype));
    while (walk_next(&w));
    status = ops->copy(c->stream, t->data, c->check->image, guard_bytes(t),
                       COPY_TO_DEVICE, err);
    return status != STRATA_OK ? status : ops->stream_synchronize(c->stream, err);
}

void guard_transfer(const strata_tensor *t, char *to, char *from)
{
    struct walk w;
    if (t->count == 0)
        return;
    walk_begin(&w, t, from);
    do
        memcpy(to + (w.at - from), w.at, strata_dtype_size(t->dtype));
    while (walk_next(&w));
}

int guard_fill_pads(strata_context *c, const strata_tensor *t, int byte,
                    strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    const size_t size = strata_dtype_size(t->dtype);
    struct walk w;
    if (t->pad != STRATA_PAD_ANY || !has_pads(t) || t->count == 0)
        return STRATA_OK;
    int status = take_image(c, t, err);
    if (status != STRATA_OK)
        return status;
    walk_begin(&w, t, c->check->image);
    do
        if (!w.live)
            memset(w.at, byte, size);
    while (walk_next(&w));
    status = ops->copy(c->stream, t->data, c->check->image, guard_bytes(t),
                       COPY_TO_DEVICE, err);
    return status != STRATA_OK ? status : ops->stream_synchronize(c->stream, err);
}

int guard_find_nan(strata_context *c, const strata_tensor *t, int64_t *at,
                   strata_error *err)
{
    struct walk w;
    int64_t steps = 0;
    *at = -1;
    if (!guard_can_be_nan(t) || t->count == 0)
        return STRATA_OK;
    int status = take_image(c, t, err);
    if (status != STRATA_OK)
        return status;
    walk_begin(&w, t, c->check->image);
    do {
        if (w.live && is_nan(t, w.at))
            *at = steps;
        steps++;
    } while (*at < 0 && walk_next(&w));
    return STRATA_OK;
}

int guard_look(strata_context *c, const strata_tensor *t, int64_t at,
               enum guard_sight *seen, char text[GUARD_PLACE], strata_error *err)
{
    struct walk w;
    int status = take_image(c, t, err);
    if (status != STRATA_OK)
        return status;
    walk_begin(&w, t, c->check->image);
    while (at-- > 0 && walk_next(&w))
        ;
    *seen = is_nan(t, w.at) ? GUARD_SEES_NAN
            : all_bytes(w.at, strata_dtype_size(t->dtype), GUARD_OTHER)
                ? GUARD_SEES_FILL
                : GUARD_SEES_VALUE;
    place(&w, text);
    return STRATA_OK;
}

/* The input that a value is, or -1. */
static int input_of(const strata_context *c, int value)
{
    const struct execution *x = c->execution;
    const int binding = x->values[x->values[value].owner].binding;
    return binding >= 0 && binding < (int)x->n_inputs ? binding : -1;
}

int guard_input(strata_context *c, size_t node, int i, strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[node];
    const strata_tensor *t = &c->nodes[node].in[execution_port(n, i)];
    const int binding = input_of(c, n->in_values[i]);
    char text[GUARD_PLACE];
    struct walk w;
    if (binding < 0 || !has_pads(t) || t->count == 0 || t->pad != STRATA_PAD_ZERO)
        return STRATA_OK;
    int status = take_image(c, t, err);
    if (status != STRATA_OK)
        return status;
    const int64_t rows =
        c->engine->row_bytes[binding] ? context_rows(c->whole) : t->dims[0];
    walk_begin(&w, t, c->check->image);
    do
        if (!w.live && w.index[0] < rows && !is_zero(t, w.at))
            return error_set(err, STRATA_EINVAL,
                             "%s: input '%s': STRATA_CHECK: its pad lane at %s is not "
                             "zero; clear the pad lanes of what is bound or copied, or "
                             "write pads = any in [input %s]",
                             c->engine->network->path,
                             c->execution->bindings[binding].name, place(&w, text),
                             c->execution->bindings[binding].name);
    while (walk_next(&w));
    return STRATA_OK;
}

int guard_output(strata_context *c, size_t node, int i, strata_error *err)
{
    const strata_tensor *t = &c->nodes[node].out[i];
    char text[GUARD_PLACE];
    struct walk w;
    if (!has_pads(t) || t->count == 0)
        return STRATA_OK;
    int status = take_image(c, t, err);
    if (status != STRATA_OK)
        return status;
    walk_begin(&w, t, c->check->image);
    do
        if (!w.live && t->pad == STRATA_PAD_ZERO && !is_zero(t, w.at))
            return guard_found(c, node, err,
                               "left a pad lane of output %d at %s that is not zero", i,
                               place(&w, text));
    while (walk_next(&w));
    return guard_fill_pads(c, t, GUARD_POISON, err);
}
