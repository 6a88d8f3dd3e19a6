/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one layer through the oneDNN module by hand, without registry and core: a
 * host table, tensors in any host format between guard bands, and the right answer in
 * FP64. Every check reports through Criterion.
 */
#ifndef TESTS_LAYERS_ONEDNN_TRIAL_H
#define TESTS_LAYERS_ONEDNN_TRIAL_H

#include <stdbool.h>

#include <strata/layers.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct strata_error {
    int code;
    char text[256];
};

/* The first offers strata.pack/1, the second offers no extension. */
extern const strata_host trial_host, trial_bare_host;

/* Load $STRATA_PLUGIN_PATH/onednn.so, or skip the test; seeds the random numbers. */
void trial_load(void);
const strata_extends *trial_extends(const char *layer);
const strata_impl *trial_impl(const strata_extends *e, const char *name);

float *trial_random(int64_t n);
int64_t trial_product(const int64_t *dims, int rank);

/* A layer, its data in dense linear order, and what must come out. Free with
 * problem_free. */
struct problem {
    const char *name;
    const strata_extends *layer;
    const void *params;
    int rank, out_rank, weight_rank;
    int64_t in_dims[5], out_dims[5], weight_dims[5];
    float *input, *weight, *bias;    /* weight and bias may be NULL */
    float *scale, *shift, *residual; /* epilogue operands */
    int32_t flags, activation;
    double alpha, beta;
    double *expected, *magnitude; /* magnitude: sum of |terms|, for the tolerance */
};

/* Zeroed expected and magnitude. */
void problem_answer(struct problem *p);
void problem_add_operands(struct problem *p);
/* What `expected` becomes after the problem's epilogue. */
void problem_epilogue(struct problem *p);
void problem_free(struct problem *p);

/* A problem in one pair of formats, ready for one impl's callbacks. */
struct trial {
    const struct problem *p;
    const strata_impl *impl;
    strata_tensor in, out, weight[2], residual;
    strata_epilogue epilogue;
    strata_error error;
    strata_node node;
    void *state, *ctx;
    void *workspace;
    size_t workspace_size;
    void *packs[4]; /* packed weights */
    int n_packs;
};

void trial_open(struct trial *t, const struct problem *p, const strata_impl *impl,
                uint64_t in, uint64_t out);
/* Poisoned memory with a guard behind it, freed by trial_close. */
void *trial_workspace(size_t bytes);
bool trial_workspace_intact(const struct trial *t);
/* workspace, setup and ctx_open; returns the status of the first that fails. */
int trial_setup(struct trial *t);
strata_run trial_call(struct trial *t);
void trial_close(struct trial *t);

/* The output against the problem's answer. */
void trial_expect_values(const struct trial *t, const char *what);
/* Whether the impl took the problem and then did all right; a veto must give a reason. */
bool trial_attempt(const struct problem *p, const strata_impl *impl, uint64_t in,
                   uint64_t out);
/* Every impl in every pair of formats its rows allow; returns the formats of the output
 * in which the problem was taken. */
uint64_t trial_attempt_all(const struct problem *p);

#endif /* TESTS_LAYERS_ONEDNN_TRIAL_H */
