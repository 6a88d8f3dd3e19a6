/* SPDX-License-Identifier: Apache-2.0
 *
 * The strata command.
 */
#include "tools/tool.h"

#include <errno.h>
#include <string.h>

const struct tool_command *const tool_commands[] = {
    &tool_run,      &tool_build,     &tool_inspect, &tool_diff,   &tool_bench,
    &tool_profile,  &tool_compare,   &tool_explain, &tool_costs,  &tool_list,
    &tool_describe, &tool_new_layer, &tool_check,   &tool_doctor, &tool_completion,
};
const size_t tool_command_count = ARRAY_LENGTH(tool_commands);

static void print_help(void)
{
    printf("Usage: strata COMMAND [OPTION...] [ARGUMENT...]\n"
           "Neural-network inference with planned tensor formats and plugin layers.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < tool_command_count; i++)
        printf("  %-11s %s\n", tool_commands[i]->name, tool_commands[i]->summary);
    printf("\nOptions:\n"
           "  --help      this text; `strata COMMAND --help` for a command\n"
           "  --version   the version\n\n"
           "Exit status: 0 success, 1 mismatch, 2 usage or configuration, "
           "3 no usable device.\n\n"
           "Examples:\n"
           "  strata run examples/digits/digits.ini examples/digits/images/3-011.pgm\n"
           "  strata explain examples/digits/digits.ini\n"
           "  strata describe Convolution\n");
}

static int print_version(void)
{
    printf("strata %s\n", strata_version());
    return EXIT_OK;
}

static const struct tool_command *find(const char *name)
{
    for (size_t i = 0; i < tool_command_count; i++)
        if (strcmp(name, tool_commands[i]->name) == 0)
            return tool_commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[32];
    for (size_t i = 0; i < tool_command_count; i++)
        names[i] = tool_commands[i]->name;
    const char *near = suggest(name, names, tool_command_count);
    fprintf(stderr, "strata: error: unknown command '%s'", name);
    if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, "\nSee `strata --help`.\n");
    return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "--version") == 0)
        return print_version();
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        (strcmp(name, "help") == 0 && argc < 3)) {
        print_help();
        return argc > 1 ? EXIT_OK : EXIT_USAGE;
    }
    const struct tool_command *c = find(strcmp(name, "help") == 0 ? argv[2] : name);
    if (!c)
        return unknown(strcmp(name, "help") == 0 ? argv[2] : name);
    if (strcmp(name, "help") == 0)
        return tool_help(c);
    return c->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "strata: error: standard output cannot be written: %s\n",
            strerror(errno));
    return code == EXIT_OK ? EXIT_USAGE : code;
}
