/* SPDX-License-Identifier: Apache-2.0
 *
 * How a text is split into words: the pre_tokenizer of tokenizer.json.
 */
#ifndef LANGUAGE_STEPS_SPLIT_H
#define LANGUAGE_STEPS_SPLIT_H

#include "language/steps/normalise.h"

struct piece {
    size_t begin, end; /* bytes of the text */
};
/* A text and the words it is split into, in order; what is between them is gone. All zero
 * is empty; a step makes one of another. */
struct pieces {
    struct token_text text;
    struct piece *at;
    size_t n, room;
    bool first; /* the first piece begins the whole text */
};

struct split_step;
typedef int split_fn(const struct split_step *s, const struct pieces *from,
                     struct pieces *to, strata_error *err);

enum behaviour {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
};
enum prepend { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS };

struct split_step {
    split_fn *apply;
    struct pattern *pattern;
    enum behaviour behaviour;
    bool invert, split;
    enum prepend prepend;
    struct token_text text; /* of Metaspace */
    /* Whether a character is one to split at. */
    bool (*is)(uint32_t code);
};
/* All zero splits nothing. */
struct splitter {
    struct split_step *steps;
    size_t n, room;
};

/* node.value NULL: nothing is split. */
int splitter_read(struct splitter *out, const struct node *node, strata_error *err);
void splitter_free(struct splitter *m);
/* Split the one piece `a` begins with, b being used meanwhile; the words are in a. */
int split(const struct splitter *m, struct pieces *a, struct pieces *b,
          strata_error *err);

int pieces_put(struct pieces *p, size_t begin, size_t end, strata_error *err);
void pieces_free(struct pieces *p);

/* split_steps.c: each appends to an empty `to`. */
split_fn split_by_pattern, split_by_class, split_bytes, split_metaspace, split_words;

#endif /* LANGUAGE_STEPS_SPLIT_H */
