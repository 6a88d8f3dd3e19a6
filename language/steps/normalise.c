/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalizers, a row each: how it is read, and what it does.
 */
#include "language/steps/normalise.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "language/text/unicode.h"

enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 };
enum { BERT_CLEAN = 1, BERT_IDEOGRAPHS = 2, BERT_ACCENTS = 4, BERT_LOWER = 8 };

/* ---- what they do -----------------------------------------------------------------
 */

static int prepend(const struct normal_step *s, const char *text, size_t n,
                   struct token_text *out, strata_error *err)
{
    int status = n > 0 ? bytes_put(out, s->text.bytes, s->text.n, err) : STRATA_OK;
    return status == STRATA_OK ? bytes_put(out, text, n, err) : status;
}

static int replace(const struct normal_step *s, const char *text, size_t n,
                   struct token_text *out, strata_error *err)
{
    return pattern_replace(s->pattern, text, n, &s->text, out, err);
}

static int form(const struct normal_step *s, const char *text, size_t n,
                struct token_text *out, strata_error *err)
{
    return unicode_normalise(out, text, n, (enum unicode_form)s->flags, err);
}

static int lower(const struct normal_step *s, const char *text, size_t n,
                 struct token_text *out, strata_error *err)
{
    (void)s;
    return unicode_lower(out, text, n, err);
}

/* Where the last character of n > 0 bytes begins. */
static size_t last_character(const char *text, size_t n)
{
    do
        n--;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80);
    return n;
}

static int strip(const struct normal_step *s, const char *text, size_t n,
                 struct token_text *out, strata_error *err)
{
    uint32_t code = ' ';
    size_t begin = 0, size;
    while ((s->flags & STRIP_LEFT) && begin < n) {
        size = utf8_next(text + begin, n - begin, &code);
        if (!unicode_is_space(code))
            break;
        begin += size;
    }
    while ((s->flags & STRIP_RIGHT) && begin < n) {
        const size_t last = last_character(text, n);
        (void)utf8_next(text + last, n - last, &code);
        if (!unicode_is_space(code))
            break;
        n = last;
    }
    return bytes_put(out, text + begin, n - begin, err);
}

static int strip_accents(const struct normal_step *s, const char *text, size_t n,
                         struct token_text *out, strata_error *err)
{
    int status = STRATA_OK;
    uint32_t code;
    (void)s;
    for (size_t at = 0, size; at < n && status == STRATA_OK; at += size) {
        size = utf8_next(text + at, n - at, &code);
        if (!unicode_is_mark(code))
            status = bytes_put(out, text + at, size, err);
    }
    return status;
}

static int byte_level(const struct normal_step *s, const char *text, size_t n,
                      struct token_text *out, strata_error *err)
{
    (void)s;
    return bytes_spell(text, n, out, err);
}

/* ---- Bert -------------------------------------------------------------------------
 */

