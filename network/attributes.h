/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of a layer: defaults and INI values, checked against the plugin's table and
 * written into its params struct.
 */
#ifndef NETWORK_ATTRIBUTES_H
#define NETWORK_ATTRIBUTES_H

#include "ini/config.h"
#include "registry/registry.h"

/* An entry of a list that is a name of several sizes: the list holds the largest. */
struct attribute_name {
    const strata_attr *attr; /* STRATA_INTS */
    int entry;
    struct config_part part; /* its symbol is an index of config_symbols */
};

struct attribute_names {
    struct attribute_name *v;
    size_t n, capacity;
};

/* Fill params (type->layer.params_size bytes, zeroed) from the section; *memory is then
 * what its strings and lists point to, to be freed with it, and so is names->v. Without
 * `names` (NULL), one of several sizes is an error. What is wrong in the section is
 * recorded in c; the return value tells of ENOMEM, and of EMODULE where the plugin's own
 * default does not read. */
int attributes_read(struct config *c, struct config_section *s,
                    const struct registry_layer *type, void *params, void **memory,
                    struct attribute_names *names, strata_error *err);

/* The section's pair of a name that a layer may have both as an attribute and as a weight
 * (Scale's `scale`), if its value is of the side asked for: "W:NAME", "zeros", "none" and
 * the name of a [weights] section are weights. NULL: absent, or the other side's. */
struct config_pair *attributes_pair(struct config *c, struct config_section *s,
                                    const struct registry_layer *type, const char *name,
                                    bool weight);

/* Whether an attribute has its default, so that nobody need be told. */
bool attribute_is_default(const strata_attr *a, const void *params);

#endif /* NETWORK_ATTRIBUTES_H */
