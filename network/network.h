/* SPDX-License-Identifier: Apache-2.0
 *
 * A network: tensors, layers with validated parameters and shapes, in an order in which
 * every tensor is made before it is read. Immutable once loaded. Holds no format
 * choices; those are the plan's.
 */
#ifndef NETWORK_NETWORK_H
#define NETWORK_NETWORK_H

#include <stdatomic.h>
#include <stdio.h>

#include "formats/format.h"
#include "ini/config.h"
#include "io/image/image.h"
#include "io/weights/weights.h"
#include "network/options.h"
#include "registry/registry.h"

#define NETWORK_MAX_LAYERS 65536
#define NETWORK_MAX_INPUTS 1024  /* of a layer, and of the network */
#define NETWORK_MAX_OUTPUTS 1024 /* the same */
#define NETWORK_MAX_TENSORS (1 << 20)
#define NETWORK_MAX_DIM INT32_MAX
#define NETWORK_MAX_ELEMENTS (INT64_C(1) << 40) /* of a tensor or weight */

struct network_tensor {
    char *name; /* "conv1", "split:1" */
    int rank;
    int dtype;  /* logical: FP32 stands for any float the precision allows */
    bool exact; /* written in dtype itself, whatever the precision */
    int64_t dims[STRATA_MAX_RANK];
    int producer;     /* layer index, -1 for a network input */
    int port;         /* of the producer, or index of the input */
    uint64_t formats; /* the user's pin (`format =` of the layer); 0: free */
};

/* A dim that is a symbol's size and more: "past+T", "past+1". */
struct network_sum {
    int8_t first, second; /* symbols; first -1: it is none; second -1: a number alone */
    int64_t more;
};

struct network_input {
    char *name;
    int tensor;
    struct format format; /* as bound by the application; fp32:nchw by default */
    struct image_transform transform;
    int8_t symbols[STRATA_MAX_RANK]; /* of each dim: the network's, or -1: a number */
    struct network_sum sums[STRATA_MAX_RANK]; /* what a dim without a symbol is */
    bool pads_any; /* pad lanes come with any content, else zero */
};

#define NETWORK_MAX_SYMBOLS 8
#define NETWORK_MAX_PLANS 64 /* combinations of their listed sizes */

/* A name of [profile] that stands for several sizes. */
struct network_symbol {
    char *name;
    int64_t least, most, step; /* sizes between are steps behind the least */
    int64_t sizes[CONFIG_MAX_SIZES]; /* to plan for, ascending; the last is most */
    size_t n_sizes;
};

/* [state NAME]: a tensor that lives in contexts. A run reads it as an input and leaves
 * `next`, of the same shape and format, as its value for the run after it. */
struct network_state {
    int input, output; /* of the network; not among those that applications bind */
    double value;      /* of every element at first, and after a reset */
    int64_t room;      /* largest value that is in order, of integers; 0: any */
    struct config_place place;
};

struct network_output {
    char *name; /* tensor's name */
    int tensor;
    struct format format; /* fp32:nchw by default */
};

enum weight_source {
    WEIGHT_ABSENT,
    WEIGHT_FILE,
    WEIGHT_RANDOM,
    WEIGHT_ZEROS,
    WEIGHT_JOINED, /* of several weights, one behind the other along a dim */
    WEIGHT_AFFINE  /* a vector of FP32 made of others, entry by entry */
};

struct network_weight;

/* Parts of one dtype, whose dims agree but for the one along which they are joined; an
 * absent one stands for zeros. */
struct network_join {
    const struct network_weight *const *parts;
    const int64_t *counts; /* of each along the axis */
    int n, axis;
};

/* An operand of a WEIGHT_AFFINE: an FP32 vector, of one element or as many as that, or
 * without one `absent`. */
struct network_operand {
    const struct network_weight *weight;
    double absent;
};

/* of[k]*scale[k] + shift[k], in FP64, rounded once. */
struct network_affine {
    struct network_operand of, scale, shift;
};

