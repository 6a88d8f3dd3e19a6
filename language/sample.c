/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers.
 */
#include "language/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

struct sampler {
    struct sampling how;
    struct candidates left;
    bool *excluded; /* of each token */
    size_t vocabulary;
    uint64_t state; /* of the generator */
};

enum { UNIT = 31 }; /* weights are in 2^-UNIT */

/* ---- options ------------------------------------------------------------------------
 */

static int check(const struct sampling *how, strata_error *err)
{
    if (!(how->temperature >= 0 && how->temperature <= 1e6))
        return error_set(err, STRATA_EINVAL, "a temperature of %g: it is 0 to 1e6",
                         how->temperature);
    if (how->top_k < 0)
        return error_set(err, STRATA_EINVAL,
                         "the %" PRId64
                         " likeliest tokens: it is 1 or more, or 0 for all",
                         how->top_k);
    if (!(how->top_p > 0 && how->top_p <= 1))
        return error_set(err, STRATA_EINVAL,
                         "a share of the weight (top-p) of %g: it is above 0, at most 1",
                         how->top_p);
    if (!(how->min_p >= 0 && how->min_p <= 1))
        return error_set(err, STRATA_EINVAL, "a least weight (min-p) of %g: it is 0 to 1",
                         how->min_p);
    return STRATA_OK;
}

int sampler_open(struct sampler **out, const struct sampling *how, size_t vocabulary,
                 strata_error *err)
{
    *out = NULL;
    if (vocabulary == 0 || vocabulary > INT32_MAX)
        return error_set(err, STRATA_EINVAL, "%zu tokens to choose from", vocabulary);
    const int status = check(how, err);
    struct sampler *s =
        status == STRATA_OK ? zalloc(1, sizeof *s, "a sampler", err) : NULL;
    if (!s)
        return status == STRATA_OK ? STRATA_ENOMEM : status;
    *s = (struct sampler){.how = *how, .vocabulary = vocabulary, .state = how->seed};
    s->left.at = zalloc(vocabulary, sizeof *s->left.at, "candidates", err);
    s->excluded = zalloc(vocabulary, sizeof *s->excluded, "candidates", err);
    if (!s->left.at || !s->excluded) {
        sampler_free(s);
        return STRATA_ENOMEM;
    }
    *out = s;
    return STRATA_OK;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    free(s->left.at);
    free(s->excluded);
    free(s);
}

void sampler_exclude(struct sampler *s, int32_t token)
{
    s->excluded[token] = true;
}

/* ---- order --------------------------------------------------------------------------
 */

static bool precedes(const struct candidate *a, const struct candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->token < b->token);
}

static void swap(struct candidate *a, struct candidate *b)
{
    const struct candidate kept = *a;
    *a = *b;
    *b = kept;
}

/* A heap's root is preceded by all others of the heap. */
static void sink(struct candidate *heap, size_t n, size_t i)
{
    for (size_t below; (below = 2 * i + 1) < n; i = below) {
        if (below + 1 < n && precedes(&heap[below], &heap[below + 1]))
            below++;
        if (!precedes(&heap[i], &heap[below]))
            return;
        swap(&heap[i], &heap[below]);
    }
}

/* Bring the first k to the front, in order: n log k steps. */
static void rank(struct candidates *c, size_t k)
{
    k = k < c->n ? k : c->n;
    if (k <= c->in_order)
        return;
    for (size_t i = k / 2; i-- > 0;)
        sink(c->at, k, i);
    for (size_t i = k; i < c->n; i++)
        if (precedes(&c->at[i], &c->at[0])) {
            swap(&c->at[i], &c->at[0]);
            sink(c->at, k, 0);
        }
    for (size_t last = k; last-- > 1;) {
        swap(&c->at[0], &c->at[last]);
        sink(c->at, last, 0);
    }
    c->in_order = k;
}

/* ---- weights ------------------------------------------------------------------------
 */

static int take(struct sampler *s, const float *logits, float *largest, strata_error *err)
{
    struct candidates *c = &s->left;
    c->n = c->in_order = 0;
    *largest = -INFINITY;
    for (size_t i = 0; i < s->vocabulary; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return error_set(err, STRATA_EINVAL, "the logit of token %zu is %s", i,
                             isnan(logits[i]) ? "not a number" : "infinite");
        if (logits[i] == -INFINITY || s->excluded[i])
            continue;
        c->at[c->n++] = (struct candidate){(int32_t)i, logits[i], 0};
        *largest = logits[i] > *largest ? logits[i] : *largest;
    }
    if (c->n == 0)
        return error_set(err, STRATA_EINVAL,
                         "the logits of all %zu tokens are minus "
                         "infinity",
                         s->vocabulary);
    return STRATA_OK;
}

