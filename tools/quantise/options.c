/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of `strata quantise`.
 */
#include "tools/quantise/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_OUTPUT = TOOL_SHORT + 'o',
    OPTION_DATA = TOOL_OWN,
    OPTION_SAMPLES,
    OPTION_TO,
    OPTION_METHOD,
    OPTION_SHARE,
    OPTION_RANGES,
    OPTION_SAVE_RANGES,
    OPTION_COLLECTED,
    OPTION_LABELS,
    OPTION_BUDGET,
    OPTION_SENSITIVITY,
    OPTION_KEEP,
    OPTION_FLOAT_FIRST,
    OPTION_WEIGHTS_ONLY,
    OPTION_NO_BIAS,
    OPTION_BITS,
    OPTION_GROUP,
};

static const struct option options[] = {
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"data", required_argument, NULL, OPTION_DATA},
    {"samples", required_argument, NULL, OPTION_SAMPLES},
    {"to", required_argument, NULL, OPTION_TO},
    {"method", required_argument, NULL, OPTION_METHOD},
    {"share", required_argument, NULL, OPTION_SHARE},
    {"ranges", required_argument, NULL, OPTION_RANGES},
    {"save-ranges", required_argument, NULL, OPTION_SAVE_RANGES},
    {"collected", required_argument, NULL, OPTION_COLLECTED},
    {"labels", required_argument, NULL, OPTION_LABELS},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"sensitivity", no_argument, NULL, OPTION_SENSITIVITY},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"float-first", no_argument, NULL, OPTION_FLOAT_FIRST},
    {"weights-only", no_argument, NULL, OPTION_WEIGHTS_ONLY},
    {"bits", required_argument, NULL, OPTION_BITS},
    {"group", required_argument, NULL, OPTION_GROUP},
    {"no-bias-correction", no_argument, NULL, OPTION_NO_BIAS},
    {0},
};

static bool push(const char ***list, size_t *capacity, size_t *n)
{
    if (grow(list, capacity, *n, sizeof **list, NULL) != STRATA_OK) {
        tool_error("out of memory");
        return false;
    }
    (*list)[(*n)++] = optarg;
    return true;
}

/* "0.5 %", "0.5%" or "0.5". */
static bool read_percent(double *out, const char *name)
{
    char *end;
    *out = text_to_real(optarg, &end);
    const bool number = end != optarg;
    end += strspn(end, " ");
    end += *end == '%';
    if (number && !*end && *out >= 0 && *out <= 100)
        return true;
    tool_error("%s '%s': percent, as 0.5, is needed, 0 to 100", name, optarg);
    return false;
}

