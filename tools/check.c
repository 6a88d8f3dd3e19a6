/* SPDX-License-Identifier: Apache-2.0
 *
 * strata check: hold a plugin to the contract.
 */
#include "tools/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/cases.h"
#include "check/check.h"
#include "tools/tool.h"

enum {
    OPTION_LAYER = TOOL_OWN,
    OPTION_TEST,
    OPTION_IMPL,
    OPTION_FORMATS,
    OPTION_SHAPE,
    OPTION_ATTRS,
    OPTION_REPRODUCE,
    OPTION_LIMIT,
    OPTION_TAP,
    OPTION_JSON,
    OPTION_IN_PROCESS,
    OPTION_THOROUGH,
    OPTION_QUICK,
};

static const struct option options[] = {
    {"layer", required_argument, NULL, OPTION_LAYER},
    {"test", required_argument, NULL, OPTION_TEST},
    {"impl", required_argument, NULL, OPTION_IMPL},
    {"formats", required_argument, NULL, OPTION_FORMATS},
    {"shape", required_argument, NULL, OPTION_SHAPE},
    {"attrs", required_argument, NULL, OPTION_ATTRS},
    {"reproduce", required_argument, NULL, OPTION_REPRODUCE},
    {"time-limit", required_argument, NULL, OPTION_LIMIT},
    {"tap", no_argument, NULL, OPTION_TAP},
    {"json", no_argument, NULL, OPTION_JSON},
    {"in-process", no_argument, NULL, OPTION_IN_PROCESS},
    {"thorough", no_argument, NULL, OPTION_THOROUGH},
    {"quick", no_argument, NULL, OPTION_QUICK},
    {0},
};

#define MOST_ATTRS 32
#define LIMIT_S 60

struct arguments {
    struct check_options o;
    const char *attrs[MOST_ATTRS], *shapes[MOST_ATTRS];
    enum check_style style;
};

static bool whole_number(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    *out = n;
    return end != text && *end == '\0' && text[0] != '-' && n <= most;
}

static bool is_test(const char *name)
{
    const char *known;
    for (size_t i = 0; (known = check_test_name(i)); i++)
        if (strcmp(name, known) == 0)
            return true;
    return false;
}

/* An own option into `a`; the exit code. */
static int take(struct arguments *a, int option)
{
    struct harness_shape shapes[HARNESS_INPUTS];
    uint64_t number = 0;
    switch (option) {
    case OPTION_LAYER:
        a->o.layer = optarg;
        break;
    case OPTION_TEST:
        if (!is_test(optarg))
            return tool_usage(&tool_check, "there is no test '%s'; see --help", optarg);
        a->o.test = optarg;
        break;
    case OPTION_IMPL:
        a->o.impl = optarg;
        break;
    case OPTION_FORMATS:
        a->o.formats = optarg;
        break;
    case OPTION_SHAPE:
        if (cases_parse_shapes(optarg, shapes) < 0)
            return tool_usage(&tool_check, "--shape '%s': DIMS is needed, as 1x3x8x8",
                              optarg);
        if (a->o.n_shapes == MOST_ATTRS)
            return tool_usage(&tool_check, "more than %d --shape", MOST_ATTRS);
        a->shapes[a->o.n_shapes++] = optarg;
        break;
    case OPTION_ATTRS:
        if (a->o.n_attrs == MOST_ATTRS)
            return tool_usage(&tool_check, "more than %d --attrs", MOST_ATTRS);
        a->attrs[a->o.n_attrs++] = optarg;
        break;
    case OPTION_REPRODUCE:
        if (!whole_number(optarg, UINT64_MAX, &a->o.seed))
            return tool_usage(&tool_check, "'%s' is not a seed", optarg);
        break;
    case OPTION_LIMIT:
        if (!whole_number(optarg, 3600, &number) || number == 0)
            return tool_usage(&tool_check, "'%s' is not 1 to 3600 seconds", optarg);
        a->o.limit_ms = (int)number * 1000;
        break;
    case OPTION_TAP:
        a->style = CHECK_TAP;
        break;
    case OPTION_JSON:
        a->style = CHECK_JSON;
        break;
    case OPTION_IN_PROCESS:
        a->o.in_process = true;
        break;
    case OPTION_QUICK:
        a->o.quick = true;
        break;
    default:
        a->o.thorough = true;
    }
    return EXIT_OK;
}

