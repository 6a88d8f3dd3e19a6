/* SPDX-License-Identifier: Apache-2.0
 *
 * Which runs of the layers' cases a slow check makes, by the environment's variables of
 * tests/cuda/layers.c.
 *
 * A run is all variants of an impl on a shape in a combination of formats. Its ID depends
 * on nothing else, nor, with harness_target.steady, does what it launches: runs that one
 * process finds to launch a kernel for the first time do so in another one, too.
 */
#ifndef TESTS_CUDA_SAMPLE_H
#define TESTS_CUDA_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct sample;
struct trial;

bool sample_is_asked_for(void);
/* NULL: a variable does not make sense, or its file cannot be used. */
struct sample *sample_open(uint64_t seed);
void sample_close(struct sample *s);

/* Whether the next case is of this shard. */
bool sample_has_case(struct sample *s);
/* Of the combinations that offer themselves: each impl's row with each format of its
 * first port and each width of vectors once, and one in so many of the rest; or those
 * whose IDs were given. user: the sample. */
bool sample_takes(const struct trial *t, int row, void *user);

#endif /* TESTS_CUDA_SAMPLE_H */
