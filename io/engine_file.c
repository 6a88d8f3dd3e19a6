/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading: size, magic, header hash, version, features, table, padding, content hash, in
 * this order, so that each refusal names the first thing that is wrong. All numbers are
 * little-endian, read and written byte by byte.
 *
 * The content's hash is one of hashes, of a piece each, so that several threads can check
 * a large file.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/engine_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/team.h"

/* A high bit, CR LF, ^Z and LF: what copying as text would change (as PNG's does). */
static const uint8_t magic[8] = {0x93, 'S', 'T', 'R', '\r', '\n', 0x1a, '\n'};

#define NAME_SIZE 4 /* bytes of the magic that copying as text leaves alone */

#define ENDIAN_MARK 0x01020304u
#define HASH_SIZE SHA256_DIGEST_SIZE
#define CHECK_SIZE 4 /* bytes of the header's own hash */
#define HASH_PIECE ((size_t)1 << 20)

enum header_offset {
    AT_MAGIC = 0,
    AT_ENDIAN = 8,
    AT_MAJOR = 12,
    AT_MINOR = 14,
    AT_HEADER_SIZE = 16,
    AT_SECTIONS = 20,
    AT_FILE_SIZE = 24,
    AT_INCOMPATIBLE = 32,
    AT_COMPATIBLE = 40,
    AT_REWRITE = 48,
    AT_BUILDER = 56,
    AT_HASH = 88,
    AT_RESERVED = 120,
    AT_CHECK = 124
};
enum entry_offset { ENTRY_NAME = 0, ENTRY_BEGIN = 16, ENTRY_SIZE = 24, ENTRY_REST = 32 };

#define KNOWN_INCOMPATIBLE UINT64_C(0)

/* ---- numbers ------------------------------------------------------------------------
 */

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static bool all_zero(const uint8_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* The first bytes of the SHA-256 of what comes before them. */
static void header_check(uint8_t *out, const uint8_t *header)
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, AT_CHECK, header);
    sha256_digest(&hash, CHECK_SIZE, out);
}

/* ---- the content's hash ------------------------------------------------------------ */

/* Fed in any portions; `filled` bytes are in the piece at hand. */
struct hashing {
    struct sha256_ctx all, piece;
    size_t filled;
};

static void hash_begin(struct hashing *h)
{
    sha256_init(&h->all);
    sha256_init(&h->piece);
    h->filled = 0;
}

static void end_piece(struct hashing *h)
{
    uint8_t digest[HASH_SIZE];
    sha256_digest(&h->piece, sizeof digest, digest); /* which starts it anew */
    sha256_update(&h->all, sizeof digest, digest);
    h->filled = 0;
}

static void hash_more(struct hashing *h, const uint8_t *data, size_t size)
{
    while (size > 0) {
        size_t n = HASH_PIECE - h->filled < size ? HASH_PIECE - h->filled : size;
        sha256_update(&h->piece, n, data);
        h->filled += n;
        data += n;
        size -= n;
        if (h->filled == HASH_PIECE)
            end_piece(h);
    }
}

static void hash_end(struct hashing *h, uint8_t *out)
{
    if (h->filled > 0)
        end_piece(h);
    sha256_digest(&h->all, HASH_SIZE, out);
}

/* The same of bytes in one place, by all threads; ENOMEM. */
static int hash_content(uint8_t *out, const uint8_t *data, size_t size, strata_error *err)
{
    const size_t n = size / HASH_PIECE + (size % HASH_PIECE != 0);
    struct sha256_ctx all;
    uint8_t *digests = zalloc(n, HASH_SIZE, "hashes", err);
    if (!digests)
        return STRATA_ENOMEM;
#pragma omp parallel for if (n > 2) schedule(dynamic)
    for (size_t i = 0; i < n; i++) {
        struct sha256_ctx piece;
        const size_t rest = size - i * HASH_PIECE;
        sha256_init(&piece);
        sha256_update(&piece, rest < HASH_PIECE ? rest : HASH_PIECE,
                      data + i * HASH_PIECE);
        sha256_digest(&piece, HASH_SIZE, digests + i * HASH_SIZE);
    }
    if (n > 2)
        team_end();
    sha256_init(&all);
    sha256_update(&all, n * HASH_SIZE, digests);
    sha256_digest(&all, HASH_SIZE, out);
    free(digests);
    return STRATA_OK;
}

static bool good_name(const uint8_t *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strnlen((const char *)name, ENGINE_FILE_NAME);
    return n > 0 && n < ENGINE_FILE_NAME && strspn((const char *)name, allowed) == n &&
           all_zero(name + n, ENGINE_FILE_NAME - n);
}

