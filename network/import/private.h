/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the passes: what they work on, and the order they come in.
 */
#ifndef NETWORK_IMPORT_PRIVATE_H
#define NETWORK_IMPORT_PRIVATE_H

#include "ini/names.h"
#include "network/import/import.h"
#include "network/import/section.h"
#include "network/network.h"

#define IMPORT_REASON 512      /* bytes of why a symbol is fixed */
#define IMPORT_MAX_REFUSALS 20 /* that are kept; further ones are counted */
/* Elements of what is folded, where more are not left to run time. */
#define IMPORT_FOLD_ELEMENTS (INT64_C(16) << 20)

#define IMPORT_SYMBOLS NETWORK_MAX_SYMBOLS
#define IMPORT_UNNAMED "N" /* of dims without a name, in [profile] and options */

/* Dims of inputs that the model leaves free. */
struct symbol {
    const char *symbol; /* the model's; "": the first dim, without a name */
    char name[2 * CONFIG_MAX_KEY + 2]; /* in [profile]; of a sum "past+T" */
    int64_t value;                     /* in this import */
    int64_t least, most;               /* in [profile]; equal: one size */
    int64_t step;                      /* sizes are so many of it from `most` */
    bool open;                         /* no option tells where the range begins */
    int64_t sizes[CONFIG_MAX_SIZES];   /* that are listed there, ascending to `most` */
    size_t n;
    bool first;   /* inputs' shapes begin with it: the batch */
    bool assumed; /* no option tells its sizes */
    /* A sum of symbols, -1: none, and a number; it has no sizes of its own (sum.c). */
    bool is_sum;
    int first_summand, second_summand;
    int64_t more;
    char reason[IMPORT_REASON]; /* why it is fixed; "": it stays in the network */
};

/* Lists of counted rows that were joined (counted/places.c). */
struct counted_joins {
    struct counted_joins *next;
    int64_t *rows; /* of each part: the value that tells them; below -1: so many */
    int n, places, sum;
    int64_t room;
};

struct import {
    struct graph g;
    struct symbol symbols[IMPORT_SYMBOLS];
    int n_symbols;
    struct memo *memo; /* whose constants the graph may have; or NULL */
    const struct onnx_model *model;
    strata_registry *registry;
    struct import_options options;
    struct section **sections; /* producers first */
    struct import_refusal *refusals;
    struct names refused;   /* their texts */
    struct names functions; /* of the model: inline.c */
    const char **wanted;
    size_t n_sections, n_refusals, n_wanted, all_refusals;
    size_t n_inlined;  /* nodes and calls of functions, so far */
    size_t n_unrolled; /* nodes of loops (control/) */
    uint64_t branches; /* a hash of those that were taken, in order */
    int places;        /* where caches are states: the value that counts what rows hold */
    bool counts;       /* it has a next value: the last output */
    struct counted_joins *joins;
    int *counted; /* of each output of the model: import_counted_axis */
    size_t n_counted;
    /* upgrade/grouped.c: keys that pasts hold, of these lengths, for queries so long. */
    int taken, taken_of;
    int64_t taken_length;
    /* upgrade/few_bits.c: means of blocks so long, of that value. */
    int means, means_of;
    int64_t means_block;
    size_t sections_capacity, refusals_capacity, wanted_capacity;
};

/* Record why something is not imported; nothing is recorded twice. op: see
 * import_refusal. */
void import_refuse(struct import *im, const char *op, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* The same of a node: "node 'n' (Op, opset 13): ..."; its outputs are then refused. */
void import_refuse_node(struct import *im, const struct node *n, const char *op,
                        const char *format, ...) PRINTF_LIKE(4, 5);
/* Note that what this value is computed from, an input of the network, would have to be
 * a constant; the name of one such input, NULL: none is near. */
const char *import_want(struct import *im, const struct value *v);

/* The passes. A failure is ENOMEM, or a defect; what the model asks for in vain is
 * refused, and the pass goes on. */
int import_load(struct import *im, strata_error *err);
int import_fold(struct import *im, strata_error *err);
/* The same of nodes from this one on: those that a node under way is replaced by. */
int import_fold_from(struct import *im, size_t first, strata_error *err);
int import_drop(struct import *im, strata_error *err);
int import_find_patterns(struct import *im, strata_error *err);
int import_map(struct import *im, strata_error *err);
int import_name(struct import *im, strata_error *err);
/* Log which inputs and outputs could not keep their names (name.c). */
void import_tell_names(struct import *im);

/* symbols/find.c: find the symbols of the model, by its inputs and the options. */
void import_find_symbols(struct import *im);
/* The symbol that a free dim of an input is; first: dim 0. -1: it is none. */
int import_find_symbol(const struct import *im, const struct onnx_dim *dim, bool first);
/* Import a model that has some: as import_make. `start` has model, registry, options and
 * symbols alone. (symbols/symbols.c) */
int import_with_symbols(struct import **out, const struct import *start,
                        strata_error *err);
/* Sizes of sums, by those of the others. (symbols/sum.c) */
void symbols_add(const struct import *im, int64_t *sizes);
/* Let sections name symbols that stay, which have their values. */
void import_name_sizes(struct import *im);
/* passes.c: the passes, with a size for each symbol, as import_make; and all reasons why
 * it was refused, or STRATA_OK. */
int import_at(struct import **out, const struct import *start, const int64_t *sizes,
              struct memo *memo, strata_error *err);
int import_refused(const struct import *im, strata_error *err);

#endif /* NETWORK_IMPORT_PRIVATE_H */
