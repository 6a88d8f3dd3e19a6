/* SPDX-License-Identifier: Apache-2.0
 *
 * One decoder for every message: it walks the message's table twice, to count what is in
 * the lists and to fill them, so that memory is asked for what is there. The last of a
 * singular field wins, and messages of a singular field merge, as protobuf has it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"

/* Where the decoder is, from the inside out, for messages. */
struct place {
    const struct place *up;
    const struct onnx_message *message;
    const struct onnx_field *field; /* of the message above; NULL: a root */
    size_t index;
};

static const struct {
    enum wire_type type;
    size_t size; /* of a list's element; messages have their own */
    bool list;
} kinds[FIELD_KIND_COUNT] = {
    [FIELD_NUMBER] = {WIRE_VARINT, 0, false},
    [FIELD_REAL] = {WIRE_32, 0, false},
    [FIELD_NAME] = {WIRE_BYTES, 0, false},
    [FIELD_BYTES] = {WIRE_BYTES, 0, false},
    [FIELD_MESSAGE] = {WIRE_BYTES, 0, false},
    [FIELD_NOTED] = {WIRE_BYTES, 0, false},
    [FIELD_NAMES] = {WIRE_BYTES, sizeof(char *), true},
    [FIELD_TEXTS] = {WIRE_BYTES, sizeof(char *), true},
    [FIELD_NUMBERS] = {WIRE_VARINT, sizeof(int64_t), true},
    [FIELD_INT32S] = {WIRE_VARINT, sizeof(int32_t), true},
    [FIELD_REALS] = {WIRE_32, sizeof(double), true},
    [FIELD_FLOATS] = {WIRE_32, sizeof(float), true},
    [FIELD_DOUBLES] = {WIRE_64, sizeof(double), true},
    [FIELD_MESSAGES] = {WIRE_BYTES, 0, true},
    [FIELD_COUNTED] = {WIRE_BYTES, 0, true},
};

/* A message being decoded. */
struct job {
    struct onnx_reader *r;
    const struct onnx_message *m;
    char *raw;
    struct place place;
    size_t counts[FIELD_ROWS]; /* elements to come, of lists that have no room yet */
};

static int decode(struct job *j, struct wire w);

/* A message of the root is a root to messages, too: GraphProto.node[7]. */
static void append_place(strata_error *err, const struct place *p)
{
    const bool root = !p->up || (!p->up->field && p->field->kind == FIELD_MESSAGE);
    if (root) {
        error_append(err, "%s", p->message->name);
        return;
    }
    append_place(err, p->up);
    error_append(err, ".%s", p->field->name);
    if (p->field->kind == FIELD_MESSAGES)
        error_append(err, "[%zu]", p->index);
}

/* Say where, once; returns the error's status. */
static int placed(const struct job *j, size_t at, int status)
{
    struct onnx_reader *r = j->r;
    if (r->placed)
        return status;
    r->placed = true;
    error_prefix(r->err, "byte 0x%zx", at);
    error_append(r->err, " (");
    append_place(r->err, &j->place);
    error_append(r->err, ")");
    return status;
}

#define FAIL(j, at, ...) placed(j, at, error_set((j)->r->err, STRATA_EPARSE, __VA_ARGS__))

static const struct onnx_field *find(const struct onnx_message *m, uint32_t number)
{
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].number == number)
            return &m->fields[i];
    return NULL;
}

static size_t element_size(const struct onnx_field *f)
{
    return f->kind == FIELD_MESSAGES ? f->message->size : kinds[f->kind].size;
}

/* Whether the list's numbers come packed here. */
static bool is_packed(const struct onnx_field *f, const struct wire_field *v)
{
    return kinds[f->kind].list && kinds[f->kind].type != WIRE_BYTES &&
           v->type == WIRE_BYTES;
}

static int check_type(const struct job *j, const struct onnx_field *f,
                      const struct wire_field *v)
{
    if (v->type == kinds[f->kind].type || is_packed(f, v))
        return STRATA_OK;
    return FAIL(j, v->at, "field %" PRIu32 " (%s) has wire type %d; %d is needed",
                f->number, f->name, v->type, kinds[f->kind].type);
}

/* ---- pass 1 -------------------------------------------------------------------------
 */

static int count_packed(const struct job *j, const struct onnx_field *f,
                        const struct wire *w, const struct wire_field *v, size_t *out)
{
    struct wire numbers = wire_enter(w, v);
    return wire_count(&numbers, kinds[f->kind].type, out) < 0
               ? placed(j, numbers.fault, STRATA_EPARSE)
               : STRATA_OK;
}

static int count(struct job *j, struct wire w)
{
    struct wire_field v;
    int more;
    while ((more = wire_next(&w, &v)) > 0) {
        const struct onnx_field *f = find(j->m, v.number);
        size_t n = 1;
        if (!f)
            continue;
        int status = check_type(j, f, &v);
        if (status == STRATA_OK && is_packed(f, &v))
            status = count_packed(j, f, &w, &v, &n);
        if (status != STRATA_OK)
            return status;
        j->counts[f - j->m->fields] += n;
    }
    return more < 0 ? placed(j, w.fault, STRATA_EPARSE) : STRATA_OK;
}

