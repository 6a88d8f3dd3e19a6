/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning problems in the shape of well-known networks, with made-up costs in the manner
 * of a roofline: bytes and flops over a bandwidth and a rate, times a random efficiency.
 */
#ifndef BENCH_PLAN_NETS_H
#define BENCH_PLAN_NETS_H

#include "planner/solver/plan.h"

enum { NET_MAX_OPS = 1024, NET_MAX_PORTS = 80 };

struct net {
    struct plan_problem p;
    struct plan_op ops[NET_MAX_OPS];
    struct plan_tensor tensors[NET_MAX_OPS];
    int *ports; /* storage of inputs */
    size_t n_ports;
    int out[NET_MAX_OPS];
    double bytes[NET_MAX_OPS]; /* of each tensor at fp32 */
    int shape[NET_MAX_OPS];    /* tensors of one shape share conversions */
    int64_t *matrices[NET_MAX_OPS];
    struct plan_reader *readers;
};

struct net_builder {
    const char *name;
    void (*build)(struct net *n);
};

extern const struct net_builder net_builders[];
extern const int n_net_builders;

/* labels formats; each (operation, format) is supported with this probability, fp32:nchw
 * always. false: out of memory. */
bool net_make(struct net *n, const struct net_builder *builder, int labels,
              double support, uint64_t seed);
void net_free(struct net *n);

#endif /* BENCH_PLAN_NETS_H */
