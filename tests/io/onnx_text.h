/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of protocol buffers from a text, for tests of the reader:
 *   N:12 N:-1     a varint          N:f1.5    a float           N:d1.5   a double
 *   N:'text'      bytes             N:=0aff   bytes in hex      N:{ ... } a message
 *   N:[1 2 -3]    packed varints    !0aff     bytes as they are, without a field
 */
#ifndef TESTS_IO_ONNX_TEXT_H
#define TESTS_IO_ONNX_TEXT_H

#include <ctype.h>
#include <inttypes.h>

#include "io/onnx/model.h"
#include "tests/support/scratch.h"

static inline void put_bytes(struct blob *b, const void *bytes, size_t size)
{
    b->bytes = realloc(b->bytes, b->size + size + 1);
    cr_assert_not_null(b->bytes);
    if (size)
        memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static inline void put_varint(struct blob *b, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put_bytes(b, &byte, 1);
    } while (value >>= 7);
}

static inline void put_field(struct blob *b, unsigned number, unsigned type)
{
    put_varint(b, (uint64_t)number << 3 | type);
}

static inline void put_sized(struct blob *b, unsigned number, const struct blob *sub)
{
    put_field(b, number, 2);
    put_varint(b, sub->size);
    put_bytes(b, sub->bytes, sub->size);
}

static inline const char *put_hex(struct blob *b, const char *at)
{
    for (; isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]); at += 2) {
        char digits[3] = {at[0], at[1], 0};
        unsigned char byte = (unsigned char)strtoul(digits, NULL, 16);
        put_bytes(b, &byte, 1);
    }
    return at;
}

static inline const char *put_message(struct blob *b, const char *at);

static inline const char *put_value(struct blob *b, unsigned number, const char *at)
{
    struct blob sub = {0};
    char *end = NULL;
    const char kind = *at;
    if (kind == 'f' || kind == 'd') {
        double wide = strtod(at + 1, &end);
        float narrow = (float)wide;
        put_field(b, number, kind == 'd' ? 1 : 5);
        put_bytes(b, kind == 'd' ? (void *)&wide : (void *)&narrow, kind == 'd' ? 8 : 4);
        return end;
    }
    if (isdigit((unsigned char)kind) || kind == '-') {
        put_field(b, number, 0);
        put_varint(b, kind == '-' ? (uint64_t)strtoll(at, &end, 10)
                                  : (uint64_t)strtoull(at, &end, 10));
        return end;
    }
    at++;
    if (kind == '\'') {
        const char *quote = strchr(at, '\'');
        put_bytes(&sub, at, (size_t)(quote - at));
        at = quote + 1;
    } else if (kind == '=') {
        at = put_hex(&sub, at);
    } else if (kind == '[') {
        for (; *at != ']'; at = end + (*end == ' '))
            put_varint(&sub, (uint64_t)strtoll(at, &end, 10));
        at++;
    } else {
        cr_assert_eq(kind, '{', "no value: %s", at - 1);
        at = put_message(&sub, at);
        cr_assert_eq(*at++, '}');
    }
    put_sized(b, number, &sub);
    free(sub.bytes);
    return at;
}

/* To the text's end or to a '}'. */
static inline const char *put_message(struct blob *b, const char *at)
{
    while (*at && *at != '}') {
        char *end = NULL;
        if (*at == ' ') {
            at++;
        } else if (*at == '!') {
            at = put_hex(b, at + 1);
        } else {
            unsigned number = (unsigned)strtoul(at, &end, 10);
            cr_assert_eq(*end, ':', "no field: %s", at);
            at = put_value(b, number, end + 1);
        }
    }
    return at;
}

/* Of the exact size on the heap, so that sanitizers see a read past the end. */
static inline struct blob onnx_text(const char *text)
{
    struct blob b = {0};
    const char *end = put_message(&b, text);
    cr_assert_eq(*end, '\0', "%s", end);
    b.bytes = realloc(b.bytes, b.size ? b.size : 1);
    cr_assert_not_null(b.bytes);
    return b;
}

#define MODEL(graph) "1:8 8:{2:13} 7:{" graph "}"
#define TENSOR(fields) MODEL("5:{8:'w' " fields "}")
#define NODE(fields) MODEL("1:{4:'Op' " fields "}")
#define ATTRIBUTE(fields) NODE("5:{1:'a' " fields "}")
#define VALUE(type) MODEL("11:{1:'x' 2:{" type "}}")

/* A model that is read; the bytes are the caller's to free. */
static inline const struct onnx_model *read_text(struct blob *b, const char *text)
{
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    *b = onnx_text(text);
    int status = onnx_parse(&m, b->bytes, b->size, "net.onnx", NULL, &err);
    cr_assert_eq(status, STRATA_OK, "%s: %s", text, err.message);
    return m;
}

/* A refusal names the path and `place`, and says `what`. */
static inline void expect_error(const char *name, int status, const strata_error *err,
                                const char *path, const char *place, const char *what)
{
    cr_expect(status == err->status && status != STRATA_OK, "%s: status %d, error %d: %s",
              name, status, err->status, err->message);
    cr_expect(strncmp(err->message, path, strlen(path)) == 0,
              "%s: path is not first in: %s", name, err->message);
    cr_expect_not_null(strstr(err->message, place), "%s: no '%s' in: %s", name, place,
                       err->message);
    cr_expect_not_null(strstr(err->message, what), "%s: no '%s' in: %s", name, what,
                       err->message);
    for (const char *c = err->message; *c; c++)
        cr_expect(*c >= ' ' && *c <= '~', "%s: byte %02x in the message", name,
                  (unsigned char)*c);
}

static inline void expect_refused(const char *name, const struct blob *b,
                                  const struct onnx_limits *limits, const char *place,
                                  const char *what)
{
    strata_error err = {0};
    const struct onnx_model *m = (const struct onnx_model *)&err;
    int status = onnx_parse(&m, b->bytes, b->size, "net.onnx", limits, &err);
    expect_error(name, status, &err, "net.onnx: ", place, what);
    cr_expect_null(m, "%s: a model in spite of failure", name);
    cr_expect_eq(onnx_parse(&m, b->bytes, b->size, "net.onnx", limits, NULL), status,
                 "%s: another status without an error to fill", name);
}

#endif /* TESTS_IO_ONNX_TEXT_H */
