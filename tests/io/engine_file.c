/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine container: what was written is read; whatever differs by one bit, is cut
 * short or has a wrong field is refused, with the hashes wrong and with them made right.
 */
#include "io/engine_file.h"

#include <criterion/criterion.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

TestSuite(engine_file, .timeout = 600);

#define FIRST_BEGIN 256 /* of two sections: after header and table, aligned */

static uint8_t body[700];
static const struct engine_section two[] = {{"network", body, 300},
                                            {"weights", body + 300, 400}};

/* A sound file in memory. */
static struct file_bytes written(const struct engine_section *s, size_t n)
{
    char path[] = "/tmp/strata-engine-XXXXXX";
    struct file_bytes f;
    strata_error err = {0};
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)(i * 37 + 11);
    cr_assert_eq(engine_file_write(path, s, n, "1.0.0", &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(file_read(&f, path, ENGINE_FILE_MAX, &err), STRATA_OK);
    unlink(path);
    return f;
}

static int parse(const void *bytes, size_t size, strata_error *err)
{
    struct engine_file f;
    error_clear(err);
    return engine_file_parse(&f, bytes, size, "x.engine", err);
}

Test(engine_file, gives_back_what_was_written)
{
    struct file_bytes bytes = written(two, 2);
    struct engine_file f;
    strata_error err = {0};
    cr_assert_eq(engine_file_parse(&f, bytes.data, bytes.size, "x", &err), STRATA_OK,
                 "%s", err.message);
    cr_expect_eq(f.n_sections, 2);
    cr_expect_str_eq(f.info.builder, "1.0.0");
    cr_expect_eq(f.info.major, ENGINE_FILE_MAJOR);
    for (size_t i = 0; i < 2; i++) {
        const struct engine_section *s = engine_file_find(&f, two[i].name);
        cr_assert_not_null(s);
        cr_assert_eq(s->size, two[i].size);
        cr_expect_eq(memcmp(s->data, two[i].data, s->size), 0);
        cr_expect_eq(((const char *)s->data - (const char *)bytes.data) %
                         ENGINE_FILE_ALIGNMENT,
                     0);
    }
    cr_expect_null(engine_file_find(&f, "plan"));
    file_free(&bytes);
}

Test(engine_file, is_the_same_bytes_from_the_same_sections)
{
    struct file_bytes a = written(two, 2), b = written(two, 2);
    cr_assert_eq(a.size, b.size);
    cr_expect_eq(memcmp(a.data, b.data, a.size), 0);
    file_free(&a);
    file_free(&b);
}

Test(engine_file, refuses_section_names_and_counts_out_of_range)
{
    static const struct engine_section bad[][2] = {
        {{"", body, 1}, {"b", body, 1}},
        {{"Upper", body, 1}, {"b", body, 1}},
        {{"a b", body, 1}, {"b", body, 1}},
        {{"b", body, 1}, {"b", body, 1}},
    };
    struct engine_section many[ENGINE_FILE_SECTIONS + 1] = {{"a", body, 1}};
    strata_error err = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        cr_expect_eq(engine_file_write("/tmp/never", bad[i], 2, "1", &err), STRATA_EINVAL,
                     "%zu", i);
    cr_expect_eq(engine_file_write("/tmp/never", many, 0, "1", &err), STRATA_EINVAL);
    cr_expect_eq(
        engine_file_write("/tmp/never", many, ENGINE_FILE_SECTIONS + 1, "1", &err),
        STRATA_EINVAL);
}

Test(engine_file, refuses_every_truncation_and_anything_appended)
{
    struct file_bytes f = written(two, 2);
    strata_error err = {0};
    for (size_t size = 0; size < f.size; size++)
        cr_assert_eq(parse(f.data, size, &err), STRATA_EPARSE, "cut at %zu", size);
    char *longer = calloc(1, f.size + 4096);
    memcpy(longer, f.data, f.size);
    for (size_t more = 1; more <= 4096; more++)
        cr_assert_eq(parse(longer, f.size + more, &err), STRATA_EPARSE, "%zu more", more);
    free(longer);
    file_free(&f);
}

/* STRATA_TEST_LONG flips every bit of a 64 KiB file, else a random hundredth of them. */
Test(engine_file, refuses_every_flip_of_one_bit)
{
    enum { SIZE = 64 << 10 };
    uint8_t *content = malloc(SIZE);
    struct engine_section s[] = {{"network", content, 1000},
                                 {"weights", content, SIZE - 1000 - 1024}};
    const bool all = getenv("STRATA_TEST_LONG") != NULL;
    unsigned seed = (unsigned)time(NULL);
    strata_error err = {0};
    size_t tried = 0;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 7);
    struct file_bytes f = written(s, 2);
    cr_log_info("seed %u", seed);
    for (size_t bit = 0; bit < f.size * 8; bit++) {
        if (!all && bit >= ENGINE_FILE_HEADER * 8 && rand_r(&seed) % 100 != 0)
            continue;
        uint8_t *byte = (uint8_t *)f.data + bit / 8;
        *byte ^= (uint8_t)(1 << bit % 8);
        cr_assert_neq(parse(f.data, f.size, &err), STRATA_OK, "bit %zu", bit);
        cr_assert(err.message[0]);
        *byte ^= (uint8_t)(1 << bit % 8);
        tried++;
    }
    cr_assert_eq(parse(f.data, f.size, &err), STRATA_OK);
    cr_log_info("%zu flips", tried);
    free(content);
    file_free(&f);
}

