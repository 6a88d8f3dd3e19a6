/* SPDX-License-Identifier: Apache-2.0
 *
 * strata import: an ONNX model to a network's files.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/model/data_set.h"
#include "core/alloc.h"
#include "tools/import/model.h"

enum {
    OPTION_OUTPUT = TOOL_SHORT + 'o',
    OPTION_SHAPE = TOOL_OWN,
    OPTION_DIM,
    OPTION_CONSTANT,
    OPTION_STATE,
    OPTION_CACHE,
    OPTION_NO_PATTERNS,
    OPTION_KEEP_GOING,
    OPTION_REPORT,
    OPTION_CHECK,
    OPTION_OPERATORS,
};

static const struct option options[] = {
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"shape", required_argument, NULL, OPTION_SHAPE},
    {"dim", required_argument, NULL, OPTION_DIM},
    {"constant", required_argument, NULL, OPTION_CONSTANT},
    {"state", required_argument, NULL, OPTION_STATE},
    {"cache", required_argument, NULL, OPTION_CACHE},
    {"no-patterns", no_argument, NULL, OPTION_NO_PATTERNS},
    {"keep-going", no_argument, NULL, OPTION_KEEP_GOING},
    {"report", required_argument, NULL, OPTION_REPORT},
    {"check", required_argument, NULL, OPTION_CHECK},
    {"operators", no_argument, NULL, OPTION_OPERATORS},
    {0},
};

struct wishes {
    struct tool_options common;
    struct model_options model;
    const char *ini, *check;
    bool keep_going, operators;
};

/* ---- what is missing -----------------------------------------------------------------
 */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A table of the operators that have no layer, with the number of their nodes. */
static int print_missing(const struct import *im, int format)
{
    static const char *const columns[] = {"operator", "nodes"};
    struct table t;
    size_t n, n_ops = 0;
    const struct import_refusal *all = import_refusals(im, &n);
    const char **ops = calloc(n + 1, sizeof *ops);
    if (!ops)
        return tool_error("out of memory");
    for (size_t i = 0; i < n; i++)
        if (all[i].op)
            ops[n_ops++] = all[i].op;
    qsort(ops, n_ops, sizeof *ops, compare_texts);
    table_open(&t, columns, 2, 2);
    for (size_t i = 0, k; i < n_ops; i = k) {
        for (k = i; k < n_ops && strcmp(ops[k], ops[i]) == 0;)
            k++;
        table_cell(&t, "%s", ops[i]);
        table_cell(&t, "%zu", k - i);
    }
    table_print(&t, format, stdout);
    table_close(&t);
    free(ops);
    return EXIT_USAGE;
}

/* ---- the command ---------------------------------------------------------------------
 */

static int write_report(const struct import *im, const char *path, strata_error *err)
{
    char *text;
    size_t size;
    int status = import_report(im, &text, &size, err);
    if (status == STRATA_OK)
        status = tool_write(path, text, size, err);
    free(text);
    return status;
}

static int check_data(const struct wishes *w, const char *path, strata_registry *registry,
                      strata_error *err)
{
    struct data_set_result result;
    const struct import_options import = model_import_options(&w->model);
    const struct data_set_options o = {.model = path,
                                       .folder = w->check,
                                       .device = w->common.device,
                                       .import = &import,
                                       .bake = true};
    int status = data_set_check(&result, &o, registry, err);
    tool_print("%s: %lld values, %lld wrong; the worst is %.3g of what is allowed\n",
               w->check, (long long)result.values, (long long)result.wrong, result.worst);
    return status;
}

/* What stopped the import is told rather than what stopped its report. */
static int report(const struct import *im, const char *path, int status,
                  strata_error *err)
{
    strata_error own = {0};
    const int written = write_report(im, path, &own);
    if (status == STRATA_OK && written != STRATA_OK)
        *err = own;
    return status == STRATA_OK ? written : status;
}

static int import_one(const struct wishes *w, const char *path)
{
    struct tool_session s = {0};
    const struct onnx_model *model = NULL;
    struct import *im = NULL;
    strata_error err;
    error_clear(&err);
    size_t n_refused;
    int code = EXIT_OK, status = tool_open_registry(&s, &w->common, &err);
    if (status == STRATA_OK)
        status = model_import(path, w->ini, &w->model, s.registry, &model, &im, &err);
    if (im && w->model.report && status != STRATA_ENOMEM) /* else it lacks nodes */
        status = report(im, w->model.report, status, &err);
    if (status == STRATA_OK && w->check) {
        status = check_data(w, path, s.registry, &err);
        code = status == STRATA_EINVAL ? EXIT_MISMATCH : EXIT_OK;
    }
    if (status != STRATA_OK) {
        const int failed = tool_fail(&err);
        code = code == EXIT_OK ? failed : code;
    }
    import_refusals(im, &n_refused);
    if (n_refused && w->keep_going)
        code = print_missing(im, w->common.format);
    import_free(im);
    onnx_close(model);
    tool_close(&s);
    return code;
}

