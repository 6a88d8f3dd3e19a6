/* SPDX-License-Identifier: Apache-2.0
 *
 * Bindings as the server sees tensors: an element type and dims, the outermost first.
 */
#include "serving/triton/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct type {
    int dtype;
    TRITONSERVER_DataType type;
    const char *name;
} types[] = {
    {STRATA_FP32, TRITONSERVER_TYPE_FP32, "TYPE_FP32"},
    {STRATA_FP16, TRITONSERVER_TYPE_FP16, "TYPE_FP16"},
    {STRATA_BF16, TRITONSERVER_TYPE_BF16, "TYPE_BF16"},
    {STRATA_FP64, TRITONSERVER_TYPE_FP64, "TYPE_FP64"},
    {STRATA_INT8, TRITONSERVER_TYPE_INT8, "TYPE_INT8"},
    {STRATA_UINT8, TRITONSERVER_TYPE_UINT8, "TYPE_UINT8"},
    {STRATA_INT32, TRITONSERVER_TYPE_INT32, "TYPE_INT32"},
    {STRATA_INT64, TRITONSERVER_TYPE_INT64, "TYPE_INT64"},
    {STRATA_BOOL8, TRITONSERVER_TYPE_BOOL, "TYPE_BOOL"},
};

const char *type_name(TRITONSERVER_DataType type)
{
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (types[i].type == type)
            return types[i].name;
    return "another type";
}

static int refuse(strata_error *err, const strata_binding *b, const char *why)
{
    err->status = STRATA_EUNSUPPORTED;
    const int n = snprintf(err->message, sizeof err->message,
                           "binding '%s' (%s): %s; give the network's section of it a "
                           "linear format of another type",
                           b->name, b->format, why);
    err->length = n > 0 ? (uint32_t)n : 0;
    return STRATA_EUNSUPPORTED;
}

/* Dims from the largest stride to the smallest; equal ones as they stand. */
static void order_dims(struct tensor *out, const strata_desc *d)
{
    for (int i = 0; i < d->rank; i++) {
        int at = i;
        for (; at > 0 && d->strides[out->order[at - 1]] < d->strides[i]; at--)
            out->order[at] = out->order[at - 1];
        out->order[at] = i;
    }
}

int tensor_describe(struct tensor *out, const strata_binding *b, strata_error *err)
{
    const strata_desc *d = &b->desc;
    *out = (struct tensor){.name = b->name, .rank = d->rank};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (types[i].dtype == d->dtype)
            out->type = types[i].type;
    if (out->type == TRITONSERVER_TYPE_INVALID)
        return refuse(err, b, "the server has no such type");
    if (d->vector > 1 || !strata_desc_fully_packed(d))
        return refuse(err, b, "the server has no tensors with vectors or gaps");
    order_dims(out, d);
    if (out->order[0] != 0)
        return refuse(err, b, "its rows are not in one piece each");
    for (int i = 0; i < d->rank; i++)
        out->dims[i] = d->dims[out->order[i]];
    return STRATA_OK;
}

void tensor_text(char *out, size_t size, const struct tensor *t, int first)
{
    size_t at = (size_t)snprintf(out, size, "%s", type_name(t->type));
    for (int i = first; i < t->rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64,
                               i == first ? " " : " x ", t->dims[i]);
}
