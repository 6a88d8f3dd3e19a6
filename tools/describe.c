/* SPDX-License-Identifier: Apache-2.0
 *
 * strata describe: a layer as a commented INI section that can be pasted into a network.
 * Texts and values come from plugins: what INI cannot hold is told in a comment.
 */
#include "tools/tool.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"
#include "io/stream.h"
#include "ini/config.h"

enum { OPTION_OUTPUT = TOOL_SHORT + 'o' };

static const struct option options[] = {
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {0},
};

/* ---- comments ---------------------------------------------------------------------- */

enum { COMMENT_WIDTH = 88 }; /* bytes a line, where a blank or '|' allows */

/* Bytes up to where a line may end: after '|', or before a blank. */
static size_t word_size(const char *text)
{
    const size_t n = 1 + strcspn(text + 1, " |");
    return n + (text[n] == '|');
}

/* What a terminal is not shown becomes '?'. */
static void put_clean(FILE *f, const char *text, size_t n)
{
    for (size_t i = 0, size; i < n; i += size) {
        const unsigned char *at = (const unsigned char *)text + i;
        size = text_shown_size(at, n - i);
        if (size == 0) {
            size = text_character_size(at, n - i);
            size += size == 0;
            fputc('?', f);
        } else {
            fwrite(at, 1, size, f);
        }
    }
}

/* Blanks stand for all white space; every line starts with `margin`. */
static void put_comment(FILE *f, size_t width, const char *margin, char *text)
{
    for (char *at = text; *at; at++)
        *at = isspace((unsigned char)*at) ? ' ' : *at;
    size_t column = (size_t)fprintf(f, "; %s", margin);
    for (const char *at = text; *at;) {
        size_t n = word_size(at);
        if (column + n > width && at > text) {
            column = (size_t)fprintf(f, "\n; %s", margin) - 1;
            n -= *at == ' ';
            at += *at == ' ';
        }
        put_clean(f, at, n);
        column += n;
        at += n;
    }
    fputc('\n', f);
}

/* One comment of as many lines as it needs. */
static PRINTF_LIKE(3, 4) void comment(FILE *f, const char *margin, const char *format,
                                      ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        tool_lose_output();
        return;
    }
    put_comment(f, COMMENT_WIDTH, margin, text);
    free(text);
}

/* ---- attributes -------------------------------------------------------------------- */

static const char *const type_names[] = {
    [STRATA_I64] = "integer", [STRATA_F64] = "real",    [STRATA_BOOL] = "yes or no",
    [STRATA_ENUM] = "choice", [STRATA_STRING] = "text", [STRATA_INTS] = "integers",
    [STRATA_REALS] = "reals",
};

/* The fewest digits that read back as the value. */
static void number_text(char *out, size_t size, double value)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

