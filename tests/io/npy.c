/* SPDX-License-Identifier: Apache-2.0
 *
 * .npy files: what NumPy writes is read, what we write is read back, and malformed files
 * are refused.
 */
#include "tests/io/weights_refusal.h"

#include <math.h>
#include <sys/stat.h>

#include "io/weights/npy.h"
#include "tests/io/weights_files.h"

TestSuite(npy, .timeout = 600);

static struct weights *parse(const void *bytes, size_t size)
{
    struct weights *w = NULL;
    strata_error err = {0};
    cr_assert_eq(weights_parse(&w, bytes, size, "good", NULL, &err), STRATA_OK, "%s",
                 err.message);
    return w;
}

static size_t npy_file(char *out, int version, const char *descr, int fortran,
                       const char *shape, const void *data, size_t data_size)
{
    size_t start = version == 1 ? 10 : 12;
    size_t n = (size_t)sprintf(out + start,
                               "{'descr': '%s', \"fortran_order\": %s, 'shape': %s}  \n",
                               descr, fortran ? "True" : "False", shape);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    for (size_t i = 8; i < start; i++)
        out[i] = (char)(n >> 8 * (i - 8) & 0xff);
    memcpy(out + start + n, data, data_size);
    return start + n + data_size;
}

Test(npy, versions_and_types_are_read)
{
    static const struct {
        const char *descr;
        enum weight_dtype dtype;
    } types[] = {
        {"<f8", WEIGHT_F64},  {"<f4", WEIGHT_F32}, {"<f2", WEIGHT_F16},
        {"<i8", WEIGHT_I64},  {"<i4", WEIGHT_I32}, {"<i2", WEIGHT_I16},
        {"|i1", WEIGHT_I8},   {"<i1", WEIGHT_I8},  {"<u8", WEIGHT_U64},
        {"<u4", WEIGHT_U32},  {"<u2", WEIGHT_U16}, {"|u1", WEIGHT_U8},
        {"|b1", WEIGHT_BOOL},
    };
    char data[48], bytes[256];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i + 1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int version = 1; version <= 3; version++) {
            size_t element = weight_dtype_size(types[i].dtype);
            size_t n =
                npy_file(bytes, version, types[i].descr, 0, "(2, 3)", data, 6 * element);
            struct weights *w = parse(bytes, n);
            struct weight_view v = weights_at(w, 0), found;
            cr_expect_eq(v.dtype, types[i].dtype, "%s", types[i].descr);
            cr_expect(v.rank == 2 && v.dims[0] == 2 && v.dims[1] == 3);
            cr_expect_eq(v.bytes, 6 * element);
            cr_expect_eq(memcmp(v.data, data, v.bytes), 0, "%s", types[i].descr);
            cr_expect_eq(weights_find(w, "", &found, NULL), STRATA_OK);
            weights_close(w);
        }
}

Test(npy, fortran_order_is_transposed)
{
    static const struct {
        const char *shape;
        int rank;
        int64_t dims[4];
    } cases[] = {
        {"()", 0, {0}},
        {"(5,)", 1, {5}},
        {"(2, 3)", 2, {2, 3}},
        {"(1, 7)", 2, {1, 7}},
        {"(4, 3, 2)", 3, {4, 3, 2}},
        {"(2, 3, 1, 5)", 4, {2, 3, 1, 5}},
        {"(2, 0, 3)", 3, {2, 0, 3}},
    };
    static const char *const descr[] = {"|u1", "<u2", "<u4", "<u8"};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t log = 0; log < 4; log++) {
            uint64_t data[64];
            char bytes[1024];
            size_t element = (size_t)1 << log, count = 1;
            for (int d = 0; d < cases[c].rank; d++)
                count *= (size_t)cases[c].dims[d];
            for (size_t i = 0; i < count; i++) /* element i of the file has value i + 1 */
                for (size_t b = 0; b < element; b++)
                    ((unsigned char *)data)[i * element + b] =
                        b ? 0 : (unsigned char)(i + 1);
            size_t n =
                npy_file(bytes, 1, descr[log], 1, cases[c].shape, data, count * element);
            struct weights *w = parse(bytes, n);
            const unsigned char *got = weights_at(w, 0).data;
            for (size_t i = 0; i < count; i++) {
                size_t rest = i, place = 0, stride[4], step = 1;
                for (int d = 0; d < cases[c].rank; d++) {
                    stride[d] = step;
                    step *= (size_t)cases[c].dims[d];
                }
                for (int d = cases[c].rank - 1; d >= 0; d--) {
                    place += rest % (size_t)cases[c].dims[d] * stride[d];
                    rest /= (size_t)cases[c].dims[d];
                }
                cr_expect_eq(got[i * element], (unsigned char)(place + 1),
                             "%s of %s: element %zu", descr[log], cases[c].shape, i);
            }
            weights_close(w);
        }
}

