/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers: which candidates options leave, with which weights, and what is drawn.
 */
#include "language/sample.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sample, .timeout = 60);

enum { MOST = 8 };

/* Logits are logarithms of `share`; the candidates that stay, likeliest first. */
static const struct filter_case {
    const char *what;
    struct sampling how;
    int n;
    double share[MOST];
    int left;
    int32_t tokens[MOST];
} filters[] = {
    {"nothing is taken away",
     {.temperature = 1, .top_p = 1},
     4,
     {.1, .2, .3, .4},
     4,
     {3, 2, 1, 0}},
    {"greedy leaves one", {.temperature = 0, .top_p = 1}, 4, {.1, .4, .3, .2}, 1, {1}},
    {"greedy takes the lower of equals", {.top_p = 1}, 4, {.1, .4, .1, .4}, 1, {1}},
    {"one of top-k",
     {.temperature = 1, .top_k = 1, .top_p = 1},
     4,
     {.1, .2, .3, .4},
     1,
     {3}},
    {"three of top-k",
     {.temperature = 1, .top_k = 3, .top_p = 1},
     4,
     {.4, .1, .3, .2},
     3,
     {0, 2, 3}},
    {"more than all of top-k",
     {.temperature = 1, .top_k = 9, .top_p = 1},
     4,
     {.1, .2, .3, .4},
     4,
     {3, 2, 1, 0}},
    {"top-k takes the lower of equals",
     {.temperature = 1, .top_k = 2, .top_p = 1},
     4,
     {.25, .25, .25, .25},
     2,
     {0, 1}},
    {"a share of nearly 0 leaves one",
     {.temperature = 1, .top_p = 1e-9},
     4,
     {.1, .2, .3, .4},
     1,
     {3}},
    {"a share that one has",
     {.temperature = 1, .top_p = .39},
     4,
     {.1, .2, .3, .4},
     1,
     {3}},
    {"a share that two have",
     {.temperature = 1, .top_p = .6},
     4,
     {.1, .2, .3, .4},
     2,
     {3, 2}},
    {"a share that three have",
     {.temperature = 1, .top_p = .8},
     4,
     {.1, .2, .3, .4},
     3,
     {3, 2, 1}},
    {"a share of what top-k left",
     {.temperature = 1, .top_k = 2, .top_p = .56},
     4,
     {.1, .2, .3, .4},
     1,
     {3}},
    {"a share after the temperature",
     {.temperature = .25, .top_p = .7},
     4,
     {.1, .2, .3, .4},
     1,
     {3}},
    {"a least weight",
     {.temperature = 1, .top_p = 1, .min_p = .6},
     4,
     {.1, .2, .3, .4},
     2,
     {3, 2}},
    {"a least weight of all",
     {.temperature = 1, .top_p = 1, .min_p = 1},
     4,
     {.4, .2, .3, .4},
     2,
     {0, 3}},
    {"tokens that cannot be",
     {.temperature = 1, .top_p = 1},
     4,
     {0, .5, 0, .5},
     2,
     {1, 3}},
    {"the coldest",
     {.temperature = 5e-324, .top_p = 1},
     4,
     {.1, .3, .2, .4},
     4,
     {3, 1, 2, 0}},
};

static void logits_of(float *logits, const double *share, int n)
{
    for (int i = 0; i < n; i++)
        logits[i] = (float)log(share[i]);
}

/* Whose weights are not in order: a candidate comes before one that is likelier. */
static int place(const struct candidates *c, int32_t token)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].token == token)
            return (int)i;
    return -1;
}

Test(sample, each_option_leaves_what_it_says)
{
    strata_error err;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        const struct filter_case *f = &filters[i];
        struct sampler *s;
        const struct candidates *c;
        float logits[MOST];
        logits_of(logits, f->share, f->n);
        cr_assert_eq(sampler_open(&s, &f->how, (size_t)f->n, &err), STRATA_OK, "%s",
                     f->what);
        cr_assert_eq(sampler_candidates(s, logits, &c, &err), STRATA_OK, "%s", f->what);
        cr_assert_eq(c->n, f->left, "%s: %zu are left", f->what, c->n);
        for (int k = 0; k < f->left; k++) {
            const int at = place(c, f->tokens[k]);
            cr_expect(at >= 0, "%s: token %d is left", f->what, (int)f->tokens[k]);
            cr_expect(at < 0 || k >= (int)c->in_order || at == k, "%s: token %d", f->what,
                      (int)f->tokens[k]);
        }
        sampler_free(s);
    }
}

Test(sample, weights_are_shares_of_the_likeliest)
{
    static const struct sampling how = {.temperature = 1, .top_p = 1};
    static const double shares[] = {.4, .3, .2, .1, .01, 1e-4, 1e-8, 1e-12};
    struct sampler *s;
    const struct candidates *c;
    strata_error err;
    float logits[MOST];
    logits_of(logits, shares, MOST);
    cr_assert_eq(sampler_open(&s, &how, MOST, &err), STRATA_OK);
    cr_assert_eq(sampler_candidates(s, logits, &c, &err), STRATA_OK);
    for (int i = 0; i < MOST; i++) {
        const double want = exp((double)logits[i] - (double)logits[0]);
        const double got = (double)c->at[i].weight / 2147483648.0;
        cr_expect(fabs(got - want) < 2e-9, "%d: %g for %g", i, got, want);
    }
    sampler_free(s);
}

