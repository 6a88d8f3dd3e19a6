/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.json that is damaged or asks for what is not supported: each row is refused
 * with its status, in a message that says file, place, what was found and what is needed.
 */
#include "tests/language/tokens.h"

TestSuite(refusals, .timeout = 600);

#define P STRATA_EPARSE
#define U STRATA_EUNSUPPORTED

/* A model that is whole, with something before it. */
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}"
#define WITH(text) "{" text "," MODEL "}"
#define BPE(text) "{\"model\":{\"type\":\"BPE\"," text "}}"
#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}"
#define NORMALIZER(text) WITH("\"normalizer\":{" text "}")
#define PRE(text) WITH("\"pre_tokenizer\":{" text "}")
#define DECODER(text) WITH("\"decoder\":{" text "}")
#define POST(text) WITH("\"post_processor\":{" text "}")
#define SEQUENCE8(key, inside)                                                           \
    "\"type\":\"Sequence\",\"" key "\":[{\"type\":\"Sequence\",\"" key                   \
    "\":[{\"type\":\"Sequence\",\"" key "\":[{\"type\":\"Sequence\",\"" key              \
    "\":[{\"type\":\"Sequence\",\"" key "\":[{\"type\":\"Sequence\",\"" key              \
    "\":[{\"type\":\"Sequence\",\"" key "\":[{\"type\":\"Sequence\",\"" key              \
    "\":[{" inside "}]}]}]}]}]}]}]}]"
#define TOKEN(id, text) "{\"id\":" id ",\"content\":\"" text "\"}"
#define REGEX(text)                                                                      \
    PRE("\"type\":\"Split\",\"pattern\":{\"Regex\":\"" text                              \
        "\"},\"behavior\":\"Isolated\"")

struct refusal {
    const char *name, *text;
    int status;
    const char *place, *needed;
};

