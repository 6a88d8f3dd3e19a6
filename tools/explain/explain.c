/* SPDX-License-Identifier: Apache-2.0
 *
 * strata explain: what the planner chose for each layer, and why each reformat stands.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "io/stream.h"
#include "engine/file/stored.h"
#include "io/file.h"

enum {
    OPTION_REFUSED = TOOL_OWN,
    OPTION_IMPLS,
    OPTION_FUSIONS,
    OPTION_TENSORS,
    OPTION_REFORMATS,
    OPTION_SIZES,
    OPTION_QUANTISED,
    OPTION_DOT,
    OPTION_SVG,
    OPTION_SAVE,
    OPTION_DIFF,
    OPTION_VERIFY,
};

static const struct option options[] = {
    {"refused", no_argument, NULL, OPTION_REFUSED},
    {"impls", required_argument, NULL, OPTION_IMPLS},
    {"fusions", no_argument, NULL, OPTION_FUSIONS},
    {"tensors", no_argument, NULL, OPTION_TENSORS},
    {"reformats", no_argument, NULL, OPTION_REFORMATS},
    {"sizes", no_argument, NULL, OPTION_SIZES},
    {"quantised", no_argument, NULL, OPTION_QUANTISED},
    {"dot", required_argument, NULL, OPTION_DOT},
    {"svg", required_argument, NULL, OPTION_SVG},
    {"save-plan", required_argument, NULL, OPTION_SAVE},
    {"diff", no_argument, NULL, OPTION_DIFF},
    {"verify", no_argument, NULL, OPTION_VERIFY},
    {0},
};

struct wishes {
    bool refused, fusions, tensors, reformats, sizes, quantised, diff, verify;
    const char *impls;            /* of this layer */
    const char *svg, *dot, *save; /* files */
};

static void note_option(struct wishes *w, int option)
{
    w->refused |= option == OPTION_REFUSED;
    w->fusions |= option == OPTION_FUSIONS;
    w->tensors |= option == OPTION_TENSORS;
    w->reformats |= option == OPTION_REFORMATS;
    w->sizes |= option == OPTION_SIZES;
    w->quantised |= option == OPTION_QUANTISED;
    w->diff |= option == OPTION_DIFF;
    w->verify |= option == OPTION_VERIFY;
    if (option == OPTION_IMPLS)
        w->impls = optarg;
    if (option == OPTION_SVG)
        w->svg = optarg;
    if (option == OPTION_DOT)
        w->dot = optarg;
    if (option == OPTION_SAVE)
        w->save = optarg;
}

