/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules and what they offer. A registry reads the ELF note of every file on its search
 * path without loading it; a file is loaded when a layer it defines or extends is looked
 * up. Descriptors are validated once and copied to this library's sizes, so the rest of
 * the core never sees a short struct or a NULL it must not.
 *
 * A registry may be read by many threads; look-ups that load take its lock. Modules stay
 * loaded for the life of the process.
 */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include <stdbool.h>

#include "core/status.h"

struct module;

/* What to do where there is no module at all, the same words wherever it shows. */
#define REGISTRY_NO_PLUGIN                                                               \
    "no plugin was found, so no layer can run: install the package, or set "             \
    "STRATA_PLUGIN_PATH to the folder that holds the plugins"

/* How the paths of modules begin that are no files (strata_registry_add). */
#define REGISTRY_GIVEN "memory:"

/* A strata_row with all its ports side by side. */
#define REGISTRY_PORTS (STRATA_MAX_PORTS + STRATA_MORE_PORTS)
struct registry_row {
    uint64_t in[REGISTRY_PORTS], out[REGISTRY_PORTS];
};

/* One impl of a layer, from whichever module brings it. */
struct registry_impl {
    strata_impl impl; /* copy at our size; of impl.rows only n holds */
    const struct registry_row *rows; /* impl.rows.n of them */
    const struct module *module;
};

struct registry_layer {
    strata_layer layer; /* copy at our size */
    const strata_attr *attrs;
    size_t n_attrs;
    const strata_weight *weights;
    size_t n_weights;
    const struct registry_impl *impls; /* own ones first, then extensions in path order */
    size_t n_impls;
    const struct module *module;
    char *full_name; /* "core::Convolution@1" */
};

struct module_info {
    const char *path;
    const char *ns, *version;
    const char *layers;   /* as in the note: "A,B,+core::C" */
    const char *build_id; /* hex, or "" */
    uint32_t abi_minor, cudart;
    bool loaded;
    bool duplicate; /* the same build was found earlier in the path */
    bool rejected;  /* its note is right, but loading it failed */
};

struct module_rejection {
    const char *path;
    const char *reason; /* without the path */
};

/* strata_registry_create and _destroy are the constructors. */

/* "Convolution", "org.example::LeakyReLU", "...@2". Loads the module that defines it and
 * every module that extends it. ENOTFOUND lists near names, searched folders and
 * rejected files; an ambiguous short name lists the candidates and their paths. The
 * result lives as long as the registry. */
int registry_find(strata_registry *r, const char *type, const struct registry_layer **out,
                  strata_error *err);

/* Plugins that a network asks for: before those of the search path, after those named
 * earlier. A layer that was looked up already keeps the impls it has. EMODULE with the
 * path and the reason if the file is refused; bad files of a folder are rejections. */
int registry_add_file(strata_registry *r, const char *path, strata_error *err);
int registry_add_folder(strata_registry *r, const char *path, strata_error *err);

/* What the notes say, in path order; valid until the registry is destroyed. */
size_t registry_modules(const strata_registry *r);
struct module_info registry_module(const strata_registry *r, size_t i);
const struct module *registry_module_at(const strata_registry *r, size_t i);
size_t registry_rejections(const strata_registry *r);
struct module_rejection registry_rejection(const strata_registry *r, size_t i);
/* What a user should know and nothing fails for: a layer hidden by another, a note that
 * differs from its module's tables. Whole sentences that hold the path. */
size_t registry_warnings(const strata_registry *r);
const char *registry_warning(const strata_registry *r, size_t i);
size_t registry_folders(const strata_registry *r);
const char *registry_folder(const strata_registry *r, size_t i);
bool registry_folder_exists(const strata_registry *r, size_t i);

/* Treat module i as a file that was refused. */
int registry_refuse(strata_registry *r, size_t i, const char *reason, strata_error *err);

/* Load every module; files that fail join the rejections, with those that say that they
 * have no memory, for which a look-up is an error. Then walk the layers. */
int registry_load_all(strata_registry *r, strata_error *err);
size_t registry_layers(const strata_registry *r);
const struct registry_layer *registry_layer_at(const strata_registry *r, size_t i);

struct module_info module_info(const struct module *m);

/* The host table handed to plugins, for callbacks' argument structs. */
const strata_host *registry_host(void);
/* Offer plugins a table by id; both stay valid for the life of the process. A second
 * call with the id replaces the table. EINTERNAL when there are too many. */
int registry_set_extension(const char *id, const void *table);
/* What cuDriverGetVersion gave (12080 for 12.8); 0, the start value: unknown. Registries
 * made later refuse modules built for a newer major. */
void registry_set_cuda_driver(uint32_t version);

/* strata_registry_create with another folder in place of the installed one. */
int registry_create(strata_registry **out, const strata_registry_options *options,
                    const char *default_folder, strata_error *err);

#endif /* REGISTRY_REGISTRY_H */
