/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.json: ids and texts are those of Hugging Face's library, which made the
 * tables in tests/data/tokenizers; see make.py there.
 */
#include "tests/language/tokens.h"

#include <jansson.h>

TestSuite(hugging_face, .timeout = 600);

static const char *data_path(const char *name)
{
    static char path[1024];
    const char *srcdir = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/data/tokenizers/%s", srcdir ? srcdir : ".",
             name);
    return path;
}

static json_t *table(const char *name)
{
    json_error_t e;
    json_t *j = json_load_file(data_path(name), JSON_ALLOW_NUL, &e);
    cr_assert_not_null(j, "%s: %s", name, e.text);
    return j;
}

static struct tokenizer *opened(const char *name)
{
    char file[64];
    struct tokenizer *t = NULL;
    strata_error err = {0};
    snprintf(file, sizeof file, "%s.json", name);
    cr_assert_eq(tokenizer_open(&t, data_path(file), &err), STRATA_OK, "%s", err.message);
    return t;
}

static int32_t *ids_of(const json_t *list)
{
    const size_t n = json_array_size(list);
    int32_t *ids = calloc(n + 1, sizeof *ids);
    cr_assert_not_null(ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return ids;
}

static void expect_row(const char *name, const struct tokenizer *t, const json_t *text,
                       const json_t *ids, const json_t *back)
{
    const size_t n = json_array_size(ids);
    int32_t *wanted = ids_of(ids);
    struct tokens got = encoded(t, json_string_value(text), json_string_length(text));
    expect_ids(name, json_string_value(text), &got, wanted, n);
    struct token_text out = decoded(t, wanted, n);
    expect_text(name, &out, json_string_value(back), json_string_length(back));
    expect_streamed(name, t, wanted, n);
    free(wanted);
    free(got.ids);
    free(out.bytes);
}

static void expect_tokenizer(const char *name, const char *begin, const char *end)
{
    json_t *all = table("expected.json");
    const json_t *texts = json_object_get(all, "texts");
    const json_t *e = json_object_get(json_object_get(all, "tokenizers"), name);
    struct tokenizer *t = opened(name);
    cr_assert_gt(json_array_size(texts), 50);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        const json_t *back = json_array_get(json_object_get(e, "text"), i);
        expect_row(name, t, text, json_array_get(json_object_get(e, "ids"), i),
                   json_is_null(back) ? text : back);
    }
    cr_expect_eq(tokenizer_size(t), json_integer_value(json_object_get(e, "size")));
    cr_expect_eq(tokenizer_begin(t), begin ? tokenizer_find(t, begin) : -1);
    for (int32_t id = 0; id < tokenizer_size(t); id++)
        cr_expect_eq(tokenizer_ends(t, id), id == tokenizer_find(t, end),
                     "%s: whether %d ends a text", name, id);
    cr_expect_eq(tokenizer_find(t, "no token is spelled so"), -1);
    cr_expect(!tokenizer_ends(t, -1) && !tokenizer_ends(t, tokenizer_size(t)));
    tokenizer_free(t);
    json_decref(all);
}

#define TOKENIZER(name, begin, end)                                                      \
    Test(hugging_face, name)                                                             \
    {                                                                                    \
        SKIP_WITHOUT_LIBRARIES;                                                          \
        expect_tokenizer(#name, begin, end);                                             \
    }
TOKENIZER(gpt2, NULL, "<|endoftext|>")
TOKENIZER(roberta, "<s>", "</s>")
TOKENIZER(llama3, "<s>", "</s>")
TOKENIZER(llama2, "<s>", "</s>")
TOKENIZER(metaspace, NULL, "</s>")
TOKENIZER(clip, "<s>", "</s>")
TOKENIZER(bert, "[CLS]", "[SEP]")

/* Each setting by itself. */
Test(hugging_face, steps)
{
    SKIP_WITHOUT_LIBRARIES;
    json_t *all = table("steps.json");
    const json_t *rows = json_object_get(all, "rows");
    cr_assert_gt(json_array_size(rows), 100);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        json_t *file =
            json_pack("{sOsOsO}", "added_tokens", json_object_get(all, "added_tokens"),
                      "model", json_object_get(all, "model"),
                      json_string_value(json_array_get(row, 0)), json_array_get(row, 1));
        char *text = json_dumps(file, 0);
        char *name = json_dumps(json_array_get(row, 1), JSON_ENCODE_ANY);
        cr_assert(text && name);
        struct tokenizer *t = parsed(name, text, strlen(text));
        expect_row(name, t, json_array_get(row, 2), json_array_get(row, 3),
                   json_array_get(row, 4));
        tokenizer_free(t);
        free(name);
        free(text);
        json_decref(file);
    }
    json_decref(all);
}

/* Whatever the bytes are, a byte-level tokenizer gives them back, if they are text. */
Test(hugging_face, bytes)
{
    SKIP_WITHOUT_LIBRARIES;
    struct tokenizer *t = opened("gpt2");
    char all[128 + 2 * 1920];
    size_t n = 0;
    for (unsigned c = 0; c < 128; c++)
        all[n++] = (char)c;
    for (unsigned c = 128; c < 2048; c++) {
        all[n++] = (char)(0xc0 | c >> 6);
        all[n++] = (char)(0x80 | (c & 0x3f));
    }
    expect_same("every character of one or two bytes", t, all, n);
    for (size_t i = 0; i < 128; i++)
        expect_same("one character", t, all + i, 1);
    tokenizer_free(t);
}