static const struct refusal plain[] = {
    /* JSON */
    {"only a brace", "{", P, "byte 1", "a name in quotes"},
    {"cut short", "{\"model\":{", P, "byte 10", "a value is needed"},
    {"no colon", "{\"model\" {}}", P, "byte 9", "':'"},
    {"no comma", "{\"version\":\"1.0\" \"model\":{}}", P, "byte 17", "',' or '}'"},
    {"text behind", "{} x", P, "byte 3", "the end"},
    {"bad word", "{\"version\":x}", P, "byte 11: version", "a string"},
    {"bad escape", "{\"version\":\"\\q\"}", P, "byte ", "version is not valid JSON"},
    {"no UTF-8", "{\"version\":\"\xff\"}", P, "byte ", "version is not valid JSON"},
    {"brackets crossed", "{\"normalizer\":[}}", P, "normalizer", "not valid JSON"},
    {"bad tree", "{\"normalizer\":{x}}", P, "byte ", "normalizer is not valid JSON"},
    /* members */
    {"nothing", "{}", P, "model: missing", "an object"},
    {"unknown member", WITH("\"extra\":1"), U, "extra is not known", "normalizer"},
    {"member twice", WITH("\"decoder\":null,\"decoder\":null"), P, "decoder comes twice",
     "byte"},
    {"other version", WITH("\"version\":\"2.0\""), U, "version", "\"1.0\""},
    {"truncation", WITH("\"truncation\":3"), P, "truncation: found 3",
     "an object or null"},
    /* model */
    {"model is a list", "{\"model\":[]}", P, "byte 9: model: found '[]", "an object"},
    {"unigram", BPE("\"type\":\"Unigram\""), P, "model.type comes twice", "byte"},
    {"model of another type", "{\"model\":{\"type\":\"Unigram\"}}", U,
     "model: type 'Unigram'", "supported are BPE, WordPiece"},
    {"no type", "{\"model\":{\"vocab\":{}}}", P, "model.type: missing",
     "BPE or WordPiece"},
    {"unknown setting", BPE("\"scores\":[]"), U, "model.scores", "supported are type"},
    {"setting of WordPiece", BPE("\"max_input_chars_per_word\":3," VOCAB), U,
     "model.max_input_chars_per_word", "not known of this type"},
    {"dropout", BPE("\"dropout\":0.5," VOCAB), P, "model.dropout: found 0.5",
     "null or 0"},
    {"flag is a number", BPE("\"fuse_unk\":1," VOCAB), P, "model.fuse_unk: found 1",
     "true or false"},
    {"unknown token is unknown", BPE("\"unk_token\":\"u\"," VOCAB), P,
     "model.unk_token: 'u'", "not in model.vocab"},
    {"no vocabulary", BPE("\"merges\":[]"), P, "model.vocab", "an object"},
    {"id below 0", BPE("\"vocab\":{\"a\":-1}"), P, "model.vocab: found '-1",
     "an integer not below 0"},
    {"id is no integer", BPE("\"vocab\":{\"a\":1.5}"), P, "model.vocab: found '1.5",
     "an integer"},
    {"id too large", BPE("\"vocab\":{\"a\":4194304}"), P, "'a' with id 4194304",
     "ids are below 4194304"},
    {"id of 20 digits", BPE("\"vocab\":{\"a\":99999999999999999999}"), P, "model.vocab",
     "an integer"},
    {"id twice", BPE("\"vocab\":{\"a\":1,\"b\":1}"), P, "'b' with id 1", "another token"},
    {"token twice", BPE("\"vocab\":{\"a\":1,\"\\u0061\":2}"), P, "'a' with id 2",
     "comes twice"},
    {"no merges", BPE(VOCAB), P, "model.merges", "an array"},
    {"merge of three", BPE(VOCAB ",\"merges\":[\"a b ab\"]"), P,
     "model.merges[0]: 'a b ab'", "two tokens"},
    {"merge of one", BPE(VOCAB ",\"merges\":[\"a b\",\"a\"]"), P, "model.merges[1]: 'a'",
     "two tokens"},
    {"merge is a number", BPE(VOCAB ",\"merges\":[1]"), P, "model.merges: found '1]",
     "a string"},
    {"list of one", BPE(VOCAB ",\"merges\":[[\"a\"]]"), P, "model.merges: found fewer",
     "2 are needed"},
    {"list of three", BPE(VOCAB ",\"merges\":[[\"a\",\"b\",\"a\"]]"), P,
     "model.merges: found more", "2 are needed"},
    {"merge of the unknown", BPE(VOCAB ",\"merges\":[[\"a\",\"c\"]]"), P,
     "model.merges[0]: 'c'", "not in model.vocab"},
    {"merge to the unknown", BPE(VOCAB ",\"merges\":[[\"b\",\"b\"]]"), P,
     "model.merges[0]: 'bb'", "not in model.vocab"},
    {"merge without its prefix",
     BPE("\"continuing_subword_prefix\":\"##\"," VOCAB ",\"merges\":[\"a b\"]"), P,
     "model.merges[0]: 'b'", "not in model.vocab"},
    /* added tokens */
    {"tokens are an object", WITH("\"added_tokens\":{}"), P, "added_tokens: found '{",
     "an array"},
    {"token is a number", WITH("\"added_tokens\":[1]"), P, "added_tokens[0]: found 1",
     "an object"},
    {"token without id", WITH("\"added_tokens\":[{\"content\":\"x\"}]"), P,
     "added_tokens[0].id: missing", "an integer of 0 to 4194303"},
    {"token without text", WITH("\"added_tokens\":[{\"id\":5}]"), P,
     "added_tokens[0].content: missing", "a text"},
    {"unknown rule",
     WITH("\"added_tokens\":[{\"id\":5,\"content\":\"x\",\"fuzzy\":true}]"), U,
     "added_tokens[0].fuzzy", "single_word"},
    {"other id than the model's", WITH("\"added_tokens\":[" TOKEN("5", "a") "]"), P,
     "added_tokens[0]: 'a' with id 5", "by another id"},
    {"id of the model's", WITH("\"added_tokens\":[" TOKEN("1", "x") "]"), P,
     "added_tokens[0]: 'x' with id 1", "another token's in model.vocab"},
    {"added twice", WITH("\"added_tokens\":[" TOKEN("5", "x") "," TOKEN("6", "x") "]"), P,
     "added_tokens[1]: 'x'", "comes twice"},
    {"added under one id",
     WITH("\"added_tokens\":[" TOKEN("5", "x") "," TOKEN("5", "y") "]"), P,
     "added_tokens[1]: 'y'", "the id is another's"},
    /* normalizer */
    {"normalizer of another type", NORMALIZER("\"type\":\"Nmt\""), U,
     "normalizer: type 'Nmt'", "supported are Sequence, Prepend"},
    {"sentencepiece's table",
     NORMALIZER("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\""), U,
     "type 'Precompiled'", "NFKC"},
    {"no type of normalizer", NORMALIZER(""), P, "normalizer.type: missing", "a text"},
    {"normalizer is a text", WITH("\"normalizer\":\"NFC\""), P, "found \"NFC\"",
     "an object"},
    {"unknown key", NORMALIZER("\"type\":\"Prepend\",\"prepend\":\"x\",\"append\":1"), U,
     "normalizer.append is not known", "prepend"},
    {"in a sequence",
     NORMALIZER("\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
                "\"prepend\":\"x\"},{\"type\":\"x\\u001b[2J\"}]"),
     U, "normalizer.normalizers[1]: type 'x?[2J'", "supported are"},
    {"sequence without its list", NORMALIZER("\"type\":\"Sequence\""), P,
     "normalizer.normalizers: missing", "an array of at most 64"},
    {"nested too deep",
     NORMALIZER(SEQUENCE8("normalizers", SEQUENCE8("normalizers", ""))), U,
     "normalizer.normalizers[0]", "more than 8 sequences nested"},
    {"empty pattern",
     NORMALIZER("\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\""), U,
     "normalizer.pattern.String", "an empty text"},
    {"no pattern", NORMALIZER("\"type\":\"Replace\",\"content\":\"\""), P,
     "normalizer.pattern: missing", "an object"},
    /* pre_tokenizer */
    {"scripts", PRE("\"type\":\"UnicodeScripts\""), U, "type 'UnicodeScripts'",
     "Metaspace"},
    {"behaviour",
     PRE("\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
         "\"behavior\":\"Sideways\""),
     P, "pre_tokenizer.behavior: found \"Sideways\"", "MergedWithNext"},
    {"two characters", PRE("\"type\":\"CharDelimiterSplit\",\"delimiter\":\"ab\""), P,
     "pre_tokenizer.delimiter: found \"ab\"", "one character"},
    {"scheme",
     PRE("\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
         "\"last\""),
     P, "pre_tokenizer.prepend_scheme: found \"last\"", "never, first or always"},
    {"scheme and flag",
     PRE("\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
         "\"first\",\"add_prefix_space\":false"),
     P, "pre_tokenizer.prepend_scheme", "never, as add_prefix_space is false"},
    /* decoder */
    {"ctc", DECODER("\"type\":\"CTC\""), U, "decoder: type 'CTC'", "ByteFallback"},
    {"expression",
     DECODER("\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},"
             "\"content\":\"\""),
     U, "decoder.pattern.Regex", "supported is String"},
    {"out of order",
     DECODER("\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},"
             "{\"type\":\"ByteFallback\"}]"),
     U, "decoder.decoders[1]", "then Fuse, then one Strip"},
    {"strip without number", DECODER("\"type\":\"Strip\",\"content\":\" \",\"start\":-1"),
     P, "decoder.start: found -1", "an integer of 0 to"},
    /* post_processor */
    {"two tokens before the text",
     POST(
         "\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}],"
         "\"special_tokens\":{\"x\":{\"id\":\"x\",\"ids\":[0,1],\"tokens\":[]}}"),
     U, "post_processor.single[0].SpecialToken", "one is supported"},
    {"no such token",
     POST(
         "\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}],"
         "\"special_tokens\":{\"x\":{\"id\":\"x\",\"ids\":[7],\"tokens\":[]}}"),
     P, "post_processor.special_tokens.x.ids[0]: found 7", "a token's id"},
    {"special token without entry",
     POST("\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}}"
          "]"),
     P, "post_processor.special_tokens.x: missing", "an object"},
    {"pair of one", POST("\"type\":\"BertProcessing\",\"cls\":[\"a\"],\"sep\":[\"a\",0]"),
     P, "post_processor.cls", "a token and its id"},
};

