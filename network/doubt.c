/* SPDX-License-Identifier: Apache-2.0
 *
 * What loads, but is most likely not meant: tensors beside those that layers read, which
 * is how a misspelt optional weight looks; integers as floats; too few labels.
 */
#include "network/attributes.h"
#include "network/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* The weight that says which integer stands for 0. */
#define ZERO "zero"

enum {
    NAMED = 3,    /* tensors that a list names */
    TOLD = 8,     /* misspelt tensors that are told one by one */
    LONGEST = 256 /* bytes of a tensor's name */
};

/* Tensors of which the first few are named. */
struct listing {
    size_t n;
    char text[NAMED * (LONGEST + 16)];
};

/* A [weights] file, as the layers read it. */
struct reading {
    struct names tensors;  /* read, or left out by a key of their own */
    struct names prefixes; /* of those, to the first draft that has it */
    struct listing unread, integers;
    size_t told;
};

static void list_tensor(struct listing *l, const char *name, const char *detail)
{
    size_t at = strlen(l->text);
    if (l->n++ < NAMED)
        snprintf(l->text + at, sizeof l->text - at, "%s'%.255s'%s", at ? ", " : "", name,
                 detail);
}

static void tell(struct loader *l, bool strict, struct config_place place,
                 const char *text)
{
    char where[256];
    if (strict) {
        config_error(l->c, place, "%s", text);
        return;
    }
    config_describe(l->c, place, where, sizeof where);
    log_line(STRATA_LOG_WARNING, "%s: %s", where, text);
}

/* ---- what layers read ---- */

/* Index of the file that "w:NAME" or "w" names, or -1. */
static int source_index(const struct loader *l, const struct config_pair *p)
{
    char name[CONFIG_MAX_NAME + 1] = "";
    size_t n = strcspn(p->value, ":");
    if (n < sizeof name)
        memcpy(name, p->value, n);
    int index = names_get(&l->source_index, name);
    return index >= 0 && l->sources[index].file ? index : -1;
}

static int put_once(struct names *map, const char *name, int value, strata_error *err)
{
    return names_get(map, name) >= 0 ? STRATA_OK : names_put(map, name, value, err);
}

/* "fc" of "fc.bias"; NULL where there is none, or no memory. */
static const char *prefix_of(struct loader *l, const char *tensor)
{
    const char *dot = strrchr(tensor, '.');
    return dot ? config_text(l->c, tensor, (size_t)(dot - tensor)) : NULL;
}

static bool is_integer(enum weight_dtype dtype)
{
    return dtype > WEIGHT_F8_E5M2;
}

/* Whether something says what a layer's first weight is to be multiplied by. */
static bool has_factors(const struct network_layer *layer)
{
    for (size_t i = 1; i < layer->type->n_weights; i++)
        if (layer->type->weights[i].flags & STRATA_FACTORS &&
            network_has_weight(layer, i))
            return true;
    return false;
}

/* Weight i of a draft, whose key is p. */
static int note_weight(struct loader *l, struct reading *readings, int draft, size_t i,
                       const struct config_pair *p)
{
    const struct network_weight *w = &l->drafts[draft].layer.weights[i];
    const int index = source_index(l, p);
    char detail[16];
    if (w->source != WEIGHT_FILE || index < 0)
        return STRATA_OK;
    struct reading *r = &readings[index];
    const struct network_layer *layer = &l->drafts[draft].layer;
    const bool scaled = i == 0 && has_factors(layer);
    if (is_integer(w->view.dtype) && dtype_range(w->dtype) > 0 && !scaled &&
        strcmp(layer->type->weights[i].name, ZERO) != 0) {
        snprintf(detail, sizeof detail, " (%s)", weight_dtype_name(w->view.dtype));
        list_tensor(&r->integers, w->view.name, detail);
    }
    const char *prefix = prefix_of(l, w->view.name);
    int status = put_once(&r->tensors, w->view.name, draft, l->err);
    return status == STRATA_OK && prefix ? put_once(&r->prefixes, prefix, draft, l->err)
                                         : status;
}

/* PREFIX.K, where K has a key of its own beside `weights = w:PREFIX`. */
static int note_left_out(struct loader *l, struct reading *readings, int draft,
                         const char *weight, const struct config_pair *all)
{
    const int index = source_index(l, all);
    const char *colon = strchr(all->value, ':');
    char name[CONFIG_MAX_LINE + LONGEST];
    struct weight_view view;
    snprintf(name, sizeof name, "%s%s%.250s", colon ? colon + 1 : "", colon ? "." : "",
             weight);
    if (index < 0 || weights_find(l->sources[index].file, name, &view, NULL) != STRATA_OK)
        return STRATA_OK;
    return put_once(&readings[index].tensors, view.name, draft, l->err);
}

static int note_draft(struct loader *l, struct reading *readings, int draft)
{
    const struct draft *d = &l->drafts[draft];
    const struct registry_layer *type = d->layer.type;
    const struct config_pair *all = config_get(d->section, "weights");
    const int index = type && type->n_weights && all ? source_index(l, all) : -1;
    int status = STRATA_OK;
    if (index >= 0 && !strchr(all->value, ':'))
        status = put_once(&readings[index].prefixes, "", draft, l->err);
    for (size_t i = 0; type && i < type->n_weights && status == STRATA_OK; i++) {
        const char *name = type->weights[i].name;
        const struct config_pair *own =
            attributes_pair(l->c, d->section, type, name, true);
        if (own || all)
            status = note_weight(l, readings, draft, i, own ? own : all);
        if (own && all && status == STRATA_OK)
            status = note_left_out(l, readings, draft, name, all);
    }
    return status;
}

