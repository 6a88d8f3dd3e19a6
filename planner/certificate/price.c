/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem as the options leave it: what conversions and choices cost, which labels
 * a tree may pass, and which a tensor's readers want.
 */
#include "planner/certificate/check.h"

int64_t check_conversion(const struct checker *k, int tensor, int from, int to)
{
    int64_t cost = k->p->tensors[tensor].conversion[from * k->p->n_labels + to];
    for (size_t i = 0; k->o && i < k->o->n_bans; i++) {
        const struct plan_ban *b = &k->o->bans[i];
        bool here = b->kind != PLAN_BAN_CHOICE && (b->tensor < 0 || b->tensor == tensor);
        bool label = b->kind == PLAN_BAN_LABEL && (b->to == from || b->to == to);
        bool step = b->kind == PLAN_BAN_CONVERSION && (b->from < 0 || b->from == from) &&
                    (b->to < 0 || b->to == to) &&
                    (cost > 0 || (b->from >= 0 && b->to >= 0));
        if (here && (label || step))
            return PLAN_INFINITE;
    }
    return cost >= PLAN_INFINITE ? cost : cost > 0 ? cost + k->penalty : 0;
}

static bool has_label(const struct plan_op *o, const struct plan_choice *c,
                      const struct plan_ban *b)
{
    for (int i = 0; i < o->n_in; i++)
        if ((b->tensor < 0 || o->in[i] == b->tensor) && plan_in_label(c, i) == b->to)
            return true;
    for (int i = 0; i < o->n_out; i++)
        if ((b->tensor < 0 || o->out[i] == b->tensor) && plan_out_label(c, i) == b->to)
            return true;
    return false;
}

int64_t check_choice(const struct checker *k, int op, size_t choice)
{
    const struct plan_op *o = &k->p->ops[op];
    const struct plan_choice *c = &o->choices[choice];
    for (size_t i = 0; k->o && i < k->o->n_bans; i++) {
        const struct plan_ban *b = &k->o->bans[i];
        if (b->kind == PLAN_BAN_CHOICE && b->op == op && b->to == (int)choice)
            return PLAN_INFINITE;
        if (b->kind == PLAN_BAN_LABEL && has_label(o, c, b))
            return PLAN_INFINITE;
    }
    return c->cost < DEAD ? c->cost : PLAN_INFINITE;
}

bool check_keeps(const struct plan_problem *p, int root, int u, int v)
{
    const struct plan_label *from = &p->labels[root], *by = &p->labels[u],
                            *to = &p->labels[v];
    bool bits = by->precision >= from->precision || by->precision >= to->precision;
    bool range = by->range >= from->range || by->range >= to->range;
    return bits && range;
}

uint64_t check_wants(const struct plan_tensor *t, int op, const struct plan_choice *c)
{
    uint64_t wanted = 0;
    for (size_t r = 0; r < t->n_readers; r++)
        if (t->readers[r].op == op)
            wanted |= UINT64_C(1) << plan_in_label(c, t->readers[r].port);
    return wanted;
}
