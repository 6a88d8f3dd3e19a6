/* SPDX-License-Identifier: Apache-2.0
 *
 * Pre-tokenizers, a row each: how it is read, and the steps it becomes.
 */
#include "language/steps/split.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "language/text/unicode.h"

static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                           " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static int add_step(struct splitter *out, const struct node *node, split_fn *apply,
                    struct split_step **step, strata_error *err)
{
    int status = out->n < MAX_STEPS
                     ? grow(&out->steps, &out->room, out->n, sizeof *out->steps, err)
                     : error_set(err, STRATA_EUNSUPPORTED,
                                 "%s: step %zu; at most %d are supported", node->place,
                                 out->n + 1, MAX_STEPS);
    if (status != STRATA_OK)
        return status;
    *step = &out->steps[out->n++];
    **step = (struct split_step){.apply = apply};
    return STRATA_OK;
}

static int class_step(struct splitter *out, const struct node *node,
                      bool (*is)(uint32_t code), enum behaviour behaviour,
                      strata_error *err)
{
    struct split_step *s;
    int status = add_step(out, node, split_by_class, &s, err);
    if (status != STRATA_OK)
        return status;
    s->is = is;
    s->behaviour = behaviour;
    return is == unicode_is_space ? STRATA_OK
                                  : unicode_require(node->place, "this kind", err);
}

/* ---- a row's reading --------------------------------------------------------------
 */

static int metaspace_step(struct splitter *out, const struct node *node, const char *text,
                          size_t n, enum prepend prepend, bool cut, strata_error *err)
{
    struct split_step *s;
    int status = add_step(out, node, split_metaspace, &s, err);
    if (status != STRATA_OK)
        return status;
    s->prepend = prepend;
    s->split = cut;
    return bytes_put(&s->text, text, n, err);
}

static int read_byte_level(struct splitter *out, const struct node *node,
                           strata_error *err)
{
    struct split_step *s;
    bool prefix, regex;
    int status = node_flag(node, "add_prefix_space", true, &prefix, err);
    if (status == STRATA_OK)
        status = node_flag(node, "use_regex", true, &regex, err);
    if (status == STRATA_OK && prefix)
        status = metaspace_step(out, node, " ", 1, PREPEND_ALWAYS, false, err);
    if (status == STRATA_OK && regex) {
        status = add_step(out, node, split_by_pattern, &s, err);
        if (status == STRATA_OK) {
            s->behaviour = SPLIT_ISOLATED;
            status = pattern_regex(&s->pattern, gpt2, sizeof gpt2 - 1, node->place, err);
        }
    }
    return status == STRATA_OK ? add_step(out, node, split_bytes, &s, err) : status;
}

