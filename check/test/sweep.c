/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases, run over shapes. Some impls take no plain case (a window of one
 * pixel, as many groups as channels): where a test runs but the first case, each impl
 * has the first case that it takes.
 */
#include "check/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/test/sweep_shapes.h"
#include "check/test/test.h"
#include "check/harness/trial.h"

/* ---- running ----------------------------------------------------------------------- */

static bool enough(const struct check_child *c)
{
    return c->report->n_findings >= CHECK_FINDINGS / 2;
}

/* Combinations of impls and formats that a quick check tries of a case, about; of the
 * first one all, and others each time. */
#define QUICK_COMBINATIONS 12

/* Formats that have come up in this case, in order. All impls go through the same ones:
 * what a library prepares for a problem, which takes some of them a second, serves all.
 */
static unsigned turn_of(struct check_sample *s, const struct harness_formats *formats)
{
    unsigned at = 0;
    while (at < s->n_formats && memcmp(&s->formats[at], formats, sizeof *formats) != 0)
        at++;
    if (at == s->n_formats && at < CASES_FORMATS)
        s->formats[s->n_formats++] = *formats;
    return at < CASES_FORMATS ? at : (unsigned)s->n;
}

static bool in_sample(const struct trial *t, int row, void *user)
{
    struct check_sample *s = &((struct check_child *)user)->cases.sample;
    const bool next = (s->start + turn_of(s, &t->formats)) % s->step == 0;
    (void)row;
    s->n++;
    return next || (t->tally && t->tally->runs == 0); /* an impl that takes few cases */
}

static void begin_sample(struct check_child *c)
{
    struct check_sample *s = &c->cases.sample;
    s->most = s->n > s->most ? s->n : s->most;
    s->step = s->most / QUICK_COMBINATIONS + 1;
    s->state = s->state * UINT64_C(6364136223846793005) + c->o->seed + 1;
    s->start = s->state >> 33;
    s->n = 0;
    s->n_formats = 0;
    c->target.turn++;
}

/* What a case is besides attributes and shapes. */
struct manner {
    unsigned absent; /* weights */
    enum layer_numbers numbers;
    const int32_t *types; /* of inputs; NULL: those of the plainest case */
};

static const struct manner usually;

static void run_case(struct check_child *c, const char *attrs,
                     const struct harness_shape *in, int n_in, struct manner m)
{
    const int32_t *types = m.types ? m.types : c->cases.in_dtype;
    const bool integers = n_in > 0 && !number_is_real(types[0]);
    struct layer_case k = {.layer = c->layer->layer.name,
                           .attrs = attrs,
                           .n_in = n_in,
                           .absent = m.absent,
                           .may_refuse = true,
                           .integers = integers,
                           .high = integers ? 100 : 0,
                           .numbers = m.numbers};
    for (int i = 0; i < n_in; i++) {
        k.in[i] = in[i];
        k.in_dtype[i] = types[i];
        if (i > 0 && types[i] != types[0] && !number_is_real(types[i]))
            k.in_range[i] = (struct harness_range){0, 1}; /* indices, lengths, masks */
    }
    if (c->cases.weight)
        memcpy(k.weight_range, c->cases.weight, sizeof k.weight_range);
    if (enough(c))
        return;
    begin_sample(c);
    struct harness_result r =
        harness_check_on(&c->target, c->layer, &k, c->o->seed, NULL);
    c->report->runs += r.runs;
}

/* The same shape for every input, or what goes with it. */
static void run_alike(struct check_child *c, const char *attrs,
                      const struct harness_shape *shape, int n_in, struct manner m)
{
    struct harness_shape in[HARNESS_INPUTS];
    cases_inputs(&c->cases, shape, in);
    run_case(c, attrs, in, n_in, m);
}

static unsigned optional_weights(const struct registry_layer *l)
{
    unsigned mask = 0;
    for (size_t i = 0; i < l->n_weights; i++)
        if (!(l->weights[i].flags & (STRATA_REQUIRED | STRATA_FACTORS)))
            mask |= 1u << i;
    return mask;
}

/* Types beside those of the plainest case; integers over their whole range, too. */
static void run_types(struct check_child *c, const char *attrs,
                      const struct harness_shape *in, int n_in)
{
    const struct check_cases *k = &c->cases;
    for (size_t i = 0; i < k->n_types && n_in > 0; i++) {
        struct manner m = {.types = k->types[i]};
        if (memcmp(k->types[i], k->in_dtype, sizeof k->in_dtype) != 0)
            run_case(c, attrs, in, n_in, m);
        m.numbers = NUMBERS_WHOLE_RANGE;
        if (!number_is_real(k->types[i][0]))
            run_case(c, attrs, in, n_in, m);
    }
}

