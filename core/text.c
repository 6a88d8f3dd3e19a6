/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that are printed into memory, and reals in them, in any locale.
 */
#include "core/text.h"

#include <locale.h>
#include <stdbool.h>
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

char *text_finish(FILE *f, char **text)
{
    bool failed = ferror(f) != 0;
    failed |= fclose(f) != 0;
    if (!failed)
        return *text;
    free(*text);
    return NULL;
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
