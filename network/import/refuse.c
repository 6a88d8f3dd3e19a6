/* SPDX-License-Identifier: Apache-2.0
 *
 * What is not imported, and what would have to be constant.
 */
#include "network/import/private.h"

#include <stdio.h>
#include <string.h>

/* Nodes between a value and an input that is wanted for it, and how many are seen. */
#define WANT_DEPTH 8
#define WANT_NODES 4096

void import_refuse(struct import *im, const char *op, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const int seen = names_get(&im->refused, text);
    if (seen >= 0 && (size_t)seen < im->n_refusals &&
        strcmp(im->refusals[seen].text, text) == 0)
        return; /* and not taken back, as a pattern's attempt is */
    im->all_refusals++;
    struct import_refusal *all = arena_grow(
        &im->g.arena, im->refusals, &im->refusals_capacity, im->n_refusals, sizeof *all);
    const char *copy = arena_text(&im->g.arena, text, strlen(text));
    if (!all || !copy)
        return;
    if (seen < 0 && names_put(&im->refused, copy, (int)im->n_refusals, NULL) != STRATA_OK)
        im->g.arena.full = true;
    im->refusals = all;
    all[im->n_refusals++] = (struct import_refusal){.text = copy, .op = op};
}

void import_refuse_node(struct import *im, const struct node *n, const char *op,
                        const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct value *made = n->n_out > 0 ? graph_value(&im->g, n->out[0]) : NULL;
    const bool named = *n->name || !made || !*made->name;
    import_refuse(im, op, "%s '%s' (%s%s%s, opset %lld): %s",
                  named ? "node" : "the node of", named ? n->name : made->name, n->domain,
                  *n->domain ? "::" : "", n->op, (long long)n->version, text);
    node_refuse(&im->g, n);
}

static void want_name(struct import *im, const char *name)
{
    for (size_t i = 0; i < im->n_wanted; i++)
        if (strcmp(im->wanted[i], name) == 0)
            return;
    const char **all = arena_grow(&im->g.arena, im->wanted, &im->wanted_capacity,
                                  im->n_wanted, sizeof *all);
    if (!all)
        return;
    im->wanted = all;
    all[im->n_wanted++] = name;
}

static const char *want_origin(struct import *im, const struct value *v, int depth,
                               int *left)
{
    const char *name = NULL;
    if (!v || v->constant || depth == 0 || --*left < 0)
        return NULL;
    if (!v->node) {
        want_name(im, v->name);
        return v->name;
    }
    for (int i = 0; i < v->node->n_in; i++) {
        const struct value *from = graph_value(&im->g, v->node->in[i]);
        const char *found = want_origin(im, from, depth - 1, left);
        name = name ? name : found;
    }
    return name;
}

const char *import_want(struct import *im, const struct value *v)
{
    int left = WANT_NODES;
    return want_origin(im, v, WANT_DEPTH, &left);
}