static const struct refusal expressions[] = {
    {"negated class in a class", REGEX("[a[^b]]"), U,
     "pre_tokenizer.pattern.Regex: character 3", "write \\["},
    {"named class", REGEX("[[:alpha:]]"), U, "character 2", "write \\["},
    {"class that ends a range", REGEX("[a-[z]]"), U, "character 4", "write \\["},
    {"class that begins a range", REGEX("[[a]-z]"), U, "character 4", "']-'"},
    {"class without an end", REGEX("[a[b]"), U, "pre_tokenizer.pattern.Regex",
     "cannot be read"},
    {"intersection", REGEX("[a&&b]"), U, "character 3", "an intersection of classes"},
    {"escaped letter", REGEX("a\\\\h"), U, "character 2", "escapes are"},
    {"word edge", REGEX("\\\\bx"), U, "'\\b'", "escapes are"},
    {"back reference", REGEX("(a)\\\\1"), U, "'\\1'", "escapes are"},
    {"backslash at the end", REGEX("a\\\\"), U, "'\\'", "escapes are"},
    {"negation in a class", REGEX("[\\\\W]"), U, "'\\W'", "escapes are"},
    {"code of two digits", REGEX("\\\\u12"), U, "'\\u'", "four hexadecimal digits"},
    {"byte", REGEX("\\\\xe9"), U, "'\\xe'", "\\x00 to \\x7f"},
    {"property without braces", REGEX("\\\\pL"), U, "'\\pL'", "braces must follow"},
    {"property without an end", REGEX("\\\\p{L"), U, "'\\p{'", "'}' must follow"},
    {"option inside", REGEX("a(?i)b"), U, "'(?i'", "(?i) at the beginning"},
    {"lazy braces", REGEX("a{2}?"), U, "'{2}?'", "'?' after {n}"},
    {"option", REGEX("(?m)a"), U, "'(?m'", "groups are"},
    {"verb", REGEX("(*ACCEPT)"), U, "'(*'", "no such group"},
    {"named group", REGEX("(?<a>b)"), U, "'(?<'", "groups are"},
    {"many times", REGEX("a{1001}"), U, "'{1001}'", "at most 1000 times"},
    {"many times at most", REGEX("a{1,9999}"), U, "'{1,9999}'", "at most 1000 times"},
    {"at most alone", REGEX("a{,3}"), U, "'{,3}'", "write {0,m}"},
    {"possessive braces", REGEX("a{2}+"), U, "'{2}+'", "'+' after '}'"},
    {"no end of a group", REGEX("(a"), U, "pre_tokenizer.pattern.Regex",
     "cannot be read: missing closing parenthesis"},
    {"no such property", REGEX("\\\\p{Nowhere}"), U, "pre_tokenizer.pattern.Regex",
     "cannot be read: unknown property"},
    {"too large", REGEX("((((a{1000}){1000}){1000}){1000})"), U,
     "pre_tokenizer.pattern.Regex", "cannot be read"},
};

