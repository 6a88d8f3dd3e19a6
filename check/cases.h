/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes and shapes that a layer takes, found by asking it.
 */
#ifndef CHECK_CASES_H
#define CHECK_CASES_H

#include "check/harness.h"

#define CASES_MOST 48
#define CASES_TEXT 512

struct check_child;

struct check_cases {
    char attrs[CASES_MOST][CASES_TEXT]; /* [0]: the plainest that works */
    size_t n;
    int ranks[STRATA_MAX_RANK], n_ranks; /* of inputs; the usual one first */
    int n_in;                            /* as in layer_case: -1: none */
    char refusal[256];                   /* of the case that was tried last */
};

/* Fill c->cases; false, after a finding, if nothing works. */
bool cases_find(struct check_child *c);

enum cases_sweep {
    CASES_ALL,   /* every case; the first over many shapes */
    CASES_FIRST, /* the first case over many shapes */
    CASES_FEW,   /* the first case over a few shapes */
    CASES_SMALL, /* the first case on one shape */
    CASES_LARGE  /* the first case on one shape of some ten thousand elements */
};
/* Run c->target over them, until it has seen enough. */
void cases_run(struct check_child *c, enum cases_sweep sweep);

/* "1x3x5x5,1x3x1x1" into shapes; how many, or -1. */
int cases_parse_shapes(const char *text, struct harness_shape shapes[HARNESS_INPUTS]);

#endif /* CHECK_CASES_H */