Test(npy, written_is_read_back, .init = scratch_make, .fini = scratch_remove)
{
    static const struct {
        int dtype;
        enum weight_dtype read;
    } types[] = {
        {STRATA_FP32, WEIGHT_F32},   {STRATA_FP16, WEIGHT_F16},
        {STRATA_INT8, WEIGHT_I8},    {STRATA_UINT8, WEIGHT_U8},
        {STRATA_INT32, WEIGHT_I32},  {STRATA_INT64, WEIGHT_I64},
        {STRATA_BOOL8, WEIGHT_BOOL}, {STRATA_FP64, WEIGHT_F64},
    };
    const int64_t dims[8] = {2, 1, 3, 1, 1, 2, 1, 1};
    const char *path = in_scratch("out.npy");
    unsigned char data[96];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(255 - i);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int rank = 0; rank <= 8; rank++) {
            struct weights *w;
            strata_error err = {0};
            cr_assert_eq(npy_write(path, types[i].dtype, dims, rank, data, &err),
                         STRATA_OK, "%s", err.message);
            cr_assert_eq(weights_open(&w, path, NULL, &err), STRATA_OK, "%s",
                         err.message);
            struct weight_view v = weights_at(w, 0);
            struct stat st;
            cr_expect_eq(v.dtype, types[i].read);
            cr_expect_eq(v.rank, rank);
            cr_expect_eq(memcmp(v.dims, dims, (size_t)rank * sizeof *dims), 0);
            cr_expect_eq(memcmp(v.data, data, v.bytes), 0);
            cr_expect_eq(stat(path, &st), 0);
            cr_expect_eq(((size_t)st.st_size - v.bytes) % 64, 0u, "elements not aligned");
            weights_close(w);
        }
    unlink(path);
    strata_error err = {0};
    const int64_t huge[2] = {INT64_MAX, 2};
    cr_expect_eq(npy_write(path, STRATA_FP32, huge, 2, data, &err), STRATA_EOVERFLOW);
    cr_expect_eq(npy_write(path, 77, dims, 2, data, NULL), STRATA_EINVAL);
    cr_expect_eq(npy_write(path, STRATA_FP32, dims, 9, data, NULL), STRATA_EINVAL);
}

/* NumPy has no such types, and FP32 holds all their values. */
Test(npy, narrow_floats_are_written_as_fp32, .init = scratch_make, .fini = scratch_remove)
{
    static const uint16_t bf16[] = {0x3f80, 0xc2f7, 0x7f80, 1};
    static const uint8_t e4m3[] = {0x38, 0xfe, 1, 0x80}, e5m2[] = {0x3c, 0xfc, 1, 0x80};
    static const struct {
        int dtype;
        const void *data;
        float values[4];
    } cases[] = {
        {STRATA_BF16, bf16, {1, -123.5f, INFINITY, 0x1p-133f}},
        {STRATA_E4M3, e4m3, {1, -448, 0x1p-9f, -0.0f}},
        {STRATA_E5M2, e5m2, {1, -INFINITY, 0x1p-16f, -0.0f}},
    };
    const int64_t dims[] = {2, 2};
    const char *path = in_scratch("narrow.npy");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weights *w;
        strata_error err = {0};
        cr_assert_eq(npy_write(path, cases[i].dtype, dims, 2, cases[i].data, &err),
                     STRATA_OK, "%s", err.message);
        cr_assert_eq(weights_open(&w, path, NULL, &err), STRATA_OK, "%s", err.message);
        struct weight_view v = weights_at(w, 0);
        cr_expect_eq(v.dtype, WEIGHT_F32);
        cr_expect_eq(v.bytes, sizeof cases[i].values);
        cr_expect_eq(memcmp(v.data, cases[i].values, v.bytes), 0, "case %zu", i);
        weights_close(w);
    }
}

