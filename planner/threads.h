/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLANNER_THREADS_H
#define PLANNER_THREADS_H

#include "network/network.h"

/* Threads for a network on the host: what [runtime] asks for, else as many as its
 * operations and bytes keep busy. A team costs microseconds a kernel to gather, and far
 * more where the processors are shared, so small networks run on one thread. */
int threads_for(const strata_network *net, int available);

#endif /* PLANNER_THREADS_H */