static bool read_method(const struct range_method **out)
{
    const char *names[8];
    for (size_t i = 0; i < range_methods_count; i++)
        names[i] = range_methods[i].name;
    *out = range_method_find(optarg);
    if (*out)
        return true;
    const char *near = suggest(optarg, names, range_methods_count);
    tool_error("--method '%s': max, percentile, entropy or mse%s%s%s", optarg,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return false;
}

static bool read_type(const struct quant_type **out)
{
    *out = quant_type_find(optarg);
    if (!*out)
        tool_error("--to '%s': int8 or e4m3", optarg);
    return *out;
}

static bool read_bits(int *out)
{
    *out = strcmp(optarg, "4") == 0 ? 4 : strcmp(optarg, "8") == 0 ? 8 : 0;
    if (*out == 0)
        tool_error("--bits '%s': 8 or 4", optarg);
    return *out != 0;
}

static bool own_option(struct quantise_options *o, int option)
{
    switch (option) {
    case OPTION_OUTPUT:
        o->output = optarg;
        return true;
    case OPTION_DATA:
        return push(&o->data, &o->data_capacity, &o->n_data);
    case OPTION_KEEP:
        return push(&o->keep, &o->keep_capacity, &o->n_keep);
    case OPTION_SAMPLES:
        return tool_number(&o->samples, optarg, 1, INT32_MAX, "--samples");
    case OPTION_TO:
        return read_type(&o->to);
    case OPTION_METHOD:
        o->method_given = true;
        return read_method(&o->method);
    case OPTION_SHARE:
        o->share_given = true;
        return read_percent(&o->share, "--share");
    case OPTION_RANGES:
        o->ranges = optarg;
        return true;
    case OPTION_SAVE_RANGES:
        o->save_ranges = optarg;
        return true;
    case OPTION_COLLECTED:
        o->collected = optarg;
        return true;
    case OPTION_LABELS:
        o->labels = optarg;
        return true;
    case OPTION_BUDGET:
        return read_percent(&o->budget, "--budget");
    case OPTION_SENSITIVITY:
        return o->sensitivity = true;
    case OPTION_FLOAT_FIRST:
        return o->float_first = true;
    case OPTION_WEIGHTS_ONLY:
        return o->weights_only = true;
    case OPTION_BITS:
        return read_bits(&o->form.bits);
    case OPTION_GROUP:
        return tool_number(&o->form.group, optarg, 1, INT32_MAX, "--group");
    case OPTION_NO_BIAS:
        return o->no_bias = true;
    }
    return false;
}

/* What would be ignored is refused. */
static int check_options(const struct quantise_options *o)
{
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        {!o->output, "-o FILE is needed, the quantised network"},
        {!o->n_data && !o->ranges && !o->weights_only,
         "--data FOLDER is needed, or --ranges FILE of an earlier run"},
        {o->ranges && o->save_ranges,
         "--save-ranges has nothing to save beside --ranges"},
        {o->ranges && o->collected, "--collected has no effect beside --ranges"},
        {o->labels && !o->n_data, "--labels needs --data"},
        {o->budget >= 0 && !o->labels, "--budget needs --labels, to count what is right"},
        {o->sensitivity && !o->n_data, "--sensitivity needs --data"},
        {(o->save_ranges || o->collected) && !o->n_data, "ranges need --data"},
        {!o->weights_only && (o->form.bits || o->form.group),
         "--bits and --group are of --weights-only"},
        {o->float_first && (o->weights_only || o->to != &quant_int8),
         "--float-first is of convolutions, which --weights-only and --to e4m3 leave"},
        {o->weights_only && o->to != &quant_int8,
         "--to e4m3 is for inputs and weights: --weights-only has --bits"},
        {!o->to->even && strcmp(o->method->name, "max") != 0 &&
             strcmp(o->method->name, "percentile") != 0,
         "--to e4m3 takes --method max or percentile: its steps are not even"},
        {o->weights_only && (o->ranges || o->save_ranges || o->collected),
         "--weights-only needs no ranges"},
        {o->share_given && strcmp(o->method->name, "percentile") != 0,
         "--share is of --method percentile"},
        {o->ranges && (o->method_given || o->samples),
         "--method and --samples have no effect beside --ranges"},
        {o->weights_only && (o->method_given || o->samples),
         "--weights-only collects nothing: leave out --method and --samples"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (rules[i].wrong)
            return tool_usage(o->command, "%s", rules[i].why);
    return tool_check_output(o->command, o->output);
}

static bool note_outputs(struct quantise_options *o)
{
    return tool_output(&o->common, o->output) &&
           tool_output(&o->common, o->save_ranges) &&
           tool_output(&o->common, o->collected);
}

int quantise_read_options(struct quantise_options *o, const struct tool_command *command,
                          int argc, char **argv)
{
    int option;
    *o = (struct quantise_options){
        .command = command, .to = &quant_int8, .share = RANGE_SHARE, .budget = -1};
    while ((option = tool_next_option(&o->common, argc, argv, options)) != -1)
        if (option == '?' || !own_option(o, option))
            return EXIT_USAGE;
    if (o->common.help)
        return EXIT_OK;
    if (!o->method)
        o->method = range_method_find(o->to->even ? "mse" : "max");
    if (argc - optind != 1)
        return tool_usage(o->command, "one network file is needed");
    const int code = check_options(o);
    return code == EXIT_OK && !note_outputs(o) ? EXIT_USAGE : code;
}

void quantise_free_options(struct quantise_options *o)
{
    free(o->data);
    free(o->keep);
    tool_options_free(&o->common);
}