/* Column-major elements are moved without the file's size twice. */
Test(npy, a_column_major_file_loads_within_64_mib_over_it, .init = scratch_make,
     .fini = scratch_remove)
{
    enum { ROWS = 1024, COLUMNS = 24 * 1024 };
    static const char dict[] =
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1024, 24576), }\n";
    const char *path = in_scratch("column.npy");
    const uint64_t bytes = UINT64_C(4) * ROWS * COLUMNS;
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    fwrite("\x93NUMPY\1", 1, 8, f);
    fputc((int)sizeof dict - 1, f);
    fputc(0, f);
    fwrite(dict, 1, sizeof dict - 1, f);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        static float column[ROWS];
        for (uint32_t r = 0; r < ROWS; r++)
            column[r] = (float)(r * COLUMNS + c);
        fwrite(column, sizeof *column, ROWS, f);
    }
    cr_assert_eq(fclose(f), 0);
    struct weights *w;
    strata_error err = {0};
    uint64_t before = memory("VmRSS");
    cr_assert_eq(weights_open(&w, path, NULL, &err), STRATA_OK, "%s", err.message);
    expect_peak(before, bytes);
    const float *values = weights_at(w, 0).data;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < (uint32_t)ROWS * COLUMNS; i++)
        wrong += values[i] != (float)i;
    cr_expect_eq(wrong, 0u, "%" PRIu32 " elements in a wrong place", wrong);
    weights_close(w);
}

/* ---- malformed ---- */

/* Version 1.0 with the right length, then `data` zero bytes. */
static struct text npy(const char *dict, size_t data)
{
    size_t n = strlen(dict);
    struct text t = {calloc(1, 10 + n + data), 10 + n + data};
    cr_assert_not_null(t.bytes);
    memcpy(t.bytes, "\x93NUMPY\1", 8);
    t.bytes[8] = (char)(n & 0xff);
    t.bytes[9] = (char)(n >> 8);
    memcpy(t.bytes + 10, dict, n);
    return t;
}

