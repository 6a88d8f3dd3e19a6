/* SPDX-License-Identifier: Apache-2.0
 *
 * See attempt.h.
 */
#include "network/import/pattern/attempt.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

#define FROM_BYTES 256 /* of the names of what a node stands for */

struct attempt attempt_begin(const struct import *im)
{
    return (struct attempt){im->g.n_nodes, im->n_refusals, im->n_wanted,
                            im->all_refusals};
}

int attempt_infer(struct import *im, const struct attempt *a, bool *refused,
                  strata_error *err)
{
    int status = arena_status(&im->g.arena, "a model", err);
    if (status == STRATA_OK)
        status = import_fold_from(im, a->n_nodes, err);
    *refused = im->all_refusals > a->all_refusals;
    return status;
}

void attempt_undo(struct import *im, const struct attempt *a)
{
    struct graph *g = &im->g;
    for (size_t i = a->n_nodes; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0)
                g->values[g->nodes[i]->in[k]].readers--;
    g->n_nodes = a->n_nodes;
    im->n_refusals = a->n_refusals;
    im->n_wanted = a->n_wanted;
    im->all_refusals = a->all_refusals;
}

bool attempt_fits(const struct graph *g, int value, int instead)
{
    const struct value *a = graph_value(g, value), *b = graph_value(g, instead);
    return a && b && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

void attempt_replace(struct graph *g, int value, struct node *last)
{
    const struct value made = *graph_value(g, last->out[0]);
    struct value *v = graph_value(g, value);
    v->node = last;
    v->same = made.same;
    v->exact = made.exact;
    v->constant = made.constant;
    v->data = made.data;
    last->out[0] = value;
}

const char *attempt_names(struct graph *g, const struct node *root,
                          const struct node *const *nodes, int n)
{
    const char *slash = strrchr(root->name, '/');
    const size_t shared = slash ? (size_t)(slash - root->name) + 1 : 0;
    char text[FROM_BYTES] = "";
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const bool known = nodes[i]->derived || strcmp(nodes[i]->name, root->name) == 0;
        const char *name = known ? "" : nodes[i]->name;
        if (shared && strncmp(name, root->name, shared) == 0)
            name += shared;
        const char *const parts[] = {nodes[i]->from ? nodes[i]->from : "", name};
        for (size_t k = 0; k < ARRAY_LENGTH(parts); k++)
            if (*parts[k] && at < sizeof text)
                at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                                       at ? ", " : "", parts[k]);
    }
    if (at >= sizeof text)
        memcpy(text + sizeof text - 5, " ...", 5);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = '_';
    return *text ? arena_text(&g->arena, text, strlen(text)) : NULL;
}
