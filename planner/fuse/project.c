/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by a constant with what stands around them in transformers, as one Projection:
 * the RMS normalisation of the rows before; behind them the gate of the result's halves,
 * or the rotation of its heads. Each is a group, whose prices decide whether it runs:
 *
 *   Normalization, MatrixMultiply          at the Normalization
 *   Normalization, MatrixMultiply, Gated   there, the longer one
 *   MatrixMultiply, Gated                  at the MatrixMultiply
 *
 * and with a RotaryEmbedding in place of the Gated.
 */
#include "planner/fuse/members.h"
#include "planner/fuse/notes.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

enum { NORM_SCALE, NORM_BIAS, NORM_MEAN, NORM_VARIANCE }; /* weights of Normalization */
enum { PRODUCT_B, PRODUCT_BIAS };                         /* of MatrixMultiply */

static const char together[] = "both in one Projection";

static bool is_last(const strata_network *net, int tensor, int64_t axis)
{
    const int rank = net->tensors[tensor].rank;
    return axis == -1 || axis == rank - 1;
}

/* ---- what can be part of one --------------------------------------------------------
 */

/* A node that computes nothing else, and of which the user says nothing. */
static bool is_free(const struct planner *planner, int node)
{
    const struct planner_node *n = &planner->nodes[node];
    const struct network_tensor *tensors = planner->network->tensors;
    return n->n_out == 1 && n->n_ports == n->n_in && n->n_tail == 0 && n->before < 0 &&
           n->previous < 0 && n->next < 0 && !n->group && !n->layer->impl &&
           dtype_is_free(tensors[n->in[0]].dtype) &&
           dtype_is_free(tensors[n->out[0]].dtype);
}

static bool is_product(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_matrix_multiply *p = l->params;
    return is_type(l, "core::MatrixMultiply@1") && is_free(planner, node) &&
           l->n_inputs == 1 && network_has_weight(l, PRODUCT_B) &&
           network_has_plain_weight(planner->network, l) &&
           l->weights[PRODUCT_B].dtype == STRATA_FP32 && !p->transpose_a &&
           p->alpha == 1 && p->weight_bits == 0 && p->weight_group == 0;
}

/* Of rows by their root mean square. */
static bool is_normalization(const struct planner *planner, int node)
{
    const strata_network *net = planner->network;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_normalization *p = l->params;
    return is_type(l, "core::Normalization@1") && is_free(planner, node) &&
           l->n_inputs == 1 && p->kind == STRATA_NORMALIZATION_RMS &&
           is_last(net, l->inputs[0], p->axis) && !network_has_weight(l, NORM_BIAS) &&
           !network_has_weight(l, NORM_MEAN) && !network_has_weight(l, NORM_VARIANCE) &&
           (!network_has_weight(l, NORM_SCALE) || l->weights[NORM_SCALE].rank == 1);
}

static bool is_gate(const struct planner *planner, int node)
{
    const struct network_layer *l = planner->nodes[node].layer;
    return is_type(l, "core::Gated@1") && is_free(planner, node) &&
           is_last(planner->network, l->inputs[0],
                   ((const strata_gated *)l->params)->axis);
}

/* Of whole heads side by side, by computed angles and positions that are there before a
 * node. */
static bool is_turn(const struct planner *planner, int node, int first)
{
    const struct network_tensor *tensors = planner->network->tensors;
    const struct network_layer *l = planner->nodes[node].layer;
    const strata_rotary_embedding *p = l->params;
    bool weights = false;
    for (size_t w = 0; w < l->type->n_weights; w++)
        weights |= network_has_weight(l, w);
    return is_type(l, "core::RotaryEmbedding@1") && is_free(planner, node) && !weights &&
           p->heads > 0 && l->n_inputs <= 2 && !l->ports &&
           (p->dims == 0 || p->dims == tensors[l->inputs[0]].dims[2] / p->heads) &&
           (l->n_inputs < 2 || tensors[l->inputs[1]].producer < first);
}

/* Whether nobody but the one node needs what another makes. */
static bool is_between(const struct planner *planner, int node)
{
    const int tensor = planner->nodes[node].out[0];
    return !planner->is_output[tensor] && planner->readers[tensor] == 1 &&
           !planner->network->tensors[tensor].formats;
}

