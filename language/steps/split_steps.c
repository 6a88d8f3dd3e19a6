/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting: parts of a piece that match and parts between them, put together as the
 * behaviour says.
 */
#include "language/steps/split.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "language/text/unicode.h"

int pieces_put(struct pieces *p, size_t begin, size_t end, strata_error *err)
{
    int status = grow(&p->at, &p->room, p->n, sizeof *p->at, err);
    if (status == STRATA_OK)
        p->at[p->n++] = (struct piece){begin, end};
    return status;
}

void pieces_free(struct pieces *p)
{
    bytes_free(&p->text);
    free(p->at);
    *p = (struct pieces){0};
}

/* ---- behaviours -------------------------------------------------------------------
 */

/* The parts of one piece so far, the last of which may still grow. */
struct parts {
    struct pieces *to;
    const struct split_step *step;
    size_t offset; /* of the piece in the text */
    bool any, matched;
    struct piece open; /* the last part */
    strata_error *err;
};

/* Whether a part is added to the one before it. A match next to a match begins a part of
 * its own, except where it is contiguous. */
static bool joins(const struct parts *p, bool match)
{
    switch (p->step->behaviour) {
    case SPLIT_MERGED_WITH_PREVIOUS:
        return match && !p->matched;
    case SPLIT_MERGED_WITH_NEXT:
        return !match && p->matched;
    case SPLIT_CONTIGUOUS:
        return match == p->matched;
    default:
        return false;
    }
}

static int close_part(struct parts *p)
{
    if (!p->any || p->open.begin == p->open.end)
        return STRATA_OK;
    return pieces_put(p->to, p->offset + p->open.begin, p->offset + p->open.end, p->err);
}

static int put_part(struct parts *p, size_t begin, size_t end, bool match)
{
    match = match != p->step->invert;
    if (p->any && joins(p, match)) {
        p->open.end = end;
    } else {
        int status = close_part(p);
        if (status != STRATA_OK)
            return status;
        p->open = (struct piece){begin, end};
        p->any = !(match && p->step->behaviour == SPLIT_REMOVED);
    }
    p->matched = match;
    return STRATA_OK;
}

/* ---- patterns ---------------------------------------------------------------------
 */

static int match_piece(struct parts *p, struct pattern_search *search, const char *text,
                       size_t n)
{
    size_t done = 0, begin = 0, end = 0;
    int status = STRATA_OK;
    pattern_over(search, text, n);
    for (; status == STRATA_OK; done = end) {
        status = pattern_next(search, &begin, &end, p->err);
        if (status != STRATA_OK || begin == SIZE_MAX)
            break;
        if (done != begin)
            status = put_part(p, done, begin, false);
        if (status == STRATA_OK)
            status = put_part(p, begin, end, true);
    }
    if (status == STRATA_OK && done != n)
        status = put_part(p, done, n, false);
    return status == STRATA_OK ? close_part(p) : status;
}

static int copy_text(const struct pieces *from, struct pieces *to, strata_error *err)
{
    return bytes_put(&to->text, from->text.bytes, from->text.n, err);
}

int split_by_pattern(const struct split_step *s, const struct pieces *from,
                     struct pieces *to, strata_error *err)
{
    struct pattern_search search;
    int status = copy_text(from, to, err);
    if (status == STRATA_OK)
        status = pattern_begin(&search, s->pattern, err);
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < from->n && status == STRATA_OK; i++) {
        const struct piece at = from->at[i];
        struct parts parts = {.to = to, .step = s, .offset = at.begin, .err = err};
        status =
            match_piece(&parts, &search, to->text.bytes + at.begin, at.end - at.begin);
    }
    pattern_end(&search);
    return status;
}

/* ---- kinds of characters ----------------------------------------------------------
 */

static int class_piece(struct parts *p, const char *text, size_t n)
{
    int status = STRATA_OK;
    size_t done = 0;
    uint32_t code;
    for (size_t at = 0, size; at < n && status == STRATA_OK; at += size) {
        size = utf8_next(text + at, n - at, &code);
        if (!p->step->is(code))
            continue;
        if (done < at)
            status = put_part(p, done, at, false);
        if (status == STRATA_OK)
            status = put_part(p, at, at + size, true);
        done = at + size;
    }
    if (status == STRATA_OK && done < n)
        status = put_part(p, done, n, false);
    return status == STRATA_OK ? close_part(p) : status;
}

