/* SPDX-License-Identifier: Apache-2.0
 *
 * Two reports side by side: the decisions that moved and, for each, the costs of what
 * was and what is chosen, as both reports have them.
 */
#include "planner/explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/stream.h"

/* ---- reading reports
 * ------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t cost_of(const json_t *object)
{
    return json_integer_value(json_object_get(object, "cost"));
}

static const json_t *section(const json_t *report, const char *name)
{
    return json_object_get(report, name);
}

static const json_t *costs(const json_t *report, const char *name)
{
    return json_object_get(json_object_get(report, "costs"), name);
}

static bool same(const json_t *a, const json_t *b, const char *const *keys)
{
    for (; *keys; keys++) {
        const json_t *x = json_object_get(a, *keys), *y = json_object_get(b, *keys);
        if (x != y && !json_equal(x, y)) /* both may be absent */
            return false;
    }
    return true;
}

/* The entry of a list that agrees with `like` in these keys, or NULL. */
static const json_t *find(const json_t *list, const json_t *like, const char *const *keys)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (same(json_array_get(list, i), like, keys))
            return json_array_get(list, i);
    return NULL;
}

static const char *const by_name[] = {"name", NULL};
static const char *const decision[] = {"impl", "row", "fused", "reads", "writes", NULL};
static const char *const choice_key[] = {"name",  "impl",   "row", "fused",
                                         "reads", "writes", NULL};
static const char *const reformat_key[] = {"tensor", "from", "to", NULL};
static const char *const conversion_key[] = {"shape", "from", "to", NULL};

/* ---- words
 * ------------------------------------------------------------------------------ */

static void put_list(FILE *f, const json_t *list)
{
    size_t n = json_array_size(list);
    bool one = true;
    for (size_t i = 1; i < n; i++)
        one &= json_equal(json_array_get(list, i), json_array_get(list, 0));
    for (size_t i = 0; i < (one && n ? 1 : n); i++)
        fprintf(f, "%s%s", i ? " " : "", json_string_value(json_array_get(list, i)));
}

/* "c in fp32:nchw to fp32:nhwc" */
static void put_choice(FILE *f, const json_t *c)
{
    const json_t *reads = json_object_get(c, "reads");
    const json_t *writes = json_object_get(c, "writes");
    fprintf(f, "%s in ", text_of(c, "impl"));
    put_list(f, json_array_size(reads) ? reads : writes);
    if (json_array_size(reads) && json_array_size(writes) &&
        !json_equal(json_array_get(reads, 0), json_array_get(writes, 0))) {
        fputs(" to ", f);
        put_list(f, writes);
    }
}

static char *choice_text(const json_t *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = c ? text_stream(&text, &size) : NULL;
    if (!f)
        return c ? NULL : duplicate("none", NULL);
    put_choice(f, c);
    return text_finish(f, &text);
}

/* ---- reasons
 * ---------------------------------------------------------------------------- */

/* How one cost entry differs between the reports; nothing where it does not. */
static void put_entry(FILE *f, const char *gap, const json_t *a, const json_t *b,
                      const json_t *c, bool conversion)
{
    char before[TEXT_REAL], after[TEXT_REAL];
    if (a && b && cost_of(a) == cost_of(b))
        return;
    fputs(gap, f);
    if (conversion)
        fprintf(f, "%s -> %s", text_of(c, "from"), text_of(c, "to"));
    else
        put_choice(f, c);
    if (a && b)
        fprintf(f, " went from %s to %s us", explain_in_us(before, cost_of(a)),
                explain_in_us(after, cost_of(b)));
    else
        fprintf(f, a ? " is no longer offered" : " was not offered before");
}

static char *reason(const json_t *a, const json_t *b, const json_t *was, const json_t *is,
                    const char *const *key, const char *list)
{
    char *text = NULL;
    size_t size;
    const json_t *all_a = costs(a, list), *all_b = costs(b, list);
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    bool conversion = key == conversion_key;
    if (was)
        put_entry(f, "", find(all_a, was, key), find(all_b, was, key), was, conversion);
    fflush(f);
    if (is)
        put_entry(f, size ? "; " : "", find(all_a, is, key), find(all_b, is, key), is,
                  conversion);
    fflush(f);
    if (size == 0)
        fputs("its own costs are the same: it follows its neighbours", f);
    return text_finish(f, &text);
}

/* ---- moves
 * ------------------------------------------------------------------------------ */

