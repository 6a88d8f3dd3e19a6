/* SPDX-License-Identifier: Apache-2.0
 *
 * The post_processor of tokenizer.json, of which a text's begin token is taken, and what
 * stands after it as tokens that end one; and the end tokens that are known by name.
 */
#include "language/private.h"

#include <string.h>

#include "core/alloc.h"

struct reading {
    struct tokenizer *t;
    strata_error *err;
};

static int put_begin(const struct reading *r, const struct node *node, int64_t id)
{
    if (r->t->begin >= 0)
        return error_set(r->err, STRATA_EUNSUPPORTED,
                         "%s: a second token before the text; one is supported",
                         node->place);
    r->t->begin = (int32_t)id;
    return STRATA_OK;
}

/* An id that names a token, out of a member that is an array. */
static int read_id(const struct reading *r, const struct node *list, size_t i,
                   int64_t *id)
{
    size_t n;
    const struct node item = node_item(list, i);
    *id = json_integer_value(item.value);
    if (json_is_integer(item.value) && *id >= 0 && *id < TOKEN_IDS &&
        tokenizer_spelling(r->t, (int32_t)*id, &n))
        return STRATA_OK;
    return node_unexpected(&item, "a token's id", r->err);
}

/* ["<s>", 1] */
static int read_pair(const struct reading *r, const struct node *node, const char *key,
                     int64_t *id)
{
    const struct node pair = node_member(node, key);
    if (json_array_size(pair.value) != 2)
        return node_unexpected(&pair, "a token and its id", r->err);
    return read_id(r, &pair, 1, id);
}

static int read_bert(const struct reading *r, const struct node *node)
{
    int64_t begin, end;
    int status = read_pair(r, node, "cls", &begin);
    if (status == STRATA_OK)
        status = read_pair(r, node, "sep", &end);
    if (status == STRATA_OK)
        status = put_begin(r, node, begin);
    if (status == STRATA_OK)
        r->t->flags[end] |= TOKEN_ENDS;
    return status;
}

/* ---- templates --------------------------------------------------------------------
 */

/* Ids of a special token of the template, before or behind the text. */
static int put_special(const struct reading *r, const struct node *node,
                       const struct node *part, bool before)
{
    static const char *const keys[] = {"id", "ids", "tokens", NULL};
    const struct node tokens = node_member(node, "special_tokens");
    struct node list;
    const char *name;
    size_t size, n;
    int64_t id;
    int status = node_string(part, "id", &name, &size, r->err);
    if (status != STRATA_OK)
        return status;
    const struct node token = node_member(&tokens, name);
    status = node_check(&token, keys, r->err);
    if (status == STRATA_OK)
        status = node_list(&token, "ids", 16, &list, &n, r->err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        status = read_id(r, &list, i, &id);
        if (status == STRATA_OK && before)
            status = put_begin(r, part, id);
        else if (status == STRATA_OK)
            r->t->flags[id] |= TOKEN_ENDS;
    }
    return status;
}

/* {"Sequence": ...} is the text, {"SpecialToken": ...} a token. */
static int read_template(const struct reading *r, const struct node *node)
{
    static const char *const keys[] = {"Sequence", "SpecialToken", NULL};
    struct node list;
    size_t n;
    bool before = true;
    int status = node_list(node, "single", 64, &list, &n, r->err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct node part = node_item(&list, i);
        status = node_check(&part, keys, r->err);
        const struct node special = node_member(&part, "SpecialToken");
        if (status == STRATA_OK && special.value)
            status = put_special(r, node, &special, before);
        before = before && special.value;
    }
    return status;
}

static int read_nothing(const struct reading *r, const struct node *node)
{
    (void)r;
    (void)node;
    return STRATA_OK;
}

/* ---- the rows ---------------------------------------------------------------------
 */

static const char *const names[] = {
    "Sequence", "ByteLevel", "TemplateProcessing", "RobertaProcessing", "BertProcessing",
};
static const char *const sequence_keys[] = {"processors", NULL};
static const char *const byte_level_keys[] = {"add_prefix_space", "trim_offsets",
                                              "use_regex", NULL};
static const char *const template_keys[] = {"single", "pair", "special_tokens", NULL};
static const char *const roberta_keys[] = {"sep", "cls", "trim_offsets",
                                           "add_prefix_space", NULL};
static const char *const bert_keys[] = {"sep", "cls", NULL};
static const struct {
    const char *const *keys;
    int (*read)(const struct reading *r, const struct node *node);
} kinds[ARRAY_LENGTH(names)] = {
    {sequence_keys, NULL},          {byte_level_keys, read_nothing},
    {template_keys, read_template}, {roberta_keys, read_bert},
    {bert_keys, read_bert},
};

static int read_node(void *to, const struct node *node, int depth, strata_error *err)
{
    struct reading *r = to;
    size_t type;
    int status = node_type(node, names, ARRAY_LENGTH(names), &type, err);
    if (status == STRATA_OK)
        status = node_check(node, kinds[type].keys, err);
    if (status != STRATA_OK)
        return status;
    return kinds[type].read ? kinds[type].read(r, node)
                            : node_steps(node, "processors", depth, read_node, r, err);
}

/* tokenizer.json does not say which token ends a text: these do, where they are special.
 */
static void mark_known_ends(struct tokenizer *t)
{
    static const char *const ends[] = {
        "</s>",
        "<eos>",
        "[EOS]",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<end_of_turn>",
        "<turn|>",
        "<|END_OF_TURN_TOKEN|>",
        "<\xef\xbd\x9c"
        "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        const int32_t id = vocabulary_find(&t->added, ends[i], strlen(ends[i]));
        if (id >= 0 && (t->flags[id] & TOKEN_SPECIAL))
            t->flags[id] |= TOKEN_ENDS;
    }
}

int post_read(struct tokenizer *t, const struct node *node, strata_error *err)
{
    struct reading r = {t, err};
    mark_known_ends(t);
    return node->value ? read_node(&r, node, 0, err) : STRATA_OK;
}