/* As BERT has it: blocks of ideographs, not of kana or hangul. */
static bool is_ideograph(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
           (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
           (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static int bert_character(unsigned flags, uint32_t code, struct token_text *out,
                          strata_error *err)
{
    if (flags & BERT_CLEAN) {
        const bool blank = code == '\t' || code == '\n' || code == '\r';
        if (code == 0 || code == 0xfffd || (!blank && unicode_is_control(code)))
            return STRATA_OK;
        if (unicode_is_space(code))
            code = ' ';
    }
    const bool apart = (flags & BERT_IDEOGRAPHS) && is_ideograph(code);
    int status = apart ? bytes_put(out, " ", 1, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = bytes_put_code(out, code, err);
    return status == STRATA_OK && apart ? bytes_put(out, " ", 1, err) : status;
}

static int bert_accents(const char *text, size_t n, struct token_text *out,
                        strata_error *err)
{
    struct token_text apart = {0};
    uint32_t code;
    int status = unicode_normalise(&apart, text, n, UNICODE_NFD, err);
    for (size_t at = 0, size; at < apart.n && status == STRATA_OK; at += size) {
        size = utf8_next(apart.bytes + at, apart.n - at, &code);
        if (!unicode_is_accent(code))
            status = bytes_put(out, apart.bytes + at, size, err);
    }
    bytes_free(&apart);
    return status;
}

static int bert(const struct normal_step *s, const char *text, size_t n,
                struct token_text *out, strata_error *err)
{
    struct token_text clean = {0}, plain = {0};
    struct token_text *last = &clean;
    int status = STRATA_OK;
    uint32_t code;
    for (size_t at = 0; at < n && status == STRATA_OK;) {
        at += utf8_next(text + at, n - at, &code);
        status = bert_character(s->flags, code, &clean, err);
    }
    if (status == STRATA_OK && (s->flags & BERT_ACCENTS)) {
        status = bert_accents(clean.bytes, clean.n, &plain, err);
        last = &plain;
    }
    if (status == STRATA_OK)
        status = s->flags & BERT_LOWER ? unicode_lower(out, last->bytes, last->n, err)
                                       : bytes_put(out, last->bytes, last->n, err);
    bytes_free(&clean);
    bytes_free(&plain);
    return status;
}

/* ---- how they are read ------------------------------------------------------------
 */

struct normal_kind {
    const char *const *keys;
    int (*read)(struct normal_step *s, const struct node *node, strata_error *err);
    normal_fn *apply;
    unsigned flags;
    bool unicode; /* needs utf8proc */
};

static int put_text(struct normal_step *s, const struct node *node, const char *key,
                    strata_error *err)
{
    const char *text;
    size_t n;
    int status = node_string(node, key, &text, &n, err);
    return status == STRATA_OK ? bytes_put(&s->text, text, n, err) : status;
}

static int read_prepend(struct normal_step *s, const struct node *node, strata_error *err)
{
    return put_text(s, node, "prepend", err);
}

static int read_replace(struct normal_step *s, const struct node *node, strata_error *err)
{
    const struct node pattern = node_member(node, "pattern");
    int status = put_text(s, node, "content", err);
    return status == STRATA_OK ? pattern_read(&s->pattern, &pattern, true, err) : status;
}

static int read_flag(struct normal_step *s, const struct node *node, const char *key,
                     unsigned bit, strata_error *err)
{
    bool set;
    int status = node_flag(node, key, true, &set, err);
    s->flags |= set ? bit : 0;
    return status;
}

static int read_strip(struct normal_step *s, const struct node *node, strata_error *err)
{
    int status = read_flag(s, node, "strip_left", STRIP_LEFT, err);
    return status == STRATA_OK ? read_flag(s, node, "strip_right", STRIP_RIGHT, err)
                               : status;
}

static int read_bert(struct normal_step *s, const struct node *node, strata_error *err)
{
    bool accents;
    int status = read_flag(s, node, "clean_text", BERT_CLEAN, err);
    if (status == STRATA_OK)
        status = read_flag(s, node, "handle_chinese_chars", BERT_IDEOGRAPHS, err);
    if (status == STRATA_OK)
        status = read_flag(s, node, "lowercase", BERT_LOWER, err);
    if (status == STRATA_OK)
        status = node_flag(node, "strip_accents", s->flags & BERT_LOWER, &accents, err);
    s->flags |= status == STRATA_OK && accents ? BERT_ACCENTS : 0;
    return status;
}

static const char *const names[] = {
    "Sequence", "Prepend",      "Replace",        "NFC",
    "NFD",      "NFKC",         "NFKD",           "Lowercase",
    "Strip",    "StripAccents", "BertNormalizer", "ByteLevel",
};
static const char *const no_keys[] = {NULL};
static const char *const sequence_keys[] = {"normalizers", NULL};
static const char *const prepend_keys[] = {"prepend", NULL};
static const char *const replace_keys[] = {"pattern", "content", NULL};
static const char *const strip_keys[] = {"strip_left", "strip_right", NULL};
static const char *const bert_keys[] = {"clean_text", "handle_chinese_chars",
                                        "strip_accents", "lowercase", NULL};
static const struct normal_kind kinds[ARRAY_LENGTH(names)] = {
    {.keys = sequence_keys},
    {.keys = prepend_keys, .read = read_prepend, .apply = prepend},
    {.keys = replace_keys, .read = read_replace, .apply = replace},
    {.keys = no_keys, .apply = form, .flags = UNICODE_NFC, .unicode = true},
    {.keys = no_keys, .apply = form, .flags = UNICODE_NFD, .unicode = true},
    {.keys = no_keys, .apply = form, .flags = UNICODE_NFKC, .unicode = true},
    {.keys = no_keys, .apply = form, .flags = UNICODE_NFKD, .unicode = true},
    {.keys = no_keys, .apply = lower, .unicode = true},
    {.keys = strip_keys, .read = read_strip, .apply = strip},
    {.keys = no_keys, .apply = strip_accents, .unicode = true},
    {.keys = bert_keys, .read = read_bert, .apply = bert, .unicode = true},
    {.keys = no_keys, .apply = byte_level},
};

static int read_step(struct normaliser *out, const struct node *node,
                     const struct normal_kind *kind, const char *name, strata_error *err)
{
    int status = out->n < MAX_STEPS
                     ? grow(&out->steps, &out->room, out->n, sizeof *out->steps, err)
                     : error_set(err, STRATA_EUNSUPPORTED,
                                 "%s: step %zu; at most %d are supported", node->place,
                                 out->n + 1, MAX_STEPS);
    if (status == STRATA_OK && kind->unicode)
        status = unicode_require(node->place, name, err);
    if (status != STRATA_OK)
        return status;
    struct normal_step *s = &out->steps[out->n++];
    *s = (struct normal_step){.apply = kind->apply, .flags = kind->flags};
    return kind->read ? kind->read(s, node, err) : STRATA_OK;
}

static int read_node(void *to, const struct node *node, int depth, strata_error *err)
{
    struct normaliser *out = to;
    size_t type;
    int status = node_type(node, names, ARRAY_LENGTH(names), &type, err);
    if (status == STRATA_OK)
        status = node_check(node, kinds[type].keys, err);
    if (status != STRATA_OK)
        return status;
    return kinds[type].apply
               ? read_step(out, node, &kinds[type], names[type], err)
               : node_steps(node, "normalizers", depth, read_node, out, err);
}

int normaliser_read(struct normaliser *out, const struct node *node, strata_error *err)
{
    return node->value ? read_node(out, node, 0, err) : STRATA_OK;
}

void normaliser_free(struct normaliser *m)
{
    for (size_t i = 0; i < m->n; i++) {
        pattern_free(m->steps[i].pattern);
        bytes_free(&m->steps[i].text);
    }
    free(m->steps);
    *m = (struct normaliser){0};
}

int normalise(const struct normaliser *m, const char *text, size_t n,
              struct token_text *out, struct token_text *spare, strata_error *err)
{
    out->n = 0;
    int status = bytes_put(out, text, n, err);
    for (size_t i = 0; i < m->n && status == STRATA_OK; i++) {
        spare->n = 0;
        status = bytes_put(spare, NULL, 0, err);
        if (status == STRATA_OK)
            status = m->steps[i].apply(&m->steps[i], out->bytes, out->n, spare, err);
        const struct token_text last = *out;
        *out = *spare;
        *spare = last;
    }
    return status;
}
