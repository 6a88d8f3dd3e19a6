/* SPDX-License-Identifier: Apache-2.0
 *
 * llama2.c's tokenizer.bin. The vocabulary of Llama 2 has 32,000 tokens; here are the
 * pieces that four prompts become or pass through, at their ids, and fillers at all
 * others: the prompts' ids are those of the whole file.
 */
#include "tests/language/tokens.h"

TestSuite(llama2c, .timeout = 600);

enum { LLAMA2_TOKENS = 32000, BYTES_AT = 3 };

static const struct piece {
    int32_t id;
    const char *text;
} pieces[] = {{259, "  "},
              {260, " t"},
              {261, "er"},
              {262, "in"},
              {264, "en"},
              {265, "on"},
              {266, " th"},
              {267, "es"},
              {268, "    "},
              {269, " s"},
              {270, " d"},
              {271, "at"},
              {272, "or"},
              {273, "an"},
              {274, " c"},
              {275, "is"},
              {276, "re"},
              {277, "it"},
              {278, " the"},
              {282, " p"},
              {283, "ou"},
              {286, " m"},
              {288, " o"},
              {289, " b"},
              {292, "ing"},
              {295, "el"},
              {296, "ent"},
              {301, " l"},
              {303, "st"},
              {304, " to"},
              {305, "ch"},
              {306, " I"},
              {310, " of"},
              {314, "am"},
              {316, " de"},
              {317, " S"},
              {319, " A"},
              {321, " e"},
              {323, " T"},
              {326, "im"},
              {329, "ut"},
              {330, " g"},
              {336, "ra"},
              {337, " re"},
              {338, " is"},
              {345, "ve"},
              {347, "ie"},
              {348, "un"},
              {351, "ag"},
              {352, "ul"},
              {353, " ="},
              {354, "he"},
              {357, "ter"},
              {361, "if"},
              {368, "ly"},
              {369, "ver"},
              {373, " on"},
              {375, "us"},
              {378, " con"},
              {379, " H"},
              {380, " st"},
              {382, " E"},
              {383, " F"},
              {393, " that"},
              {403, "ate"},
              {404, "ess"},
              {407, "pp"},
              {409, " se"},
              {418, "     "},
              {425, " la"},
              {432, " j"},
              {440, "iv"},
              {449, "out"},
              {482, "age"},
              {504, "ust"},
              {524, "int"},
              {537, "ity"},
              {539, "      "},
              {550, "ans"},
              {592, " me"},
              {629, "gr"},
              {650, "one"},
              {706, "ory"},
              {715, " pl"},
              {728, "ish"},
              {734, " te"},
              {772, " po"},
              {837, "erm"},
              {865, "ng"},
              {923, " che"},
              {925, " just"},
              {968, "ese"},
              {987, "uch"},
              {1002, " stat"},
              {1104, " rel"},
              {1149, " =>"},
              {1201, "very"},
              {1218, "ating"},
              {1236, " pe"},
              {1267, "ren"},
              {1318, "\xc3\xa9"
                     "e"},
              {1339, " bel"},
              {1432, " every"},
              {1448, "essage"},
              {1506, " br"},
              {1605, " Tr"},
              {1607, "ife"},
              {1674, "lish"},
              {1678, "   "},
              {1725, "fe"},
              {1878, "ush"},
              {1925, " put"},
              {1926, "ativ"},
              {2099, " mean"},
              {2201, " Eng"},
              {2418, "ieve"},
              {2575, "ief"},
              {2643, " message"},
              {2778, " mer"},
              {2834, " life"},
              {3055, "ira"},
              {3322, "unch"},
              {3439, " Sim"},
              {3815, " team"},
              {4103, " Trans"},
              {4223, " English"},
              {4615, "rench"},
              {4639, " pel"},
              {4658, " believe"},
              {4706, "       "},
              {4932, " ot"},
              {5176, " French"},
              {5922, " states"},
              {6042, " ment"},
              {6324, " Hi"},
              {6368, " theory"},
              {6593, " meaning"},
              {6826, " launch"},
              {7205, " sea"},
              {9632, "late"},
              {11473, " brief"},
              {14215, " relativ"},
              {14332, " everyone"},
              {17632, "ply"},
              {18099, "ulating"},
              {28754, "uche"},
              {29871, " "},
              {29872, "e"},
              {29873, "t"},
              {29874, "a"},
              {29875, "i"},
              {29876, "n"},
              {29877, "o"},
              {29878, "r"},
              {29879, "s"},
              {29880, "l"},
              {29881, "d"},
              {29882, "h"},
              {29883, "c"},
              {29884, "u"},
              {29885, "m"},
              {29886, "p"},
              {29887, "g"},
              {29888, "f"},
              {29890, "b"},
              {29891, "y"},
              {29892, ","},
              {29894, "v"},
              {29901, ":"},
              {29902, "I"},
              {29903, "S"},
              {29909, "A"},
              {29911, "T"},
              {29922, "="},
              {29923, "E"},
              {29926, "j"},
              {29943, "F"},
              {29948, "\xc3\xa9"},
              {29950, "H"},
              {29958, ">"}};

