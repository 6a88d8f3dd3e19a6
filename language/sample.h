/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers: from the logits of a text's next place to the token there. Every one takes
 * away candidates, in the order of `struct sampling`; one of the rest is drawn. The
 * same options, seed and logits give the same tokens on every machine: weights are
 * integers, and equal logits have an order.
 */
#ifndef LANGUAGE_SAMPLE_H
#define LANGUAGE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct sampling {
    double temperature; /* logits are divided by it; 0: the likeliest token, always */
    int64_t top_k;      /* the likeliest so many stay; 0: all */
    double top_p; /* of those the fewest that have this share of the weight, 0 to 1 */
    double
        min_p; /* and of those what has this share of the likeliest's weight at least */
    uint64_t seed;
};
#define SAMPLING_GREEDY ((struct sampling){.top_p = 1})

/* A token that may be next. Likelier ones precede, of equal logits the lower token. */
struct candidate {
    int32_t token;
    float logit;
    uint64_t weight; /* e^((logit - largest) / temperature) in 2^-31, rounded down */
};

struct candidates {
    struct candidate *at; /* room for the vocabulary */
    size_t n;
    size_t in_order; /* the first so many precede each other and all the others */
};

/* For logits of `vocabulary` tokens. EINVAL names the option that is out of its range. */
struct sampler;
int sampler_open(struct sampler **out, const struct sampling *how, size_t vocabulary,
                 strata_error *err);
void sampler_free(struct sampler *s);
/* Never draw a token, which is below the vocabulary. */
void sampler_exclude(struct sampler *s, int32_t token);
/* What may be next, of the logits as they are; *c is the sampler's, until its next call.
 * EINVAL: a logit is not a number, or infinite, or there is none that may be drawn and is
 * not minus infinity. */
int sampler_candidates(struct sampler *s, const float *logits,
                       const struct candidates **c, strata_error *err);
/* One of them, and the generator goes on. */
int sampler_next(struct sampler *s, const float *logits, int32_t *token,
                 strata_error *err);

#endif /* LANGUAGE_SAMPLE_H */
