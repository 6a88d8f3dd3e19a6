/* SPDX-License-Identifier: Apache-2.0
 *
 * --set section.key=value: pairs put over those of the files before anything is checked.
 */
#include "ini/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* A section that stands for `full`, made if it is one without a name. */
static struct config_section *target(struct config *c, const struct config_kind *kind,
                                     const char *name, struct config_place place,
                                     strata_error *err)
{
    char *full = config_header_name(c, kind->name, name);
    if (!full)
        return NULL;
    int known = names_get(&c->section_index, full);
    if (known >= 0)
        return &c->sections[known];
    if (kind->named) {
        const char *names[256];
        size_t n = 0;
        for (size_t i = 0;
             !config_full(c) && i < c->n_sections && n < ARRAY_LENGTH(names); i++)
            if (strcmp(c->sections[i].kind, kind->name) == 0)
                names[n++] = c->sections[i].name;
        const char *near = config_nearest(c, name, names, n);
        config_error(c, place, "no section [%s]%s%s%s%s%s", full,
                     near ? "; did you mean [" : "", near ? kind->name : "",
                     near ? " " : "", near ? near : "", near ? "]?" : "");
        return NULL;
    }
    if (grow(&c->sections, &c->sections_capacity, c->n_sections, sizeof *c->sections,
             err) != STRATA_OK ||
        names_put(&c->section_index, full, (int)c->n_sections, err) != STRATA_OK) {
        c->no_memory = true;
        return NULL;
    }
    c->sections[c->n_sections] = (struct config_section){
        .kind = full, .name = full + strlen(full), .place = place};
    return &c->sections[c->n_sections++];
}

/* The last '.' before '=', or NULL. */
static const char *key_dot(const char *text, const char *equals)
{
    for (const char *at = equals; at > text; at--)
        if (at[-1] == '.')
            return at - 1;
    return NULL;
}

static int put_pair(struct config *c, struct config_section *s,
                    const struct config_kind *kind, const struct config_pair *p,
                    strata_error *err)
{
    bool repeats = kind->repeat && strcmp(kind->repeat, p->key) == 0;
    for (size_t i = 0; !repeats && i < s->n_pairs; i++)
        if (strcmp(s->pairs[i].key, p->key) == 0) {
            s->pairs[i] = *p;
            return STRATA_OK;
        }
    if (s->n_pairs >= CONFIG_MAX_KEYS) {
        config_error(c, p->key_place, "more than %d keys in the section",
                     CONFIG_MAX_KEYS);
        return STRATA_OK;
    }
    return config_pair_add(s, p, err);
}

static int override(struct config *c, const struct config_cursor *at, strata_error *err)
{
    const char *text = at->line.text;
    const char *equals = strchr(text, '=');
    const char *dot = equals ? key_dot(text, equals) : NULL;
    struct config_place all = config_cursor_place(c, at, 0, at->line.length);
    const struct config_kind *kind;
    struct config_pair p = {0};
    char name[CONFIG_MAX_NAME + 1];
    if (!dot) {
        config_error(c, all,
                     "an override is 'section.key=value', as in 'layer "
                     "conv1.pad=1'");
        return STRATA_OK;
    }
    size_t header = (size_t)(dot - text), split = (size_t)(equals - text);
    struct config_place place = config_cursor_place(c, at, 0, header);
    if (!config_header(c, text, header, place, &kind, name) ||
        !config_take_key(c, &p, at, header + 1, split) ||
        !config_take_value(c, &p, at, split))
        return STRATA_OK;
    if (strcmp(kind->name, "vars") == 0 || strcmp(kind->name, "include") == 0) {
        config_error(c, place, "[%s] cannot be overridden%s", kind->name,
                     kind->name[0] == 'v' ? "; use -D name=value" : "");
        return STRATA_OK;
    }
    struct config_section *s = target(c, kind, name, place, err);
    return s ? put_pair(c, s, kind, &p, err) : STRATA_OK;
}

int config_override(struct config *c, const strata_network_options *options,
                    strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; options && status == STRATA_OK && i < options->n_set; i++) {
        struct config_cursor at;
        if (config_option_read(c, (int)i + 1, &at))
            status = override(c, &at, err);
    }
    return status;
}
