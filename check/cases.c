/* SPDX-License-Identifier: Apache-2.0
 *
 * The plainest attributes that work are searched for: those that have no default are
 * given small values, at most MOST_SET of them at a time. Then every other attribute is
 * varied alone: each choice, both bounds.
 */
#include "check/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/test.h"

#define MOST_SET 3 /* optional attributes given at once in the search */
#define MOST_TRIES 20000
#define FEW_TRIES 2000 /* for a case with images, before any will do */
#define MOST_ATTRS 64

static const int rank_order[] = {4, 3, 2, 5, 1};

/* ---- asking --------------------------------------------------------------------------
 */

static bool opens(struct check_child *c, const char *attrs,
                  const struct harness_shape *in, int n_in)
{
    struct harness_node n = {.phase = c->report->place.phase};
    copy_text(c->report->place.attrs, sizeof c->report->place.attrs, attrs);
    int status = harness_open(&n, c->layer, attrs, in, n_in, NULL, 0);
    if (status != STRATA_OK)
        copy_text(c->cases.refusal, sizeof c->cases.refusal, n.err.message);
    harness_close(&n);
    return status == STRATA_OK;
}

static bool takes_rank(struct check_child *c, const char *attrs, int rank)
{
    struct harness_shape in[HARNESS_INPUTS] = {{0}};
    const int n_in = c->cases.n_in < 0 ? 0 : c->cases.n_in;
    for (int i = 0; i < n_in; i++) {
        in[i].rank = rank;
        for (int d = 0; d < rank; d++)
            in[i].dims[d] = d == 0 && rank > 2 ? 2 : 8;
    }
    return opens(c, attrs, in, n_in);
}

/* Fill ranks; false if there is none. */
static bool takes_any(struct check_child *c, const char *attrs)
{
    struct check_cases *k = &c->cases;
    k->n_ranks = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rank_order); i++)
        if (takes_rank(c, attrs, rank_order[i]))
            k->ranks[k->n_ranks++] = rank_order[i];
    return k->n_ranks > 0;
}

/* ---- the search
 * ------------------------------------------------------------------------ */

/* The i-th value to try; false past the last. */
static bool candidate(char *out, size_t size, const strata_attr *a, int i)
{
    static const char *const integers[] = {"2", "1", "3"};
    static const char *const lists[] = {"3", "1", "2, 3, 2, 2", "0", "2", "8"};
    static const char *const reals[] = {"2", "1", "0.5"};
    const char *p = a->choices;
    switch (a->type) {
    case STRATA_I64:
        return i < 3 && snprintf(out, size, "%s", integers[i]) > 0;
    case STRATA_F64:
    case STRATA_REALS:
        return i < 3 && snprintf(out, size, "%s", reals[i]) > 0;
    case STRATA_BOOL:
        return i < 2 && snprintf(out, size, "%s", i ? "no" : "yes") > 0;
    case STRATA_INTS:
        return i < 6 && snprintf(out, size, "%s", lists[i]) > 0;
    case STRATA_STRING:
        return i < 1 && snprintf(out, size, "a") > 0;
    default:
        for (; i > 0 && p; i--) {
            p = strchr(p, '|');
            p = p ? p + 1 : NULL;
        }
        return p && snprintf(out, size, "%.*s", (int)strcspn(p, "|"), p) > 0;
    }
}

/* Whether leaving it out means "not set". */
static bool unset(const strata_attr *a)
{
    switch (a->type) {
    case STRATA_I64:
        return a->def == 0;
    case STRATA_F64:
        return isinf(a->def);
    case STRATA_INTS:
    case STRATA_REALS:
        return !a->def_text || !a->def_text[0];
    case STRATA_STRING:
        return !a->def_text;
    default:
        return false;
    }
}

struct search {
    struct check_child *c;
    int chosen[MOST_ATTRS]; /* candidate of each attribute, or -1 */
    int tries, most_tries;
    int least_rank; /* that it must work with */
};

static void write_case(const struct search *s, char text[CASES_TEXT])
{
    const struct registry_layer *l = s->c->layer;
    size_t used = 0;
    char value[128];
    text[0] = '\0';
    for (size_t i = 0; i < l->n_attrs && i < MOST_ATTRS; i++)
        if (s->chosen[i] >= 0 &&
            candidate(value, sizeof value, &l->attrs[i], s->chosen[i]) &&
            used < CASES_TEXT)
            used += (size_t)snprintf(text + used, CASES_TEXT - used, "%s%s = %s",
                                     used ? "; " : "", l->attrs[i].name, value);
}

