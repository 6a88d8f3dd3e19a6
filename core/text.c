/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text.h"

#include <stdbool.h>
#include <stdlib.h>

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