/* ---- files ------------------------------------------------------------------------
 */

struct file {
    char *bytes;
    size_t n, room;
};

static void put(struct file *f, const void *bytes, size_t n)
{
    if (f->n + n > f->room) {
        f->room = (f->n + n) * 2;
        f->bytes = realloc(f->bytes, f->room);
        cr_assert_not_null(f->bytes);
    }
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static void put_u32(struct file *f, uint32_t x)
{
    char bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(x >> 8 * i & 0xff);
    put(f, bytes, sizeof bytes);
}

static void put_token(struct file *f, float score, const char *text, size_t n)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    put_u32(f, bits);
    put_u32(f, (uint32_t)n);
    put(f, text, n);
}

/* The first three, the bytes, then n more, each with a lower score than the one before.
 */
static struct file file_of(const char *const *texts, const float *scores, size_t n)
{
    struct file f = {0};
    char byte[8];
    put_u32(&f, 27);
    put_token(&f, 0, "<unk>", 5);
    put_token(&f, 0, "\n<s>\n", 5);
    put_token(&f, 0, "\n</s>\n", 6);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(byte, sizeof byte, "<0x%02X>", i);
        put_token(&f, 0, byte, 6);
    }
    for (size_t i = 0; i < n; i++)
        put_token(&f, scores ? scores[i] : -(float)i, texts[i], strlen(texts[i]));
    return f;
}

static struct tokenizer *llama2(void)
{
    const size_t n = LLAMA2_TOKENS - BYTES_AT - 256;
    const char **texts = calloc(n, sizeof *texts);
    float *scores = calloc(n, sizeof *scores);
    char(*fillers)[16] = calloc(n, sizeof *fillers);
    cr_assert(texts && scores && fillers);
    for (size_t i = 0; i < n; i++) {
        snprintf(fillers[i], sizeof fillers[i], "\x01%zu", i);
        texts[i] = fillers[i];
    }
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        texts[pieces[i].id - BYTES_AT - 256] = pieces[i].text;
    /* Spaces alone are merged last. */
    for (size_t i = 0; i < n; i++)
        scores[i] = texts[i][strspn(texts[i], " ")] ? -(float)i : -1e9f;
    struct file f = file_of(texts, scores, n);
    struct tokenizer *t = parsed("llama2.bin", f.bytes, f.n);
    free(f.bytes);
    free(fillers);
    free(scores);
    free(texts);
    return t;
}

/* ---- prompts ----------------------------------------------------------------------
 */

static const struct prompt {
    const char *text;
    size_t n;
    int32_t ids[64];
} prompts[] = {
    {"", 0, {0}},
    {"I believe the meaning of life is", 7, {306, 4658, 278, 6593, 310, 2834, 338}},
    {"Simply put, the theory of relativity states that ",
     12,
     {3439, 17632, 1925, 29892, 278, 6368, 310, 14215, 537, 5922, 393, 29871}},
    {"A brief message congratulating the team on the launch:\n\n        Hi "
     "everyone,\n\n        I just ",
     25,
     {319, 11473, 2643, 378,  629,   271,   18099, 278, 3815, 373, 278, 6826, 29901,
      13,  13,    4706, 6324, 14332, 29892, 13,    13,  4706, 306, 925, 29871}},
    {"Translate English to French:\n\n        sea otter => loutre de mer\n        "
     "peppermint => menthe poivr\xc3\xa9"
     "e\n        plush girafe => girafe peluche\n"
     "        cheese =>",
     49,
     {4103, 9632, 4223, 304,   5176,  29901, 13,   13,   4706, 7205, 4932, 357,  1149,
      301,  449,  276,  316,   2778,  13,    4706, 1236, 407,  837,  524,  1149, 6042,
      354,  772,  440,  29878, 1318,  13,    4706, 715,  1878, 330,  3055, 1725, 1149,
      330,  3055, 1725, 4639,  28754, 13,    4706, 923,  968,  1149}},
};

