/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line's options that the subcommands share.
 */
#include "tools/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/stream.h"

enum {
    OPTION_DEVICE = 'd',
    OPTION_DEFINE = 'D',
    OPTION_FORMAT = 'o',
    OPTION_HELP = 'h',
    OPTION_VERBOSE = 'v',
    OPTION_QUIET = 'q',
    OPTION_SET = 256,
    OPTION_PLUGIN,
    OPTION_PLUGIN_PATH,
    OPTION_UNTRUSTED,
    OPTION_COSTS,
    OPTION_SAVE_COSTS,
    OPTION_MEASURE_ALL,
    OPTION_FORMAT_LONG, /* commands have an -o of their own */
};

static const struct option common_options[] = {
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"define", required_argument, NULL, OPTION_DEFINE},
    {"format", required_argument, NULL, OPTION_FORMAT_LONG},
    {"help", no_argument, NULL, OPTION_HELP},
    {"verbose", no_argument, NULL, OPTION_VERBOSE},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"set", required_argument, NULL, OPTION_SET},
    {"plugin", required_argument, NULL, OPTION_PLUGIN},
    {"plugin-path", required_argument, NULL, OPTION_PLUGIN_PATH},
    {"allow-untrusted-plugins", no_argument, NULL, OPTION_UNTRUSTED},
    {"costs", required_argument, NULL, OPTION_COSTS},
    {"save-costs", required_argument, NULL, OPTION_SAVE_COSTS},
    {"measure-all", no_argument, NULL, OPTION_MEASURE_ALL},
};
static const char common_help[] =
    "Common options:\n"
    "  -d, --device=NAME            host (default), cuda:0\n"
    "      --set=SECTION.KEY=VALUE  replace or add a value: --set 'layer conv1.pad=1';\n"
    "                               of an engine runtime.threads and runtime.wait alone\n"
    "  -D, --define=NAME=VALUE      give a variable of the INI file\n"
    "      --plugin=FILE            load a plugin file (repeatable)\n"
    "      --plugin-path=DIRS       folders searched before the default, ':' between\n"
    "      --allow-untrusted-plugins  accept plugins that others could have written\n"
    "      --costs=SOURCE           what a plan is made from: auto (default: measured\n"
    "                               once for a machine), measure, analytic or a cost "
    "file\n"
    "      --save-costs=FILE        keep what is measured, and go on from it next time\n"
    "      --measure-all            measure also what cannot matter to the plan\n";
/* A command whose -o is a file takes the long form. */
static const char format_help[] =
    "  -o, --format=FORMAT          table (default), md, csv, json, jsonl\n";
static const char long_format_help[] =
    "      --format=FORMAT          table (default), md, csv, json, jsonl\n";
static const char last_help[] =
    "  -v, --verbose                more messages; twice for all\n"
    "  -q, --quiet                  errors only\n"
    "  -h, --help                   this text\n";

static const char short_options[] = ":d:D:o:hvq";

enum { MAX_OPTIONS = 128 };

void tool_options_free(struct tool_options *o)
{
    free(o->plugins);
    free(o->set);
    free(o->define);
    free(o->inputs);
    free(o->outputs);
    free(o->dims);
    free(o->plugin_path);
}

static int append(const char ***list, size_t *capacity, size_t *n, const char *text)
{
    int status = grow(list, capacity, *n, sizeof **list, NULL);
    if (status == STRATA_OK)
        (*list)[(*n)++] = text;
    return status;
}

static bool note(const char ***list, size_t *capacity, size_t *n, const char *text)
{
    if (append(list, capacity, n, text) == STRATA_OK)
        return true;
    tool_error("out of memory");
    return false;
}

static bool is_bound(const strata_network *net, const char *name, size_t n)
{
    bool is = false;
    for (size_t i = 0; i < net->n_inputs && !is; i++)
        is = strlen(net->inputs[i].name) == n && !memcmp(net->inputs[i].name, name, n);
    for (size_t i = 0; i < net->n_outputs && !is; i++)
        is = strlen(net->outputs[i].name) == n && !memcmp(net->outputs[i].name, name, n);
    return is;
}

