/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are printed into memory, reals in them, in any locale, and characters.
 */
#include "core/text.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_print_va(const char *format, va_list args)
{
    char *text = NULL;
    return vasprintf(&text, format, args) < 0 ? NULL : text;
}

char *text_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = text_print_va(format, args);
    va_end(args);
    return text;
}

/* A real as it was printed, with a point. */
static const char *with_point(char out[TEXT_REAL], const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p++)
        if (strchr("0123456789+-einfa", *p))
            out[n++] = *p;
        else if (n == 0 || out[n - 1] != '.') /* a point may take several bytes */
            out[n++] = '.';
    out[n] = '\0';
    return out;
}

const char *text_real(char out[TEXT_REAL], int digits, double x)
{
    char text[TEXT_REAL];
    snprintf(text, sizeof text, "%.*g", digits, x);
    return with_point(out, text);
}

const char *text_fixed(char out[TEXT_REAL], int decimals, double x)
{
    char text[TEXT_REAL];
    snprintf(text, sizeof text, "%.*f", decimals, x);
    return with_point(out, text);
}

double text_to_real(const char *text, char **end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *end = (char *)text;
    if (plain == (locale_t)0)
        return 0;
    double value = strtod_l(text, end, plain);
    freelocale(plain);
    return value;
}

/* ---- characters -----------------------------------------------------------------------
 */

size_t text_decode(const unsigned char *text, size_t n, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = text[0] < 0x80             ? 1
                  : (text[0] & 0xe0) == 0xc0 ? 2
                  : (text[0] & 0xf0) == 0xe0 ? 3
                  : (text[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    *code = text[0];
    if (size <= 1)
        return size;
    if (size > n)
        return 0;
    *code &= 0xffu >> (size + 1);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (text[i] & 0x3f);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[size] || *code > 0x10ffff || surrogate ? 0 : size;
}

size_t text_character_size(const unsigned char *text, size_t n)
{
    uint32_t code;
    return text_decode(text, n, &code);
}

size_t text_shown_size(const unsigned char *text, size_t n)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, /* lines, paragraphs, directions */
        {0x2066, 0x2069}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    uint32_t code;
    const size_t size = text_decode(text, n, &code);
    for (size_t i = 0; i < ARRAY_LENGTH(hidden); i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return 0;
    return size;
}

size_t text_clean(char *text, size_t n, bool lines)
{
    size_t to = 0;
    for (size_t at = 0, size; at < n; at += size) {
        const unsigned char *from = (const unsigned char *)text + at;
        const bool kept = lines && (*from == '\n' || *from == '\t');
        size = kept ? 1 : text_shown_size(from, n - at);
        if (size > 0) {
            memmove(text + to, text + at, size);
            to += size;
            continue;
        }
        size = text_character_size(from, n - at);
        size += size == 0;
        text[to++] = '?';
    }
    text[to] = '\0';
    return to;
}
