/* SPDX-License-Identifier: Apache-2.0
 *
 * The added_tokens of tokenizer.json.
 */
#include "language/private.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/alloc.h"
#include "io/printable.h"
#include "language/text/unicode.h"

struct reading {
    struct tokenizer *t;
    struct node node;
    struct added_token token;
    const char *text;
    size_t n;
    strata_error *err;
};

static int read_flags(struct reading *r)
{
    const struct {
        const char *key;
        bool absent, *out;
    } flags[] = {
        {"single_word", false, &r->token.single_word},
        {"lstrip", false, &r->token.lstrip},
        {"rstrip", false, &r->token.rstrip},
        {"normalized", true, &r->token.normalized},
        {"special", false, &r->token.special},
    };
    int status = STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(flags) && status == STRATA_OK; i++)
        status = node_flag(&r->node, flags[i].key, flags[i].absent, flags[i].out, r->err);
    if (status == STRATA_OK && r->token.single_word)
        status = unicode_require(r->node.place, "single_word", r->err);
    return status;
}

static int bad_token(const struct reading *r, const char *why)
{
    char shown[PRINTABLE_SIZE];
    return error_set(r->err, STRATA_EPARSE, "%s: '%s' with id %" PRId32 ": %s",
                     r->node.place, printable(shown, r->text, r->n), r->token.id, why);
}

/* Its id is the one that the model's vocabulary has it by, or one that is free. */
static int check_id(const struct reading *r)
{
    size_t n;
    const struct tokenizer *t = r->t;
    const int32_t known = vocabulary_find(&t->model.words, r->text, r->n);
    if (known >= 0 && known != r->token.id)
        return bad_token(r, "model.vocab has it by another id");
    if (known < 0 && vocabulary_spelling(&t->model.words, r->token.id, &n))
        return bad_token(r, "the id is another token's in model.vocab");
    if (vocabulary_find(&t->added, r->text, r->n) >= 0)
        return bad_token(r, "the token comes twice");
    return STRATA_OK;
}

/* What it is found as in the normalised text, and put out as. */
static int put_normal(const struct reading *r)
{
    struct tokenizer *t = r->t;
    struct token_text normal = {0}, spare = {0};
    int status = normalise(&t->normaliser, r->text, r->n, &normal, &spare, r->err);
    if (status == STRATA_OK && normal.n > TOKEN_BYTES_LIMIT)
        status = bad_token(r, "it has more than 4096 bytes when normalised");
    if (status == STRATA_OK)
        status = vocabulary_add(&t->shown, r->token.id, normal.bytes, normal.n, r->err);
    /* One that normalises to nothing is found nowhere. */
    if (status == STRATA_OK && normal.n > 0)
        status = added_put(&t->normal, r->token, normal.bytes, normal.n, r->err);
    bytes_free(&normal);
    bytes_free(&spare);
    return status;
}

static int put_token(const struct reading *r)
{
    struct tokenizer *t = r->t;
    int status = check_id(r);
    if (status == STRATA_OK)
        status = vocabulary_add(&t->added, r->token.id, r->text, r->n, r->err);
    if (status == STRATA_EINVAL)
        return bad_token(r, "the id is another's, too, or the token longer than 4096 "
                            "bytes");
    if (status != STRATA_OK)
        return status;
    return r->token.normalized ? put_normal(r)
                               : added_put(&t->raw, r->token, r->text, r->n, r->err);
}

static int read_token(struct tokenizer *t, const struct node *node, strata_error *err)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    struct reading r = {.t = t, .node = *node, .err = err};
    int64_t id;
    int status = node_check(node, keys, err);
    if (status == STRATA_OK)
        status = node_count(node, "id", TOKEN_IDS - 1, &id, err);
    if (status == STRATA_OK)
        status = node_string(node, "content", &r.text, &r.n, err);
    if (status == STRATA_OK)
        status = read_flags(&r);
    if (status != STRATA_OK || r.n == 0)
        return status;
    r.token.id = (int32_t)id;
    return put_token(&r);
}

/* Tokens are walked: there may be a thousand and more. */
static int read_tokens(struct tokenizer *t, const struct json_source *j,
                       struct json_span value, strata_error *err)
{
    struct json_walk w;
    struct json_span item;
    bool more = true;
    int status = json_walk(&w, j, value, '[', "added_tokens", err);
    for (size_t i = 0; status == STRATA_OK && more; i++) {
        struct node node;
        status = json_next(&w, NULL, &item, &more, err);
        if (status != STRATA_OK || !more)
            break;
        snprintf(node.place, sizeof node.place, "added_tokens[%zu]", i);
        status = json_read_tree(&node.value, j, item, node.place, err);
        if (status == STRATA_OK)
            status = read_token(t, &node, err);
        json_decref(node.value);
    }
    return status;
}

/* Flags can be had only when all ids are known. */
static int set_flags(struct tokenizer *t, strata_error *err)
{
    const struct added_set *sets[] = {&t->raw, &t->normal};
    t->size = t->model.words.n > t->added.n ? t->model.words.n : t->added.n;
    t->flags = zalloc(t->size, 1, "flags of tokens", err);
    if (!t->flags)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++)
        for (size_t k = 0; k < sets[i]->n_tokens; k++)
            if (sets[i]->tokens[k].special)
                t->flags[sets[i]->tokens[k].id] = TOKEN_SPECIAL;
    return STRATA_OK;
}

int added_read(struct tokenizer *t, const struct json_source *j, struct json_span value,
               strata_error *err)
{
    int status = value.begin == value.end ? STRATA_OK : read_tokens(t, j, value, err);
    return status == STRATA_OK ? set_flags(t, err) : status;
}
