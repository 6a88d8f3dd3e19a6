/* SPDX-License-Identifier: Apache-2.0
 *
 * What a decoded message must be, and what model.h promises of it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/onnx/private.h"

#include <inttypes.h>
#include <string.h>

#include "io/printable.h"

#define MAX_ATTRIBUTES 256 /* of a node */
#define MAX_OPSETS 64      /* of the model, of a function */

#define FAIL(r, ...) error_set((r)->err, STRATA_EPARSE, __VA_ARGS__)

/* The two spellings of one domain. */
static const char *domain_of(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static const void *list_at(const void *list, size_t size, size_t i)
{
    return (const char *)list + i * size;
}

/* The elements of a list that were seen, by name: index + 1, or 0. Twice as many slots as
 * there may be elements. */
struct seen {
    uint16_t slots[2 * MAX_ATTRIBUTES];
};
_Static_assert(MAX_OPSETS <= MAX_ATTRIBUTES, "there are slots for both");

/* Note element i of a list whose elements begin with their name: the index of an earlier
 * one of that name, or i. */
static size_t note(struct seen *s, const void *list, size_t size, size_t i)
{
    const char *name = *(const char *const *)list_at(list, size, i);
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (size_t k = hash % ARRAY_LENGTH(s->slots);;
         k = (k + 1) % ARRAY_LENGTH(s->slots)) {
        const size_t other = s->slots[k];
        if (!other) {
            s->slots[k] = (uint16_t)(i + 1);
            return i;
        }
        if (strcmp(*(const char *const *)list_at(list, size, other - 1), name) == 0)
            return other - 1;
    }
}

int onnx_finish_opset(struct onnx_reader *r, void *raw, void *out)
{
    struct onnx_opset *o = out;
    (void)r;
    *o = ((struct raw_opset *)raw)->o;
    o->domain = domain_of(o->domain);
    return STRATA_OK;
}

int onnx_finish_entry(struct onnx_reader *r, void *raw, void *out)
{
    (void)r;
    *(struct onnx_entry *)out = ((struct raw_entry *)raw)->o;
    return STRATA_OK;
}

/* Exporters write a dim that they do not know as -1, too. */
int onnx_finish_dim(struct onnx_reader *r, void *raw, void *out)
{
    const struct raw_dim *d = raw;
    const bool said = d->which == DIM_VALUE && d->value >= 0;
    if (said && d->value > INT32_MAX)
        return FAIL(r, "dim %" PRId64 " is over %d", d->value, INT32_MAX);
    *(struct onnx_dim *)out =
        (struct onnx_dim){said ? d->value : -1, d->which == DIM_SYMBOL ? d->symbol : ""};
    return STRATA_OK;
}

/* ---- values -------------------------------------------------------------------------
 */

/* By field number of TypeProto. */
static const enum onnx_form forms[] = {
    [0] = ONNX_UNTYPED,  [1] = ONNX_TENSOR,   [2] = ONNX_UNTYPED, [3] = ONNX_UNTYPED,
    [4] = ONNX_SEQUENCE, [5] = ONNX_MAP,      [6] = ONNX_UNTYPED, [7] = ONNX_UNTYPED,
    [8] = ONNX_SPARSE,   [9] = ONNX_OPTIONAL,
};

int onnx_finish_value(struct onnx_reader *r, void *raw, void *out)
{
    const struct raw_value *v = raw;
    const struct raw_tensor_type *t = &v->type.tensor;
    const bool shaped = t->seen >> TENSOR_TYPE_SHAPE & 1;
    char shown[PRINTABLE_SIZE];
    struct onnx_value value = {.name = v->name, .form = forms[v->type.which], .rank = -1};
    printable(shown, v->name, strlen(v->name));
    if (t->element < 0 || t->element >= ONNX_TYPE_COUNT)
        return FAIL(r, "value '%s' has element type %" PRId64 ", of 0 to %d", shown,
                    t->element, ONNX_TYPE_COUNT - 1);
    value.type = (enum onnx_type)t->element;
    if (t->shape.n_dims > ARRAY_LENGTH(value.dims))
        return FAIL(r, "value '%s' has %zu dims, at most %zu are allowed", shown,
                    t->shape.n_dims, ARRAY_LENGTH(value.dims));
    if (shaped)
        value.rank = (int)t->shape.n_dims;
    for (size_t i = 0; i < t->shape.n_dims; i++)
        value.dims[i] = t->shape.dims[i];
    *(struct onnx_value *)out = value;
    return STRATA_OK;
}

/* ---- attributes ---------------------------------------------------------------------
 */

static const struct {
    enum attribute_row row;
    enum onnx_kind kind;
} attribute_values[] = {
    {ATTRIBUTE_REAL, ONNX_A_REAL},
    {ATTRIBUTE_INTEGER, ONNX_A_INTEGER},
    {ATTRIBUTE_TEXT, ONNX_A_TEXT},
    {ATTRIBUTE_TENSOR, ONNX_A_TENSOR},
    {ATTRIBUTE_GRAPH, ONNX_A_GRAPH},
    {ATTRIBUTE_REALS, ONNX_A_REALS},
    {ATTRIBUTE_INTEGERS, ONNX_A_INTEGERS},
    {ATTRIBUTE_TEXTS, ONNX_A_TEXTS},
    {ATTRIBUTE_TENSORS, ONNX_A_TENSORS},
    {ATTRIBUTE_GRAPHS, ONNX_A_GRAPHS},
    {ATTRIBUTE_SPARSE, ONNX_A_SPARSE_TENSOR},
    {ATTRIBUTE_SPARSES, ONNX_A_SPARSE_TENSORS},
    {ATTRIBUTE_TYPE, ONNX_A_TYPE},
    {ATTRIBUTE_TYPES, ONNX_A_TYPES},
};

static const char *const kind_names[] = {
    "nothing",        "FLOAT",      "INT",         "STRING",  "TENSOR", "GRAPH",
    "FLOATS",         "INTS",       "STRINGS",     "TENSORS", "GRAPHS", "SPARSE_TENSOR",
    "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS",
};

/* What the attribute says that it is, and what it holds, are the same. A value that is
 * its type's default may be left out; a tensor or a graph has none. */
static int attribute_kind(struct onnx_reader *r, const struct raw_attribute *a,
                          enum onnx_kind *out)
{
    char shown[PRINTABLE_SIZE];
    enum onnx_kind found = ONNX_A_NONE;
    printable(shown, a->name, strlen(a->name));
    for (size_t i = 0; i < ARRAY_LENGTH(attribute_values); i++) {
        if (!(a->seen >> attribute_values[i].row & 1))
            continue;
        if (found)
            return FAIL(r, "attribute '%s' holds both %s and %s", shown,
                        kind_names[found], kind_names[attribute_values[i].kind]);
        found = attribute_values[i].kind;
    }
    if (a->kind < 0 || a->kind >= (int64_t)ARRAY_LENGTH(kind_names))
        return FAIL(r, "attribute '%s' has type %" PRId64 ", of 0 to %zu", shown, a->kind,
                    ARRAY_LENGTH(kind_names) - 1);
    *out = a->kind ? (enum onnx_kind)a->kind : found;
    if (found && a->reference[0])
        return FAIL(r, "attribute '%s' has a value and refers to another", shown);
    if (found && *out != found)
        return FAIL(r, "attribute '%s' says %s and holds %s", shown, kind_names[*out],
                    kind_names[found]);
    if (!found && !a->reference[0] && (*out == ONNX_A_TENSOR || *out == ONNX_A_GRAPH))
        return FAIL(r, "attribute '%s' says %s and holds none", shown, kind_names[*out]);
    return STRATA_OK;
}

static int finish_text(struct onnx_reader *r, const struct raw_attribute *a,
                       struct onnx_attribute *out)
{
    out->text_bytes = a->text.size;
    if (a->text.size)
        out->text = onnx_copy_text(r->memory, a->text.at, a->text.size, r->err);
    return out->text ? STRATA_OK : STRATA_ENOMEM;
}

static int finish_singular(struct onnx_reader *r, struct raw_attribute *a,
                           struct onnx_attribute *out)
{
    struct onnx_tensor *t;
    struct onnx_graph *g;
    out->n = 1;
    if (out->kind == ONNX_A_TENSOR) {
        out->tensors = t = onnx_allocate(r->memory, 1, sizeof *t, r->err);
        return t ? onnx_finish_tensor(r, &a->tensor, t) : STRATA_ENOMEM;
    }
    out->graphs = g = onnx_allocate(r->memory, 1, sizeof *g, r->err);
    return g ? onnx_finish_graph(r, &a->graph, g) : STRATA_ENOMEM;
}

int onnx_finish_attribute(struct onnx_reader *r, void *raw, void *out)
{
    struct raw_attribute *a = raw;
    struct onnx_attribute *o = out;
    enum onnx_kind kind = ONNX_A_NONE;
    int status = attribute_kind(r, a, &kind);
    if (status != STRATA_OK)
        return status;
    *o = (struct onnx_attribute){
        .name = a->name,
        .kind = kind,
        .reference = a->reference,
        .real = a->real,
        .integer = a->integer,
        .text = "",
        .tensors = a->tensors,
        .graphs = a->graphs,
        .reals = a->reals,
        .integers = a->integers,
        .texts = a->texts,
        /* of one kind */
        .n = a->n_reals + a->n_integers + a->n_texts + a->n_tensors + a->n_graphs +
             a->n_sparses + a->n_types,
    };
    if (kind == ONNX_A_TEXT)
        return finish_text(r, a, o);
    if ((kind == ONNX_A_TENSOR || kind == ONNX_A_GRAPH) && !a->reference[0])
        return finish_singular(r, a, o);
    return STRATA_OK;
}

/* A domain comes once, or with one version. */
static int check_opsets(struct onnx_reader *r, const struct onnx_opset *o, size_t n)
{
    char shown[PRINTABLE_SIZE];
    struct seen seen = {0};
    if (n > MAX_OPSETS)
        return FAIL(r, "%zu opsets, at most %d are allowed", n, MAX_OPSETS);
    for (size_t i = 0; i < n; i++) {
        const size_t k = note(&seen, o, sizeof *o, i);
        if (o[i].version != o[k].version)
            return FAIL(
                r, "opsets %" PRId64 " and %" PRId64 " of domain '%s'; one is needed",
                o[k].version, o[i].version,
                printable(shown, o[i].domain, strlen(o[i].domain)));
    }
    return STRATA_OK;
}

/* ---- nodes, graphs, functions, models -----------------------------------------------
 */

static int check_attributes(struct onnx_reader *r, const struct onnx_attribute *a,
                            size_t n)
{
    char shown[PRINTABLE_SIZE];
    struct seen seen = {0};
    if (n > MAX_ATTRIBUTES)
        return FAIL(r, "%zu attributes, at most %d are allowed", n, MAX_ATTRIBUTES);
    for (size_t i = 0; i < n; i++)
        if (note(&seen, a, sizeof *a, i) != i)
            return FAIL(r, "attribute '%s' comes twice",
                        printable(shown, a[i].name, strlen(a[i].name)));
    return STRATA_OK;
}

int onnx_finish_node(struct onnx_reader *r, void *raw, void *out)
{
    struct onnx_node *o = out;
    char shown[PRINTABLE_SIZE];
    *o = ((struct raw_node *)raw)->o;
    o->domain = domain_of(o->domain);
    printable(shown, o->name, strlen(o->name));
    if (++r->nodes > r->limits->nodes)
        return FAIL(r, "more than the %" PRIu32 " nodes that are allowed",
                    r->limits->nodes);
    if (!o->op[0])
        return FAIL(r, "node '%s' has no op_type", shown);
    if (o->n_inputs > r->limits->ports || o->n_outputs > r->limits->ports)
        return FAIL(r,
                    "node '%s' has %zu inputs and %zu outputs, at most %" PRIu32
                    " of each are allowed",
                    shown, o->n_inputs, o->n_outputs, r->limits->ports);
    return check_attributes(r, o->attributes, o->n_attributes);
}

int onnx_finish_graph(struct onnx_reader *r, void *raw, void *out)
{
    (void)r;
    *(struct onnx_graph *)out = ((struct raw_graph *)raw)->o;
    return STRATA_OK;
}

int onnx_finish_function(struct onnx_reader *r, void *raw, void *out)
{
    struct onnx_function *o = out;
    *o = ((struct raw_function *)raw)->o;
    o->domain = domain_of(o->domain);
    int status = check_attributes(r, o->defaults, o->n_defaults);
    return status == STRATA_OK ? check_opsets(r, o->opsets, o->n_opsets) : status;
}

int onnx_finish_model(struct onnx_reader *r, void *raw, void *out)
{
    struct raw_model *m = raw;
    if (!(m->seen >> MODEL_GRAPH & 1))
        return FAIL(r, "the model has no graph");
    *(struct onnx_model *)out = m->o;
    int status = check_opsets(r, m->o.opsets, m->o.n_opsets);
    if (status != STRATA_OK)
        return status;
    return onnx_finish_graph(r, &m->graph, &((struct onnx_model *)out)->graph);
}
