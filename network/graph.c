/* SPDX-License-Identifier: Apache-2.0
 *
 * What inputs and outputs name, and an order in which producers come first: depth-first
 * from each layer in the file's order, which keeps that order where it is one already.
 */
#include "network/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define HINTS_MAX 2048 /* names a hint is chosen from */

const char *network_node_name(const struct loader *l, int node)
{
    int n_inputs = (int)l->net->n_inputs;
    return node < n_inputs ? l->net->inputs[node].name
                           : l->drafts[node - n_inputs].section->name;
}

static int node_outputs(const struct loader *l, int node)
{
    int n_inputs = (int)l->net->n_inputs;
    return node < n_inputs ? 1 : l->drafts[node - n_inputs].layer.n_outputs;
}

static bool node_broken(const struct loader *l, int node)
{
    int n_inputs = (int)l->net->n_inputs;
    return node >= n_inputs && l->drafts[node - n_inputs].broken;
}

static void unknown_name(struct loader *l, struct config_place place, const char *name)
{
    const char *names[HINTS_MAX], *near = NULL;
    size_t total = l->net->n_inputs + l->n_drafts, n = 0;
    if (!config_full(l->c))
        for (; n < total && n < HINTS_MAX; n++)
            names[n] = network_node_name(l, (int)n);
    near = suggest(name, names, n);
    config_error(l->c, place, "no layer or input is named '%s'%s%s%s", name,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* The number after ':', -1 if it is none. */
static int port_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits && digits <= 4 && !text[digits] ? atoi(text) : -1;
}

bool network_reference(struct loader *l, const struct config_pair *p,
                       const struct config_item *item, struct reference *out)
{
    char name[CONFIG_MAX_LINE + 1];
    const char *colon = strchr(item->text, ':');
    size_t n = colon ? (size_t)(colon - item->text) : strlen(item->text);
    memcpy(name, item->text, n);
    name[n] = '\0';
    out->node = names_get(&l->node_index, name);
    out->port = colon ? port_number(colon + 1) : 0;
    bool broken = out->node >= 0 && node_broken(l, out->node);
    if (out->node >= 0 &&
        (broken || (out->port >= 0 && out->port < node_outputs(l, out->node))))
        return true;
    struct config_place place =
        config_value_place(l->c, p, item->offset, strlen(item->text));
    if (out->node < 0)
        unknown_name(l, place, name);
    else if (out->port < 0)
        config_error(l->c, place, "'%s' is not an output's number", colon + 1);
    else
        config_error(l->c, place, "%s has %d output%s, numbered from 0", name,
                     node_outputs(l, out->node),
                     node_outputs(l, out->node) == 1 ? "" : "s");
    return false;
}

/* What a layer without `inputs =` reads: the layer before it, else the only input. */
static int default_input(struct loader *l, size_t i)
{
    struct draft *d = &l->drafts[i];
    int n_inputs = (int)l->net->n_inputs;
    int n_bound = n_inputs - (int)l->net->n_states;
    int node = i ? n_inputs + (int)i - 1 : 0;
    if (d->broken || d->layer.type->layer.max_in == 0)
        return STRATA_OK;
    if (!i && n_bound != 1) {
        config_error(l->c, d->section->place,
                     "the first layer needs 'inputs =': the network has %d inputs",
                     n_bound);
        return STRATA_OK;
    }
    if (node_outputs(l, node) != 1) {
        config_error(l->c, d->section->place,
                     "[layer %s] needs 'inputs =': the layer before it, %s, has %d "
                     "outputs",
                     d->section->name, network_node_name(l, node), node_outputs(l, node));
        return STRATA_OK;
    }
    d->references = zalloc(1, sizeof *d->references, "inputs", l->err);
    if (!d->references)
        return STRATA_ENOMEM;
    d->references[0].node = node;
    d->n_references = 1;
    log_line(STRATA_LOG_DEBUG, "layer %s reads %s, as it has no inputs key",
             d->section->name, network_node_name(l, node));
    return STRATA_OK;
}

static void check_count(struct loader *l, const struct draft *d)
{
    const strata_layer *type = &d->layer.type->layer;
    int n = (int)d->n_references;
    bool many = type->max_in >= 0 && n > type->max_in;
    struct config_place place =
        d->inputs_pair ? d->inputs_pair->value_place : d->section->place;
    if (n >= type->min_in && !many)
        return;
    config_error(l->c, place, "[layer %s] has %d input%s%s; %s takes %s %d",
                 d->section->name, n, n == 1 ? "" : "s",
                 d->inputs_pair ? "" : " (the layer before it, without 'inputs =')",
                 d->layer.type->full_name,
                 type->max_in == type->min_in ? "exactly"
                 : many                       ? "at most"
                                              : "at least",
                 many ? type->max_in : type->min_in);
}

/* A layer's input: a tensor, or `none` where the layer can do without. */
static bool read_input(struct loader *l, const struct draft *d, size_t k,
                       struct reference *out)
{
    const struct config_item *item = &d->inputs[k];
    const struct registry_layer *type = d->layer.type;
    if (strcmp(item->text, "none") != 0)
        return network_reference(l, d->inputs_pair, item, out);
    *out = (struct reference){.node = NODE_NONE};
    if (d->broken || (k < 64 && type->layer.optional_in >> k & 1))
        return true;
    config_error(l->c, config_value_place(l->c, d->inputs_pair, item->offset, 4),
                 "input %zu of layer %s cannot be absent: %s needs it", k,
                 d->section->name, type->full_name);
    return false;
}

static int resolve_draft(struct loader *l, size_t i)
{
    struct draft *d = &l->drafts[i];
    size_t before = config_errors(l->c);
    int status = STRATA_OK;
    if (d->n_inputs > NETWORK_MAX_INPUTS) {
        config_error(l->c, d->inputs_pair->value_place,
                     "%zu inputs; at most %d are allowed", d->n_inputs,
                     NETWORK_MAX_INPUTS);
        return STRATA_OK;
    }
    if (!d->inputs_pair) {
        status = default_input(l, i);
    } else {
        d->references = zalloc(d->n_inputs, sizeof *d->references, "inputs", l->err);
        if (!d->references)
            return STRATA_ENOMEM;
        for (size_t k = 0; k < d->n_inputs; k++)
            if (read_input(l, d, k, &d->references[d->n_references]))
                d->n_references++;
    }
    if (status == STRATA_OK && !d->broken && config_errors(l->c) == before)
        check_count(l, d);
    return status;
}

/* Check `outputs =` too, so that its errors come with the others. */
static int check_outputs(struct loader *l)
{
    struct config_pair *p = config_get(config_find(l->c, "network"), "outputs");
    struct config_item *items;
    struct reference r;
    size_t n;
    if (!p || !config_list(l->c, p, &items, &n))
        return STRATA_OK;
    for (size_t i = 0; i < n; i++)
        if (network_reference(l, p, &items[i], &r) && r.node < (int)l->net->n_inputs)
            config_error(
                l->c, config_value_place(l->c, p, items[i].offset, strlen(items[i].text)),
                "'%s' is an input; put an Identity layer between", items[i].text);
    if (n > NETWORK_MAX_OUTPUTS)
        config_error(l->c, p->value_place, "%zu outputs; at most %d are allowed", n,
                     NETWORK_MAX_OUTPUTS);
    config_list_free(items, n);
    return STRATA_OK;
}

int network_resolve(struct loader *l)
{
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < l->n_drafts; i++)
        status = resolve_draft(l, i);
    return status == STRATA_OK ? check_outputs(l) : status;
}