/* ---- fields, with the hashes made right again -----------------------------------------
 */

/* As the specification says it: the hash of the hashes of each MiB. */
static void content_hash(uint8_t *out, const uint8_t *content, size_t size)
{
    struct sha256_ctx all, piece;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&all);
    for (size_t at = 0; at < size; at += 1 << 20) {
        sha256_init(&piece);
        sha256_update(&piece, size - at < 1 << 20 ? size - at : 1 << 20, content + at);
        sha256_digest(&piece, sizeof digest, digest);
        sha256_update(&all, sizeof digest, digest);
    }
    sha256_digest(&all, sizeof digest, out);
}

static void make_right(uint8_t *file, size_t size)
{
    struct sha256_ctx hash;
    content_hash(file + 88, file + ENGINE_FILE_HEADER, size - ENGINE_FILE_HEADER);
    sha256_init(&hash);
    sha256_update(&hash, 124, file);
    sha256_digest(&hash, 4, file + 124);
}

static const struct field_case {
    const char *name;
    size_t at;
    int bytes;
    uint64_t value;
    int status;
    const char *says;
} fields[] = {
    {"byte order", 8, 4, 0x04030201, STRATA_EPARSE, "byte order"},
    {"major version", 12, 2, 2, STRATA_EUNSUPPORTED, "reads format 1"},
    {"header size", 16, 4, 64, STRATA_EPARSE, "header of 64 bytes"},
    {"no section", 20, 4, 0, STRATA_EPARSE, "0 sections"},
    {"too many sections", 20, 4, 17, STRATA_EPARSE, "17 sections"},
    {"sections without end", 20, 4, 0xffffffff, STRATA_EPARSE, "sections"},
    {"a section less", 20, 4, 1, STRATA_EPARSE, ""},
    {"file size less", 24, 8, 128, STRATA_EPARSE, "the header says 128"},
    {"file size 2^64-1", 24, 8, UINT64_MAX, STRATA_EPARSE, "the header says"},
    {"incompatible feature", 32, 8, 1, STRATA_EUNSUPPORTED, "features 0x1"},
    {"the last incompatible feature", 32, 8, UINT64_C(1) << 63, STRATA_EUNSUPPORTED,
     "features"},
    {"builder without its NUL", 87, 1, 'x', STRATA_EPARSE, "reserved"},
    {"reserved", 120, 4, 1, STRATA_EPARSE, "reserved"},
    {"name empty", 128, 8, 0, STRATA_EPARSE, "entry 0"},
    {"name with a slash", 128, 1, '/', STRATA_EPARSE, "entry 0"},
    {"name twice", 192, 8, 0x6b726f7774656eu, STRATA_EPARSE, "twice"},
    {"bytes after the name's NUL", 143, 1, 'x', STRATA_EPARSE, "entry 0"},
    {"begin unaligned", 144, 8, FIRST_BEGIN + 1, STRATA_EPARSE, "must begin at 256"},
    {"begin in the header", 144, 8, 0, STRATA_EPARSE, "must begin at 256"},
    {"begin 2^64-1", 144, 8, UINT64_MAX, STRATA_EPARSE, "must begin at 256"},
    {"a gap", 144, 8, FIRST_BEGIN + 256, STRATA_EPARSE, "must begin at 256"},
    {"size past the end", 152, 8, 1 << 20, STRATA_EPARSE, "end within"},
    {"size 2^64-1", 152, 8, UINT64_MAX, STRATA_EPARSE, "end within"},
    {"size 2^64-256", 152, 8, UINT64_MAX - 255, STRATA_EPARSE, "end within"},
    {"last size less", 216, 8, 399, STRATA_EPARSE, "1 bytes follow"},
    {"entry's rest", 160, 8, 1, STRATA_EPARSE, "entry 0"},
    {"padding between sections", FIRST_BEGIN + 300, 1, 1, STRATA_EPARSE,
     "padding before section"},
};

