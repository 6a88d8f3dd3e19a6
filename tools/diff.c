/* SPDX-License-Identifier: Apache-2.0
 *
 * strata diff: which decisions of two plans differ, and which costs moved them.
 */
#include "tools/explain/explain.h"

static int run_diff(int argc, char **argv)
{
    struct tool_options o = {0};
    int option, code = EXIT_USAGE;
    while ((option = tool_next_option(&o, argc, argv, NULL)) != -1)
        if (option == '?')
            goto done;
    if (o.help)
        code = tool_help(&tool_diff);
    else if (argc - optind != 2)
        code = tool_usage(&tool_diff, "two files are compared");
    else
        code = explain_diff_files(argv + optind, &o);
done:
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_diff = {
    .name = "diff",
    .summary = "Compare two plans: which decision moved, and which cost moved it",
    .usage = "A B [OPTION...]",
    .help = "A and B are engine files, plans saved by `strata explain --save-plan`, or\n"
            "networks, which are planned for it. Exits with 1 where they decide\n"
            "differently.\n",
    .examples = "  strata diff monday.engine tuesday.engine\n"
                "  strata diff net.engine net.ini -o md\n",
    .run = run_diff,
};