struct network_weight {
    enum weight_source source;
    struct weight_view view; /* WEIGHT_FILE */
    uint64_t seed;           /* WEIGHT_RANDOM */
    const struct network_join *join; /* WEIGHT_JOINED */
    const struct network_affine *affine; /* WEIGHT_AFFINE */
    int dtype;               /* as the layer accepts it */
    int rank;
    int64_t dims[STRATA_MAX_RANK]; /* as the layer expects it */
    const struct network_weight *factors; /* of its values, dims equal or 1; or NULL */
    int64_t shared; /* neighbours along dim `along` of the first weight that have an element
                       of this one in common: two values in a byte, or those of a factor */
    int along;
    bool stored; /* WEIGHT_JOINED: of its parts as their files have them */
    char *name; /* "conv1.weight", for messages and the random stream */
};

/* An entry of a list in a layer's params that is a symbol's size. */
struct network_name {
    const strata_attr *attr; /* STRATA_INTS */
    int entry, symbol;
    int64_t times, over; /* the size by this, which divides it */
    int plus;            /* and the size of that symbol; -1: none */
    int64_t more;        /* and so many */
};

struct network_layer {
    char *name;
    const struct registry_layer *type;
    void *params;          /* type->layer.params_size bytes */
    void *params_memory;   /* what lists and strings in params point to */
    struct network_name *names; /* by attribute; of a version, params are its own then */
    size_t n_names;
    int *inputs, *outputs; /* tensor indices */
    int n_inputs, n_outputs;
    int *ports;  /* the layer's input that each of `inputs` is; NULL: all of them in order
                  */
    int n_ports; /* inputs of the layer, absent ones included */
    struct network_weight *weights; /* type->n_weights */
    uint64_t formats;               /* allowed for its outputs; 0: any */
    char *impl;                     /* pinned impl name, or NULL */
    struct config_place place;
};

/* The layer's input that its i-th tensor is. */
static inline int network_port(const struct network_layer *layer, int i)
{
    return layer->ports ? layer->ports[i] : i;
}

static inline bool network_has_weight(const struct network_layer *layer, size_t weight)
{
    return layer->weights[weight].source != WEIGHT_ABSENT;
}

/* Whether its first weight's values are stored apart from factors of them. */
static inline bool network_has_factors(const struct network_layer *layer)
{
    return layer->type->n_weights > 0 && layer->weights[0].factors;
}

/* What a network with merged layers, or without some pairs, has for itself: blocks to
 * free. */
struct network_merged {
    void **blocks;
    size_t n, capacity;
    bool pairs; /* it is one without pairs (pairs/pairs.h), and nothing is merged */
};

struct strata_network {
    atomic_int references; /* owners besides the first */
    char *path;            /* of the INI file */
    char *name;
    struct network_tensor *tensors;
    struct network_layer *layers;
    struct network_input *inputs;
    struct network_output *outputs;
    struct weights **files; /* weights the views point into */
    /* The last n_states of inputs and of outputs are those of states, in order. */
    struct network_state *states;
    size_t n_tensors, n_layers, n_inputs, n_outputs, n_states, n_files;
    char **labels; /* class names for top-k, or NULL */
    size_t n_labels;
    struct build_options build;
    struct runtime_options runtime;
    struct bench_options bench;
    struct network_symbol *symbols;
    size_t n_symbols;
    int batch_symbol; /* that dim 0 of inputs has and no other dim; or -1 */
    /* Types that layers or groups of them may become, or that merged ones need; NULL:
     * there is none, or no use for it. */
    const struct registry_layer *pointwise, *pooling, *slice, *gated, *projection,
        *perceptron, *inverted_residual, *bottleneck, *shortcut_convolution,
        *pooled_convolution, *self_attention;
    const struct registry_layer *quantized_convolution, *quantized_deconvolution,
        *quantized_product, *quantized_sum, *quantized_pooling, *quantized_attention,
        *quantized_pointwise;
    const strata_network *base;    /* NULL; or that of which this is a version for other
                                      sizes: all but the tensors is then the base's, and the
                                      layers where some name symbols; or that of which
                                      layers are merged here (merge/merge.h), or pairs
                                      left out (pairs/pairs.h) */
    struct network_merged *merged; /* NULL; or what such a network has for itself, of
                                      which versions of it are, too */
    struct config *config;      /* places of everything */
    char **paths; /* of the files read besides those of config: weights, labels */
    size_t n_paths;
};

