/* SPDX-License-Identifier: Apache-2.0
 *
 * strata completion bash: a completion script made from the command's own tables.
 */
#include "tools/tool.h"

#include <string.h>

/* The long options that a help text names. */
static void print_long_options(const char *help)
{
    for (const char *p = help; (p = strstr(p, "--")); p += 2) {
        size_t n = strspn(
            p + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
        if (n > 0 && p > help && (p[-1] == ' ' || p[-1] == '\n'))
            printf(" %.*s", (int)(n + 2), p);
    }
}

static void print_script(void)
{
    printf("# bash completion for strata; made by `strata completion bash`\n"
           "_strata() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
           "    local common='--device --set --define --plugin --plugin-path"
           " --allow-untrusted-plugins --format --verbose --quiet --help'\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        words='");
    for (size_t i = 0; i < tool_command_count; i++)
        printf("%s ", tool_commands[i]->name);
    printf("help --help --version'\n"
           "    else\n"
           "        case $command in\n");
    for (size_t i = 0; i < tool_command_count; i++) {
        printf("        %s) words='", tool_commands[i]->name);
        print_long_options(tool_commands[i]->help);
        printf("' ;;\n");
    }
    printf("        esac\n"
           "        words=\"$words $common\"\n"
           "        if [ \"$command\" = describe ] && [[ $word != -* ]]; then\n"
           "            words=$(strata list -o csv 2>/dev/null | sed -n "
           "'2,$s/.*::\\([A-Za-z0-9]*\\)@.*/\\1/p' | sort -u)\n"
           "        fi\n"
           "        [ \"$command\" = completion ] && words=bash\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _strata strata\n");
}

static int run_completion(int argc, char **argv)
{
    struct tool_options o = {0};
    int option, code = EXIT_OK;
    while ((option = tool_next_option(&o, argc, argv, NULL)) != -1)
        if (option == '?') {
            tool_options_free(&o);
            return EXIT_USAGE;
        }
    if (o.help)
        code = tool_help(&tool_completion);
    else if (argc - optind != 1 || strcmp(argv[optind], "bash") != 0)
        code = tool_usage(&tool_completion, "the shell to complete for is needed: bash");
    else
        print_script();
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_completion = {
    .name = "completion",
    .summary = "Print a shell completion script",
    .usage = "bash",
    .help = "",
    .examples = "  eval \"$(strata completion bash)\"\n",
    .run = run_completion,
};