/* Each input that may be absent is, with as many others as there may be. */
static void run_absent(struct check_child *c, const char *attrs,
                       const struct harness_shape *usual)
{
    const strata_layer *l = &c->layer->layer;
    struct harness_shape in[HARNESS_INPUTS];
    const int most =
        l->max_in < 0 || l->max_in > HARNESS_INPUTS ? HARNESS_INPUTS : l->max_in;
    for (int i = 0; i < most; i++) {
        const int n_in = i + 1 < most ? most : i + 1;
        if (!(l->optional_in >> i & 1))
            continue;
        cases_inputs(&c->cases, usual, in);
        in[i] = (struct harness_shape){0};
        run_case(c, attrs, in, n_in, usually);
        if (i + 2 < most) /* and none behind the next one */
            run_case(c, attrs, in, i + 2, usually);
    }
}

/* A dim of 0, each in turn: refused with a reason, or computed. `only`: but that one; -1:
 * all. */
static void run_empty(struct check_child *c, const char *attrs,
                      const struct harness_shape *usual, int only)
{
    for (int d = 0; d < usual->rank; d++) {
        struct harness_shape empty = *usual;
        empty.dims[d] = 0;
        if (only < 0 || only == d)
            run_alike(c, attrs, &empty, c->cases.n_in, usually);
    }
}

/* One more input, no optional weights, other types, inputs absent or empty: each on a few
 * shapes, from `first` on. */
static void run_extras(struct check_child *c, const char *attrs, int rank, size_t first)
{
    const strata_layer *l = &c->layer->layer;
    struct harness_shape few[SWEEP_FEW_SHAPES], in[HARNESS_INPUTS];
    const size_t n = sweep_few_shapes(few, rank);
    const int n_in = c->cases.n_in;
    const unsigned optional = optional_weights(c->layer);
    for (size_t i = first; i < n; i++) {
        if (n_in > 0 && n_in < HARNESS_INPUTS && (l->max_in < 0 || l->max_in > n_in))
            run_alike(c, attrs, &few[i], n_in + 1, usually);
        if (optional)
            run_alike(c, attrs, &few[i], n_in, (struct manner){.absent = optional});
        cases_inputs(&c->cases, &few[i], in);
        run_types(c, attrs, in, n_in);
        if (l->optional_in)
            run_absent(c, attrs, &few[i]);
        if (n_in > 0 && i == first)
            run_empty(c, attrs, &few[i], -1);
    }
}

/* A quick check takes one shape of so many (prime to the number of channels), and of few
 * ones those from here on. */
#define QUICK_STEP 5
#define QUICK_FIRST 2

/* Of a tensor: those of layers whose results grow as a product of their inputs. */
#define QUICK_ELEMENTS (1 << 19)

/* More elements than 16 bits count. */
static void run_large(struct check_child *c)
{
    const struct check_cases *k = &c->cases;
    struct harness_shape shape = {.rank = k->ranks[0], .dims = {1, 17, 67, 61, 1}};
    if (shape.rank < 3)
        shape = (struct harness_shape){.rank = shape.rank, .dims = {1, 66000}};
    if (shape.rank == 1)
        shape.dims[0] = 66000;
    if (k->n_in > 0 && !c->o->quick)
        run_alike(c, k->attrs[0], &shape, k->n_in, usually);
}

/* A case over many shapes. */
static void run_many(struct check_child *c, const char *attrs)
{
    struct harness_shape shapes[SWEEP_MOST_SHAPES];
    const struct check_cases *k = &c->cases;
    const size_t step = c->o->quick ? QUICK_STEP : 1;
    const size_t first = c->o->quick && k->n_in > 0 ? QUICK_FIRST : 0;
    for (int r = 0; r < k->n_ranks; r++) {
        size_t n = r == 0 ? sweep_shapes(shapes, k->ranks[r], c->o->thorough)
                          : sweep_few_shapes(shapes, k->ranks[r]);
        for (size_t i = r == 0 ? 0 : first; i < (k->n_in < 0 ? 1 : n);
             i += r == 0 ? step : 1)
            run_alike(c, attrs, &shapes[i], k->n_in, usually);
        run_extras(c, attrs, k->ranks[r], first);
    }
}