static void expect_refusal(const struct refusal *r)
{
    strata_error err = {0};
    struct tokenizer *t = (struct tokenizer *)&err;
    const size_t n = strlen(r->text);
    char *copy = malloc(n);
    cr_assert_not_null(copy);
    memcpy(copy, r->text, n);
    int status = tokenizer_parse(&t, copy, n, "net/bad.json", &err);
    cr_expect(status == r->status && err.status == status, "%s: status %d: %s", r->name,
              status, err.message);
    cr_expect_null(t, "%s: a result in spite of failure", r->name);
    cr_expect_eq(strstr(err.message, "net/bad.json: "), err.message, "%s: %s", r->name,
                 err.message);
    cr_expect_not_null(strstr(err.message, r->place), "%s: no '%s' in: %s", r->name,
                       r->place, err.message);
    cr_expect_not_null(strstr(err.message, r->needed), "%s: no '%s' in: %s", r->name,
                       r->needed, err.message);
    for (const char *c = err.message; *c; c++)
        cr_expect(*c >= ' ' && *c <= '~', "%s: byte %02x in the message", r->name,
                  (unsigned char)*c);
    cr_expect_eq(tokenizer_parse(&t, copy, n, "x", NULL), r->status,
                 "%s: another status without an error to fill", r->name);
    free(copy);
}

