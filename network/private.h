/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this room only: a network while it is loaded. Steps: sections,
 * layers, references, order, weights and shapes, outputs. A step records what is wrong
 * in the config and returns other failures (ENOMEM, a plugin's).
 */
#ifndef NETWORK_PRIVATE_H
#define NETWORK_PRIVATE_H

#include "ini/names.h"
#include "network/network.h"

/* One [weights NAME]. */
struct source {
    const char *name;
    struct config_place place;
    struct weights *file; /* NULL: random; owned by the network */
    uint64_t seed;
    bool broken; /* an error was recorded; references to it pass */
    bool strict; /* what is most likely a mistake is an error */
};

enum { NODE_NONE = -1 }; /* of an input written `none` */

/* A tensor of a node: network inputs are the first nodes, then drafts in file order. */
struct reference {
    int node, port;
};

/* One [layer NAME], in the order of the file. */
struct draft {
    struct config_section *section;
    struct network_layer layer;
    struct config_pair *inputs_pair; /* NULL: by default */
    struct config_item *inputs;
    struct reference *references;
    size_t n_inputs, n_references;
    struct config_place *weight_places; /* of the key that binds each weight */
    bool broken;
    int first_tensor;
};

struct loader {
    strata_network *net;
    struct config *c;
    strata_registry *registry;
    const struct network_memory *memory; /* instead of files; or NULL */
    strata_error *err;
    struct source *sources;
    size_t n_sources, sources_capacity;
    size_t inputs_capacity, states_capacity, files_capacity, paths_capacity;
    struct names source_index;
    struct draft *drafts;
    size_t n_drafts, drafts_capacity;
    struct names node_index; /* inputs and drafts by name, to nodes */
    struct names type_index; /* layer types found, to types */
    const struct registry_layer **types;
    size_t n_types, types_capacity;
    int *begun;       /* by names of [profile]: shapes of inputs that begin with them */
    int *order;       /* drafts, producers first */
    bool told_search; /* an error has said where plugins were looked for */
};

/* reader.c */
/* Run `read` over the sections of a kind, in order. */
int network_each(struct loader *l, const char *kind,
                 int (*read)(struct loader *l, struct config_section *s));
/* A path written in the INI file, resolved from the folder of the file it stands in;
 * NULL after recording why not. A folder's path is absolute. */
/* PATH_WEIGHTS is a PATH_FILE whose section may say that it lies anywhere. */
enum path_kind { PATH_FILE, PATH_WEIGHTS, PATH_FILE_ANYWHERE, PATH_FOLDER };
char *network_path(struct loader *l, const struct config_pair *p, enum path_kind kind);
/* Keep the path of a file that was read; takes it, NULL too. */
int network_keep_path(struct loader *l, char *path);
/* One format's name; false after recording why it is none. */
bool network_format(struct config *c, const struct config_pair *p,
                    const struct config_item *item, struct format *out);
/* "a, b" as a mask of the format table. */
bool network_formats(struct config *c, const struct config_pair *p, uint64_t *out);

/* input.c, bench.c */
int network_input(struct loader *l, struct config_section *s);
/* [state NAME], but what `next` names: network_read_states, of state.c, finds that. */
int network_state(struct loader *l, struct config_section *s);
int network_read_states(struct loader *l);
int network_bench(struct loader *l, struct config_section *s);

/* sections.c: [network], [input], [state], [build], [runtime], [bench], [plugins],
 * [profile]. */
int network_read_sections(struct loader *l);

/* profile.c */
/* Names of [profile]: before [input]; what they are, behind. */
int network_profile(struct loader *l);
void network_settle_profile(struct loader *l);
/* The network's symbol that one of the config's is, or -1. */
int network_symbol_of(const strata_network *net, const struct config *c, int index);

/* names.c: what a version has for itself where layers name symbols. */
int network_own_layers(strata_network *version, strata_error *err);
void network_free_own_layers(strata_network *version);

/* weights.c */
/* [weights]. */
int network_read_sources(struct loader *l);
/* Weights of one draft, from its section's keys. */
int network_bind_weights(struct loader *l, struct draft *d);

/* doubt.c: what loads, but is most likely not meant: told as warnings. */
/* Tensors of files that nothing reads, beside those that something reads, and integers
 * where floats are wanted; errors if [weights] is strict. */
int network_doubt_weights(struct loader *l);
/* Names of classes that are not as many as the classes. */
void network_doubt_labels(const strata_network *net);

/* factors.c: what a layer's factors are of, once the dims of its weights are known. */
int network_bind_factors(struct loader *l, const struct draft *d,
                         struct network_layer *layer);
/* Values of a weight of a file as its dtype, before factors; count of them. */
int network_weight_unpack(const struct network_weight *w, void *values, int64_t count,
                          strata_error *err);

/* layers.c: [layer] sections as drafts: types, attributes, weights, what their inputs
 * name. */
int network_read_layers(struct loader *l);
/* The type that siblings need to be merged, where there are some. After the layers. */
int network_find_slice(struct loader *l);

/* graph.c */
/* "NAME" or "NAME:PORT" to a node; false after recording an error. */
bool network_reference(struct loader *l, const struct config_pair *p,
                       const struct config_item *item, struct reference *out);
const char *network_node_name(const struct loader *l, int node);
/* Look up what inputs name; put the order of drafts into l->order. */
int network_resolve(struct loader *l);
int network_sort(struct loader *l);

/* shapes.c */
/* Shapes of weights and outputs of net->layers, in order; order maps to drafts. */
int network_infer(struct loader *l);
int network_read_outputs(struct loader *l);

#endif /* NETWORK_PRIVATE_H */
