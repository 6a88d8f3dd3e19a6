/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating a registry, its lists, and walking them.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/registry.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arguments.h"
#include "core/installed.h"
#include "registry/name.h"
#include "registry/private.h"

static atomic_uint_least32_t cuda_driver;

void registry_set_cuda_driver(uint32_t version)
{
    atomic_store(&cuda_driver, version);
}

static int load_named(strata_registry *r, strata_error *err)
{
    for (size_t i = 0; i < r->n_modules; i++) {
        struct module *m = r->modules[i];
        bool usable = true;
        if (!m->named || m->duplicate || m->loaded || m->rejected)
            continue;
        const int status = registry_load(r, m, &usable, err);
        if (status != STRATA_OK)
            return status;
        if (!usable)
            return error_set(err, STRATA_EMODULE, "plugin %s: %s", m->path,
                             r->rejections[r->n_rejections - 1].reason);
    }
    return STRATA_OK;
}

/* A layer that two modules define: the first is used, the user should know. */
static int warn_layer(strata_registry *r, const struct module *m, const char *name,
                      strata_error *err)
{
    const char *ns = m->result.note.ns;
    size_t at = 0;
    const struct module *first = lookup_definer(r, ns, name, &at);
    const struct module *file = first == m ? lookup_file(r, m, name) : NULL;
    if (first != m)
        return registry_warn(r, err, "plugin %s: %s::%s is not used, %s has it first",
                             m->path, ns, name, first ? first->path : "none");
    if (!file)
        return STRATA_OK;
    return registry_warn(r, err,
                         "plugin %s: '%s' alone is %s::%s of %s; write %s::%s for this "
                         "one",
                         m->path, name, file->result.note.ns, name, file->path, ns, name);
}

int registry_warn_hidden(strata_registry *r, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < r->n_modules; i++) {
        const struct module *m = r->modules[i];
        const char *rest = m->result.note.layers, *item;
        char name[sizeof m->result.note.layers];
        size_t n;
        while (!m->duplicate && !m->rejected && status == STRATA_OK &&
               (item = name_next(&rest, ',', &n))) {
            snprintf(name, sizeof name, "%.*s", (int)n, item);
            if (name[0] != '+')
                status = warn_layer(r, m, name, err);
        }
    }
    return status;
}

static int fill(strata_registry *r, const strata_registry_options *options,
                const char *const *default_folders, size_t n_default_folders,
                strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < options->n_files; i++)
        status = registry_add(r, options->files[i], true, false, err);
    r->n_front = r->n_modules;
    if (status == STRATA_OK)
        status = search_folders(r, options, default_folders, n_default_folders, err);
    if (status == STRATA_OK)
        status = load_named(r, err);
    return status == STRATA_OK ? registry_warn_hidden(r, err) : status;
}

/* Options of an older or newer application: what it does not know is zero. */
static int read_options(strata_registry_options *out, const strata_registry_options *from,
                        strata_error *err)
{
    const size_t least = SIZE_THROUGH(strata_registry_options, no_default_path);
    *out = (strata_registry_options){.struct_size = sizeof *out};
    if (!from)
        return STRATA_OK;
    int status = struct_check(from->struct_size, least, "strata_registry_options", err);
    if (status != STRATA_OK)
        return status;
    struct_take(out, sizeof *out, from, from->struct_size);
    if (out->n_files > 0 && !out->files)
        return error_set(err, STRATA_EINVAL,
                         "strata_registry_options.files is NULL for %zu files",
                         out->n_files);
    for (size_t i = 0; i < out->n_files; i++)
        if (!out->files[i])
            return error_set(err, STRATA_EINVAL,
                             "strata_registry_options.files[%zu] is NULL", i);
    return STRATA_OK;
}

static int create(strata_registry **out, const strata_registry_options *options,
                  const char *const *default_folders, size_t n_default_folders,
                  strata_error *err)
{
    strata_registry_options known;
    *out = NULL;
    int status = read_options(&known, options, err);
    if (status != STRATA_OK)
        return status;
    strata_registry *r = zalloc(1, sizeof *r, "a registry", err);
    if (!r)
        return STRATA_ENOMEM;
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return error_set(err, STRATA_ENOMEM, "cannot create the registry's lock");
    }
    r->allow_untrusted = known.allow_untrusted != 0;
    r->driver = atomic_load(&cuda_driver);
    status = fill(r, &known, default_folders, n_default_folders, err);
    if (status == STRATA_OK)
        *out = r;
    else
        strata_registry_destroy(r);
    return status;
}

int registry_create(strata_registry **out, const strata_registry_options *options,
                    const char *default_folder, strata_error *err)
{
    return create(out, options, &default_folder, 1, err);
}

int strata_registry_create(strata_registry **out, const strata_registry_options *options,
                           strata_error *err)
{
    struct installed_folder installed[INSTALLED_FOLDERS];
    const char *folders[INSTALLED_FOLDERS] = {secure_getenv("STRATA_PLUGIN_DIR")};
    size_t n = 1;
    int status = ARGUMENTS(err, {"out", out});
    if (status != STRATA_OK)
        return status;
    if (!folders[0]) {
        n = installed_folders(installed, INSTALLED_PLUGINS);
        for (size_t i = 0; i < n; i++)
            folders[i] = installed[i].path;
    }
    return create(out, options, folders, n, err);
}