/* Takes the texts. */
static int add_move(struct explain_moves *m, struct explain_move move, strata_error *err)
{
    int status = STRATA_ENOMEM;
    if (move.what && move.before && move.after && move.because)
        status = grow(&m->list, &m->capacity, m->n, sizeof *m->list, err);
    if (status == STRATA_OK) {
        m->list[m->n++] = move;
        return STRATA_OK;
    }
    free(move.what);
    free(move.before);
    free(move.after);
    free(move.because);
    return error_no_memory(err, 0, "a comparison of plans");
}

static int compare_node(struct explain_diff *d, const json_t *a, const json_t *b,
                        const json_t *was, const json_t *is, strata_error *err)
{
    if (was && is && same(was, is, decision))
        return STRATA_OK;
    char *because = was && is ? reason(a, b, was, is, choice_key, "choices")
                    : was     ? duplicate("the second network has no such node", err)
                              : duplicate("the first network has no such node", err);
    struct explain_move move = {.what = duplicate(text_of(was ? was : is, "name"), err),
                                .before = choice_text(was),
                                .after = choice_text(is),
                                .because = because};
    return add_move(&d->decisions, move, err);
}

static int compare_nodes(struct explain_diff *d, const json_t *a, const json_t *b,
                         strata_error *err)
{
    int status = STRATA_OK;
    const json_t *of_a = section(a, "nodes"), *of_b = section(b, "nodes");
    for (size_t i = 0; i < json_array_size(of_a) && status == STRATA_OK; i++) {
        const json_t *n = json_array_get(of_a, i);
        status = compare_node(d, a, b, n, find(of_b, n, by_name), err);
    }
    for (size_t i = 0; i < json_array_size(of_b) && status == STRATA_OK; i++) {
        const json_t *n = json_array_get(of_b, i);
        if (!find(of_a, n, by_name))
            status = compare_node(d, a, b, NULL, n, err);
    }
    return status;
}

/* A reformat names its tensor, a conversion cost its shape. */
static char *reformat_reason(const json_t *a, const json_t *b, const json_t *r)
{
    const json_t *list = section(a, "tensors");
    json_t *named = json_pack("{s:O}", "name", json_object_get(r, "tensor"));
    const json_t *tensor = find(list, named, by_name);
    if (!tensor)
        tensor = find(section(b, "tensors"), named, by_name);
    json_t *key =
        json_pack("{s:O?, s:O, s:O}", "shape", json_object_get(tensor, "shape"), "from",
                  json_object_get(r, "from"), "to", json_object_get(r, "to"));
    char *text = key ? reason(a, b, key, NULL, conversion_key, "conversions") : NULL;
    json_decref(named);
    json_decref(key);
    return text;
}

