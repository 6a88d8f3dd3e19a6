/* SPDX-License-Identifier: Apache-2.0
 *
 * The plainest attributes that work are searched for: those that have no default are
 * given small values, at most MOST_SET of them at a time. Then every attribute is varied
 * alone: each choice, both bounds; and each count together with the counts of the
 * plainest case as "$C", the channels of the input. Inputs are of one shape; where
 * nothing works with that, one of them, or all but one, is of another that goes with it;
 * of three also the last two, of one each.
 */
#include "check/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/test/test.h"
#include "check/harness/trial.h"

#define MOST_SET 3 /* optional attributes given at once in the search */
#define MOST_TRIES 20000
#define FEW_TRIES 2000 /* for a case with images, before any will do */
#define MOST_ATTRS 64

#define UNEQUAL_TRIES 200 /* with inputs of one pair of shapes */

static const int rank_order[] = {4, 3, 2, 5, 1};

/* ---- asking ------------------------------------------------------------------------ */

static bool opens(struct check_child *c, const char *attrs,
                  const struct harness_shape *in, int n_in)
{
    struct harness_node n = {.phase = c->report->place.phase,
                             .in_dtype = c->cases.in_dtype};
    char text[CASES_TEXT];
    trial_attrs(text, sizeof text, attrs, in, n_in);
    attrs = text;
    copy_text(c->report->place.attrs, sizeof c->report->place.attrs, attrs);
    int status = harness_open(&n, c->layer, attrs, in, n_in, NULL, 0);
    if (status != STRATA_OK && n.err.message[0])
        copy_text(c->cases.refusal, sizeof c->cases.refusal, n.err.message);
    else if (status != STRATA_OK)
        snprintf(c->cases.refusal, sizeof c->cases.refusal,
                 "shape returned %d without a message", status);
    harness_close(&n);
    return status == STRATA_OK;
}

static struct harness_shape plain_shape(int rank)
{
    struct harness_shape s = {.rank = rank};
    for (int d = 0; d < rank; d++)
        s.dims[d] = d == 0 && rank > 2 ? 2 : 8;
    return s;
}

static bool takes_rank(struct check_child *c, const char *attrs, int rank)
{
    struct harness_shape in[HARNESS_INPUTS], usual = plain_shape(rank);
    cases_inputs(&c->cases, &usual, in);
    return opens(c, attrs, in, c->cases.n_in < 0 ? 0 : c->cases.n_in);
}

static bool takes_given(struct check_child *c, const char *attrs, const char *shapes)
{
    struct harness_shape in[HARNESS_INPUTS];
    const int n_in = cases_parse_shapes(shapes, in);
    return n_in >= 0 && opens(c, attrs, in, n_in);
}

