/* SPDX-License-Identifier: Apache-2.0
 *
 * An ONNX model as a network: the text of its INI file, and its weights. Passes, each a
 * file or a folder here, and passes.c has them in order:
 *
 *     load.c       the file's graph as values and nodes (graph.h); inline.c puts
 * functions in place fold.c       node by node: upgrade/ makes operators of every opset
 * those of one, control/ puts branches and loops in place, layers tell shapes
 *                  (section.c), and what hangs on constants alone becomes one
 *     counted/     rows whose number values tell, while folding
 *     drop.c       nodes that do nothing vanish
 *     pattern/     several operators that are one layer
 *     map/         operators to layers, as tables; rows.c applies them, layers.c keeps
 *                  what they make
 *     name.c       names of layers that a person can tell
 *     symbols/     all of these again at other sizes of dims that the model leaves free,
 *                  and whether it is the same network
 *     write.c      the INI file, and the weights beside it; report.c what became of nodes
 */
#ifndef NETWORK_IMPORT_IMPORT_H
#define NETWORK_IMPORT_IMPORT_H

#include "ini/config.h"
#include "io/onnx/model.h"
#include "registry/registry.h"

struct import;

/* Dims of an input, "x=1x3x224x224". */
struct import_shape {
    const char *name;
    int rank;
    int64_t dims[STRATA_MAX_RANK];
};
/* Sizes of a symbol: "batch=1", "batch=1,8,32", "T=1..512:32,128" or "H=32..512/32". */
struct import_symbol {
    const char *name;
    size_t n;
    int64_t values[CONFIG_MAX_SIZES]; /* that are listed, the end of the range too */
    bool range;                       /* from `least` on; else from 1 where n > 1 */
    int64_t least, step;              /* step 0: not told */
};
/* An input of the model that is a constant here. */
struct import_constant {
    const char *name;
    const struct onnx_tensor *tensor; /* the caller's until import_free */
};

/* An output of the model that is the input's value in the next run. */
struct import_state {
    const char *output, *input;
};

/* All zero is the default. */
struct import_options {
    const struct import_shape *shapes;
    const struct import_symbol *symbols;
    const struct import_constant *constants;
    const struct import_state *states;
    size_t n_shapes, n_symbols, n_constants, n_states;
    int64_t cache;    /* keys that caches have room for as states; 0: none are made */
    bool no_patterns; /* a layer an operator */
    const char *name; /* of the network; NULL: the file's */
};

/* Why a node, an input or a value is not imported. */
struct import_refusal {
    const char *text; /* what, where, found, needed, remedy */
    const char *op;   /* of a node whose operator has no layer; NULL: another reason */
};

/* Dims of inputs that the model leaves free and gives a name stay symbols of the network
 * ([profile]) where it is the same for every size: all but those with one value, and also
 * what inputs' shapes begin with, the batch, whose one value is 1 without options. Where
 * it is not, a warning says why, and the batch is fixed to its first size, another to its
 * largest. Without options the others have 1 to 512, or what of it the model takes, and
 * are refused where they cannot stay.
 *
 * EUNSUPPORTED, with all reasons (at most 20, and their number) in err, where the model
 * cannot be a network; *out is then what import_refusals tells of. The model must outlive
 * it. Free in every case; NULL on ENOMEM. */
int import_make(struct import **out, const struct onnx_model *m,
                strata_registry *registry, const struct import_options *options,
                strata_error *err);
void import_free(struct import *im);

const struct import_refusal *import_refusals(const struct import *im, size_t *n);
/* Names of inputs of the model that would have to be constants. */
const char *const *import_wanted(const struct import *im, size_t *n);

/* The network's input that an input of the model is, in the order of [input] sections;
 * -1: it is a constant here, or there is none of that name. */
int import_find_input(const struct import *im, const char *name);
/* Whether anything hangs on an input of the network. */
bool import_reads_input(const struct import *im, int input);

/* The dim of output i of the model along which only values tell how many rows count: the
 * others are -1, of BOOL no; -1: all count. */
int import_counted_axis(const struct import *im, size_t i);

/* JSON: each node of the model with the layers it became, or why it is gone; and what was
 * refused. malloc'ed. */
int import_report(const struct import *im, char **text, size_t *size, strata_error *err);

/* The INI text, whose weights are `file` (a name beside it); malloc'ed. */
int import_text(const struct import *im, const char *file, char **text, size_t *size,
                strata_error *err);
/* The weights, as safetensors: LAYER.WEIGHT. Into memory, malloc'ed; or a file. */
int import_weights(const struct import *im, void **bytes, size_t *size,
                   strata_error *err);
int import_save_weights(const struct import *im, const char *path, strata_error *err);

#endif /* NETWORK_IMPORT_IMPORT_H */