/* ---- writing ------------------------------------------------------------------------
 */

struct writing {
    uint8_t head[ENGINE_FILE_HEADER + ENGINE_FILE_SECTIONS * ENGINE_FILE_ENTRY];
    struct file_piece pieces[1 + 2 * ENGINE_FILE_SECTIONS];
    size_t n_pieces;
    int64_t size; /* of the file so far */
};

static const uint8_t zeros[ENGINE_FILE_ALIGNMENT];

static int check_sections(const struct engine_section *sections, size_t n,
                          strata_error *err)
{
    if (n == 0 || n > ENGINE_FILE_SECTIONS)
        return error_set(err, STRATA_EINVAL, "%zu sections; an engine file has 1 to %d",
                         n, ENGINE_FILE_SECTIONS);
    for (size_t i = 0; i < n; i++) {
        if (!good_name((const uint8_t *)sections[i].name))
            return error_set(err, STRATA_EINVAL, "section %zu has no valid name", i);
        for (size_t j = 0; j < i; j++)
            if (strcmp(sections[i].name, sections[j].name) == 0)
                return error_set(err, STRATA_EINVAL, "section '%s' comes twice",
                                 sections[i].name);
    }
    return STRATA_OK;
}

/* Padding up to the next section's begin, then the section. */
static int place_section(struct writing *w, const struct engine_section *s, size_t index,
                         strata_error *err)
{
    uint8_t *entry = w->head + ENGINE_FILE_HEADER + index * ENGINE_FILE_ENTRY;
    int64_t begin, end;
    if (s->size > ENGINE_FILE_MAX ||
        !checked_round_up(w->size, ENGINE_FILE_ALIGNMENT, &begin) ||
        !checked_add(begin, (int64_t)s->size, &end) || end > (int64_t)ENGINE_FILE_MAX)
        return error_set(err, STRATA_EOVERFLOW,
                         "section '%s' of %zu bytes: an engine file has at most %" PRIu64
                         " bytes",
                         s->name, s->size, ENGINE_FILE_MAX);
    w->pieces[w->n_pieces++] = (struct file_piece){zeros, (size_t)(begin - w->size)};
    w->pieces[w->n_pieces++] = (struct file_piece){s->data, s->size};
    memcpy(entry + ENTRY_NAME, s->name, strlen(s->name));
    put(entry + ENTRY_BEGIN, (uint64_t)begin, 8);
    put(entry + ENTRY_SIZE, s->size, 8);
    w->size = end;
    return STRATA_OK;
}

static void write_header(struct writing *w, size_t n, const char *builder)
{
    uint8_t *h = w->head;
    struct hashing hash;
    memcpy(h + AT_MAGIC, magic, sizeof magic);
    put(h + AT_ENDIAN, ENDIAN_MARK, 4);
    put(h + AT_MAJOR, ENGINE_FILE_MAJOR, 2);
    put(h + AT_MINOR, ENGINE_FILE_MINOR, 2);
    put(h + AT_HEADER_SIZE, ENGINE_FILE_HEADER, 4);
    put(h + AT_SECTIONS, n, 4);
    put(h + AT_FILE_SIZE, (uint64_t)w->size, 8);
    memcpy(h + AT_BUILDER, builder, strnlen(builder, AT_HASH - AT_BUILDER - 1));
    hash_begin(&hash);
    hash_more(&hash, h + ENGINE_FILE_HEADER, w->pieces[0].size - ENGINE_FILE_HEADER);
    for (size_t i = 1; i < w->n_pieces; i++)
        hash_more(&hash, w->pieces[i].data, w->pieces[i].size);
    hash_end(&hash, h + AT_HASH);
    header_check(h + AT_CHECK, h);
}

int engine_file_write(const char *path, const struct engine_section *sections, size_t n,
                      const char *builder, strata_error *err)
{
    struct writing w = {.n_pieces = 1};
    int status = check_sections(sections, n, err);
    if (status != STRATA_OK)
        return status;
    w.size = (int64_t)(ENGINE_FILE_HEADER + n * ENGINE_FILE_ENTRY);
    w.pieces[0] = (struct file_piece){w.head, (size_t)w.size};
    for (size_t i = 0; i < n; i++)
        if ((status = place_section(&w, &sections[i], i, err)) != STRATA_OK)
            return status;
    write_header(&w, n, builder);
    return file_write_pieces(path, w.pieces, w.n_pieces, err);
}

/* ---- reading ------------------------------------------------------------------------
 */

