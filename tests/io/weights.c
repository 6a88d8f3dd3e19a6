/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights files that are right, written here byte by byte, and every limit of a reader.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/weights/weights.h"
#include "tests/io/weights_files.h"

TestSuite(weights, .timeout = 600);

/* Length, header, data; malloc-ed. */
static char *safetensors(const char *header, const void *data, size_t data_size,
                         size_t *size)
{
    size_t n = strlen(header);
    char *bytes = calloc(1, 8 + n + data_size);
    cr_assert_not_null(bytes);
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(n >> 8 * i & 0xff);
    memcpy(bytes + 8, header, n);
    if (data)
        memcpy(bytes + 8 + n, data, data_size);
    *size = 8 + n + data_size;
    return bytes;
}

static struct weights *parse(const void *bytes, size_t size)
{
    struct weights *w = NULL;
    strata_error err = {0};
    cr_assert_eq(weights_parse(&w, bytes, size, "good", NULL, &err), STRATA_OK, "%s",
                 err.message);
    return w;
}

Test(weights, safetensors_views_are_what_the_file_says)
{
    static const char header[] =
        "{ \"__metadata__\" : {\"format\":\"pt\"},\r\n\t"
        "\"z.weight\":{\"dtype\":\"I16\",\"shape\":[2,1,3],\"data_offsets\":[5,17]},"
        "\"caf\\u00e9 "
        "\\ud83d\\ude00\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"F32\"},"
        "\"empty\":{\"dtype\":\"F64\",\"shape\":[3,0],\"data_offsets\":[4,4]},"
        "\"b\":{\"dtype\":\"BOOL\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[4,5]}"
        "}       ";
    const char data[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    static const struct {
        const char *name;
        enum weight_dtype dtype;
        int rank;
        int64_t dims[3];
        size_t offset, bytes;
    } expected[] = {
        {"z.weight", WEIGHT_I16, 3, {2, 1, 3}, 5, 12},
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", WEIGHT_F32, 0, {0}, 0, 4},
        {"empty", WEIGHT_F64, 2, {3, 0}, 4, 0},
        {"b", WEIGHT_BOOL, 8, {1, 1, 1}, 4, 1},
    };
    size_t size;
    char *bytes = safetensors(header, data, sizeof data, &size);
    struct weights *w = parse(bytes, size);
    cr_assert_eq(weights_count(w), 4u);
    for (size_t i = 0; i < 4; i++) {
        struct weight_view at = weights_at(w, i), found;
        cr_assert_eq(weights_find(w, expected[i].name, &found, NULL), STRATA_OK);
        cr_expect_str_eq(at.name, expected[i].name);
        cr_expect_eq(at.dtype, expected[i].dtype);
        cr_expect_eq(at.rank, expected[i].rank);
        cr_expect_eq(at.bytes, expected[i].bytes);
        cr_expect_eq((const char *)at.data - bytes,
                     (long)(size - 17 + expected[i].offset));
        for (int d = 0; d < at.rank && d < 3; d++)
            cr_expect_eq(at.dims[d], expected[i].dims[d]);
        cr_expect_eq(memcmp(&found, &at, sizeof at), 0, "%s: find differs", at.name);
    }
    cr_expect_eq(memcmp(bytes + 8, header, sizeof header - 1), 0,
                 "the caller's bytes were written to");
    weights_close(w);
    free(bytes);
}

Test(weights, names_take_255_bytes_and_files_no_tensor)
{
    char header[512], name[256];
    size_t size;
    memset(name, 'n', 255);
    name[255] = '\0';
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", name);
    char *bytes = safetensors(header, "x", 1, &size);
    struct weights *w = parse(bytes, size);
    cr_expect_str_eq(weights_at(w, 0).name, name);
    weights_close(w);
    free(bytes);
    bytes = safetensors("{}", NULL, 0, &size);
    w = parse(bytes, size);
    cr_expect_eq(weights_count(w), 0u);
    cr_expect_eq(weights_find(w, "a", NULL, NULL), STRATA_ENOTFOUND);
    weights_close(w);
    weights_close(NULL);
    free(bytes);
}

Test(weights, an_absent_name_is_answered_with_the_nearest)
{
    strata_error err = {0};
    struct weight_view v;
    size_t size;
    char *bytes = safetensors(
        "{\"conv1.weight\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
        "\"fc.bias\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        NULL, 0, &size);
    struct weights *w = parse(bytes, size);
    cr_expect_eq(weights_find(w, "conv1.wieght", &v, &err), STRATA_ENOTFOUND);
    cr_expect_not_null(strstr(err.message, "'conv1.wieght'"), "%s", err.message);
    cr_expect_not_null(strstr(err.message, "'conv1.weight'?"), "%s", err.message);
    cr_expect_not_null(strstr(err.message, "among the 2 of"), "%s", err.message);
    weights_close(w);
    free(bytes);
}

/* Finding among many, in an order that is not the file's. */
Test(weights, every_one_of_many_names_is_found)
{
    enum { N = 3000 };
    char *header = malloc(N * 80);
    cr_assert_not_null(header);
    size_t n = (size_t)sprintf(header, "{");
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(header + n,
                             "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],"
                             "\"data_offsets\":[%d,%d]}",
                             i ? "," : "", i * 7919 % N, N - 1 - i, N - i);
    sprintf(header + n, "}");
    size_t size;
    char *bytes = safetensors(header, NULL, N, &size);
    for (int i = 0; i < N; i++)
        bytes[size - N + (size_t)i] = (char)i;
    struct weights *w = parse(bytes, size);
    for (int i = 0; i < N; i++) {
        char name[16];
        struct weight_view v;
        sprintf(name, "t%d", i * 7919 % N);
        cr_assert_eq(weights_find(w, name, &v, NULL), STRATA_OK, "%s", name);
        cr_expect_eq(*(const char *)v.data, (char)(N - 1 - i), "%s", name);
    }
    weights_close(w);
    free(bytes);
    free(header);
}

/* ---- limits ---- */

#define TWO                                                                              \
    "{\"aa\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"                   \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[3,7]}}"