const char *tool_file_of(const strata_network *net, const char *text)
{
    size_t n = strcspn(text, "=");
    bool named = text[n] == '=' && (!memchr(text, '/', n) || is_bound(net, text, n));
    return named ? text + n + 1 : text;
}

bool tool_input(struct tool_options *o, const char *text)
{
    return note(&o->inputs, &o->inputs_capacity, &o->n_inputs, text);
}

bool tool_dim(struct tool_options *o, const char *text)
{
    return note(&o->dims, &o->dims_capacity, &o->n_dims, text);
}

bool tool_output(struct tool_options *o, const char *path)
{
    return !path || note(&o->outputs, &o->outputs_capacity, &o->n_outputs, path);
}

/* getopt's own messages lack a suggestion. */
static void report_option(const char *argument, const struct option *all)
{
    const char *names[MAX_OPTIONS];
    char word[64] = "";
    size_t n = 0;
    for (; all[n].name; n++)
        names[n] = all[n].name;
    if (strncmp(argument, "--", 2) == 0)
        snprintf(word, sizeof word, "%.*s", (int)strcspn(argument + 2, "="),
                 argument + 2);
    const char *near = suggest(word, names, n);
    tool_error("unknown option '%s'%s%s%s", argument, near ? "; did you mean '--" : "",
               near ? near : "", near ? "'?" : "");
}

static void change_level(int by)
{
    strata_set_logger(NULL, NULL, by < 0 ? STRATA_LOG_ERROR : log_level() + by);
}

static int find_here(char **here, const char *dirs)
{
    if (*here || (*here = getcwd(NULL, 0)))
        return STRATA_OK;
    const int status = status_of_errno(errno, STRATA_EIO);
    tool_error("--plugin-path '%s': the working folder: %s", dirs, strerror(errno));
    return status;
}

/* A relative folder is one of the working folder, as a file of --plugin is: it was typed
 * there. The registry, which may be told of folders by others, takes none. */
static int take_plugin_path(struct tool_options *o, const char *dirs)
{
    char *here = NULL, *text = NULL;
    size_t size = 0;
    int status = STRATA_OK;
    FILE *f = text_stream(&text, &size);
    for (const char *at = dirs; f; at++) {
        const size_t n = strcspn(at, ":");
        const bool relative = n && *at != '/';
        if (relative && (status = find_here(&here, dirs)) != STRATA_OK)
            break;
        fprintf(f, "%s%s%s%.*s", at == dirs ? "" : ":", relative ? here : "",
                relative ? "/" : "", (int)n, at);
        if (!*(at += n))
            break;
    }
    free(here);
    free(o->plugin_path);
    o->plugin_path = f && text_finish(f, &text) ? text : NULL;
    if (o->plugin_path || status != STRATA_OK)
        return status;
    tool_error("--plugin-path '%s': out of memory", dirs);
    return STRATA_ENOMEM;
}

static int common_option(struct tool_options *o, int option)
{
    switch (option) {
    case OPTION_DEVICE:
        o->device = optarg;
        return STRATA_OK;
    case OPTION_DEFINE:
        return append(&o->define, &o->define_capacity, &o->n_define, optarg);
    case OPTION_SET:
        return append(&o->set, &o->set_capacity, &o->n_set, optarg);
    case OPTION_PLUGIN:
        return append(&o->plugins, &o->plugins_capacity, &o->n_plugins, optarg);
    case OPTION_PLUGIN_PATH:
        return take_plugin_path(o, optarg);
    case OPTION_UNTRUSTED:
        o->allow_untrusted = true;
        return STRATA_OK;
    case OPTION_COSTS:
        o->costs = optarg;
        return STRATA_OK;
    case OPTION_SAVE_COSTS:
        o->save_costs = optarg;
        return STRATA_OK;
    case OPTION_MEASURE_ALL:
        o->measure_all = true;
        return STRATA_OK;
    case OPTION_VERBOSE:
        change_level(1);
        return STRATA_OK;
    case OPTION_QUIET:
        change_level(-1);
        return STRATA_OK;
    case OPTION_HELP:
        o->help = true;
        return STRATA_OK;
    case OPTION_FORMAT:
    case OPTION_FORMAT_LONG:
        o->format = table_format_parse(optarg);
        if (o->format >= 0)
            return STRATA_OK;
        tool_error("format '%s': table, md, csv, json or jsonl", optarg);
    }
    return STRATA_EINVAL;
}

