/* SPDX-License-Identifier: Apache-2.0
 *
 * Added tokens in a text, by a tree of their bytes.
 */
#include "language/steps/added.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "language/text/unicode.h"

static int new_node(struct added_set *set, unsigned char byte, uint32_t *out,
                    strata_error *err)
{
    int status =
        grow(&set->nodes, &set->nodes_room, set->n_nodes, sizeof *set->nodes, err);
    if (status != STRATA_OK)
        return status;
    *out = (uint32_t)set->n_nodes++;
    set->nodes[*out] = (struct added_node){.token = -1, .byte = byte};
    return STRATA_OK;
}

static uint32_t child_of(const struct added_set *set, uint32_t node, unsigned char byte)
{
    if (node == 0)
        return set->roots[byte];
    uint32_t child = set->nodes[node].child;
    while (child && set->nodes[child].byte != byte)
        child = set->nodes[child].next;
    return child;
}

static int make_child(struct added_set *set, uint32_t node, unsigned char byte,
                      uint32_t *out, strata_error *err)
{
    *out = child_of(set, node, byte);
    if (*out)
        return STRATA_OK;
    int status = new_node(set, byte, out, err);
    if (status != STRATA_OK)
        return status;
    if (node == 0)
        set->roots[byte] = *out;
    set->nodes[*out].next = node ? set->nodes[node].child : 0;
    if (node)
        set->nodes[node].child = *out;
    return STRATA_OK;
}

int added_put(struct added_set *set, struct added_token token, const char *text, size_t n,
              strata_error *err)
{
    uint32_t node = 0, unused;
    int status = set->n_nodes ? STRATA_OK : new_node(set, 0, &unused, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = make_child(set, node, (unsigned char)text[i], &node, err);
    if (status == STRATA_OK)
        status = grow(&set->tokens, &set->tokens_room, set->n_tokens, sizeof *set->tokens,
                      err);
    if (status != STRATA_OK)
        return status;
    set->nodes[node].token = (int32_t)set->n_tokens;
    set->tokens[set->n_tokens++] = token;
    return STRATA_OK;
}

void added_free(struct added_set *set)
{
    free(set->tokens);
    free(set->nodes);
    *set = (struct added_set){0};
}

/* The longest token that begins at `at`, and its bytes. */
static const struct added_token *longest(const struct added_search *s, size_t at,
                                         size_t *size)
{
    const struct added_token *found = NULL;
    uint32_t node = 0;
    for (size_t i = at; i < s->n; i++) {
        node = child_of(s->set, node, (unsigned char)s->text[i]);
        if (node == 0)
            break;
        if (s->set->nodes[node].token >= 0) {
            found = &s->set->tokens[s->set->nodes[node].token];
            *size = i + 1 - at;
        }
    }
    return found;
}

/* The character that ends before `at`, and where it begins. */
static uint32_t character_before(const char *text, size_t at, size_t *begin)
{
    uint32_t code;
    *begin = at;
    do
        --*begin;
    while (*begin > 0 && ((unsigned char)text[*begin] & 0xc0) == 0x80);
    (void)utf8_next(text + *begin, at - *begin, &code);
    return code;
}

static bool in_word(const struct added_search *s, size_t begin, size_t end)
{
    uint32_t code;
    size_t unused;
    if (begin > 0 && unicode_is_word(character_before(s->text, begin, &unused)))
        return true;
    if (end == s->n)
        return false;
    (void)utf8_next(s->text + end, s->n - end, &code);
    return unicode_is_word(code);
}

static size_t spaces_before(const struct added_search *s, size_t begin)
{
    size_t before;
    while (begin > s->done && unicode_is_space(character_before(s->text, begin, &before)))
        begin = before;
    return begin;
}

/* Tokens may be spaces themselves: no run is passed twice. */
static size_t spaces_behind(struct added_search *s, size_t end)
{
    uint32_t code;
    if (end >= s->spaces && end <= s->spaces_end)
        return s->spaces_end;
    s->spaces = end;
    for (size_t size; end < s->n; end += size) {
        size = utf8_next(s->text + end, s->n - end, &code);
        if (!unicode_is_space(code))
            break;
    }
    return s->spaces_end = end;
}

const struct added_token *added_next(struct added_search *s, size_t *rest, size_t *begin,
                                     size_t *end)
{
    *rest = s->done;
    while (s->at < s->n) {
        size_t size = 1;
        const struct added_token *found = longest(s, s->at, &size);
        const size_t at = s->at;
        s->at += size;
        if (!found || (found->single_word && in_word(s, at, at + size)))
            continue;
        *begin = found->lstrip ? spaces_before(s, at) : at;
        *end = found->rstrip ? spaces_behind(s, at + size) : at + size;
        s->done = *end;
        return found;
    }
    *begin = *end = s->n;
    return NULL;
}
