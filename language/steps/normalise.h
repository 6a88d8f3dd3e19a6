/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to a text before it is split: the normalizer of tokenizer.json.
 */
#ifndef LANGUAGE_STEPS_NORMALISE_H
#define LANGUAGE_STEPS_NORMALISE_H

#include "language/json/json.h"
#include "language/text/pattern.h"

struct normal_step;
typedef int normal_fn(const struct normal_step *s, const char *text, size_t n,
                      struct token_text *out, strata_error *err);
struct normal_step {
    normal_fn *apply; /* appends what becomes of valid UTF-8 */
    struct pattern *pattern;
    struct token_text text; /* prepended, or put for the pattern */
    unsigned flags;
};
/* All zero does nothing. */
struct normaliser {
    struct normal_step *steps;
    size_t n, room;
};

/* node.value NULL: nothing is done. */
int normaliser_read(struct normaliser *out, const struct node *node, strata_error *err);
void normaliser_free(struct normaliser *m);
/* Replace `out` by what becomes of n bytes of valid UTF-8; `spare` is used meanwhile. */
int normalise(const struct normaliser *m, const char *text, size_t n,
              struct token_text *out, struct token_text *spare, strata_error *err);

/* A pattern as normalizer, pre_tokenizer and decoder have it: {"String": "..."} or
 * {"Regex": "..."}; `regex`: whether the latter is supported. */
int pattern_read(struct pattern **out, const struct node *node, bool regex,
                 strata_error *err);
/* Append text with `content` for each match. */
int pattern_replace(const struct pattern *p, const char *text, size_t n,
                    const struct token_text *content, struct token_text *out,
                    strata_error *err);
/* Append what GPT-2 spells bytes with: a printable character for each. */
int bytes_spell(const char *text, size_t n, struct token_text *out, strata_error *err);
/* The byte that such a character stands for; false: none. */
bool byte_spelled(uint32_t code, char *byte);

#endif /* LANGUAGE_STEPS_NORMALISE_H */