/* Give values to the attributes from `at` on, `optional` more of which may be set. */
static bool search(struct search *s, size_t at, int optional)
{
    const struct registry_layer *l = s->c->layer;
    char *text = s->c->cases.attrs[0], value[128];
    if (at >= l->n_attrs || at >= MOST_ATTRS) {
        write_case(s, text);
        return s->tries++ < s->most_tries && optional == 0 && takes_any(s->c, text) &&
               s->c->cases.ranks[0] >= s->least_rank;
    }
    const strata_attr *a = &l->attrs[at];
    const bool required = a->flags & STRATA_REQUIRED;
    s->chosen[at] = -1;
    if (!required && search(s, at + 1, optional))
        return true;
    if (!required && (optional == 0 || !unset(a)))
        return false;
    for (int i = 0; candidate(value, sizeof value, a, i) && s->tries < s->most_tries;
         i++) {
        s->chosen[at] = i;
        if (search(s, at + 1, optional - !required))
            return true;
    }
    s->chosen[at] = -1;
    return false;
}

/* ---- variations
 * -------------------------------------------------------------------------- */

static void keep(struct check_child *c, const char *base, const char *name,
                 const char *value)
{
    struct check_cases *k = &c->cases;
    struct check_cases before = {.n_ranks = k->n_ranks};
    const size_t n = strlen(name);
    if (k->n == CASES_MOST)
        return;
    for (const char *p = base; (p = strstr(p, name)); p += n)
        if ((p == base || p[-1] == ' ') && p[n] == ' ')
            return; /* the plainest case sets it */
    memcpy(before.ranks, k->ranks, sizeof before.ranks);
    snprintf(k->attrs[k->n], CASES_TEXT, "%s%s%s = %s", base, *base ? "; " : "", name,
             value);
    bool works = takes_any(c, k->attrs[k->n]);
    memcpy(k->ranks, before.ranks, sizeof k->ranks);
    k->n_ranks = before.n_ranks;
    k->n += works;
}

static void vary(struct check_child *c, const char *base, const strata_attr *a)
{
    char value[128];
    const bool limited = a->min != 0 || a->max != 0;
    if (a->type == STRATA_F64 && limited) {
        const double bounds[] = {a->min, a->max};
        for (int i = 0; i < 2; i++)
            if (fabs(bounds[i]) < 1e6) {
                snprintf(value, sizeof value, "%.17g", bounds[i]);
                keep(c, base, a->name, value);
            }
    }
    for (int i = 0; candidate(value, sizeof value, a, i); i++)
        keep(c, base, a->name, value);
}

static void count_inputs(struct check_child *c)
{
    const strata_layer *l = &c->layer->layer;
    c->cases.n_in = l->min_in > 0 ? l->min_in : l->max_in == 0 ? -1 : 1;
}

bool cases_find(struct check_child *c)
{
    struct check_cases *k = &c->cases;
    const struct registry_layer *l = c->layer;
    count_inputs(c);
    if (c->o->n_attrs > 0) {
        for (; k->n < c->o->n_attrs && k->n < CASES_MOST; k->n++)
            snprintf(k->attrs[k->n], CASES_TEXT, "%s", c->o->attrs[k->n]);
        if (c->o->shapes || takes_any(c, k->attrs[0]))
            return true;
    }
    for (int least = k->n_in < 0 ? 1 : 3; least > 0 && k->n == 0; least -= 2)
        for (int set = 0; set <= MOST_SET && k->n == 0; set++) {
            struct search s = {.c = c,
                               .least_rank = least,
                               .most_tries = least > 1 ? FEW_TRIES : MOST_TRIES};
            k->n = search(&s, 0, set);
        }
    if (k->n == 0) {
        check_found(
            c, "untested",
            "no attributes were found with which a shape of rank 1 to 5 is "
            "taken; give some with --attrs 'name = value; ...'. The last refusal: "
            "%s",
            k->refusal);
        return false;
    }
    char base[CASES_TEXT];
    snprintf(base, sizeof base, "%s", k->attrs[0]);
    for (size_t i = 0; i < l->n_attrs; i++)
        vary(c, base, &l->attrs[i]);
    c->report->place = (struct check_place){0};
    return true;
}

/* ---- shapes
 * ------------------------------------------------------------------------------ */

#define MOST_SHAPES 160

static int64_t elements(const struct harness_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++)
        n *= s->dims[d];
    return n;
}

static int compare_elements(const void *a, const void *b)
{
    const int64_t x = elements(a), y = elements(b);
    return (x > y) - (x < y);
}