#define DICT(descr, order, shape)                                                        \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct npy_case {
    const char *name, *dict;
    size_t data;
    int status;
    const char *place, *allowed;
} dicts[] = {
    {"empty header", "", 0, P, "byte 10", "'{' is needed"},
    {"no dict", "[1]\n", 0, P, "byte 10: found '[1]?'", "'{' is needed"},
    {"empty dict", "{}\n", 0, P, "byte 12", "'descr' is missing"},
    {"dict cut short", "{'descr': '<f4'", 4, P, "byte 25", "',' or '}' is needed"},
    {"string cut short", "{'descr': '<f4", 4, P, "byte 24", "a closing quote"},
    {"key without quotes", "{descr: '<f4'}\n", 4, P, "byte 11", "a quoted key"},
    {"key without a colon", "{'descr' '<f4'}\n", 4, P, "byte 19", "':'"},
    {"backslash", "{'de\\x73cr': '<f4'}\n", 4, P, "byte 14", "a closing quote"},
    {"unknown key", "{'path': 'x'}\n", 0, P, "unknown key 'path'",
     "allowed are descr, fortran_order, shape"},
    {"key with an escape byte", "{'\x1b[2J': 'x'}\n", 0, P, "unknown key '?[2J'",
     "allowed are descr"},
    {"key twice", "{'descr': '<f4', 'descr': '<f4'}\n", 0, P, "byte ", "comes twice"},
    {"no shape", "{'descr': '<f4', 'fortran_order': False}\n", 4, P, "byte ",
     "'shape' is missing"},
    {"no order", "{'descr': '<f4', 'shape': (1,)}\n", 4, P, "byte ",
     "'fortran_order' is missing"},
    {"no descr", "{'shape': (1,), 'fortran_order': False}\n", 4, P, "byte ",
     "'descr' is missing"},
    {"no comma", "{'descr': '<f4' 'fortran_order': False}\n", 4, P, "byte 26",
     "',' or '}'"},
    {"two commas", "{'descr': '<f4',, 'fortran_order': False}\n", 4, P, "byte 26",
     "a quoted key"},
    {"big-endian", DICT("'>f4'", "False", "(1,)"), 4, U, "descr '>f4' is big-endian",
     "astype('<"},
    {"object", DICT("'|O'", "False", "(1,)"), 8, U, "pickled Python objects",
     "allowed are"},
    {"object without an order", DICT("'O'", "False", "(1,)"), 8, U,
     "pickled Python objects", "allowed are"},
    {"structured", DICT("[('x', '<f4')]", "False", "(1,)"), 4, U, "a list of fields",
     "save one array a file"},
    {"raw record", DICT("'|V4'", "False", "(1,)"), 4, U, "descr '|V4' is raw",
     "allowed are"},
    {"bfloat16", DICT("'<V2'", "False", "(1,)"), 2, U, "descr '<V2' is 2 raw bytes",
     "astype('<f4')"},
    {"FP8", DICT("'|V1'", "False", "(1,)"), 1, U, "descr '|V1' is 1 raw byte an element",
     "astype('<f4')"},
    {"complex", DICT("'<c8'", "False", "(1,)"), 8, U, "descr '<c8' is complex",
     "allowed are"},
    {"byte string", DICT("'|S3'", "False", "(1,)"), 3, U, "byte strings", "allowed are"},
    {"text", DICT("'<U3'", "False", "(1,)"), 12, U, "descr '<U3' is text", "allowed are"},
    {"date", DICT("'<M8[ns]'", "False", "(1,)"), 8, U, "dates", "allowed are"},
    {"time span", DICT("'<m8[ns]'", "False", "(1,)"), 8, U, "time spans", "allowed are"},
    {"long double", DICT("'<f16'", "False", "(1,)"), 16, U, "descr '<f16'",
     "allowed are"},
    {"unknown type", DICT("'<x4'", "False", "(1,)"), 4, U, "an unknown type",
     "allowed are <f2"},
    {"float of no order", DICT("'|f4'", "False", "(1,)"), 4, U, "descr '|f4'",
     "allowed are"},
    {"native order", DICT("'=f4'", "False", "(1,)"), 4, U, "descr '=f4'", "allowed are"},
    {"empty descr", DICT("''", "False", "(1,)"), 4, U, "descr ''", "allowed are"},
    {"descr of one byte", DICT("'<'", "False", "(1,)"), 4, U, "descr '<'", "allowed are"},
    {"descr a number", DICT("4", "False", "(1,)"), 4, P, "byte 20", "a quoted type"},
    {"order a number", DICT("'<f4'", "0", "(1,)"), 4, P, "byte ", "True or False"},
    {"order in small letters", DICT("'<f4'", "false", "(1,)"), 4, P, "byte ",
     "True or False"},
    {"shape a number", DICT("'<f4'", "False", "1"), 4, P, "byte ", "(3, 4)"},
    {"shape a list", DICT("'<f4'", "False", "[1]"), 4, P, "byte ", "(3, 4)"},
    {"shape without a comma", DICT("'<f4'", "False", "(1)"), 4, P, "byte ", "(n,)"},
    {"shape of a comma", DICT("'<f4'", "False", "(,)"), 4, P, "byte ", "a dim is needed"},
    {"shape with two commas", DICT("'<f4'", "False", "(1,,2)"), 8, P, "byte ",
     "a dim is needed"},
    {"shape without an end", DICT("'<f4'", "False", "(1, "), 4, P, "byte ",
     "a dim is needed"},
    {"shape with a space only", DICT("'<f4'", "False", "(1 2)"), 8, P, "byte ",
     "',' or ')'"},
    {"dim negative", DICT("'<f4'", "False", "(-1,)"), 4, P, "found '-1,)",
     "a dim is needed"},
    {"dim with a sign", DICT("'<f4'", "False", "(+1,)"), 4, P, "found '+1,)",
     "a dim is needed"},
    {"dim a real", DICT("'<f4'", "False", "(1.0,)"), 4, P, "found '.0,)", "',' or ')'"},
    {"dim in hexadecimal", DICT("'<f4'", "False", "(0x1,)"), 4, P, "found 'x1,)",
     "',' or ')'"},
    {"dim a long of Python 2", DICT("'<f4'", "False", "(1L,)"), 4, P, "found 'L,)",
     "',' or ')'"},
    {"dim a call", DICT("'<f4'", "False", "(exit(),)"), 4, P, "found 'exit()",
     "a dim is needed"},
    {"dim 2^31", DICT("'|i1'", "False", "(2147483648,)"), 4, P, "dim 0 is 2147483648",
     "0 to 2147483647"},
    {"dim 2^63", DICT("'|i1'", "False", "(9223372036854775808,)"), 4, P, "byte ",
     "beyond 2^63"},
    {"dim 2^64", DICT("'|i1'", "False", "(18446744073709551616,)"), 0, P, "byte ",
     "beyond 2^63"},
    {"nine dims", DICT("'|i1'", "False", "(1,1,1,1,1,1,1,1,1)"), 1, P, "byte ",
     "more than 8 dims"},
    {"elements wrap to none", DICT("'|i1'", "False", "(65536,65536,65536,65536)"), 0, P,
     "product of its 4 dims", "1099511627776 elements allowed"},
    {"data cut short", DICT("'<f4'", "False", "(2,)"), 7, P, "7 bytes of data",
     "2 elements of 4 bytes exactly"},
    {"byte after the data", DICT("'<f4'", "False", "(2,)"), 9, P, "9 bytes of data",
     "2 elements of 4 bytes exactly"},
    {"data where none belongs", DICT("'<f4'", "True", "(2, 0)"), 1, P, "1 bytes of data",
     "0 elements"},
    {"scalar without data", DICT("'<f8'", "False", "()"), 0, P, "0 bytes of data",
     "1 elements of 8 bytes"},
    {"text after the dict", DICT("'<f4'", "False", "(1,)") "x", 4, P, "byte ",
     "one line feed"},
    {"two line feeds", DICT("'<f4'", "False", "(1,)") "\n", 4, P, "byte ",
     "one line feed"},
};