Test(llama2c, prompts)
{
    struct tokenizer *t = llama2();
    cr_expect_eq(tokenizer_size(t), LLAMA2_TOKENS);
    cr_expect_eq(tokenizer_begin(t), 1);
    for (int32_t id = -1; id <= LLAMA2_TOKENS; id++)
        cr_expect_eq(tokenizer_ends(t, id), id == 1 || id == 2, "id %d", id);
    for (size_t i = 0; i < sizeof prompts / sizeof prompts[0]; i++) {
        const struct prompt *p = &prompts[i];
        struct tokens ids = encoded(t, p->text, strlen(p->text));
        expect_ids("prompt", p->text, &ids, p->ids, p->n);
        expect_same("prompt", t, p->text, strlen(p->text));
        free(ids.ids);
    }
    tokenizer_free(t);
}

/* A file of the caller's, with these prompts: that of Llama 2 itself. */
Test(llama2c, whole_file)
{
    const char *path = getenv("STRATA_LLAMA2_TOKENIZER");
    struct tokenizer *t;
    strata_error err = {0};
    if (!path)
        cr_skip_test("STRATA_LLAMA2_TOKENIZER names no tokenizer.bin of Llama 2");
    cr_assert_eq(tokenizer_open(&t, path, &err), STRATA_OK, "%s", err.message);
    for (size_t i = 0; i < sizeof prompts / sizeof prompts[0]; i++) {
        const struct prompt *p = &prompts[i];
        struct tokens ids = encoded(t, p->text, strlen(p->text));
        expect_ids("prompt", p->text, &ids, p->ids, p->n);
        free(ids.ids);
    }
    tokenizer_free(t);
}

/* ---- rules ------------------------------------------------------------------------
 */

enum { FIRST = BYTES_AT + 256 };