/* Small ones first, so that what fails first is small. */
static size_t sweep_shapes(struct harness_shape *out, int rank, bool thorough)
{
    static const int64_t images[] = {1, 3};
    static const int64_t channels[] = {1, 2, 3, 7, 8, 9, 16, 17};
    static const int64_t sizes[][2] = {{1, 1}, {5, 7}, {7, 1}, {7, 7}, {1, 5},
                                       {7, 5}, {1, 7}, {5, 1}, {5, 5}};
    const size_t n_sizes = rank < 3 ? 1 : thorough ? 9 : 4;
    size_t n = 0;
    for (size_t i = 0; i < (rank == 1 ? 1 : ARRAY_LENGTH(images)); i++)
        for (size_t k = 0; k < ARRAY_LENGTH(channels); k++)
            for (size_t s = 0; s < n_sizes; s++) {
                struct harness_shape *shape = &out[n++];
                *shape = (struct harness_shape){.rank = rank};
                shape->dims[0] = rank == 1 ? channels[k] : images[i];
                shape->dims[1] = channels[k];
                for (int d = 2; d < rank; d++)
                    shape->dims[d] = sizes[s][d % 2];
            }
    for (int64_t side = 3; side < 20; side *= 2) /* what only takes squares */
        if (rank == 2)
            out[n++] = (struct harness_shape){2, {side, side}};
    qsort(out, n, sizeof *out, compare_elements);
    return n;
}

#define FEW_SHAPES 4

static size_t few_shapes(struct harness_shape *out, int rank)
{
    static const int64_t dims[FEW_SHAPES][5] = {
        {1, 3, 5, 7, 5}, {2, 8, 7, 7, 7}, {3, 9, 7, 5, 5}, {8, 8, 8, 8, 8}};
    for (size_t i = 0; i < FEW_SHAPES; i++) {
        out[i] = (struct harness_shape){.rank = rank};
        memcpy(out[i].dims, dims[i], (size_t)rank * sizeof dims[i][0]);
    }
    return FEW_SHAPES;
}

static size_t large_shapes(struct harness_shape *out, int rank)
{
    static const int64_t dims[][5] = {
        {2, 17, 31, 33, 3}, {4, 16, 32, 32, 4}, {64, 64, 64, 64, 4}};
    for (size_t i = 0; i < ARRAY_LENGTH(dims); i++) {
        out[i] = (struct harness_shape){.rank = rank};
        memcpy(out[i].dims, dims[i], (size_t)rank * sizeof dims[i][0]);
    }
    return rank < 3 ? ARRAY_LENGTH(dims) : 2;
}

int cases_parse_shapes(const char *text, struct harness_shape shapes[HARNESS_INPUTS])
{
    int n = 0;
    memset(shapes, 0, HARNESS_INPUTS * sizeof *shapes);
    while (*text && n < HARNESS_INPUTS) {
        char *end;
        struct harness_shape *s = &shapes[n];
        s->dims[s->rank++] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != 'x' && *end != ',') ||
            (*end == 'x' && s->rank == STRATA_MAX_RANK))
            return -1;
        n += *end != 'x';
        text = *end ? end + 1 : end;
    }
    return *text ? -1 : n;
}

/* ---- running
 * ------------------------------------------------------------------------------- */

static bool enough(const struct check_child *c)
{
    return c->report->n_findings >= CHECK_FINDINGS / 2;
}

static void run_case(struct check_child *c, const char *attrs,
                     const struct harness_shape *in, int n_in, unsigned absent,
                     bool integers)
{
    struct layer_case k = {.layer = c->layer->layer.name,
                           .attrs = attrs,
                           .n_in = n_in,
                           .absent = absent,
                           .may_refuse = true,
                           .integers = integers,
                           .high = integers ? 100 : 0};
    for (int i = 0; i < n_in; i++)
        k.in[i] = in[i];
    struct harness_result r =
        harness_check_on(&c->target, c->layer, &k, c->o->seed, NULL);
    c->report->runs += r.runs;
}

/* The same shape for every input. */
static void run_alike(struct check_child *c, const char *attrs,
                      const struct harness_shape *shape, int n_in, unsigned absent,
                      bool integers)
{
    struct harness_shape in[HARNESS_INPUTS];
    for (int i = 0; i < HARNESS_INPUTS; i++)
        in[i] = *shape;
    if (!enough(c))
        run_case(c, attrs, in, n_in, absent, integers);
}