static void run_variations(struct check_child *c)
{
    struct harness_shape shapes[SWEEP_FEW_SHAPES];
    const struct check_cases *k = &c->cases;
    const size_t step = c->o->quick ? QUICK_STEP : 1;
    if (k->n_ranks > 0)
        run_large(c);
    for (size_t a = 1; a < k->n; a++) {
        const size_t n = k->n_in < 0 ? 1 : sweep_few_shapes(shapes, k->ranks[0]);
        for (size_t i = step > 1 ? a % n : 0; i < n; i += step)
            run_alike(c, k->attrs[a], &shapes[i], k->n_in, usually);
        if (k->n_ranks > 0 && k->n_in > 0)
            run_empty(c, k->attrs[a], &shapes[QUICK_FIRST],
                      c->o->quick ? (int)a % k->ranks[0] : -1);
    }
}

/* Impls that take the plainest attributes on no shape, and others on few. */
static void run_until_taken(struct check_child *c)
{
    for (size_t a = 1; a < c->cases.n && c->report->runs == 0; a++)
        run_many(c, c->cases.attrs[a]);
}

#define NUMBERS_FIRST (NUMBERS_PLAIN + 1)

/* Each kind of numbers that are not plain; or but one, by turn. */
static void run_numbers(struct check_child *c, const char *attrs,
                        const struct harness_shape *in, int n_in, size_t turn)
{
    const int only = NUMBERS_FIRST + (int)(turn % (NUMBERS_WHOLE_RANGE - NUMBERS_FIRST));
    const bool all = turn == 0 || !c->o->quick;
    for (int k = NUMBERS_FIRST; k < NUMBERS_WHOLE_RANGE && n_in > 0; k++)
        if ((all || k == only) && (k != NUMBERS_DENORMAL || !c->layer->layer.flops))
            run_case(c, attrs, in, n_in, (struct manner){.numbers = k});
}

/* Odd numbers in every case, in a quick check one kind in turn, on the first shape that
 * has several images, pixels and pad lanes and is taken. */
static void run_all_numbers(struct check_child *c)
{
    struct harness_shape shapes[SWEEP_FEW_SHAPES], in[HARNESS_INPUTS];
    const struct check_cases *k = &c->cases;
    const size_t n =
        k->n_ranks && k->n_in > 0 ? sweep_few_shapes(shapes, k->ranks[0]) : 0;
    for (size_t a = 0; a < k->n; a++) {
        const int before = c->report->runs;
        for (size_t i = n; i-- > 0 && c->report->runs == before;) {
            cases_inputs(k, &shapes[(i + 3) % n], in);
            run_numbers(c, k->attrs[a], in, k->n_in, a);
        }
    }
}

/* The weights of the author's case, as the network has them. */
static void choose_weights(struct check_cases *k, const char *attrs, const char *shapes)
{
    k->weight = NULL;
    for (size_t i = 0; i < k->n_own; i++)
        if (strcmp(k->own[i].attrs, attrs) == 0 && strcmp(k->own[i].shapes, shapes) == 0)
            k->weight = k->own[i].weight;
}

static void run_shapes(struct check_child *c, const char *attrs, const char *text,
                       enum cases_sweep sweep)
{
    struct harness_shape shapes[HARNESS_INPUTS];
    const int given = cases_parse_shapes(text, shapes);
    const int n_in = given == 0 ? -1 : given;
    const unsigned optional = optional_weights(c->layer);
    if (given < 0)
        return;
    choose_weights(&c->cases, attrs, text);
    run_case(c, attrs, shapes, n_in, usually);
    if (optional)
        run_case(c, attrs, shapes, n_in, (struct manner){.absent = optional});
    run_types(c, attrs, shapes, n_in);
    if (sweep == CASES_ALL)
        run_numbers(c, attrs, shapes, n_in, 0);
    c->cases.weight = NULL;
}

static void run_given(struct check_child *c, enum cases_sweep sweep)
{
    for (size_t a = 0; a < c->cases.n; a++)
        for (size_t s = 0; s < c->o->n_shapes; s++)
            run_shapes(c, c->cases.attrs[a], c->o->shapes[s], sweep);
}

