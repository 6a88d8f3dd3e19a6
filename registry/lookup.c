/* SPDX-License-Identifier: Apache-2.0
 *
 * From a type as written in a network to a layer with all its impls. Notes say who may
 * define or extend it; only those modules are loaded.
 */
#include "registry/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "registry/name.h"
#include "registry/private.h"

/* "ns::Name@2" taken apart. */
struct key {
    const char *type; /* as written */
    const char *ns;   /* NULL: any */
    const char *name;
    uint32_t version; /* 0: any */
    char *text;       /* owns ns and name */
};

static int parse_key(struct key *key, const char *type, strata_error *err)
{
    *key = (struct key){.type = type, .text = duplicate(type, err)};
    if (!key->text)
        return STRATA_ENOMEM;
    char *colons = strstr(key->text, "::"), *at = strrchr(key->text, '@');
    key->name = key->text;
    if (colons) {
        *colons = '\0';
        key->ns = key->text;
        key->name = colons + 2;
    }
    if (!at)
        return STRATA_OK;
    char *end;
    unsigned long version = strtoul(at + 1, &end, 10);
    if (at[1] < '1' || at[1] > '9' || *end != '\0' || version > UINT32_MAX)
        return error_set(err, STRATA_EINVAL,
                         "layer type '%s': '@%s' is not a version; write Name, "
                         "namespace::Name or namespace::Name@2",
                         type, at + 1);
    *at = '\0';
    key->version = (uint32_t)version;
    return STRATA_OK;
}

static bool defines(const struct module *m, const char *ns, const char *name)
{
    return !m->duplicate && !strcmp(m->result.note.ns, ns) && module_defines(m, name);
}

/* Built-in layers cannot be replaced: where the installed folder defines one, nobody else
 * may, not even when the installed file fails to load. */
static bool installed(const strata_registry *r, const char *ns, const char *name)
{
    for (size_t i = 0; !strcmp(ns, "core") && i < r->n_modules; i++)
        if (r->modules[i]->in_default_folder && defines(r->modules[i], ns, name))
            return true;
    return false;
}

struct module *lookup_definer(const strata_registry *r, const char *ns, const char *name,
                              size_t *at)
{
    const bool only_default = installed(r, ns, name);
    while (*at < r->n_modules) {
        struct module *m = r->modules[(*at)++];
        if (!m->rejected && defines(m, ns, name) &&
            (m->in_default_folder || !only_default))
            return m;
    }
    return NULL;
}

/* ---- extensions ----------------------------------------------------------------- */

static const struct module_extension *find_extension(const struct module *m,
                                                     const struct registry_layer *layer,
                                                     const char *full)
{
    const struct descriptor *d = &m->tables;
    for (size_t i = 0; i < d->n_extends; i++)
        if (d->extends[i].version == layer->layer.version &&
            !strcmp(d->extends[i].layer, full))
            return &d->extends[i];
    return NULL;
}

static int append_impls(struct module_layer *l, const struct module_extension *e,
                        strata_error *err)
{
    size_t n = l->layer.n_impls + e->n_impls;
    struct registry_impl *all = zalloc(n, sizeof *all, "impls", err);
    if (!all)
        return STRATA_ENOMEM;
    memcpy(all, l->layer.impls, l->layer.n_impls * sizeof *all);
    memcpy(all + l->layer.n_impls, e->impls, e->n_impls * sizeof *all);
    free(l->all);
    l->all = all;
    l->layer.impls = all;
    l->layer.n_impls = n;
    return STRATA_OK;
}

/* Extend a layer by one module. A module that does not suit it is left out and listed as
 * rejected; the layer works without it. */
static int attach(strata_registry *r, struct module_layer *l, struct module *m,
                  const char *full, strata_error *err)
{
    strata_error reason = {0};
    bool usable = false;
    int status = registry_load(r, m, &usable, err);
    if (status != STRATA_OK || !usable)
        return status;
    const struct module_extension *e = find_extension(m, &l->layer, full);
    if (!e)
        return registry_warn(r, err, "plugin %s: it has no impls for %s", m->path,
                             l->layer.full_name);
    if (descriptor_fits(e, &l->layer, &reason) != STRATA_OK)
        return registry_reject(r, m->path, reason.message, &m->result.note, err);
    return append_impls(l, e, err);
}

/* Join the impls of extending modules and list the layer. */
static int complete(strata_registry *r, struct module_layer *l, strata_error *err)
{
    if (l->complete)
        return STRATA_OK;
    int status = grow(&r->layers, &r->layers_capacity, r->n_layers,
                      sizeof(struct module_layer *), err);
    char *full = status == STRATA_OK ? duplicate(l->layer.full_name, err) : NULL;
    if (!full)
        return STRATA_ENOMEM;
    *strrchr(full, '@') = '\0';
    l->layer.impls = l->own; /* a look-up that ran out of memory left some */
    l->layer.n_impls = l->n_own;
    for (size_t i = 0; status == STRATA_OK && i < r->n_modules; i++) {
        struct module *m = r->modules[i];
        if (!m->duplicate && !m->rejected && module_extends(m, full))
            status = attach(r, l, m, full, err);
    }
    if (status == STRATA_OK) {
        l->complete = true;
        r->layers[r->n_layers++] = l;
    }
    free(full);
    return status;
}