/* ---- pass 2: texts ------------------------------------------------------------------
 */

static int check_name(const struct job *j, const struct onnx_field *f,
                      const struct wire_field *v)
{
    const uint32_t most = j->r->limits->name_bytes;
    if (v->size > most)
        return FAIL(j, v->at, "%s has %zu bytes, at most %" PRIu32 " are allowed",
                    f->name, v->size, most);
    uint32_t code;
    for (size_t i = 0, n; i < v->size; i += n)
        if ((n = text_decode(v->bytes + i, v->size - i, &code)) == 0 || code == 0)
            return FAIL(j, v->at,
                        "%s has byte 0x%02x at %zu; UTF-8 without NUL is needed", f->name,
                        v->bytes[i], i);
    return STRATA_OK;
}

static int read_text(const struct job *j, const struct onnx_field *f,
                     const struct wire_field *v, const char **out)
{
    int status = STRATA_OK;
    if (f->kind != FIELD_TEXTS)
        status = check_name(j, f, v);
    else if (v->size && memchr(v->bytes, 0, v->size))
        status = FAIL(j, v->at, "%s holds a text with a NUL byte in it", f->name);
    if (status != STRATA_OK)
        return status;
    *out = v->size ? onnx_copy_text(j->r->memory, v->bytes, v->size, j->r->err) : "";
    return *out ? STRATA_OK : placed(j, v->at, STRATA_ENOMEM);
}

/* ---- pass 2: lists ------------------------------------------------------------------
 */

static void *get_list(const struct job *j, const struct onnx_field *f)
{
    void *list;
    memcpy(&list, j->raw + f->offset, sizeof list);
    return list;
}

static void set_list(const struct job *j, const struct onnx_field *f, void *list)
{
    memcpy(j->raw + f->offset, &list, sizeof list);
}

static size_t *list_count(const struct job *j, const struct onnx_field *f)
{
    return (size_t *)(void *)(j->raw + f->count);
}

/* Room for all that pass 1 has counted, behind what earlier parts of a merged message
 * gave. */
static int reserve(struct job *j, const struct onnx_field *f, size_t at)
{
    size_t *more = &j->counts[f - j->m->fields];
    const size_t old = *list_count(j, f), size = element_size(f);
    if (*more == 0)
        return STRATA_OK;
    void *list = onnx_allocate(j->r->memory, old + *more, size, j->r->err);
    if (!list)
        return placed(j, at, STRATA_ENOMEM);
    if (old)
        memcpy(list, get_list(j, f), old * size);
    set_list(j, f, list);
    *more = 0;
    return STRATA_OK;
}

/* Packed numbers that are the whole list and lie as the machine has them stay there. None
 * are none: a list that is reserved and still empty must not move into the file. */
static bool adopt(struct job *j, const struct onnx_field *f, const struct wire_field *v)
{
    size_t *more = &j->counts[f - j->m->fields], *n = list_count(j, f);
    const size_t size = kinds[f->kind].size;
    if ((f->kind != FIELD_FLOATS && f->kind != FIELD_DOUBLES) || *n || *more == 0 ||
        *more != v->size / size || (uintptr_t)v->bytes % size)
        return false;
    set_list(j, f, (void *)(uintptr_t)v->bytes);
    *n = *more;
    *more = 0;
    return true;
}

static double real_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static int add_number(struct job *j, const struct onnx_field *f, uint64_t bits, size_t at)
{
    const size_t size = kinds[f->kind].size;
    const int64_t number = (int64_t)bits;
    const double real = real_of(bits);
    const void *from = f->kind == FIELD_REALS ? (const void *)&real : &bits;
    if (f->kind == FIELD_INT32S && (number < INT32_MIN || number > INT32_MAX))
        return FAIL(j, at, "%s holds %" PRId64 ", which is no 32-bit number", f->name,
                    number);
    memcpy((char *)get_list(j, f) + (*list_count(j, f))++ * size, from, size);
    return STRATA_OK;
}

static int add_packed(struct job *j, const struct onnx_field *f, const struct wire *w,
                      const struct wire_field *v)
{
    struct wire numbers = wire_enter(w, v);
    uint64_t bits;
    if (adopt(j, f, v))
        return STRATA_OK;
    int status = reserve(j, f, v->at);
    while (status == STRATA_OK && numbers.at < numbers.end) {
        if (wire_number(&numbers, kinds[f->kind].type, &bits) < 0)
            return placed(j, numbers.fault, STRATA_EPARSE);
        status = add_number(j, f, bits, v->at);
    }
    return status;
}

/* ---- pass 2: messages ---------------------------------------------------------------
 */

