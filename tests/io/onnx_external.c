/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of ONNX models in files beside them: what is read, and that a model can lead to
 * no file but its own.
 */
#include "tests/io/onnx_text.h"

TestSuite(onnx_external, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define ENTRY(key, value) "13:{1:'" key "' 2:'" value "'} "
#define EXTERNAL(entries) TENSOR("1:2 2:1 14:1 " entries)

static const float stored[4] = {1, 2, 3, 4};

/* net/m.onnx, w.bin and what a name may lead to. */
static const char *make_model(const char *text)
{
    struct blob b = onnx_text(text);
    mkdir(in_scratch("net"), 0700);
    mkdir(in_scratch("net/sub"), 0700);
    spill("outside.bin", stored, sizeof stored);
    spill("net/w.bin", stored, sizeof stored);
    spill("net/sub/w.bin", stored, sizeof stored);
    const char *path = spill("net/m.onnx", b.bytes, b.size);
    free(b.bytes);
    return path;
}

static const struct {
    const char *name, *text;
    float first;
} good[] = {
    {"whole", EXTERNAL(ENTRY("location", "w.bin")), 1},
    {"offset", EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "8")), 3},
    {"offset and length",
     EXTERNAL(ENTRY("offset", "4") ENTRY("length", "8") ENTRY("location", "w.bin")), 2},
    {"folder", EXTERNAL(ENTRY("location", "sub/w.bin")), 1},
    {"dot", EXTERNAL(ENTRY("location", "./sub//./w.bin")), 1},
    {"other keys", EXTERNAL(ENTRY("checksum", "x") ENTRY("location", "w.bin")), 1},
};

Test(onnx_external, values_are_read_from_the_file)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        strata_error err = {0};
        const struct onnx_model *m = NULL;
        const char *path = make_model(good[i].text);
        cr_assert_eq(onnx_open(&m, path, NULL, &err), STRATA_OK, "%s: %s", good[i].name,
                     err.message);
        const struct onnx_tensor *t = m->graph.initializers;
        const float *values = t->data;
        cr_expect(t->bytes == 8 && values[0] == good[i].first &&
                      values[1] == good[i].first + 1,
                  "%s", good[i].name);
        cr_expect_str_neq(t->location, "");
        onnx_close(m);
    }
}

/* Offsets need not be aligned; the file of several tensors is mapped once. */
Test(onnx_external, values_at_any_offset_are_aligned)
{
    unsigned char bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    const char *path =
        make_model(MODEL("5:{1:2 2:11 14:1 " ENTRY("location", "b") ENTRY(
            "offset", "3") "}"
                           "5:{1:2 2:1 14:1 " ENTRY("location", "b")
                               ENTRY("offset", "56") "}"
                                                     "5:{1:0 2:1 14:1 " ENTRY("location",
                                                                              "b") "}"));
    spill("net/b", bytes, sizeof bytes);
    const struct onnx_model *m = NULL;
    strata_error err = {0};
    cr_assert_eq(onnx_open(&m, path, NULL, &err), STRATA_OK, "%s", err.message);
    const struct onnx_tensor *t = m->graph.initializers;
    cr_expect_eq((uintptr_t)t[0].data % 8, 0);
    cr_expect_arr_eq(t[0].data, bytes + 3, 16);
    cr_expect_arr_eq(t[1].data, bytes + 56, 8);
    cr_expect_null(t[2].data);
    onnx_close(m);
}

static void make_links(void)
{
    cr_assert_eq(symlink("../outside.bin", in_scratch("net/out")), 0);
    cr_assert_eq(symlink("w.bin", in_scratch("net/in")), 0);
    cr_assert_eq(symlink("..", in_scratch("net/up")), 0);
    cr_assert_eq(symlink("sub", in_scratch("net/sub-link")), 0);
    cr_assert_eq(link(in_scratch("outside.bin"), in_scratch("net/hard")), 0);
    cr_assert_eq(mkfifo(in_scratch("net/fifo"), 0600), 0);
}