/* One more owner; strata_network_destroy drops one and frees with the last. Engines keep
 * their network this way. */
strata_network *network_retain(const strata_network *net);
/* The network that was loaded, of which this one is a version, or has merged layers. */
const strata_network *network_loaded(const strata_network *net);

/* Whether the file at path is one of those the network was read from: of its text, its
 * weights, its labels, its costs, or its engine. */
bool network_reads(const strata_network *net, const char *path);

/* batch.c: rows of the network's inputs: dim 0 of those that begin with the batch's
 * symbol, else of all; EUNSUPPORTED if they differ. */
int network_batch(const strata_network *net, int64_t *batch, strata_error *err);
/* The network for another batch. EUNSUPPORTED names the layer that stands in the way: one
 * whose shape hangs on the batch otherwise than by dim 0, or that mixes its rows. */
int network_rebatch(strata_network **out, const strata_network *net, int64_t batch,
                    strata_error *err);
/* resize.c: the network at other sizes of its symbols, one each, whatever its layers do
 * along them. EINVAL: outside of a symbol's range; EUNSUPPORTED names the layer that
 * cannot have the shape. */
int network_resize(strata_network **out, const strata_network *net, const int64_t *sizes,
                   strata_error *err);
/* A version of a network whose tensors alone are its own, as the base has them, and
 * parameters that name symbols. */
int network_version(strata_network **out, const strata_network *base, strata_error *err);
/* Such parameters hold these sizes of symbols from now on, in a version; those below 0
 * stay. names.c */
void network_name_sizes(strata_network *version, const int64_t *sizes);
/* What a sum is at these sizes. names.c */
int64_t network_sum_size(const struct network_sum *sum, const int64_t *sizes);
/* The same at the least and the largest sizes. */
void network_sum_range(const strata_network *net, const struct network_sum *sum,
                       int64_t *least, int64_t *most);
/* Whether a list of the layer begins with the symbol. */
bool network_begins_with(const struct network_layer *layer, int symbol);
/* Whether what a layer's shape gave is a tensor. shapes.c */
bool network_tensor_valid(const strata_tensor *t);
/* The most tensors that a layer has, weights too. */
size_t network_most_tensors(const strata_network *net);
/* A symbol by name, or -1; or EINVAL with the names that there are. */
int network_find_symbol(const strata_network *net, const char *name);
int network_require_symbol(int *symbol, const strata_network *net, const char *name,
                           strata_error *err);
/* EINVAL for a size outside of a symbol's range, or between its steps. */
int network_check_size(const strata_network *net, int symbol, int64_t size,
                       strata_error *err);
/* An input's dims at sizes of the symbols, one each. resize.c */
void network_input_dims(int64_t *dims, const strata_network *net,
                        const struct network_input *in, const int64_t *sizes);
/* Whether rows of an input go into the outputs: of others the layer reads the dims. And
 * whether the outputs have rows at all, where an input has. */
bool network_reads_rows(const struct registry_layer *type, int input);
bool network_gives_rows(const struct registry_layer *type);
/* How a layer of inputs up to that rank mixes rows although its output's dims are as if
 * it did not; NULL: it does not. */
const char *network_mixes_rows(const struct registry_layer *type, const void *params,
                               int rank);

/* Fill a strata_node's tensors for a layer's callbacks: dims and dtypes only. `in`,
 * `out` and `weight` must hold n_ports, n_outputs and n_weights entries. */
void network_node(const strata_network *net, const struct network_layer *layer,
                  strata_node *node, strata_tensor *in, strata_tensor *out,
                  strata_tensor *weight, strata_error *err);

/* Logical elements of dims; -1 if a dim is negative or above NETWORK_MAX_DIM, or the
 * product exceeds NETWORK_MAX_ELEMENTS. */
int64_t network_elements(const int64_t *dims, int rank);

