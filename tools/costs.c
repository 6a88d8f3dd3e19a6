/* SPDX-License-Identifier: Apache-2.0
 *
 * strata costs merge: one cost file of several, and where they disagree.
 */
#include "tools/tool.h"

#include <string.h>

#include "planner/cost/cost.h"

enum { OPTION_OUTPUT = TOOL_SHORT + 'o' };

static const struct option options[] = {
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {0},
};

static const char *const columns[] = {"file",   "ns",         "spread",   "runs",
                                      "its ns", "its spread", "its runs", "percent",
                                      "kept",   "key"};

/* Costs that both have and that differ by more than either's spread. */
static void list_conflicts(struct table *out, const struct cost_table *all,
                           const struct cost_table *next, const char *path)
{
    for (size_t i = 0; i < next->n; i++) {
        const struct cost_entry *e = &next->entries[i];
        const struct cost *old = cost_table_find(all, e->key), *new = &e->cost;
        if (!old)
            continue;
        int64_t apart = old->ns < new->ns ? new->ns - old->ns : old->ns - new->ns;
        if (apart <= old->spread || apart <= new->spread)
            continue;
        table_cell(out, "%s", path);
        table_cell(out, "%lld", (long long)old->ns);
        table_cell(out, "%lld", (long long)old->spread);
        table_cell(out, "%d", old->runs);
        table_cell(out, "%lld", (long long)new->ns);
        table_cell(out, "%lld", (long long)new->spread);
        table_cell(out, "%d", new->runs);
        table_cell(out, "%+.1f", 100 * ((double)new->ns / (double)old->ns - 1));
        table_cell(out, "%s", cost_is_better(new, old) ? "its" : "first");
        table_cell(out, "%s", e->key);
    }
}

static int add_file(struct cost_table *all, struct table *conflicts, const char *path,
                    strata_error *err)
{
    struct cost_table next;
    cost_table_init(&next, "");
    int status = cost_table_read(&next, path, err);
    if (status == STRATA_OK && !all->device[0])
        snprintf(all->device, sizeof all->device, "%s", next.device);
    if (status == STRATA_OK) {
        list_conflicts(conflicts, all, &next, path);
        status = cost_table_merge(all, &next, err);
    }
    if (status == STRATA_EMISMATCH) { /* exit 1 is for results that differ */
        error_prefix(err, "%s", path);
        err->status = status = STRATA_EINVAL;
    }
    cost_table_free(&next);
    return status;
}

static int merge(char **paths, int n, const char *output, int format)
{
    struct cost_table all;
    struct table conflicts;
    strata_error err;
    int status = STRATA_OK;
    error_clear(&err);
    cost_table_init(&all, "");
    status = tool_refuse_dash(output, &err);
    table_open(&conflicts, columns, ARRAY_LENGTH(columns), 0xfe);
    for (int i = 0; i < n && status == STRATA_OK; i++)
        status = add_file(&all, &conflicts, paths[i], &err);
    if (status == STRATA_OK)
        status = cost_table_write(&all, output, &err);
    if (status == STRATA_OK && (conflicts.n_cells > 0 || format != TABLE_TEXT))
        table_print(&conflicts, format, stdout);
    if (status == STRATA_OK && format == TABLE_TEXT)
        tool_print("%s%zu costs of %d files in %s; %zu disagree beyond their spread\n",
                   conflicts.n_cells ? "\n" : "", all.n, n, output,
                   conflicts.n_cells / ARRAY_LENGTH(columns));
    table_close(&conflicts);
    cost_table_free(&all);
    return status == STRATA_OK ? EXIT_OK : tool_fail(&err);
}

static int run_costs(int argc, char **argv)
{
    struct tool_options o = {0};
    const char *output = NULL;
    int option, code = EXIT_OK;
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
        output = optarg;
    }
    if (o.help)
        code = tool_help(&tool_costs);
    else if (optind == argc || strcmp(argv[optind], "merge") != 0)
        code = tool_usage(&tool_costs, "what to do is needed: merge");
    else if (argc - optind < 3)
        code = tool_usage(&tool_costs, "two or more cost files are needed");
    else if (!output)
        code = tool_usage(&tool_costs, "--output=FILE is needed; it may be one of those");
    else if ((code = tool_check_output(&tool_costs, output)) == EXIT_OK &&
             (code = tool_check_unused(&tool_costs, &o, USES_FORMAT)) == EXIT_OK)
        code = merge(argv + optind + 1, argc - optind - 1, output, o.format);
done:
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_costs = {
    .name = "costs",
    .summary = "Merge cost files of one device, and show where they disagree",
    .usage = "merge A.costs B.costs... -o FILE [OPTION...]",
    .help = "Options:\n"
            "  -o, --output=FILE            where the merged costs go\n\n"
            "Of two costs for one key the one of more runs is kept, and of two alike in\n"
            "that the lower. Listed are those further apart than the spread of both.\n"
            "Files of different devices do not merge.\n",
    .examples =
        "  strata costs merge monday.costs tuesday.costs -o net.costs\n"
        "  strata costs merge a.costs b.costs c.costs -o all.costs --format=csv\n",
    .run = run_costs,
};