static int parse_status(const char *bytes, size_t size,
                        const struct weight_limits *limits, strata_error *err)
{
    struct weights *w;
    error_clear(err);
    int status = weights_parse(&w, bytes, size, "limits", limits, err);
    weights_close(w);
    return status;
}

Test(weights, each_limit_holds_at_it_and_refuses_one_above)
{
    struct weight_limits at = weight_default_limits;
    strata_error err = {0};
    size_t size;
    char *bytes = safetensors(TWO, NULL, 7, &size);
    at.file_bytes = size;
    at.header_bytes = sizeof TWO - 1;
    at.tensors = 2;
    at.dim = 3;
    at.elements = 4;
    at.name_bytes = 2;
    cr_expect_eq(parse_status(bytes, size, &at, &err), STRATA_OK, "%s", err.message);
    static const struct {
        const char *name, *message;
        size_t field; /* offset of a 64-bit limit */
    } fields[] = {
        {"file", "bytes, at most", offsetof(struct weight_limits, file_bytes)},
        {"header", "header of", offsetof(struct weight_limits, header_bytes)},
        {"tensors", "more than the 1 tensors", offsetof(struct weight_limits, tensors)},
        {"dim", "allowed are 0 to 2", offsetof(struct weight_limits, dim)},
        {"elements", "the 3 elements allowed", offsetof(struct weight_limits, elements)},
        {"name", "at most 1 are", offsetof(struct weight_limits, name_bytes)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        struct weight_limits below = at, most = at;
        uint64_t value;
        memcpy(&value, (char *)&at + fields[i].field, sizeof value);
        value--;
        memcpy((char *)&below + fields[i].field, &value, sizeof value);
        cr_expect_eq(parse_status(bytes, size, &below, &err), STRATA_EPARSE, "%s",
                     fields[i].name);
        cr_expect_not_null(strstr(err.message, fields[i].message), "%s: %s",
                           fields[i].name, err.message);
        value = i == 3 || i == 4 ? INT64_MAX : UINT64_MAX;
        memcpy((char *)&most + fields[i].field, &value, sizeof value);
        cr_expect_eq(parse_status(bytes, size, &most, &err), STRATA_OK, "%s: %s",
                     fields[i].name, err.message);
    }
    free(bytes);
}

/* A dim is stored in 32 bits whatever the limits say. */
Test(weights, raised_limits_do_not_pass_the_formats_own)
{
    struct weight_limits most = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                 INT64_MAX,  INT64_MAX,  SIZE_MAX};
    static const struct {
        const char *shape;
        int status;
    } cases[] = {
        {"0,2147483647", STRATA_OK},
        {"0,2147483648", STRATA_EPARSE},
        {"0,4294967296", STRATA_EPARSE},
        {"0,9223372036854775807", STRATA_EPARSE},
        {"2147483647,2147483647,0", STRATA_OK},
        {"2147483647,2147483647,2147483647", STRATA_EPARSE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[256];
        strata_error err = {0};
        size_t size;
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"F64\",\"shape\":[%s],\"data_offsets\":[0,0]}}",
                 cases[i].shape);
        char *bytes = safetensors(header, NULL, 0, &size);
        cr_expect_eq(parse_status(bytes, size, &most, &err), cases[i].status, "[%s]: %s",
                     cases[i].shape, err.message);
        memset(bytes, 0xff, 8); /* a header of 2^64 - 1 bytes */
        cr_expect_eq(parse_status(bytes, size, &most, &err), STRATA_EPARSE);
        free(bytes);
    }
}

