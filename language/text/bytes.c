/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing texts and lists of tokens, and UTF-8 in them.
 */
#include "language/text/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/text.h"

int bytes_put(struct token_text *to, const char *bytes, size_t n, strata_error *err)
{
    size_t end;
    if (!checked_size_add(to->n, n, &end))
        return error_no_memory(err, SIZE_MAX, "a text");
    int status = grow(&to->bytes, &to->room, end, 1, err);
    if (status != STRATA_OK)
        return status;
    if (n > 0)
        memcpy(to->bytes + to->n, bytes, n);
    to->n = end;
    to->bytes[end] = '\0';
    return STRATA_OK;
}

int bytes_put_code(struct token_text *to, uint32_t code, strata_error *err)
{
    char bytes[MAX_CHARACTER];
    return bytes_put(to, bytes, utf8_encode(bytes, code), err);
}

void bytes_free(struct token_text *t)
{
    free(t->bytes);
    *t = (struct token_text){0};
}

int tokens_put(struct tokens *to, int32_t id, strata_error *err)
{
    int status = grow(&to->ids, &to->room, to->n, sizeof *to->ids, err);
    if (status == STRATA_OK)
        to->ids[to->n++] = id;
    return status;
}

size_t utf8_encode(char out[MAX_CHARACTER], uint32_t code)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[size] | code);
    return size;
}

size_t utf8_next(const char *text, size_t n, uint32_t *code)
{
    if ((unsigned char)text[0] < 0x80) {
        *code = (unsigned char)text[0];
        return 1;
    }
    const size_t size = text_decode((const unsigned char *)text, n, code);
    return size ? size : 1;
}

/* Values that the second byte of a character may have, by its first. */
static void second_byte(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
}

size_t utf8_broken(const char *text, size_t n, bool *whole)
{
    const unsigned char *t = (const unsigned char *)text;
    unsigned char low, high;
    const size_t size = t[0] >= 0xc2 && t[0] <= 0xdf   ? 2
                        : t[0] >= 0xe0 && t[0] <= 0xef ? 3
                        : t[0] >= 0xf0 && t[0] <= 0xf4 ? 4
                                                       : 1;
    second_byte(t[0], &low, &high);
    size_t i = 1;
    while (i < size && i < n && t[i] >= low && t[i] <= high) {
        i++;
        low = 0x80, high = 0xbf;
    }
    *whole = i < n || size == 1;
    return i;
}

int utf8_mend(struct token_text *to, const char *text, size_t n, strata_error *err)
{
    int status = bytes_put(to, NULL, 0, err);
    size_t good = 0;
    for (size_t at = 0, size; at < n && status == STRATA_OK; at += size) {
        bool whole;
        size = text_character_size((const unsigned char *)text + at, n - at);
        if (size > 0)
            continue;
        size = utf8_broken(text + at, n - at, &whole);
        status = bytes_put(to, text + good, at - good, err);
        if (status == STRATA_OK)
            status = bytes_put(to, REPLACEMENT, REPLACEMENT_SIZE, err);
        good = at + size;
    }
    return status == STRATA_OK ? bytes_put(to, text + good, n - good, err) : status;
}
