/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of the network to be: what a [layer] section will say. The layer itself tells
 * its shapes and, by its reference, its values, so that what is folded here is what a
 * plan would compute.
 */
#ifndef NETWORK_IMPORT_SECTION_H
#define NETWORK_IMPORT_SECTION_H

#include "network/import/graph.h"
#include "registry/registry.h"

#define SECTION_ATTRS 32
#define SECTION_WEIGHTS 8

struct section_attr {
    const char *key, *value; /* as an INI file says it */
    bool named;              /* value names sizes of the graph: symbols/list.c */
};

struct section_weight {
    const char *name; /* the layer's */
    int value;        /* a constant */
};

struct section {
    const char *type;
    const char *name;    /* unique, of characters that a section's name may have */
    const char *comment; /* a line above it, or NULL */
    struct section_attr attrs[SECTION_ATTRS];
    struct section_weight weights[SECTION_WEIGHTS];
    int n_attrs, n_weights;
    int *in, *out; /* values; VALUE_NONE: absent, or read by nobody */
    int n_in, n_out;
    size_t in_capacity, out_capacity;
    int *ranks; /* of outputs in the model, beside out; -1: the layer's */
    const struct node *node;
    /* After section_infer. */
    const struct registry_layer *layer;
    void *params;        /* layer->layer.params_size bytes */
    void *params_memory; /* malloc'ed: section_free */
};

struct section *section_make(struct graph *g, const char *type, const struct node *node);
/* What lies outside of the arena. */
void section_free(struct section *s);

/* Attributes, each once: a second replaces the first. NULL sections are passed over. */
void section_word(struct graph *g, struct section *s, const char *key, const char *word);
void section_flag(struct graph *g, struct section *s, const char *key, bool on);
void section_integer(struct graph *g, struct section *s, const char *key, int64_t v);
void section_integers(struct graph *g, struct section *s, const char *key,
                      const int64_t *v, int64_t n);
/* The shortest decimal is written. */
void section_real(struct graph *g, struct section *s, const char *key, double v);
void section_reals(struct graph *g, struct section *s, const char *key, const double *v,
                   int64_t n);
void section_in(struct graph *g, struct section *s, int value);
void section_out(struct graph *g, struct section *s, int value);
/* The same, of a rank other than the layer's: 0, a scalar. */
void section_out_rank(struct graph *g, struct section *s, int value, int rank);
void section_weight(struct section *s, const char *name, int value);

/* Find the type, read the attributes, and give the outputs dtype and dims. A failure is
 * the layer's or the INI reader's, in err: a reason why the node cannot be imported. */
int section_infer(struct graph *g, struct section *s, strata_registry *registry,
                  strata_error *err);
/* Make constants of the outputs, of constant inputs. EUNSUPPORTED: the layer has no
 * reference, or a weight with factors. `most`: elements that an output may have,
 * EOVERFLOW beyond. */
int section_run(struct graph *g, struct section *s, int64_t most, strata_error *err);

#endif /* NETWORK_IMPORT_SECTION_H */