static void run_own(struct check_child *c, enum cases_sweep sweep)
{
    for (size_t i = 0; i < c->cases.n_own; i++)
        run_shapes(c, c->cases.own[i].attrs, c->cases.own[i].shapes, sweep);
    for (size_t a = 1; a < c->cases.n && c->cases.n_ranks == 0; a++)
        run_shapes(c, c->cases.attrs[a], c->cases.own[0].shapes, sweep);
}

/* large: with few ones behind, for layers whose outputs are many times an input. */
static void run_few(struct check_child *c, const char *attrs, enum cases_sweep sweep)
{
    struct harness_shape shapes[SWEEP_LARGE_SHAPES + SWEEP_FEW_SHAPES];
    const struct check_cases *k = &c->cases;
    const int rank = k->n_ranks ? k->ranks[0] : 4, before = c->report->runs;
    size_t n = sweep == CASES_LARGE ? sweep_large_shapes(shapes, rank) : 0;
    n += sweep_few_shapes(shapes + n, rank);
    for (size_t i = 0; i < (k->n_in < 0 ? 1 : n); i++) {
        run_alike(c, attrs, &shapes[i], k->n_in, usually);
        if (sweep != CASES_FEW && c->report->runs > before)
            return;
    }
}

/* ---- the case of each impl --------------------------------------------------------- */

enum { NO_LEAD = -1 };

static int8_t *lead_of(struct check_child *c, const struct registry_impl *impl)
{
    const size_t i = (size_t)(impl - c->layer->impls);
    return i < CASES_IMPLS ? &c->cases.lead[i] : NULL;
}

bool cases_want(struct check_child *c, const struct registry_impl *impl)
{
    const int8_t *lead = lead_of(c, impl);
    return !c->cases.by_lead || (lead ? *lead : 0) == c->cases.at;
}

static bool lacks_lead(const struct trial *t, int row, void *user)
{
    const int8_t *lead = lead_of(user, t->impl);
    (void)row;
    return lead && *lead == NO_LEAD;
}

static void note_lead(struct trial *t, int row)
{
    struct check_child *c = t->target->user;
    struct session s = {0};
    size_t bytes;
    if (trial_session(t, &s, row) == STRATA_OK && session_size(&s, &bytes) == STRATA_OK)
        *lead_of(c, t->impl) = (int8_t)c->cases.leading;
    session_free(&s);
}

/* What is wrong is told by the tests themselves. */
static void ignore(const struct trial *t, const char *rule, const char *text, void *user)
{
    (void)t, (void)rule, (void)text, (void)user;
}

static void find_leads(struct check_child *c)
{
    struct check_cases *k = &c->cases;
    const struct harness_target target = c->target;
    const int runs = c->report->runs;
    if (k->led)
        return;
    k->led = true;
    memset(k->lead, NO_LEAD, sizeof k->lead);
    c->target.visit = note_lead;
    c->target.takes = lacks_lead;
    c->target.problem = ignore;
    for (k->leading = 0; k->leading < (int)k->n; k->leading++)
        run_few(c, k->attrs[k->leading], CASES_FEW);
    c->target = target;
    c->report->runs = runs;
    for (size_t i = 0; i < CASES_IMPLS; i++)
        k->lead[i] = k->lead[i] == NO_LEAD ? 0 : k->lead[i];
}

static bool leads(const struct check_cases *k, int at)
{
    return at == 0 || memchr(k->lead, at, sizeof k->lead);
}

/* ---- all --------------------------------------------------------------------------- */

void cases_run(struct check_child *c, enum cases_sweep sweep)
{
    struct check_cases *k = &c->cases;
    if (c->o->n_shapes) {
        run_given(c, sweep);
        return;
    }
    if (c->o->quick && !c->o->formats) {
        c->target.takes = in_sample;
        c->target.steady = c->target.one_mode = true;
    }
    run_own(c, sweep);
    c->target.most = c->o->quick ? QUICK_ELEMENTS : 0;
    if (sweep == CASES_ALL) {
        run_many(c, k->attrs[0]);
        run_variations(c);
        run_all_numbers(c);
        return;
    }
    if (sweep == CASES_REST) {
        run_until_taken(c);
        return;
    }
    find_leads(c);
    k->by_lead = true;
    for (k->at = 0; k->at < (int)k->n; k->at++)
        if (!leads(k, k->at))
            continue;
        else if (sweep == CASES_FIRST)
            run_many(c, k->attrs[k->at]);
        else
            run_few(c, k->attrs[k->at], sweep);
    k->by_lead = false;
}