Test(engine_file, names_each_wrong_field)
{
    struct file_bytes f = written(two, 2);
    uint8_t *copy = malloc(f.size);
    strata_error err = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(fields); i++) {
        const struct field_case *c = &fields[i];
        memcpy(copy, f.data, f.size);
        for (int b = 0; b < c->bytes; b++)
            copy[c->at + (size_t)b] = (uint8_t)(c->value >> 8 * b);
        make_right(copy, f.size);
        cr_expect_eq(parse(copy, f.size, &err), c->status, "%s: %s", c->name,
                     err.message);
        cr_expect(strstr(err.message, "x.engine: ") == err.message &&
                      strstr(err.message, c->says),
                  "%s: %s", c->name, err.message);
    }
    free(copy);
    file_free(&f);
}

/* Larger than what is read and hashed in one piece. */
Test(engine_file, a_large_file_is_hashed_in_pieces_and_read_whole)
{
    enum { SIZE = (9 << 20) + 12345 };
    uint8_t *content = malloc(SIZE), hash[32];
    cr_assert(content != NULL);
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 13);
    struct engine_section s[] = {{"network", content, 3 << 20},
                                 {"weights", content, SIZE}};
    struct file_bytes f = written(s, 2);
    const uint8_t *bytes = f.data;
    strata_error err = {0};
    cr_expect_eq(parse(f.data, f.size, &err), STRATA_OK, "%s", err.message);
    content_hash(hash, bytes + ENGINE_FILE_HEADER, f.size - ENGINE_FILE_HEADER);
    cr_expect_eq(memcmp(hash, bytes + 88, sizeof hash), 0);
    cr_expect_eq(memcmp(bytes + f.size - SIZE, content, SIZE), 0);
    for (size_t at = FIRST_BEGIN; at < f.size; at += (1 << 20) - 77) {
        ((uint8_t *)f.data)[at] ^= 1;
        cr_expect_eq(parse(f.data, f.size, &err), STRATA_EPARSE, "byte %zu", at);
        ((uint8_t *)f.data)[at] ^= 1;
    }
    file_free(&f);
    free(content);
}

/* What a later minor version may add without harm. */
Test(engine_file, accepts_a_newer_minor_version_and_compatible_features)
{
    struct file_bytes f = written(two, 2);
    uint8_t *bytes = f.data;
    strata_error err = {0};
    bytes[14] = 9;
    bytes[40] = bytes[48] = 0xff;
    make_right(bytes, f.size);
    cr_expect_eq(parse(bytes, f.size, &err), STRATA_OK, "%s", err.message);
    file_free(&f);
}

Test(engine_file, tells_a_copy_in_text_mode_and_a_foreign_file)
{
    struct file_bytes f = written(two, 2);
    strata_error err = {0};
    uint8_t *bytes = f.data;
    bytes[4] = '\n';
    cr_expect_eq(parse(bytes, f.size, &err), STRATA_EPARSE);
    cr_expect(strstr(err.message, "text mode"), "%s", err.message);
    cr_expect_eq(parse("[network]\nname = x\n", 19, &err), STRATA_EPARSE);
    cr_expect(strstr(err.message, "not an engine file"), "%s", err.message);
    file_free(&f);
}

/* What is meant to be an engine is not read as a network's text. */
Test(engine_file, tells_a_damaged_magic)
{
    struct file_bytes f = written(two, 2);
    strata_error err = {0};
    uint8_t *bytes = f.data;
    for (int i = 0; i < 8; i++) {
        bytes[i] ^= 0x41;
        cr_expect_eq(parse(bytes, f.size, &err), STRATA_EPARSE);
        cr_expect(strstr(err.message, i < 4 ? "first 8 bytes are damaged" : "text mode"),
                  "byte %d: %s", i, err.message);
        bytes[i] ^= 0x41;
    }
    file_free(&f);
}