static bool has_integers(const struct registry_layer *l)
{
    const uint64_t mask = STRATA_I8_NC4HW4 | STRATA_I8_NC32HW32 | STRATA_U8_NHWC |
                          STRATA_I32_NCHW | STRATA_I8_NCHW | STRATA_U8_NCHW |
                          STRATA_I8_NHWC;
    for (size_t i = 0; i < l->n_impls; i++)
        for (uint32_t r = 0; r < l->impls[i].impl.rows.n; r++)
            if (l->impls[i].rows[r].in[0] & mask)
                return true;
    return false;
}

static unsigned optional_weights(const struct registry_layer *l)
{
    unsigned mask = 0;
    for (size_t i = 0; i < l->n_weights; i++)
        if (!(l->weights[i].flags & STRATA_REQUIRED))
            mask |= 1u << i;
    return mask;
}

/* One more input, no optional weights, whole numbers: each on a few shapes, from `first`
 * on. */
static void run_extras(struct check_child *c, const char *attrs, int rank, size_t first)
{
    const strata_layer *l = &c->layer->layer;
    struct harness_shape few[FEW_SHAPES];
    const size_t n = few_shapes(few, rank);
    const int n_in = c->cases.n_in;
    const unsigned optional = optional_weights(c->layer);
    for (size_t i = first; i < n; i++) {
        if (n_in > 0 && n_in < HARNESS_INPUTS && (l->max_in < 0 || l->max_in > n_in))
            run_alike(c, attrs, &few[i], n_in + 1, 0, false);
        if (optional)
            run_alike(c, attrs, &few[i], n_in, optional, false);
        if (has_integers(c->layer))
            run_alike(c, attrs, &few[i], n_in, 0, true);
    }
}

/* A quick check takes one shape of so many (prime to the number of channels), and of few
 * ones those from here on. */
#define QUICK_STEP 5
#define QUICK_FIRST 2

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
        run_alike(c, k->attrs[0], &shape, k->n_in, 0, false);
}

static void run_all(struct check_child *c, bool vary)
{
    struct harness_shape shapes[MOST_SHAPES];
    const struct check_cases *k = &c->cases;
    const size_t step = c->o->quick ? QUICK_STEP : 1;
    const size_t first = c->o->quick && k->n_in > 0 ? QUICK_FIRST : 0;
    for (int r = 0; r < k->n_ranks; r++) {
        size_t n = r == 0 ? sweep_shapes(shapes, k->ranks[r], c->o->thorough)
                          : few_shapes(shapes, k->ranks[r]);
        for (size_t i = r == 0 ? 0 : first; i < (k->n_in < 0 ? 1 : n);
             i += r == 0 ? step : 1)
            run_alike(c, k->attrs[0], &shapes[i], k->n_in, 0, false);
        run_extras(c, k->attrs[0], k->ranks[r], first);
    }
    if (k->n_ranks > 0 && vary)
        run_large(c);
    for (size_t a = 1; a < k->n && vary; a++) {
        const size_t n = k->n_in < 0 ? 1 : few_shapes(shapes, k->ranks[0]);
        for (size_t i = step > 1 ? a % n : 0; i < n; i += step)
            run_alike(c, k->attrs[a], &shapes[i], k->n_in, 0, false);
    }
}

void cases_run(struct check_child *c, enum cases_sweep sweep)
{
    struct harness_shape shapes[HARNESS_INPUTS];
    const struct check_cases *k = &c->cases;
    const int given = c->o->shapes ? cases_parse_shapes(c->o->shapes, shapes) : 0;
    if (c->o->shapes) {
        const unsigned optional = optional_weights(c->layer);
        for (size_t a = 0; a < k->n && given >= 0; a++) {
            run_case(c, k->attrs[a], shapes, given == 0 ? -1 : given, 0, false);
            if (optional)
                run_case(c, k->attrs[a], shapes, given == 0 ? -1 : given, optional,
                         false);
            if (has_integers(c->layer))
                run_case(c, k->attrs[a], shapes, given == 0 ? -1 : given, 0, true);
        }
    } else if (sweep == CASES_ALL || sweep == CASES_FIRST) {
        run_all(c, sweep == CASES_ALL);
    } else {
        const int rank = k->n_ranks ? k->ranks[0] : 4;
        size_t n =
            sweep == CASES_LARGE ? large_shapes(shapes, rank) : few_shapes(shapes, rank);
        const int before = c->report->runs;
        for (size_t i = 0; i < (k->n_in < 0 ? 1 : n); i++) {
            run_alike(c, k->attrs[0], &shapes[i], k->n_in, 0, false);
            if (sweep != CASES_FEW && c->report->runs > before)
                return;
        }
    }
}
