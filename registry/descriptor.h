/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation of a module's tables, and their copies at this library's struct sizes.
 * Text is not copied: it lives in the module, which is never unloaded.
 */
#ifndef REGISTRY_DESCRIPTOR_H
#define REGISTRY_DESCRIPTOR_H

#include "registry/registry.h"

/* A layer and the impls its own module brings. `layer.impls` points to `own` until
 * registry.c joins the impls of extending modules into `all`. */
struct module_layer {
    struct registry_layer layer;
    struct registry_impl *own;
    struct registry_impl *all;
    size_t n_own;
    bool complete;
};

struct module_extension {
    const char *layer; /* "core::Convolution" */
    uint32_t version;
    size_t params_size;
    struct registry_impl *impls;
    size_t n_impls;
};

struct descriptor {
    strata_module module; /* copy at our size */
    struct module_layer *layers;
    struct module_extension *extends;
    size_t n_layers, n_extends;
};

/* EMODULE with "layer 'X': attrs[2].offset 24 + 8 > params_size 16". owner is recorded
 * in the copies. On failure *out is empty. */
int descriptor_copy(struct descriptor *out, const strata_module *module,
                    const struct module *owner, strata_error *err);
void descriptor_free(struct descriptor *d);

/* Whether an extension's impls suit the layer's parameters and ports; EMODULE. */
int descriptor_fits(const struct module_extension *e, const struct registry_layer *layer,
                    strata_error *err);

/* attribute.c: the checks of one attribute or weight among its layer's. */
int attribute_check(const strata_attr *attrs, size_t i, size_t params_size,
                    strata_error *err);
int weight_check(const strata_weight *weights, size_t i, strata_error *err);
/* implementation.c: what holds without knowing the layer, and what needs its ports. */
int implementation_check(const struct registry_impl *impls, size_t i, strata_error *err);
int implementation_ports(const struct registry_impl *impls, size_t n,
                         const strata_layer *layer, strata_error *err);

/* Copy count elements of `from` with stride `size`; *out is NULL-free even for none. */
int descriptor_array(void *out, const strata_array *from, size_t size, size_t minimum,
                     uint32_t most, const char *what, strata_error *err);

#endif /* REGISTRY_DESCRIPTOR_H */