int split_by_class(const struct split_step *s, const struct pieces *from,
                   struct pieces *to, strata_error *err)
{
    int status = copy_text(from, to, err);
    for (size_t i = 0; i < from->n && status == STRATA_OK; i++) {
        const struct piece at = from->at[i];
        struct parts parts = {.to = to, .step = s, .offset = at.begin, .err = err};
        status = class_piece(&parts, to->text.bytes + at.begin, at.end - at.begin);
    }
    return status;
}

enum word_class { WORD_SPACE, WORD_WORD, WORD_SIGN };

static enum word_class word_class(uint32_t code)
{
    return unicode_is_space(code)  ? WORD_SPACE
           : unicode_is_word(code) ? WORD_WORD
                                   : WORD_SIGN;
}

/* Runs of one class each, but of spaces: \w+|[^\w\s]+ */
int split_words(const struct split_step *s, const struct pieces *from, struct pieces *to,
                strata_error *err)
{
    uint32_t code;
    int status = copy_text(from, to, err);
    (void)s;
    for (size_t i = 0; i < from->n && status == STRATA_OK; i++) {
        const size_t end = from->at[i].end;
        const char *text = to->text.bytes;
        for (size_t at = from->at[i].begin, next; at < end && status == STRATA_OK;
             at = next) {
            next = at + utf8_next(text + at, end - at, &code);
            const enum word_class class = word_class(code);
            for (size_t size; next < end; next += size) {
                size = utf8_next(text + next, end - next, &code);
                if (word_class(code) != class)
                    break;
            }
            if (class != WORD_SPACE)
                status = pieces_put(to, at, next, err);
        }
    }
    return status;
}

/* ---- steps that change the text ---------------------------------------------------
 */

/* The bytes of each piece, spelled. */
int split_bytes(const struct split_step *s, const struct pieces *from, struct pieces *to,
                strata_error *err)
{
    int status = bytes_put(&to->text, NULL, 0, err);
    (void)s;
    for (size_t i = 0; i < from->n && status == STRATA_OK; i++) {
        const struct piece at = from->at[i];
        const size_t begin = to->text.n;
        status =
            bytes_spell(from->text.bytes + at.begin, at.end - at.begin, &to->text, err);
        if (status == STRATA_OK)
            status = pieces_put(to, begin, to->text.n, err);
    }
    return status;
}

static bool begins_with(const char *text, size_t n, const struct token_text *with)
{
    return n >= with->n && memcmp(text, with->bytes, with->n) == 0;
}

/* A piece of Metaspace: spaces replaced, one put before, split before each. */
static int metaspace_piece(const struct split_step *s, const char *text, size_t n,
                           bool first, struct pieces *to, strata_error *err)
{
    size_t begin = to->text.n;
    const bool wanted =
        s->prepend == PREPEND_ALWAYS || (s->prepend == PREPEND_FIRST && first);
    const bool there = text[0] == ' ' || begins_with(text, n, &s->text);
    int status = wanted && !there ? bytes_put(&to->text, s->text.bytes, s->text.n, err)
                                  : STRATA_OK;
    for (size_t at = 0, size; at < n && status == STRATA_OK; at += size) {
        const bool space = text[at] == ' ';
        const bool mark = begins_with(text + at, n - at, &s->text);
        size = mark ? s->text.n : 1;
        if ((space || mark) && s->split && to->text.n > begin) {
            status = pieces_put(to, begin, to->text.n, err);
            begin = to->text.n;
        }
        if (status == STRATA_OK)
            status = space ? bytes_put(&to->text, s->text.bytes, s->text.n, err)
                           : bytes_put(&to->text, text + at, size, err);
    }
    return status == STRATA_OK ? pieces_put(to, begin, to->text.n, err) : status;
}

int split_metaspace(const struct split_step *s, const struct pieces *from,
                    struct pieces *to, strata_error *err)
{
    int status = bytes_put(&to->text, NULL, 0, err);
    for (size_t i = 0; i < from->n && status == STRATA_OK; i++) {
        const struct piece at = from->at[i];
        status = metaspace_piece(s, from->text.bytes + at.begin, at.end - at.begin,
                                 from->first && i == 0, to, err);
    }
    return status;
}
