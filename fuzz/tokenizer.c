/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a tokenizer file, any text for it, and any text for
 * tokenizers that are whole. The first byte says which; of a file, the next says how many
 * of the bytes that follow are text. What comes out is checked: ids name tokens, texts
 * are UTF-8, and token by token they are what they are at once.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "language/steps/normalise.h"
#include "language/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---- whole tokenizers -------------------------------------------------------------
 */

#define ADDED                                                                            \
    "\"added_tokens\":[{\"id\":600,\"content\":\"<s>\",\"special\":true,\"normalized\":" \
    "false,\"rstrip\":true},{\"id\":601,\"content\":\"ab\",\"single_word\":true},{"      \
    "\"id\":602,\"content\":\" \",\"lstrip\":true,\"rstrip\":true}],"
#define GPT2                                                                             \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"},"

static const char *const parts[] = {
    GPT2,
    ADDED "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{"
          "\"type\":\"Lowercase\"},{\"type\":\"Strip\",\"strip_left\":true,"
          "\"strip_right\":true}]}," GPT2,
    ADDED "\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
          "\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"a\"},",
    ADDED
    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\","
    "\"prepend_scheme\":\"first\"},\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},\"content\":\" \"},{"
    "\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":"
    "\" \",\"start\":1,\"stop\":2}]},",
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
    "\"pattern\":{\"Regex\":\"\\\\s+(?!\\\\S)|(?i:'s)|\\\\w+|[^\\\\s\\\\w]*\"},"
    "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"Digits\"},{\"type\":"
    "\"ByteLevel\",\"use_regex\":false,\"add_prefix_space\":false}]},\"decoder\":{"
    "\"type\":\"ByteLevel\"},",
    "\"decoder\":{\"type\":\"BPEDecoder\",\"suffix\":\"b\"},",
};
enum { WHOLE = sizeof parts / sizeof parts[0] };

/* The parts, and a model of all bytes as GPT-2 spells them and of byte tokens. */
static struct tokenizer *make(const char *part)
{
    struct token_text file = {0};
    struct tokenizer *t = NULL;
    char word[32];
    bytes_put(&file, "{", 1, NULL);
    bytes_put(&file, part, strlen(part), NULL);
    const char model[] = "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
                         "\"unk_token\":\"<u>\",\"vocab\":{\"<u>\":512,\"aa\":513";
    bytes_put(&file, model, sizeof model - 1, NULL);
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        bytes_put(&file, ",\"", 2, NULL);
        if (i == '"' || i == '\\')
            bytes_put(&file, "\\", 1, NULL);
        bytes_spell(&byte, 1, &file, NULL);
        const int n = snprintf(word, sizeof word, "\":%d,\"<0x%02X>\":%d", i, i, 256 + i);
        bytes_put(&file, word, (size_t)n, NULL);
    }
    const char end[] = "},\"merges\":[\"a a\"]}}";
    bytes_put(&file, end, sizeof end - 1, NULL);
    strata_error err = {0};
    if (tokenizer_parse(&t, file.bytes, file.n, "fuzz", &err) != STRATA_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    bytes_free(&file);
    return t;
}

/* ---- use --------------------------------------------------------------------------
 */

static void require_text(const struct token_text *t)
{
    for (size_t at = 0, size; at < t->n; at += size) {
        size = text_character_size((const unsigned char *)t->bytes + at, t->n - at);
        require(size > 0);
    }
}

static void decode(const struct tokenizer *t, const struct tokens *ids)
{
    struct token_text whole = {0}, out = {0};
    struct token_stream *s;
    require(tokenizer_decode(t, ids->ids, ids->n, &whole, NULL) == STRATA_OK);
    require_text(&whole);
    require(token_stream_open(&s, t, NULL) == STRATA_OK);
    for (size_t i = 0; i < ids->n; i++) {
        require(token_stream_put(s, ids->ids[i], &out, NULL) == STRATA_OK);
        require(out.n <= whole.n && memcmp(out.bytes, whole.bytes, out.n) == 0);
    }
    require(token_stream_end(s, &out, NULL) == STRATA_OK);
    require(out.n == whole.n);
    token_stream_free(s);
    bytes_free(&whole);
    bytes_free(&out);
}

static void use(const struct tokenizer *t, const uint8_t *text, size_t n)
{
    struct tokens ids = {0};
    strata_error err = {0};
    int status = tokenizer_encode(t, (const char *)text, n, &ids, &err);
    require(status == STRATA_OK || err.length > 0);
    for (size_t i = 0; i < ids.n; i++)
        require(ids.ids[i] >= 0 && ids.ids[i] < tokenizer_size(t));
    decode(t, &ids);
    /* Ids that no text gave. */
    ids.n = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        const int32_t id = (int32_t)(text[i] << 8 | text[i + 1]);
        struct token_text out = {0};
        if (tokenizer_decode(t, &id, 1, &out, NULL) == STRATA_OK)
            tokens_put(&ids, id, NULL);
        bytes_free(&out);
    }
    decode(t, &ids);
    free(ids.ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tokenizer *whole[WHOLE];
    if (size < 2)
        return 0;
    if (data[0] < WHOLE) {
        struct tokenizer **t = &whole[data[0]];
        *t = *t ? *t : make(parts[data[0]]);
        use(*t, data + 1, size - 1);
        return 0;
    }
    const size_t text = data[1] < size - 2 ? data[1] : size - 2;
    strata_error err = {0};
    struct tokenizer *t;
    int status = tokenizer_parse(&t, data + 2 + text, size - 2 - text, "fuzz", &err);
    require((status == STRATA_OK) == (t != NULL) && status == err.status);
    if (!t)
        return 0;
    const int32_t begin = tokenizer_begin(t);
    require(begin >= -1 && begin < tokenizer_size(t));
    use(t, data + 2, text);
    tokenizer_free(t);
    return 0;
}