Test(refusals, files)
{
    SKIP_WITHOUT_LIBRARIES;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        expect_refusal(&plain[i]);
}

Test(refusals, expressions)
{
    SKIP_WITHOUT_LIBRARIES;
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++)
        expect_refusal(&expressions[i]);
}

Test(refusals, missing_libraries)
{
#ifndef HAVE_PCRE2
    const struct refusal pcre2 = {"expression", REGEX("a"), U,
                                  "pre_tokenizer.pattern.Regex", "libpcre2-dev"};
    expect_refusal(&pcre2);
#endif
#ifndef HAVE_UTF8PROC
    const struct refusal utf8proc = {"NFC", NORMALIZER("\"type\":\"NFC\""), U,
                                     "normalizer: NFC", "libutf8proc-dev"};
    expect_refusal(&utf8proc);
#endif
    /* What needs neither is read in any build. */
    struct tokenizer *t = parsed("plain", "{" MODEL "}", strlen("{" MODEL "}"));
    expect_same("plain", t, "a", 1);
    tokenizer_free(t);
}

/* Expressions that take more steps than a text's length allows end with a message. */
Test(refusals, endless_expressions)
{
    SKIP_WITHOUT_LIBRARIES;
    static const char *const texts[] = {REGEX("(a+)+[bc]"), REGEX("(a|a)*[bc]"),
                                        REGEX("a++[bc]"), REGEX("(?:a?){999}a{999}[bc]")};
    enum { LONG = 20000 };
    char *text = malloc(LONG);
    cr_assert_not_null(text);
    memset(text, 'a', LONG);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tokenizer *t = parsed("endless", texts[i], strlen(texts[i]));
        struct tokens ids = {0};
        strata_error err = {0};
        cr_expect_eq(tokenizer_encode(t, text, LONG, &ids, &err), U, "%s", texts[i]);
        cr_expect_not_null(strstr(err.message, "steps a byte"), "%s", err.message);
        cr_expect_eq(ids.n, 0);
        free(ids.ids);
        tokenizer_free(t);
    }
    free(text);
}

Test(refusals, no_file)
{
    struct tokenizer *t;
    strata_error err = {0};
    cr_expect_eq(tokenizer_open(&t, "/nowhere/tokenizer.json", &err), STRATA_ENOTFOUND);
    cr_expect_null(t);
    cr_expect_not_null(strstr(err.message, "/nowhere/tokenizer.json"), "%s", err.message);
}

/* A file cut anywhere is refused. */
Test(refusals, cut)
{
    static const char text[] = WITH("\"added_tokens\":[" TOKEN(
        "5", "x") "],"
                  "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}");
    for (size_t n = 1; n + 1 < sizeof text; n++) {
        struct tokenizer *t = NULL;
        char *copy = malloc(n);
        cr_assert_not_null(copy);
        memcpy(copy, text, n);
        cr_expect_neq(tokenizer_parse(&t, copy, n, "cut", NULL), STRATA_OK, "%zu", n);
        cr_expect_null(t);
        tokenizer_free(t);
        free(copy);
    }
}