/* ---- what nothing reads ---- */

/* A weight that the layer would take, has not been given, and may be what `name` is. */
static const char *missing_weight(struct loader *l, const struct draft *d,
                                  const char *name)
{
    const struct registry_layer *type = d->layer.type;
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; i < type->n_weights && n < ARRAY_LENGTH(names); i++)
        if (d->layer.weights[i].source == WEIGHT_ABSENT &&
            !attributes_pair(l->c, d->section, type, type->weights[i].name, true))
            names[n++] = type->weights[i].name;
    return suggest(name, names, n);
}

/* One that PyTorch counts in (num_batches_tracked), which is no weight of a layer. */
static bool is_counter(const struct weight_view *v)
{
    return is_integer(v->dtype) && v->bytes == weight_dtype_size(v->dtype);
}

static void doubt_tensor(struct loader *l, const struct source *s, struct reading *r,
                         const struct weight_view *v)
{
    const char *dot = strrchr(v->name, '.'), *last = dot ? dot + 1 : v->name;
    const int length = dot ? (int)(dot - v->name) : 0;
    char prefix[LONGEST], text[1280]; /* three names and what is between them */
    snprintf(prefix, sizeof prefix, "%.*s", length, v->name);
    const int reader = names_get(&r->prefixes, prefix);
    if (reader < 0 || is_counter(v) || names_get(&r->tensors, v->name) >= 0)
        return;
    const struct draft *d = &l->drafts[reader];
    const char *near = missing_weight(l, d, last);
    if (!near || r->told++ >= TOLD) {
        list_tensor(&r->unread, v->name, "");
        return;
    }
    int n = snprintf(text, sizeof text, "nothing reads tensor '%s' of [weights %s], and ",
                     v->name, s->name);
    if (strcmp(near, last) == 0)
        snprintf(text + n, sizeof text - (size_t)n,
                 "layer %s has no %s; write '%s = %s:%s', or '%s = none'", d->layer.name,
                 near, near, s->name, v->name, near);
    else
        snprintf(text + n, sizeof text - (size_t)n,
                 "layer %s has no %s; did you mean '%s%s%s'?", d->layer.name, near,
                 prefix, dot ? "." : "", near);
    const struct config_pair *all = config_get(d->section, "weights");
    tell(l, s->strict, all ? all->value_place : d->section->place, text);
}

static void tell_listing(struct loader *l, const struct source *s,
                         const struct listing *list, const char *what)
{
    char text[sizeof list->text + 300], more[40] = "";
    if (!list->n)
        return;
    if (list->n > NAMED)
        snprintf(more, sizeof more, " and %zu more", list->n - NAMED);
    snprintf(text, sizeof text, "[weights %s]: %s: %s%s", s->name, what, list->text,
             more);
    tell(l, s->strict, s->place, text);
}

static void doubt_source(struct loader *l, const struct source *s, struct reading *r)
{
    for (size_t i = 0; i < weights_count(s->file); i++) {
        struct weight_view v = weights_at(s->file, i);
        doubt_tensor(l, s, r, &v);
    }
    tell_listing(l, s, &r->unread,
                 "nothing reads these, beside tensors that layers read");
    tell_listing(l, s, &r->integers, "integers where layers take floats");
}

int network_doubt_weights(struct loader *l)
{
    int status = STRATA_OK;
    if (l->memory || config_errors(l->c)) /* an engine's text names what is read alone */
        return STRATA_OK;
    struct reading *readings =
        zalloc(l->n_sources, sizeof *readings, "tensors that are read", l->err);
    if (!readings)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < l->n_drafts && status == STRATA_OK; i++)
        status = note_draft(l, readings, (int)i);
    for (size_t i = 0; i < l->n_sources; i++) {
        if (status == STRATA_OK && l->sources[i].file)
            doubt_source(l, &l->sources[i], &readings[i]);
        names_free(&readings[i].tensors);
        names_free(&readings[i].prefixes);
    }
    free(readings);
    return status;
}

/* ---- labels ---- */

/* N x C, or with ones behind: C; else 0. */
static int64_t classes_of(const struct network_tensor *t)
{
    const int64_t *dims = t->dims;
    if (t->rank < 2)
        return t->rank ? dims[0] : 0;
    return network_elements(dims + 1, t->rank - 1) == dims[1] ? dims[1] : 0;
}

/* Empty lines at the end of a file are no names. */
static int64_t count_labels(const strata_network *net)
{
    size_t n = net->n_labels;
    while (n > 0 && !*net->labels[n - 1])
        n--;
    return (int64_t)n;
}

void network_doubt_labels(const strata_network *net)
{
    const int64_t labels = count_labels(net);
    const struct network_tensor *first = NULL;
    for (size_t i = 0; i < net->n_outputs; i++) {
        const struct network_tensor *t = &net->tensors[net->outputs[i].tensor];
        for (int d = 0; d < t->rank; d++)
            if (t->dims[d] == labels)
                return;
        if (classes_of(t) > 1 && !first)
            first = t;
    }
    if (first && labels)
        log_line(STRATA_LOG_WARNING,
                 "%s: %" PRId64 " labels for the %" PRId64 " classes of '%s'", net->path,
                 labels, classes_of(first), first->name);
}
