/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of tokenizer.json: its settings, then its vocabulary, then its merges.
 */
#include "language/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/printable.h"

enum {
    TYPE,
    DROPOUT,
    UNKNOWN,
    PREFIX,
    SUFFIX,
    FUSE,
    BYTES,
    IGNORE,
    CHARACTERS,
    VOCABULARY,
    MERGED,
    MEMBERS
};

struct reader {
    struct model *m;
    const struct json_source *j;
    struct json_member members[MEMBERS];
    json_t *values; /* of the members but the last two */
    struct node node;
    strata_error *err;
};

static bool has(const struct reader *r, int member)
{
    const struct json_span v = r->members[member].value;
    return v.end > v.begin &&
           (v.end - v.begin != 4 || memcmp(r->j->text + v.begin, "null", 4) != 0);
}

/* ---- settings ---------------------------------------------------------------------
 */

static int read_values(struct reader *r)
{
    int status = STRATA_OK;
    r->values = json_object();
    if (!r->values)
        return error_no_memory(r->err, 0, "a model");
    r->node = (struct node){r->values, "model"};
    for (int i = 0; i < VOCABULARY && status == STRATA_OK; i++) {
        json_t *value;
        status =
            json_read_tree(&value, r->j, r->members[i].value, r->members[i].key, r->err);
        if (value && json_object_set_new(r->values, r->members[i].key, value) != 0)
            status = error_no_memory(r->err, 0, "a model");
    }
    return status;
}

static int read_kind(struct reader *r)
{
    static const char *const names[] = {
        [MODEL_BPE] = "BPE", [MODEL_WORDPIECE] = "WordPiece"};
    size_t type = has(r, MERGED) ? MODEL_BPE : MODEL_WORDPIECE;
    int status = STRATA_OK;
    if (has(r, TYPE))
        status = node_type(&r->node, names, ARRAY_LENGTH(names), &type, r->err);
    else if (!has(r, MERGED) && !has(r, CHARACTERS))
        status = error_set(r->err, STRATA_EPARSE,
                           "model.type: missing where BPE or WordPiece is needed");
    r->m->kind = (enum model_kind)type;
    return status;
}

/* Settings of one kind that the other has not. */
static int check_members(const struct reader *r)
{
    static const struct {
        int member;
        enum model_kind kind;
    } only[] = {
        {DROPOUT, MODEL_BPE},
        {SUFFIX, MODEL_BPE},
        {FUSE, MODEL_BPE},
        {BYTES, MODEL_BPE},
        {IGNORE, MODEL_BPE},
        {MERGED, MODEL_BPE},
        {CHARACTERS, MODEL_WORDPIECE},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(only); i++)
        if (has(r, only[i].member) && r->m->kind != only[i].kind)
            return error_set(r->err, STRATA_EUNSUPPORTED,
                             "model.%s is not known of this type",
                             r->members[only[i].member].key);
    return STRATA_OK;
}

static int read_text(const struct reader *r, int member, const char *absent,
                     struct token_text *out)
{
    const char *text = absent;
    size_t n = strlen(absent);
    int status = STRATA_OK;
    if (has(r, member))
        status = node_string(&r->node, r->members[member].key, &text, &n, r->err);
    if (status == STRATA_OK && n > TOKEN_BYTES_LIMIT)
        status = error_set(r->err, STRATA_EUNSUPPORTED,
                           "model.%s has %zu bytes; at most %d are supported",
                           r->members[member].key, n, TOKEN_BYTES_LIMIT);
    return status == STRATA_OK ? bytes_put(out, text, n, r->err) : status;
}

static int read_dropout(const struct reader *r)
{
    const struct node dropout = node_member(&r->node, "dropout");
    if (!dropout.value ||
        (json_is_number(dropout.value) && json_number_value(dropout.value) == 0.0))
        return STRATA_OK;
    node_unexpected(&dropout, "null or 0", r->err);
    return STRATA_EPARSE;
}

static int read_bpe(struct reader *r)
{
    struct model *m = r->m;
    int status = read_dropout(r);
    if (status == STRATA_OK)
        status = node_flag(&r->node, "fuse_unk", false, &m->fuse_unknown, r->err);
    if (status == STRATA_OK)
        status = node_flag(&r->node, "byte_fallback", false, &m->byte_fallback, r->err);
    if (status == STRATA_OK)
        status = node_flag(&r->node, "ignore_merges", false, &m->ignore_merges, r->err);
    if (status == STRATA_OK)
        status = read_text(r, SUFFIX, "", &m->suffix);
    return status == STRATA_OK ? read_text(r, PREFIX, "", &m->prefix) : status;
}