/* ---- groups -------------------------------------------------------------------------
 */

/* before, behind: NULL where that is no part of it. */
static struct made_layer make(const struct planner *planner,
                              const struct network_layer *before,
                              const struct network_layer *product,
                              const struct network_layer *behind)
{
    const struct network_layer *first = before ? before : product;
    const struct network_layer *last = behind ? behind : product;
    struct made_layer m = {.layer = {.name = first->name,
                                     .type = planner->network->projection,
                                     .place = first->place,
                                     .n_inputs = 1,
                                     .n_outputs = 1},
                           .kind = MADE_PROJECTION,
                           .inputs = {first->inputs[0]},
                           .output = last->outputs[0]};
    strata_projection *p = &m.params.projection;
    p->product = *(const strata_matrix_multiply *)product->params;
    p->normalized = before != NULL;
    m.weights[STRATA_PROJECTION_B] = product->weights[PRODUCT_B];
    m.weights[STRATA_PROJECTION_BIAS] = product->weights[PRODUCT_BIAS];
    if (before) {
        p->epsilon = ((const strata_normalization *)before->params)->epsilon;
        m.weights[STRATA_PROJECTION_SCALE] = before->weights[NORM_SCALE];
    }
    if (behind && is_type(behind, "core::Gated@1")) {
        const strata_gated *gate = behind->params;
        p->gated = 1;
        p->kind = gate->kind;
        p->alpha = gate->alpha;
        p->beta = gate->beta;
    } else if (behind) {
        const strata_rotary_embedding *turn = behind->params;
        p->heads = turn->heads;
        p->turned = turn->turned;
        p->base = turn->base;
        p->interleaved = turn->interleaved;
        m.layer.n_inputs = behind->n_inputs;
        m.inputs[1] = behind->n_inputs > 1 ? behind->inputs[1] : 0;
    }
    return m;
}

static void link_nodes(struct planner *planner, int before, int node)
{
    planner->nodes[before].next = node;
    planner->nodes[node].previous = before;
}

static int note(struct planner *planner, int node, int into, strata_error *err)
{
    return notes_say(&planner->fusions[node], true, into, err, "%.200s: %s",
                     planner->nodes[into].layer->name, together);
}

/* before, behind: nodes, or -1. */
static int add_groups(struct planner *planner, int before, int product, int behind,
                      strata_error *err)
{
    const struct network_layer *b = before < 0 ? NULL : planner->nodes[before].layer;
    const struct network_layer *p = planner->nodes[product].layer;
    const struct network_layer *g = behind < 0 ? NULL : planner->nodes[behind].layer;
    int status = STRATA_OK;
    if (g) {
        const struct made_layer gated = make(planner, NULL, p, g);
        link_nodes(planner, product, behind);
        status = planner_add_group(planner, product, &gated, 2, together, err);
        if (status == STRATA_OK)
            status = note(planner, behind, product, err);
    }
    if (b && status == STRATA_OK) {
        const struct made_layer normalized = make(planner, b, p, NULL);
        link_nodes(planner, before, product);
        status = planner_add_group(planner, before, &normalized, 2, together, err);
        if (status == STRATA_OK)
            status = note(planner, product, before, err);
    }
    if (b && g && status == STRATA_OK) {
        const struct made_layer all = make(planner, b, p, g);
        status = planner_add_longer(planner, before, &all, 3, together, err);
    }
    return status;
}

int planner_make_projections(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    int status = STRATA_OK;
    if (!planner_has_impl(planner, net->projection))
        return STRATA_OK;
    int *reader = planner_find_readers(planner, "the projections", err);
    if (!reader)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++) {
        const int node = (int)i;
        if (!is_product(planner, node))
            continue;
        int before = net->tensors[planner->nodes[i].in[0]].producer, behind = -1;
        if (before >= 0 &&
            (!is_normalization(planner, before) || !is_between(planner, before)))
            before = -1;
        if (is_between(planner, node)) {
            behind = reader[planner->nodes[i].out[0]];
            const int first = before < 0 ? node : before;
            if (!is_gate(planner, behind) && !is_turn(planner, behind, first))
                behind = -1;
        }
        status = add_groups(planner, before, node, behind, err);
    }
    free(reader);
    return status;
}