static bool is_dash(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static bool note_files(struct tool_options *o, const struct wishes *w)
{
    const char *const files[] = {w->svg, w->dot, w->save};
    bool ok = true;
    for (size_t i = 0; i < ARRAY_LENGTH(files) && ok; i++)
        ok = is_dash(files[i]) || tool_output(o, files[i]);
    return ok;
}

static bool has_tables(const struct wishes *w)
{
    return w->refused || w->fusions || w->tensors || w->reformats || w->sizes ||
           w->quantised;
}

/* What would be ignored is refused. */
static int check_wishes(const struct wishes *w, int format)
{
    const int piped = is_dash(w->svg) + is_dash(w->dot) + is_dash(w->save);
    const bool others = has_tables(w) || w->verify || w->impls;
    const bool text = format == TABLE_TEXT || format == TABLE_MARKDOWN;
    if (w->diff && (others || w->svg || w->dot || w->save))
        return tool_usage(&tool_explain, "--diff takes no other report");
    if (piped > 1 || (piped && (others || format != TABLE_TEXT)))
        return tool_usage(&tool_explain,
                          "'-' takes the whole of standard output: one file, and no "
                          "other report");
    if (w->impls && (has_tables(w) || w->verify))
        return tool_usage(&tool_explain, "--impls takes no other report");
    if (w->verify && !text)
        return tool_usage(&tool_explain, "--verify prints a sentence, which has no such "
                                         "format");
    return EXIT_OK;
}

/* ---- files
 * ----------------------------------------------------------------------------- */

/* Standard output holds a file, so that no table goes there too. */
static bool is_piped(const struct wishes *w)
{
    return is_dash(w->svg) || is_dash(w->dot) || is_dash(w->save);
}

static int save_plan(const char *path, const json_t *report, strata_error *err)
{
    const size_t flags = JSON_INDENT(1) | JSON_SORT_KEYS;
    if (is_dash(path))
        return tool_print_json(report, flags) == EXIT_OK
                   ? STRATA_OK
                   : error_no_memory(err, 0, "a saved plan");
    char *text = json_dumps(report, flags);
    int status = text ? tool_write(path, text, strlen(text), err)
                      : error_no_memory(err, 0, "a saved plan");
    free(text);
    return status;
}

static int save_svg(const char *path, const strata_engine *e, const struct explain *x,
                    strata_error *err)
{
    struct graph g;
    char *text = NULL;
    size_t size = 0;
    int status = graph_make(&g, e, x, err);
    if (status != STRATA_OK)
        return status;
    FILE *f = text_stream(&text, &size);
    status = f ? graph_write_svg(&g, e, f, err) : error_no_memory(err, 0, "a drawing");
    if (f && !text_finish(f, &text) && status == STRATA_OK)
        status = error_no_memory(err, 0, "a drawing");
    if (status == STRATA_OK)
        status = tool_write(path, text, size, err);
    free(text);
    graph_free(&g);
    return status;
}

static int save_dot(const char *path, const strata_engine *e, const struct explain *x,
                    strata_error *err)
{
    struct graph g;
    int status = graph_make(&g, e, x, err);
    if (status != STRATA_OK)
        return status;
    status = graph_save_dot(&g, e, path, err);
    graph_free(&g);
    return status;
}

/* ---- reports
 * --------------------------------------------------------------------------- */

static int print_tables(const strata_engine *e, const struct explain *x,
                        const struct wishes *w, int format, strata_error *err)
{
    bool text = format == TABLE_TEXT || format == TABLE_MARKDOWN;
    bool steps = text || !has_tables(w);
    int status = steps ? explain_print_steps(e, format, err) : STRATA_OK;
    if (status != STRATA_OK)
        return status;
    if (text) {
        explain_print_summary(e);
        explain_print_merge_summary(e);
        explain_print_mix_summary(e);
    }
    if (w->tensors) {
        fputs(text ? "\n" : "", stdout);
        explain_print_tensors(e, format);
    }
    if (w->reformats) {
        fputs(text ? "\n" : "", stdout);
        explain_print_reformats(e, x, format);
    }
    if (w->fusions) {
        fputs(text ? "\n" : "", stdout);
        explain_print_fusions(e, format);
        if (text)
            explain_print_merges(e, format);
    }
    if (w->refused) {
        fputs(text ? "\n" : "", stdout);
        explain_print_refused(e, format);
    }
    if (w->quantised) {
        fputs(text ? "\n" : "", stdout);
        status = explain_print_quantised(e, format, err);
        if (status == STRATA_OK && text)
            explain_print_mixes(e, format);
    }
    if (status == STRATA_OK && (w->sizes || (text && e->network->n_symbols > 0))) {
        fputs(text ? "\n" : "", stdout);
        status = explain_print_sizes(e, format, err);
    }
    return status;
}

/* An engine from a file has the report of its build: the alternatives are gone. */
static int show_loaded(const strata_engine *e, const struct wishes *w, int format,
                       strata_error *err)
{
    bool json = format == TABLE_JSON || format == TABLE_JSONL;
    bool text = format == TABLE_TEXT || format == TABLE_MARKDOWN;
    struct wishes tables = *w;
    json_t *report = NULL;
    if (w->refused || w->verify || w->impls)
        return error_set(err, STRATA_EINVAL,
                         "%s: %s needs what was not chosen, which an engine file does "
                         "not hold; give the network's INI file",
                         e->network->path,
                         w->refused  ? "--refused"
                         : w->verify ? "--verify"
                                     : "--impls");
    int status = engine_section_json(&report, &e->stored->file, SECTION_REPORT, err);
    if (status == STRATA_OK && w->save)
        status = save_plan(w->save, report, err);
    if (status == STRATA_OK && w->svg)
        status = save_svg(w->svg, e, NULL, err);
    if (status == STRATA_OK && w->dot)
        status = save_dot(w->dot, e, NULL, err);
    tables.reformats = false;
    if (status != STRATA_OK || is_piped(w))
        goto done;
    if (format == TABLE_JSON)
        tool_print_json(report, JSON_INDENT(1)), fputc('\n', stdout);
    else if (json)
        report_print_lines(report);
    else {
        if (text || !w->reformats)
            status = print_tables(e, NULL, &tables, format, err);
        if (w->reformats)
            report_print_reformats(report, format);
    }
done:
    json_decref(report);
    return status;
}

static int show(const strata_engine *e, const struct wishes *w, int format,
                strata_error *err)
{
    if (e->stored)
        return show_loaded(e, w, format, err);
    bool json = format == TABLE_JSON || format == TABLE_JSONL;
    struct explain *x = NULL;
    json_t *report = NULL;
    const struct planner *p = e->planner;
    int status = STRATA_OK;
    if (json || w->reformats || w->save || w->svg || w->dot)
        status = explain_plan(&x, &p->model->problem, &p->plan_options, p->plan, err);
    if (status == STRATA_OK && (json || w->save) &&
        !(report = explain_json(p, e->execution, x, e->weight_bytes)))
        status = error_no_memory(err, 0, "the report");
    if (status == STRATA_OK && w->save)
        status = save_plan(w->save, report, err);
    if (status == STRATA_OK && w->svg)
        status = save_svg(w->svg, e, x, err);
    if (status == STRATA_OK && w->dot)
        status = save_dot(w->dot, e, x, err);
    if (status != STRATA_OK || is_piped(w))
        goto done;
    if (w->impls)
        status = explain_print_impls(e, w->impls, format, err);
    else if (format == TABLE_JSON)
        tool_print_json(report, JSON_INDENT(1)), fputc('\n', stdout);
    else if (json)
        report_print_lines(report);
    else if (!w->verify || has_tables(w))
        status = print_tables(e, x, w, format, err);
    if (w->verify && status == STRATA_OK)
        status = explain_print_verify(e, err);
done:
    json_decref(report);
    explain_free(x);
    return status;
}

/* ---- the command
 * ----------------------------------------------------------------------- */

static int run_explain(int argc, char **argv)
{
    struct tool_options o = {0};
    struct tool_session s = {0};
    struct wishes w = {0};
    strata_error err;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
        note_option(&w, option);
    }
    o.look = w.impls ? explain_look_for : NULL;
    o.look_of = w.impls;
    if (!note_files(&o, &w)) {
        code = EXIT_USAGE;
        goto done;
    }
    if (o.help)
        code = tool_help(&tool_explain);
    else if (argc - optind != 1 + w.diff)
        code = tool_usage(&tool_explain, w.diff ? "--diff compares two files"
                                                : "one network file is needed");
    else if ((code = check_wishes(&w, o.format)) != EXIT_OK)
        goto done;
    else if (w.diff)
        code = explain_diff_files(argv + optind, &o);
    else if (tool_open_engine(&s, &o, argv[optind], &err) != STRATA_OK ||
             show(s.engine, &w, o.format, &err) != STRATA_OK)
        code = tool_fail(&err);
done:
    tool_close(&s);
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_explain = {
    .name = "explain",
    .summary = "Show the plan: each layer's impl and formats, why each reformat stands",
    .usage = "NET.ini|NET.engine [OPTION...]\n   or: strata explain --diff A B",
    .help =
        "Options:\n"
        "      --reformats       what each reformat costs, what forbidding it would, "
        "and\n"
        "                        which format of which layer would remove it\n"
        "      --tensors         each tensor: produced, materialised, wanted\n"
        "      --sizes           what a run takes at the sizes that [profile] lists, and "
        "half\n"
        "                        way between them\n"
        "      --quantised       each tensor that becomes int8 or FP8: scale, range, and "
        "the\n"
        "                        share of the calibration's values beyond it\n"
        "      --fusions         each layer that was or might have been fused, and why "
        "not\n"
        "      --impls=LAYER     every way to run one layer, what it costs, and what a "
        "plan\n"
        "                        with it would\n"
        "      --refused         every impl that could not be used, and why\n"
        "      --svg=FILE        draw the plan ('-': standard output)\n"
        "      --dot=FILE        the same for Graphviz or Netron\n"
        "      --save-plan=FILE  keep the plan with its reasons and costs, as JSON\n"
        "      --verify          have the certificate of the plan checked\n"
        "      --diff            what moved between two plans, and the costs that moved\n"
        "                        it; A and B are saved plans, engines or\n"
        "                        networks\n\n"
        "Reasons of reformats: HARD, no common format; FIXED-IO, a network input or\n"
        "output; PADDING, pad lanes are cleared; ECONOMIC, avoidable at a higher cost.\n"
        "--diff exits with 1 where the plans decide differently.\n",
    .examples = "  strata explain examples/digits/digits.ini\n"
                "  strata explain net.ini --set build.precision=fp16 --reformats\n"
                "  strata explain net.ini --costs measure --impls conv1\n"
                "  strata explain net.ini --svg net.svg --save-plan net.plan\n"
                "  strata explain --diff net.plan net.ini\n",
    .run = run_explain,
};
