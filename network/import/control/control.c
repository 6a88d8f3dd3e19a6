/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators. What they put in place is folded at once, and may hold such operators:
 * mutual recursion with fold.c, as deep as the reader lets graphs be in each other.
 */
#include "network/import/control/control.h"

#include <string.h>

#include "core/alloc.h"

#define ROUNDS "; at most 1024 nodes of all rounds"

const struct control control_graphs[] = {
    {"If", "the condition, unless both branches are of one shape", control_if},
    {"Loop", "trip count and conditions" ROUNDS, control_loop},
    {"Scan", "batch 1 before opset 9" ROUNDS, control_scan},
    {"SequenceMap", "a list made in the model" ROUNDS, control_sequence_map},
    {"FlexAttention", "", control_flex_attention, "ai.onnx.preview"},
};
const size_t control_n_graphs = ARRAY_LENGTH(control_graphs);

static const struct control *find_in(const struct control *all, size_t count,
                                     const struct node *n)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].op, n->op) == 0 &&
            strcmp(all[i].domain ? all[i].domain : "", n->domain) == 0)
            return &all[i];
    return NULL;
}

/* An operator of any type reads a list. */
static int copy_list(struct import *im, struct node *n, strata_error *err)
{
    const struct value *v = upgrade_input(im, n, 0);
    (void)err;
    control_give_list(im, n, 0, v->sequence->values, v->sequence->n);
    return STRATA_OK;
}

static int refuse_list(struct import *im, struct node *n, strata_error *err)
{
    (void)err;
    import_refuse_node(im, n, NULL, "it reads a sequence; layers have tensors");
    return STRATA_OK;
}

const struct control *control_find(const struct import *im, const struct node *n)
{
    static const struct control copy = {"Identity", "", copy_list},
                                no = {"", "", refuse_list};
    const struct control *c;
    if ((c = find_in(control_graphs, control_n_graphs, n)) ||
        (c = find_in(control_sequences, control_n_sequences, n)))
        return c;
    if (*n->domain)
        return NULL;
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = graph_value(&im->g, n->in[i]);
        if (v && v->sequence)
            return strcmp(n->op, "Identity") == 0 ? &copy : &no;
    }
    return NULL;
}