void strata_registry_destroy(strata_registry *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_folders; i++)
        free(r->folders[i].path);
    for (size_t i = 0; i < r->n_rejections; i++) {
        free(r->rejections[i].path);
        free(r->rejections[i].reason);
    }
    for (size_t i = 0; i < r->n_warnings; i++)
        free(r->warnings[i]);
    for (size_t i = 0; i < r->n_modules; i++)
        module_free(r->modules[i]);
    free(r->folders);
    free(r->rejections);
    free(r->warnings);
    free(r->modules);
    free(r->layers);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static int load_all(strata_registry *r, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < r->n_modules; i++) {
        bool usable = false;
        if (!r->modules[i]->duplicate)
            status = registry_load(r, r->modules[i], &usable, err);
    }
    return status == STRATA_OK ? lookup_all(r, err) : status;
}

int registry_load_all(strata_registry *r, strata_error *err)
{
    pthread_mutex_lock(&r->lock);
    r->listing = true;
    int status = load_all(r, err);
    r->listing = false;
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* Modules from `first` on go behind those asked for before, ahead of all others. */
static void move_forward(strata_registry *r, size_t first)
{
    for (size_t i = first; i < r->n_modules; i++) {
        struct module *m = r->modules[i];
        for (size_t at = i; at > r->n_front; at--)
            r->modules[at] = r->modules[at - 1];
        r->modules[r->n_front++] = m;
    }
}

static int add_named(strata_registry *r, const char *path,
                     int (*add)(strata_registry *, const char *, strata_error *),
                     strata_error *err)
{
    pthread_mutex_lock(&r->lock);
    size_t known = r->n_modules;
    int status = add(r, path, err);
    move_forward(r, known);
    if (status == STRATA_OK)
        status = registry_warn_hidden(r, err);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static int add_file(strata_registry *r, const char *path, strata_error *err)
{
    int status = registry_add(r, path, true, false, err);
    return status == STRATA_OK ? load_named(r, err) : status;
}

int registry_add_file(strata_registry *r, const char *path, strata_error *err)
{
    return add_named(r, path, add_file, err);
}

int registry_add_folder(strata_registry *r, const char *path, strata_error *err)
{
    return add_named(r, path, search_add_folder, err);
}

/* The lock is the one part of a registry that a reader changes. */
static void lock(const strata_registry *r)
{
    pthread_mutex_lock((pthread_mutex_t *)&r->lock);
}

static void unlock(const strata_registry *r)
{
    pthread_mutex_unlock((pthread_mutex_t *)&r->lock);
}

static size_t read_count(const strata_registry *r, const size_t *n)
{
    lock(r);
    size_t count = *n;
    unlock(r);
    return count;
}

size_t registry_modules(const strata_registry *r)
{
    return read_count(r, &r->n_modules);
}

struct module_info registry_module(const strata_registry *r, size_t i)
{
    lock(r);
    struct module_info info = module_info(r->modules[i]);
    unlock(r);
    return info;
}

const struct module *registry_module_at(const strata_registry *r, size_t i)
{
    lock(r);
    const struct module *m = r->modules[i];
    unlock(r);
    return m;
}

int registry_refuse(strata_registry *r, size_t i, const char *reason, strata_error *err)
{
    lock(r);
    struct module *m = r->modules[i];
    m->rejected = true;
    int status = registry_reject(r, m->path, reason, &m->result.note, err);
    unlock(r);
    return status;
}

size_t registry_rejections(const strata_registry *r)
{
    return read_count(r, &r->n_rejections);
}

struct module_rejection registry_rejection(const strata_registry *r, size_t i)
{
    lock(r);
    struct module_rejection x = {r->rejections[i].path, r->rejections[i].reason};
    unlock(r);
    return x;
}

size_t registry_warnings(const strata_registry *r)
{
    return read_count(r, &r->n_warnings);
}

const char *registry_warning(const strata_registry *r, size_t i)
{
    lock(r);
    const char *text = r->warnings[i];
    unlock(r);
    return text;
}

size_t registry_folders(const strata_registry *r)
{
    return read_count(r, &r->n_folders);
}

const char *registry_folder(const strata_registry *r, size_t i)
{
    lock(r);
    const char *path = r->folders[i].path;
    unlock(r);
    return path;
}

bool registry_folder_exists(const strata_registry *r, size_t i)
{
    lock(r);
    const bool exists = r->folders[i].exists;
    unlock(r);
    return exists;
}

size_t registry_layers(const strata_registry *r)
{
    return read_count(r, &r->n_layers);
}

const struct registry_layer *registry_layer_at(const strata_registry *r, size_t i)
{
    lock(r);
    const struct registry_layer *layer = &r->layers[i]->layer;
    unlock(r);
    return layer;
}