static const struct {
    const char *name, *text, *what;
} bad[] = {
    {"parent", EXTERNAL(ENTRY("location", "../outside.bin")), "'..' leads out"},
    {"parent inside", EXTERNAL(ENTRY("location", "sub/../../outside.bin")), "'..' leads"},
    {"there and back", EXTERNAL(ENTRY("location", "sub/../w.bin")), "'..' leads out"},
    {"absolute", EXTERNAL(ENTRY("location", "/etc/passwd")), "absolute name"},
    {"symbolic link", EXTERNAL(ENTRY("location", "out")), "is a symbolic link"},
    {"link inside", EXTERNAL(ENTRY("location", "in")), "is a symbolic link"},
    {"linked folder", EXTERNAL(ENTRY("location", "up/outside.bin")),
     "'up' is a symbolic"},
    {"linked folder inside", EXTERNAL(ENTRY("location", "sub-link/w.bin")),
     "'sub-link' is a symbolic link"},
    {"hard link", EXTERNAL(ENTRY("location", "hard")), "has 2 hard links"},
    {"FIFO", EXTERNAL(ENTRY("location", "fifo")), "is a FIFO"},
    {"folder", EXTERNAL(ENTRY("location", "sub")), "is a folder"},
    {"absent", EXTERNAL(ENTRY("location", "none")), "cannot be opened"},
    {"control character", EXTERNAL("13:{1:'location' 2:=770a} "), "control character"},
    {"no location", EXTERNAL(ENTRY("offset", "0")), "no location"},
    {"empty location", EXTERNAL(ENTRY("location", "")), "no location"},
    {"no entries", EXTERNAL(""), "no location"},
    {"two locations", EXTERNAL(ENTRY("location", "w.bin") ENTRY("location", "sub/w.bin")),
     "location comes twice"},
    {"offset past the end", EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "17")),
     "lead out of 'w.bin', which has 16 bytes"},
    {"end past the end", EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "9")),
     "bytes 9 to 9+8 lead out"},
    {"offset of 2^64-8",
     EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "18446744073709551608")),
     "lead out of"},
    {"offset of 2^64",
     EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "18446744073709551616")),
     "offset is over 64 bits"},
    {"negative offset", EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "-1")),
     "offset is '-1'; a number"},
    {"offset in hex", EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "0x8")),
     "offset is '0x8'"},
    {"no offset", EXTERNAL(ENTRY("location", "w.bin") ENTRY("offset", "")),
     "offset is ''"},
    {"short", EXTERNAL(ENTRY("location", "w.bin") ENTRY("length", "4")),
     "length 4; 2 elements of type float need 8"},
    {"long", EXTERNAL(ENTRY("location", "w.bin") ENTRY("length", "16")), "length 16;"},
    {"values, too", EXTERNAL(ENTRY("location", "w.bin") "4:f1 4:f2"),
     "values in external data and in float_data"},
};

Test(onnx_external, a_model_leads_to_no_other_file)
{
    make_model("7:{}");
    make_links();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strata_error err = {0};
        struct blob b = onnx_text(bad[i].text);
        const char *path = spill("net/m.onnx", b.bytes, b.size);
        const struct onnx_model *m = (const struct onnx_model *)&err;
        int status = onnx_open(&m, path, NULL, &err);
        expect_error(bad[i].name, status, &err, path, "(GraphProto.initializer[0])",
                     bad[i].what);
        cr_expect_null(m, "%s", bad[i].name);
        free(b.bytes);
    }
}

