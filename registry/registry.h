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

/* One impl of a layer, from whichever module brings it. */
struct registry_impl {
    strata_impl impl;       /* copy at our size; rows point to copies too */
    const strata_row *rows; /* impl.rows.n of them */
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
    bool duplicate;       /* the same build was found earlier in the path */
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

/* What the notes say, in path order; valid until the registry is destroyed. */
size_t registry_modules(const strata_registry *r);
struct module_info registry_module(const strata_registry *r, size_t i);
size_t registry_rejections(const strata_registry *r);
struct module_rejection registry_rejection(const strata_registry *r, size_t i);
size_t registry_folders(const strata_registry *r);
const char *registry_folder(const strata_registry *r, size_t i);

/* Load every module; files that fail join the rejections. Then walk the layers. */
int registry_load_all(strata_registry *r, strata_error *err);
size_t registry_layers(const strata_registry *r);
const struct registry_layer *registry_layer_at(const strata_registry *r, size_t i);

struct module_info module_info(const struct module *m);

/* The host table handed to plugins, for callbacks' argument structs. */
const strata_host *registry_host(void);

#endif /* REGISTRY_REGISTRY_H */