/* "a|b|c": the i-th name. */
static void choice_name(char *out, size_t size, const char *choices, int index)
{
    while (index-- > 0 && strchr(choices, '|'))
        choices = strchr(choices, '|') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

/* In quotes, a variable's sign doubled. False: INI cannot hold it. */
static bool quote(char *out, size_t size, const char *text)
{
    size_t n = 0;
    if (strchr(text, '"') || strstr(text, " ;") || 2 * strlen(text) + 3 > size)
        return false;
    out[n++] = '"';
    for (const char *at = text; *at; at++) {
        const size_t left = strlen(at);
        if ((*at & 0xc0) != 0x80 && text_shown_size((const unsigned char *)at, left) == 0)
            return false;
        if (*at == '$')
            out[n++] = '$';
        out[n++] = *at;
    }
    out[n++] = '"';
    out[n] = '\0';
    return true;
}

/* "" for none: an infinite default, or an empty list. False: INI cannot hold it. */
static bool default_text(char *out, size_t size, const strata_attr *a)
{
    const char *text = a->def_text ? a->def_text : "";
    out[0] = '\0';
    switch (a->type) {
    case STRATA_I64:
        snprintf(out, size, "%.0f", a->def);
        return true;
    case STRATA_F64:
        if (!isinf(a->def))
            number_text(out, size, a->def);
        return true;
    case STRATA_BOOL:
        snprintf(out, size, "%s", a->def != 0 ? "yes" : "no");
        return true;
    case STRATA_ENUM:
        choice_name(out, size, a->choices, (int)a->def);
        return true;
    case STRATA_STRING:
        return text[0] == '\0' || quote(out, size, text);
    default:
        snprintf(out, size, "%s", text);
        return strlen(text) < size &&
               strspn(text, "0123456789+-.einfx, ") == strlen(text);
    }
}

static void range_text(char *out, size_t size, const strata_attr *a)
{
    char min[32], max[32];
    const bool whole = a->type == STRATA_I64 || a->type == STRATA_INTS;
    out[0] = '\0';
    if (a->min == 0 && a->max == 0)
        return;
    snprintf(min, sizeof min, "%.0f", a->min);
    snprintf(max, sizeof max, "%.0f", a->max);
    if (!whole) {
        number_text(min, sizeof min, a->min);
        number_text(max, sizeof max, a->max);
    }
    if (isinf(a->max) && !isinf(a->min))
        snprintf(out, size, ", at least %s", min);
    else if (isinf(a->min) && !isinf(a->max))
        snprintf(out, size, ", at most %s", max);
    else if (!isinf(a->min))
        snprintf(out, size, ", %s to %s", min, max);
}

static void put_attribute(FILE *f, const strata_attr *a)
{
    char text[2048], range[96];
    const bool required = a->flags & STRATA_REQUIRED;
    const bool writable = default_text(text, sizeof text, a);
    range_text(range, sizeof range, a);
    fputc('\n', f);
    comment(f, "", "%s", a->doc && *a->doc ? a->doc : a->name);
    comment(f, "", "%s%s%s%s%s", type_names[a->type], a->choices ? ": " : "",
            a->choices ? a->choices : "", range,
            required    ? ", required"
            : !writable ? ", whose default INI cannot hold"
            : text[0]   ? ""
                        : ", not set by default");
    if (!required && writable && text[0])
        fprintf(f, "%s = %s\n", a->name, text);
    else /* a line without a value would not be INI */
        fprintf(f, "; %s =\n", a->name);
}

/* ---- the rest of a layer ----------------------------------------------------------- */

static void put_weights(FILE *f, const struct registry_layer *l)
{
    if (l->n_weights == 0)
        return;
    fputs("\n; weights = w:PREFIX reads these from [weights w]:\n", f);
    for (size_t i = 0; i < l->n_weights; i++) {
        const strata_weight *w = &l->weights[i];
        comment(f, "  ", "PREFIX.%s%s%s%s", w->name,
                w->flags & STRATA_REQUIRED ? "" : " (optional)",
                w->doc && *w->doc ? ": " : "", w->doc ? w->doc : "");
    }
}

/* "fp32:nchw|fp16:nchw, same"; masks end with the first 0. */
static void put_side(FILE *f, const uint64_t *masks)
{
    for (int i = 0; i < REGISTRY_PORTS && masks[i]; i++) {
        fputs(i ? ", " : "", f);
        if (masks[i] == STRATA_SAME) {
            fputs("same", f);
            continue;
        }
        const char *gap = "";
        for (int k = 0; k < STRATA_FORMAT_COUNT; k++)
            if (masks[i] & UINT64_C(1) << k) {
                fprintf(f, "%s%s", gap, format_mask_name(UINT64_C(1) << k, 4));
                gap = "|";
            }
    }
}

static void put_row(FILE *f, const struct registry_row *row)
{
    char *text = NULL;
    size_t size;
    FILE *line = text_stream(&text, &size);
    if (!line) {
        tool_lose_output();
        return;
    }
    put_side(line, row->in);
    fputs(" -> ", line);
    put_side(line, row->out);
    if (text_finish(line, &text))
        comment(f, "      ", "%s", text);
    else
        tool_lose_output();
    free(text);
}

/* "FILE 1.0.0, build 1234, CUDA 13.0" on one line, which a path may make a long one. */
static void put_module(FILE *f, const char *margin, const char *before,
                       const struct module_info *m)
{
    char cuda[32] = "", *text = NULL;
    if (m->cudart)
        snprintf(cuda, sizeof cuda, ", CUDA %u.%u", m->cudart / 1000,
                 m->cudart % 1000 / 10);
    if (asprintf(&text, "%s%s %s%s%.12s%s", before, m->path, m->version,
                 m->build_id[0] ? ", build " : "", m->build_id, cuda) < 0) {
        tool_lose_output();
        return;
    }
    put_comment(f, CONFIG_MAX_LINE / 2, margin, text);
    free(text);
}

static void put_impl(FILE *f, const struct registry_impl *impl)
{
    const strata_impl *d = &impl->impl;
    char sm[64] = "";
    if (d->min_sm && d->min_sm == d->max_sm)
        snprintf(sm, sizeof sm, ", sm_%d only", d->min_sm);
    else if (d->min_sm && d->max_sm)
        snprintf(sm, sizeof sm, ", sm_%d to sm_%d", d->min_sm, d->max_sm);
    else if (d->min_sm)
        snprintf(sm, sizeof sm, ", sm_%d or later", d->min_sm);
    else if (d->max_sm)
        snprintf(sm, sizeof sm, ", up to sm_%d", d->max_sm);
    comment(f, "    ", "%s (%s%s)", d->name, d->device == STRATA_HOST ? "host" : "cuda",
            sm);
    for (uint32_t r = 0; r < d->rows.n; r++)
        put_row(f, &impl->rows[r]);
}

/* Impls of one module follow each other. */
static void put_impls(FILE *f, const struct registry_layer *l)
{
    const struct module *module = NULL;
    fputs("\n; impls and their formats, inputs -> outputs:\n", f);
    for (size_t i = 0; i < l->n_impls; i++) {
        if (l->impls[i].module != module) {
            const struct module_info m = module_info(l->impls[i].module);
            put_module(f, "  ", "from ", &m);
        }
        module = l->impls[i].module;
        put_impl(f, &l->impls[i]);
    }
}

static void put_inputs(FILE *f, const strata_layer *d)
{
    char most[32] = "", outputs[48] = "";
    if (d->max_in < 0)
        snprintf(most, sizeof most, " or more");
    else if (d->max_in > d->min_in)
        snprintf(most, sizeof most, " to %d", d->max_in);
    if (d->n_out >= 0)
        snprintf(outputs, sizeof outputs, ", outputs %d", d->n_out);
    comment(f, "", "inputs %d%s%s", d->min_in, most, outputs);
}

static void put_layer(FILE *f, const struct registry_layer *l)
{
    const struct module_info m = module_info(l->module);
    const strata_layer *d = &l->layer;
    comment(f, "", "%s: %s", l->full_name, d->doc ? d->doc : "");
    put_inputs(f, d);
    put_module(f, "", "defined in ", &m);
    fprintf(f, "[layer %c%s1]\ntype = %.*s\n", tolower((unsigned char)d->name[0]),
            d->name + 1, (int)strcspn(l->full_name, "@"), l->full_name);
    if (d->min_in != 1 || d->max_in != 1) /* one is the layer above */
        fputs("; inputs =\n", f);
    for (size_t i = 0; i < l->n_attrs; i++)
        put_attribute(f, &l->attrs[i]);
    put_weights(f, l);
    put_impls(f, l);
}

/* ---- the command ------------------------------------------------------------------- */

/* The file may be a network, which this command does not read, and would be lost. */
static int refuse_existing(const char *path, strata_error *err)
{
    return access(path, F_OK) == 0
               ? error_set(err, STRATA_EINVAL,
                           "%s: exists; name a new file, or append with >>%s", path, path)
               : STRATA_OK;
}

static int describe(const struct registry_layer *l, const char *path, strata_error *err)
{
    char *text = NULL;
    size_t size = 0;
    if (path && strcmp(path, "-") != 0 && refuse_existing(path, err) != STRATA_OK)
        return err->status;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return error_no_memory(err, 0, "a description");
    put_layer(f, l);
    int status = text_finish(f, &text) && !tool_output_lost()
                     ? STRATA_OK
                     : error_no_memory(err, 0, "a description");
    if (status == STRATA_OK)
        status = tool_write(path ? path : "-", text, size, err);
    free(text);
    return status;
}

static int run_describe(int argc, char **argv)
{
    struct tool_options o = {0};
    struct tool_session s = {0};
    strata_error err;
    const struct registry_layer *layer;
    const char *path = NULL;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
        path = optarg;
    }
    if (o.help)
        code = tool_help(&tool_describe);
    else if (argc - optind != 1)
        code = tool_usage(&tool_describe, "one layer name is needed");
    else if ((path && (code = tool_check_output(&tool_describe, path)) != EXIT_OK) ||
             (code = tool_check_unused(&tool_describe, &o, USES_PLUGINS)) != EXIT_OK)
        goto done;
    else if (tool_open_registry(&s, &o, &err) != STRATA_OK ||
             registry_find(s.registry, argv[optind], &layer, &err) != STRATA_OK ||
             describe(layer, path, &err) != STRATA_OK)
        code = tool_fail(&err);
done:
    tool_close(&s);
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_describe = {
    .name = "describe",
    .summary = "Describe a layer as an INI section to paste into a network",
    .usage = "LAYER [OPTION...]",
    .help =
        "Prints attributes with types, ranges and defaults, weights, and each impl's\n"
        "formats, file, build and CUDA version. What is printed is INI itself.\n\n"
        "Options:\n"
        "  -o, --output=FILE     write it there, over no file that exists; there is one\n"
        "                        form, so that -o is no format, and json no file: write\n"
        "                        ./json\n",
    .examples = "  strata describe Convolution\n"
                "  strata describe Convolution -o conv1.ini\n"
                "  strata describe org.example::LeakyReLU@1 --plugin ./leaky_relu.so\n",
    .run = run_describe,
};
