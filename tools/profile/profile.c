/* SPDX-License-Identifier: Apache-2.0
 *
 * strata profile: the time of each layer, with the user's names.
 */
#include "tools/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "tools/run/run.h"

enum {
    OPTION_RUNS = TOOL_OWN,
    OPTION_SORT,
    OPTION_TOP,
    OPTION_RANGES,
    OPTION_TRACE,
    OPTION_STREAMS,
    OPTION_TRACE_RUNS,
    OPTION_HTML,
    OPTION_SAVE,
    OPTION_INPUT,
    OPTION_DIM,
};

static const struct option options[] = {
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"sort", required_argument, NULL, OPTION_SORT},
    {"top", required_argument, NULL, OPTION_TOP},
    {"ranges", no_argument, NULL, OPTION_RANGES},
    {"nvtx", no_argument, NULL, OPTION_RANGES},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"streams", required_argument, NULL, OPTION_STREAMS},
    {"trace-runs", required_argument, NULL, OPTION_TRACE_RUNS},
    {"html", required_argument, NULL, OPTION_HTML},
    {"exportProfile", required_argument, NULL, OPTION_SAVE},
    {"input", required_argument, NULL, OPTION_INPUT},
    {"dim", required_argument, NULL, OPTION_DIM},
    {0},
};

struct arguments {
    struct tool_options common;
    int64_t runs, top, streams, trace_runs;
    bool by_time, ranges;
    const char *trace, *html, *save;
};

static bool own_option(struct arguments *a, int option)
{
    switch (option) {
    case OPTION_RUNS:
        return tool_number(&a->runs, optarg, 1, 1000000, "--runs");
    case OPTION_TOP:
        return tool_number(&a->top, optarg, 1, 1000000, "--top");
    case OPTION_STREAMS:
        return tool_number(&a->streams, optarg, 1, 64, "--streams");
    case OPTION_TRACE_RUNS:
        return tool_number(&a->trace_runs, optarg, 1, 1000, "--trace-runs");
    case OPTION_SORT:
        a->by_time = strcmp(optarg, "time") == 0;
        if (a->by_time || strcmp(optarg, "order") == 0)
            return true;
        tool_error("--sort '%s': time or order", optarg);
        return false;
    case OPTION_RANGES:
        a->ranges = true;
        return true;
    case OPTION_TRACE:
        a->trace = optarg;
        return tool_output(&a->common, optarg);
    case OPTION_HTML:
        a->html = optarg;
        return tool_output(&a->common, optarg);
    case OPTION_SAVE:
        a->save = optarg;
        return tool_output(&a->common, optarg);
    case OPTION_INPUT:
        return tool_input(&a->common, optarg);
    case OPTION_DIM:
        return tool_dim(&a->common, optarg);
    }
    return false;
}

static int trace(const struct arguments *a, const struct tool_session *s,
                 strata_error *err)
{
    char device[32] = "host";
    if (s->handle->properties.kind == STRATA_CUDA)
        snprintf(device, sizeof device, "cuda:%d", s->handle->properties.index);
    return profile_trace(s->engine, &a->common, device, (size_t)a->streams,
                         (size_t)a->trace_runs, a->trace, err);
}

static int profile_network(const struct arguments *a, const char *path, strata_error *err)
{
    const struct profile_print how = {a->common.format, a->by_time, (size_t)a->top};
    struct tool_session s = {0};
    struct profile p = {0};
    strata_context *c = NULL;
    int status = tool_open_engine(&s, &a->common, path, err);
    if (status == STRATA_OK)
        status = strata_context_create(&c, s.engine, s.handle, err);
    if (status == STRATA_OK)
        c->starts_over = true;
    if (status == STRATA_OK)
        status = run_set_sizes(c, &a->common, err);
    if (status == STRATA_OK)
        status = run_read_inputs(c, s.engine, &a->common, err);
    if (status == STRATA_OK)
        status = profile_measure(&p, c, (size_t)a->runs, a->ranges, err);
    if (status == STRATA_OK && a->save)
        status = profile_write(&p, a->save, err);
    if (status == STRATA_OK && a->html)
        status = html_write(&p, a->html, err);
    if (status == STRATA_OK && a->trace)
        status = trace(a, &s, err);
    if (status == STRATA_OK)
        profile_print(&p, &how);
    profile_free(&p);
    strata_context_destroy(c);
    tool_close(&s);
    return status;
}

static int run_profile(int argc, char **argv)
{
    struct arguments a = {.runs = PROFILE_RUNS, .streams = 1, .trace_runs = 3};
    a.common.look = run_look;
    a.common.look_of = &a.common;
    strata_error err;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&a.common, argc, argv, options)) != -1)
        if (option == '?' || !own_option(&a, option)) {
            code = EXIT_USAGE;
            goto done;
        }
    if (a.common.help)
        code = tool_help(&tool_profile);
    else if (argc - optind != 1)
        code = tool_usage(&tool_profile, "one network file is needed");
    else if (profile_network(&a, argv[optind], &err) != STRATA_OK)
        code = tool_fail(&err);
done:
    tool_options_free(&a.common);
    return code;
}

const struct tool_command tool_profile = {
    .name = "profile",
    .summary = "Time each layer, and hold it against the device's ceilings",
    .usage = "NET.ini|NET.engine [OPTION...]",
    .help =
        "Options:\n"
        "      --runs=N              watched runs; medians are shown (default 50)\n"
        "      --sort=time|order     slowest first, or as they run (default)\n"
        "      --top=N               so many rows\n"
        "      --input=[NAME=]FILE   an input as in `strata run`; random by default\n"
        "      --dim=NAME=SIZE       the size of a name of [profile], as T=77\n"
        "      --html=FILE           a report: layers, memory, plan, impls; one file\n"
        "      --trace=FILE          some runs for Perfetto (ui.perfetto.dev) or Chrome\n"
        "      --streams=N           streams of the trace (default 1)\n"
        "      --trace-runs=N        runs of each (default 3)\n"
        "      --ranges              name each layer's launches to the device's tools:\n"
        "                            NVTX, for nsys and ncu\n\n"
        "The sum of the layers is above the time of a run, as an event stands behind\n"
        "each; both are shown. trtexec's --exportProfile=FILE writes its JSON.\n",
    .examples = "  strata profile net.ini --sort time --top 10\n"
                "  strata profile net.ini --device cuda --html net.html\n"
                "  strata profile net.ini --trace net.json --streams 2\n"
                "  nsys profile strata profile net.ini --device cuda --ranges\n",
    .run = run_profile,
};
