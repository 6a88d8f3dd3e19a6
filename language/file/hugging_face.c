/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.json of Hugging Face's tokenizers: its parts, each read by the file of its
 * name. What is not supported is refused, but for truncation and padding, which are about
 * batches: a log line says that they are not applied.
 */
#include "language/private.h"

#include <stdio.h>
#include <string.h>

enum {
    VERSION,
    TRUNCATION,
    PADDING,
    ADDED,
    NORMALIZER,
    PRE_TOKENIZER,
    POST_PROCESSOR,
    DECODER,
    MODEL,
    MEMBERS
};

struct reader {
    struct tokenizer *t;
    struct json_source j;
    struct json_member members[MEMBERS];
    strata_error *err;
};

static int check_version(const struct reader *r)
{
    struct token_text version = {0};
    const struct json_span value = r->members[VERSION].value;
    if (value.begin == value.end)
        return STRATA_OK;
    int status = json_read_text(&r->j, value, "version", &version, r->err);
    if (status == STRATA_OK && strcmp(version.bytes, "1.0") != 0)
        status = error_set(r->err, STRATA_EUNSUPPORTED,
                           "byte %zu: version: found another than \"1.0\", which is "
                           "supported",
                           value.begin);
    bytes_free(&version);
    return status;
}

static int read_normaliser(struct tokenizer *t, const struct node *node,
                           strata_error *err)
{
    return normaliser_read(&t->normaliser, node, err);
}

static int read_splitter(struct tokenizer *t, const struct node *node, strata_error *err)
{
    return splitter_read(&t->splitter, node, err);
}

static int read_decoder(struct tokenizer *t, const struct node *node, strata_error *err)
{
    return decoder_read(&t->decoder, node, err);
}

static int read_unused(struct tokenizer *t, const struct node *node, strata_error *err)
{
    (void)t;
    if (!node->value)
        return STRATA_OK;
    if (!json_is_object(node->value))
        return node_unexpected(node, "an object or null", err);
    log_line(STRATA_LOG_INFO, "tokenizer.json: %s is not applied", node->place);
    return STRATA_OK;
}

/* A member as a tree, given to its reader. */
static int read_part(const struct reader *r, int member,
                     int (*read)(struct tokenizer *t, const struct node *node,
                                 strata_error *err))
{
    struct node node;
    snprintf(node.place, sizeof node.place, "%s", r->members[member].key);
    int status =
        json_read_tree(&node.value, &r->j, r->members[member].value, node.place, r->err);
    if (status == STRATA_OK)
        status = read(r->t, &node, r->err);
    json_decref(node.value);
    return status;
}

static int read_model(const struct reader *r)
{
    const struct json_span value = r->members[MODEL].value;
    if (value.begin == value.end)
        return error_set(r->err, STRATA_EPARSE,
                         "model: missing where an object is needed");
    return model_read(&r->t->model, &r->j, value, r->err);
}

int tokenizer_json_read(struct tokenizer *t, const char *bytes, size_t size,
                        strata_error *err)
{
    struct reader r = {
        .t = t,
        .j = {bytes, size},
        .members = {{"version"},
                    {"truncation"},
                    {"padding"},
                    {"added_tokens"},
                    {"normalizer"},
                    {"pre_tokenizer"},
                    {"post_processor"},
                    {"decoder"},
                    {"model"}},
        .err = err,
    };
    int status = json_read_members(&r.j, 0, "", r.members, MEMBERS, err);
    if (status == STRATA_OK)
        status = check_version(&r);
    if (status == STRATA_OK)
        status = read_part(&r, TRUNCATION, read_unused);
    if (status == STRATA_OK)
        status = read_part(&r, PADDING, read_unused);
    if (status == STRATA_OK)
        status = read_part(&r, NORMALIZER, read_normaliser);
    if (status == STRATA_OK)
        status = read_part(&r, PRE_TOKENIZER, read_splitter);
    if (status == STRATA_OK)
        status = read_part(&r, DECODER, read_decoder);
    if (status == STRATA_OK)
        status = read_model(&r);
    if (status == STRATA_OK)
        status = added_read(t, &r.j, r.members[ADDED].value, err);
    return status == STRATA_OK ? read_part(&r, POST_PROCESSOR, post_read) : status;
}