static void write_many(const char *path, uint32_t tensors)
{
    static const char row[] =
        "%s\"%05" PRIx32 "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    uint64_t length = 0;
    fwrite(&length, 8, 1, f);
    fputc('{', f);
    for (uint32_t i = 0; i < tensors; i++)
        fprintf(f, row, i ? "," : "", i);
    fputc('}', f);
    length = (uint64_t)ftell(f) - 8;
    rewind(f);
    fwrite(&length, 8, 1, f);
    cr_assert_eq(fclose(f), 0);
}

/* The default limit, reached and passed by one, and memory at it. */
Test(weights, a_million_tensors_load_within_64_mib_over_the_file, .init = scratch_make,
     .fini = scratch_remove)
{
    const char *path = in_scratch("many.safetensors");
    const uint32_t limit = (uint32_t)weight_default_limits.tensors;
    struct weights *w;
    struct stat st;
    strata_error err = {0};
    write_many(path, limit);
    cr_assert_eq(stat(path, &st), 0);
    uint64_t before = memory("VmRSS");
    cr_expect_eq(weights_open(&w, path, NULL, &err), STRATA_OK, "%s", err.message);
    expect_peak(before, (uint64_t)st.st_size);
    cr_assert_not_null(w);
    cr_expect_eq(weights_count(w), limit);
    weights_close(w);
    write_many(path, limit + 1);
    cr_expect_eq(weights_open(&w, path, NULL, &err), STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "more than the 1048576 tensors"), "%s",
                       err.message);
}

Test(weights, open_reads_files_and_names_the_path, .init = scratch_make,
     .fini = scratch_remove)
{
    struct weights *w;
    strata_error err = {0};
    size_t size;
    char *bytes = safetensors(TWO, NULL, 7, &size);
    const char *path = in_scratch("w.safetensors");
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    fwrite(bytes, 1, size, f);
    fclose(f);
    cr_assert_eq(weights_open(&w, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_expect_str_eq(weights_at(w, 0).name, "aa");
    weights_close(w);
    cr_assert_eq(weights_open_beneath(&w, scratch, "w.safetensors", 0, NULL, &err),
                 STRATA_OK, "%s", err.message);
    cr_expect_eq(weights_count(w), 2u);
    weights_close(w);
    cr_expect_eq(weights_open_beneath(&w, scratch, "../w.safetensors", 0, NULL, &err),
                 STRATA_EINVAL);
    cr_expect_null(w);
    cr_assert_eq(truncate(path, (off_t)size - 1), 0);
    error_clear(&err);
    cr_expect_eq(weights_open(&w, path, NULL, &err), STRATA_EPARSE);
    cr_expect_eq(strstr(err.message, path), err.message, "%s", err.message);
    unlink(path);
    error_clear(&err);
    cr_expect_eq(weights_open(&w, path, NULL, &err), STRATA_ENOTFOUND);
    cr_expect_null(w);
    free(bytes);
}
