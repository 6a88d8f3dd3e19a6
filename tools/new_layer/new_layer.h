/* SPDX-License-Identifier: Apache-2.0
 *
 * strata new-layer: what is asked for, and how it becomes the templates' values.
 */
#ifndef TOOLS_NEW_LAYER_NEW_LAYER_H
#define TOOLS_NEW_LAYER_NEW_LAYER_H

#include "tools/new_layer/template.h"
#include "tools/tool.h"

enum { NEW_LAYER_ATTRS = 64, NEW_LAYER_WEIGHTS = 16, NEW_LAYER_PORTS = 16 };
enum { NEW_LAYER_WORD = 64 }; /* bytes of a name, its end included */

struct new_attr {
    char name[NEW_LAYER_WORD];
    int type;              /* STRATA_I64 ... */
    char *text;            /* the option's own copy, which the others point into */
    const char *def;       /* "" when none is given */
    const char *min, *max; /* NULL: no range */
    const char *choices;   /* of an enum */
};

struct new_weight {
    char name[NEW_LAYER_WORD];
    bool optional;
};

struct new_layer {
    const char *name, *ns;
    char file[2 * NEW_LAYER_WORD]; /* "leaky_relu" */
    bool cuda;
    int n_in, n_out;
    struct new_attr attrs[NEW_LAYER_ATTRS];
    struct new_weight weights[NEW_LAYER_WEIGHTS];
    size_t n_attrs, n_weights;
    const char *extends;               /* as given, or NULL */
    const struct registry_layer *base; /* that layer */
};

/* Each checks one option's text, and says what is wrong with it and what would be right.
 */
int new_layer_name(struct new_layer *l, const char *name, strata_error *err);
int new_layer_namespace(struct new_layer *l, const char *ns, strata_error *err);
int new_layer_attr(struct new_layer *l, const char *text, strata_error *err);
int new_layer_weight(struct new_layer *l, const char *text, strata_error *err);
void new_layer_free(struct new_layer *l);

/* "LeakyReLU" becomes "leaky_relu". */
void new_layer_snake(char *out, size_t size, const char *name);
int new_layer_values(struct template_values *v, const struct new_layer *l,
                     strata_error *err);

#endif /* TOOLS_NEW_LAYER_NEW_LAYER_H */
