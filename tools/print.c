/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command prints: results on stdout, errors on stderr. Every text with a name of
 * a file, network or plugin in it goes through here, so that none reaches a terminal as
 * it is.
 */
#include "tools/tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"

static bool lost; /* some of what belongs on stdout */

bool tool_output_lost(void)
{
    return lost;
}

void tool_lose_output(void)
{
    lost = true;
}

/* Without memory the text is cut. */
static void put_va(FILE *out, const char *format, va_list args)
{
    char brief[1024] = "";
    va_list again;
    va_copy(again, args);
    char *whole = text_print_va(format, args), *text = whole ? whole : brief;
    if (!whole && vsnprintf(brief, sizeof brief, format, again) < 0)
        brief[0] = '\0';
    va_end(again);
    lost |= !whole && out == stdout;
    text_clean(text, strlen(text), true);
    fputs(text, out);
    free(whole);
}

void tool_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_va(stdout, format, args);
    va_end(args);
}

int tool_write(const char *path, const char *text, size_t size, strata_error *err)
{
    if (strcmp(path, "-") != 0)
        return file_write(path, text, size, err);
    tool_print("%.*s", (int)size, text);
    return STRATA_OK;
}

int tool_error(const char *format, ...)
{
    va_list args;
    fputs("strata: error: ", stderr);
    va_start(args, format);
    put_va(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

int tool_usage(const struct tool_command *c, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "strata %s: error: ", c->name);
    va_start(args, format);
    put_va(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nUsage: strata %s %s\nSee `strata %s --help`.\n", c->name, c->usage,
            c->name);
    return EXIT_USAGE;
}

int tool_file_status(int status, strata_error *err)
{
    if (status == STRATA_EUNSUPPORTED)
        err->status = status = STRATA_EPARSE;
    return status;
}

int tool_fail(const strata_error *err)
{
    if (error_has_place(err))
        fprintf(stderr, "%s\n", err->message);
    else
        fprintf(stderr, "strata: error: %s\n", err->message);
    if (err->status == STRATA_EMISMATCH)
        return EXIT_MISMATCH;
    return err->status == STRATA_EUNSUPPORTED || err->status == STRATA_EDEVICE
               ? EXIT_NO_DEVICE
               : EXIT_USAGE;
}

/* ---- JSON ----------------------------------------------------------------------------
 */

size_t tool_put_json_character(const unsigned char *p, size_t left, FILE *out)
{
    uint32_t code;
    const size_t size = text_decode(p, left, &code);
    if (size == 0)
        fputs("\\ufffd", out);
    else if (text_shown_size(p, left))
        fwrite(p, 1, size, out);
    else if (code < 0x10000)
        fprintf(out, "\\u%04x", code);
    else
        fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 | (code & 0x3ff));
    return size ? size : 1;
}

int tool_print_json(const json_t *j, size_t flags)
{
    char *text = json_dumps(j, flags);
    lost |= !text;
    if (!text)
        return tool_error("out of memory for JSON text");
    const unsigned char *p = (const unsigned char *)text;
    for (size_t left = strlen(text), size = 1; left > 0;
         left -= size, p += size, size = 1)
        if (*p == '\n')
            putchar('\n');
        else
            size = tool_put_json_character(p, left, stdout);
    free(text);
    return EXIT_OK;
}