static int read_behaviour(const struct node *node, enum behaviour *out, strata_error *err)
{
    static const char *const behaviours[] = {
        [SPLIT_REMOVED] = "Removed",
        [SPLIT_ISOLATED] = "Isolated",
        [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [SPLIT_CONTIGUOUS] = "Contiguous",
    };
    const struct node member = node_member(node, "behavior");
    const char *text = json_string_value(member.value);
    for (size_t i = 0; text && i < ARRAY_LENGTH(behaviours); i++)
        if (strcmp(text, behaviours[i]) == 0) {
            *out = (enum behaviour)i;
            return STRATA_OK;
        }
    return node_unexpected(&member,
                           "Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                           "Contiguous",
                           err);
}

static int read_split(struct splitter *out, const struct node *node, strata_error *err)
{
    const struct node pattern = node_member(node, "pattern");
    struct split_step *s;
    int status = add_step(out, node, split_by_pattern, &s, err);
    if (status == STRATA_OK)
        status = read_behaviour(node, &s->behaviour, err);
    if (status == STRATA_OK)
        status = node_flag(node, "invert", false, &s->invert, err);
    return status == STRATA_OK ? pattern_read(&s->pattern, &pattern, true, err) : status;
}

static int read_digits(struct splitter *out, const struct node *node, strata_error *err)
{
    bool each;
    int status = node_flag(node, "individual_digits", false, &each, err);
    return status == STRATA_OK ? class_step(out, node, unicode_is_number,
                                            each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, err)
                               : status;
}

static int read_prepend(const struct node *node, enum prepend *out, strata_error *err)
{
    static const char *const schemes[] = {
        [PREPEND_NEVER] = "never",
        [PREPEND_FIRST] = "first",
        [PREPEND_ALWAYS] = "always",
    };
    const struct node member = node_member(node, "prepend_scheme");
    const char *text = json_string_value(member.value);
    bool prefix;
    int status = node_flag(node, "add_prefix_space", true, &prefix, err);
    *out = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (status != STRATA_OK || !member.value)
        return status;
    for (size_t i = 0; text && i < ARRAY_LENGTH(schemes); i++)
        if (strcmp(text, schemes[i]) == 0 && (prefix || i == PREPEND_NEVER)) {
            *out = (enum prepend)i;
            return STRATA_OK;
        }
    return node_unexpected(
        &member,
        prefix ? "never, first or always" : "never, as add_prefix_space is false,", err);
}

static int read_metaspace(struct splitter *out, const struct node *node,
                          strata_error *err)
{
    const char *text;
    size_t n;
    enum prepend prepend;
    bool cut;
    int status = node_character(node, "replacement", &text, &n, err);
    if (status == STRATA_OK)
        status = read_prepend(node, &prepend, err);
    if (status == STRATA_OK)
        status = node_flag(node, "split", true, &cut, err);
    return status == STRATA_OK ? metaspace_step(out, node, text, n, prepend, cut, err)
                               : status;
}

static int read_words(struct splitter *out, const struct node *node, strata_error *err)
{
    struct split_step *s;
    int status = unicode_require(node->place, "Whitespace", err);
    return status == STRATA_OK ? add_step(out, node, split_words, &s, err) : status;
}

static int read_spaces(struct splitter *out, const struct node *node, strata_error *err)
{
    return class_step(out, node, unicode_is_space, SPLIT_REMOVED, err);
}

static int read_punctuation(struct splitter *out, const struct node *node,
                            strata_error *err)
{
    enum behaviour behaviour = SPLIT_ISOLATED;
    const struct node member = node_member(node, "behavior");
    int status = member.value ? read_behaviour(node, &behaviour, err) : STRATA_OK;
    return status == STRATA_OK
               ? class_step(out, node, unicode_is_punctuation, behaviour, err)
               : status;
}

static int read_bert(struct splitter *out, const struct node *node, strata_error *err)
{
    int status = class_step(out, node, unicode_is_space, SPLIT_REMOVED, err);
    return status == STRATA_OK
               ? class_step(out, node, unicode_is_punctuation, SPLIT_ISOLATED, err)
               : status;
}

static int read_delimiter(struct splitter *out, const struct node *node,
                          strata_error *err)
{
    const char *text;
    size_t n;
    struct split_step *s;
    int status = node_character(node, "delimiter", &text, &n, err);
    if (status == STRATA_OK)
        status = add_step(out, node, split_by_pattern, &s, err);
    if (status != STRATA_OK)
        return status;
    s->behaviour = SPLIT_REMOVED;
    return pattern_string(&s->pattern, text, n, err);
}

/* ---- the rows ---------------------------------------------------------------------
 */

static const char *const names[] = {
    "Sequence",         "ByteLevel",          "Split",           "Digits",
    "Metaspace",        "Whitespace",         "WhitespaceSplit", "Punctuation",
    "BertPreTokenizer", "CharDelimiterSplit",
};
static const char *const no_keys[] = {NULL};
static const char *const sequence_keys[] = {"pretokenizers", NULL};
static const char *const byte_level_keys[] = {"add_prefix_space", "trim_offsets",
                                              "use_regex", NULL};
static const char *const split_keys[] = {"pattern", "behavior", "invert", NULL};
static const char *const digits_keys[] = {"individual_digits", NULL};
static const char *const metaspace_keys[] = {
    "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep", NULL};
static const char *const punctuation_keys[] = {"behavior", NULL};
static const char *const delimiter_keys[] = {"delimiter", NULL};
static const struct {
    const char *const *keys;
    int (*read)(struct splitter *out, const struct node *node, strata_error *err);
} kinds[ARRAY_LENGTH(names)] = {
    {sequence_keys, NULL},
    {byte_level_keys, read_byte_level},
    {split_keys, read_split},
    {digits_keys, read_digits},
    {metaspace_keys, read_metaspace},
    {no_keys, read_words},
    {no_keys, read_spaces},
    {punctuation_keys, read_punctuation},
    {no_keys, read_bert},
    {delimiter_keys, read_delimiter},
};

static int read_node(void *to, const struct node *node, int depth, strata_error *err)
{
    struct splitter *out = to;
    size_t type;
    int status = node_type(node, names, ARRAY_LENGTH(names), &type, err);
    if (status == STRATA_OK)
        status = node_check(node, kinds[type].keys, err);
    if (status != STRATA_OK)
        return status;
    return kinds[type].read
               ? kinds[type].read(out, node, err)
               : node_steps(node, "pretokenizers", depth, read_node, out, err);
}

int splitter_read(struct splitter *out, const struct node *node, strata_error *err)
{
    return node->value ? read_node(out, node, 0, err) : STRATA_OK;
}

void splitter_free(struct splitter *m)
{
    for (size_t i = 0; i < m->n; i++) {
        pattern_free(m->steps[i].pattern);
        bytes_free(&m->steps[i].text);
    }
    free(m->steps);
    *m = (struct splitter){0};
}

int split(const struct splitter *m, struct pieces *a, struct pieces *b, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < m->n && status == STRATA_OK; i++) {
        b->text.n = b->n = 0;
        a->first = a->first && a->n > 0 && a->at[0].begin == 0;
        b->first = a->first;
        status = m->steps[i].apply(&m->steps[i], a, b, err);
        const struct pieces last = *a;
        *a = *b;
        *b = last;
    }
    return status;
}