Test(npy, headers_are_refused)
{
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        const struct npy_case *c = &dicts[i];
        struct text t = npy(c->dict, c->data);
        expect_refusal(c->name, t.bytes, t.size, c->status, c->place, c->allowed);
        free(t.bytes);
    }
}

static const struct raw_case npy_files[] = {
    {"magic alone", BYTES("\x93NUMPY"), P, "6 bytes", "cut short"},
    {"nine bytes", BYTES("\x93NUMPY\1\0\1"), P, "9 bytes", "cut short"},
    {"version 0", BYTES("\x93NUMPY\0\0\2\0{}"), U, "version 0.0", "1.0, 2.0 and 3.0"},
    {"version 4", BYTES("\x93NUMPY\4\0\2\0{}"), U, "version 4.0", "1.0, 2.0 and 3.0"},
    {"version 1.1", BYTES("\x93NUMPY\1\1\2\0{}"), U, "version 1.1", "1.0, 2.0 and 3.0"},
    {"version 255", BYTES("\x93NUMPY\xff\xff\2\0{}"), U, "version 255.255", "3.0"},
    {"length one too many", BYTES("\x93NUMPY\1\0\3\0{}"), P, "header of 3 bytes",
     "only 2 follow"},
    {"length 65535", BYTES("\x93NUMPY\1\0\xff\xff{}"), P, "header of 65535 bytes",
     "only 2 follow"},
    {"version 2 without its length", BYTES("\x93NUMPY\2\0\2\0"), P, "header of 2 bytes",
     "only 0 follow"},
    {"version 2, length cut short", BYTES("\x93NUMPY\2\0\2\0\0"), P, "header of 2 bytes",
     "only 0 follow"},
    {"version 2, length 2^32-1", BYTES("\x93NUMPY\2\0\xff\xff\xff\xff{}"), P,
     "header of 4294967295 bytes", "at most 100000000"},
    {"version 3, length 100 MB", BYTES("\x93NUMPY\3\0\0\xe1\xf5\5{}"), P,
     "header of 100000000 bytes", "only 2 follow"},
};

Test(npy, files_are_refused)
{
    for (size_t i = 0; i < sizeof npy_files / sizeof *npy_files; i++)
        expect_refusal(npy_files[i].name, npy_files[i].bytes, npy_files[i].size,
                       npy_files[i].status, npy_files[i].place, npy_files[i].allowed);
}

Test(npy, cut_and_flipped_files_do_no_harm)
{
    struct text good = npy(DICT("'<f4'", "True", "(2, 3)"), 24);
    expect_no_harm(&good);
    free(good.bytes);
}
