/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoders, a row each: how it is read, and what becomes of the chain.
 */
#include "language/steps/decode.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* A decoder is read in this order: steps, bytes, fused, stripped. */
enum stage { STAGE_STEPS, STAGE_BYTES, STAGE_FUSED, STAGE_STRIPPED };

struct reading {
    struct decoder *out;
    enum stage stage;
    strata_error *err;
};

static int out_of_order(const struct reading *r, const struct node *node)
{
    return error_set(r->err, STRATA_EUNSUPPORTED,
                     "%s: a step in this place is not supported; supported are steps of "
                     "single tokens, then ByteFallback or ByteLevel, then Fuse, then one "
                     "Strip",
                     node->place);
}

static int add_step(struct reading *r, const struct node *node, enum decode_kind kind,
                    struct decode_step **step)
{
    struct decoder *d = r->out;
    *step = NULL;
    if (r->stage != STAGE_STEPS || d->n == MAX_STEPS)
        return out_of_order(r, node);
    int status = grow(&d->steps, &d->room, d->n, sizeof *d->steps, r->err);
    if (status != STRATA_OK)
        return status;
    *step = &d->steps[d->n++];
    **step = (struct decode_step){.kind = kind};
    return STRATA_OK;
}

static int put_text(struct decode_step *s, const struct node *node, const char *key,
                    strata_error *err)
{
    const char *text;
    size_t n;
    int status = node_string(node, key, &text, &n, err);
    return status == STRATA_OK ? bytes_put(&s->text, text, n, err) : status;
}

static int read_replace(struct reading *r, const struct node *node)
{
    const struct node pattern = node_member(node, "pattern");
    struct decode_step *s;
    int status = add_step(r, node, DECODE_REPLACE, &s);
    if (status == STRATA_OK)
        status = put_text(s, node, "content", r->err);
    return status == STRATA_OK ? pattern_read(&s->pattern, &pattern, false, r->err)
                               : status;
}

static int read_strip(struct reading *r, const struct node *node)
{
    const char *content;
    size_t n;
    int64_t start, stop;
    struct decode_step *s = &r->out->strip;
    int status = node_character(node, "content", &content, &n, r->err);
    if (status == STRATA_OK)
        status = node_count(node, "start", 1 << 20, &start, r->err);
    if (status == STRATA_OK)
        status = node_count(node, "stop", 1 << 20, &stop, r->err);
    if (status != STRATA_OK)
        return status;
    if (r->stage == STAGE_FUSED)
        r->stage = STAGE_STRIPPED;
    else
        status = add_step(r, node, DECODE_STRIP, &s);
    if (status != STRATA_OK)
        return status;
    s->start = (size_t)start;
    s->stop = (size_t)stop;
    return bytes_put(&s->text, content, n, r->err);
}

/* A step whose pattern is a text of the node. */
static int text_step(struct reading *r, const struct node *node, enum decode_kind kind,
                     const char *key, struct decode_step **s)
{
    const char *text;
    size_t n;
    int status = node_string(node, key, &text, &n, r->err);
    if (status == STRATA_OK && n == 0)
        status = error_set(r->err, STRATA_EUNSUPPORTED,
                           "%s.%s: an empty text is not supported", node->place, key);
    if (status == STRATA_OK)
        status = add_step(r, node, kind, s);
    return status == STRATA_OK ? pattern_string(&(*s)->pattern, text, n, r->err) : status;
}

static int read_metaspace(struct reading *r, const struct node *node)
{
    struct decode_step *s;
    bool prefix;
    const struct node scheme = node_member(node, "prepend_scheme");
    const char *text = json_string_value(scheme.value);
    int status = node_flag(node, "add_prefix_space", true, &prefix, r->err);
    if (status == STRATA_OK)
        status = text_step(r, node, DECODE_METASPACE, "replacement", &s);
    if (status == STRATA_OK)
        s->flag = prefix && !(text && strcmp(text, "never") == 0);
    return status;
}

static int read_wordpiece(struct reading *r, const struct node *node)
{
    struct decode_step *s;
    int status = add_step(r, node, DECODE_WORDPIECE, &s);
    if (status == STRATA_OK)
        status = put_text(s, node, "prefix", r->err);
    return status == STRATA_OK ? node_flag(node, "cleanup", true, &s->flag, r->err)
                               : status;
}

static int read_suffix(struct reading *r, const struct node *node)
{
    struct decode_step *s;
    return text_step(r, node, DECODE_SUFFIX, "suffix", &s);
}

static int read_bytes(struct reading *r, const struct node *node)
{
    if (r->stage != STAGE_STEPS)
        return out_of_order(r, node);
    r->stage = STAGE_BYTES;
    r->out->byte_tokens = true;
    return STRATA_OK;
}

static int read_byte_level(struct reading *r, const struct node *node)
{
    if (r->stage != STAGE_STEPS)
        return out_of_order(r, node);
    r->stage = STAGE_FUSED;
    r->out->spelled_bytes = true;
    return STRATA_OK;
}

static int read_fuse(struct reading *r, const struct node *node)
{
    if (r->stage == STAGE_STRIPPED)
        return out_of_order(r, node);
    r->stage = STAGE_FUSED;
    return STRATA_OK;
}

static const char *const names[] = {
    "Sequence",   "Replace",      "Strip",     "Metaspace", "WordPiece",
    "BPEDecoder", "ByteFallback", "ByteLevel", "Fuse",
};
static const char *const no_keys[] = {NULL};
static const char *const sequence_keys[] = {"decoders", NULL};
static const char *const replace_keys[] = {"pattern", "content", NULL};
static const char *const strip_keys[] = {"content", "start", "stop", NULL};
static const char *const metaspace_keys[] = {
    "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep", NULL};
static const char *const wordpiece_keys[] = {"prefix", "cleanup", NULL};
static const char *const suffix_keys[] = {"suffix", NULL};
static const char *const byte_level_keys[] = {"add_prefix_space", "trim_offsets",
                                              "use_regex", NULL};
static const struct {
    const char *const *keys;
    int (*read)(struct reading *r, const struct node *node);
} kinds[ARRAY_LENGTH(names)] = {
    {sequence_keys, NULL},
    {replace_keys, read_replace},
    {strip_keys, read_strip},
    {metaspace_keys, read_metaspace},
    {wordpiece_keys, read_wordpiece},
    {suffix_keys, read_suffix},
    {no_keys, read_bytes},
    {byte_level_keys, read_byte_level},
    {no_keys, read_fuse},
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
                            : node_steps(node, "decoders", depth, read_node, r, err);
}

int decoder_read(struct decoder *out, const struct node *node, strata_error *err)
{
    struct reading r = {.out = out, .err = err};
    out->words = !node->value;
    return node->value ? read_node(&r, node, 0, err) : STRATA_OK;
}

static void step_free(struct decode_step *s)
{
    pattern_free(s->pattern);
    bytes_free(&s->text);
}

void decoder_free(struct decoder *d)
{
    for (size_t i = 0; i < d->n; i++)
        step_free(&d->steps[i]);
    step_free(&d->strip);
    free(d->steps);
    *d = (struct decoder){0};
}