/* 2^-gap, gap >= 0, in 2^-UNIT. Integers alone after one rounding, so that no machine's
 * exp or contraction makes a difference: e^-z as 1 - z(1 - z/2(1 - z/3(...))). */
static uint64_t weight_of(double gap)
{
    enum { TERMS = 12 }; /* z < ln 2: the next is below 2^-34 */
    const uint64_t one = UINT64_C(1) << UNIT, ln2 = UINT64_C(1488522236); /* 2^-31 */
    if (!(gap < UNIT + 1))
        return 0;
    const uint64_t scaled = (uint64_t)(gap * (double)one);
    const uint64_t z = (scaled & (one - 1)) * ln2 >> UNIT;
    uint64_t sum = one;
    for (uint64_t k = TERMS; k > 0; k--)
        sum = one - (z * sum >> UNIT) / k;
    return sum >> (scaled >> UNIT);
}

static void weigh(struct candidates *c, float largest, double temperature)
{
    const double log2_e = 1.4426950408889634;
    const double factor = log2_e / temperature;
    for (size_t i = 0; i < c->n; i++) {
        const double gap = (double)largest - (double)c->at[i].logit;
        c->at[i].weight = weight_of(gap > 0 ? gap * factor : 0); /* 0 * infinity */
    }
}

static uint64_t sum_of(const struct candidates *c)
{
    uint64_t sum = 0; /* of less than 2^31 weights of at most 2^31 */
    for (size_t i = 0; i < c->n; i++)
        sum += c->at[i].weight;
    return sum;
}

/* ---- what is taken away -------------------------------------------------------------
 */

static void keep(struct candidates *c, size_t n)
{
    c->n = n < c->n ? n : c->n;
    c->in_order = c->in_order < c->n ? c->in_order : c->n;
}

static void keep_likeliest(struct candidates *c, int64_t k)
{
    if (k == 0 || (uint64_t)k >= c->n)
        return;
    rank(c, (size_t)k);
    keep(c, (size_t)k);
}

/* The order is made for as many as are looked at: few, of most vocabularies. */
static void keep_share(struct candidates *c, double share)
{
    if (share >= 1)
        return;
    const double enough = share * (double)sum_of(c);
    uint64_t sum = 0;
    size_t n = 0;
    do {
        if (n == c->in_order)
            rank(c, n ? 8 * n : 32);
        sum += c->at[n++].weight;
    } while (n < c->n && (double)sum < enough);
    keep(c, n);
}

/* The likeliest has a weight of 1; with 0 nothing is taken away. */
static void keep_heavy(struct candidates *c, double least)
{
    const double enough = least * (double)(UINT64_C(1) << UNIT);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if ((double)c->at[i].weight >= enough)
            c->at[n++] = c->at[i];
    keep(c, n);
}

int sampler_candidates(struct sampler *s, const float *logits,
                       const struct candidates **c, strata_error *err)
{
    float largest;
    const int status = take(s, logits, &largest, err);
    *c = &s->left;
    if (status != STRATA_OK)
        return status;
    if (s->how.temperature == 0) {
        keep_likeliest(&s->left, 1);
        weigh(&s->left, largest, 1);
        return STRATA_OK;
    }
    weigh(&s->left, largest, s->how.temperature);
    keep_likeliest(&s->left, s->how.top_k);
    keep_share(&s->left, s->how.top_p);
    keep_heavy(&s->left, s->how.min_p);
    return STRATA_OK;
}

/* ---- drawing ------------------------------------------------------------------------
 */

/* SplitMix64: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014,
 * with the finalizer's constants as Vigna has them. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int sampler_next(struct sampler *s, const float *logits, int32_t *token,
                 strata_error *err)
{
    const struct candidates *c;
    const int status = sampler_candidates(s, logits, &c, err);
    if (status != STRATA_OK)
        return status;
    uint64_t at = draw(&s->state) % sum_of(c); /* sums are far below 2^64: no bias */
    size_t i = 0;
    while (at >= c->at[i].weight)
        at -= c->at[i++].weight;
    *token = c->at[i].token;
    return STRATA_OK;
}