struct reading {
    const uint8_t *bytes;
    size_t size;
    const char *path;
    strata_error *err;
};

#define DAMAGED(r, ...) damaged(r, STRATA_EPARSE, __VA_ARGS__)

static int damaged(const struct reading *r, int code, const char *format, ...)
    PRINTF_LIKE(3, 4);

static int damaged(const struct reading *r, int code, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(r->err, code, "%s: %s; build the engine again from its INI file",
                     r->path, text);
}

int engine_file_is(const void *bytes, size_t size)
{
    return size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static bool has_name(const uint8_t *bytes, size_t size)
{
    return size >= NAME_SIZE && memcmp(bytes, magic, NAME_SIZE) == 0;
}

/* Whether an engine's header follows, whatever the magic is: no text has such bytes. */
static bool has_header(const uint8_t *bytes, size_t size)
{
    return size >= ENGINE_FILE_HEADER && get(bytes + AT_ENDIAN, 4) == ENDIAN_MARK &&
           get(bytes + AT_HEADER_SIZE, 4) == ENGINE_FILE_HEADER;
}

int engine_file_at(const char *path)
{
    uint8_t head[ENGINE_FILE_HEADER];
    const size_t size = file_head(head, sizeof head, path);
    return has_name(head, size) || has_header(head, size);
}

static int check_magic(const struct reading *r)
{
    if (engine_file_is(r->bytes, r->size))
        return r->size >= ENGINE_FILE_HEADER
                   ? STRATA_OK
                   : DAMAGED(r, "cut short: %zu bytes; the header alone has %d", r->size,
                             ENGINE_FILE_HEADER);
    if (has_name(r->bytes, r->size))
        return DAMAGED(r, "changed by a copy in text mode, or cut short");
    if (has_header(r->bytes, r->size))
        return DAMAGED(r, "the first %zu bytes are damaged", sizeof magic);
    return error_set(r->err, STRATA_EPARSE,
                     "%s: not an engine file; `strata build` writes one", r->path);
}

static int check_header(const struct reading *r)
{
    const uint8_t *h = r->bytes;
    uint8_t check[CHECK_SIZE];
    const unsigned major = (unsigned)get(h + AT_MAJOR, 2);
    header_check(check, h);
    if (memcmp(check, h + AT_CHECK, sizeof check) != 0)
        return DAMAGED(r, "the header is damaged (its check does not match)");
    if (get(h + AT_ENDIAN, 4) != ENDIAN_MARK)
        return DAMAGED(r, "the header's byte order mark is wrong");
    if (major != ENGINE_FILE_MAJOR)
        return damaged(r, STRATA_EUNSUPPORTED,
                       "engine format %u.%u; this library reads format %d", major,
                       (unsigned)get(h + AT_MINOR, 2), ENGINE_FILE_MAJOR);
    if (get(h + AT_INCOMPATIBLE, 8) & ~KNOWN_INCOMPATIBLE)
        return damaged(r, STRATA_EUNSUPPORTED,
                       "needs features %#" PRIx64 " that this library lacks",
                       get(h + AT_INCOMPATIBLE, 8) & ~KNOWN_INCOMPATIBLE);
    if (get(h + AT_HEADER_SIZE, 4) != ENGINE_FILE_HEADER)
        return DAMAGED(r, "header of %" PRIu64 " bytes; needed %d",
                       get(h + AT_HEADER_SIZE, 4), ENGINE_FILE_HEADER);
    if (get(h + AT_FILE_SIZE, 8) != r->size)
        return DAMAGED(r, "%zu bytes; the header says %" PRIu64, r->size,
                       get(h + AT_FILE_SIZE, 8));
    if (h[AT_HASH - 1] != 0 || !all_zero(h + AT_RESERVED, AT_CHECK - AT_RESERVED))
        return DAMAGED(r, "reserved bytes of the header are not zero");
    return STRATA_OK;
}

/* One line of the table: after the section before, at the next aligned byte. */
static int read_entry(struct engine_file *out, const struct reading *r, size_t index,
                      uint64_t *end)
{
    const uint8_t *entry = r->bytes + ENGINE_FILE_HEADER + index * ENGINE_FILE_ENTRY;
    const uint64_t begin = get(entry + ENTRY_BEGIN, 8), size = get(entry + ENTRY_SIZE, 8);
    const uint64_t wanted = (*end + ENGINE_FILE_ALIGNMENT - 1) / ENGINE_FILE_ALIGNMENT *
                            ENGINE_FILE_ALIGNMENT;
    struct engine_section *s = &out->sections[index];
    if (!good_name(entry + ENTRY_NAME) ||
        !all_zero(entry + ENTRY_REST, ENGINE_FILE_ENTRY - ENTRY_REST))
        return DAMAGED(r, "entry %zu of the section table is malformed", index);
    memcpy(s->name, entry + ENTRY_NAME, sizeof s->name);
    if (engine_file_find(out, s->name))
        return DAMAGED(r, "section '%s' comes twice", s->name);
    if (begin != wanted || begin > r->size || size > r->size - begin)
        return DAMAGED(r,
                       "section '%s': %" PRIu64 " bytes at %" PRIu64
                       "; it must begin at %" PRIu64 " and end within %zu",
                       s->name, size, begin, wanted, r->size);
    if (!all_zero(r->bytes + *end, (size_t)(begin - *end)))
        return DAMAGED(r, "padding before section '%s' is not zero", s->name);
    s->data = r->bytes + begin;
    s->size = (size_t)size;
    out->n_sections = index + 1;
    *end = begin + size;
    return STRATA_OK;
}

static int read_table(struct engine_file *out, const struct reading *r)
{
    const uint64_t n = get(r->bytes + AT_SECTIONS, 4);
    uint64_t end = ENGINE_FILE_HEADER + n * ENGINE_FILE_ENTRY;
    if (n == 0 || n > ENGINE_FILE_SECTIONS || end > r->size)
        return DAMAGED(r, "%" PRIu64 " sections; needed 1 to %d within the file", n,
                       ENGINE_FILE_SECTIONS);
    for (size_t i = 0; i < n; i++) {
        int status = read_entry(out, r, i, &end);
        if (status != STRATA_OK)
            return status;
    }
    return end == r->size
               ? STRATA_OK
               : DAMAGED(r, "%" PRIu64 " bytes follow the last section", r->size - end);
}

static int check_content(const struct reading *r)
{
    uint8_t found[HASH_SIZE];
    int status = hash_content(found, r->bytes + ENGINE_FILE_HEADER,
                              r->size - ENGINE_FILE_HEADER, r->err);
    if (status != STRATA_OK)
        return status;
    return memcmp(found, r->bytes + AT_HASH, sizeof found) == 0
               ? STRATA_OK
               : DAMAGED(r, "the content is damaged (its SHA-256 does not match)");
}

int engine_file_parse(struct engine_file *out, const void *bytes, size_t size,
                      const char *path, strata_error *err)
{
    const struct reading r = {bytes, size, path, err};
    int status;
    *out = (struct engine_file){0};
    if ((status = check_magic(&r)) != STRATA_OK ||
        (status = check_header(&r)) != STRATA_OK ||
        (status = read_table(out, &r)) != STRATA_OK ||
        (status = check_content(&r)) != STRATA_OK)
        return status;
    out->info.major = (uint16_t)get(r.bytes + AT_MAJOR, 2);
    out->info.minor = (uint16_t)get(r.bytes + AT_MINOR, 2);
    out->info.size = size;
    memcpy(out->info.builder, r.bytes + AT_BUILDER, sizeof out->info.builder);
    memcpy(out->info.sha256, r.bytes + AT_HASH, sizeof out->info.sha256);
    return STRATA_OK;
}

/* Takes the bytes. */
static int parse_private(struct engine_file *out, struct file_bytes *bytes,
                         const char *path, strata_error *err)
{
    int status = engine_file_parse(out, bytes->data, bytes->size, path, err);
    if (status == STRATA_OK)
        out->bytes = *bytes;
    else
        file_free(bytes);
    return status;
}

int engine_file_open(struct engine_file *out, const char *path, strata_error *err)
{
    struct file_bytes bytes;
    *out = (struct engine_file){0};
    int status = file_read(&bytes, path, ENGINE_FILE_MAX, err);
    return status == STRATA_OK ? parse_private(out, &bytes, path, err) : status;
}

int engine_file_copy(struct engine_file *out, const void *bytes, size_t size,
                     const char *name, strata_error *err)
{
    struct file_bytes copy;
    *out = (struct engine_file){0};
    int status = file_copy(&copy, bytes, size, name, err);
    return status == STRATA_OK ? parse_private(out, &copy, name, err) : status;
}

void engine_file_close(struct engine_file *f)
{
    if (!f)
        return;
    file_free(&f->bytes);
    *f = (struct engine_file){0};
}

const struct engine_section *engine_file_find(const struct engine_file *f,
                                              const char *name)
{
    for (size_t i = 0; i < f->n_sections; i++)
        if (strcmp(f->sections[i].name, name) == 0)
            return &f->sections[i];
    return NULL;
}