/* One U+FFFD for each longest beginning of a character, as Unicode recommends. */
static const struct {
    const char *text, *mended;
} broken[] = {
    {"\x80", "\xef\xbf\xbd"},
    {"a\xff\xfe", "a\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xc3", "\xef\xbf\xbd"},
    {"\xc3z", "\xef\xbf\xbdz"},
    {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xe4\xb8", "\xef\xbf\xbd"},
    {"\xe4\xb8z\xe4\xb8\xad", "\xef\xbf\xbdz\xe4\xb8\xad"},
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xf0\x9f\x98", "\xef\xbf\xbd"},
    {"\xf0\x9f\x98\xf0\x9f\x98\x80", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
};

Test(hugging_face, broken_text)
{
    SKIP_WITHOUT_LIBRARIES;
    struct tokenizer *t = opened("gpt2");
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct tokens ids = encoded(t, broken[i].text, strlen(broken[i].text));
        struct tokens same = encoded(t, broken[i].mended, strlen(broken[i].mended));
        expect_ids("mended", broken[i].mended, &ids, same.ids, same.n);
        free(ids.ids);
        free(same.ids);
    }
    tokenizer_free(t);
}

/* Tokens whose bytes make no character are put out as the same marks. */
Test(hugging_face, broken_tokens)
{
    SKIP_WITHOUT_LIBRARIES;
    struct tokenizer *t = opened("gpt2");
    /* GPT-2's characters for 0xe4 0xb8, then for 'z'. */
    const int32_t ids[] = {tokenizer_find(t, "\xc3\xa4"), tokenizer_find(t, "\xc2\xb8"),
                           tokenizer_find(t, "z"), tokenizer_find(t, "\xc3\xa4")};
    struct token_text out = decoded(t, ids, 4);
    expect_text("parts", &out, "\xef\xbf\xbdz\xef\xbf\xbd", 7);
    expect_streamed("parts", t, ids, 4);
    free(out.bytes);
    tokenizer_free(t);
}

/* What bytes make is held back until they make it; a token that is none ends them. */
Test(hugging_face, byte_tokens)
{
    SKIP_WITHOUT_LIBRARIES;
    struct tokenizer *t = opened("llama2");
    struct token_stream *s;
    struct token_text out = {0};
    const int32_t e4 = tokenizer_find(t, "<0xE4>"), b8 = tokenizer_find(t, "<0xB8>"),
                  ad = tokenizer_find(t, "<0xAD>"), z = tokenizer_find(t, "b");
    const struct {
        int32_t id;
        const char *text;
    } steps[] = {{e4, ""},
                 {b8, ""},
                 {ad, "\xe4\xb8\xad"},
                 {e4, ""},
                 {tokenizer_begin(t), ""},
                 {b8, ""},
                 {z, "\xef\xbf\xbd\xef\xbf\xbd"
                     "b"}};
    cr_assert_eq(token_stream_open(&s, t, NULL), STRATA_OK);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const size_t before = out.n;
        cr_assert_eq(token_stream_put(s, steps[i].id, &out, NULL), STRATA_OK);
        cr_expect_str_eq(out.bytes + before, steps[i].text, "step %zu: '%s'", i,
                         out.bytes + before);
    }
    token_stream_free(s);
    free(out.bytes);
    tokenizer_free(t);
}

Test(hugging_face, wrong_ids)
{
    SKIP_WITHOUT_LIBRARIES;
    struct tokenizer *t = opened("gpt2");
    const int32_t bad[] = {-1, tokenizer_size(t), INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct token_text out = {0};
        strata_error err = {0};
        const int32_t ids[] = {40, bad[i]};
        cr_expect_eq(tokenizer_decode(t, ids, 2, &out, &err), STRATA_EINVAL);
        cr_expect_not_null(strstr(err.message, "ids are below 400"), "%s", err.message);
        cr_expect_eq(out.n, 0);
        free(out.bytes);
    }
    tokenizer_free(t);
}

/* Appending leaves what was there. */
Test(hugging_face, appends)
{
    SKIP_WITHOUT_LIBRARIES;
    struct tokenizer *t = opened("gpt2");
    struct tokens ids = {0};
    struct token_text out = {0};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(tokenizer_encode(t, "a", 1, &ids, NULL), STRATA_OK);
    cr_expect_eq(ids.n, 3);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(tokenizer_decode(t, ids.ids, 3, &out, NULL), STRATA_OK);
    expect_text("twice", &out, "aaaaaa", 6);
    free(ids.ids);
    free(out.bytes);
    tokenizer_free(t);
}

/* Texts that take hours where work grows with the square of their length. */
Test(hugging_face, long_texts)
{
    SKIP_WITHOUT_LIBRARIES;
    static const char *const names[] = {"gpt2", "llama3", "llama2"};
    static const char *const units[] = {"a", " ",       "\n",
                                        "1", " <|y|> ", "\xcc\x81\xcc\xa3"};
    enum { LONG = 1000000 };
    char *text = malloc(LONG + 8);
    cr_assert_not_null(text);
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++) {
        size_t n = 0;
        for (const size_t size = strlen(units[k]); n < LONG; n += size)
            memcpy(text + n, units[k], size);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            struct tokenizer *t = opened(names[i]);
            struct tokens ids = encoded(t, text, n);
            cr_expect_gt(ids.n, 0);
            free(ids.ids);
            tokenizer_free(t);
        }
    }
    free(text);
}
