/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry's own structure, shared by admit.c, search.c, lookup.c and registry.c.
 */
#ifndef REGISTRY_PRIVATE_H
#define REGISTRY_PRIVATE_H

#include <pthread.h>

#include "registry/module.h"

struct folder {
    char *path;
    bool exists, is_default;
    size_t n_files; /* *.so */
};

struct rejection {
    char *path, *reason;
    strata_note note; /* zero, or what the refused file said it has */
};

struct strata_registry {
    pthread_mutex_t lock; /* guards all below once created */
    bool allow_untrusted;
    bool listing; /* of all modules: those without memory at their entry are rejections */
    uint32_t driver;
    struct folder *folders;
    struct module **modules; /* in path order; none is ever freed before the registry */
    struct rejection *rejections;
    char **warnings;
    struct module_layer **layers; /* complete ones, in order of look-up */
    size_t n_folders, folders_capacity;
    size_t n_modules, modules_capacity;
    size_t n_front; /* of the modules: asked for by name or by a network */
    size_t n_rejections, rejections_capacity;
    size_t n_warnings, warnings_capacity;
    size_t n_layers, layers_capacity;
};

/* admit.c; the lock is held, here and below. */
int registry_reject(strata_registry *r, const char *path, const char *reason,
                    const strata_note *note, strata_error *err);
int registry_warn(strata_registry *r, strata_error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Judge a file and add it to the modules or the rejections. ENOMEM and EIO are errors: a
 * file that could not be read may be good, and plans would miss it. For a named file
 * EMODULE is one, too. */
int registry_add(strata_registry *r, const char *path, bool named, bool in_default_folder,
                 strata_error *err);
/* Load a module that is not loaded yet; *usable tells whether it may be used. Only
 * ENOMEM and EIO are errors: what is planned without the module would be slower for no
 * reason that anybody sees. A module's own ENOMEM is none while all are listed. */
int registry_load(strata_registry *r, struct module *m, bool *usable, strata_error *err);

/* registry.c: say which layers are not used, or not by their bare names, because another
 * module has them first. */
int registry_warn_hidden(strata_registry *r, strata_error *err);

/* search.c: the folders in order, then the files in them. */
int search_folders(strata_registry *r, const strata_registry_options *options,
                   const char *const *default_folders, size_t n_default_folders,
                   strata_error *err);

/* One more folder, if it is not searched already. */
int search_add_folder(strata_registry *r, const char *path, strata_error *err);

/* lookup.c: modules that may define ns::name and are not rejected, in the order in which
 * they are tried; *at starts at 0. NULL after the last. */
struct module *lookup_definer(const strata_registry *r, const char *ns, const char *name,
                              size_t *at);
/* The file that is meant where this module's layer is written without namespace; NULL:
 * the module is a file itself, or no file has the name. */
const struct module *lookup_file(const strata_registry *r, const struct module *m,
                                 const char *name);
/* Complete and list every layer of the loaded modules that a look-up can give. */
int lookup_all(strata_registry *r, strata_error *err);

#endif /* REGISTRY_PRIVATE_H */