static int compare_reformats(struct explain_diff *d, const json_t *a, const json_t *b,
                             bool gone, strata_error *err)
{
    const json_t *ours = section(gone ? a : b, "reformats");
    const json_t *theirs = section(gone ? b : a, "reformats");
    for (size_t i = 0; i < json_array_size(ours); i++) {
        const json_t *r = json_array_get(ours, i);
        if (cost_of(r) == 0 || find(theirs, r, reformat_key))
            continue;
        char *text = text_print("%s -> %s for %s", text_of(r, "from"), text_of(r, "to"),
                                text_of(r, "for"));
        char *none = duplicate("none", err);
        struct explain_move move = {
            .what = text_print("reformat of %s", text_of(r, "tensor")),
            .before = gone ? text : none,
            .after = gone ? none : text,
            .because = reformat_reason(a, b, r)};
        int status = add_move(&d->decisions, move, err);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

/* Formats of network inputs and outputs, which no node shows. */
static json_t *bound_formats(const json_t *tensor)
{
    const json_t *wanted = json_object_get(tensor, "wanted");
    json_t *list = json_array();
    if (strcmp(text_of(tensor, "impl"), "(bound)") == 0)
        json_array_append(list, json_object_get(tensor, "produced"));
    for (size_t i = 0; i < json_array_size(wanted); i++)
        if (json_is_true(json_object_get(json_array_get(wanted, i), "output")))
            json_array_append(list, json_object_get(json_array_get(wanted, i), "format"));
    return list;
}

static char *bound_text(const json_t *list)
{
    char *text = NULL;
    size_t size;
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    fputs("bound as ", f);
    put_list(f, list);
    return text_finish(f, &text);
}

static int compare_bindings(struct explain_diff *d, const json_t *a, const json_t *b,
                            strata_error *err)
{
    int status = STRATA_OK;
    const json_t *tensors = section(a, "tensors");
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *t = json_array_get(tensors, i);
        const json_t *other = find(section(b, "tensors"), t, by_name);
        json_t *was = bound_formats(t), *is = bound_formats(other);
        if (other && status == STRATA_OK && !json_equal(was, is)) {
            struct explain_move move = {.what = duplicate(text_of(t, "name"), err),
                                        .before = bound_text(was),
                                        .after = bound_text(is),
                                        .because = duplicate("the network says so", err)};
            status = add_move(&d->decisions, move, err);
        }
        json_decref(was);
        json_decref(is);
    }
    return status;
}

/* ---- cost entries
 * ------------------------------------------------------------------------- */

static char *entry_name(const json_t *c, bool conversion)
{
    char *text = NULL;
    size_t size;
    const json_t *dims = json_object_get(c, "shape");
    FILE *f = text_stream(&text, &size);
    if (!f)
        return NULL;
    if (conversion) {
        for (size_t i = 0; i < json_array_size(dims); i++)
            fprintf(f, "%s%lld", i ? "x" : "",
                    (long long)json_integer_value(json_array_get(dims, i)));
        fprintf(f, ": %s -> %s", text_of(c, "from"), text_of(c, "to"));
    } else {
        fprintf(f, "%s: ", text_of(c, "name"));
        put_choice(f, c);
    }
    return text_finish(f, &text);
}

static int compare_entries(struct explain_diff *d, const json_t *a, const json_t *b,
                           const char *list, const char *const *key, strata_error *err)
{
    const json_t *of_a = costs(a, list), *of_b = costs(b, list);
    for (size_t i = 0; i < json_array_size(of_a); i++) {
        const json_t *c = json_array_get(of_a, i);
        /* Most often both reports list the same things in the same order. */
        const json_t *other = json_array_get(of_b, i);
        if (!other || !same(c, other, key))
            other = find(of_b, c, key);
        if (!other || cost_of(c) == cost_of(other))
            continue;
        char before[TEXT_REAL], after[TEXT_REAL];
        struct explain_move move = {
            .what = entry_name(c, key == conversion_key),
            .before = duplicate(explain_in_us(before, cost_of(c)), err),
            .after = duplicate(explain_in_us(after, cost_of(other)), err),
            .because = duplicate("", err),
            .size = llabs(cost_of(other) - cost_of(c))};
        int status = add_move(&d->entries, move, err);
        if (status != STRATA_OK)
            return status;
    }
    return STRATA_OK;
}

static int by_size(const void *a, const void *b)
{
    const struct explain_move *x = a, *y = b;
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size)
                              : strcmp(x->what, y->what);
}

int explain_compare(struct explain_diff **out, const json_t *a, const json_t *b,
                    strata_error *err)
{
    struct explain_diff *d = zalloc(1, sizeof *d, "a comparison of plans", err);
    int status = d ? explain_check(a, "the first plan", err) : STRATA_ENOMEM;
    if (status == STRATA_OK)
        status = explain_check(b, "the second plan", err);
    if (status == STRATA_OK)
        status = compare_bindings(d, a, b, err);
    if (status == STRATA_OK)
        status = compare_nodes(d, a, b, err);
    if (status == STRATA_OK)
        status = compare_reformats(d, a, b, true, err);
    if (status == STRATA_OK)
        status = compare_reformats(d, a, b, false, err);
    if (status == STRATA_OK)
        status = compare_entries(d, a, b, "choices", choice_key, err);
    if (status == STRATA_OK)
        status = compare_entries(d, a, b, "conversions", conversion_key, err);
    if (status != STRATA_OK) {
        explain_diff_free(d);
        return status;
    }
    d->before = cost_of(section(a, "totals"));
    d->after = cost_of(section(b, "totals"));
    if (d->entries.n)
        qsort(d->entries.list, d->entries.n, sizeof *d->entries.list, by_size);
    *out = d;
    return STRATA_OK;
}

static void free_moves(struct explain_moves *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->list[i].what);
        free(m->list[i].before);
        free(m->list[i].after);
        free(m->list[i].because);
    }
    free(m->list);
}

void explain_diff_free(struct explain_diff *d)
{
    if (!d)
        return;
    free_moves(&d->decisions);
    free_moves(&d->entries);
    free(d);
}
