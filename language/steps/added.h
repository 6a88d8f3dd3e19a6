/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that are found in a text before it is split: the added_tokens of tokenizer.json.
 */
#ifndef LANGUAGE_STEPS_ADDED_H
#define LANGUAGE_STEPS_ADDED_H

#include "language/text/bytes.h"

struct added_token {
    int32_t id;
    bool special;        /* puts out nothing */
    bool single_word;    /* not inside a word */
    bool lstrip, rstrip; /* takes the spaces before, behind, with it */
    bool normalized;     /* found in the normalised text */
};

/* A tree of the tokens' bytes; all zero is empty. */
struct added_node {
    int32_t token;        /* index, -1: none ends here */
    uint32_t child, next; /* first child, next of its siblings; 0: none */
    unsigned char byte;
};
struct added_set {
    struct added_token *tokens;
    size_t n_tokens, tokens_room;
    struct added_node *nodes; /* the first is the root */
    size_t n_nodes, nodes_room;
    uint32_t roots[256]; /* children of the root, by byte */
};

/* Add a token that `text`, of at least one byte, is found as. */
int added_put(struct added_set *set, struct added_token token, const char *text, size_t n,
              strata_error *err);
void added_free(struct added_set *set);

/* Where a text begins that is not looked at yet, and what was found. */
struct added_search {
    const struct added_set *set;
    const char *text;
    size_t n;
    size_t at;                 /* where the next token may begin */
    size_t done;               /* end of what was given out */
    size_t spaces, spaces_end; /* a run of spaces that was passed already */
};
/* The next token, the longest of those that begin first; NULL: none. [*begin, *end) is
 * its text with the spaces that it takes; before it, from *rest, is text without tokens.
 */
const struct added_token *added_next(struct added_search *s, size_t *rest, size_t *begin,
                                     size_t *end);

#endif /* LANGUAGE_STEPS_ADDED_H */
