/* SPDX-License-Identifier: Apache-2.0
 *
 * Protocol buffers on the wire.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/wire.h"

#include <inttypes.h>

#define LAST_FIELD ((UINT32_C(1) << 29) - 1)

static size_t left(const struct wire *w)
{
    return (size_t)(w->end - w->at);
}

#define FAIL(w, place, ...)                                                              \
    ((w)->fault = (size_t)((place) - (w)->file),                                         \
     (void)error_set((w)->err, STRATA_EPARSE, __VA_ARGS__), -1)

static int read_varint(struct wire *w, uint64_t *out)
{
    const uint8_t *start = w->at;
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            return FAIL(w, start, "the message ends amid a number");
        const uint8_t byte = *w->at++;
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return 0;
        }
    }
    return FAIL(w, start, "a number of more than 64 bits");
}

static int read_fixed(struct wire *w, size_t size, uint64_t *out)
{
    if (left(w) < size)
        return FAIL(w, w->at, "a number of %zu bytes runs past the message's end", size);
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)w->at[i] << 8 * i;
    w->at += size;
    return 0;
}

int wire_number(struct wire *w, enum wire_type type, uint64_t *out)
{
    return type == WIRE_VARINT ? read_varint(w, out)
                               : read_fixed(w, type == WIRE_64 ? 8 : 4, out);
}

static int read_bytes(struct wire *w, struct wire_field *out)
{
    uint64_t size;
    const uint8_t *start = w->at;
    if (read_varint(w, &size) < 0)
        return -1;
    if (size > left(w))
        return FAIL(w, start, "length %" PRIu64 " runs past the message's end", size);
    out->bytes = w->at;
    out->size = (size_t)size;
    w->at += size;
    return 0;
}

int wire_next(struct wire *w, struct wire_field *out)
{
    uint64_t tag;
    const uint8_t *start = w->at;
    if (w->at == w->end)
        return 0;
    if (read_varint(w, &tag) < 0)
        return -1;
    const unsigned type = tag & 7;
    *out = (struct wire_field){.number = (uint32_t)(tag >> 3),
                               .type = (enum wire_type)type,
                               .at = (size_t)(start - w->file)};
    if (tag >> 3 == 0 || tag >> 3 > LAST_FIELD)
        return FAIL(w, start, "field number %" PRIu64 ", of 1 to %" PRIu32, tag >> 3,
                    LAST_FIELD);
    switch (out->type) {
    case WIRE_VARINT:
    case WIRE_64:
    case WIRE_32:
        return wire_number(w, out->type, &out->value) < 0 ? -1 : 1;
    case WIRE_BYTES:
        return read_bytes(w, out) < 0 ? -1 : 1;
    case WIRE_GROUP:
    case WIRE_GROUP_END:
        return FAIL(w, start, "field %" PRIu32 " is a group; no ONNX message has one",
                    out->number);
    }
    return FAIL(w, start, "field %" PRIu32 " has wire type %u, of 0 to 5", out->number,
                type);
}

struct wire wire_enter(const struct wire *w, const struct wire_field *f)
{
    return (struct wire){w->file, f->bytes, f->bytes + f->size, 0, w->err};
}

int wire_count(struct wire *w, enum wire_type type, size_t *out)
{
    const size_t size = type == WIRE_64 ? 8 : 4;
    *out = 0;
    if (type == WIRE_VARINT) {
        for (const uint8_t *p = w->at; p < w->end; p++)
            *out += *p < 0x80;
        if (left(w) && w->end[-1] >= 0x80)
            return FAIL(w, w->end - 1, "packed numbers end amid one");
        return 0;
    }
    *out = left(w) / size;
    if (left(w) % size)
        return FAIL(w, w->at, "%zu bytes of packed numbers of %zu bytes each", left(w),
                    size);
    return 0;
}
