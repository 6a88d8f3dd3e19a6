/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of chains of layers that may be one layer: which are, how far, and that their
 * values are those without.
 */
#ifndef TESTS_PLANNER_FUSION_CHAINS_H
#define TESTS_PLANNER_FUSION_CHAINS_H

#include "tests/planner/fusion/fusing.h"

#define CHAIN_HEAD(out)                                                                  \
    "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 3\n"                \
    "[input image]\nshape = 2 x 12 x 9 x 7\n"                                            \
    "[layer x]\ntype = Activation\nkind = tanh\n"
#define CONVOLUTION(name, n, size, more)                                                 \
    "[layer " name "]\ntype = Convolution\nfilters = " #n "\nkernel = " #size            \
    "\nweight = w\nbias = w\n" more
#define ACT(name, f) "[layer " name "]\ntype = Activation\nkind = " f "\n"

/* layer: where the group begins; members: of it, and of the longer one. */
struct chain_case {
    const char *name, *ini, *layer;
    int members, longer;
};

static inline size_t chain_node(const struct planning *s, const char *layer)
{
    size_t l = 0;
    while (strcmp(s->network->layers[l].name, layer) != 0)
        l++;
    return l;
}

static inline int chain_members(const struct planner_group *g, const char *type)
{
    return g && strcmp(g->node.layer->type->full_name, type) == 0 ? g->members : 0;
}

static inline void expect_chain(const struct chain_case *c, const char *type)
{
    struct planning s;
    cr_assert_eq(plan(&s, c->ini, NULL, 0), STRATA_OK, "%s: %s", c->name, s.err.message);
    const struct planner_node *n = &s.planner->nodes[chain_node(&s, c->layer)];
    const int members = chain_members(n->group, type);
    const int longer = chain_members(n->longer, type);
    cr_expect_eq(members, c->members, "%s: %d", c->name, members);
    cr_expect_eq(longer, c->longer, "%s: %d", c->name, longer);
    planning_close(&s);
}

static inline void expect_chain_values(const struct chain_case *c)
{
    if (c->members == 0)
        return;
    expect_same_values(c->name, c->ini, FP32, FP16, 1e-2);
    expect_same_values(c->name, c->ini, FP32, FP32, 1e-5);
}

#endif /* TESTS_PLANNER_FUSION_CHAINS_H */