/* Values of a weight as its dtype, dense linear; dst holds its bytes. Random ones are
 * He-normal; an absent weight is EINVAL. */
int network_weight_load(const struct network_weight *w, void *dst, strata_error *err);
/* A weight as its file has it, before factors: a copy, of what has some; dims are those
 * of bytes where two values share one. factors.c */
struct network_weight network_weight_stored(const struct network_weight *w);
/* Weight i of a layer as an impl of these flags sees it: absent, where it is factors that
 * the values have been multiplied by. */
struct network_weight network_weight_seen(const struct network_layer *layer,
                                          int32_t impl_flags, size_t i);
/* Elements that n neighbours have which `each` of them share. */
static inline int64_t network_shares(int64_t n, int64_t each)
{
    return n / each + (n % each > 0);
}
/* Whether nothing but floats is made of a layer's first weight: it has no factors, or its
 * integers would be multiplied by those of a pair that is left out (pairs/pairs.h). */
bool network_has_plain_weight(const strata_network *net,
                              const struct network_layer *layer);
/* Multiply its values, `count` of them, by its factors as those were loaded. factors.c */
void network_weight_multiply(const struct network_weight *w, float *values,
                             int64_t count, const float *factors);
/* A weight's values where they lie in memory already, if those are what
 * network_weight_load would give, aligned as tensors are; valid while the network lives.
 * Else NULL. */
const void *network_weight_in_place(const struct network_weight *w);

/* A network that is not in files: its text, and what the text names. */
#define NETWORK_MEMORY_LABELS "labels"   /* network.labels */
#define NETWORK_MEMORY_WEIGHTS "weights" /* file of [weights NAME] */
struct network_memory {
    const char *text, *labels;
    const void *weights; /* stays where it is while the network lives; NULL: none */
    size_t text_size, labels_size, weights_size;
};
/* Like strata_network_load. The text may name the two above and no other file, plugins
 * among them. `name` is for messages. */
int network_parse(strata_network **out, const struct network_memory *memory,
                  const char *name, strata_registry *registry, strata_error *err);
/* The network as such a text, the caller's to free; `math` is the STRATA_MATH_* to
 * write. write.c */
int network_write(char **text, size_t *size, const strata_network *net, int math,
                  strata_error *err);

/* The text as a person would write it, in one file beside the network's: includes,
 * variables, overrides and comments are gone, and files are named from there. What it
 * read comes out in the order of the network; types get the shortest name that finds them
 * in the registry. Of one thread at a time. print.c */
int network_print(char **text, size_t *size, const strata_network *net,
                  strata_registry *registry, strata_error *err);

/* The same text, but for what is said otherwise: a network made of this one. */
struct network_edit {
    const void *of;
    const char *weights; /* the file of [weights w], which holds all of them */
    const char *labels;  /* the file of labels; NULL: as the network has it */
    bool alone;          /* for network_parse: no labels, no plugins, no costs */
    /* The tensor that a layer's i-th input is. */
    const char *(*input)(const void *of, const struct network_layer *layer, int i);
    /* The tensor of the file that a layer's weight is; NULL: it is absent. */
    const char *(*weight)(const void *of, const struct network_layer *layer, size_t i);
    /* A layer's attributes, in a struct as its own. */
    const void *(*params)(const void *of, const struct network_layer *layer);
    /* Sections behind a layer's; NULL: behind those of the network's inputs. */
    void (*behind)(const void *of, const struct network_layer *layer, FILE *f);
};
int network_print_edited(char **text, size_t *size, const strata_network *net,
                         strata_registry *registry, const struct network_edit *edit,
                         strata_error *err);

/* image.c: values of one image, dense linear FP32, for a row of an input of 1 or 3
 * channels: resized, normalised and in the order that its section says. */
int network_image(float *values, const strata_network *net,
                  const struct network_input *in, const struct image *im,
                  strata_error *err);

/* An input by name, or NULL. */
const struct network_input *network_find_input(const strata_network *net,
                                               const char *name);

#endif /* NETWORK_NETWORK_H */