static int take_option(struct wishes *w, int option)
{
    strata_error err;
    error_clear(&err);
    switch (option) {
    case OPTION_OUTPUT:
        w->ini = optarg;
        break;
    case OPTION_SHAPE:
        model_add_shape(&w->model, optarg, &err);
        break;
    case OPTION_DIM:
        model_add_symbol(&w->model, optarg, &err);
        break;
    case OPTION_CONSTANT:
        model_add_constant(&w->model, optarg, &err);
        break;
    case OPTION_STATE:
        model_add_state(&w->model, optarg, &err);
        break;
    case OPTION_CACHE:
        model_set_cache(&w->model, optarg, &err);
        break;
    case OPTION_NO_PATTERNS:
        w->model.import.no_patterns = true;
        break;
    case OPTION_KEEP_GOING:
        w->keep_going = true;
        break;
    case OPTION_OPERATORS:
        w->operators = true;
        break;
    case OPTION_REPORT:
        w->model.report = optarg;
        break;
    case OPTION_CHECK:
        w->check = optarg;
        break;
    default:
        return EXIT_USAGE; /* reported */
    }
    return err.status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static int run_import(int argc, char **argv)
{
    struct wishes w = {0};
    int option, code = EXIT_OK;
    while (code == EXIT_OK &&
           (option = tool_next_option(&w.common, argc, argv, options)) != -1)
        code = take_option(&w, option);
    if (code != EXIT_OK)
        ;
    else if (w.common.help)
        code = tool_help(&tool_import);
    else if (w.operators && (w.check || w.model.report || w.keep_going))
        code = tool_usage(&tool_import, "--operators only lists, and stands alone");
    else if (w.operators && argc - optind <= 1)
        code = operators_print(argv[optind],
                               w.ini ? table_format_parse(w.ini) : w.common.format);
    else if (argc - optind != 1)
        code = tool_usage(&tool_import, "one ONNX model is needed");
    else if (w.check && (w.model.n_states || w.model.import.cache))
        code = tool_usage(&tool_import, "--check compares outputs; a state is none");
    else if (!w.ini && !w.check && !w.model.report && !w.keep_going)
        code = tool_usage(&tool_import, "--output=FILE is needed");
    else if (!w.ini || (code = tool_check_output(&tool_import, w.ini)) == EXIT_OK)
        code = import_one(&w, argv[optind]);
    model_options_free(&w.model);
    tool_options_free(&w.common);
    return code;
}

const struct tool_command tool_import = {
    .name = "import",
    .summary = "Make a network of an ONNX model",
    .usage = "MODEL.onnx -o NET.ini [OPTION...]",
    .help =
        "Writes NET.ini, which is meant to be read and edited, and its weights beside "
        "it\n"
        "as NET.safetensors. Dims that the model leaves free and gives a name stay free "
        "in\n"
        "the network, [profile], where it is the same for every size; where it is not, "
        "a\n"
        "warning says why. Every operator that cannot be imported is named, with the "
        "reason;\n"
        "docs/onnx.md lists those that can. Other commands take MODEL.onnx, too: they\n"
        "import it to the user's cache.\n\n"
        "Options:\n"
        "  -o, --output=FILE     the network; the old files are replaced\n"
        "      --shape=NAME=DIMS the dims of an input: x=1x3x224x224 (repeatable)\n"
        "      --dim=NAME=SIZES  the sizes of a dim that has a name: a range, and those "
        "to be\n"
        "                        fast at, length=1..512:128; a list, batch=1,8,32, up to "
        "the\n"
        "                        last; or one, length=128 (repeatable)\n"
        "      --constant=NAME=FILE  an input that is a constant here, from an .npy or "
        "a\n"
        "                        tensor's .pb file; or 'true', 'false', an integer, a "
        "list\n"
        "                        of such, 1,3 (repeatable)\n"
        "      --state=OUTPUT=INPUT  an output that is the input's value in the next "
        "run: a\n"
        "                        [state] of the network (repeatable)\n"
        "      --cache=N         caches of a decoder's keys and values are states with "
        "room\n"
        "                        for N tokens, and its only input are tokens\n"
        "      --no-patterns     a layer for each operator: nothing is put together\n"
        "      --keep-going      list all operators that have no layer, with the number\n"
        "                        of their nodes\n"
        "      --report=FILE     what became of each node, as JSON ('-': standard "
        "output)\n"
        "      --operators       print the operators that can be imported, or those of "
        "MODEL.onnx\n"
        "                        and what they become, and no more; -o is then a format: "
        "md,\n"
        "                        csv, json, jsonl\n"
        "      --check=DIR       run the network on input_K.pb of the folder, and "
        "compare\n"
        "                        with output_K.pb\n\n"
        "Exit status: 0 imported (and equal), 1 different, 2 it cannot be imported.\n",
    .examples = "  strata import resnet50.onnx -o resnet50.ini\n"
                "  strata import bert.onnx -o bert.ini --dim length=1..512:128\n"
                "  strata import voice.onnx -o voice.ini --state=h_next=h "
                "--state=c_next=c\n"
                "  strata import decoder.onnx -o decoder.ini --cache=4096\n"
                "  strata import model.onnx --check test_data_set_0\n"
                "  strata run model.onnx photo.jpg\n",
    .run = run_import,
};
