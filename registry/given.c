/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules that the application gives as tables. They take the last places of the path, so
 * that whatever a file has is the file's.
 */
#include <strata/module.h>

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arguments.h"
#include "registry/name.h"
#include "registry/private.h"

#define MOST_NAME 100 /* bytes */
#define refuse(err, ...) error_set(err, STRATA_EMODULE, __VA_ARGS__)

static int check_name(const char *name, strata_error *err)
{
    const size_t n = strlen(name);
    bool fits = n > 0 && n <= MOST_NAME;
    for (size_t i = 0; fits && i < n; i++)
        fits = name[i] > ' ' && name[i] <= '~' && name[i] != '/';
    if (fits)
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL,
                     "the name of a module is 1 to %d printable characters without "
                     "space and '/', not '%.100s'",
                     MOST_NAME, name);
}

/* One more of the note's names. */
static int list_name(strata_note *note, const char *mark, const char *name,
                     strata_error *err)
{
    const size_t used = strlen(note->layers), size = sizeof note->layers;
    const int n =
        snprintf(note->layers + used, size - used, "%s%s%s", used ? "," : "", mark, name);
    if (n >= 0 && (size_t)n < size - used)
        return STRATA_OK;
    return refuse(err, "the names of its layers are longer than %zu characters", size);
}

/* What a file says in its note: look-ups go by it. */
static int write_note(struct module *m, strata_error *err)
{
    const struct descriptor *d = &m->tables;
    strata_note *note = &m->result.note;
    int status = STRATA_OK;
    if (strlen(d->module.ns) >= sizeof note->ns ||
        strlen(d->module.version) >= sizeof note->version)
        return refuse(err, "namespace '%s' or version '%s' is too long", d->module.ns,
                      d->module.version);
    strcpy(note->ns, d->module.ns);
    strcpy(note->version, d->module.version);
    note->abi_major = STRATA_ABI_MAJOR;
    note->abi_minor = d->module.abi_minor;
    for (size_t i = 0; i < d->n_layers && status == STRATA_OK; i++)
        status = list_name(note, "", d->layers[i].layer.layer.name, err);
    for (size_t i = 0; i < d->n_extends && status == STRATA_OK; i++)
        status = list_name(note, "+", d->extends[i].layer, err);
    return status;
}

static int make(struct module **out, const char *name, const strata_module *tables,
                strata_error *err)
{
    const size_t size = sizeof REGISTRY_GIVEN + strlen(name);
    struct module *m = *out = zalloc(1, sizeof *m, "a module", err);
    if (!m || !(m->path = zalloc(size, 1, "a module's name", err)))
        return STRATA_ENOMEM;
    snprintf(m->path, size, REGISTRY_GIVEN "%s", name);
    m->given = m->named = m->tried = m->loaded = true;
    int status = descriptor_copy(&m->tables, tables, m, err);
    if (status == STRATA_OK)
        status = write_note(m, err);
    if (status == STRATA_EMODULE)
        error_prefix(err, "module %s", m->path);
    return status;
}

static int insert(strata_registry *r, struct module *m, strata_error *err)
{
    for (size_t i = 0; i < r->n_modules; i++)
        if (!strcmp(r->modules[i]->path, m->path))
            return error_set(err, STRATA_EINVAL,
                             "the registry has a module '%s' already; give this one "
                             "another name",
                             m->path);
    int status = grow(&r->modules, &r->modules_capacity, r->n_modules,
                      sizeof(struct module *), err);
    if (status == STRATA_OK)
        r->modules[r->n_modules++] = m;
    return status;
}

int strata_registry_add(strata_registry *r, const char *name, const strata_module *module,
                        strata_error *err)
{
    struct module *m = NULL;
    int status = ARGUMENTS(err, {"registry", r}, {"name", name}, {"module", module});
    if (status != STRATA_OK)
        return status;
    status = check_name(name, err);
    if (status == STRATA_OK)
        status = make(&m, name, module, err);
    pthread_mutex_lock(&r->lock);
    if (status == STRATA_OK && (status = insert(r, m, err)) == STRATA_OK) {
        m = NULL;
        status = registry_warn_hidden(r, err);
    }
    pthread_mutex_unlock(&r->lock);
    module_free(m);
    return status;
}