static uint64_t fresh_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec) % 1000000000;
}

static int check_file(struct arguments *a, const struct tool_options *o)
{
    strata_error err = {0};
    struct check_summary summary = {0};
    char *path = realpath(a->o.file, NULL); /* plugin files are named in full */
    a->o.file = path ? path : a->o.file;
    a->o.attrs = a->attrs;
    a->o.shapes = a->shapes;
    a->o.others = o->plugins;
    a->o.n_others = o->n_plugins;
    a->o.plugin_path = o->plugin_path;
    a->o.allow_untrusted = o->allow_untrusted;
    a->o.device = o->device;
    if (o->format == TABLE_JSON || o->format == TABLE_JSONL)
        a->style = CHECK_JSON;
    struct check_output out = {.style = a->style, .options = &a->o};
    check_output_begin(&out);
    int status = check_module(&a->o, check_output_result, &out, &summary, &err);
    check_output_end(&out, &summary, status == STRATA_OK);
    free(path);
    if (status != STRATA_OK)
        return tool_fail(&err);
    return summary.failed ? EXIT_MISMATCH : EXIT_OK;
}

static int run_check(int argc, char **argv)
{
    struct tool_options o = {0};
    struct arguments a = {.o = {.seed = fresh_seed(), .limit_ms = LIMIT_S * 1000}};
    int option, code = EXIT_OK;
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        code = option == '?' ? EXIT_USAGE : take(&a, option);
        if (code != EXIT_OK)
            goto done;
    }
    if (o.help) {
        code = tool_help(&tool_check);
    } else if (argc - optind != 1) {
        code = tool_usage(&tool_check, "one plugin file is needed");
    } else {
        a.o.file = argv[optind];
        code =
            tool_check_unused(&tool_check, &o, USES_DEVICE | USES_PLUGINS | USES_FORMAT);
        if (code == EXIT_OK)
            code = check_file(&a, &o);
    }
done:
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_check = {
    .name = "check",
    .summary = "Hold a plugin to the contract: tables, values, memory, threads, streams",
    .usage = "FILE.so [OPTION...]",
    .help =
        "Every claim of the plugin's tables is tried, each test in a process of its "
        "own.\n"
        "A finding says what the contract asks, what happened, on which shape, and the\n"
        "command that shows it again. Exit status 1: something was found.\n\n"
        "Options:\n"
        "      --layer=NAME     only this layer\n"
        "      --test=NAME      only this test: load, attributes, shapes, round-trip,\n"
        "                       values, memory, streams, determinism, concurrency,\n"
        "                       leaks, errors\n"
        "      --impl=NAME      only this impl\n"
        "      --formats=IN->OUT  only these formats, as a finding writes them\n"
        "      --shape=DIMS     only this input shape (repeatable), as 1x3x8x8; ','\n"
        "                       between inputs of their own: 3x8,3x8x5x5\n"
        "      --attrs=TEXT     a case, as 'kernel = 3; pad = 1' (repeatable); without,\n"
        "                       attributes that work are searched for, and the layer's\n"
        "                       sections in FILE.ini beside FILE.so are cases, too\n"
        "      --reproduce=SEED the seed that a finding names\n"
        "      --time-limit=S   seconds for one test (default 60)\n"
        "      --thorough       more shapes\n"
        "      --quick          fewer shapes, a sample of formats of each\n"
        "      --tap            TAP, for Automake and other test drivers\n"
        "      --json           JSON, one object a test\n"
        "      --in-process     no child processes, for a debugger\n",
    .examples = "  strata check ./leaky_relu.so\n"
                "  strata check ./leaky_relu.so --tap\n"
                "  gdb --args strata check ./leaky_relu.so --in-process --test memory\n",
    .run = run_check,
};
