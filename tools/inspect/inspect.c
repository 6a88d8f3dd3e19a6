/* SPDX-License-Identifier: Apache-2.0
 *
 * strata inspect: what is in an engine file (or an ONNX model: onnx.c). Nothing
 * is loaded or run, so neither the plugins nor the device have to be here; a network is
 * loaded to be printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/file/stored.h"
#include "io/file.h"
#include "tools/explain/explain.h"
#include "tools/import/model.h"
#include "tools/inspect/onnx.h"

enum {
    OPTION_LAYERS = TOOL_OWN,
    OPTION_REFORMATS,
    OPTION_FUSIONS,
    OPTION_SECTION,
    OPTION_DOT,
    OPTION_EXTRACT,
    OPTION_PRINT,
};

static const struct option options[] = {
    {"layers", no_argument, NULL, OPTION_LAYERS},
    {"reformats", no_argument, NULL, OPTION_REFORMATS},
    {"fusions", no_argument, NULL, OPTION_FUSIONS},
    {"section", required_argument, NULL, OPTION_SECTION},
    {"dot", required_argument, NULL, OPTION_DOT},
    {"extract", required_argument, NULL, OPTION_EXTRACT},
    {"print", no_argument, NULL, OPTION_PRINT},
    {0},
};

struct wishes {
    bool layers, reformats, fusions, print;
    const char *dot, *section, *extract;
};

/* An engine file and its readable sections. */
struct inspection {
    struct engine_file file;
    json_t *device, *plugins, *report;
};

static int inspection_open(struct inspection *i, const char *path, strata_error *err)
{
    *i = (struct inspection){0};
    int status = tool_file_status(engine_file_open(&i->file, path, err), err);
    if (status != STRATA_OK && !engine_file_at(path))
        error_append(err, "; of a network's INI file see --print and `strata explain`");
    if (status != STRATA_OK)
        return status;
    if ((status = engine_section_json(&i->device, &i->file, SECTION_DEVICE, err)) ||
        (status = engine_section_json(&i->plugins, &i->file, SECTION_PLUGINS, err)) ||
        (status = engine_section_json(&i->report, &i->file, SECTION_REPORT, err)))
        error_prefix(err, "%s", path);
    return status;
}

static void inspection_close(struct inspection *i)
{
    json_decref(i->device);
    json_decref(i->plugins);
    json_decref(i->report);
    engine_file_close(&i->file);
}

/* ---- tables ----------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static long long number_of(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static void hash_text(char out[65], const uint8_t hash[32])
{
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* In place, where the plan was timed. */
static double predicted_us(const json_t *totals)
{
    const json_t *in_place = json_object_get(totals, "in_place_us");
    return json_is_number(in_place) ? json_number_value(in_place)
                                    : explain_microseconds(number_of(totals, "cost"));
}

static void print_head(const struct inspection *i, const char *path)
{
    const struct engine_file_info *info = &i->file.info;
    const json_t *network = json_object_get(i->report, "network");
    const json_t *totals = json_object_get(i->report, "totals");
    const long long sm = number_of(i->device, "sm");
    char hash[65], capability[64] = "";
    hash_text(hash, info->sha256);
    if (sm > 0) /* of a GPU */
        snprintf(capability, sizeof capability, ", compute capability %lld.%lld", sm / 10,
                 sm % 10);
    tool_print("%s: network %s, engine format %u.%u, written by %s\n"
               "%" PRIu64 " bytes, content hash %s\n"
               "device %s (%s)%s, %lld threads, math %s\n",
               path, text_of(network, "name"), info->major, info->minor, info->builder,
               info->size, hash, text_of(i->device, "kind"), text_of(i->device, "name"),
               capability, number_of(i->device, "threads"), text_of(i->device, "math"));
    tool_print(
        "%lld nodes, %lld reformats, %lld re-labels, %lld layers that run nothing; "
        "predicted %.1f us (%s costs%s); "
        "weights %.2f MiB, memory per context %.2f MiB\n",
        number_of(totals, "nodes"), number_of(totals, "reformats"),
        number_of(totals, "relabels"), number_of(totals, "erased"), predicted_us(totals),
        text_of(json_object_get(i->report, "costs"), "source"),
        json_is_true(json_object_get(totals, "proved")) ? ", plan proved optimal" : "",
        (double)number_of(totals, "weight_bytes") / 1048576,
        (double)number_of(totals, "arena_bytes") / 1048576);
}