/* ---- messages ---------------------------------------------------------------------- */

const struct module *lookup_file(const strata_registry *r, const struct module *m,
                                 const char *name)
{
    for (size_t i = 0; m->given && i < r->n_modules; i++) {
        const struct module *other = r->modules[i];
        if (!other->given && !other->duplicate && !other->rejected &&
            module_defines(other, name))
            return other;
    }
    return NULL;
}

/* Whether module i is the first of its namespace that passes the filter (NULL: all). */
static bool first_of_namespace(const strata_registry *r, size_t i, const char *name)
{
    const struct module *m = r->modules[i];
    if (m->duplicate || m->rejected ||
        (name && (!module_defines(m, name) || lookup_file(r, m, name))))
        return false;
    for (size_t j = 0; j < i; j++) {
        const struct module *other = r->modules[j];
        if (!other->duplicate && !other->rejected &&
            (!name || module_defines(other, name)) &&
            !strcmp(other->result.note.ns, m->result.note.ns))
            return false;
    }
    return true;
}

static int ambiguous(const strata_registry *r, const struct key *key, strata_error *err)
{
    error_set(err, STRATA_ENOTFOUND,
              "layer type '%s' is in more than one namespace; write one of:", key->type);
    for (size_t i = 0; i < r->n_modules; i++)
        if (first_of_namespace(r, i, key->name))
            error_append(err, "\n  %s::%s (%s)", r->modules[i]->result.note.ns, key->name,
                         r->modules[i]->path);
    return STRATA_ENOTFOUND;
}

/* Names of all layers the notes define; the caller frees each and the list. */
static char **list_names(const strata_registry *r, size_t *n)
{
    char **names = NULL;
    size_t capacity = 0, length;
    *n = 0;
    for (size_t i = 0; i < r->n_modules; i++) {
        const char *rest = r->modules[i]->result.note.layers, *item;
        while ((item = name_next(&rest, ',', &length)))
            if (item[0] != '+' &&
                grow(&names, &capacity, *n, sizeof *names, NULL) == STRATA_OK &&
                (names[*n] = strndup(item, length)))
                ++*n;
    }
    return names;
}

