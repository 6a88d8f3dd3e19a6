/* SPDX-License-Identifier: Apache-2.0
 *
 * Protocol buffers on the wire: fields one after the other, of a message that a reader
 * cannot see past. It knows no message and asks for no memory.
 */
#ifndef IO_ONNX_WIRE_H
#define IO_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum wire_type {
    WIRE_VARINT,
    WIRE_64,
    WIRE_BYTES, /* length and bytes: text, message, packed numbers */
    WIRE_GROUP,
    WIRE_GROUP_END,
    WIRE_32,
};

/* What is left of a message. `fault`: the file's byte that the last error is about. */
struct wire {
    const uint8_t *file, *at, *end;
    size_t fault;
    strata_error *err;
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;       /* VARINT, 64, 32 */
    const uint8_t *bytes; /* BYTES */
    size_t size;
    size_t at; /* the file's byte where the field begins */
};

/* 1: a field; 0: the message's end; -1: damaged, with the reason in w->err. */
int wire_next(struct wire *w, struct wire_field *out);
/* A number of `type` (not BYTES); 0, or -1 as above. */
int wire_number(struct wire *w, enum wire_type type, uint64_t *out);
/* The bytes of a field as a message or as packed numbers. */
struct wire wire_enter(const struct wire *w, const struct wire_field *f);
/* Numbers packed in the bytes of a field; 0, or -1 where they end amid one. */
int wire_count(struct wire *w, enum wire_type type, size_t *out);

#endif /* IO_ONNX_WIRE_H */
