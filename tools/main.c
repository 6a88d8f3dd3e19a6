/* SPDX-License-Identifier: Apache-2.0
 *
 * The strata command.
 */
#include "tools/tool.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>

static int run_completion(int argc, char **argv);

/* The one command about the others: it is handed their table, which stands here. */
static const struct tool_command completion = {
    .name = "completion",
    .summary = "Print a shell completion script",
    .usage = "bash | zsh | fish",
    .help = "",
    .examples = "  eval \"$(strata completion bash)\"\n"
                "  strata completion zsh >~/.zfunc/_strata\n"
                "  strata completion fish >~/.config/fish/completions/strata.fish\n",
    .run = run_completion,
};

static const struct tool_command *const commands[] = {
    &tool_run,     &tool_generate, &tool_build,  &tool_import,   &tool_quantise,
    &tool_inspect, &tool_diff,     &tool_bench,  &tool_profile,  &tool_compare,
    &tool_explain, &tool_costs,    &tool_list,   &tool_describe, &tool_new_layer,
    &tool_check,   &tool_doctor,   &tool_deploy, &completion,
};

static int run_completion(int argc, char **argv)
{
    return tool_complete(&completion, commands, ARRAY_LENGTH(commands), argc, argv);
}

static void print_help(void)
{
    printf("Usage: strata COMMAND [OPTION...] [ARGUMENT...]\n"
           "Neural-network inference with planned tensor formats and plugin layers.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
    printf("\nOptions:\n"
           "  --help      this text; `strata COMMAND --help` for a command\n"
           "  --version   the version\n\n"
           "Exit status: 0 success, 1 mismatch of what was compared or checked, "
           "2 usage or configuration, 3 no usable device.\n\n"
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
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[32];
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        names[i] = commands[i]->name;
    const char *near = strcmp(name, "version") == 0 || strcmp(name, "-V") == 0
                           ? "--version"
                           : suggest(name, names, ARRAY_LENGTH(commands));
    if (!near && access(name, F_OK) == 0)
        return tool_error("unknown command '%s'; it is a file: a command goes before it, "
                          "as in `strata run %s`\nSee `strata --help`.",
                          name, name);
    return tool_error("unknown command '%s'%s%s%s\nSee `strata --help`.", name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
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
    if (c != &tool_check) /* which sees crashes of processes of its own */
        tool_catch_crashes();
    return c->run(argc - 1, argv + 1);
}

/* glibc gives each thread an arena, which reserves 64 MiB of addresses. Where a limit has
 * no room for one, every piece takes pages of its own, tenfold what it needs. */
static void share_arena(void)
{
#ifdef M_ARENA_MAX
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
        mallopt(M_ARENA_MAX, 1);
#endif
}

int main(int argc, char **argv)
{
    share_arena();
    int code = dispatch(argc, argv);
    tool_ends();
    if (tool_output_lost()) {
        tool_error("out of memory: the output is incomplete");
        code = code == EXIT_OK ? EXIT_USAGE : code;
    }
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    tool_error("standard output cannot be written: %s", strerror(errno));
    return code == EXIT_OK ? EXIT_USAGE : code;
}
