/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer's parts, in the order in which a text passes them.
 */
#ifndef LANGUAGE_PRIVATE_H
#define LANGUAGE_PRIVATE_H

#include "language/steps/added.h"
#include "language/steps/decode.h"
#include "language/model/model.h"
#include "language/steps/split.h"

enum { TOKEN_SPECIAL = 1, TOKEN_ENDS = 2 }; /* flags of an id */

struct tokenizer {
    struct added_set raw, normal; /* found in the text, and in the normalised text */
    struct normaliser normaliser;
    struct splitter splitter;
    struct model model;
    struct decoder decoder;
    struct vocabulary added; /* added tokens as the file spells them */
    struct vocabulary shown; /* those that are put out as something else */
    unsigned char *flags;    /* by id */
    size_t size;
    int32_t begin;
    bool whole; /* llama2.c: a text is one word, with a space before it */
};

/* stream.c: what an id puts out before decoding, NULL: no token. */
const char *tokenizer_spelling(const struct tokenizer *t, int32_t id, size_t *n);

/* Fill an empty tokenizer; on failure the caller frees it. */
int llama2c_read(struct tokenizer *t, const char *bytes, size_t size, strata_error *err);
int tokenizer_json_read(struct tokenizer *t, const char *bytes, size_t size,
                        strata_error *err);

/* file/: parts of tokenizer_json_read. */
int model_read(struct model *m, const struct json_source *j, struct json_span value,
               strata_error *err);
/* The normalizer must have been read, and the model. */
int added_read(struct tokenizer *t, const struct json_source *j, struct json_span value,
               strata_error *err);
/* Begin and end tokens; flags must be there. */
int post_read(struct tokenizer *t, const struct node *node, strata_error *err);

#endif /* LANGUAGE_PRIVATE_H */