int tool_next_option(struct tool_options *o, int argc, char **argv,
                     const struct option *own)
{
    struct option all[MAX_OPTIONS] = {0};
    char letters[sizeof short_options + 2 * MAX_OPTIONS];
    size_t n = ARRAY_LENGTH(common_options), used = sizeof short_options - 1;
    memcpy(all, common_options, sizeof common_options);
    memcpy(letters, short_options, sizeof short_options);
    for (; own && own->name && n + 1 < MAX_OPTIONS; own++) {
        all[n++] = *own;
        if (own->val > TOOL_SHORT)
            used += (size_t)sprintf(letters + used, own->has_arg ? "%c:" : "%c",
                                    own->val - TOOL_SHORT);
    }
    opterr = 0;
    for (;;) {
        int option = getopt_long(argc, argv, letters, all, NULL);
        if (option == ':') { /* its value would have come next, so it is the last */
            tool_error("option '%s' needs a value", argv[argc - 1]);
            return '?';
        }
        if (option == '?') {
            const char letter[] = {'-', (char)optopt, '\0'};
            bool is_short = optopt > 0 && optopt < 256 && !strchr(letters, optopt);
            report_option(is_short ? letter : argv[optind - 1], all);
            return '?';
        }
        if (option == -1 || option >= TOOL_OWN)
            return option;
        if (option < 128 && strchr(letters + sizeof short_options - 1, option))
            return TOOL_SHORT + option;
        if (common_option(o, option) != STRATA_OK)
            return '?';
    }
}

bool tool_number(int64_t *out, const char *text, int64_t least, int64_t most,
                 const char *name)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end != text && !*end && !errno && value >= least && value <= most) {
        *out = value;
        return true;
    }
    tool_error("%s '%s': a number from %" PRId64 " to %" PRId64 " is needed", name, text,
               least, most);
    return false;
}

int tool_check_unused(const struct tool_command *c, const struct tool_options *o,
                      int uses)
{
    const struct {
        bool given;
        int use;
        const char *name;
    } options[] = {
        {o->n_set > 0, USES_NETWORK, "--set"},
        {o->n_define > 0, USES_NETWORK, "--define"},
        {o->costs != NULL, USES_NETWORK, "--costs"},
        {o->save_costs != NULL, USES_NETWORK, "--save-costs"},
        {o->measure_all, USES_NETWORK, "--measure-all"},
        {o->device != NULL, USES_DEVICE, "--device"},
        {o->n_plugins > 0, USES_PLUGINS, "--plugin"},
        {o->plugin_path != NULL, USES_PLUGINS, "--plugin-path"},
        {o->allow_untrusted, USES_PLUGINS, "--allow-untrusted-plugins"},
        {o->format != TABLE_TEXT, USES_FORMAT, "--format"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(options); i++)
        if (options[i].given && !(uses & options[i].use))
            return tool_usage(c, "%s has no effect here", options[i].name);
    return EXIT_OK;
}

int tool_check_output(const struct tool_command *c, const char *path)
{
    return table_format_parse(path) < 0
               ? EXIT_OK
               : tool_usage(c,
                            "-o '%s': a file is needed here, not a format; write ./%s "
                            "for a file of that name",
                            path, path);
}

int tool_help(const struct tool_command *c)
{
    const bool own = strstr(c->help, "  -o, --") != NULL;
    printf("Usage: strata %s %s\n%s.\n\n%s%s%s%s%s\nExamples:\n%s", c->name, c->usage,
           c->summary, c->help, c->help[0] ? "\n" : "", common_help,
           own ? long_format_help : format_help, last_help, c->examples);
    return EXIT_OK;
}