/* Worked out once in exact integers, apart from this code. */
Test(sample, a_seed_gives_the_same_tokens_everywhere)
{
    static const struct sampling how = {.temperature = .8, .top_p = .9, .seed = 42};
    static const int32_t want[] = {406, 436, 118, 468, 32,  224, 369, 123,
                                   490, 133, 64,  266, 325, 229, 495, 197};
    enum { VOCABULARY = 500 };
    struct sampler *s;
    strata_error err;
    float logits[VOCABULARY];
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = (float)((i * 7919) % 101) * 0.0625f;
    cr_assert_eq(sampler_open(&s, &how, VOCABULARY, &err), STRATA_OK);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int32_t token;
        cr_assert_eq(sampler_next(s, logits, &token, &err), STRATA_OK);
        cr_expect_eq(token, want[i], "token %zu is %d", i, (int)token);
    }
    sampler_free(s);
}

Test(sample, tokens_come_as_often_as_they_weigh)
{
    static const struct sampling how = {.temperature = 1, .top_p = 1, .seed = 7};
    static const double shares[] = {.1, .2, .3, .4};
    enum { DRAWS = 100000 };
    int seen[4] = {0};
    struct sampler *s;
    strata_error err;
    float logits[4];
    logits_of(logits, shares, 4);
    cr_assert_eq(sampler_open(&s, &how, 4, &err), STRATA_OK);
    for (int i = 0; i < DRAWS; i++) {
        int32_t token;
        cr_assert_eq(sampler_next(s, logits, &token, &err), STRATA_OK);
        seen[token]++;
    }
    for (int i = 0; i < 4; i++) { /* the deviation of a share is at most 0.0016 */
        const double share = (double)seen[i] / DRAWS;
        cr_expect(fabs(share - shares[i]) < 0.008, "%d: %g", i, share);
    }
    sampler_free(s);
}

/* Against sorting all of a large vocabulary: the order is made for few of it. */
static int by_logit(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->logit > y->logit   ? -1
           : x->logit < y->logit ? 1
                                 : (x->token > y->token) - (x->token < y->token);
}

Test(sample, a_share_of_many_is_that_of_all_in_order)
{
    enum { VOCABULARY = 5000 };
    static float logits[VOCABULARY];
    static struct candidate all[VOCABULARY];
    strata_error err;
    srand(3);
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = (float)(rand() % 997) / 200;
    for (int k = 1; k < 20; k++) {
        const struct sampling how = {.temperature = 1, .top_p = k / 20.0};
        struct sampler *s;
        const struct candidates *c;
        double sum = 0, total = 0;
        size_t n = 0;
        cr_assert_eq(sampler_open(&s, &how, VOCABULARY, &err), STRATA_OK);
        cr_assert_eq(sampler_candidates(s, logits, &c, &err), STRATA_OK);
        for (int i = 0; i < VOCABULARY; i++) {
            all[i] = (struct candidate){.token = i, .logit = logits[i]};
            total += exp((double)logits[i]);
        }
        qsort(all, VOCABULARY, sizeof *all, by_logit);
        while (sum < how.top_p * total)
            sum += exp((double)all[n++].logit);
        cr_expect(llabs((long long)c->n - (long long)n) <= 1, "%zu for %zu", c->n, n);
        for (size_t i = 0; i < c->n; i++)
            cr_expect_eq(c->at[i].token, all[i].token, "%zu", i);
        sampler_free(s);
    }
}

Test(sample, excluded_tokens_never_come)
{
    struct sampler *s;
    const struct candidates *c;
    strata_error err;
    const float logits[] = {1, 4, 3, 2};
    int32_t token;
    cr_assert_eq(sampler_open(&s, &SAMPLING_GREEDY, 4, &err), STRATA_OK);
    sampler_exclude(s, 1);
    cr_assert_eq(sampler_next(s, logits, &token, &err), STRATA_OK);
    cr_expect_eq(token, 2);
    cr_assert_eq(sampler_candidates(s, logits, &c, &err), STRATA_OK);
    cr_expect_eq(c->n, 1);
    sampler_exclude(s, 0);
    sampler_exclude(s, 2);
    sampler_exclude(s, 3);
    cr_expect_eq(sampler_next(s, logits, &token, &err), STRATA_EINVAL);
    sampler_free(s);
}

Test(sample, options_out_of_range_are_refused)
{
    static const struct {
        struct sampling how;
        const char *says;
    } bad[] = {
        {{.temperature = -1, .top_p = 1}, "temperature of -1"},
        {{.temperature = NAN, .top_p = 1}, "temperature"},
        {{.temperature = 1, .top_k = -1, .top_p = 1}, "likeliest"},
        {{.temperature = 1, .top_p = 0}, "top-p"},
        {{.temperature = 1, .top_p = 1.5}, "top-p"},
        {{.temperature = 1, .top_p = NAN}, "top-p"},
        {{.temperature = 1, .top_p = 1, .min_p = 2}, "min-p"},
    };
    struct sampler *s;
    strata_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error_clear(&err);
        cr_expect_eq(sampler_open(&s, &bad[i].how, 4, &err), STRATA_EINVAL, "%zu", i);
        cr_expect(strstr(err.message, bad[i].says), "%s", err.message);
        cr_expect_null(s);
    }
    error_clear(&err);
    cr_expect_eq(sampler_open(&s, &SAMPLING_GREEDY, 0, &err), STRATA_EINVAL);
}

Test(sample, logits_that_are_no_numbers_are_refused)
{
    static const float bad[][3] = {
        {1, NAN, 2}, {1, 2, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    static const char *const says[] = {"token 1 is not a number", "token 2 is infinite",
                                       "minus infinity"};
    struct sampler *s;
    strata_error err;
    cr_assert_eq(sampler_open(&s, &SAMPLING_GREEDY, 3, &err), STRATA_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t token;
        error_clear(&err);
        cr_expect_eq(sampler_next(s, bad[i], &token, &err), STRATA_EINVAL);
        cr_expect(strstr(err.message, says[i]), "%s", err.message);
    }
    sampler_free(s);
    sampler_free(NULL);
}
