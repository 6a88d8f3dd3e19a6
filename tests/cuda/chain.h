/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks for tests on CUDA, in a scratch folder: chains of Trial layers
 * (tests/modules/cuda_trial.c), which add numbers, and what they give.
 */
#ifndef TESTS_CUDA_CHAIN_H
#define TESTS_CUDA_CHAIN_H

#include "engine/context/context.h"

enum { CHAIN_COUNT = 3 * 5 * 17 * 13 }; /* elements of its input and output */

struct net {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
};

extern char net_path[64]; /* of the network file, once it was written */
void write_text(const char *ini);
void remove_files(void);

/* Of the network file; the handle becomes the net's. Ends the test where that fails. */
void open_net(struct net *n, strata_handle *handle);
void close_net(struct net *n);
strata_handle *host_handle(void);

/* A chain of Trial layers t0, t1, ... with the impls named, or all on the host, every
 * second in fp32:nhwc so that reformats stand between. */
void write_chain(const char *const *impls, size_t n, bool on_host);
/* What it gives: the same additions in the same order. */
void chain_of(float *y, const float *x, size_t layers);
/* One run from fresh input to output, compared. */
void run_chain(struct net *n, size_t layers, const char *what);
void expect_equal(const float *got, const float *want, const char *what);

/* A new one in each run of the program, told on stderr. */
unsigned fresh_seed(void);
/* In [-1, 1). */
void draw_from(float *x, size_t n, unsigned seed);
void draw(float *x, size_t n);

#endif /* TESTS_CUDA_CHAIN_H */
