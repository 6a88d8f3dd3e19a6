/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of `strata generate`: its tokens, and what is shown of them as they come. With
 * a tokenizer it is text, without one the tokens' numbers.
 */
#ifndef TOOLS_GENERATE_TEXT_H
#define TOOLS_GENERATE_TEXT_H

#include "language/token.h"
#include "tools/tool.h"

struct text {
    struct tokenizer *tokenizer; /* NULL: numbers */
    struct token_stream *stream;
    struct tokens tokens; /* all, the first n_prompt given */
    size_t n_prompt;
    struct token_text made; /* of all tokens but a prompt that is not echoed */
    size_t shown;           /* bytes of it that were printed */
    bool silent;            /* nothing is printed until it is over */
    const int32_t *ends;    /* tokens that end it, beside the tokenizer's */
    size_t n_ends;
    bool goes_on; /* the tokenizer's do not end it */
};

/* `tokenizer`: its file; NULL: the one that lies beside `network`, if any:
 * NAME.tokenizer.json or .bin, tokenizer.json or .bin. */
int text_open(struct text *t, const char *tokenizer, const char *network,
              strata_error *err);
/* The prompt: as text, behind the token that texts begin with, or as "1,2,3". */
int text_prompt(struct text *t, const char *text, size_t size, strata_error *err);
int text_numbers(struct text *t, const char *numbers, strata_error *err);
/* The prompt is put out, or just passed over. */
int text_begin(struct text *t, bool echo, strata_error *err);
bool text_is_over(const struct text *t, int32_t token);
int text_add(struct text *t, int32_t token, strata_error *err);
int text_end(struct text *t, strata_error *err);
void text_close(struct text *t);

#endif /* TOOLS_GENERATE_TEXT_H */