/* Fill ranks; false if there is none. */
static bool takes_any(struct check_child *c, const char *attrs)
{
    struct check_cases *k = &c->cases;
    k->n_ranks = 0;
    for (size_t i = 0; i < c->o->n_shapes; i++)
        if (takes_given(c, attrs, c->o->shapes[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LENGTH(rank_order); i++)
        if (takes_rank(c, attrs, rank_order[i]))
            k->ranks[k->n_ranks++] = rank_order[i];
    /* Variations of a case that works with its own shapes alone. */
    return k->n_ranks > 0 ||
           (k->n > 0 && k->n_own > 0 && takes_given(c, attrs, k->own[0].shapes));
}

/* ---- the search -------------------------------------------------------------------- */

/* The text that the doc has in quotes, for an example, then a letter. */
static bool text_candidate(char *out, size_t size, const strata_attr *a, int i)
{
    const char *quote = a->doc ? strchr(a->doc, '"') : NULL;
    if (quote && i == 0)
        return snprintf(out, size, "%.*s", (int)strcspn(quote + 1, "\""), quote + 1) > 0;
    return i == (quote != NULL) && snprintf(out, size, "a") > 0;
}

/* The i-th value to try; false past the last. */
static bool candidate(char *out, size_t size, const strata_attr *a, int i)
{
    static const char *const integers[] = {"2", "1", "3", "5"};
    static const char *const lists[] = {"3", "1", "2, 3, 2, 2", "0", "2", "8"};
    static const char *const reals[] = {"2", "1", "0.5"};
    const char *p = a->choices;
    switch (a->type) {
    case STRATA_I64:
        return i < 4 && snprintf(out, size, "%s", integers[i]) > 0;
    case STRATA_F64:
    case STRATA_REALS:
        return i < 3 && snprintf(out, size, "%s", reals[i]) > 0;
    case STRATA_BOOL:
        return i < 2 && snprintf(out, size, "%s", i ? "no" : "yes") > 0;
    case STRATA_INTS:
        return i < 6 && snprintf(out, size, "%s", lists[i]) > 0;
    case STRATA_STRING:
        return text_candidate(out, size, a, i);
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
               (s->c->cases.n_ranks == 0 || s->c->cases.ranks[0] >= s->least_rank);
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

/* ---- variations -------------------------------------------------------------------- */

/* Where `text` sets an attribute: its value; or NULL. */
static const char *find_value(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = text; (p = strstr(p, name)); p += n)
        if ((p == text || p[-1] == ' ') && strncmp(p + n, " = ", 3) == 0)
            return p + n + 3;
    return NULL;
}

/* out: text with the attribute set to another value. */
static void set_value(char out[CASES_TEXT], const char *text, const char *name,
                      const char *value)
{
    const char *old = find_value(text, name);
    if (old)
        snprintf(out, CASES_TEXT, "%.*s%s%s", (int)(old - text), text, value,
                 old + strcspn(old, ";"));
    else
        snprintf(out, CASES_TEXT, "%s%s%s = %s", text, *text ? "; " : "", name, value);
}

/* Keep what `text` says, unless it is kept already or does not work. */
static void keep(struct check_child *c, const char *text)
{
    struct check_cases *k = &c->cases;
    struct check_cases before = {.n_ranks = k->n_ranks};
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->attrs[i], text) == 0)
            return;
    if (k->n == CASES_MOST)
        return;
    memcpy(before.ranks, k->ranks, sizeof before.ranks);
    snprintf(k->attrs[k->n], CASES_TEXT, "%s", text);
    bool works = takes_any(c, k->attrs[k->n]);
    memcpy(k->ranks, before.ranks, sizeof k->ranks);
    k->n_ranks = before.n_ranks;
    k->n += works;
}

static void keep_value(struct check_child *c, const char *base, const char *name,
                       const char *value)
{
    char text[CASES_TEXT];
    set_value(text, base, name, value);
    keep(c, text);
}

/* A count, with those that the plainest case gives, as many as channels. */
static void keep_channels(struct check_child *c, const char *base, const strata_attr *a)
{
    const struct registry_layer *l = c->layer;
    char text[CASES_TEXT], next[CASES_TEXT];
    if (a->type != STRATA_I64)
        return;
    set_value(text, base, a->name, "$C");
    for (size_t i = 0; i < l->n_attrs; i++)
        if (l->attrs[i].type == STRATA_I64 && find_value(base, l->attrs[i].name)) {
            set_value(next, text, l->attrs[i].name, "$C");
            memcpy(text, next, sizeof text);
        }
    keep(c, text);
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
                keep_value(c, base, a->name, value);
            }
    }
    for (int i = 0; candidate(value, sizeof value, a, i); i++)
        keep_value(c, base, a->name, value);
    keep_channels(c, base, a);
}

/* ---- inputs of several shapes ------------------------------------------------------ */

/* Beside an N x C x H x W: a letter a dim, S all of space, s a 1 for each of that, D a
 * size of its own, a digit itself. */
static const char *const patterns[] = {"NC",  "NCs", "1Cs", "C",   "N1S", "ND",
                                       "1ss", "1",   "N",   "NS",  "CC",  "CD",
                                       "W",   "D",   "NS2", "NS4", "D4",  "N4"};

static void take_pattern(struct harness_shape *out, const struct harness_shape *usual,
                         const char *pattern)
{
    *out = (struct harness_shape){0};
    for (; *pattern && out->rank < STRATA_MAX_RANK; pattern++) {
        const bool space = *pattern == 'S' || *pattern == 's';
        for (int d = 2; space && d < usual->rank; d++)
            out->dims[out->rank++] = *pattern == 'S' ? usual->dims[d] : 1;
        if (space)
            continue;
        out->dims[out->rank++] = *pattern == 'N'   ? usual->dims[0]
                                 : *pattern == 'C' ? usual->dims[usual->rank > 1]
                                 : *pattern == 'W' ? usual->dims[usual->rank - 1]
                                 : *pattern == 'D' ? 6
                                                   : *pattern - '0';
    }
}

void cases_inputs(const struct check_cases *k, const struct harness_shape *usual,
                  struct harness_shape in[HARNESS_INPUTS])
{
    for (int i = 0; i < HARNESS_INPUTS; i++)
        if (k->pattern[i])
            take_pattern(&in[i], usual, k->pattern[i]);
        else
            in[i] = *usual;
}

int cases_plain(const struct check_child *c, struct harness_shape in[HARNESS_INPUTS])
{
    const struct check_cases *k = &c->cases;
    const struct harness_shape usual = plain_shape(k->n_ranks ? k->ranks[0] : 4);
    if (k->n_ranks == 0 && (c->o->n_shapes || k->n_own))
        return cases_parse_shapes(c->o->n_shapes ? c->o->shapes[0] : k->own[0].shapes,
                                  in);
    cases_inputs(k, &usual, in);
    return k->n_in < 0 ? 0 : k->n_in;
}

static bool search_typed(struct check_child *c)
{
    struct check_cases *k = &c->cases;
    for (int least = k->n_in < 0 ? 1 : 3; least > 0 && k->n == 0; least -= 2)
        for (int set = 0; set <= MOST_SET && k->n == 0; set++) {
            struct search s = {.c = c,
                               .least_rank = least,
                               .most_tries = least > 1 ? FEW_TRIES : MOST_TRIES};
            k->n = search(&s, 0, set);
        }
    return k->n > 0;
}

