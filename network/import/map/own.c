/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers as operators of a domain of their own, "strata", which patterns make.
 */
#include "network/import/map/quantize.h"

#include "core/alloc.h"
#include "formats/format.h"

/* A constant matrix is a weight, of few bits with scales of groups; what is added to the
 * columns is always one. */
static void map_product(struct mapping *m)
{
    const struct value *b = map_input(m, 1), *bias = map_input(m, 2),
                       *scales = map_input(m, 3);
    if (!b || (bias && !bias->constant)) {
        map_refuse(m, "it needs two operands, and a bias that is constant");
        return;
    }
    map_section(m, "MatrixMultiply");
    map_in(m, 0);
    map_out(m, 0);
    if (b->constant && b->rank == 2 && (dtype_is_free(b->dtype) || scales))
        section_weight(m->s, "b", m->node->in[1]);
    else
        map_in(m, 1);
    if (bias)
        section_weight(m->s, "bias", m->node->in[2]);
    if (scales)
        section_weight(m->s, "weight_scale", m->node->in[3]);
    map_names(m, "transpose_a=transpose_a?,transpose_b=transpose_b?,alpha=alpha,"
                 "weight_bits=weight_bits,weight_group=weight_group");
}

#define OWN .domain = "strata"

static const struct map_rule rules[] = {
    {OWN, .op = "Activation", .layer = "Activation", .ports = "x",
     .names = "kind=kind,alpha=alpha,beta=beta"},
    {OWN, .op = "Attention", .layer = "Attention", .ports = "xxxxxxx",
     .names = "heads=heads,kv_heads=kv_heads,scale=scale,softcap=softcap,causal=causal?,"
              "window_left=window_left,cache=cache?,present=present?"},
    {OWN, .op = "DynamicProduct", .finish = matrix_of_dynamic},
    {OWN, .op = "Embedding", .layer = "Embedding", .ports = "wxw"},
    {OWN, .op = "RotaryEmbedding", .layer = "RotaryEmbedding", .ports = "xxxxww",
     .names = "heads=heads,dims=dims,interleaved=interleaved?,turned_heads=turned_heads"},
    {OWN, .op = "Shape", .layer = "Shape", .ports = "x", .names = "axes=axes,to=to"},
    {OWN, .op = "Scale", .layer = "Scale", .ports = "xww",
     .names = "scale=scale,shift=shift"},
    {OWN, .op = "Shuffle", .layer = "Shuffle", .ports = "x",
     .names = "first=first,shape=shape,second=second"},
    {OWN, .op = "MatrixMultiply", .finish = map_product},
    {OWN, .op = "FullyConnected", .layer = "FullyConnected", .ports = "xww",
     .names = "transposed=transposed?"},
};

const struct map_table map_own = {"Strata's own", rules, ARRAY_LENGTH(rules)};