/* Of pairs of one score the leftmost is merged; what merges nothing stays. */
Test(llama2c, scores)
{
    static const char *const texts[] = {" ", "a", "b", "aa", "ab", "aab", "bb", "aaa"};
    const float scores[] = {0, 0, 0, -1, -1, -3, -2e10f, -1e10f};
    struct file f = file_of(texts, scores, 8);
    struct tokenizer *t = parsed("scores.bin", f.bytes, f.n);
    static const struct {
        const char *text;
        size_t n;
        int32_t ids[8];
    } cases[] = {
        {"aab", 2, {FIRST, FIRST + 5}},
        {"aaab", 3, {FIRST, FIRST + 3, FIRST + 4}},
        {"bb", 3, {FIRST, FIRST + 2, FIRST + 2}},
        {"aaa", 3, {FIRST, FIRST + 3, FIRST + 1}},
        {"c", 2, {FIRST, 'c' + BYTES_AT}},
        {" ", 2, {FIRST, FIRST}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokens ids = encoded(t, cases[i].text, strlen(cases[i].text));
        expect_ids("scores", cases[i].text, &ids, cases[i].ids, cases[i].n);
        free(ids.ids);
    }
    tokenizer_free(t);
    free(f.bytes);
}

/* Bytes of any text become byte tokens, and its characters come back. */
Test(llama2c, bytes)
{
    static const char *const texts[] = {" "};
    struct file f = file_of(texts, NULL, 1);
    struct tokenizer *t = parsed("bytes.bin", f.bytes, f.n);
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    struct tokens ids = encoded(t, all, 256);
    cr_assert_eq(ids.n, 257);
    cr_expect_eq(ids.ids[0], FIRST);
    for (int i = 0; i < 256; i++)
        cr_expect_eq(ids.ids[1 + i], i == ' ' ? FIRST : i + BYTES_AT);
    free(ids.ids);
    expect_same("NUL", t, "a\0b", 3);
    expect_same("emoji", t, "\xf0\x9f\x98\x80\xe4\xb8\xad", 7);
    expect_same("spaces", t, "  a  ", 5);
    tokenizer_free(t);
    free(f.bytes);
}

/* A space goes after a begin token, wherever it stands, and nowhere else. */
Test(llama2c, after_begin)
{
    static const char *const texts[] = {" ", "a", " a"};
    struct file f = file_of(texts, NULL, 3);
    struct tokenizer *t = parsed("begin.bin", f.bytes, f.n);
    const int32_t ids[] = {1, FIRST + 2, FIRST + 2, 1, FIRST + 2, 2, FIRST + 2, 0};
    struct token_text out = decoded(t, ids, 8);
    expect_text("begin", &out, "a aa a<unk>", 11);
    expect_streamed("begin", t, ids, 8);
    free(out.bytes);
    tokenizer_free(t);
    free(f.bytes);
}

Test(llama2c, long_text)
{
    static const char *const texts[] = {" ", "a", "aa", "aaaa", "aaaaa"};
    enum { LONG = 1000000 };
    struct file f = file_of(texts, NULL, 5);
    struct tokenizer *t = parsed("long.bin", f.bytes, f.n);
    char *text = malloc(LONG);
    cr_assert_not_null(text);
    memset(text, 'a', LONG);
    struct tokens ids = encoded(t, text, LONG);
    cr_expect_eq(ids.n, 1 + LONG / 4);
    free(ids.ids);
    free(text);
    tokenizer_free(t);
    free(f.bytes);
}

/* ---- refusals ---------------------------------------------------------------------
 */

static void expect_refusal(const char *name, const void *bytes, size_t n,
                           const char *needed)
{
    strata_error err = {0};
    struct tokenizer *t = NULL;
    char *copy = malloc(n ? n : 1);
    cr_assert_not_null(copy);
    if (n)
        memcpy(copy, bytes, n);
    cr_expect_eq(tokenizer_parse(&t, copy, n, "bad.bin", &err), STRATA_EPARSE, "%s",
                 name);
    cr_expect_null(t);
    cr_expect_eq(strstr(err.message, "bad.bin: "), err.message, "%s", err.message);
    cr_expect_not_null(strstr(err.message, needed), "%s: no '%s' in: %s", name, needed,
                       err.message);
    free(copy);
}

#define BYTES(text) text, sizeof text - 1
static const struct {
    const char *name, *bytes;
    size_t n;
    const char *needed;
} refused[] = {
    {"nothing", BYTES(""), "neither tokenizer.json nor tokenizer.bin"},
    {"three bytes", BYTES("\1\0\0"), "neither tokenizer.json nor tokenizer.bin"},
    {"longest 0", BYTES("\0\0\0\0"), "the longest token's bytes"},
    {"longest too long", BYTES("\xff\xff\xff\x7f"), "found 2147483647 where 1 to 4096"},
    {"no tokens", BYTES("\5\0\0\0"), "found 0 tokens where at least 3"},
    {"a score alone", BYTES("\5\0\0\0\0\0\0\0"),
     "byte 4: token 0: found 4 bytes where 8"},
    {"no bytes of a token", BYTES("\5\0\0\0\0\0\0\0\0\0\0\0"), "token 0: length 0"},
    {"a negative length", BYTES("\5\0\0\0\0\0\0\0\xff\xff\xff\xff"), "length 4294967295"},
    {"cut short", BYTES("\5\0\0\0\0\0\0\0\2\0\0\0a"), "2 bytes are needed, but 1 follow"},
    {"no number", BYTES("\5\0\0\0\0\0\xc0\x7f\1\0\0\0a"), "not a finite number"},
};

Test(llama2c, refusals)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect_refusal(refused[i].name, refused[i].bytes, refused[i].n,
                       refused[i].needed);
}

/* Cut anywhere within a token, the file is refused. */
Test(llama2c, cut)
{
    static const char *const texts[] = {" "};
    struct file f = file_of(texts, NULL, 1);
    size_t tokens = 0;
    for (size_t n = 0; n <= f.n; n++) {
        struct tokenizer *t = NULL;
        const int status = tokenizer_parse(&t, f.bytes, n, "cut.bin", NULL);
        cr_expect(status == STRATA_OK || status == STRATA_EPARSE);
        tokens += status == STRATA_OK;
        tokenizer_free(t);
    }
    cr_expect_eq(tokens, FIRST + 1 - 2);
    free(f.bytes);
}
