/* SPDX-License-Identifier: Apache-2.0
 *
 * strata run: files in, one execution, tables and files out.
 */
#include "tools/run/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    OPTION_INPUT = TOOL_OWN,
    OPTION_OUTPUT,
    OPTION_TOP,
    OPTION_ITEM,
    OPTION_REPEAT,
    OPTION_DIM
};

static const struct option options[] = {
    {"input", required_argument, NULL, OPTION_INPUT},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"top", required_argument, NULL, OPTION_TOP},
    {"item", required_argument, NULL, OPTION_ITEM},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"dim", required_argument, NULL, OPTION_DIM},
    {0},
};

enum { MOST = 1000000000 }; /* of every number */

struct run_options {
    struct tool_options common;
    int64_t top, repeat;
};

static bool own_option(struct run_options *o, int option)
{
    switch (option) {
    case OPTION_TOP:
        return tool_number(&o->top, optarg, 1, MOST, "--top");
    case OPTION_ITEM:
        return tool_number(&o->common.item, optarg, 0, MOST, "--item");
    case OPTION_REPEAT:
        return tool_number(&o->repeat, optarg, 1, MOST, "--repeat");
    case OPTION_DIM:
        return tool_dim(&o->common, optarg);
    case OPTION_INPUT:
        return tool_input(&o->common, optarg);
    case OPTION_OUTPUT:
        return tool_output(&o->common, optarg);
    }
    return false;
}

static int read_inputs(strata_context *c, const strata_engine *e,
                       const struct run_options *o, strata_error *err)
{
    bool *given = zalloc(e->execution->n_bindings, sizeof *given, "inputs", err);
    int status = given ? run_read_given(c, e, &o->common, given, err) : STRATA_ENOMEM;
    free(given);
    return status;
}

/* One table for all outputs. */
static int print_outputs(strata_context *c, const strata_engine *e,
                         const struct run_options *o, strata_error *err)
{
    const struct execution *x = e->execution;
    static const char *const columns[] = {"output", "image", "rank",
                                          "index",  "value", "label"};
    struct table t;
    int status = STRATA_OK;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0x1E);
    for (size_t i = x->n_inputs; i < x->n_bindings && status == STRATA_OK; i++)
        status = run_add_top(&t, c, e, (int)i, (int)o->top, err);
    if (status == STRATA_OK)
        table_print(&t, o->common.format, stdout);
    table_close(&t);
    return status;
}

static int write_outputs(strata_context *c, const strata_engine *e,
                         const struct run_options *o, strata_error *err)
{
    int status = STRATA_OK;
    if (o->common.n_outputs == 0)
        return print_outputs(c, e, o, err);
    for (size_t i = 0; i < o->common.n_outputs && status == STRATA_OK; i++) {
        int index;
        const char *file;
        status =
            run_find_binding(e->network, o->common.outputs[i], false, &index, &file, err);
        if (status == STRATA_OK)
            status = run_write_output(c, e, index, file, err);
    }
    return status;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The fastest of the repetitions: what the machine can do when it is let. */
static int execute(strata_context *c, long repeat, strata_error *err)
{
    double best = 0;
    for (long i = 0; i < repeat; i++) {
        double start = now_ms();
        int status = strata_context_run(c, err);
        if (status != STRATA_OK)
            return status;
        double took = now_ms() - start;
        best = i == 0 || took < best ? took : best;
    }
    log_line(STRATA_LOG_INFO, "ran in %.3f ms%s", best,
             repeat > 1 ? " (fastest repetition)" : "");
    return STRATA_OK;
}

static int run_network(const struct run_options *o, const char *path, strata_error *err)
{
    struct tool_session s = {0};
    strata_context *c = NULL;
    int status = tool_open_engine(&s, &o->common, path, err);
    if (status == STRATA_OK)
        status = strata_context_create(&c, s.engine, s.handle, err);
    if (status == STRATA_OK)
        status = run_set_sizes(c, &o->common, err);
    if (status == STRATA_OK)
        status = read_inputs(c, s.engine, o, err);
    if (status == STRATA_OK)
        status = execute(c, o->repeat, err);
    if (status == STRATA_OK)
        status = write_outputs(c, s.engine, o, err);
    strata_context_destroy(c);
    tool_close(&s);
    return status;
}

static int run_run(int argc, char **argv)
{
    struct run_options o = {
        .common = {.inputs_needed = true, .outputs_named = true, .outputs_piped = true},
        .top = 5,
        .repeat = 1};
    o.common.look = run_look;
    o.common.look_of = &o.common;
    strata_error err;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o.common, argc, argv, options)) != -1)
        if (option == '?' || !own_option(&o, option)) {
            code = EXIT_USAGE;
            goto done;
        }
    if (o.common.help) {
        code = tool_help(&tool_run);
        goto done;
    }
    for (int i = optind + 1; i < argc; i++) {
        if (!tool_input(&o.common, argv[i])) {
            code = EXIT_USAGE;
            goto done;
        }
    }
    if (argc - optind < 1)
        code = tool_usage(&tool_run, "a network file is needed");
    else if (run_network(&o, argv[optind], &err) != STRATA_OK)
        code = tool_fail(&err);
done:
    tool_options_free(&o.common);
    return code;
}

const struct tool_command tool_run = {
    .name = "run",
    .summary = "Run a network on files and print or save its outputs",
    .usage = "NET.ini|NET.engine [[INPUT=]FILE...] [OPTION...]",
    .help =
        "Files are .npy, images as the INI's [input] section prepares them (PGM, PPM,\n"
        "PNG, JPEG, MNIST IDX), or raw elements in the input's format. A .npy file has\n"
        "the input's shape; only ones in front may be left out or added. Names of\n"
        "[profile] with several sizes have those of the .npy files, else their "
        "largest.\n\n"
        "Options:\n"
        "      --input=[NAME=]FILE   an input; NAME=random:SEED for random values\n"
        "      --item=N              image of an IDX file (default 0)\n"
        "      --output=[NAME=]FILE  save an output as .npy, FP64, integers and BOOL as\n"
        "                            they are, all else float32, instead of printing "
        "('-':\n"
        "                            on standard output)\n"
        "      --top=N               largest values of each image, NaN first (default "
        "5)\n"
        "      --dim=NAME=SIZE       the size of a name of [profile], as T=77\n"
        "      --repeat=N            run N times; -v shows the fastest\n",
    .examples =
        "  strata run examples/digits/digits.ini examples/digits/images/3-011.pgm\n"
        "  strata run net.ini x=x.npy --output prob=prob.npy\n"
        "  strata run net.ini photo.jpg --top 3 -o json\n",
    .run = run_run,
};