/* As the cache of Hugging Face has it: names in one folder, files in another. */
static const char *make_store(const char *location)
{
    char text[256];
    snprintf(text, sizeof text, EXTERNAL("13:{1:'location' 2:'%s'} "), location);
    struct blob b = onnx_text(text);
    mkdir(in_scratch("blobs"), 0700);
    mkdir(in_scratch("snapshot"), 0700);
    spill("blobs/m", b.bytes, b.size);
    spill("blobs/w", stored, sizeof stored);
    spill("outside.bin", stored, sizeof stored);
    free(b.bytes);
    if (symlink("../blobs/m", in_scratch("snapshot/m.onnx")) == 0) {
        cr_assert_eq(symlink("../blobs/w", in_scratch("snapshot/w.bin")), 0);
        cr_assert_eq(symlink("../outside.bin", in_scratch("snapshot/out")), 0);
        cr_assert_eq(symlink("../blobs", in_scratch("snapshot/all")), 0);
        spill("snapshot/hard", stored, sizeof stored);
        cr_assert_eq(link(in_scratch("snapshot/hard"), in_scratch("other")), 0);
    }
    return in_scratch("snapshot/m.onnx");
}

Test(onnx_external, a_model_that_is_a_link_has_links_beside_it)
{
    static const struct {
        const char *location, *what;
    } cases[] = {
        {"w.bin", NULL},
        {"all/w", NULL},
        {"out", "leads to"},
        {"hard", "has 2 hard links"}, /* what stands beside it is refused as without */
        {"all/../outside.bin", "leads to"},
        {"../snapshot/m.onnx/../w.bin", "cannot be opened"},
        {"none", "cannot be opened"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strata_error err = {0};
        const struct onnx_model *m = NULL;
        const char *path = make_store(cases[i].location);
        int status = onnx_open(&m, path, NULL, &err);
        if (cases[i].what) {
            expect_error(cases[i].location, status, &err, path, "initializer[0]",
                         cases[i].what);
            continue;
        }
        cr_assert_eq(status, STRATA_OK, "%s: %s", cases[i].location, err.message);
        cr_expect_eq(((const float *)m->graph.initializers->data)[1], 2);
        onnx_close(m);
    }
}

/* Whoever keeps what was read has to know of which file that was. */
Test(onnx_external, the_state_of_a_file_is_that_of_before)
{
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    struct stat before, told;
    const char *path = make_model(EXTERNAL(ENTRY("location", "w.bin")));
    cr_assert_eq(stat(in_scratch("net/w.bin"), &before), 0);
    cr_assert_eq(onnx_open(&m, path, NULL, &err), STRATA_OK, "%s", err.message);
    spill("net/new", "other", 5);
    cr_assert_eq(rename(in_scratch("net/new"), in_scratch("net/w.bin")), 0);
    cr_expect_str_eq(onnx_file_beside(m, 0, &told), "w.bin");
    cr_expect_eq(told.st_ino, before.st_ino);
    cr_expect_eq(told.st_size, before.st_size);
    cr_expect_null(onnx_file_beside(m, 1, &told));
    onnx_close(m);
}

Test(onnx_external, what_stands_for_a_file_is_told)
{
    static const char pointer[] =
        "version https://git-lfs.github.com/spec/v1\noid sha256:";
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    make_model("7:{}");
    const char *path = spill("net/m.onnx", pointer, sizeof pointer - 1);
    expect_error("pointer", onnx_open(&m, path, NULL, &err), &err, path, "byte 0x0",
                 "; it is a Git LFS pointer");
}

Test(onnx_external, files_have_a_limit)
{
    struct onnx_limits limits = onnx_default_limits;
    const char *path = make_model(EXTERNAL(ENTRY("location", "w.bin")));
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    limits.external_bytes = 16;
    cr_expect_eq(onnx_open(&m, path, &limits, &err), STRATA_OK, "%s", err.message);
    onnx_close(m);
    limits.external_bytes = 15;
    int status = onnx_open(&m, path, &limits, &err);
    expect_error("limit", status, &err, path, "initializer[0]",
                 "file has 16 bytes, at most 15 are allowed");
}
