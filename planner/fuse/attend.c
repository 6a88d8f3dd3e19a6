/* SPDX-License-Identifier: Apache-2.0
 *
 * A product by a constant and the Attention that alone reads it, its queries, keys and
 * values side by side, as one SelfAttention: these are not written. Prices decide whether
 * it runs.
 */
#include "planner/fuse/members.h"

#include <stdlib.h>

#include <strata/layers.h>

enum { PRODUCT_B, PRODUCT_BIAS }; /* weights of MatrixMultiply */

static const char together[] = "both in one SelfAttention";

static bool is_product(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_matrix_multiply *p = l->params;
    return is_type(l, "core::MatrixMultiply@1") && members_may_have(planner, node) &&
           l->n_inputs == 1 && network_has_weight(l, PRODUCT_B) &&
           network_has_plain_weight(planner->network, l) &&
           l->weights[PRODUCT_B].dtype == STRATA_FP32 &&
           l->weights[PRODUCT_B].rank == 2 && !p->transpose_a && p->alpha == 1 &&
           p->weight_bits == 0 && p->weight_group == 0 &&
           tensor_of(planner, l->inputs[0])->rank == 3;
}

/* Of one tensor, and with one output. */
static bool attends(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_attention *p = l->params;
    return is_type(l, "core::Attention@1") && members_may_have(planner, node) &&
           l->n_inputs == 1 && p->heads > 0 && !p->cache && !p->present &&
           p->scores == STRATA_SCORES_NONE;
}

static struct made_layer make(const struct planner *planner,
                              const struct network_layer *product,
                              const struct network_layer *attention)
{
    struct made_layer m = {.layer = {.name = product->name,
                                     .type = planner->network->self_attention,
                                     .place = product->place,
                                     .n_inputs = 1,
                                     .n_outputs = 1},
                           .kind = MADE_SELF_ATTENTION,
                           .inputs = {product->inputs[0]},
                           .output = attention->outputs[0]};
    m.params.self_attention.product = *(const strata_matrix_multiply *)product->params;
    m.params.self_attention.attention = *(const strata_attention *)attention->params;
    m.weights[STRATA_SELF_ATTENTION_B] = product->weights[PRODUCT_B];
    m.weights[STRATA_SELF_ATTENTION_BIAS] = product->weights[PRODUCT_BIAS];
    return m;
}

static int add_group(struct planner *planner, const int *nodes, strata_error *err)
{
    const struct made_layer made =
        make(planner, planner->nodes[nodes[0]].layer, planner->nodes[nodes[1]].layer);
    members_link(planner, nodes, 2);
    const int status = planner_add_group(planner, nodes[0], &made, 2, together, err);
    return status == STRATA_OK ? members_note(planner, nodes, 2, together, err) : status;
}

int planner_make_attentions(struct planner *planner, strata_error *err)
{
    if (!planner_has_impl(planner, planner->network->self_attention))
        return STRATA_OK;
    int *reader = planner_find_readers(planner, "the attentions", err);
    int status = reader ? STRATA_OK : STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        int nodes[2] = {(int)i, -1};
        if (is_product(planner, nodes[0]))
            nodes[1] = members_next(planner, nodes[0], reader);
        if (nodes[1] >= 0 && attends(planner, nodes[1]))
            status = add_group(planner, nodes, err);
    }
    free(reader);
    return status;
}
