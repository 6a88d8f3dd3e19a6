/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes and shapes that a layer takes, found by asking it.
 */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "check/harness/harness.h"

#define CASES_MOST 48
#define CASES_TEXT 512
#define CASES_IMPLS 128 /* further ones have the first case */
#define CASES_OWN 16
#define CASES_TYPES 24
#define CASES_SHAPES 192
#define CASES_FORMATS 64

struct check_child;

struct check_cases {
    char attrs[CASES_MOST][CASES_TEXT]; /* [0]: the plainest that works */
    size_t n;
    int ranks[STRATA_MAX_RANK], n_ranks;        /* of inputs; the usual one first */
    int n_in;                                   /* as in layer_case: -1: none */
    int32_t types[CASES_TYPES][HARNESS_INPUTS]; /* that inputs may hold together */
    size_t n_types;
    int32_t in_dtype[HARNESS_INPUTS];    /* those in use */
    const char *pattern[HARNESS_INPUTS]; /* of an input's shape; NULL: as the usual one */
    struct check_own {
        char attrs[CASES_TEXT], shapes[CASES_SHAPES];
        struct harness_range weight[HARNESS_WEIGHTS]; /* 0 to 0: as ever */
    } own[CASES_OWN];                                 /* of the network beside the file */
    const struct harness_range *weight; /* of the own case that runs now, or NULL */
    size_t n_own;
    char own_note[256];       /* where they are from, or why there are none; or "" */
    int8_t lead[CASES_IMPLS]; /* of each impl of the layer: the first case it takes */
    bool led;                 /* lead is known */
    bool by_lead;             /* only impls with `at` for their lead are wanted now */
    int at, leading;          /* cases: that runs, that is tried as a lead */
    char refusal[256];        /* of the case that was tried last */
    struct check_sample {
        uint64_t start, state;
        size_t n, most, step; /* combinations seen: of this case, of any; one in step */
        struct harness_formats formats[CASES_FORMATS];
        unsigned n_formats; /* seen of this case */
    } sample;               /* of a quick check */
};

/* Fill c->cases; false, after a finding, if nothing works. */
bool cases_find(struct check_child *c);
/* types.c: fill types, and in_dtype with the first. */
void cases_find_types(struct check_cases *k, const struct registry_layer *layer);
/* own.c: the layers of this type in the network that lies beside the file. */
void cases_find_own(struct check_child *c);
/* The inputs' shapes where the usual one is `usual`, each by its pattern. */
void cases_inputs(const struct check_cases *k, const struct harness_shape *usual,
                  struct harness_shape in[HARNESS_INPUTS]);
/* The plainest inputs that the first case works with; how many. */
int cases_plain(const struct check_child *c, struct harness_shape in[HARNESS_INPUTS]);

/* The plainest node of a layer that works. */
struct cases_node {
    char attrs[CASES_TEXT];
    struct harness_shape in[HARNESS_INPUTS];
    int32_t in_dtype[HARNESS_INPUTS];
    int n_in;         /* 0 too where none was found */
    uint32_t weights; /* bits: those that it has */
};
/* All 0 if none is found. */
void cases_of_layer(const struct registry_layer *layer, struct cases_node *out);

enum cases_sweep {
    CASES_ALL,   /* every case; the first over many shapes */
    CASES_REST,  /* each case over many shapes, until something ran */
    CASES_FIRST, /* the first case that an impl takes, over many shapes */
    CASES_FEW,   /* over a few shapes */
    CASES_SMALL, /* on one shape */
    CASES_LARGE  /* on one shape of some ten thousand elements */
};
/* Run c->target over them, until it has seen enough. */
void cases_run(struct check_child *c, enum cases_sweep sweep);
/* Whether an impl has to do with the case that runs. */
bool cases_want(struct check_child *c, const struct registry_impl *impl);

/* "1x3x5x5,none,1x3x1x1" into shapes; how many, or -1. */
int cases_parse_shapes(const char *text, struct harness_shape shapes[HARNESS_INPUTS]);
void cases_write_shapes(char *text, size_t size, const struct harness_shape *shapes,
                        int n);

#endif /* CHECK_CASES_H */
