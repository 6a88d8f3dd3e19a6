/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators as layers. A row an operator, by families in tables (map/); a row that needs
 * more than new names has a function. Operators are those of one opset, as upgrade.h
 * leaves them: nothing here asks for a version.
 */
#ifndef NETWORK_IMPORT_MAP_H
#define NETWORK_IMPORT_MAP_H

#include "network/import/import.h"
#include "network/import/section.h"

struct mapping;

/*
 * `ports` has a letter for each input of the operator: x an input of the layer, w a
 * weight of it, which must be constant, in the order of the layer's weights; - none of
 * both; + after an x: further ones too. `names` pairs their attributes with ours:
 * "theirs=ours", ended by ? where it is yes or no, by ~ where it is a word in capitals;
 * "#k=ours" takes them from input k, which must be constant. `fixed` is attributes of the
 * layer, "name=value" with ',' between.
 */
struct map_rule {
    const char *op;
    const char *layer; /* NULL: `finish` makes all */
    const char *fixed, *ports, *names;
    void (*finish)(struct mapping *m); /* after the layer was begun, m->s; or NULL */
    const char *note;   /* what of the operator is not taken, for docs/onnx.md; or NULL */
    const char *domain; /* NULL: ai.onnx */
};

struct map_table {
    const char *title; /* heading in docs/onnx.md */
    const struct map_rule *rules;
    size_t n;
};

/* All families, in the order of the docs; ended by NULL. */
extern const struct map_table *const map_tables[];
extern const struct map_table map_refused; /* what cannot be a layer */
const struct map_rule *map_find(const char *op, const char *domain);

/* What a row's function sees and makes. */
struct mapping {
    struct import *im;
    struct graph *g;
    const struct node *node;
    const struct map_rule *rule;
    struct section *s;         /* begun last */
    struct section **sections; /* all of the node, in order */
    size_t n_sections, capacity;
    bool refused;
    bool keep; /* what is made here is the network's; else it only tells shapes */
};

/* Map one node: m->sections, or m->refused with the reason recorded. im, g and node are
 * given. STRATA_OK or ENOMEM. */
int map_node(struct mapping *m, strata_error *err);

/* Before a section is inferred: floats that an exact one meets become exact, by a Cast
 * each, as layers want one dtype. The casts are kept where m->keep. */
int map_match(struct mapping *m, struct section *s, strata_error *err);

/* After a section is inferred: a weight that is a product of INT8 and a scale as both.
 * (map/factors.c) */
void map_factors(const struct graph *g, struct section *s);

/* The layer that a plugin has for the node's domain and operator; false: none has.
 * (map/custom.c) */
bool map_custom(struct mapping *m, strata_registry *registry);

/* ---- for the functions of rows -------------------------------------------------------
 */

/* Say why the node cannot be imported, once: what was found, and what is needed. */
void map_refuse(struct mapping *m, const char *format, ...) PRINTF_LIKE(2, 3);

/* Input i; NULL: absent. Its rank, 0 if absent. */
const struct value *map_input(const struct mapping *m, int i);
int map_input_rank(const struct mapping *m, int i);
bool map_has_output(const struct mapping *m, int i); /* and somebody reads it */
/* Input i as a constant; NULL after refusing the node if it is none, or (quietly) if it
 * is absent. `what` is its name in ONNX. */
const struct value *map_constant(struct mapping *m, int i, const char *what);
/* Integers of attribute `name`, or of constant input i (-1: no such input): how many, at
 * most STRATA_MAX_RANK; -1: neither is there; 0 and refused if there are more. */
int map_integers(struct mapping *m, const char *name, int i,
                 int64_t out[STRATA_MAX_RANK]);
/* An axis in [0, rank), from one in [-rank, rank). */
int64_t map_axis(struct mapping *m, int64_t axis, int rank);

/* Begin a further layer of the node: m->s. */
struct section *map_section(struct mapping *m, const char *type);
/* A value between two layers of the node, read later by section_in. */
int map_between(struct mapping *m);
/* Attributes of m->s, by a list like that of a row. */
void map_names(struct mapping *m, const char *names);
/* Connect m->s: to an input of the node, from an output. */
void map_in(struct mapping *m, int i);
void map_out(struct mapping *m, int i);
/* The same of a rank that the layer does not tell: of a result without dims. */
void map_out_rank(struct mapping *m, int i, int rank);
/* Output i of m->s, which is connected, is of that rank. */
void map_rank(struct mapping *m, int i, int rank);
/* m->s is a layer of another type, without attributes. */
void map_become(struct mapping *m, const char *type);
/* Make output i that constant, or another value: no layer is needed. */
void map_is_constant(struct mapping *m, int i, int dtype, int rank, const int64_t *dims,
                     const void *data);
void map_is(struct mapping *m, int i, int value);
/* A Shuffle that gives `value` these dims, as output i of the node; a constant where
 * there are no elements. */
void map_reshape(struct mapping *m, int value, int i, int rank, const int64_t *dims);

#endif /* NETWORK_IMPORT_MAP_H */
