/* SPDX-License-Identifier: Apache-2.0
 *
 * Files judged: added to the modules and loaded when asked for, or listed as rejections;
 * warnings.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "registry/private.h"
#include "registry/trial/trial.h"
#include "core/trust.h"

int registry_reject(strata_registry *r, const char *path, const char *reason,
                    const strata_note *note, strata_error *err)
{
    struct rejection x = {.note = note ? *note : (strata_note){0}};
    if (grow(&r->rejections, &r->rejections_capacity, r->n_rejections,
             sizeof *r->rejections, err) != STRATA_OK)
        return STRATA_ENOMEM;
    x.path = duplicate(path, err);
    x.reason = duplicate(reason, err);
    if (!x.path || !x.reason) {
        free(x.path);
        free(x.reason);
        return STRATA_ENOMEM;
    }
    r->rejections[r->n_rejections++] = x;
    log_line(STRATA_LOG_INFO, "plugin %s: %s", path, reason);
    return STRATA_OK;
}

int registry_warn(strata_registry *r, strata_error *err, const char *format, ...)
{
    strata_error text = {0};
    va_list args;
    va_start(args, format);
    error_set_va(&text, STRATA_EMODULE, format, args);
    va_end(args);
    for (size_t i = 0; i < r->n_warnings; i++)
        if (!strcmp(r->warnings[i], text.message))
            return STRATA_OK;
    if (grow(&r->warnings, &r->warnings_capacity, r->n_warnings, sizeof *r->warnings,
             err) != STRATA_OK)
        return STRATA_ENOMEM;
    char *copy = duplicate(text.message, err);
    if (!copy)
        return STRATA_ENOMEM;
    r->warnings[r->n_warnings++] = copy;
    log_line(STRATA_LOG_WARNING, "%s", copy);
    return STRATA_OK;
}

/* The same file by another path, or the same build in another file: one is enough. A
 * copy in the installed folder is the one to keep. */
static void mark_duplicate(const strata_registry *r, struct module *m)
{
    const struct note_result *a = &m->result;
    for (size_t i = 0; i < r->n_modules; i++) {
        struct module *other = r->modules[i];
        const struct note_result *b = &other->result;
        bool same_file = a->device == b->device && a->inode == b->inode;
        bool same_build = a->build_id[0] && !strcmp(a->build_id, b->build_id) &&
                          !memcmp(&a->note, &b->note, sizeof a->note);
        if (other->duplicate || other->rejected || !(same_file || same_build))
            continue;
        if (m->in_default_folder && !other->in_default_folder)
            other->duplicate = true;
        else
            m->duplicate = true;
        return;
    }
}

int registry_add(strata_registry *r, const char *path, bool named, bool in_default_folder,
                 strata_error *err)
{
    strata_error reason = {0};
    struct module *m = NULL;
    int status = module_open(&m, path, r->driver, &reason);
    if (status == STRATA_OK && !r->allow_untrusted &&
        (status = trust_check(m->resolved, named, &reason)) == STRATA_EMODULE)
        error_append(&reason, ", or --allow-untrusted-plugins");
    if (status == STRATA_OK)
        status = grow(&r->modules, &r->modules_capacity, r->n_modules,
                      sizeof(struct module *), &reason);
    if (status == STRATA_OK) {
        m->named = named;
        m->in_default_folder = in_default_folder;
        mark_duplicate(r, m);
        r->modules[r->n_modules++] = m;
        return STRATA_OK;
    }
    if (status != STRATA_EMODULE || named)
        error_set(err, status, "plugin %s: %s", path, reason.message);
    else
        status = registry_reject(r, path, reason.message, &m->result.note, err);
    module_free(m);
    return status;
}

/* All that are new are tried at once; those at fault are rejected. */
static int try_modules(strata_registry *r, strata_error *err)
{
    int status = trial_modules(r->modules, r->n_modules, err);
    for (size_t i = 0; status == STRATA_OK && i < r->n_modules; i++) {
        struct module *m = r->modules[i];
        if (!m->fault || m->rejected)
            continue;
        m->rejected = true;
        status = registry_reject(r, m->path, m->fault, &m->result.note, err);
    }
    return status;
}

int registry_load(strata_registry *r, struct module *m, bool *usable, strata_error *err)
{
    strata_error reason = {0};
    int status = m->tried || m->loaded || m->rejected ? STRATA_OK : try_modules(r, err);
    if (status == STRATA_OK && !m->loaded && !m->rejected) {
        status = module_load(m, NULL, NULL, &reason);
        if (status != STRATA_OK && status != STRATA_EMODULE &&
            !(r->listing && m->lacks_memory))
            return error_set(err, status, "plugin %s: %s", m->path, reason.message);
        if (status != STRATA_OK) {
            m->rejected = true;
            status = registry_reject(r, m->path, reason.message, &m->result.note, err);
        } else if (m->warning) {
            status =
                registry_warn(r, err, "plugin %s: its note differs from its tables: %s",
                              m->path, m->warning);
        }
    }
    if (status != STRATA_OK)
        return status;
    *usable = m->loaded;
    return STRATA_OK;
}