/* ---- order ---- */

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

/* A draft being visited, and which of its inputs comes next. */
struct visit {
    int draft;
    size_t next;
};

/* "a -> b -> a", in the direction of the data; `draft` is the visit that closes it. */
static void report_cycle(struct loader *l, const struct visit *stack, size_t depth,
                         int draft)
{
    char chain[512];
    size_t first = 0, used = 0, i = depth;
    const struct draft *d = &l->drafts[draft];
    while (stack[first].draft != draft)
        first++;
    for (; i > first && used < sizeof chain - 160; i--)
        used += (size_t)snprintf(chain + used, sizeof chain - used, " -> %.140s",
                                 l->drafts[stack[i - 1].draft].section->name);
    config_error(l->c, d->inputs_pair ? d->inputs_pair->value_place : d->section->place,
                 "the layers feed each other in a cycle: %s%s%s", d->section->name, chain,
                 i > first ? " -> ..." : "");
}

/* Visit what draft i needs, then draft i itself; false at a cycle. */
static bool visit(struct loader *l, int i, char *marks, struct visit *stack, size_t *n)
{
    int n_inputs = (int)l->net->n_inputs;
    size_t depth = 0;
    stack[depth++] = (struct visit){i, 0};
    marks[i] = MARK_OPEN;
    while (depth) {
        struct visit *top = &stack[depth - 1];
        const struct draft *d = &l->drafts[top->draft];
        if (top->next == d->n_references) {
            marks[top->draft] = MARK_DONE;
            l->order[(*n)++] = top->draft;
            depth--;
            continue;
        }
        int next = d->references[top->next++].node - n_inputs;
        if (next < 0 || marks[next] == MARK_DONE)
            continue;
        if (marks[next] == MARK_OPEN) {
            report_cycle(l, stack, depth, next);
            return false;
        }
        marks[next] = MARK_OPEN;
        stack[depth++] = (struct visit){next, 0};
    }
    return true;
}

int network_sort(struct loader *l)
{
    int status = STRATA_ENOMEM;
    size_t n = 0;
    struct visit *stack = NULL;
    char *marks = zalloc(l->n_drafts, 1, "the order of layers", l->err);
    l->order = zalloc(l->n_drafts, sizeof *l->order, "the order of layers", l->err);
    if (!marks || !l->order)
        goto done;
    stack = zalloc(l->n_drafts, sizeof *stack, "the order of layers", l->err);
    if (!stack)
        goto done;
    status = STRATA_OK;
    for (size_t i = 0; i < l->n_drafts; i++)
        if (marks[i] == MARK_NEW && !visit(l, (int)i, marks, stack, &n))
            break;
done:
    free(marks);
    free(stack);
    return status;
}