/* Search with each of the types that rows take, until one works. */
static bool search_plain(struct check_child *c)
{
    struct check_cases *k = &c->cases;
    for (size_t i = 0; i < k->n_types && k->n == 0; i++) {
        memcpy(k->in_dtype, k->types[i], sizeof k->in_dtype);
        search_typed(c);
    }
    return k->n > 0;
}

/* With `set` optional attributes set. */
static bool works_unequal(struct check_child *c, int set)
{
    struct search s = {.c = c, .most_tries = UNEQUAL_TRIES};
    return c->o->n_attrs ? takes_any(c, c->cases.attrs[0]) : search(&s, 0, set);
}

/* A usual input, then two of a pattern each. */
static bool search_pairs(struct check_child *c, int set)
{
    struct check_cases *k = &c->cases;
    for (size_t p = 0; p < ARRAY_LENGTH(patterns) && k->n_in == 3; p++)
        for (size_t q = 0; q < ARRAY_LENGTH(patterns); q++) {
            k->pattern[1] = patterns[p];
            k->pattern[2] = patterns[q];
            if (works_unequal(c, set))
                return true;
        }
    memset(k->pattern, 0, sizeof k->pattern);
    return false;
}

/* One input, then all but one, of each pattern beside usual ones. */
static bool search_unequal_typed(struct check_child *c, int set)
{
    struct check_cases *k = &c->cases;
    for (int others = 0; others < (k->n_in > 2 ? 2 : k->n_in > 1); others++)
        for (int at = 0; at < k->n_in; at++)
            for (size_t p = 0; p < ARRAY_LENGTH(patterns); p++) {
                for (int i = 0; i < k->n_in; i++)
                    k->pattern[i] = (i == at) != (others > 0) ? patterns[p] : NULL;
                if (works_unequal(c, set))
                    return true;
            }
    memset(k->pattern, 0, sizeof k->pattern);
    return search_pairs(c, set);
}

static bool search_unequal(struct check_child *c)
{
    struct check_cases *k = &c->cases;
    for (int set = 0; set <= (c->o->n_attrs ? 0 : 1); set++)
        for (size_t i = 0; i < k->n_types; i++) {
            memcpy(k->in_dtype, k->types[i], sizeof k->in_dtype);
            if (search_unequal_typed(c, set))
                return true;
        }
    return false;
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
    cases_find_types(k, l);
    if (c->o->n_attrs > 0) {
        for (; k->n < c->o->n_attrs && k->n < CASES_MOST; k->n++)
            snprintf(k->attrs[k->n], CASES_TEXT, "%s", c->o->attrs[k->n]);
        if (c->o->n_shapes || takes_any(c, k->attrs[0]) || search_unequal(c))
            return true;
        k->n = 0;
    } else if (!c->o->n_shapes) {
        cases_find_own(c);
    }
    if (c->o->n_attrs == 0)
        k->n = search_plain(c) || search_unequal(c) || k->n_own > 0;
    if (k->n > 0 && k->n_ranks == 0 && k->n_own > 0)
        snprintf(k->attrs[0], CASES_TEXT, "%s", k->own[0].attrs);
    if (k->n == 0) {
        c->report->no_case = true;
        check_found(c, "untested",
                    c->o->n_shapes
                        ? "no attributes were found with which --shape is taken; give "
                          "some with --attrs 'name = value; ...'. The last refusal: %s"
                        : "no attributes were found with which a shape of rank 1 to 5 "
                          "is taken; give some with --attrs 'name = value; ...', shapes "
                          "with --shape, or a network that has the layer, of the file's "
                          "name with .ini. The last refusal: %s",
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

/* Fill weights with those that the attributes and inputs call for. */
static void find_weights(const struct registry_layer *layer, struct cases_node *out)
{
    struct harness_node n = {.in_dtype = out->in_dtype};
    if (harness_open(&n, layer, out->attrs, out->in, out->n_in, NULL, 0) == STRATA_OK)
        for (int i = 0; i < n.node.n_weights; i++)
            out->weights |= n.weight[i].rank > 0 ? UINT32_C(1) << i : 0;
    harness_close(&n);
}

void cases_of_layer(const struct registry_layer *layer, struct cases_node *out)
{
    static const struct check_options none = {.file = ""};
    struct check_report *report = calloc(1, sizeof *report);
    struct check_child *c = calloc(1, sizeof *c);
    *out = (struct cases_node){0};
    if (c && report) {
        *c = (struct check_child){.o = &none, .report = report, .layer = layer};
        if (cases_find(c)) {
            copy_text(out->attrs, sizeof out->attrs, c->cases.attrs[0]);
            memcpy(out->in_dtype, c->cases.in_dtype, sizeof out->in_dtype);
            out->n_in = cases_plain(c, out->in);
            find_weights(layer, out);
        }
    }
    free(c);
    free(report);
}
