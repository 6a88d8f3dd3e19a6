/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns out of JSON, what is put for their matches, and GPT-2's characters for bytes:
 * printable ones of Latin-1 stand for themselves, the others follow from U+0100 on.
 */
#include "language/steps/normalise.h"

#include <string.h>

int pattern_read(struct pattern **out, const struct node *node, bool regex,
                 strata_error *err)
{
    static const char *const keys[] = {"String", "Regex", NULL};
    const char *text;
    size_t n;
    *out = NULL;
    int status = node_check(node, keys, err);
    if (status != STRATA_OK)
        return status;
    const struct node member = node_member(node, "Regex");
    if (!member.value) {
        status = node_string(node, "String", &text, &n, err);
        if (status == STRATA_OK && n == 0)
            status = error_set(err, STRATA_EUNSUPPORTED,
                               "%s.String: an empty text is not supported", node->place);
        return status == STRATA_OK ? pattern_string(out, text, n, err) : status;
    }
    if (!regex)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s is not supported here; supported is String", member.place);
    status = node_string(node, "Regex", &text, &n, err);
    return status == STRATA_OK ? pattern_regex(out, text, n, member.place, err) : status;
}

int pattern_replace(const struct pattern *p, const char *text, size_t n,
                    const struct token_text *content, struct token_text *out,
                    strata_error *err)
{
    struct pattern_search s;
    size_t done = 0, begin = 0, end = 0;
    int status = pattern_begin(&s, p, err);
    if (status != STRATA_OK)
        return status;
    pattern_over(&s, text, n);
    while (status == STRATA_OK && n > 0) {
        status = pattern_next(&s, &begin, &end, err);
        if (status != STRATA_OK || begin == SIZE_MAX)
            break;
        status = bytes_put(out, text + done, begin - done, err);
        if (status == STRATA_OK)
            status = bytes_put(out, content->bytes, content->n, err);
        done = end;
    }
    pattern_end(&s);
    return status == STRATA_OK ? bytes_put(out, text + done, n - done, err) : status;
}

static bool stands_for_itself(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* How many bytes below it do not stand for themselves. */
static unsigned others_below(unsigned byte)
{
    return byte <= ' ' ? byte : byte <= 0xa0 ? byte - ('~' - '!' + 1) : 67;
}

int bytes_spell(const char *text, size_t n, struct token_text *out, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const unsigned byte = (unsigned char)text[i];
        status = bytes_put_code(
            out, stands_for_itself(byte) ? byte : 0x100 + others_below(byte), err);
    }
    return status;
}

bool byte_spelled(uint32_t code, char *byte)
{
    const uint32_t other = code - 0x100;
    const uint32_t found = code < 0x100   ? code
                           : other <= ' ' ? other
                           : other == 67  ? 0xad
                                          : other + ('~' - '!' + 1);
    *byte = (char)found;
    return code < 0x100 ? stands_for_itself(code) : other <= 67;
}
