/* SPDX-License-Identifier: Apache-2.0
 *
 * Dims that a model leaves free, kept in the network as names of [profile]. The model is
 * imported several times, each with another size for one of them; where it comes out as
 * the same network, or what differs can be said for any size, the name stays. No algebra
 * is needed: what depends on a symbol is what differs.
 *
 *     find.c      which there are, and the sizes that they are to have
 *     assume.c    the model at these, and ranges that no option tells
 *     points.c    imports at several sizes, and which symbol is in the way
 *     compare.c   them layer by layer; list.c, constant.c what differs and can be said;
 *                 like.c tensors that say it
 *     ends.c      whether that is the model at both ends of the ranges; settle.c
 *     sum.c       dims that are others or their sum; total.c which, by what is refused
 *     step.c      sizes by steps, where the model takes no others
 *     symbols.c   all of it, until no symbol is in the way
 *     memo.c      what was folded, by a text that tells it
 */
#ifndef NETWORK_IMPORT_SYMBOLS_SYMBOLS_H
#define NETWORK_IMPORT_SYMBOLS_SYMBOLS_H

#include "network/import/private.h"

/* Imports that are compared: one more for each symbol, and one where all differ. */
#define POINTS (IMPORT_SYMBOLS + 2)
#define WIDES 12

/* An import with one symbol at its least size, and another so much beyond its largest
 * that constants of all sizes of both can be parts of this one's. */
struct wide {
    struct import *im;
    int offset;
};

struct points {
    struct import *im[POINTS];
    int changed[POINTS]; /* the symbol whose size is another; -1: several */
    int n;
    struct wide wide[WIDES];
    int n_wide;
    bool lacks_wide; /* a constant is no part of what there is: symbols_compare */
};

struct search {
    struct import start;  /* without sections; its symbols are those of now */
    struct import *plain; /* the model at the sizes of symbols that are fixed */
    struct memo *memo;
    strata_error *err; /* of what ends the search */
};

static inline bool symbol_is_kept(const struct symbol *s)
{
    return !*s->reason;
}

/* Whether it has sizes of its own. */
static inline bool symbol_varies(const struct symbol *s)
{
    return symbol_is_kept(s) && !s->is_sum;
}

static inline bool symbol_has_range(const struct symbol *s)
{
    return s->least != s->most;
}

/* The least of its sizes that is not below `least`: steps below the end. */
static inline int64_t symbol_size(const struct symbol *s, int64_t least)
{
    return s->most - (s->most > least ? (s->most - least) / s->step * s->step : 0);
}

/* The size of a symbol that is fixed: of the batch the first, as a smaller one would be
 * refused by an engine; of others the end, as what is shorter can be padded. */
static inline int64_t symbol_fixed(const struct symbol *s)
{
    return s->first ? s->sizes[0] : s->most;
}
/* Sizes that a symbol is compared at first, beside the largest: 1 and 2. */
int64_t symbol_other(const struct symbol *s, int which);
/* symbol_fixed of all symbols. */
void search_fixed(const struct search *x, int64_t *sizes);
/* Sizes that the network is the model's at, if it stays: those that it was compared at.
 */
void search_sizes(const struct search *x, int64_t *sizes);
/* How many symbols stay so far; *last: the last of them. */
int search_kept(const struct search *x, int *last);

/* assume.c: import the plain model anew, as sizes are others. */
int search_again(struct search *x);
/* Import the plain model; where no option tells a range, find its end. */
int search_first(struct search *x);
/* points.c: *any, the model as a network for any sizes. EUNSUPPORTED: *blamed is in the
 * way. */
int search_any(struct import **any, const struct search *x, int *blamed,
               strata_error *why);
/* ends.c: whether it is the model's own at the ends of all ranges, which it finds where
 * no option tells them; EUNSUPPORTED as above. It is then settled for the plain sizes. */
int search_check(struct search *x, struct import *any, int *blamed, strata_error *why);

/* sum.c: make a symbol a sum; make those sums whose names say so; what they are once
 * ranges or summands are others. */
void symbol_make_sum(struct symbol *s, int first, int second, int64_t more);
void symbols_find_sums(struct import *im);
void symbols_settle_sums(struct symbol *all, int n);
/* total.c: find symbols that are others, or one that is the sum of others, as the model
 * refuses them to be anything else. False: none is. */
bool search_same(struct search *x);
bool search_sum(struct search *x);

/* step.c: give a symbol that is in the way larger steps, if the model is refused where it
 * is compared, and is not with larger ones. False: that is not what is in the way. */
bool search_step(struct search *x, int symbol);

/* Whether imports of a model at other sizes are the same network; with `rewrite` the
 * first then says what it says for any. EUNSUPPORTED: which layer is in the way, and the
 * first is as it was. (compare.c) */
int symbols_compare(struct points *points, bool rewrite, strata_error *err);

/* The network at these sizes: its layers tell its shapes anew. (settle.c) */
int symbols_settle(struct import *im, const int64_t *sizes, strata_error *err);
/* Whether it is what the model's import at these very sizes is, as far as that shows: of
 * the same branches, and with the same outputs. */
int symbols_check(const struct import *im, const struct import *at, strata_error *err);

#endif /* NETWORK_IMPORT_SYMBOLS_SYMBOLS_H */