/* "" for the names that are absent, in messages of singular fields, too. */
static void settle(const struct onnx_message *m, char *raw)
{
    static const char *const none = "";
    for (size_t i = 0; i < m->n_fields; i++) {
        const struct onnx_field *f = &m->fields[i];
        const char *name;
        if (f->kind == FIELD_MESSAGE)
            settle(f->message, raw + f->offset);
        if (f->kind != FIELD_NAME)
            continue;
        memcpy(&name, raw + f->offset, sizeof name);
        if (!name)
            memcpy(raw + f->offset, &none, sizeof none);
    }
}

static int finish(struct job *j, void *out, size_t at)
{
    settle(j->m, j->raw);
    int status = j->m->finish(j->r, j->raw, out);
    return status == STRATA_OK ? status : placed(j, at, status);
}

static int add_message(struct job *j, const struct onnx_field *f, const struct wire *w,
                       const struct wire_field *v)
{
    union raw_element raw;
    size_t *n = list_count(j, f);
    memset(&raw, 0, f->message->raw_size);
    struct job sub = {.r = j->r,
                      .m = f->message,
                      .raw = (char *)&raw,
                      .place = {&j->place, f->message, f, *n}};
    int status = decode(&sub, wire_enter(w, v));
    if (status == STRATA_OK)
        status = finish(&sub, (char *)get_list(j, f) + *n * element_size(f), v->at);
    if (status == STRATA_OK)
        ++*n;
    return status;
}

static int merge_message(struct job *j, const struct onnx_field *f, const struct wire *w,
                         const struct wire_field *v)
{
    struct job sub = {.r = j->r,
                      .m = f->message,
                      .raw = j->raw + f->offset,
                      .place = {&j->place, f->message, f, 0}};
    return decode(&sub, wire_enter(w, v));
}

/* ---- pass 2 -------------------------------------------------------------------------
 */

static int add(struct job *j, const struct onnx_field *f, const struct wire *w,
               const struct wire_field *v)
{
    const char *text;
    if (is_packed(f, v))
        return add_packed(j, f, w, v);
    if (f->kind == FIELD_COUNTED) {
        ++*list_count(j, f);
        return STRATA_OK;
    }
    int status = reserve(j, f, v->at);
    if (status != STRATA_OK)
        return status;
    if (f->kind == FIELD_MESSAGES)
        return add_message(j, f, w, v);
    if (kinds[f->kind].type != WIRE_BYTES)
        return add_number(j, f, v->value, v->at);
    status = read_text(j, f, v, &text);
    if (status == STRATA_OK)
        ((const char **)get_list(j, f))[(*list_count(j, f))++] = text;
    return status;
}

static int store(struct job *j, const struct onnx_field *f, const struct wire *w,
                 const struct wire_field *v)
{
    void *at = j->raw + f->offset;
    const struct onnx_bytes bytes = {v->bytes, v->size};
    const int64_t number = (int64_t)v->value;
    const double real = real_of(v->value);
    switch (f->kind) {
    case FIELD_NUMBER:
        memcpy(at, &number, sizeof number);
        return STRATA_OK;
    case FIELD_REAL:
        memcpy(at, &real, sizeof real);
        return STRATA_OK;
    case FIELD_BYTES:
        memcpy(at, &bytes, sizeof bytes);
        return STRATA_OK;
    case FIELD_NAME:
        return read_text(j, f, v, (const char **)at);
    case FIELD_MESSAGE:
        return merge_message(j, f, w, v);
    case FIELD_NOTED:
        return STRATA_OK;
    default:
        return add(j, f, w, v);
    }
}

/* Another field of a oneof takes the place of what was there. */
static void choose(const struct job *j, const struct onnx_field *f)
{
    int64_t *which = (int64_t *)(void *)(j->raw + f->which);
    if (f->which && *which != f->number) {
        *which = f->number;
        if (f->kind == FIELD_MESSAGE)
            memset(j->raw + f->offset, 0, f->message->raw_size);
    }
}

static int decode(struct job *j, struct wire w)
{
    struct wire_field v;
    const size_t begin = (size_t)(w.at - w.file);
    if (j->r->depth >= j->r->limits->depth)
        return FAIL(j, begin, "messages are nested more than %" PRIu32 " deep",
                    j->r->limits->depth);
    j->r->depth++;
    int status = count(j, w);
    while (status == STRATA_OK && wire_next(&w, &v) > 0) {
        const struct onnx_field *f = find(j->m, v.number);
        if (!f)
            continue;
        *(uint64_t *)(void *)j->raw |= UINT64_C(1) << (f - j->m->fields);
        choose(j, f);
        status = store(j, f, &w, &v);
    }
    j->r->depth--;
    return status;
}

int onnx_decode(struct onnx_reader *r, const struct onnx_message *m, const void *bytes,
                size_t size, void *raw, void *out)
{
    struct job j = {.r = r, .m = m, .raw = raw, .place = {.message = m}};
    const uint8_t *at = bytes;
    int status = decode(&j, (struct wire){r->file, at, at + size, 0, r->err});
    return status == STRATA_OK ? finish(&j, out, 0) : status;
}
