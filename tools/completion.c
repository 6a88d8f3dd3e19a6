/* SPDX-License-Identifier: Apache-2.0
 *
 * strata completion: scripts for shells, made from the command's own tables and helps.
 */
#include "tools/tool.h"

#include <string.h>

/* What is completed of a command: options of its help, layers, words. */
struct commands {
    const struct tool_command *const *list;
    size_t n;
};

#define COMMON                                                                           \
    "--device --set --define --plugin --plugin-path --allow-untrusted-plugins --costs "  \
    "--save-costs --measure-all --format --verbose --quiet --help"
#define LAYERS                                                                           \
    "strata list -o csv 2>/dev/null | sed -n '2,$s/.*::\\([A-Za-z0-9]*\\)@.*/\\1/p' | "  \
    "sort -u"

/* The next long option that a help text names, its dashes included, *n bytes; NULL at the
 * end. */
static const char *next_option(const char **help, size_t *n)
{
    for (const char *p = *help; (p = strstr(p, "--")); p += 2) {
        const bool begins = p > *help ? p[-1] == ' ' || p[-1] == '\n' : false;
        *n = 2 + strspn(p + 2, "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
        if (*n > 2 && begins) {
            *help = p + *n;
            return p;
        }
    }
    return NULL;
}

static void print_options(const struct tool_command *c)
{
    const char *help = c->help, *option;
    for (size_t n; (option = next_option(&help, &n));)
        printf(" %.*s", (int)n, option);
}

static void print_names(const struct commands *all)
{
    for (size_t i = 0; i < all->n; i++)
        printf("%s ", all->list[i]->name);
}

/* Within '...' of any of the shells. */
static void print_quoted(const char *text)
{
    for (; *text; text++)
        printf(*text == '\'' ? "'\\''" : "%c", *text);
}

static void print_bash(const struct commands *all)
{
    printf("# bash completion for strata; made by `strata completion bash`\n"
           "_strata() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=\n"
           "    local common='" COMMON "'\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        words='");
    print_names(all);
    printf("help --help --version'\n"
           "    else\n"
           "        case $command in\n");
    for (size_t i = 0; i < all->n; i++) {
        printf("        %s) words='", all->list[i]->name);
        print_options(all->list[i]);
        printf("' ;;\n");
    }
    printf("        esac\n"
           "        words=\"$words $common\"\n"
           "        case $command in describe | list)\n"
           "            [[ $word != -* ]] && words=$(" LAYERS ") ;;\n"
           "        esac\n"
           "        [ \"$command\" = completion ] && words='bash zsh fish'\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _strata strata\n");
}

static void print_zsh(const struct commands *all)
{
    printf("#compdef strata\n"
           "# zsh completion for strata; made by `strata completion zsh`\n"
           "_strata() {\n"
           "    local -a commands layers\n"
           "    local options='' common='" COMMON "'\n"
           "    commands=(\n");
    for (size_t i = 0; i < all->n; i++) {
        printf("        '%s:", all->list[i]->name);
        print_quoted(all->list[i]->summary);
        printf("'\n");
    }
    printf("        'help:Show the help of a command'\n"
           "    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    case $words[2] in\n");
    for (size_t i = 0; i < all->n; i++) {
        printf("        %s) options='", all->list[i]->name);
        print_options(all->list[i]);
        printf("' ;;\n");
    }
    printf("    esac\n"
           "    if [[ $PREFIX == -* ]]; then\n"
           "        compadd -- ${=options} ${=common}\n"
           "    elif [[ $words[2] == (describe|list) ]]; then\n"
           "        layers=(${(f)\"$(" LAYERS ")\"})\n"
           "        compadd -- $layers\n"
           "    elif [[ $words[2] == completion ]]; then\n"
           "        compadd -- bash zsh fish\n"
           "    else\n"
           "        _files\n"
           "    fi\n"
           "}\n"
           "if [[ $funcstack[1] == _strata ]]; then\n"
           "    _strata \"$@\"\n"
           "else\n"
           "    compdef _strata strata\n"
           "fi\n");
}

/* "complete ... -l NAME" for each option of a list, which its end or a NUL cuts. */
static void print_fish_options(const char *condition, const char *list)
{
    const char *option;
    for (size_t n; (option = next_option(&list, &n));)
        printf("complete -c strata -n '%s' -l %.*s\n", condition, (int)n - 2, option + 2);
}

static void print_fish(const struct commands *all)
{
    char condition[128];
    printf("# fish completion for strata; made by `strata completion fish`\n");
    for (size_t i = 0; i < all->n; i++) {
        printf("complete -c strata -n __fish_use_subcommand -f -a %s -d '",
               all->list[i]->name);
        print_quoted(all->list[i]->summary);
        printf("'\n");
    }
    for (size_t i = 0; i < all->n; i++) {
        snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s",
                 all->list[i]->name);
        print_fish_options(condition, all->list[i]->help);
    }
    print_fish_options("not __fish_use_subcommand", " " COMMON);
    printf("complete -c strata -n '__fish_seen_subcommand_from describe list' -f -a "
           "\"(" LAYERS ")\"\n"
           "complete -c strata -n '__fish_seen_subcommand_from completion' -f -a "
           "'bash zsh fish'\n");
}

static const struct {
    const char *name;
    void (*print)(const struct commands *all);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static int print_script(const struct tool_command *self, const struct commands *all,
                        const char *shell)
{
    for (size_t i = 0; shell && i < ARRAY_LENGTH(shells); i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print(all);
            return EXIT_OK;
        }
    return tool_usage(self, "the shell to complete for is needed: bash, zsh or fish");
}

int tool_complete(const struct tool_command *self,
                  const struct tool_command *const *commands, size_t n, int argc,
                  char **argv)
{
    struct tool_options o = {0};
    int option, code = EXIT_OK;
    while ((option = tool_next_option(&o, argc, argv, NULL)) != -1)
        if (option == '?') {
            tool_options_free(&o);
            return EXIT_USAGE;
        }
    if (o.help)
        code = tool_help(self);
    else if ((code = tool_check_unused(self, &o, 0)) == EXIT_OK)
        code = print_script(self, &(struct commands){commands, n},
                            argc - optind == 1 ? argv[optind] : NULL);
    tool_options_free(&o);
    return code;
}
