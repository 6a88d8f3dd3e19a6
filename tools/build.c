/* SPDX-License-Identifier: Apache-2.0
 *
 * strata build: a network to an engine file.
 */
#include <inttypes.h>

#include "tools/deploy/deploy.h"
#include "tools/explain/explain.h"

#define TRIALS UINT64_C(15000000000) /* ns: an engine is built once and run often */

enum { OPTION_OUTPUT = TOOL_SHORT + 'o', OPTION_KEY = TOOL_OWN };

static const struct option options[] = {
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"key", no_argument, NULL, OPTION_KEY},
    {0},
};

/* What was written, from the file itself. */
static int print_file(const char *path, strata_error *err)
{
    struct engine_file f;
    int status = engine_file_open(&f, path, err);
    if (status != STRATA_OK)
        return status;
    tool_print("%s: %" PRIu64 " bytes, content hash ", path, f.info.size);
    for (size_t i = 0; i < sizeof f.info.sha256; i++)
        tool_print("%02x", f.info.sha256[i]);
    tool_print("\n");
    engine_file_close(&f);
    return STRATA_OK;
}

static int build(const struct tool_options *o, const char *ini, const char *path)
{
    struct tool_session s = {0};
    strata_error err;
    error_clear(&err);
    int status = tool_refuse_engine(ini, &err);
    if (status == STRATA_OK)
        status = tool_open_engine(&s, o, ini, &err);
    if (status == STRATA_OK)
        status = strata_engine_save(s.engine, path, &err);
    const bool quiet = log_level() <= STRATA_LOG_ERROR;
    if (status == STRATA_OK && !quiet)
        status = print_file(path, &err);
    if (status == STRATA_OK && !quiet)
        explain_print_summary(s.engine);
    tool_close(&s);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static int print_key(const struct tool_options *o, const char *ini)
{
    struct tool_session s = {0};
    strata_error err;
    char key[65];
    error_clear(&err);
    int status = tool_open_network(&s, o, ini, &err);
    if (status == STRATA_OK)
        status = tool_open_device(&s, o, &err);
    if (status == STRATA_OK)
        status = deploy_key(key, &s, &err);
    if (status == STRATA_OK)
        tool_print("%s\n", key);
    tool_close(&s);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static int run_build(int argc, char **argv)
{
    struct tool_options o = {.trials = TRIALS};
    const char *path = NULL;
    bool key = false;
    int option, code = EXIT_USAGE;
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?')
            goto done;
        if (option == OPTION_OUTPUT)
            path = optarg;
        key = key || option == OPTION_KEY;
    }
    if (!tool_output(&o, path))
        goto done;
    if (o.help)
        code = tool_help(&tool_build);
    else if (argc - optind != 1)
        code = tool_usage(&tool_build, "one network file is needed");
    else if (key && path)
        code = tool_usage(&tool_build, "--key writes no file: leave out --output");
    else if (key)
        code = print_key(&o, argv[optind]);
    else if (!path)
        code = tool_usage(&tool_build, "--output=FILE is needed");
    else if ((code = tool_check_output(&tool_build, path)) == EXIT_OK)
        code = build(&o, argv[optind], path);
done:
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_build = {
    .name = "build",
    .summary = "Plan a network and write it as an engine file",
    .usage = "NET.ini -o NET.engine [OPTION...]",
    .help =
        "The engine holds the network, its plan and its weights: it runs without the\n"
        "INI file, the weights file and any search, on the device it was built for and\n"
        "with the plugins it was built with. The file is replaced at once or not at\n"
        "all; the same network on the same machine gives the same bytes, unless costs\n"
        "are measured anew (--costs=FILE keeps them) or, on a GPU, other plans tried in\n"
        "whole runs for 15 s (--set build.trials=0s: not). The content hash tells engines "
        "apart;\n"
        "it leaves out its own bytes, so that sha256sum prints another.\n\n"
        "Options:\n"
        "  -o, --output=FILE     the engine file; needed. A name that -o takes as a "
        "format\n"
        "                        elsewhere (json) is refused: write ./json\n"
        "      --key             build nothing: print the engine's key, 64 hex digits of\n"
        "                        network, weights, plugins, device and cost file, under\n"
        "                        which a cache of engines keeps it\n",
    .examples = "  strata build net.ini -o net.engine\n"
                "  strata build net.ini -o net.engine -d cuda --save-costs=h200.costs\n"
                "  strata build net.ini --key -d cuda --costs=h200.costs\n"
                "  strata run net.engine x=x.npy\n",
    .run = run_build,
};