static int read_wordpiece(struct reader *r)
{
    r->m->max_characters = 100;
    int status = STRATA_OK;
    if (has(r, CHARACTERS))
        status = node_count(&r->node, "max_input_chars_per_word", INT32_MAX,
                            &r->m->max_characters, r->err);
    return status == STRATA_OK ? read_text(r, PREFIX, "##", &r->m->prefix) : status;
}

/* ---- vocabulary -------------------------------------------------------------------
 */

static int put_word(const struct reader *r, const struct token_text *key, int64_t id,
                    size_t byte)
{
    char shown[PRINTABLE_SIZE];
    const char *why;
    struct vocabulary *v = &r->m->words;
    int status = STRATA_EINVAL;
    if (id >= TOKEN_IDS)
        why = "ids are below 4194304";
    else if (key->n > TOKEN_BYTES_LIMIT)
        why = "tokens have at most 4096 bytes";
    else if (vocabulary_find(v, key->bytes, key->n) >= 0)
        why = "the token comes twice";
    else {
        why = "the id is another token's, too";
        status = vocabulary_add(v, (int32_t)id, key->bytes, key->n, r->err);
    }
    if (status != STRATA_EINVAL)
        return status;
    return error_set(r->err, STRATA_EPARSE,
                     "byte %zu: model.vocab: '%s' with id %" PRId64 ": %s", byte,
                     printable(shown, key->bytes, key->n), id, why);
}

static int read_vocabulary(const struct reader *r)
{
    struct token_text key = {0};
    struct json_walk w;
    struct json_span value;
    bool more = true;
    int64_t id;
    int status =
        json_walk(&w, r->j, r->members[VOCABULARY].value, '{', "model.vocab", r->err);
    while (status == STRATA_OK && more) {
        status = json_next(&w, &key, &value, &more, r->err);
        if (status == STRATA_OK && more)
            status = json_read_integer(r->j, value, "model.vocab", &id, r->err);
        if (status == STRATA_OK && more)
            status = put_word(r, &key, id, value.begin);
    }
    bytes_free(&key);
    return status;
}

/* An empty unk_token is none: GPT-2's file has it so. */
static int find_unknown(const struct reader *r)
{
    struct token_text text = {0};
    char shown[PRINTABLE_SIZE];
    const bool wordpiece = r->m->kind == MODEL_WORDPIECE;
    int status = read_text(r, UNKNOWN, wordpiece ? "[UNK]" : "", &text);
    if (status == STRATA_OK)
        r->m->unknown = text.n ? vocabulary_find(&r->m->words, text.bytes, text.n) : -1;
    if (status == STRATA_OK && r->m->unknown < 0 && (wordpiece || text.n))
        status = error_set(r->err, STRATA_EPARSE,
                           "model.unk_token: '%s' is not in model.vocab",
                           printable(shown, text.bytes, text.n));
    bytes_free(&text);
    return status;
}

/* ---- merges -----------------------------------------------------------------------
 */

struct pair {
    struct token_text left, right, both;
};

static int bad_merge(const struct reader *r, size_t i, size_t byte, const char *why,
                     const struct token_text *text)
{
    char shown[PRINTABLE_SIZE];
    return error_set(r->err, STRATA_EPARSE, "byte %zu: model.merges[%zu]: '%s' %s", byte,
                     i, printable(shown, text->bytes, text->n), why);
}

/* "a b" */
static int read_line(const struct reader *r, size_t i, struct json_span value,
                     struct pair *p)
{
    int status = json_read_text(r->j, value, "model.merges", &p->both, r->err);
    if (status != STRATA_OK)
        return status;
    const char *space = memchr(p->both.bytes, ' ', p->both.n);
    const size_t n = space ? (size_t)(space - p->both.bytes) : 0;
    if (!space || memchr(space + 1, ' ', p->both.n - n - 1))
        return bad_merge(r, i, value.begin, "is not two tokens with a space between",
                         &p->both);
    p->left.n = p->right.n = 0;
    status = bytes_put(&p->left, p->both.bytes, n, r->err);
    return status == STRATA_OK
               ? bytes_put(&p->right, space + 1, p->both.n - n - 1, r->err)
               : status;
}