static void append_near(const strata_registry *r, const struct key *key,
                        strata_error *err)
{
    size_t n;
    char **names = list_names(r, &n);
    const char *near = suggest(key->name, (const char *const *)names, n);
    if (near && strcmp(near, key->name) != 0)
        error_append(err, "; did you mean '%s'?", near);
    for (size_t i = 0; key->ns && i < r->n_modules; i++)
        if (first_of_namespace(r, i, key->name))
            error_append(err, "; there is '%s::%s'", r->modules[i]->result.note.ns,
                         key->name);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static void append_searched(const strata_registry *r, strata_error *err)
{
    const char *separator = "\n  namespaces: ";
    for (size_t i = 0; i < r->n_modules; i++)
        if (first_of_namespace(r, i, NULL)) {
            error_append(err, "%s%s", separator, r->modules[i]->result.note.ns);
            separator = ", ";
        }
    error_append(err, "\n  searched:%s", r->n_folders ? "" : " no folder");
    for (size_t i = 0; i < r->n_folders; i++)
        if (r->folders[i].exists)
            error_append(err, "\n    %s (%zu plugin files)", r->folders[i].path,
                         r->folders[i].n_files);
        else
            error_append(err, "\n    %s (does not exist)", r->folders[i].path);
    if (r->n_modules == 0 && r->n_rejections == 0)
        error_append(err, "\n  " REGISTRY_NO_PLUGIN);
}

/* What is the same for every type, from "namespaces:" on, may be cut off by who tells of
 * several: so it comes last. */
static void append_rejected(const strata_registry *r, strata_error *err)
{
    if (r->n_rejections > 0)
        error_append(err, "\n  rejected: %zu (see `strata list --rejected`)",
                     r->n_rejections);
    for (size_t i = 0; i < r->n_rejections; i++)
        if (r->rejections[i].path[0] != '/') /* a folder */
            error_append(err, "\n    %s: %s", r->rejections[i].path,
                         r->rejections[i].reason);
}

/* Files that have the type, but were rejected. */
static void append_own(const strata_registry *r, const struct key *key, strata_error *err)
{
    for (size_t i = 0; i < r->n_rejections; i++) {
        const struct rejection *x = &r->rejections[i];
        if (x->path[0] == '/' && name_listed(x->note.layers, key->name) &&
            (!key->ns || !strcmp(key->ns, x->note.ns)))
            error_append(err, "\n  %s has %s::%s, but was rejected: %s", x->path,
                         x->note.ns, key->name, x->reason);
    }
}

static int not_found(const strata_registry *r, const struct key *key,
                     const char *versions, strata_error *err)
{
    if (versions[0])
        error_set(err, STRATA_ENOTFOUND, "no layer type '%s'; there is %s", key->type,
                  versions);
    else
        error_set(err, STRATA_ENOTFOUND, "no layer type '%s'", key->type);
    if (!versions[0])
        append_near(r, key, err);
    append_own(r, key, err);
    append_searched(r, err);
    append_rejected(r, err);
    return STRATA_ENOTFOUND;
}

/* ---- look-up --------------------------------------------------------------------------
 */

/* A built-in layer's name alone is that layer, whatever else has been put into a folder:
 * networks mean the same on every machine. */
static int choose_installed(strata_registry *r, struct key *key, strata_error *err)
{
    int status = STRATA_OK;
    key->ns = "core";
    for (size_t i = 0; i < r->n_modules && status == STRATA_OK; i++) {
        const struct module *m = r->modules[i];
        const char *ns = m->result.note.ns;
        if (strcmp(ns, key->ns) != 0 && first_of_namespace(r, i, key->name))
            status = registry_warn(
                r, err, "plugin %s: '%s' alone is core::%s; write %s::%s for this one",
                m->path, key->name, key->name, ns, key->name);
    }
    return status;
}

/* Fill key->ns when only one namespace has the name. Before it is called ambiguous, the
 * candidates are loaded: one that fails is none. */
static int choose_namespace(strata_registry *r, struct key *key, strata_error *err)
{
    if (installed(r, "core", key->name))
        return choose_installed(r, key, err);
    for (int attempt = 0; attempt < 2; attempt++) {
        const struct module *only = NULL;
        size_t namespaces = 0;
        for (size_t i = 0; i < r->n_modules; i++)
            if (first_of_namespace(r, i, key->name)) {
                only = r->modules[i];
                namespaces++;
            }
        if (namespaces == 0)
            return not_found(r, key, "", err);
        key->ns = only->result.note.ns;
        if (namespaces == 1)
            return STRATA_OK;
        for (size_t i = 0; attempt == 0 && i < r->n_modules; i++) {
            bool usable;
            const int status = first_of_namespace(r, i, key->name)
                                   ? registry_load(r, r->modules[i], &usable, err)
                                   : STRATA_OK;
            if (status != STRATA_OK)
                return status;
        }
    }
    return ambiguous(r, key, err);
}

/* The version asked for, or the highest; the versions seen join the text. */
static struct module_layer *find_version(const struct module *m, const struct key *key,
                                         char *versions, size_t size)
{
    const struct descriptor *d = &m->tables;
    struct module_layer *best = NULL;
    for (size_t i = 0; i < d->n_layers; i++) {
        struct module_layer *l = &d->layers[i];
        uint32_t version = l->layer.layer.version;
        size_t n = strlen(versions);
        if (strcmp(l->layer.layer.name, key->name) != 0)
            continue;
        snprintf(versions + n, size - n, "%s@%u", n ? ", " : "", version);
        if (key->version ? version == key->version
                         : !best || version > best->layer.layer.version)
            best = l;
    }
    return best;
}

static int find_layer(strata_registry *r, struct key *key, struct module_layer **out,
                      strata_error *err)
{
    char versions[256] = "";
    struct module *m;
    size_t at = 0;
    *out = NULL;
    int status = key->ns ? STRATA_OK : choose_namespace(r, key, err);
    if (status != STRATA_OK)
        return status;
    while ((m = lookup_definer(r, key->ns, key->name, &at))) {
        bool usable = false;
        status = registry_load(r, m, &usable, err);
        if (status != STRATA_OK)
            return status;
        if (usable && (*out = find_version(m, key, versions, sizeof versions)))
            return complete(r, *out, err);
    }
    return not_found(r, key, versions, err);
}

int registry_find(strata_registry *r, const char *type, const struct registry_layer **out,
                  strata_error *err)
{
    struct key key;
    struct module_layer *found = NULL;
    *out = NULL;
    int status = parse_key(&key, type, err);
    if (status == STRATA_OK) {
        pthread_mutex_lock(&r->lock);
        status = find_layer(r, &key, &found, err);
        pthread_mutex_unlock(&r->lock);
    }
    if (status == STRATA_OK)
        *out = &found->layer;
    free(key.text);
    return status;
}

static bool listed(const strata_registry *r, const char *full_name)
{
    for (size_t i = 0; i < r->n_layers; i++)
        if (!strcmp(r->layers[i]->layer.full_name, full_name))
            return true;
    return false;
}

/* Whether look-ups of its name come to this module at all. */
static bool reachable(const strata_registry *r, const struct module *m, const char *name)
{
    const struct module *other;
    size_t at = 0;
    while ((other = lookup_definer(r, m->result.note.ns, name, &at)))
        if (other == m)
            return true;
    return false;
}

int lookup_all(strata_registry *r, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < r->n_modules; i++) {
        struct descriptor *d = &r->modules[i]->tables;
        for (size_t k = 0; status == STRATA_OK && k < d->n_layers; k++) {
            struct module_layer *l = &d->layers[k];
            if (reachable(r, r->modules[i], l->layer.layer.name) &&
                !listed(r, l->layer.full_name))
                status = complete(r, l, err);
        }
    }
    return status;
}
