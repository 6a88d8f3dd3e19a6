/* SPDX-License-Identifier: Apache-2.0
 *
 * Malformed safetensors files: each row is refused with its status, in a message that
 * holds the path, the place and what is allowed.
 */
#include "tests/io/weights_refusal.h"

TestSuite(weights_malformed, .timeout = 600);

#define CHARS_64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define CHARS_256 CHARS_64 CHARS_64 CHARS_64 CHARS_64

/* Length, header, `data` zero bytes. */
static struct text safetensors(const char *header, size_t data)
{
    size_t n = strlen(header);
    struct text t = {calloc(1, 8 + n + data), 8 + n + data};
    cr_assert_not_null(t.bytes);
    for (int i = 0; i < 8; i++)
        t.bytes[i] = (char)(i < 4 ? n >> 8 * i & 0xff : 0);
    memcpy(t.bytes + 8, header, n);
    return t;
}

/* {"a": F32 of shape S at [B, E]} */
#define ONE(shape, begin, end)                                                           \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]" \
    "}"                                                                                  \
    "}"
#define ENTRY(name, begin, end, n)                                                       \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" n "],\"data_offsets\":[" begin "," end  \
    "]}"
#define INFO "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"

static const struct safetensors_case {
    const char *name, *header;
    size_t data; /* bytes after the header */
    int status;
    const char *place, *allowed;
} headers[] = {
    /* JSON */
    {"only a brace", "{", 0, P, "byte 9", "a name in quotes"},
    {"brace and space", "{  ", 0, P, "byte 11", "a name in quotes"},
    {"number as a name", "{1:2}", 0, P, "byte 9: found '1'", "a name in quotes"},
    {"array as a name", "{[]}", 0, P, "byte 9: found '['", "a name in quotes"},
    {"single quotes", "{'a':1}", 0, P, "byte 9", "a name in quotes"},
    {"name without an end", "{\"a", 0, P, "byte ", "not valid JSON"},
    {"name and nothing", "{\"a\"", 0, P, "byte 12", "':' after a name"},
    {"name and comma", "{\"a\",", 0, P, "byte 12", "':' after a name"},
    {"name and colon", "{\"a\":", 0, P, "tensor 'a'", "not valid JSON"},
    {"entry cut short", "{\"a\":{\"dtype\":", 0, P, "tensor 'a'", "not valid JSON"},
    {"object cut short", "{\"a\":" INFO, 1, P, "byte ", "',' or '}' is needed"},
    {"no comma", "{" ENTRY("a", "0", "1", "1") ENTRY("b", "1", "2", "1") "}", 2, P,
     "byte ", "',' or '}' is needed"},
    {"comma at the end", "{\"a\":" INFO ",}", 1, P, "byte ", "a name in quotes"},
    {"comma at the start", "{,\"a\":" INFO "}", 1, P, "byte 9", "a name in quotes"},
    {"second object", "{\"a\":" INFO "}{}", 1, P, "byte ", "only spaces may follow"},
    {"line feed at the end", "{\"a\":" INFO "}\n", 1, P, "byte ", "only spaces"},
    {"tab at the end", "{\"a\":" INFO "}\t", 1, P, "byte ", "only spaces"},
    {"text after the object", "{\"a\":" INFO "} x", 1, P, "byte ", "only spaces"},
    {"comment", "{/*c*/\"a\":" INFO "}", 1, P, "byte 9", "a name in quotes"},
    {"bad escape", "{\"\\q\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"NUL escape", "{\"\\u0000\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"lone surrogate", "{\"\\ud800\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"not UTF-8", "{\"\xff\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"overlong UTF-8", "{\"\xc0\x80\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"UTF-8 cut short", "{\"\xe2\x82\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"raw line feed in a name", "{\"a\nb\":" INFO "}", 1, P, "byte ", "not valid JSON"},
    {"escape byte in a value", "{\"a\":\x1b[31m}", 0, P, "tensor 'a'", "not valid JSON"},
    {"single-quoted value", "{\"a\":{'dtype':1}}", 0, P, "tensor 'a'", "not valid JSON"},
    {"NaN", "{\"a\":NaN}", 0, P, "tensor 'a'", "not valid JSON"},
    /* names */
    {"empty name", "{\"\":" INFO "}", 1, P, "byte 9", "names have 1 to 255 bytes"},
    {"name of 256 bytes", "{\"" CHARS_256 "\":" INFO "}", 1, P, "byte 9",
     "at most 255 are allowed"},
    {"tab in a name", "{\"a\\tb\":" INFO "}", 1, P, "'a?b'", "control character"},
    {"DEL in a name", "{\"a\x7f\":" INFO "}", 1, P, "'a?'", "control character"},
    {"escape in a name", "{\"\\u001b[2J\":" INFO "}", 1, P, "'?[2J'",
     "control character"},
    {"C1 control in a name", "{\"\xc2\x9b\":" INFO "}", 1, P, "byte 9",
     "control character"},
    {"name twice", "{" ENTRY("a", "0", "1", "1") "," ENTRY("a", "1", "2", "1") "}", 2, P,
     "tensor 'a'", "names must be unique"},
    {"name twice, escaped",
     "{" ENTRY("a", "0", "1", "1") "," ENTRY("\\u0061", "1", "2", "1") "}", 2, P,
     "tensor 'a'", "names must be unique"},
    {"name twice, far apart",
     "{" ENTRY("a", "0", "1", "1") "," ENTRY("c", "1", "2", "1") "," ENTRY(
         "b", "2", "3", "1") "," ENTRY("a", "3", "4", "1") "}",
     4, P, "tensor 'a'", "names must be unique"},
    /* metadata */
    {"metadata a number", "{\"__metadata__\":1}", 0, P, "byte ", "an object of strings"},
    {"metadata an array", "{\"__metadata__\":[]}", 0, P, "byte ", "an object of strings"},
    {"metadata holds a number", "{\"__metadata__\":{\"k\":1}}", 0, P, "'k'",
     "only strings are allowed"},
    {"metadata holds null", "{\"__metadata__\":{\"k\":null}}", 0, P, "'k'",
     "only strings are allowed"},
    {"metadata holds an object", "{\"__metadata__\":{\"a\":\"b\",\"k\":{}}}", 0, P, "'k'",
     "only strings are allowed"},
    {"metadata key twice", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, P,
     "__metadata__", "duplicate"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, P, "__metadata__",
     "comes twice"},
    {"metadata cut short", "{\"__metadata__\":{\"k\":\"v\"", 0, P, "__metadata__",
     "not valid JSON"},
    /* entries */
    {"entry null", "{\"a\":null}", 0, P, "tensor 'a'", "dtype, shape, data_offsets"},
    {"entry an array", "{\"a\":[]}", 0, P, "tensor 'a'", "dtype, shape, data_offsets"},
    {"entry a string", "{\"a\":\"F32\"}", 0, P, "tensor 'a'",
     "dtype, shape, data_offsets"},
    {"entry empty", "{\"a\":{}}", 0, P, "tensor 'a': dtype is missing", "\"F32\""},
    {"key twice", "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, P, "tensor 'a'",
     "duplicate"},
    {"unknown key", "{\"a\":{\"dtype\":\"U8\",\"path\":\"x\"}}", 0, P,
     "unknown key 'path'", "allowed are dtype, shape, data_offsets"},
    {"key in capitals", "{\"a\":{\"DType\":\"U8\"}}", 0, P, "unknown key 'DType'",
     "allowed are"},
    {"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, P,
     "tensor 'a': shape is missing", "array of integers"},
    {"no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, P,
     "tensor 'a': data_offsets is missing", "array of integers"},
    {"dtype a number", "{\"a\":{\"dtype\":1}}", 0, P, "tensor 'a': dtype", "\"F32\""},
    {"dtype unknown", "{\"a\":{\"dtype\":\"F33\"}}", 0, P, "dtype 'F33' is unknown",
     "supported are F64, F32, F16, BF16, F8_E4M3"},
    {"dtype in small letters", "{\"a\":{\"dtype\":\"f32\"}}", 0, P, "dtype 'f32'",
     "supported are"},
    {"dtype empty", "{\"a\":{\"dtype\":\"\"}}", 0, P, "dtype ''", "supported are"},
    {"dtype with an escape", "{\"a\":{\"dtype\":\"\\u001b[0m\"}}", 0, P, "dtype '?[0m'",
     "supported are"},
    {"dtype F8", "{\"a\":{\"dtype\":\"F8_E8M0\"}}", 0, U, "dtype 'F8_E8M0'",
     "supported are"},
    {"dtype F4", "{\"a\":{\"dtype\":\"F4\"}}", 0, U, "tensor 'a': dtype 'F4'",
     "supported are"},
    {"shape an object", ONE("{}", "0", "4"), 4, P, "shape is not an array", "integers"},
    {"shape a number", ONE("1", "0", "4"), 4, P, "shape is not an array", "integers"},
    {"dim a string", ONE("[\"1\"]", "0", "4"), 4, P, "shape[0]", "integer"},
    {"dim a real", ONE("[1.0]", "0", "4"), 4, P, "shape[0]", "integer"},
    {"dim with an exponent", ONE("[1e0]", "0", "4"), 4, P, "shape[0]", "integer"},
    {"dim true", ONE("[1,true]", "0", "4"), 4, P, "shape[1]", "integer"},
    {"dim null", ONE("[null]", "0", "4"), 4, P, "shape[0]", "integer"},
    {"dim negative", ONE("[-1]", "0", "4"), 4, P, "shape[0] is -1", "not be negative"},
    {"two negative dims", ONE("[-1,-1]", "0", "4"), 4, P, "shape[0]", "not be negative"},
    {"dim 2^31", ONE("[2147483648]", "0", "4"), 4, P, "dim 0 is 2147483648",
     "0 to 2147483647"},
    {"dim 2^63-1", ONE("[9223372036854775807]", "0", "4"), 4, P, "tensor 'a': dim 0",
     "0 to 2147483647"},
    {"dim 2^64-1", ONE("[18446744073709551615]", "0", "4"), 4, P, "tensor 'a'",
     "too big integer"},
    {"dim 2^64+1", ONE("[18446744073709551617]", "0", "4"), 4, P, "tensor 'a'",
     "too big integer"},
    {"leading zero", ONE("[01]", "0", "4"), 4, P, "tensor 'a'", "not valid JSON"},
    {"nine dims", ONE("[1,1,1,1,1,1,1,1,1]", "0", "4"), 4, P, "shape has 9 entries",
     "at most 8"},
    {"elements overflow", ONE("[2147483647,2147483647,2147483647]", "0", "4"), 4, P,
     "tensor 'a': the product of its 3 dims", "1099511627776 elements allowed"},
    {"elements wrap to one", ONE("[65536,65536,65536,65536]", "0", "0"), 0, P,
     "product of its 4 dims", "elements allowed"},
    {"elements above 2^40", ONE("[1048576,1048577]", "0", "4"), 4, P,
     "product of its 2 dims", "elements allowed"},
    {"offsets an object", ONE("[1]", "0", "4]},\"b\":{\"x\":[0"), 4, P, "tensor 'b'",
     "allowed are dtype"},
    {"offsets of one entry",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, P,
     "data_offsets has 1 entries", "2 are needed"},
    {"offsets of three entries", ONE("[1]", "0,2", "4"), 4, P,
     "data_offsets has 3 entries", "at most 2 are allowed"},
    {"offset a string", ONE("[1]", "\"0\"", "4"), 4, P, "data_offsets[0]", "integer"},
    {"offset a real", ONE("[1]", "0", "4.0"), 4, P, "data_offsets[1]", "integer"},
    {"offset negative", ONE("[1]", "-4", "0"), 4, P, "data_offsets[0] is -4",
     "not be negative"},
    {"offset 2^64-1", ONE("[1]", "0", "18446744073709551615"), 4, P, "tensor 'a'",
     "too big integer"},
    {"offset 2^63-1", ONE("[1]", "0", "9223372036854775807"), 4, P,
     "lead out of the data", "has 4 bytes"},
    {"offset one too far", ONE("[1]", "1", "5"), 4, P, "[1, 5] lead out", "has 4 bytes"},
    {"offsets backwards", ONE("[1]", "4", "0"), 4, P, "[4, 0] run backwards",
     "has 4 bytes"},
    {"span too short", ONE("[2]", "0", "4"), 4, P, "span 4 bytes", "2 elements of F32"},
    {"span too long", ONE("[1]", "0", "8"), 8, P, "span 8 bytes", "1 elements of F32"},
    {"span of a scalar", ONE("[]", "0", "8"), 8, P, "span 8 bytes", "need 4 bytes each"},
    {"span of nothing", ONE("[0]", "0", "4"), 4, P, "span 4 bytes", "0 elements of F32"},
    {"data missing", ONE("[1]", "0", "4"), 0, P, "[0, 4] lead out", "has 0 bytes"},
    /* cover */
    {"bytes at the end", ONE("[1]", "0", "4"), 5, P, "1 bytes after the last tensor",
     "must end at byte"},
    {"bytes and no tensor", "{}", 1, P, "1 bytes after the last tensor",
     "must end at byte 10"},
    {"hole at the start", ONE("[1]", "4", "8"), 8, P, "tensor 'a': bytes 0 to 4",
     "holes are not allowed"},
    {"hole between", "{" ENTRY("a", "0", "1", "1") "," ENTRY("b", "2", "3", "1") "}", 3,
     P, "tensor 'b': bytes 1 to 2", "holes are not allowed"},
    {"hole between, listed last first",
     "{" ENTRY("b", "2", "3", "1") "," ENTRY("a", "0", "1", "1") "}", 3, P,
     "tensor 'b': bytes 1 to 2", "holes are not allowed"},
    {"the same bytes twice",
     "{" ENTRY("a", "0", "1", "1") "," ENTRY("b", "0", "1", "1") "}", 1, P,
     "byte 0 of the data, inside", "must not overlap"},
    {"overlap by one byte",
     "{" ENTRY("a", "0", "2", "2") "," ENTRY("b", "1", "3", "2") "}", 3, P,
     "tensor 'b': begins at byte 1", "must not overlap"},
    {"inside another", "{" ENTRY("a", "0", "4", "4") "," ENTRY("b", "1", "2", "1") "}", 4,
     P, "tensor 'b': begins at byte 1", "must not overlap"},
    {"empty tensor inside another",
     "{" ENTRY("a", "0", "4", "4") "," ENTRY("b", "2", "2", "0") "}", 4, P,
     "tensor 'b': begins at byte 2", "must not overlap"},
};

Test(weights_malformed, safetensors_headers_are_refused)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const struct safetensors_case *c = &headers[i];
        struct text t = safetensors(c->header, c->data);
        expect_refusal(c->name, t.bytes, t.size, c->status, c->place, c->allowed);
        free(t.bytes);
    }
}

static const struct raw_case files[] = {
    {"empty file", BYTES(""), P, "0 bytes", "at least 10"},
    {"one byte", BYTES("{"), P, "1 bytes", "at least 10"},
    {"length alone", BYTES("\2\0\0\0\0\0\0\0"), P, "8 bytes", "at least 10"},
    {"length 0", BYTES("\0\0\0\0\0\0\0\0{}"), P, "byte 8", "'{' is needed"},
    {"length 1", BYTES("\1\0\0\0\0\0\0\0{}"), P, "byte 9", "a name in quotes"},
    {"length one too many", BYTES("\3\0\0\0\0\0\0\0{}"), P, "header of 3 bytes",
     "only 2 follow"},
    {"length 100 MB", BYTES("\0\xe1\xf5\5\0\0\0\0{}"), P, "header of 100000000 bytes",
     "only 2 follow"},
    {"length 100 MB + 1", BYTES("\1\xe1\xf5\5\0\0\0\0{}"), P, "header of 100000001 bytes",
     "at most 100000000"},
    {"length 2^32", BYTES("\0\0\0\0\1\0\0\0{}"), P, "header of 4294967296 bytes",
     "at most 100000000"},
    {"length 2^63", BYTES("\0\0\0\0\0\0\0\x80{}"), P, "header of 9223372036854775808",
     "at most 100000000"},
    {"length 2^64-1", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff{}"), P,
     "header of 18446744073709551615", "at most 100000000"},
    {"length 2^64-8, which wraps", BYTES("\xf8\xff\xff\xff\xff\xff\xff\xff{}"), P,
     "header of 18446744073709551608", "at most 100000000"},
    {"big-endian length", BYTES("\0\0\0\0\0\0\0\2{}"), P, "header of 144115188075855872",
     "at most 100000000"},
    {"space before the brace", BYTES("\3\0\0\0\0\0\0\0 {}"), P, "byte 8 is 0x20", "'{'"},
    {"array as the header", BYTES("\2\0\0\0\0\0\0\0[]"), P, "byte 8 is 0x5b", "'{'"},
    {"byte order mark", BYTES("\5\0\0\0\0\0\0\0\xef\xbb\xbf{}"), P, "byte 8 is 0xef",
     "'{'"},
    {"NUL in the header", BYTES("\3\0\0\0\0\0\0\0{\0}"), P, "byte 9", "a name in quotes"},
    {"NUL in a name", BYTES("\6\0\0\0\0\0\0\0{\"a\0\":"), P, "byte ", "not valid JSON"},
    {"NUL after the object", BYTES("\3\0\0\0\0\0\0\0{}\0"), P, "byte 10", "only spaces"},
    {"pickle", BYTES("\x80\2}q\0X\5\0\0\0.."), P, "byte 8 is 0x00",
     "neither safetensors nor"},
    {"zip of a PyTorch file", BYTES("PK\3\4\0\0\0\0\0\0\0\0"), P, "byte 8",
     "; it is a zip archive"},
    {"HDF5", BYTES("\x89HDF\r\n\x1a\n\0\0\0\0"), P, "byte 8", "neither"},
    {"Git LFS pointer", BYTES("version https://git-lfs.github.com/spec/v1\n"), P,
     "byte 8", "; it is a Git LFS pointer: `git lfs pull`"},
    {"web page", BYTES("<!DOCTYPE html>\n<html>"), P, "byte 8", "; it is a web page"},
    {"GGUF", BYTES("GGUF\3\0\0\0\1\0\0\0\0\0\0\0"), P, "byte 8", "neither"},
};

Test(weights_malformed, files_of_other_kinds_are_refused)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        expect_refusal(files[i].name, files[i].bytes, files[i].size, files[i].status,
                       files[i].place, files[i].allowed);
}

/* Nesting as deep as the text allows must not use up the stack. */
Test(weights_malformed, deep_and_long_json_is_refused)
{
    enum { N = 1 << 20 };
    static const struct {
        const char *name, *start;
        char fill;
        const char *place, *allowed;
    } cases[] = {
        {"nested arrays", "{\"a\":", '[', "tensor 'a'", "not valid JSON"},
        {"endless number", "{\"a\":", '1', "tensor 'a'", "too big integer"},
        {"endless name", "{\"", 'x', "byte 9", "longer than the 65536 bytes"},
        {"endless space", "{\"a\":", ' ', "tensor 'a'", "longer than the 65536 bytes"},
        {"endless string", "{\"a\":\"", 'x', "tensor 'a'", "longer than the 65536 bytes"},
    };
    char *header = malloc(N + 1);
    cr_assert_not_null(header);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(header, cases[i].fill, N);
        memcpy(header, cases[i].start, strlen(cases[i].start));
        header[N] = '\0';
        struct text t = safetensors(header, 0);
        expect_refusal(cases[i].name, t.bytes, t.size, P, cases[i].place,
                       cases[i].allowed);
        free(t.bytes);
    }
    free(header);
}

Test(weights_malformed, cut_and_flipped_files_do_no_harm)
{
    struct text good =
        safetensors("{\"__metadata__\":{\"k\":\"v\"}," ENTRY(
                        "a", "0", "2", "2") "," ENTRY("b", "2", "5", "3") "}  ",
                    5);
    expect_no_harm(&good);
    free(good.bytes);
}