/* ["a", "b"] */
static int read_both(const struct reader *r, struct json_span value, struct pair *p)
{
    struct json_walk w;
    struct json_span item;
    bool more = true;
    int status = json_walk(&w, r->j, value, '[', "model.merges", r->err);
    for (size_t i = 0; status == STRATA_OK && more; i++) {
        struct token_text *to = i == 0 ? &p->left : &p->right;
        status = json_next(&w, NULL, &item, &more, r->err);
        if (status == STRATA_OK && more != (i < 2))
            return error_set(r->err, STRATA_EPARSE,
                             "byte %zu: model.merges: found %s items where 2 are needed",
                             value.begin, more ? "more" : "fewer");
        if (status == STRATA_OK && more)
            status = json_read_text(r->j, item, "model.merges", to, r->err);
    }
    return status;
}

static int put_merge(const struct reader *r, size_t i, size_t byte, struct pair *p)
{
    const struct vocabulary *v = &r->m->words;
    const size_t skip = r->m->prefix.n;
    const int32_t left = vocabulary_find(v, p->left.bytes, p->left.n);
    const int32_t right = vocabulary_find(v, p->right.bytes, p->right.n);
    if (left < 0 || right < 0 || p->right.n < skip)
        return bad_merge(r, i, byte, "is not in model.vocab",
                         left < 0 ? &p->left : &p->right);
    p->both.n = 0;
    int status = bytes_put(&p->both, p->left.bytes, p->left.n, r->err);
    if (status == STRATA_OK)
        status = bytes_put(&p->both, p->right.bytes + skip, p->right.n - skip, r->err);
    if (status != STRATA_OK)
        return status;
    const int32_t id = vocabulary_find(v, p->both.bytes, p->both.n);
    return id < 0 ? bad_merge(r, i, byte, "is not in model.vocab", &p->both)
                  : merges_put(&r->m->merges, left, right, (int32_t)i, id, r->err);
}

static bool is_version(const struct reader *r, struct json_span value)
{
    static const char version[] = "\"#version";
    return value.end - value.begin >= sizeof version &&
           memcmp(r->j->text + value.begin, version, sizeof version - 1) == 0;
}

static int read_merges(const struct reader *r)
{
    struct pair p = {0};
    struct json_walk w;
    struct json_span value;
    bool more = true;
    size_t rank = 0;
    int status =
        json_walk(&w, r->j, r->members[MERGED].value, '[', "model.merges", r->err);
    while (status == STRATA_OK && more) {
        status = json_next(&w, NULL, &value, &more, r->err);
        if (status != STRATA_OK || !more || is_version(r, value))
            continue;
        status = r->j->text[value.begin] == '[' ? read_both(r, value, &p)
                                                : read_line(r, rank, value, &p);
        if (status == STRATA_OK && rank == INT32_MAX)
            status = error_set(r->err, STRATA_EUNSUPPORTED, "model.merges: too many");
        if (status == STRATA_OK)
            status = put_merge(r, rank++, value.begin, &p);
    }
    bytes_free(&p.left);
    bytes_free(&p.right);
    bytes_free(&p.both);
    return status;
}

int model_read(struct model *m, const struct json_source *j, struct json_span value,
               strata_error *err)
{
    struct reader r = {
        .m = m,
        .j = j,
        .members = {{"type"},
                    {"dropout"},
                    {"unk_token"},
                    {"continuing_subword_prefix"},
                    {"end_of_word_suffix"},
                    {"fuse_unk"},
                    {"byte_fallback"},
                    {"ignore_merges"},
                    {"max_input_chars_per_word"},
                    {"vocab"},
                    {"merges"}},
        .err = err,
    };
    int status = json_read_members(j, value.begin, "model", r.members, MEMBERS, err);
    if (status == STRATA_OK)
        status = read_values(&r);
    if (status == STRATA_OK)
        status = read_kind(&r);
    if (status == STRATA_OK)
        status = check_members(&r);
    if (status == STRATA_OK)
        status = m->kind == MODEL_BPE ? read_bpe(&r) : read_wordpiece(&r);
    if (status == STRATA_OK)
        status = read_vocabulary(&r);
    if (status == STRATA_OK)
        status = find_unknown(&r);
    if (status == STRATA_OK && m->kind == MODEL_BPE)
        status = read_merges(&r);
    if (status == STRATA_OK)
        model_find_bytes(m);
    json_decref(r.values);
    return status;
}
