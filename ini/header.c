/* SPDX-License-Identifier: Apache-2.0
 *
 * Section headers: the kinds there are, and names.
 */
#include "ini/private.h"

#include <stdio.h>
#include <string.h>

static const struct config_kind kinds[CONFIG_KINDS] = {
    {.index = 0, .name = "network"},
    {.index = 1, .name = "include", .per_file = true, .repeat = "file"},
    {.index = 2, .name = "vars", .per_file = true},
    {.index = 3, .name = "plugins", .per_file = true, .repeat = "load"},
    {.index = 4, .name = "input", .named = true},
    {.index = 5, .name = "weights", .named = true},
    {.index = 6, .name = "layer", .named = true},
    {.index = 7, .name = "build"},
    {.index = 8, .name = "profile"},
    {.index = 9, .name = "runtime"},
    {.index = 10, .name = "bench"},
    {.index = 11, .name = "state", .named = true},
};

const struct config_kind *config_kind(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static bool name_valid(const char *text, size_t n)
{
    if (!n || !is_letter(text[0]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!is_letter(text[i]) && !is_digit(text[i]) && !strchr("./-", text[i]))
            return false;
    return true;
}

static const struct config_section *find_named(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_sections; i++)
        if (c->sections[i].name[0] && strcmp(c->sections[i].name, name) == 0)
            return &c->sections[i];
    return NULL;
}

static void unknown_kind(struct config *c, const char *kind, struct config_place place)
{
    const char *names[ARRAY_LENGTH(kinds)];
    char stem[16];
    size_t n = strcspn(kind, ".:");
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        names[i] = kinds[i].name;
    snprintf(stem, sizeof stem, "%.*s", (int)n, kind);
    const char *near = config_nearest(c, kind, names, ARRAY_LENGTH(names));
    const struct config_section *named = find_named(c, kind);
    if (named && place.file < 0)
        config_error(c, place,
                     "unknown section [%s]; did you mean '%s %s', as in --set '%s "
                     "%s.KEY=VALUE'?",
                     kind, named->kind, kind, named->kind, kind);
    else if (kind[n] && kind[n + 1] && config_kind(stem))
        config_error(c, place, "unknown section [%s]; did you mean [%s %s]?", kind, stem,
                     kind + n + 1);
    else if (near)
        config_error(c, place, "unknown section [%s]; did you mean [%s]?", kind, near);
    else
        config_error(c, place,
                     "unknown section [%s]; sections are network, include, vars, "
                     "plugins, input, state, weights, layer, build, profile, runtime, bench",
                     kind);
}

static bool check_name(struct config *c, const struct config_kind *kind, const char *name,
                       size_t n, struct config_place place)
{
    if (!n && kind->named)
        config_error(c, place, "[%s] needs a name: [%s NAME]", kind->name, kind->name);
    else if (n && !kind->named)
        config_error(c, place, "[%s] takes no name", kind->name);
    else if (n > CONFIG_MAX_NAME)
        config_error(c, place, "name of %zu bytes; at most %d are allowed", n,
                     CONFIG_MAX_NAME);
    else if (n && !name_valid(name, n))
        config_error(c, place,
                     "'%.*s' is not a name: a letter or '_' first, then letters, "
                     "digits and any of _ . / -",
                     (int)n, name);
    else
        return true;
    return false;
}

bool config_header(struct config *c, const char *text, size_t n,
                   struct config_place place, const struct config_kind **kind,
                   char name[CONFIG_MAX_NAME + 1])
{
    char word[CONFIG_MAX_KEY + 1];
    while (n && is_blank(text[0]))
        text++, n--;
    while (n && is_blank(text[n - 1]))
        n--;
    size_t k = 0;
    while (k < n && !is_blank(text[k]))
        k++;
    if (!k) {
        config_error(c, place, "empty section name");
        return false;
    }
    snprintf(word, sizeof word, "%.*s", (int)k, text);
    *kind = config_kind(word);
    if (!*kind) {
        unknown_kind(c, word, place);
        return false;
    }
    while (k < n && is_blank(text[k]))
        k++;
    if (!check_name(c, *kind, text + k, n - k, place))
        return false;
    memcpy(name, text + k, n - k);
    name[n - k] = '\0';
    return true;
}

char *config_header_name(struct config *c, const char *kind, const char *name)
{
    char full[CONFIG_MAX_NAME + 32];
    int n = snprintf(full, sizeof full, "%s%s%s", kind, *name ? " " : "", name);
    return config_text(c, full, (size_t)n);
}