static void print_sections(const struct engine_file *f, int format)
{
    static const char *const columns[] = {"section", "bytes", "begin"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 1 | 1 << 2);
    for (size_t i = 0; i < f->n_sections; i++) {
        const struct engine_section *s = &f->sections[i];
        table_cell(&t, "%s", s->name);
        table_cell(&t, "%zu", s->size);
        table_cell(&t, "%td", (const char *)s->data - (const char *)f->bytes.data);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

static void print_plugins(const json_t *plugins, int format)
{
    static const char *const columns[] = {"plugin", "namespace", "version", "build",
                                          "first needed by"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        const json_t *p = json_array_get(plugins, i);
        table_cell(&t, "%s", text_of(p, "file"));
        table_cell(&t, "%s", text_of(p, "namespace"));
        table_cell(&t, "%s", text_of(p, "version"));
        table_cell(&t, "%.12s", text_of(p, "build_id"));
        table_cell(&t, "%s", text_of(p, "layer"));
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

/* Of what [profile] names with several sizes; the report's numbers are read with care. */
static void print_sizes(const struct inspection *i, const char *gap, int format)
{
    const json_t *list = json_object_get(i->report, "sizes");
    const json_t *first = json_object_get(json_array_get(list, 0), "sizes");
    const char *columns[NETWORK_MAX_SYMBOLS + 3], *name;
    const json_t *value;
    size_t n = 0;
    struct table t;
    json_object_foreach((json_t *)first, name, value) if (n < NETWORK_MAX_SYMBOLS)
        columns[n++] = name;
    if (n == 0)
        return;
    columns[n] = "us";
    columns[n + 1] = "reformats";
    columns[n + 2] = "memory MiB";
    fputs(gap, stdout);
    table_open(&t, columns, n + 3, ~UINT64_C(0));
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        for (size_t s = 0; s < n; s++)
            table_cell(&t, "%lld", number_of(json_object_get(one, "sizes"), columns[s]));
        table_cell(&t, "%.1f", explain_microseconds(number_of(one, "cost")));
        table_cell(&t, "%lld", number_of(one, "reformats"));
        table_cell(&t, "%.2f", (double)number_of(one, "arena_bytes") / 1048576);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

static void print_tables(const struct inspection *i, const struct wishes *w,
                         const char *path, int format)
{
    bool text = format == TABLE_TEXT || format == TABLE_MARKDOWN;
    const char *gap = text ? "\n" : "";
    if (w->layers)
        report_print_nodes(i->report, format);
    if (w->reformats)
        report_print_reformats(i->report, format);
    if (w->fusions)
        report_print_fusions(i->report, format);
    if (w->layers || w->reformats || w->fusions)
        return;
    if (text)
        print_head(i, path);
    fputs(gap, stdout);
    print_sections(&i->file, format);
    fputs(gap, stdout);
    print_plugins(i->plugins, format);
    print_sizes(i, gap, format);
}

/* ---- other forms ------------------------------------------------------------------- */

static json_t *sections_json(const struct engine_file *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_sections; i++)
        json_array_append_new(list, json_pack("{s:s, s:I}", "name", f->sections[i].name,
                                              "bytes", (json_int_t)f->sections[i].size));
    return list;
}

static int print_json(const struct inspection *i, int format, strata_error *err)
{
    const struct engine_file_info *info = &i->file.info;
    char hash[65];
    hash_text(hash, info->sha256);
    json_t *j = json_pack("{s:{s:i, s:i, s:s, s:I, s:s}, s:o, s:O, s:O, s:O}", "engine",
                          "major", (int)info->major, "minor", (int)info->minor, "builder",
                          info->builder, "bytes", (json_int_t)info->size, "content_hash",
                          hash, "sections", sections_json(&i->file), "device", i->device,
                          "plugins", i->plugins, "report", i->report);
    if (!j)
        return error_no_memory(err, 0, "the report");
    if (format == TABLE_JSONL)
        report_print_lines(j);
    else
        tool_print_json(j, JSON_INDENT(1)), fputc('\n', stdout);
    json_decref(j);
    return STRATA_OK;
}

static int save_dot(const struct inspection *i, const char *path, const char *source,
                    strata_error *err)
{
    struct graph g;
    int status =
        file_same(path, source)
            ? error_set(err, STRATA_EINVAL, "%s: is the engine; name another file", path)
            : graph_of_report(&g, i->report, err);
    if (status != STRATA_OK)
        return status;
    status = graph_save_dot(&g, NULL, path, err);
    graph_free(&g);
    return status;
}

static int print_section(const struct engine_file *f, const char *name, strata_error *err)
{
    const struct engine_section *s = engine_file_find(f, name);
    if (!s) {
        error_set(err, STRATA_ENOTFOUND, "no section '%s'; there are:", name);
        for (size_t i = 0; i < f->n_sections; i++)
            error_append(err, " %s", f->sections[i].name);
        return STRATA_ENOTFOUND;
    }
    fwrite(s->data, 1, s->size, stdout);
    return STRATA_OK;
}

/* The network as files again: network.ini names the others as they are called here. */
/* Writes the section, or with `look` sees whether a file is in its way. */
static int extract_section(const struct engine_section *s, const char *folder, bool look,
                           strata_error *err)
{
    bool ini = strcmp(s->name, SECTION_NETWORK) == 0;
    struct stat about;
    int status = STRATA_OK;
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s", folder, s->name, ini ? ".ini" : "") < 0)
        return error_no_memory(err, 0, "a path");
    if (!look)
        status = file_write(path, s->data, s->size, err);
    else if (lstat(path, &about) == 0)
        status = error_set(err, STRATA_EINVAL,
                           "%s: exists; name a new folder to extract to", path);
    free(path);
    return status;
}

static int extract(const struct engine_file *f, const char *folder, strata_error *err)
{
    int status = STRATA_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return error_errno(err, STRATA_EIO, "%s: cannot be made", folder);
    for (size_t i = 0; i < 2 * f->n_sections && status == STRATA_OK; i++)
        status = extract_section(&f->sections[i % f->n_sections], folder,
                                 i < f->n_sections, err);
    return status;
}

/* ---- the command ------------------------------------------------------------------- */

static int show(const struct inspection *i, const struct wishes *w, const char *path,
                int format, strata_error *err)
{
    if (w->extract)
        return extract(&i->file, w->extract, err);
    if (w->section)
        return print_section(&i->file, w->section, err);
    if (w->dot)
        return save_dot(i, w->dot, path, err);
    if (format == TABLE_JSON || format == TABLE_JSONL)
        return print_json(i, format, err);
    print_tables(i, w, path, format);
    return STRATA_OK;
}

static int inspect(const struct wishes *w, const char *path, int format)
{
    struct inspection i;
    strata_error err;
    error_clear(&err);
    int status = inspection_open(&i, path, &err);
    if (status == STRATA_OK)
        status = show(&i, w, path, format, &err);
    inspection_close(&i);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static void note_option(struct wishes *w, int option)
{
    w->layers |= option == OPTION_LAYERS;
    w->reformats |= option == OPTION_REFORMATS;
    w->fusions |= option == OPTION_FUSIONS;
    w->print |= option == OPTION_PRINT;
    if (option == OPTION_DOT)
        w->dot = optarg;
    if (option == OPTION_SECTION)
        w->section = optarg;
    if (option == OPTION_EXTRACT)
        w->extract = optarg;
}

/* What would be ignored is refused. */
static int check_wishes(const struct wishes *w, const struct tool_options *o)
{
    const int others =
        (w->dot != NULL) + (w->section != NULL) + (w->extract != NULL) + w->print;
    const bool tables = w->layers || w->reformats || w->fusions || o->format;
    if (others > 1 || (others && tables))
        return tool_usage(&tool_inspect,
                          "--dot, --section, --extract and --print stand alone: each "
                          "says all that is written");
    return tool_check_unused(&tool_inspect, o,
                             w->print ? USES_NETWORK | USES_PLUGINS : USES_FORMAT);
}

static int inspect_model(const struct wishes *w, const char *path, int format)
{
    if (w->layers || w->reformats || w->fusions || w->dot || w->section || w->extract)
        return tool_usage(&tool_inspect,
                          "%s: is an ONNX model; of the options, -o alone is for those",
                          path);
    return inspect_onnx(path, format);
}

/* A network's text in one file, as a person would write it. */
static int print_network(const struct tool_options *o, const char *path)
{
    struct tool_session s = {0};
    char *text = NULL;
    size_t size;
    strata_error err;
    error_clear(&err);
    int status = tool_open_network(&s, o, path, &err);
    if (status == STRATA_OK)
        status = network_print(&text, &size, s.network, s.registry, &err);
    if (status == STRATA_OK)
        status = tool_write("-", text, size, &err);
    free(text);
    tool_close(&s);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static int run_inspect(int argc, char **argv)
{
    struct tool_options o = {0};
    struct wishes w = {0};
    int option, code = EXIT_USAGE;
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?')
            goto done;
        note_option(&w, option);
    }
    if (o.help)
        code = tool_help(&tool_inspect);
    else if (argc - optind != 1)
        code = tool_usage(&tool_inspect, "one engine file or ONNX model is needed");
    else if ((code = check_wishes(&w, &o)) != EXIT_OK)
        ;
    else if (w.print)
        code = print_network(&o, argv[optind]);
    else
        code = model_is_onnx(argv[optind]) ? inspect_model(&w, argv[optind], o.format)
                                           : inspect(&w, argv[optind], o.format);
done:
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_inspect = {
    .name = "inspect",
    .summary = "Show what an engine file or an ONNX model holds",
    .usage = "NET.engine|NET.onnx [OPTION...]\n   or: strata inspect NET.ini|NET.onnx "
             "--print [OPTION...]",
    .help =
        "Neither the plugins nor the device have to be here. Of an ONNX model: who "
        "wrote\n"
        "it, opsets, inputs and outputs, how often each op occurs, weights and the "
        "files\n"
        "they are in, functions; options other than -o are for engine files.\n\n"
        "Options:\n"
        "      --layers          each layer: impl, formats, shape, predicted time\n"
        "      --reformats       each reformat, why it stands and what would remove it\n"
        "      --fusions         each layer that was or might have been fused\n"
        "      --dot=FILE        the plan for Graphviz or Netron ('-': standard output)\n"
        "      --section=NAME    print a section as it is: network, plan, costs, ...\n"
        "      --extract=FOLDER  write the sections as files, over none that exist;\n"
        "                        FOLDER/network.ini is a network again, with its\n"
        "                        weights and labels\n"
        "      --print           a network's INI file, or what a model is imported as, "
        "as\n"
        "                        one text without includes, variables, comments and\n"
        "                        defaults; --set and -D are taken in. Files are named\n"
        "                        from the network's folder\n",
    .examples = "  strata inspect net.engine\n"
                "  strata inspect net.engine --layers -o csv\n"
                "  strata inspect net.onnx\n"
                "  strata inspect net.engine --section network\n"
                "  strata inspect net.ini --print -D width=2 --set build.precision=fp16\n"
                "  strata inspect net.engine --dot - | dot -Tsvg >net.svg\n",
    .run = run_inspect,
};
